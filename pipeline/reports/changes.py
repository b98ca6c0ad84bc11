"""How every agent's task ended, and what it took. Reads targets and the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.drafts import Checked, Draft, Looked, TaskLanded
from pipeline.freshness import Freshness
from pipeline.model import Task
from pipeline.reports import phases
from pipeline.reports.past import Past
from pipeline.reports.summary import (
    FAILED,
    LANDED,
    NOT_REACHED,
    PARKED,
    ScopeOutcome,
    all_shown,
    blocker,
    lanes,
    shown,
    tokens_of,
)
from pipeline.reports.summary import text as scopes_text
from pipeline.reports.tables import table
from pipeline.results import Outcome, find
from pipeline.session import Session

DRAFTED, CHECKED = "drafted", "checked"  # where no more was asked for
_KINDS = ("draft", "check", "land")
# A draft that ended so is whole, and a person has to look at it; any other was a call that failed.
_WHOLE = (
    Outcome.OK, Outcome.OUTSIDE_SCOPE, Outcome.EMPTY_REPLY, Outcome.BLOCKED, Outcome.REJECTED, Outcome.CONFLICT,
    Outcome.CHECK_FAILED, Outcome.OVER_BUDGET, Outcome.UNVERIFIED,
)  # fmt: skip


def all_outcomes(session: Session) -> tuple[ScopeOutcome, ...]:
    """Where the tasks of agents stand, whoever brought them there."""
    return tuple(outcome(session, task) for task in session.plan.changes)


def outcomes_of_run(session: Session, interrupted: bool) -> tuple[ScopeOutcome, ...]:
    """The endings of the tasks that this run selected, those that were up to date included."""
    selected = set(session.info.selected) if session.info else set()
    attempts = {e["task"]: e for e in session.events if e["event"] == "attempt"}
    found = []
    for task in session.plan.changes:
        wanted = [name for kind in _KINDS if (name := f"{kind}:{task.name}") in selected]
        if not wanted:
            continue
        missed = [name for name in wanted if not _ended(attempts.get(name))]
        failed = [attempts[name] for name in wanted if attempts.get(name, {}).get("failure")]
        if failed:
            found.append(ScopeOutcome(task.name, FAILED, f"{failed[0]['task']}: {failed[0]['failure']}"))
        elif missed:
            why = "the run was stopped" if interrupted else blocker(session) or "a task failed"
            found.append(ScopeOutcome(task.name, NOT_REACHED, f"{why}, before {missed[0]}"))
        else:
            found.append(outcome(session, task, len(wanted)))
    return tuple(_on_the_branch(session, each) for each in found)


def _on_the_branch(session: Session, ended: ScopeOutcome) -> ScopeOutcome:
    """What HEAD's move in mid-run took off has landed in no way that anybody could merge."""
    landing = session.landing if ended.ending == LANDED else None
    if landing is None or not landing.on.lacks(ended.scope, landing.standing()[0]):
        return ended
    why = f"HEAD moved, and it came off {landing.branch}: the next run lands it again, without a call"
    return ScopeOutcome(ended.scope, NOT_REACHED, why)


def _ended(attempt: Mapping[str, Any] | None) -> bool:
    """A landing that a repair was to follow has not ended."""
    return attempt is not None and attempt["outcome"] != Outcome.INTERRUPTED and not attempt.get("then")


def outcome(session: Session, task: Task, steps: int = 3) -> ScopeOutcome:
    """Where a task's targets say that it stands. steps: how many of draft, check and land were asked for."""

    def read(name: str, type_: type[Any]) -> Any:
        return find(session.task_target(task.name, name), type_)

    types: tuple[tuple[str, type[Any]], ...] = (("draft", Draft), ("checked", Checked), ("landed", TaskLanded))
    found = [read(f"{name}.json", type_) for name, type_ in types[:steps]]
    if None in found:
        return ScopeOutcome(task.name, NOT_REACHED, "it has not gone all the way yet")
    drafted, last = found[0], found[-1]
    if last.outcome is Outcome.OK:
        said = "repaired once" if steps == 3 and last.repaired else ""
        return ScopeOutcome(task.name, (DRAFTED, CHECKED, LANDED)[steps - 1], said)
    ending = PARKED if drafted.outcome in _WHOLE else FAILED
    return ScopeOutcome(task.name, ending, last.detail if last.outcome is Outcome.BLOCKED else _why(last))


def _why(last: Draft | Checked | TaskLanded | Looked) -> str:
    return f"{last.outcome}: {last.detail}"


def looks(session: Session, selected: Sequence[str] = ()) -> tuple[list[str], bool]:
    """What there is to say of looks at what has landed; and whether one of `selected` (names of doit's) is owed."""
    fresh = Freshness(session)
    asked = [task for task in session.plan.changes if task.look]
    owed = [task.name for task in asked if fresh.look_owed(task)]
    seen = sum(fresh.looked(task) for task in asked)
    if not owed and not seen:
        return [], False
    names = f" (doit look): {', '.join(owed)}" if owed else ""
    said = [f"looks: {seen} seen, {len(owed)} owed{names}"]
    for name in owed:
        looked = find(session.task_target(name, "looked.json"), Looked)
        if looked is not None and looked.outcome in (Outcome.CHECK_FAILED, Outcome.UNVERIFIED):
            said.append(f"{name}: look: {_why(looked)}".split("\n")[0])
    return said, any(f"look:{name}" in selected for name in owed)


def text(session: Session, past: Past, outcomes: Sequence[ScopeOutcome]) -> str:
    """The table of tasks, and what needs a person."""
    events = past.last
    tokens = tokens_of(events.get("call", ()))
    attempts = [e for e in events.get("attempt", ()) if e.get("scope")]
    drafts = {e["scope"]: e for e in attempts if e.get("kind") == "draft" and e["lane"]}
    cpu: dict[str, float] = defaultdict(float)
    for e in attempts:
        cpu[e["scope"]] += e.get("cpu_seconds") or 0.0
    rows = [["task", "agent", "model", "tokens", "CPU s", "ending"]]
    for o in outcomes:
        drafted = drafts.get(o.scope, {})
        seconds = f"{cpu[o.scope]:.1f}" if cpu[o.scope] else ""
        rows.append(
            [o.scope, drafted.get("agent") or "", drafted.get("model") or "", shown(tokens, o.scope), seconds, o.ending]
        )
    if len(outcomes) > 1:
        endings = [o.ending for o in outcomes]
        counted = ", ".join(f"{endings.count(e)} {e}" for e in dict.fromkeys(sorted(endings)))
        rows.append(["all", "", "", all_shown(tokens), "", counted])
    said = [*table(rows), ""]
    for o in outcomes:
        if o.why:
            first, *rest = o.why.split("\n")
            said += [f"{o.scope}: {o.ending}: {first}", *(f"    {line}" for line in rest[:12])]
    return "\n".join([*said, *looks(session)[0], *phases.text(events)])


def text_of_all(session: Session, past: Past, scopes: Sequence[ScopeOutcome], tasks: Sequence[ScopeOutcome]) -> str:
    """What there is to say of scopes and of agents' tasks; of either where there is one, and of scopes where there is
    neither."""
    said = [scopes_text(session, past, scopes)] if scopes or not tasks else []
    said += [text(session, past, tasks)] if tasks else []
    return "\n".join([*filter(None, said), *lanes(past)])
