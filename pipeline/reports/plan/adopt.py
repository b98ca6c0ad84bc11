"""Tasks of agents out of an orchestrator's plan, added to tasks.yaml: what every other byte of it means stays.

A plan index has waves and no dependencies. Where a task shares a file with one of the wave before, that is why it comes
later, and their order is kept by that file. Where it shares none, it needs all of the wave before: what it is that it
waits for isn't said, and a task must not be drafted on a base that lacks it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import config, patterns
from pipeline.analysis import Job
from pipeline.model import Plan
from pipeline.reports.plan import edit
from pipeline.reports.plan.foreign import Foreign, overlaps
from pipeline.reports.plan.hoist import Hoisted, Refused, difference
from pipeline.source import PlanErrors


def adopted(path: Path, source: str, read: Foreign, check: str) -> Hoisted:
    """The tasks.yaml at `path` with the tasks of the plan in the file `source`. check: the command that judges those of
    which the plan says none, "" for none. Raises Refused."""
    raw = path.read_bytes() if path.exists() else config.EMPTY
    before = raw.decode()
    described = _described(source)
    needs, names = _needs(read), {job.name: _name(job.name) for job in read.jobs}
    wrong = [*_missing(read.jobs, described, check), *_taken(names, config.of_text(path, raw, may_be_empty=True))]
    if wrong:
        raise Refused("\n".join(f"{source}: {each}" for each in wrong))
    jobs = sorted(read.jobs, key=lambda job: (read.given or {}).get(job.name, 0))
    tasks = [_task(job, names, needs[job.name], described[job.name], check) for job in jobs]

    def add(data: Any) -> None:
        data.setdefault("tasks", []).extend(tasks)

    try:
        after = edit.edited(before, [add])
        changed = config.of_text(path, after.encode())
    except edit.Unwritten as error:
        raise Refused(f"{path}: {error}") from None
    except PlanErrors as errors:
        raise Refused(f"{source}: the changed plan would not load:\n{errors}") from None
    return Hoisted(path, before, after, difference(path, before, after), changed)


def _described(source: str) -> dict[str, Mapping[str, Any]]:
    """Name of each task -> all that the plan says of it. The file was read before, and had no mistake."""
    data = json.loads(Path(source).read_bytes().decode("utf-8-sig"))
    parts = data.get("subsystems", [data])
    return {str(each.get("id", each.get("key"))): each for part in parts for each in part["tasks"]}


def _commands(described: Mapping[str, Any]) -> list[str]:
    said = described.get("verify_commands") or []
    said = [said] if isinstance(said, str) else said
    return [each for each in said if isinstance(each, str) and each.strip()]


def _missing(jobs: Sequence[Job], described: Mapping[str, Mapping[str, Any]], check: str) -> Iterator[str]:
    for job in jobs:
        if not _brief(described[job.name]):
            yield f"task {job.name} has no `description`, and nobody could tell what is to be done"
        if not job.writes:
            yield f"task {job.name} names no file, and so could change none"
        if not _commands(described[job.name]) and not check:
            yield f"task {job.name} has no `verify_commands`, and nothing lands unchecked; say --check COMMAND"


def _taken(names: Mapping[str, str], plan: Plan) -> Iterator[str]:
    there = {task.name for task in plan.tasks}
    for name in names.values():
        if name in there:
            yield f"{plan.path} has a task called {name} already: rename or remove it"


def _needs(read: Foreign) -> dict[str, tuple[str, ...]]:
    """What each task waits for, beside the files that it shares."""
    if read.given is None:
        return {job.name: job.needs for job in read.jobs}
    waves: dict[int, list[Job]] = defaultdict(list)
    for job in read.jobs:
        waves[read.given[job.name]].append(job)
    order = sorted(waves)
    found: dict[str, tuple[str, ...]] = {}
    for wave, before in zip(order, [None, *order], strict=False):
        for job in waves[wave]:
            earlier = waves[before] if before is not None else []
            alone = not any(list(overlaps([each, job], {each.name: 0, job.name: 0})) for each in earlier)
            found[job.name] = tuple(each.name for each in earlier) if alone else ()
    return found


def _name(given: str) -> str:
    """A name that tasks.yaml takes: a number alone says nothing."""
    name = re.sub(r"[\s:=*?\x00-\x1f]", "-", given).lstrip("-/")
    return f"task-{name}" if name.isdigit() or name in config.OURS else name


def _brief(described: Mapping[str, Any]) -> str:
    said = described.get("description")
    goals = described.get("goals")
    goals = [goals] if isinstance(goals, str) else goals if isinstance(goals, list) else []
    lines = [said.strip()] if isinstance(said, str) and said.strip() else []
    return "\n".join([*lines, *(f"- {goal}" for goal in goals if isinstance(goal, str) and goal.strip())])


def _task(
    job: Job, names: Mapping[str, str], needs: Sequence[str], described: Mapping[str, Any], check: str
) -> dict[str, Any]:
    brief = _brief(described)
    commands = _commands(described) or [check]
    names_of = ["check"] if len(commands) == 1 else [f"check-{number}" for number in range(1, len(commands) + 1)]
    made = {
        "name": names[job.name],
        # One word would be a file's name.
        "agent": {"brief": brief if len(brief.split()) > 1 else f"Do this: {brief}"},
        "writes": [patterns.escape(path) for path in job.writes],
        "needs": [names[need] for need in needs],
        "check": dict(zip(names_of, commands, strict=True)),
    }
    return {key: value for key, value in made.items() if value}
