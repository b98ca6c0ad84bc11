"""What has happened, as reports need it: the ledger read once, the last run's figures computed once, for every form."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline import ledger, timeline
from pipeline.reports import figures
from pipeline.reports.figures import Figures, Shares
from pipeline.session import Session
from pipeline.timeline import Timeline

Event = Mapping[str, Any]


class Past:
    """closing: what will be the last event of the run that is ending. replayed: whether other orders are asked for."""

    def __init__(self, session: Session, closing: Event | None = None, replayed: bool = True) -> None:
        self._session, self._closing, self._replayed = session, [closing] if closing else [], replayed

    @functools.cached_property
    def events(self) -> Sequence[Event]:
        """Of all runs, oldest first."""
        return [*ledger.events(self._session.ledger_path), *self._closing]

    @functools.cached_property
    def last(self) -> Sequence[Event]:
        """Of the run that is ending, else of the last one in the ledger in which anything began."""
        if self._session.info is not None:
            return [*self._session.events, *self._closing]
        run = next((e["run"] for e in reversed(self.events) if _ran(e)), "")
        return [e for e in self.events if e["run"] == run]

    @functools.cached_property
    def timeline(self) -> Timeline | None:
        return timeline.of(self.last)

    @functools.cached_property
    def shares(self) -> Shares | None:
        return figures.shares(self.last, self.timeline) if self.timeline else None

    @functools.cached_property
    def figures(self) -> Figures | None:
        """None where none of its tasks ran in a lane."""
        if self.timeline is None or self.shares is None:
            return None
        run = self._session.info.run if self._session.info else str(self.last[0]["run"])
        return figures.of(self.last, self.timeline, self.shares, self._replayed, run)


def _ran(e: Event) -> bool:
    return e["event"] == "started" or (e["event"] == "attempt" and e["lane"] is not None)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Of a long ledger much is made that stays until the program ends: Python's collector would look through all of it
    again and again, and once more at the end."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was:
            gc.enable()
