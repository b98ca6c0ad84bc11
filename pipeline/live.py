"""What runs in each lane right now, for people at a terminal: redrawn once a second below all other lines.

Not at a terminal, nothing of it: one line an event, as before. rich is loaded where it is used.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import attrs

from pipeline import clock

MOST = 6  # tasks of a lane that are shown by name
EVERY = 1.0  # seconds
ROOM = 20  # columns for what runs in a lane beside the lane's name; with fewer it stands below it, each on its line
_UNBROKEN = "\ue000"  # a space that no line ends at: to rich every other one is as good as any


@attrs.frozen
class Doing:
    """Tasks that share a slot."""

    lane: str
    names: tuple[str, ...]
    since: float  # clock.now()


@attrs.frozen
class State:
    """Of a run, at one moment."""

    capacity: Mapping[str, int]
    in_use: Mapping[str, int]  # slots: a task may hold several, or lend its own
    doing: Sequence[Doing]
    said: Sequence[str]  # scopes done, kills, tokens, time left


def wanted(outfile: Any, console: bool, verbosity: int | None) -> bool:
    """Is there somebody to look? console: doit's own reporter for people is the one in use."""
    dumb = os.environ.get("TERM", "dumb") == "dumb" or bool(os.environ.get("CI"))
    return console and outfile is sys.stdout and sys.stdout.isatty() and not dumb and verbosity != 0


@contextlib.contextmanager
def view(state: Callable[[], State | None]) -> Iterator[Any]:
    """Show it while the run goes on. Gives the stream for all that is to stand above; sys.stdout and sys.stderr are it
    meanwhile."""
    above, stop = Above(sys.stdout, drawing(state)), threading.Event()

    def redraw() -> None:
        with contextlib.suppress(OSError):  # the terminal has gone; the next line of the run's own meets that too
            while not stop.wait(EVERY):
                above.redraw()

    thread = threading.Thread(target=redraw, name="view", daemon=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(above))
        if sys.stderr.isatty():
            stack.enter_context(contextlib.redirect_stderr(above))
        thread.start()
        try:
            yield above
        finally:
            stop.set()
            thread.join()
            above.end()


def drawing(state: Callable[[], State | None]) -> Callable[[], str]:
    """What draws it, for a terminal that standard output is at: lines, each whole; none while there is no state."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)

    def drawn() -> str:
        now = state()
        if now is None:
            return ""
        with console.capture() as captured:
            console.print(_drawn(now, clock.now(), console.width))
        lines = captured.get().replace(_UNBROKEN, " ").splitlines()
        # No cursor goes up further than the screen.
        return "".join(f"{line.rstrip()}\n" for line in lines[: max(1, console.height - 1)])

    return drawn


class Above(io.TextIOBase):
    """Lines, as they are, above what is redrawn. What was drawn last is put below them again: to draw it anew for each
    line takes more of a core than all else that the view does."""

    def __init__(self, file: TextIO, drawn: Callable[[], str]) -> None:
        self._file, self._drawn, self._lock = file, drawn, threading.RLock()
        self._rest = self._shown = ""

    def write(self, text: str) -> int:
        with self._lock:
            lines, newline, self._rest = (self._rest + text).rpartition("\n")
            if newline:
                self._put(lines + newline + self._shown)
        return len(text)

    def redraw(self) -> None:
        now = self._drawn()
        with self._lock:
            gone, self._shown = _gone(self._shown), now
            self._put(now, gone)

    def _put(self, text: str, gone: str | None = None) -> None:
        self._file.write((_gone(self._shown) if gone is None else gone) + text)
        self._file.flush()

    def end(self) -> None:
        """What was drawn is gone, and what is not a whole line stands there as it is."""
        with self._lock:
            rest, gone, self._rest, self._shown = self._rest, _gone(self._shown), "", ""
            self._put(rest, gone)

    def flush(self) -> None:
        """What is not a whole line yet waits for its end: it would stand in the way of what is redrawn."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()


def _gone(shown: str) -> str:
    """What takes it off a terminal again, whose cursor stands below it."""
    return "\r\x1b[2K" + "\x1b[1A\x1b[2K" * shown.count("\n") if shown else ""


def _drawn(state: State, now: float, width: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    shown, below = Table.grid(padding=(0, 2)), list[str]()
    used = {lane: f"{state.in_use[lane]}/{slots}" for lane, slots in state.capacity.items()}
    room = width - sum(2 + max(map(len, each), default=0) for each in (used, used.values()))
    for lane in state.capacity:
        doing = sorted((each for each in state.doing if each.lane == lane), key=lambda each: each.since)
        shown.add_row(Text(lane, style="bold"), Text(used[lane]), _wrapped(_listed(doing, now, room)))
        below += [f"{lane} {used[lane]}", *(f" {each}" for each in _listed(doing, now, width - 1))]
    if room < ROOM:
        lines = [each if len(each) <= width else f"{each[: width - 1]}…" for each in (*below, *state.said)]
        return Text("\n".join(lines))
    shown.add_row("", "", _wrapped(state.said))
    return shown


def _wrapped(items: Sequence[str]) -> str:
    """No line ends within an item."""
    return " · ".join(each.replace(" ", _UNBROKEN) for each in items)


def _listed(doing: Sequence[Doing], now: float, room: int) -> list[str]:
    """room: columns for one of them."""
    named = [_fitted(_named(each.names), span(now - each.since), room) for each in doing[:MOST]]
    more = [f"{len(doing) - MOST} more"] if len(doing) > MOST else []
    return [*named, *more] or ["idle"]


def _fitted(name: str, time: str, room: int) -> str:
    """Of a name that is too long its middle is left out: both its kind and the end of its path tell it from others."""
    room -= len(time) + 1
    if len(name) > room:
        head = max(1, (room - 1) // 2)
        name = f"{name[:head]}…{name[len(name) - max(1, room - 1 - head) :]}"
    return f"{name} {time}"


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def span(seconds: float) -> str:
    """A stretch of time, short."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
