"""What a build has for itself: a named lock over the whole machine, watchers that pause, an output folder.

A watcher that builds beside a build breaks it, and nobody's change is to blame. What was paused is written in a journal
first, so that whatever ends the run, the watcher is resumed: by the run itself, or by the next one.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import filelock

from pipeline import journals, process
from pipeline.model import Owns
from pipeline.results import dump, find
from pipeline.store import digest, file_name

PATIENCE = 60.0  # seconds that a pause or a resume may take
_OUT = re.compile(r"(?<!\$)\{out\}")  # ${out} is the shell's


class NotOwned(Exception):
    """The watcher could not be paused: a build would be disturbed. The text says why."""


@attrs.frozen
class _Paused:
    """An entry of the journal."""

    resume: tuple[str, ...]
    root: str  # where they run


@attrs.frozen
class _Holder:
    """The note beside a lock."""

    pid: int
    host: str
    since: str
    what: str


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@attrs.define
class Owning:
    """What one run holds and has paused."""

    home: Path  # the journal
    locks: Path  # of all runs of this user
    root: Path  # where pause and resume run
    scratch: Callable[[], Path]  # where output folders are
    say: Callable[[str], object] = _say
    _one: threading.Lock = attrs.field(factory=threading.Lock)
    _users: Counter[str] = attrs.field(factory=Counter)

    @contextlib.contextmanager
    def of(self, owns: Owns | None, commands: Sequence[str] = ()) -> Iterator[tuple[str, ...]]:
        """Own it, once it is free. Gives the commands that may run then, {out} filled in. Raises NotOwned;
        process.Stopped where the run ends meanwhile."""
        with contextlib.ExitStack() as stack:
            if owns is None:
                yield tuple(commands)
                return
            if owns.lock:
                stack.enter_context(machine_lock(self.locks, owns.lock, str(self.root), self.say))
            if owns.pause or owns.resume:
                stack.enter_context(self._paused(owns))
            yield stack.enter_context(_with_output(commands, self.scratch))

    def settle(self) -> bool:
        """Resume all that is paused still: what a killed run has left, or this one when it was stopped. False where
        that failed: it is tried again in the next run."""
        with self._one:
            resumed = [self._resume(entry) for entry in sorted(self.home.glob("*.json"))]
            return all(resumed)

    @contextlib.contextmanager
    def _paused(self, owns: Owns) -> Iterator[None]:
        entry = self.home / f"{digest([owns.pause, owns.resume])[:16]}.json"
        try:
            with self._one:  # who comes second waits until the first has paused it
                self._users[entry.name] += 1
                if self._users[entry.name] == 1:
                    dump(entry, _Paused(owns.resume, str(self.root)))
                    for command in owns.pause:
                        if why := self._run(command, self.root, entry.with_suffix(".log")):
                            raise NotOwned(f"the watcher could not be paused: {why}")
            yield
        finally:
            with self._one:
                self._users[entry.name] -= 1
                if not self._users[entry.name]:
                    # While a run is stopping nothing starts; `settle` is called when all else has ended.
                    with contextlib.suppress(process.Stopped):
                        self._resume(entry)

    def _resume(self, entry: Path) -> bool:
        paused = find(entry, _Paused)
        log, commands = entry.with_suffix(".log"), paused.resume if paused else ()
        root = Path(paused.root) if paused else self.root
        failures = [why for command in commands if (why := self._run(command, root, log))]
        for why in failures:
            self.say(f"the watcher could not be resumed, and is tried again by the next run: {why}")
        if not failures:
            entry.unlink(missing_ok=True)
        return not failures

    def _run(self, command: str, root: Path, log: Path) -> str:
        """Run it, let live what it starts, and say how it failed, if it did."""
        log.parent.mkdir(parents=True, exist_ok=True)
        words = ["sh", "-c", f"exec 2>&1; {command}"]
        try:  # into a file with a name: a watcher that stays goes on writing there
            done = process.run(words, cwd=root, out_file=log, timeout=PATIENCE, leave=True)
        except OSError as error:
            return f"{command}: {error.strerror or error}"
        if done.ok:
            return ""
        how = f"no end within {PATIENCE:g} s" if done.timed_out else f"exit status {done.exit_code}"
        return "\n".join([f"{command}: {how}", done.tail(5)]).rstrip()


# -- a lock over the whole machine


@contextlib.contextmanager
def machine_lock(folder: Path, name: str, what: str, say: Callable[[str], object] = _say) -> Iterator[None]:
    """Hold the lock of a name, and say who does for as long. Raises process.Stopped where the run ends meanwhile.

    what: for people: what is done under it. The kernel frees the lock of a holder that dies. What the dead one had
    started may still run; who takes the lock next ends that first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    base = file_name(name)
    note, orphans = folder / f"{base}.json", folder / f"{base}.processes"
    lock = filelock.FileLock(folder / f"{base}.lock")
    with process.holding(lock, f"the lock {name}", lambda: say(f"waiting for the lock {name}: {_holder(note)}")):
        journals.settle(orphans)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        dump(note, _Holder(os.getpid(), socket.gethostname(), since, what))
        try:
            with process.journalled(orphans):
                yield
        finally:
            note.unlink(missing_ok=True)


def _holder(note: Path) -> str:
    it = find(note, _Holder)
    return f"pid {it.pid} on {it.host} holds it since {it.since}, in {it.what}" if it else "nobody says who holds it"


# -- an output folder


@contextlib.contextmanager
def _with_output(commands: Sequence[str], scratch: Callable[[], Path]) -> Iterator[tuple[str, ...]]:
    """The commands with {out} filled in: an empty folder of their own, gone when they are done."""
    if not any(map(_OUT.search, commands)):
        yield tuple(commands)
        return
    with tempfile.TemporaryDirectory(prefix="out-", dir=scratch()) as folder:
        yield filled(commands, folder)


def filled(commands: Sequence[str], folder: str) -> tuple[str, ...]:
    return tuple(_OUT.sub(lambda _: folder, command) for command in commands)
