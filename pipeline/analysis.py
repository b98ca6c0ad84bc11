"""How parallel is a plan, and which shared path makes it serial? Pure: no file, clock or doit.

Waves are how a plan is judged, never how it is run: the scheduler keeps no barriers. docs/waves.md says the rule.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

import attrs

from pipeline.model import VALIDATION
from pipeline.packing import Graph, Packing, Scopes

SETS = 3  # the most paths that a finding names
TRIALS = 50_000  # jobs packed to try all sets of one size: about a second at most


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
    packing: Packing = attrs.field(repr=False, eq=False)  # what the questions below are answered from

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
    hoisted: int | None  # waves where one more job at the end alone writes them, and needs all former writers; None:
    # not counted, of an overlap
    chain: int  # the longest chain of needs of the plan, in jobs


def waves(jobs: Sequence[Job]) -> Waves:
    """The plan in waves, by the rule of packing.py. Names are unique, needs are known, and there is no cycle."""
    packing = Packing(_graph(jobs), _scopes(jobs))
    of = {job.name: wave for job, wave in zip(jobs, packing.waves(), strict=True)}
    return Waves(of, packing.bound(), packing.graph.chain, packing)


def single_costs(plan: Waves) -> Mapping[str, int]:
    """For every path that two jobs or more write, the waves of the plan without it, and without what is under it.

    Exactly what `waves` finds then, but no more than the plan has: its waves as they are would still do.
    """
    scopes = plan.packing.scopes
    return {scopes.spelt[path]: _least(plan.packing, [path], plan.count) for path in scopes.shared()}


def findings(plan: Waves) -> tuple[Finding, ...]:
    """Paths that cost at least one wave and a tenth of all, the largest saving first.

    Where no path alone does, the smallest sets of up to three that together do. All sets are tried where that is quick
    (TRIALS); in larger plans, those of which each path, for the jobs that queue for it, is in the way.
    """
    enough = plan.count - max(1, math.ceil(plan.count / 10))
    packing, jobs = plan.packing, len(plan.of)
    shared = frozenset(packing.scopes.shared())
    missed: set[frozenset[int]] = {frozenset()}
    for size in range(1, SETS + 1):
        every = shared if size == 1 or math.comb(len(shared), size) * jobs <= TRIALS else frozenset()
        sets = {paths | {path} for paths in missed for path in _next(packing, paths, shared, enough, every) - paths}
        after = {paths: _least(packing, paths, enough + 1) for paths in sets}
        found = [paths for paths, count in after.items() if count <= enough]
        if found:
            return _sorted(
                _finding(plan, paths, plan.count, after[paths], hoisted=packing.hoisted(paths).count())
                for paths in found
            )
        missed = sets
    return ()


def overlaps(plan: Waves, first: Finding) -> tuple[Finding, ...]:
    """What every other shared path still costs once the paths of a finding are gone; the largest saving first."""
    packing = plan.packing
    gone = packing.scopes.within(packing.scopes.numbers(first.paths))
    return _sorted(
        _finding(plan, [path], first.after, _least(packing, [path, *gone], first.after), without=gone)
        for path in packing.scopes.shared(gone)
    )


def critical_path(jobs: Sequence[Job]) -> tuple[float, tuple[str, ...]]:
    """The chain of needs that takes longest: its seconds, and its names from first to last."""
    graph = _graph(jobs)
    behind = [job.seconds for job in jobs]
    then: list[int | None] = [None] * len(jobs)
    for job in sorted(range(len(jobs)), key=lambda job: graph.behind[job]):
        for each in graph.waiting[job]:
            if jobs[job].seconds + behind[each] > behind[job]:
                behind[job], then[job] = jobs[job].seconds + behind[each], each
    at = max(range(len(jobs)), key=behind.__getitem__, default=None)
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

    The largest of the critical path, the work of each pool over its slots, and for each path the work of all jobs that
    write it and of the longest that only reads it.
    """
    work: dict[str | None, float] = defaultdict(float)
    for job in jobs:
        work[job.pool] += job.seconds
    pools = [work[pool] / slots for pool, slots in capacity.items()]
    scopes, queues = _scopes(jobs), []
    for path in range(len(scopes.paths)):
        writers, readers = scopes.holders(path)
        if writers:
            reading = max((jobs[reader].seconds for reader in readers), default=0.0)
            queues.append(sum(jobs[writer].seconds for writer in writers) + reading)
    return max([critical_path(jobs)[0], *pools, *queues])


def _graph(jobs: Sequence[Job]) -> Graph:
    number = {job.name: at for at, job in enumerate(jobs)}
    return Graph.of([[number[need] for need in job.needs] for job in jobs])


def _scopes(jobs: Sequence[Job]) -> Scopes:
    return Scopes.of([job.reads for job in jobs], [job.writes for job in jobs])


def _least(packing: Packing, paths: Iterable[int], ceiling: int) -> int:
    """The waves without these paths, where they are fewer than a ceiling; else the ceiling."""
    gone = packing.scopes.within(paths)
    return ceiling if packing.bound(gone) >= ceiling else min(ceiling, packing.count(gone))


def _next(
    packing: Packing, paths: Iterable[int], shared: frozenset[int], enough: int, every: frozenset[int]
) -> frozenset[int]:
    """Paths of which one has to join these for the plan to have few enough waves; `every` where none is known to."""
    waves, path = packing.longest_queue(packing.scopes.within(paths))
    if waves <= enough:
        return every
    return frozenset() if path is None else shared.intersection((path, *packing.scopes.over[path]))


def _finding(
    plan: Waves,
    paths: Iterable[int],
    before: int,
    after: int,
    *,
    hoisted: int | None = None,
    without: Collection[int] = (),
) -> Finding:
    scopes = plan.packing.scopes
    names = tuple(sorted(scopes.spelt[path] for path in paths))
    return Finding(names, len(scopes.writing(paths, without)), len(plan.of), before, after, hoisted, plan.chain)


def _sorted(found: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda each: (each.after, -each.writers, each.paths)))
