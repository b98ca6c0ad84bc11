"""All that there is to report, as one value: what the targets say now, and what the last run's events come to. The
forms that machines and browsers read (machine.py, page.py) are made of it, and of nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import orjson

from pipeline import ledger
from pipeline.ledger import ByEvent, Event
from pipeline.model import Scope
from pipeline.reports import figures
from pipeline.reports.figures import Figures
from pipeline.reports.past import Past, narrowed_by
from pipeline.results import Candidates, Landed, Proofs, find, write_bytes
from pipeline.session import Session
from pipeline.worktree import GitError

if TYPE_CHECKING:  # a run of declared tasks alone has no use for it
    from pipeline.mutants import Mutant, Score
    from pipeline.reports.summary import ScopeOutcome


@attrs.frozen
class Scores:
    """Of a scope, or of all of them, at one state."""

    mutants: Annotated[int, "All that the engine made, errors and ignored ones included"]
    survivors: Annotated[int, "Survived and NoCoverage, after the audit"]
    timeouts: Annotated[int, "Detected by nothing but a time limit"]
    score: Annotated[float | None, "Mutation score in percent: detected / valid; null where there is nothing to score"]
    honest: Annotated[float | None, "Killed / (Killed + Survived + NoCoverage) in percent: no credit for a timeout"]

    @classmethod
    def of(cls, score: Score) -> Scores:
        return cls(score.total, score.survivors, score.timeout, score.mutation, score.honest)


@attrs.frozen
class Killed:
    """A mutant that a landed test kills."""

    file: str
    line: int
    mutator: str
    original: str
    replacement: str
    how: Annotated[str, "assertion, exception out of the code under test, or engine"]


@attrs.frozen
class LandedTest:
    title: str
    file: Annotated[str, "The test file it stands in"]
    code: str
    origin: Annotated[str, "The generator that wrote it"]
    kills: tuple[Killed, ...]


@attrs.frozen
class Left:
    """A survivor that is left."""

    file: str
    line: int
    mutator: str
    original: str
    replacement: str
    status: Annotated[str, "Survived or NoCoverage"]
    possibly_equivalent: Annotated[bool, "No input told it apart, or three candidates failed to kill it"]
    why: Annotated[str, "What search found out about it; empty where nothing"]


@attrs.frozen
class ScopeReport:
    scope: str
    ending: Annotated[str, "failed, parked, not reached, held, landed, exhausted, converged"]
    why: str
    needs_a_person: bool
    before: Scores | None
    after: Scores | None
    confirmed: Annotated[bool, "Whether `after` is the engine's own word on what has landed; else it follows of proofs"]
    false_survivors: Annotated[int, "Survivors of the engine's that a fresh process kills with the existing tests"]
    added: Annotated[tuple[str, ...], "Tests of which the engine has not said `before`: what survived it has met them"]
    tests: tuple[LandedTest, ...]
    survivors: tuple[Left, ...]
    disagreements: Annotated[tuple[str, ...], "Mutants on which the engine disagrees with a proof"]
    dropped: Annotated[Mapping[str, int], "Outcome -> candidates of models that came to that"]


@attrs.frozen
class TaskReport:
    """An agent's task."""

    task: str
    ending: str
    why: str
    needs_a_person: bool


_FORMAT = 2  # of what is kept of a run


@attrs.frozen
class Run:
    """One run of the ledger."""

    run: str
    since: Annotated[str, "The ref that narrowed it, else empty"]
    started: Annotated[float | None, "Seconds since the epoch"]
    ended: Annotated[float | None, "null: it was killed, or is running"]
    seen: Annotated[float | None, "When its last event was, in seconds since the epoch"]
    status: Annotated[int | None, "Exit status"]
    tasks: Annotated[int, "That did something in a lane"]
    failed: Annotated[int, "Declared tasks that failed"]
    tokens: Annotated[int | None, "Fresh input, cache writes and output; null where an envelope did not say"]
    cost: Annotated[float | None, "USD; null where an envelope did not say"]
    landed: Annotated[int | None, "Scopes and tasks that ended as landed; null where it was killed before it said so"]
    survivors: Annotated[int | None, "Of the scopes it took on, after it; null where that was not said"]
    honest: Annotated[float | None, "Honest score of those scopes after it, in percent"]

    @property
    def minutes(self) -> float | None:
        """Of one that was killed until its last event."""
        until = self.ended or self.seen
        return None if self.started is None or until is None else (until - self.started) / 60


@attrs.frozen
class Report:
    """What `doit report --json` prints."""

    version: Annotated[int, "Of this format: 1"]
    branch: Annotated[str, "Where tests land; empty where nothing lands"]
    before: Scores | None
    after: Scores | None
    scopes: tuple[ScopeReport, ...]
    tasks: tuple[TaskReport, ...]
    figures: Annotated[Figures | None, "Of the last run in which anything ran; null where there is none"]
    runs: Annotated[tuple[Run, ...], "All runs of this cache, oldest first"]


def of(session: Session, past: Past) -> Report:
    scopes: tuple[ScopeReport, ...] = ()
    tasks: tuple[TaskReport, ...] = ()
    before = after = None
    if session.plan.scopes or session.plan.changes:
        from pipeline.reports import changes, summary

        outcomes = summary.all_outcomes(session)
        scopes = tuple(_scope(session, scope, o) for scope, o in zip(session.plan.scopes, outcomes, strict=True))
        tasks = tuple(TaskReport(o.scope, o.ending, o.why, o.needs_a_person) for o in changes.all_outcomes(session))
        before, after = (summary.total(each) for each in ([o.before for o in outcomes], [o.after for o in outcomes]))
    return Report(
        1, _branch(session), Scores.of(before) if before else None, Scores.of(after) if after else None,
        scopes, tasks, past.figures, tuple(_runs_of(session, past)),
    )  # fmt: skip


