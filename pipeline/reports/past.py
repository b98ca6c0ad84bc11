"""What has happened, as reports need it: the ledger read once, the last run's figures computed once, for every form."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
from collections.abc import Iterator

from pipeline import ledger, timeline
from pipeline.ledger import ByEvent, Event
from pipeline.reports import figures
from pipeline.reports.figures import Figures, Shares, Spent
from pipeline.session import Session
from pipeline.timeline import Timeline


class Past:
    """closing: what will be the last event of the run that is ending. replayed: whether other orders are asked for."""

    def __init__(self, session: Session, closing: Event | None = None, replayed: bool = True) -> None:
        self._session, self._closing, self._replayed = session, [closing] if closing else [], replayed

    @functools.cached_property
    def runs(self) -> dict[str, ByEvent]:
        """Of all runs, oldest first."""
        return ledger.runs(self._session.ledger_path)

    @functools.cached_property
    def last(self) -> ByEvent:
        """Of the run that is ending, else of the last one of the same plan in which anything began: a plan narrowed by
        `since` has reports of its own."""
        if self._session.info is not None:
            return ledger.by_event(itertools.chain(self._session.events, self._closing))
        found = next((of_run for of_run in reversed(self.runs.values()) if _ran(of_run) and self.is_ours(of_run)), {})
        for e in found.get("run-started", ()):  # with 100,000,000 slots a report did not come to its end
            if not all(map(ledger.is_capacity, (e.get("lanes") or {}).values())):
                raise ValueError("no lane of a run has so many slots")
        return found

    def is_ours(self, of_run: ByEvent) -> bool:
        """Was it a run of this plan, as narrow as it is now?"""
        return narrowed_by(of_run) == self._session.plan.since

    @functools.cached_property
    def timeline(self) -> Timeline | None:
        return timeline.of(self.last)

    @functools.cached_property
    def spent(self) -> tuple[Spent, ...]:
        return figures.spent(self.last, self.timeline) if self.timeline else ()

    @functools.cached_property
    def shares(self) -> Shares | None:
        return figures.shares(self.spent, self.timeline) if self.timeline else None

    @functools.cached_property
    def figures(self) -> Figures | None:
        """None where none of its tasks ran in a lane."""
        if self.timeline is None or self.shares is None:
            return None
        run = self._session.info.run if self._session.info else next(iter(self.last.values()))[0]["run"]
        return figures.of(self.last, self.timeline, self.spent, self.shares, self._replayed, run)


def narrowed_by(of_run: ByEvent) -> str:
    """The ref that a run's `since` named; '' where it had none."""
    return next((str(e.get("since") or "") for e in of_run.get("run-started", ())), "")


def _ran(of_run: ByEvent) -> bool:
    return "started" in of_run or any(e.get("lane") is not None for e in of_run.get("attempt", ()))


FAULTS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)  # of who reads what is no event of ours


def fault(session: Session, error: BaseException) -> str | None:
    """What there is in the ledger that may be why that was raised, for people; None: nothing."""
    with contextlib.suppress(OSError):
        if (line := ledger.strange(session.ledger_path)) is not None:
            return f"{session.ledger_path}:{line}: no event as this program writes them; take the line out"
    return f"{session.ledger_path}: {error}" if isinstance(error, figures.Contradiction) else None


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
