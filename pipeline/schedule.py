"""Which ready task may start now? Pure: no thread, clock, file or doit.

Three questions: how many slots has each lane (`lanes`), what comes first (`Priorities`), what starts (`startable`).
"""

from __future__ import annotations

import graphlib
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import attrs

from pipeline.model import GATE, GENERATION, VALIDATION

MAX_SLOTS = "DOIT_MUTATE_MAX_SLOTS"


# How many slots has each lane?


@attrs.frozen
class Lanes:
    """The slots of a run. `serial`: one task at a time over all lanes together, in doit's order."""

    capacity: Mapping[str, int]
    workers: int  # worker processes of one engine run
    serial: bool
    line: str  # what people are told


def max_slots(text: str | None) -> int | None:
    """The cap on every lane that the environment sets, or None. Raises ValueError, worded for people."""
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(
            f"{MAX_SLOTS}={text}: not a positive integer; set it to the most slots a lane may have, or unset it"
        )
    return int(text)


def lanes(
    n: int | None, pools: Mapping[str, int], width: Mapping[str, int | None], cap: int | None, cores: int,
    workers: int | None = None,
) -> Lanes:  # fmt: skip
    """The lanes that a run gets, and the line that says why.

    n: what -n says, None without it. pools: what tasks.yaml says, without validation. width: for each pool that the
    plan uses, how many of its tasks could ever run at once (None: no bound is known). cap: the environment's. workers:
    of one engine run, where tasks.yaml says; else the cores are shared out. Nothing here raises a number: the smallest
    wins, and the line names it.
    """
    asked = {VALIDATION: (n or 1, f"-n {n}"), GENERATION: (1, "default")}
    asked |= {pool: (slots, "tasks.yaml") for pool, slots in pools.items()}
    capacity, said = {}, {}
    for pool, (slots, source) in asked.items():
        bounds = [(1 if n is None else slots, source)]
        bounds += [(cap, MAX_SLOTS)] if cap is not None else []
        widest = width.get(pool)
        bounds += [(max(1, widest), "width of the plan")] if widest is not None else []
        capacity[pool], why = min(bounds, key=lambda bound: bound[0])
        said[pool] = f"{pool} {capacity[pool]}" + (f" ({why})" if n is not None else "")
    shared = f"cores {cores} / {capacity[VALIDATION]}" if workers is None else "tasks.yaml"
    workers = max(1, cores // capacity[VALIDATION]) if workers is None else workers
    shown = [text for pool, text in said.items() if pool == VALIDATION or pool in width]
    line = ", ".join(shown) + (" (one task at a time)" if n is None else "")
    return Lanes(
        capacity,
        workers,
        n is None,
        f"lanes: {line}, engine workers {workers} ({shared})",
    )


# What comes first?


@attrs.frozen
class Work:
    """What is known of a task of the plan before it runs."""

    name: str
    needs: tuple[str, ...] = ()  # tasks that end before it starts
    kind: str | None = None
    scope: str | None = None
    locks: frozenset[str] = frozenset()  # paths it reads or writes
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

    The work left is the larger of the longest chain of tasks that wait for this one, and the time for which the paths
    it locks are wanted by tasks that have not ended: a path that many write is a queue, and must not start late.
    """

    SHRINK = 2.0  # how many observations it takes to believe them as much as the expectation
    GUESS = 1.0  # seconds, where nothing is known of any task of its kind

    def __init__(self, plan: Iterable[Work]) -> None:
        self._plan = {work.name: work for work in plan}
        self._prior = self._priors()
        self._next = self._chains()
        self._wanted: dict[str, set[str]] = defaultdict(set)
        for work in self._plan.values():
            for path in work.locks:
                self._wanted[path].add(work.name)
        self._seen: dict[object, _Observed] = defaultdict(_Observed)
        self._left: dict[str, float] = {}  # by task; it and the next hold until a task ends
        self._queues: dict[str, float] = {}  # by path
        self._until: float | None = None  # as above, of all together
        self._over: set[str] = set()

    def ended(self, name: str, seconds: float | None) -> None:
        """A task has ended: its locks are wanted no more, and its duration teaches (None: it did not run)."""
        self._left.clear()
        self._queues.clear()
        self._until = None
        self._over.add(name)
        work = self._plan.get(name)
        if work is None:
            return
        for path in work.locks:
            self._wanted[path].discard(name)
        if seconds is not None:
            for key in (work.kind, (work.kind, work.scope)):
                seen = self._seen[key]
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
        """Seconds it will take: its expectation scaled by how its kind turned out, then drawn to its scope's mean."""
        work, prior = self._plan.get(name), self._prior.get(name, self.GUESS)
        if work is None or not prior:
            return prior
        kind, own = self._seen[work.kind], self._seen[work.kind, work.scope]
        scaled = prior * (self.SHRINK * prior + kind.actual) / (self.SHRINK * prior + kind.expected)
        return (self.SHRINK * scaled + own.actual) / (self.SHRINK + own.count)

    def of(self, name: str) -> float:
        """Seconds of work left; larger goes first."""
        chain: list[str] = []
        at: str | None = name
        while at is not None and at not in self._left:
            chain.append(at)
            at = self._next.get(at)
        left = 0.0 if at is None else self._left[at]
        for task in reversed(chain):
            left = self._left[task] = max(self.cost(task) + left, self._queue(task))
        return left

    def _queue(self, name: str) -> float:
        work = self._plan.get(name)
        return max(map(self._queue_of, work.locks), default=0.0) if work else 0.0

    def _queue_of(self, path: str) -> float:
        if path not in self._queues:
            wanting = self._wanted[path]
            self._queues[path] = sum(map(self.cost, wanting)) if len(wanting) > 1 else 0.0
        return self._queues[path]

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


# What starts?


@attrs.frozen
class Ready:
    """A task that waits for nothing but its slot and its locks. It holds neither."""

    name: str
    order: int  # doit's, and the tie-break
    pool: str | None = None  # None: takes no slot
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    batch: str | None = None  # ready tasks of one pool and batch share a slot
    memory: int = 0  # bytes that it asks for


@attrs.frozen
class Start:
    """Tasks that start now and share one slot, with all the locks they hold until the last of them ends."""

    names: tuple[str, ...]
    pool: str | None = None
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    memory: int = 0  # bytes that are kept for them

    @classmethod
    def of(cls, tasks: Sequence[Ready]) -> Start:
        return cls(
            tuple(task.name for task in tasks),
            tasks[0].pool,
            frozenset().union(*(task.reads for task in tasks)),
            frozenset().union(*(task.writes for task in tasks)),
            sum(task.memory for task in tasks),
        )


def startable(
    ready: Iterable[Ready],
    capacity: Mapping[str, int],
    in_use: Mapping[str, int],
    running: Iterable[Start],
    priorities: Priorities,
    *,
    serial: bool = False,
    memory: int = 0,
) -> tuple[Start, ...]:
    """Everything at once or not at all: a slot of its pool, all read locks, all write locks, the memory it asks for.

    in_use: slots taken, at least one for each of `running` that has a pool. A full pool delays its own tasks only. The
    ready tasks of a batch start together, in one slot. serial: nothing starts beside anything, and the first in doit's
    order goes first (with those of its batch), the gate's last of all: what is built together is what has come by then.
    memory: bytes to share out; no task may ask for more.
    """
    running = tuple(running)
    free = {pool: slots - in_use.get(pool, 0) for pool, slots in capacity.items()}
    candidates = [task for task in ready if task.pool is None or free[task.pool] > 0]
    if serial and candidates:
        if running:
            return ()
        first = min(candidates, key=lambda task: (task.pool == GATE, task.order))
        candidates = [task for task in candidates if task is first or (first.batch and _batch(task) == _batch(first))]
        free = dict.fromkeys(free, 1)
    locks = _Locks()
    for start in running:
        locks.add(start.reads, start.writes)
        memory -= start.memory
    batches: dict[tuple[str | None, str | None], list[Ready]] = defaultdict(list)
    for task in candidates:
        if task.batch:
            batches[_batch(task)].append(task)
    starts: list[Start] = []
    for task in sorted(candidates, key=lambda task: (-priorities.of(task.name), task.order)):
        slots = 1 if task.pool is None else free[task.pool]
        if slots < 1:
            continue
        together = batches.pop(_batch(task), []) if task.batch else [task]
        members = []
        for each in together:
            if each.memory <= max(0, memory) and locks.take(each.reads, each.writes):
                members.append(each)
                memory -= each.memory
        if members:
            starts.append(Start.of(sorted(members, key=lambda each: each.order)))
            if task.pool is not None:
                free[task.pool] -= 1
    return tuple(starts)


def _batch(task: Ready) -> tuple[str | None, str | None]:
    return task.pool, task.batch


class _Locks:
    """The paths held. A directory holds all that is under it: two paths meet if equal, or one lies above the other."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._above_read: set[str] = set()  # every directory with a read path somewhere under it
        self._above_written: set[str] = set()

    def take(self, reads: Iterable[str], writes: Iterable[str]) -> bool:
        """All of them, or none and False."""
        free = self.may(reads, writes)
        if free:
            self.add(reads, writes)
        return free

    def may(self, reads: Iterable[str], writes: Iterable[str]) -> bool:
        if any(self._meets(path, self._written, self._above_written) for path in reads):
            return False
        return not any(
            self._meets(path, self._written, self._above_written) or self._meets(path, self._read, self._above_read)
            for path in writes
        )

    def add(self, reads: Iterable[str], writes: Iterable[str]) -> None:
        for paths, held, above in (
            (reads, self._read, self._above_read),
            (writes, self._written, self._above_written),
        ):
            for path in paths:
                itself, *over = _upwards(path)
                held.add(itself)
                above.update(over)

    @staticmethod
    def _meets(path: str, held: set[str], above: set[str]) -> bool:
        if not held:
            return False
        itself, *over = _upwards(path)
        return itself in held or itself in above or not held.isdisjoint(over)


def conflict(one: Start, other: Start) -> str | None:
    """A path for which two tasks do not run at once; None where they may."""
    held = _Locks()
    held.add(other.reads, other.writes)
    tried = [((path,), ()) for path in sorted(one.reads)] + [((), (path,)) for path in sorted(one.writes)]
    return next((path for r, w in tried for path in (*r, *w) if not held.may(r, w)), None)


def _upwards(path: str) -> list[str]:
    """The path, then every directory above it: "a/b/" → ["a/b", "a", ""]."""
    path = posixpath.normpath(path).rstrip("/")
    steps = [] if path in (".", "") else [path]
    while steps and "/" in steps[-1]:
        above = steps[-1].rpartition("/")[0]
        if not above:
            break
        steps.append(above)
    return [*steps, ""]
