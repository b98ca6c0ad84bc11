"""Jobs packed into waves, and bounds on them: by numbers, where analysis.py speaks of names. Pure.

The rule is first fit. In a fixed order, each job goes into the earliest wave that is later than those of all its needs
and in which no job is that it conflicts with. Two jobs conflict where one writes a path that the other reads or writes;
a directory holds all that is under it.

The waves in which something holds a path are one number, whose bit k stands for wave k: no job is ever compared with
another, and what a job cannot have is a few ORs.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Sequence

import attrs

# What holds a path in a wave: somebody who writes it, or something under it, and the same for who reads.
WRITTEN, WRITTEN_UNDER, READ, READ_UNDER = range(4)
KINDS = 4


@attrs.frozen
class Graph:
    """What needs what. Jobs are numbered in the order in which they are declared."""

    needs: Sequence[Sequence[int]]
    waiting: Sequence[Sequence[int]]  # for each job, those that need it
    before: Sequence[int]  # the longest chain of jobs that it waits for
    behind: Sequence[int]  # the longest chain of jobs that wait for it
    chain: int  # the longest of all, in jobs

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
        return cls(needs, waiting, before, behind, max(before, default=-1) + 1)


@attrs.frozen
class Scopes:
    """What each job reads and writes. Paths are numbered as they come; `a` and `a/` are one, a directory."""

    paths: Sequence[str]  # as they are compared
    spelt: Sequence[str]  # as they are first written
    reads: Sequence[Sequence[int]]  # of each job
    writes: Sequence[Sequence[int]]
    readers: Sequence[Sequence[int]]  # of each path
    writers: Sequence[Sequence[int]]
    over: Sequence[Sequence[int]]  # for each path, the directories over it that are paths of jobs too
    under: Sequence[Sequence[int]]  # and the paths under it

    @classmethod
    def of(cls, reads: Sequence[Iterable[str]], writes: Sequence[Iterable[str]]) -> Scopes:
        numbers: dict[str, int] = {}
        spelt: dict[str, int] = {}  # the same, by what is written
        for path in (path for paths in (*writes, *reads) for path in paths):
            if path not in spelt:
                spelt[path] = numbers.setdefault(bare(path), len(numbers))
        first = {number: path for path, number in reversed(spelt.items())}
        reading = [sorted({spelt[path] for path in paths}) for paths in reads]
        writing = [sorted({spelt[path] for path in paths}) for paths in writes]
        over: list[list[int]] = []
        under: list[list[int]] = [[] for _ in numbers]
        folders: dict[str, list[int]] = {}
        for path, number in numbers.items():
            folder = path.rpartition("/")[0]
            if folder not in folders:
                folders[folder] = [numbers[each] for each in (folder, *above(folder)) if each in numbers]
            over.append(folders[folder] if path else [])
            for each in over[number]:
                under[each].append(number)
        readers, writers = _inverted(reading, len(numbers)), _inverted(writing, len(numbers))
        names = [first[number] for number in range(len(numbers))]
        return cls(list(numbers), names, reading, writing, readers, writers, over, under)

    def hoisted(self, paths: Iterable[int]) -> Scopes:
        """The same, but the paths are written by one more job, the last, and by no other."""
        gone = self.within(paths)
        writes: list[Sequence[int]] = [*self.writes, sorted(paths)]
        for job in self.writing(paths):
            writes[job] = [path for path in writes[job] if path not in gone]
        writers = _inverted(writes, len(self.paths))
        return attrs.evolve(self, reads=[*self.reads, []], writes=writes, writers=writers)

    def numbers(self, names: Iterable[str]) -> list[int]:
        return [self.paths.index(bare(name)) for name in names]

    def within(self, paths: Iterable[int]) -> frozenset[int]:
        """The paths, and all that are under them."""
        return frozenset(each for path in paths for each in (path, *self.under[path]))

    def writing(self, paths: Iterable[int], without: Collection[int] = ()) -> set[int]:
        """The jobs that write one of the paths, or something under it; `without` is written by none."""
        return {job for path in self.within(paths) if path not in without for job in self.writers[path]}

    def shared(self, without: Collection[int] = ()) -> list[int]:
        """The paths that jobs write, and that two or more write, or write something under."""
        return [
            path
            for path, writers in enumerate(self.writers)
            if path not in without
            and (len(writers) > 1 or (writers and self.under[path] and len(self.writing([path], without)) > 1))
        ]

    def holders(self, path: int) -> tuple[Sequence[int], Sequence[int]]:
        """The jobs that write a path or a directory over it, no two of which share a wave; and those that only read."""
        if not self.over[path] and not self.readers[path]:
            return self.writers[path], ()
        its = (path, *self.over[path])
        writers = {job for each in its for job in self.writers[each]}
        return sorted(writers), sorted({job for each in its for job in self.readers[each]} - writers)


def share(writes: Iterable[Iterable[str]]) -> bool:
    """Whether two of the paths may be one, or one under another: else no path can cost a wave. writes: of each job."""
    paths = [bare(path) for each in writes for path in each]
    known = frozenset(paths)
    return len(known) < len(paths) or any(each in known for path in known for each in above(path))


Locks = tuple[Sequence[int], Sequence[int]]  # what closes a wave to a job, and what the job closes; path * KINDS + kind


class Packing:
    """A plan, by numbers: what its waves are, and what they would be without some of the paths."""

    def __init__(self, graph: Graph, scopes: Scopes) -> None:
        self.graph, self.scopes = graph, scopes
        paths, none = range(len(scopes.paths)), frozenset[int]()
        self._by_write = [self._write_locks(path) for path in paths]
        self._by_read = [self._read_locks(path) for path in paths]
        self._held = [self._locks(job, none) for job in range(len(graph.needs))]
        self._wanted = [self._contention(job, none) for job in range(len(graph.needs))]
        self._reach = [before + behind for before, behind in zip(graph.before, graph.behind, strict=True)]
        self._ends = [(before, -behind) for before, behind in zip(graph.before, graph.behind, strict=True)]
        at_most = ((self._at_most(path), path) for path in paths)
        self._longest = sorted(((waves, path) for waves, path in at_most if waves > graph.chain), reverse=True)
        self._queues: dict[int, int] = {}
        self._top: tuple[int, int | None] | None = None  # the longest queue of all; most paths leave it as it is

    def bound(self, without: Collection[int] = ()) -> int:
        """Waves that no assignment has fewer than: the longest chain, or the longest queue for a path."""
        return self.longest_queue(without)[0]

    def longest_queue(self, without: Collection[int] = ()) -> tuple[int, int | None]:
        """The bound, and the path that makes it (None: no path, a chain of needs)."""
        if self._top is not None and self._top[1] not in without:
            return self._top
        longest: tuple[int, int | None] = (self.graph.chain, None)
        for at_most, path in self._longest:
            if at_most <= longest[0]:
                break
            if path not in without and self._queue(path) > longest[0]:
                longest = (self._queue(path), path)
        if not without:
            self._top = longest
        return longest

    def waves(self, without: frozenset[int] = frozenset()) -> list[int]:
        """For each job its wave: first fit by the longest chain behind a job, then the most wanted paths, then as
        declared; then turned over for as long as that gains a wave, or until it meets the bound.

        To turn it over is first fit from the end, the latest first, and again from the start: no wave is ever added,
        and the gaps of the first packing close (forward-backward improvement, as in project scheduling). without:
        paths that no job has; with each, all that are under it.
        """
        graph, held, wanted = self.graph, self._held, self._wanted
        if without:
            held, wanted = [*held], [*wanted]
            of_path = (jobs for path in without for jobs in (self.scopes.writers[path], self.scopes.readers[path]))
            for job in {job for jobs in of_path for job in jobs}:
                held[job], wanted[job] = self._locks(job, without), self._contention(job, without)
        bound, jobs = self.bound(without), range(len(held))
        size = len(self.scopes.paths) * KINDS
        order = sorted(jobs, key=lambda job: (-graph.behind[job], -wanted[job], job))
        waves = _first_fit(order, graph.needs, held, size)
        count, before = max(waves, default=-1) + 1, math.inf
        while bound < count < before:
            waves = _first_fit(_latest_first(waves), graph.waiting, held, size)
            waves = _first_fit(_latest_first(waves), graph.needs, held, size)
            count, before = max(waves) + 1, count
        return waves

    def count(self, without: frozenset[int] = frozenset()) -> int:
        return max(self.waves(without), default=-1) + 1

    def hoisted(self, paths: Collection[int]) -> Packing:
        """The plan where one more job, the last, alone writes the paths, and needs all that wrote them."""
        needs = [*self.graph.needs, sorted(self.scopes.writing(paths))]
        return Packing(Graph.of(needs), self.scopes.hoisted(paths))

    def _write_locks(self, path: int) -> Locks:
        """What closes a wave to a job that writes a path, and what the job closes; nothing for a file of its own."""
        over, under, at = self.scopes.over[path], self.scopes.under[path], path * KINDS
        if not (over or under or self.scopes.readers[path]):
            itself = (at + WRITTEN,) if len(self.scopes.writers[path]) > 1 else ()
            return itself, itself
        closed = [at + kind for kind in range(KINDS)]
        closed += [each * KINDS + kind for each in over for kind in (WRITTEN, READ)]
        return closed, [at + WRITTEN, *(each * KINDS + WRITTEN_UNDER for each in over)]

    def _read_locks(self, path: int) -> Locks:
        """The same for a job that reads it; nothing for a file that no job writes."""
        over, under, at = self.scopes.over[path], self.scopes.under[path], path * KINDS
        if not any(self.scopes.writers[each] for each in (path, *over, *under)):
            return (), ()
        closed = [at + WRITTEN, at + WRITTEN_UNDER, *(each * KINDS + WRITTEN for each in over)]
        return closed, [at + READ, *(each * KINDS + READ_UNDER for each in over)]

    def _locks(self, job: int, without: Collection[int]) -> Locks:
        closed: list[int] = []
        closes: list[int] = []
        for paths, locks in ((self.scopes.writes[job], self._by_write), (self.scopes.reads[job], self._by_read)):
            for path in paths:
                if path not in without:
                    closed += locks[path][0]
                    closes += locks[path][1]
        return closed, closes

    def _contention(self, job: int, without: Collection[int]) -> int:
        writers = self.scopes.writers
        return sum([len(writers[path]) for path in self.scopes.writes[job] if path not in without])

    def _in_line(self, path: int) -> Sequence[int]:
        """Jobs that hold a path, no two of which share a wave: all its writers, and one that only reads it."""
        writers, readers = self.scopes.holders(path)
        if not writers or not readers:
            return writers
        return [*writers, max(readers, key=self._reach.__getitem__)]

    def _at_most(self, path: int) -> int:
        """What the queue for a path cannot exceed: said quickly, and often small enough to look no further."""
        its = (path, *self.scopes.over[path])
        writers = [job for each in its for job in self.scopes.writers[each]]
        readers = [job for each in its for job in self.scopes.readers[each]]
        if not writers or len(writers) + len(readers) < 2:
            return 0
        return len(writers) + bool(readers) + max([self._reach[job] for job in (*writers, *readers)])

    def _queue(self, path: int) -> int:
        """The fewest waves for the jobs in line for a path, each after what is before it and followed by what is behind
        it. As all take one wave, the one with the most behind it goes first (Jackson's rule)."""
        if path not in self._queues:
            coming = sorted([self._ends[job] for job in self._in_line(path)])
            ready: list[int] = []
            wave = most = at = 0
            while at < len(coming) or ready:
                if not ready and wave < coming[at][0]:
                    wave = coming[at][0]
                while at < len(coming) and coming[at][0] <= wave:
                    heapq.heappush(ready, coming[at][1])
                    at += 1
                wave += 1
                most = max(most, wave - heapq.heappop(ready))
            self._queues[path] = most
        return self._queues[path]


def bare(path: str) -> str:
    """A path as it is compared: `a/` is `a`, and the directory of all is empty."""
    return "" if path == "." else path.rstrip("/")


def above(path: str) -> list[str]:
    """Every directory over a bare path, the nearest first: "a/b/c" → ["a/b", "a", ""]."""
    found = []
    while path:
        path = path.rpartition("/")[0]
        found.append(path)
    return found


def _first_fit(
    order: Iterable[int],
    needs: Sequence[Sequence[int]],
    held: Sequence[Locks],
    size: int,
) -> list[int]:
    """For each job the earliest wave after its needs that nothing closes to it. In `order`, needs come first."""
    taken = [0] * size
    waves = [0] * len(needs)
    for job in order:
        first = 0
        for need in needs[job]:
            if waves[need] >= first:
                first = waves[need] + 1
        closed, closes = held[job]
        bits = 0
        for each in closed:
            bits |= taken[each]
        bits >>= first
        wave = waves[job] = first + (~bits & (bits + 1)).bit_length() - 1
        bit = 1 << wave
        for each in closes:
            taken[each] |= bit
    return waves


def _latest_first(waves: Sequence[int]) -> list[int]:
    return sorted(range(len(waves)), key=waves.__getitem__, reverse=True)


def _inverted(rows: Sequence[Sequence[int]], size: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(size)]
    for number, row in enumerate(rows):
        for each in row:
            found[each].append(number)
    return found
