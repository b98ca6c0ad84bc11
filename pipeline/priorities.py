"""What comes first among tasks that wait for a slot: the one with the most work left behind it, by durations learned.
Pure: no thread, clock, file or doit.
"""

from __future__ import annotations

import graphlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import attrs


@attrs.frozen
class Work:
    """What is known of a task of the plan before it runs."""

    name: str
    needs: tuple[str, ...] = ()  # tasks that end before it starts
    kind: str | None = None
    scope: str | None = None
    locks: Collection[str] = ()  # paths it reads or writes
    expected: float | None = None  # seconds, from earlier runs; None: no idea
    pool: str | None = None


@attrs.define
class _Observed:
    """Durations seen in this run, in seconds, beside what had been expected of the same tasks."""

    actual: float = 0.0
    expected: float = 0.0
    count: int = 0


class Priorities:
    """How much work is left behind each task, by what this run has learned so far; asked whenever a slot frees.

    The work left is the larger of the longest chain of tasks that wait for this one, and the time for which a path that
    it locks is wanted by it and by those that come after it there. A path that many write is a queue, and must not
    start late; but only the first in it is in a hurry: the one with the longest chain.
    """

    SHRINK = 2.0  # how many observations it takes to believe them as much as the expectation,
    OWN = 1.0  # and of a scope, beside what was expected of its tasks
    GUESS = 1.0  # seconds, where nothing is known of any task of its kind
    PAIR = 0.5  # how far a task takes after the one of its own round that it waits for, and not after its scope

    def __init__(self, plan: Iterable[Work]) -> None:
        self._plan = {work.name: work for work in plan}
        self._prior = self._priors()
        self._next = self._chains()
        times = Counter(path for work in self._plan.values() for path in work.locks)
        self._shared = {path for path, wanting in times.items() if wanting > 1}
        self._wanted: dict[str, set[str]] = defaultdict(set)  # of those alone: of 10,000 tasks, most paths are one's
        for work in self._plan.values():
            for path in self._shared.intersection(work.locks):
                self._wanted[path].add(work.name)
        self._place = {name: place for place, name in enumerate(self._plan)}
        # Of tasks of one scope and round, the later takes as the earlier took: of many tests there are many to prove.
        self._pairs = {
            work.name: need
            for work in self._plan.values()
            for need in work.needs
            if work.scope is not None and need in self._plan and _round(need) == _round(work.name)
        }
        self._took = dict[str, float]()  # seconds, of the earlier ones
        self._earlier = {*self._pairs.values()}
        # What is learned of one kind scales all of its tasks alike: where there is no other, it changes no order.
        self._alike = len({(work.kind, work.scope) for work in self._plan.values() if work.pool}) == 1
        self._ranks: dict[str, float] = {}  # by task, where all are alike; they hold while no shared path is given back
        self._seen: dict[str | None, _Observed] = defaultdict(_Observed)  # by kind
        self._of_scope: dict[str | None, dict[str | None, _Observed]] = defaultdict(lambda: defaultdict(_Observed))
        self._left: dict[str, float] = {}  # by task; it and the next hold until a task ends
        # By path, and how many had ended when it was made: what is left behind each that wants it.
        self._queues: dict[tuple[str, Callable[[str], float]], tuple[dict[str, float], int]] = {}
        self._until: float | None = None  # as above, of all together
        self._over: set[str] = set()
        self.ends = 0  # that may have changed the order

    def ended(self, name: str, seconds: float | None) -> None:
        """A task has ended: its locks are wanted no more, and its duration teaches (None: it did not run)."""
        self._until = None
        self._over.add(name)
        work = self._plan.get(name)
        if work is None:
            return
        shared = not self._shared.isdisjoint(work.locks)
        for path in work.locks if shared else ():
            if path in self._wanted:
                self._wanted[path].discard(name)
        if seconds is None and not shared:
            return  # nothing is learned of the others: 10,000 tasks that are up to date change no order
        self._left.clear()
        if shared or not self._alike:
            self._ranks.clear()
            self.ends += 1
        if seconds is not None:
            if name in self._earlier:
                self._took[name] = seconds
            for seen in (self._seen[work.kind], self._of_scope[work.scope][work.kind]):
                seen.actual += seconds
                seen.expected += self._prior[name]
                seen.count += 1

    def left(self, capacity: Mapping[str, int]) -> float:
        """Seconds until all is done, if no slot of the fullest lane is ever idle and the longest chain never waits."""
        if self._until is None:
            lanes: dict[str, float] = defaultdict(float)
            for name, work in self._plan.items():
                if name not in self._over and work.pool is not None:
                    lanes[work.pool] += self.cost(name) / capacity.get(work.pool, 1)
            chain = max((self.of(name) for name in self._plan if name not in self._over), default=0.0)
            self._until = max([chain, *lanes.values()])
        return self._until

    def cost(self, name: str) -> float:
        """Seconds it will take: its expectation, scaled by how its kind turned out, then by how its scope did.

        A scope is large or small in all that it does: how long it was generated for tells how long it is validated.
        Both are drawn to what was expected, by one observation of the usual size.
        """
        work, prior = self._plan.get(name), self._prior.get(name, self.GUESS)
        if work is None or not prior:
            return prior
        scaled = prior * self._scale(work.kind, prior)
        if work.scope is None or not (own := self._of_scope[work.scope]):
            return scaled
        actual = sum(seen.actual for seen in own.values())
        expected = sum(seen.expected * self._scale(kind, seen.expected / seen.count) for kind, seen in own.items())
        usual = self.OWN * expected / sum(seen.count for seen in own.values())
        mine = scaled * (usual + actual) / (usual + expected) if expected else scaled
        if (pair := self._pairs.get(name)) in self._took and (said := self._prior[pair]):
            took = scaled * self._took[pair] / (said * self._scale(self._plan[pair].kind, said))
            return self.PAIR * took + (1 - self.PAIR) * mine
        return mine

    def _scale(self, kind: str | None, prior: float) -> float:
        """How tasks of a kind turned out, beside what was expected of them."""
        seen, usual = self._seen[kind], self.SHRINK * prior
        return (usual + seen.actual) / (usual + seen.expected) if usual + seen.expected else 1.0

    def of(self, name: str) -> float:
        """Seconds of work left."""
        return self._behind(name, self._left, self.cost, self._queue)

    def rank(self, name: str) -> float:
        """Larger goes first: the work left; where all tasks are alike, as it was expected."""
        return self._behind(name, self._ranks, self._expected, self._queue) if self._alike else self.of(name)

    def _behind(
        self, name: str, known: dict[str, float], cost: Callable[[str], float], queue: Callable[[str, Any], float]
    ) -> float:
        chain: list[str] = []
        at: str | None = name
        while at is not None and at not in known:
            chain.append(at)
            at = self._next.get(at)
        left = 0.0 if at is None else known[at]
        for task in reversed(chain):
            left = known[task] = max(cost(task) + left, queue(task, cost))
        return left

    def _expected(self, name: str) -> float:
        return self._prior.get(name, self.GUESS)

    def _queue(self, name: str, cost: Callable[[str], float]) -> float:
        work = self._plan.get(name)
        if work is None or not self._shared or self._shared.isdisjoint(work.locks):
            return 0.0
        return max(self._queue_of(path, cost).get(name, 0.0) for path in work.locks if path in self._shared)

    def _queue_of(self, path: str, cost: Callable[[str], float]) -> dict[str, float]:
        wanting, (left, at) = self._wanted[path], self._queues.get((path, cost), ({}, -1))
        if at < 0 or self.ends - at > len(wanting) // 16:  # else every end would have a long queue put in order again
            alone = dict[str, float]()
            chains = {name: self._behind(name, alone, cost, lambda *_: 0.0) for name in wanting}
            left, seconds = {}, 0.0
            for name in sorted(wanting, key=lambda name: (chains[name], -self._place[name])):  # the last comes first
                left[name] = seconds = seconds + cost(name)
            self._queues[path, cost] = left, self.ends
        return left

    def _priors(self) -> dict[str, float]:
        known: dict[str | None, list[float]] = defaultdict(list)
        for work in self._plan.values():
            if work.expected:
                known[work.kind].append(work.expected)
        means = {kind: sum(seconds) / len(seconds) for kind, seconds in known.items()}
        return {
            work.name: means.get(work.kind, self.GUESS) if work.expected is None else work.expected
            for work in self._plan.values()
        }

    def _chains(self) -> dict[str, str]:
        """For each task, the one among those waiting for it that has the most work behind it."""
        needs = {name: [need for need in work.needs if need in self._plan] for name, work in self._plan.items()}
        if not any(needs.values()):
            return {}
        try:
            order = list(graphlib.TopologicalSorter(needs).static_order())
        except graphlib.CycleError:
            return {}  # doit names the cycle when it comes to it
        left = dict.fromkeys(self._plan, 0.0)  # behind the task, without its own
        chains: dict[str, str] = {}
        for name in reversed(order):
            total = self._prior[name] + left[name]
            for need in needs[name]:
                if need not in chains or total > left[need]:
                    left[need], chains[need] = total, name
        return chains


def _round(name: str) -> str:
    """Of which scope and round a task is: its name without its kind."""
    return name.partition(":")[2]
