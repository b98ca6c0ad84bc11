"""What a task's thread, and those that it has work side by side, spend: CPU seconds of programs, and spans of time.

A span says what a stretch of a task's time was, where that is not what its kind says: it waited, it was in another
phase, it held one more slot of a lane, or it lent its own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

import attrs

from pipeline import clock

T = TypeVar("T")
R = TypeVar("R")
Kind = Literal["wait", "phase", "extra", "lent"]
Span = tuple[Kind, str, float, float]  # what it was, of what, from and until in seconds since the epoch

MERGE_LOCK = "the merge lock"
BACK_OFF = "a retry's back-off"
BISECT = "bisect"  # the phase of an engine run that one of its scopes broke: the others are run again without it


@attrs.define
class Account:
    cpu_seconds: float = 0.0
    spans: list[Span] = attrs.field(factory=list)
    engine_runs: int = 0
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def add(self, cpu_seconds: float) -> None:
        with self._lock:
            self.cpu_seconds += cpu_seconds

    @property
    def fields(self) -> dict[str, object]:
        """What the ledger is told beside CPU seconds; nothing where there is nothing."""
        told = {"spans": list(self.spans), "engine_runs": self.engine_runs}
        return {name: value for name, value in told.items() if value}


_of_thread = threading.local()


def current() -> Account | None:
    return getattr(_of_thread, "account", None)


@contextlib.contextmanager
def opened(account: Account | None = None) -> Iterator[Account]:
    """What this thread spends goes to an account of its own, or to the one given: that of the thread it works for."""
    account, before = account or Account(), current()
    _of_thread.account = account
    try:
        yield account
    finally:
        _of_thread.account = before


def carried(function: Callable[[T], R]) -> Callable[[T], R]:
    """The function, for other threads: what it spends there goes to this thread's account."""
    mine = current()

    def counted(item: T) -> R:
        if mine is None:
            return function(item)
        with opened(mine):
            return function(item)

    return counted


def engine_started() -> None:
    """Another run of the engine, in this thread or for it."""
    if (account := current()) is not None:
        account.engine_runs += 1


def told(kind: Kind, name: str, began: float) -> None:
    """A span that ends now, and of which only its end tells what it was."""
    if (account := current()) is not None:
        account.spans.append((kind, name, began, clock.now()))


@contextlib.contextmanager
def span(kind: Kind, name: str) -> Iterator[None]:
    began = clock.now()
    try:
        yield
    finally:
        told(kind, name, began)
