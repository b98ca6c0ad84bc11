"""Did the machine let a command come to its end? What it did not lets nobody judge the code.

A shell tells of a signal by the status 128 + its number; make, compilers and Node.js by a line of their own.
"""

from __future__ import annotations

import re
import signal

import attrs

from pipeline.process import Finished

LINES = 40  # the last ones of what a command said, in which such a line is looked for
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGXCPU, signal.SIGXFSZ}
_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS}
_KILLED = re.compile(
    r"""\*\*\*\ \[.*\]\ (Killed|Terminated|Hangup|Interrupt)\b    # GNU make, of what it ran
    | fatal\ error:\ Killed\ signal\ terminated\ program          # gcc, of its compiler
    | virtual\ memory\ exhausted | [Cc]annot\ allocate\ memory | JavaScript\ heap\ out\ of\ memory
    | No\ space\ left\ on\ device | Disk\ quota\ exceeded""",
    re.VERBOSE,
)
_CRASHED = re.compile(
    r"""\*\*\*\ \[.*\]\ (Segmentation\ fault|Bus\ error|Illegal\ instruction|Aborted|Floating\ point\ exception)
    | internal\ compiler\ error | PLEASE\ submit\ a\ bug\ report | the\ compiler\ unexpectedly\ panicked""",
    re.VERBOSE,
)


@attrs.frozen
class Unfinished:
    """It says nothing about the code."""

    why: str  # for people
    crash: bool = False  # a program fell over by itself: the machine's fault once, the code's when it happens again


def unfinished(done: Finished, limit: float) -> Unfinished | None:
    """What kept a command from its end, None where nothing did: it succeeded or failed. limit: its seconds."""
    if done.timed_out:
        return Unfinished(f"no end within {limit:g} s")
    if done.too_much_memory:
        return Unfinished("more memory than it may take")
    if done.too_much_output:
        return Unfinished("more output than can be kept")
    if done.exit_code == 0:
        return None
    if (said := _signal(done.exit_code)) in _FROM_OUTSIDE:
        return Unfinished(f"killed by {said.name}")
    if said in _CRASHES:
        return Unfinished(f"crashed with {said.name}", crash=True)
    text = done.tail(LINES)
    if found := _KILLED.search(text):
        return Unfinished(_line(text, found))
    if found := _CRASHED.search(text):
        return Unfinished(_line(text, found), crash=True)
    if done.exit_code in (126, 127):
        said_last = text.splitlines()[-1] if text else f"exit status {done.exit_code}"
        return Unfinished(f"a program of it could not be started: {said_last}", crash=True)
    return None


def _signal(exit_code: int) -> signal.Signals | None:
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        return signal.Signals(number)
    except ValueError:
        return None


def _line(text: str, found: re.Match[str]) -> str:
    """The whole line of a match."""
    begin = text.rfind("\n", 0, found.start()) + 1
    return text[begin:].splitlines()[0].strip()
