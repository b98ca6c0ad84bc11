"""What the runner and the one who declares its tasks agree on: values and a protocol. Knows nothing of doit."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from pipeline import account, limits, process, slots
from pipeline.results import Outcome
from pipeline.schedule import Lanes
from pipeline.slots import Slots


class CannotGoOn(Exception):
    """Nobody's code is at fault: the text says what is in the way, and is told without a traceback."""


_SYSTEM = {getattr(errno, name, None) for name in (
    "ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EIO", "EFBIG", "EMFILE", "ENFILE", "ENOMEM", "ESTALE",
)}  # fmt: skip


def in_the_way(error: BaseException) -> bool:
    """Is it the machine that refused: a full disk, a read-only file system, no more memory? Not a fault of ours."""
    return isinstance(error, CannotGoOn | sqlite3.Error) or (isinstance(error, OSError) and error.errno in _SYSTEM)


@attrs.frozen
class Leg:
    """More of a task that is not over: it waits for a slot as any task does, holding nothing meanwhile."""

    name: str  # what the ledger and people call it
    kind: str
    pool: str
    performer: Performer
    batch: str | None = None  # those of one batch that are ready are performed together


@attrs.frozen
class Attempt:
    """What performing one task came to."""

    outcome: Outcome
    failure: str | None = None  # not None: the doit task failed, with this message
    line: str = ""  # for people, when the task ends
    output: str = ""  # of programs it ran; shown in one piece where verbosity is 2, and with a failure
    fields: Mapping[str, object] = attrs.field(factory=dict)  # JSON, for the event
    then: Leg | None = None  # it is not over: this comes next


@attrs.frozen
class Slot:
    """A place in a lane. `index` is nobody else's while it is held; below the capacity, but where places are lent."""

    lane: str
    index: int
    workers: int  # worker processes of one engine run
    _slots: Slots | None = None

    @contextlib.contextmanager
    def all_free(self) -> Iterator[int]:
        """Hold every slot of the lane that is free now as well; gives the workers that one engine run may have then."""
        with contextlib.ExitStack() as stack:
            held = 1
            while stack.enter_context(self.try_extra()):
                held += 1
            yield max(self.workers, min(held * self.workers, limits.cores()))

    @contextlib.contextmanager
    def door(self, folder: Path) -> Iterator[str]:
        """A socket in `folder`, a path that is not long, where programs get slots of validation (slot.py)."""
        if self._slots is None:
            yield ""
        else:
            with slots.opened(self._slots, folder) as path:
                yield path

    @contextlib.contextmanager
    def beside(self, lane: str) -> Iterator[None]:
        """Hold a slot of another lane as well, once it is free. Raises process.Stopped where the run ends before."""
        if self._slots is None:
            yield
            return
        with self._slots.waited_for(lane, lambda: False) as held:
            if not held:
                raise process.Stopped(f"waiting for a slot of {lane}")
            yield

    def try_extra(self) -> contextlib.AbstractContextManager[bool]:
        """Hold one more slot of the lane if one is free now; False, without waiting, if not."""
        return self._slots.extra(self.lane) if self._slots else contextlib.nullcontext(False)

    def wait(self, seconds: float) -> None:
        """Do nothing for that long, with the place lent. Raises process.Stopped."""
        with account.span("wait", account.BACK_OFF), self.lent():
            process.pause(seconds)

    def lent(self) -> contextlib.AbstractContextManager[None]:
        """Let somebody else have a place in the lane for the length of a wait. Leaving takes as long as it takes until
        a place is free again. Raises process.Stopped where the run ends before that."""
        return self._slots.lent(self.lane) if self._slots else contextlib.nullcontext()


@attrs.frozen
class RunInfo:
    """What the host is told before anything is judged."""

    run: str  # unique; sorts by time
    lanes: Lanes
    selected: tuple[str, ...]  # the tasks selected and all they need
    scopes: tuple[str, ...]  # those that any of them belongs to: each must come to an ending
    always: bool
    started: float  # clock.now()
    words: tuple[str, ...] | None = None  # the selection as it was given; None: the default
    plain: bool = False  # no option changes what is judged, or how


class Host(Protocol):
    """Who declares the tasks, and keeps what is learned of them."""

    @property
    def pools(self) -> Mapping[str, int]:
        """Declared pools and their slots, without validation."""

    @property
    def engine_peak_bytes(self) -> int | None:
        """Memory that one engine run is known to take."""

    @property
    def engine_workers(self) -> int | None:
        """Worker processes of one engine run, where somebody has said; None: the cores are shared out."""

    def open(self, info: RunInfo) -> None:
        """Before anything is judged. Raises Refusal."""

    def notes(self) -> Sequence[str]:
        """Lines for people, before anything starts."""

    def peak(self, task: str) -> int | None:
        """Bytes of memory that the task was seen to take when it ran last; None: no idea, or next to nothing."""

    def estimate(self, task: str) -> float | None:
        """Seconds that the task is expected to take; None: no idea."""

    def progress(self) -> Sequence[str]:
        """What has come of it so far, each in a few words."""

    def began(self, event: Mapping[str, object]) -> None:
        """One for each set of tasks that takes a slot: all that is known of it should the run be killed."""

    def record(self, event: Mapping[str, object]) -> None:
        """One for each attempt that ended, and for each task that was up to date. Times are clock.now()'s."""

    def close(self, result: int, interrupted: bool, alone: bool) -> tuple[int, str]:
        """However the run ended. result: doit's exit status → (the final one, the summary). alone: has nobody but the
        run written in doit's database?"""


Performer = Callable[[Sequence[Hashable], Slot], Mapping[Hashable, Attempt]]
