"""What `doit plan` says to what was asked, and its exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline import analysis, filescopes, schedule
from pipeline.action import Refusal
from pipeline.config import PlanErrors
from pipeline.model import VALIDATION
from pipeline.packing import share
from pipeline.reports.past import FAULTS, fault
from pipeline.reports.plan import Asked, draw, foreign, judge, text
from pipeline.reports.plan.jobs import Jobs, declared, locks, scopes
from pipeline.reports.plan.judge import Judged
from pipeline.session import Session
from pipeline.source import nearest
from pipeline.worktree import GitError

TASKS, SCOPES = "declared tasks", "scopes"
ELSEWHERE = "one task that wires it at the end, or a fragment a task (docs/plans.md)"


class Wrong(Exception):
    """The question has no answer; str() says why."""


def answer(session: Session, asked: Asked) -> int:
    """Print what was asked for; the exit status."""
    try:
        _check(asked)
        if asked.scope:
            return _one_scope(session, asked.scope)
        if asked.hoist:
            return _hoist(session, asked)
        if asked.from_ and asked.write:
            return _adopt(session, asked)
        if asked.cost:
            return _cost(session, asked)
        return _foreign(asked) if asked.from_ else _plan(session, asked)
    except (Wrong, draw.CannotDraw, PlanErrors) as error:
        sys.stderr.write(f"{error}\n")
        return 3


def notes(session: Session) -> list[str]:
    """What is to be said of the declared tasks that a run has selected, before it starts."""
    selected = {name.removeprefix("draft:") for name in (session.info.selected if session.info else ())}
    if not share(filescopes.locks(task).writes for task in session.plan.tasks if task.name in selected):
        return []
    jobs = declared(session.plan, session.estimate, selected).jobs
    return [text.warning(finding) for finding in analysis.findings(analysis.waves(jobs))]


def _check(asked: Asked) -> None:
    outputs = [f"--{name}" for name in ("json", "dot", "svg") if getattr(asked, name)]
    if len(outputs) > 1:
        raise Wrong(f"{' and '.join(outputs)}: one of them at a time")
    if asked.write and not (asked.hoist or asked.from_):
        raise Wrong("--write goes with --hoist PATH, or with --from FILE")
    if asked.check and not (asked.write and asked.from_):
        raise Wrong("--check goes with --from FILE --write")
    if asked.n < 1:
        raise Wrong(f"-n {asked.n}: the validation lane needs a slot at least; say -n 1 or more")
    apart = [
        name
        for name, given in (
            ("--scope", asked.scope), ("--hoist", asked.hoist), ("--from", asked.from_), ("--cost", asked.cost)
        )
        if given
    ]  # fmt: skip
    if len(apart) > 1:
        raise Wrong(f"{' and '.join(apart)} do not go together")


def _one_scope(session: Session, name: str) -> int:
    if name not in session.scopes:
        raise Wrong(f"no scope is called {name!r}; {nearest(name, session.scopes) or 'there is none'}")
    print(text.of_scope(session.scopes[name]))
    return 0


def _cost(session: Session, asked: Asked) -> int:
    from pipeline.reports.plan import cost

    capacity = _capacity(session, asked.n)
    try:
        expected = cost.estimate(session, capacity)
    except (GitError, Refusal) as error:
        raise Wrong(f"what is due cannot be judged: {error}") from None
    except FAULTS as error:
        if (said := fault(session, error)) is None:
            raise
        raise Wrong(said) from None
    if asked.json:
        _print_json({"plan": session.plan.path, "capacity": capacity, **attrs.asdict(expected)})
    else:
        print(cost.text(expected, capacity, session.plan.generate.budget))
    return 0


def _plan(session: Session, asked: Asked) -> int:
    plan, capacity = session.plan, _capacity(session, asked.n)
    parts = []
    if plan.tasks:
        parts.append(judge.judge(TASKS, declared(plan, session.estimate), capacity))
    if plan.scopes:
        parts.append(judge.judge(SCOPES, scopes(plan, session.estimate), capacity))
    refused = judge.refused(parts)
    if asked.json:
        named = {TASKS: "tasks", SCOPES: "scopes"}
        found = {named[part.title]: judge.document(part) for part in parts}
        _print_json({"plan": plan.path, "problems": [], "refused": refused, "locks": locks(plan), **found})
    elif asked.dot or asked.svg:
        _draw(parts, asked)
    else:
        blocks = [text.of_scopes(plan)] if plan.scopes else []
        blocks += map(text.part, parts)
        blocks += filter(None, [text.of_locks(locks(plan))])
        if not parts:
            blocks.append("nothing is declared: no task, no scope")
        _print_text(blocks, [line for part in parts for line in text.warnings(part)], refused, asked)
    return 1 if asked.strict and refused else 0


def _foreign(asked: Asked) -> int:
    read = foreign.read(asked.from_)
    problems = [*read.problems]
    parts = [] if problems else [judge.judge("tasks", Jobs.unseen(read.jobs), {VALIDATION: asked.n})]
    if parts and read.given is not None:
        problems += [
            f"{asked.from_}: tasks {one} and {other} of wave {read.given[one]} both write {path}; move one of them"
            for path, one, other in foreign.overlaps(read.jobs, read.given)
        ]
    refused = judge.refused(parts)
    if asked.json:
        given = None if read.given is None else len(set(read.given.values()))
        about = {"format": read.format, "waves_given": given, "missing": read.missing, "unknown": read.unknown}
        found = {part.title: judge.document(part) for part in parts}
        _print_json({"plan": asked.from_, "problems": problems, "refused": refused, **about, **found})
        return 1 if problems or (asked.strict and refused) else 0
    if parts and (asked.dot or asked.svg):
        _draw(parts, asked)
    for part in () if asked.dot or asked.svg else parts:
        blocks = [text.of_foreign(asked.from_, read, part), text.part(part)]
        _print_text(blocks, text.warnings(part, ELSEWHERE), refused, asked)
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems or (asked.strict and refused) else 0


def _hoist(session: Session, asked: Asked) -> int:
    from pipeline.reports.plan import hoist  # every run has its notes from here, and no use for ruamel.yaml's 25 ms

    try:
        done = hoist.hoist(Path(session.plan.path), asked.hoist)
        if asked.write:
            done.write()
    except hoist.Refused as error:
        raise Wrong(str(error)) from None
    capacity = _capacity(session, asked.n)
    before, after = (
        judge.judge(TASKS, declared(plan, session.estimate), capacity) for plan in (session.plan, done.plan)
    )
    print(done.diff)
    print(f"waves: {before.waves.count} → {after.waves.count}; at most {before.width} → {after.width} at once")
    if asked.write:
        print(f"{os.path.relpath(done.path)} is changed")
    else:
        print("nothing is changed; --write changes it")
    return 0


def _adopt(session: Session, asked: Asked) -> int:
    from pipeline.reports.plan import adopt, hoist

    read = foreign.read(asked.from_)
    if read.problems:
        raise Wrong("\n".join(read.problems))
    try:
        done = adopt.adopted(Path(session.plan.path), asked.from_, read, asked.check)
        done.write()
    except hoist.Refused as error:
        raise Wrong(str(error)) from None
    print(done.diff)
    print(f"{os.path.relpath(done.path)} is changed: {len(read.jobs)} tasks of agents; `doit build` runs them")
    return 0


def _capacity(session: Session, n: int) -> dict[str, int]:
    cap = schedule.max_slots(os.environ.get(schedule.MAX_SLOTS))
    slots = {VALIDATION: n, **session.pools}
    return slots if cap is None else {pool: min(each, cap) for pool, each in slots.items()}


def _draw(parts: Sequence[Judged], asked: Asked) -> None:
    drawn = draw.dot(parts)
    if asked.svg:
        draw.svg(drawn, Path(asked.svg))
        print(f"{asked.svg} is written")
    else:
        print(drawn)


def _print_json(document: Mapping[str, Any]) -> None:
    print(json.dumps(document, indent=2, ensure_ascii=False))


def _print_text(blocks: Sequence[str], warnings: Sequence[str], refused: Sequence[str], asked: Asked) -> None:
    gate = [f"refused: {'; '.join(refused)}"] if asked.strict and refused else []
    print("\n\n".join([*blocks, *(["\n".join(warnings)] if warnings else []), *gate]))
