"""How parallel is a plan, and which shared path makes it serial? Pure: no file, clock or doit.

Waves are how a plan is judged, never how it is run: the scheduler keeps no barriers. docs/waves.md says the rule.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import attrs

from pipeline import packing
from pipeline.model import VALIDATION

SETS = 3  # the most paths that a finding names


@attrs.frozen
class Job:
    """A task as far as waves go. Paths are normalised; a directory (`a` or `a/`) holds all that is under it."""

    name: str
    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    seconds: float = 1.0
    pool: str | None = VALIDATION


@attrs.frozen(slots=False)
class Waves:
    """Jobs in waves: each is later than all its needs, and no job of a wave writes what another one reads or writes."""

    of: Mapping[str, int]  # job → its wave, from 0
    bound: int  # no assignment has fewer waves
    chain: int  # the longest chain of needs, in jobs

    @cached_property
    def count(self) -> int:
        return max(self.of.values(), default=-1) + 1

    @property
    def minimal(self) -> bool:
        """Is it certain that no assignment has fewer waves?"""
        return self.count == self.bound

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The names in each wave, in declared order."""
        groups: list[list[str]] = [[] for _ in range(self.count)]
        for name, wave in self.of.items():
            groups[wave].append(name)
        return tuple(map(tuple, groups))


@attrs.frozen
class Finding:
    """What paths that several jobs write cost the plan."""

    paths: tuple[str, ...]
    writers: int  # jobs that write one of them
    jobs: int  # of the plan
    before: int  # waves of the plan
    after: int  # waves with these paths out of all scopes
    hoisted: int  # waves where one more job at the end alone writes them, and needs all former writers
    chain: int  # the longest chain of needs of the plan, in jobs


def waves(jobs: Sequence[Job]) -> Waves:
    """First fit, by the longest chain behind a job, then in declared order. Names are unique, needs known, no cycle."""
    graph, scopes = _graph(jobs), _scopes(jobs)
    found = packing.first_fit(graph, scopes)
    return Waves(
        {job.name: wave for job, wave in zip(jobs, found, strict=True)}, packing.least(graph, scopes), graph.chain
    )


def single_costs(jobs: Sequence[Job], plan: Waves) -> Mapping[str, int]:
    """For every path that two jobs or more write, the waves of the plan without it: no more than it has now."""
    return {path: _without(jobs, plan, (path,)) for path in _shared(jobs)}


def findings(jobs: Sequence[Job], plan: Waves) -> tuple[Finding, ...]:
    """Paths that cost at least one wave and a tenth of all, the largest saving first.

    Where no path alone does, the smallest sets of up to three that together do.
    """
    for size in range(1, SETS + 1):
        found = []
        for paths in itertools.combinations(_shared(jobs), size):
            after = _without(jobs, plan, paths)
            if plan.count - after >= max(1, plan.count / 10):
                found.append(_finding(jobs, plan, paths, after))
        if found:
            return _sorted(found)
    return ()


def overlaps(jobs: Sequence[Job], first: Finding) -> tuple[Finding, ...]:
    """What every other shared path still costs once the paths of a finding are gone; the largest saving first."""
    left = without(jobs, first.paths)
    plan = waves(left)
    return _sorted(_finding(left, plan, (path,), after) for path, after in single_costs(left, plan).items())


def critical_path(jobs: Sequence[Job]) -> tuple[float, tuple[str, ...]]:
    """The chain of needs that takes longest: its seconds, and its names from first to last."""
    graph = _graph(jobs)
    behind = [job.seconds for job in jobs]
    then: list[int | None] = [None] * len(jobs)
    for job in sorted(range(len(jobs)), key=lambda job: graph.behind[job]):
        for each in graph.waiting[job]:
            if jobs[job].seconds + behind[each] > behind[job]:
                behind[job], then[job] = jobs[job].seconds + behind[each], each
    at = max(range(len(jobs)), key=lambda job: (behind[job], -job), default=None)
    seconds, names = 0.0 if at is None else behind[at], []
    while at is not None:
        names.append(jobs[at].name)
        at = then[at]
    return seconds, tuple(names)


