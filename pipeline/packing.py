"""Jobs packed into waves: by numbers, where analysis.py speaks of names. Pure.

The rule is first fit. In a fixed order, each job goes into the earliest wave that is later than those of all its needs
and in which no job is that it conflicts with. Two jobs conflict where one writes a path that the other reads or writes;
a directory holds all that is under it.

What a path has in which wave is a number whose bit k stands for wave k: no job is ever compared with another.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import attrs

# What waves are kept for a path: those in which it is written itself, or something under it, and the same for reads.
WRITTEN, WRITTEN_UNDER, READ, READ_UNDER = range(4)
KINDS = 4


@attrs.frozen
class Graph:
    """What needs what. Jobs are numbered in the order in which they are declared."""

    needs: Sequence[Sequence[int]]
    waiting: Sequence[Sequence[int]]  # for each job, those that need it
    before: Sequence[int]  # the longest chain of jobs that it waits for
    behind: Sequence[int]  # the longest chain of jobs that wait for it

    @classmethod
    def of(cls, needs: Sequence[Sequence[int]]) -> Graph:
        """Of needs without a cycle."""
        waiting: list[list[int]] = [[] for _ in needs]
        for job, its in enumerate(needs):
            for need in its:
                waiting[need].append(job)
        left = [len(its) for its in needs]
        order = [job for job, count in enumerate(left) if not count]
        before, behind = [0] * len(needs), [0] * len(needs)
        for job in order:  # grows while it is walked
            for each in waiting[job]:
                before[each] = max(before[each], before[job] + 1)
                left[each] -= 1
                if not left[each]:
                    order.append(each)
        for job in reversed(order):
            for need in needs[job]:
                behind[need] = max(behind[need], behind[job] + 1)
        return cls(needs, waiting, before, behind)

    @property
    def chain(self) -> int:
        return max(self.before, default=-1) + 1


class Scopes:
    """What each job reads and writes, and so what it conflicts with."""

    def __init__(self, reads: Sequence[Iterable[str]], writes: Sequence[Iterable[str]]) -> None:
        numbers: dict[str, int] = {}

        def number(paths: Iterable[str]) -> list[int]:
            return sorted({numbers.setdefault(path.rstrip("/"), len(numbers)) for path in paths})

        self.writes = [number(paths) for paths in writes]
        self.reads = [number(paths) for paths in reads]
        self.paths = list(numbers)
        self.over = [[numbers[each] for each in above(path) if each in numbers] for path in self.paths]

    def under(self, path: int) -> set[int]:
        """The path, and every path of a job that is under it."""
        return {path} | {each for each, over in enumerate(self.over) if path in over}

    def locks(self, job: int, without: frozenset[int]) -> tuple[list[int], list[int]]:
        """The waves that are closed to the job, and those that it closes; each is path * KINDS + kind."""
        closed: list[int] = []
        closes: list[int] = []
        for path in self.writes[job]:
            if path not in without:
                over = self.over[path]
                closed += [path * KINDS + kind for kind in (WRITTEN, WRITTEN_UNDER, READ, READ_UNDER)]
                closed += [each * KINDS + kind for each in over for kind in (WRITTEN, READ)]
                closes += [path * KINDS + WRITTEN, *(each * KINDS + WRITTEN_UNDER for each in over)]
        for path in self.reads[job]:
            if path not in without:
                over = self.over[path]
                closed += [path * KINDS + WRITTEN, path * KINDS + WRITTEN_UNDER]
                closed += [each * KINDS + WRITTEN for each in over]
                closes += [path * KINDS + READ, *(each * KINDS + READ_UNDER for each in over)]
        return closed, closes


def above(path: str) -> list[str]:
    """Every directory over a path, the nearest first: "a/b/c" → ["a/b", "a", "", "."]."""
    found = []
    at = path
    while "/" in at:
        at = at.rpartition("/")[0]
        found.append(at)
    return [each for each in [*found, "", "."] if each != path]


def first_fit(graph: Graph, scopes: Scopes, without: frozenset[int] = frozenset()) -> list[int]:
    """For each job its wave. without: paths that no job has."""
    order = sorted(range(len(graph.needs)), key=lambda job: (-graph.behind[job], job))
    taken: dict[int, int] = {}
    wave = [0] * len(order)
    for job in order:
        closed, closes = scopes.locks(job, without)
        first = max((wave[need] + 1 for need in graph.needs[job]), default=0)
        bits = 0
        for each in closed:
            bits |= taken.get(each, 0)
        bits >>= first
        wave[job] = first + (~bits & (bits + 1)).bit_length() - 1
        for each in closes:
            taken[each] = taken.get(each, 0) | 1 << wave[job]
    return wave


def least(graph: Graph, scopes: Scopes, without: frozenset[int] = frozenset()) -> int:
    """Waves that every assignment has: the longest chain, and what each path with its writers takes."""
    writers: dict[int, list[int]] = {}
    for job, paths in enumerate(scopes.writes):
        for path in paths:
            if path not in without:
                writers.setdefault(path, []).append(job)
    return max([graph.chain, *(_queue(graph, jobs) for jobs in writers.values() if len(jobs) > 1)])


def _queue(graph: Graph, jobs: Iterable[int]) -> int:
    """The fewest waves for jobs of which no two share one: each after what is before it, and followed by what is behind
    it. The one with the most behind it first is best, since all take one wave (Jackson's rule)."""
    coming = sorted((graph.before[job], -graph.behind[job]) for job in jobs)
    ready: list[int] = []
    wave = at = most = 0
    while at < len(coming) or ready:
        if not ready:
            wave = max(wave, coming[at][0])
        while at < len(coming) and coming[at][0] <= wave:
            heapq.heappush(ready, coming[at][1])
            at += 1
        wave += 1
        most = max(most, wave - heapq.heappop(ready))
    return most
