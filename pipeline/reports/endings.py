"""Did every scope that the last run took on come to exactly one ending, and no declared task of it fail? By the ledger,
and as the targets stand now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipeline.freshness import Freshness
from pipeline.ledger import ByEvent, Event
from pipeline.reports import changes
from pipeline.reports.past import Past
from pipeline.reports.summary import MEASURED, NEEDS_A_PERSON, outcome
from pipeline.reports.tables import many
from pipeline.results import Outcome
from pipeline.session import Session


def unended(taken_on: Sequence[str], endings: Sequence[str]) -> tuple[str, ...]:
    """What is wrong, a line for each: scopes taken on without an ending or with several, endings nobody asked for."""
    counted = Counter(endings)
    none = [f"{scope}: no ending" for scope in taken_on if not counted[scope]]
    several = [f"{scope}: {n} endings" for scope, n in counted.items() if n > 1]
    strange = [f"{scope}: an ending, and the run did not take it on" for scope in counted if scope not in taken_on]
    return (*none, *several, *strange)


def of_last_run(session: Session, past: Past) -> tuple[tuple[str, ...], bool]:
    """What there is to say of the last run's endings, and whether nobody is needed."""
    plan = session.plan
    ours = (of_run for of_run in reversed(past.runs.values()) if past.is_ours(of_run))
    begun = ((e, of_run) for of_run in ours for e in of_run.get("run-started", ()))
    nothing: tuple[Event | None, ByEvent] = None, {}
    judged = plan.scopes or plan.changes
    started, of_run = next(
        ((e, of_run) for e, of_run in begun if e.get("scopes") or (not judged and _ran(of_run))), nothing
    )
    if started is None:
        command = "doit mutate" if plan.scopes else "doit build" if plan.changes else "doit"
        return (f"no run has begun here: run `{command}`",), False
    endings, taken_on = of_run.get("ending", ()), started.get("scopes") or ()
    wrong = list(unended(taken_on, [e["scope"] for e in endings]))
    if "run-ended" not in of_run:
        wrong.append(f"the run {started['run']} has not come to its end: run again")
    ended, failed = _commands(of_run)
    wrong += failed
    status = next((e["status"] for e in of_run.get("run-ended", ())), 0)
    if not judged and status and not wrong:
        wrong.append(f"the run {started['run']} ended with exit status {status} before all was done: run again")
    for e in endings:
        if e["ending"] in NEEDS_A_PERSON:
            wrong.append(f"{e['scope']}: {e['ending']}: {e['why']}")
        else:
            now = _now(session, e["scope"], e["ending"])
            if now not in (None, e["ending"]):
                wrong.append(f"{e['scope']}: ended as {e['ending']}, and its targets say {now}: run again")
    fresh = Freshness(session)
    for name in taken_on:
        if name in session.tasks and fresh.look_owed(session.tasks[name]):
            wrong.append(f"{name}: a look at it is owed: doit look:{name}")
    what = "scopes" if session.scopes else "tasks"
    good = f"{len(endings)} {what} taken on by the run {started['run']}, each with one ending; nobody is needed"
    if not judged:
        good = f"{many(len(ended), 'task')} taken on by the run {started['run']}, none failed; nobody is needed"
    return (tuple(wrong), False) if wrong else ((good,), True)


def _ran(of_run: ByEvent) -> bool:
    """Was it a run of declared tasks, and not of linters, say? One that was killed at once may have been."""
    kinds = {e.get("kind") for e in of_run.get("attempt", ())}
    return not kinds or "task" in kinds


def _commands(of_run: ByEvent) -> tuple[set[str], list[str]]:
    """The declared tasks of a run that it came to, those that were known to be up to date included; and of those that
    failed a line each."""
    last = {e["task"]: e for e in of_run.get("attempt", ()) if e.get("kind") == "task"}
    ended = {name for name, e in last.items() if e["outcome"] != Outcome.INTERRUPTED}
    failed = [f"{name}: failed: {e['failure'].splitlines()[0]}" for name, e in last.items() if e.get("failure")]
    return ended.union(*(e["tasks"] for e in of_run.get("carried", ()))), failed


def _now(session: Session, name: str, ending: str) -> str | None:
    """How a scope, or an agent's task, ended by its targets as they stand; None where it is no more in the plan."""
    if scope := session.scopes.get(name):
        return outcome(session, scope, whole=ending != MEASURED).ending
    task = session.tasks.get(name)
    if task is None or task.agent is None:
        return None
    steps = {changes.DRAFTED: 1, changes.CHECKED: 2}.get(ending, 3)
    return changes.outcome(session, task, steps).ending