def _branch(session: Session) -> str:
    """Its name; "" where it has none: nothing lands, there is no commit, or no branch is checked out to name it by."""
    template = session.plan.land.branch
    if not (session.plan.scopes or session.plan.changes):
        return ""
    from pipeline.landing import Refused

    try:
        return session.landing_name
    except (Refused, GitError):
        return "" if "{branch}" in template else template


def _scope(session: Session, scope: Scope, outcome: ScopeOutcome) -> ScopeReport:
    from pipeline.equivalent import possibly_equivalent
    from pipeline.measuring import Baseline
    from pipeline.mutants import is_survivor

    def read(name: str, type_: type[Any]) -> Any:
        return find(session.target(scope.name, name), type_)

    rounds = range(session.plan.generate.last_round + 1)
    baseline: Baseline | None = read("baseline.json", Baseline)
    landed: Landed | None = read("landed.json", Landed)
    proofs: list[Proofs] = [p for r in rounds if (p := read(f"proofs.{r}.json", Proofs))]
    candidates: list[Candidates] = [c for r in rounds if (c := read(f"candidates.{r}.json", Candidates))]
    mutants = {m.key: m for m in baseline.mutants} if baseline else {}
    titles = set(landed.titles) if landed else set()
    tests = tuple(
        LandedTest(
            p.test.title, scope.write, p.test.code, p.test.origin,
            tuple(_killed(mutants[key], how) for key, how in p.how.items() if key in mutants),
        )
        for each in proofs
        for p in each.proved
        if p.test.title in titles
    )  # fmt: skip
    killed = {key for each in proofs for p in each.proved if p.test.title in titles for key in p.how}
    equivalent = possibly_equivalent(candidates, proofs)
    unreached = candidates[0].unreached if candidates else {}
    left = tuple(
        Left(
            m.file, m.line, m.mutator, m.original, m.replacement, str(m.final), m.key in equivalent,
            unreached.get(m.key, ""),
        )
        for m in mutants.values()
        if is_survivor(m.final) and m.key not in killed
    )  # fmt: skip
    return ScopeReport(
        scope.name, outcome.ending, outcome.why, outcome.needs_a_person,
        Scores.of(outcome.before) if outcome.before else None, Scores.of(outcome.after) if outcome.after else None,
        outcome.confirmed, outcome.false_survivors, outcome.added, tests, left, outcome.disagreements, outcome.dropped,
    )  # fmt: skip


def _killed(mutant: Mutant, how: str) -> Killed:
    return Killed(mutant.file, mutant.line, mutant.mutator, mutant.original, mutant.replacement, how)


def _runs_of(session: Session, past: Past) -> list[Run]:
    """All of them. At the end of one, those before it are folded once and kept: a ledger grows without end."""
    begun = session.ledger.begun
    if session.info is None or begun is None:
        return [*runs(past.runs)]
    place, at = session.home / "runs.json", 0
    known: list[Run] = []
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        inode = session.ledger_path.stat().st_ino
        kept = orjson.loads(place.read_bytes())
        if kept["inode"] == inode and kept["at"] <= begun and kept["format"] == _FORMAT:
            known, at = [Run(**each) for each in kept["runs"]], kept["at"]
    known += runs(ledger.runs(session.ledger_path, at, begun))
    with contextlib.suppress(OSError):
        said = {"inode": session.ledger_path.stat().st_ino, "at": begun, "format": _FORMAT}
        write_bytes(place, orjson.dumps({**said, "runs": [attrs.asdict(run) for run in known]}))
    return [*known, _run(session.info.run, past.last)]


def runs(of_all: Mapping[str, ByEvent]) -> Iterator[Run]:
    return (_run(run, events) for run, events in of_all.items())


def _run(run: str, events: ByEvent) -> Run:
    began: Event = next(iter(events.get("run-started", ())), {})
    ended: Event = next(iter(events.get("run-ended", ())), {})
    endings = events.get("ending", ())
    tasks = len([1 for e in events.get("attempt", ()) if e.get("lane") is not None])
    failed = len({e["task"] for e in events.get("attempt", ()) if e.get("kind") == "task" and e.get("failure")})
    seen = max(e.get("ended") or e.get("at") or e.get("started") or 0.0 for of in events.values() for e in of[-1:])
    tokens: int | None = 0
    cost: float | None = 0.0
    for e in events.get("call", ()):
        more, paid = figures.paid(e), (e.get("tokens") or {}).get("cost")
        tokens = None if tokens is None or more is None else tokens + more
        cost = None if cost is None or paid is None else cost + paid
    landed, survivors, honest = _came_to(endings) if endings else (0, None, None)
    return Run(
        run, narrowed_by(events), began.get("at"), ended.get("at"), seen or None, ended.get("status"), tasks, failed,
        tokens, cost, landed if ended else None, survivors, honest,
    )  # fmt: skip


def _came_to(endings: Sequence[Event]) -> tuple[int, int | None, float | None]:
    """How many landed; the survivors and the honest score of all together, where that was said."""
    from pipeline.mutants import Score
    from pipeline.reports import summary

    afters = [Score(**e["after"]) for e in endings if e.get("after")]
    after = summary.total(afters) if len(afters) == len(endings) else None
    landed = sum(e["ending"] == summary.LANDED for e in endings)
    return landed, after.survivors if after else None, after.honest if after else None
