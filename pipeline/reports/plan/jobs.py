"""The model's plan -> jobs to judge, with the seconds that each is expected to take. No file but through `estimate`.

Where no job of its kind has run yet, each counts as one second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

import attrs

from pipeline import filescopes
from pipeline.analysis import Job
from pipeline.model import GENERATION, VALIDATION, Plan, Scope, Task

TASK = "task"  # the kind of a declared one
Estimate = Callable[[str], float | None]  # task -> seconds of its last runs; None: it has not run


@attrs.frozen
class Jobs:
    """Jobs of one kind of run, in the order of the plan."""

    jobs: tuple[Job, ...]
    kinds: tuple[str, ...]  # of each: what is done to scopes, or a declared task
    known: int  # how many have run before; the others are expected to take what their kind took on average

    @classmethod
    def unseen(cls, jobs: Sequence[Job]) -> Jobs:
        """Tasks of a plan that is not ours: nothing is known of how long they take."""
        return cls(tuple(jobs), (TASK,) * len(jobs), 0)


def declared(plan: Plan, estimate: Estimate, only: Collection[str] | None = None) -> Jobs:
    """The declared tasks. only: those that a run has selected."""
    order = filescopes.waits(plan.tasks)
    chosen = [task for task in plan.tasks if only is None or task.name in only]
    names = {task.name for task in chosen}
    jobs = [_job(task, [need for need in order[task.name] if need in names]) for task in chosen]
    return _timed(jobs, [TASK] * len(jobs), estimate)


def scopes(plan: Plan, estimate: Estimate) -> Jobs:
    """What `mutate` goes through: a chain for each scope, behind all that the engine needs."""
    order = filescopes.waits(plan.tasks)
    first: set[str] = set()
    waiting = [*plan.engine.needs]
    while waiting:
        name = waiting.pop()
        if name not in first:
            first.add(name)
            waiting += order[name]
    jobs = [_job(task, order[task.name]) for task in plan.tasks if task.name in first]
    kinds = [TASK] * len(jobs)
    for scope in plan.scopes:
        chain = list(_chain(scope, plan))
        jobs += [job for _, job in chain]
        kinds += [kind for kind, _ in chain]
    return _timed(jobs, kinds, estimate)


def locks(plan: Plan) -> dict[str, list[str]]:
    """Each lock over the machine -> what holds it: tasks, conditions of their checks, the gate."""
    held: dict[str, list[str]] = defaultdict(list)
    for task in plan.tasks:
        owned = [(task.name, task.owns), *((f"{task.name} ({each.name})", each.owns) for each in task.check)]
        for name, owns in owned:
            if owns and owns.lock:
                held[owns.lock].append(name)
    if plan.gate and plan.gate.owns and plan.gate.owns.lock:
        held[plan.gate.owns.lock].append("the gate's builds")
    return dict(held)


def _job(task: Task, needs: Sequence[str]) -> Job:
    held = filescopes.locks(task)
    pool = GENERATION if task.agent else task.pool
    return Job(task.name, tuple(needs), tuple(sorted(held.reads)), tuple(sorted(held.writes)), pool=pool)


def _chain(scope: Scope, plan: Plan) -> Iterable[tuple[str, Job]]:
    """baseline → search → validate → (generate → validate) a round → land → confirm."""
    last = plan.generate.last_round
    rounds = [step for r in range(1, last + 1) for step in (("generate", r), ("validate", r))]
    needs = plan.engine.needs
    for kind, round_ in (
        ("baseline", None), ("search", None), ("validate", 0), *rounds, ("land", None), ("confirm", None),
    ):  # fmt: skip
        name = f"{kind}:{scope.name}" + ("" if round_ is None else f":{round_}")
        writes = (scope.write,) if kind == "land" else ()
        yield kind, Job(name, needs, writes=writes, pool=GENERATION if kind == "generate" else VALIDATION)
        needs = (name,)


def _timed(jobs: Sequence[Job], kinds: Sequence[str], estimate: Estimate) -> Jobs:
    seen = [estimate(job.name) for job in jobs]
    of_kind: dict[str, list[float]] = defaultdict(list)
    for kind, seconds in zip(kinds, seen, strict=True):
        if seconds is not None:
            of_kind[kind].append(seconds)
    means = {kind: sum(known) / len(known) for kind, known in of_kind.items()}
    timed = [
        job
        if seconds is None and kind not in means
        else attrs.evolve(job, seconds=means[kind] if seconds is None else seconds)
        for job, kind, seconds in zip(jobs, kinds, seen, strict=True)
    ]
    return Jobs(tuple(timed), tuple(kinds), sum(seconds is not None for seconds in seen))