def width(plan: Waves) -> int:
    """The most jobs in one wave."""
    return max(Counter(plan.of.values()).values(), default=0)


def free_width(jobs: Sequence[Job]) -> int:
    """The width that the needs alone allow: of the waves of the same jobs without scopes."""
    return max(Counter(_graph(jobs).before).values(), default=0)


def lower_bound(jobs: Sequence[Job], capacity: Mapping[str, int]) -> float:
    """Seconds that no run is quicker than, with so many slots in each pool.

    The largest of the critical path, the work of each pool over its slots, and the work that queues for each path.
    """
    work: dict[str | None, float] = defaultdict(float)
    writers: dict[str, float] = defaultdict(float)
    for job in jobs:
        work[job.pool] += job.seconds
        for path in {path.rstrip("/") for path in job.writes}:
            writers[path] += job.seconds
    pools = [work[pool] / slots for pool, slots in capacity.items()]
    return max([critical_path(jobs)[0], *pools, *writers.values()])


def without(jobs: Sequence[Job], paths: Collection[str]) -> tuple[Job, ...]:
    """The same jobs with paths, and all that is under them, out of what they read and write."""
    return tuple(
        attrs.evolve(job, reads=tuple(_keep(job.reads, paths)), writes=tuple(_keep(job.writes, paths))) for job in jobs
    )


def hoist(jobs: Sequence[Job], paths: Sequence[str]) -> tuple[Job, ...]:
    """The same jobs where one more, at the end, alone writes the paths, and needs all that wrote them."""
    names = {job.name for job in jobs}
    name = next(name for name in map("wire{}".format, itertools.count()) if name not in names)
    kept = [attrs.evolve(job, writes=tuple(_keep(job.writes, paths))) for job in jobs]
    former = [job.name for job, left in zip(jobs, kept, strict=True) if job.writes != left.writes]
    return (*kept, Job(name, tuple(former), writes=tuple(paths)))


def _graph(jobs: Sequence[Job]) -> packing.Graph:
    number = {job.name: at for at, job in enumerate(jobs)}
    return packing.Graph.of([[number[need] for need in job.needs] for job in jobs])


def _scopes(jobs: Sequence[Job]) -> packing.Scopes:
    return packing.Scopes([job.reads for job in jobs], [job.writes for job in jobs])


def _within(path: str, paths: Iterable[str]) -> bool:
    path = path.rstrip("/")
    return any(path == each or path.startswith(f"{each}/") for each in (p.rstrip("/") for p in paths))


def _keep(mine: Iterable[str], paths: Collection[str]) -> Iterator[str]:
    return (path for path in mine if not _within(path, paths))


def _shared(jobs: Sequence[Job]) -> list[str]:
    """Paths that two jobs or more write, or write something under, as they are first spelt."""
    spelt = {path.rstrip("/"): path for job in reversed(jobs) for path in reversed(job.writes)}
    writers: Counter[str] = Counter()
    for job in jobs:
        mine = [path.rstrip("/") for path in job.writes]
        writers.update({each for path in mine for each in (path, *packing.above(path)) if each in spelt})
    return sorted(spelt[path] for path, count in writers.items() if count > 1)


def _without(jobs: Sequence[Job], plan: Waves, paths: Sequence[str]) -> int:
    return min(plan.count, waves(without(jobs, paths)).count)


def _finding(jobs: Sequence[Job], plan: Waves, paths: tuple[str, ...], after: int) -> Finding:
    writers = sum(any(_within(path, paths) for path in job.writes) for job in jobs)
    return Finding(paths, writers, len(jobs), plan.count, after, waves(hoist(jobs, paths)).count, plan.chain)


def _sorted(found: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda each: (each.after, -each.writers, each.paths)))
