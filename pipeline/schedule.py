"""Which ready task may start now? Pure: no thread, clock, file or doit.

Two questions: how many slots has each lane (`lanes`), what starts (`Line`, `startable`). What comes first:
priorities.py.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from pipeline.locks import Hindrance, Locks
from pipeline.model import GATE, GENERATION, VALIDATION
from pipeline.priorities import Priorities

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


# What starts?


@attrs.frozen
class Ready:
    """A task that waits for nothing but its slot and its locks. It holds neither."""

    name: str
    order: int  # doit's, and the tie-break
    pool: str | None = None  # None: takes no slot
    reads: Collection[str] = ()
    writes: Collection[str] = ()
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


class Line:
    """The tasks that are ready, kept in order, so that it costs no more to ask what starts where 10,000 wait.

    What cannot start is put aside by what stands in its way (a path that is held, memory): of those that one path keeps
    waiting only the first is asked again. The order is made anew when a slot frees; in a long queue, when one task in
    64 of it has ended since, which keeps the whole within n log n and an estimate from being stale by more than that.
    """

    STALE = 64

    def __init__(self, priorities: Priorities, ready: Iterable[Ready] = ()) -> None:
        self._priorities = priorities
        self._tasks: dict[str, Ready] = {}
        self._queues: dict[tuple[str | None, Hindrance | None], _Queue] = {}
        self._count = itertools.count()
        self._batches: dict[tuple[str | None, str | None], dict[str, Ready]] = defaultdict(dict)
        self.short: Sequence[str] = ()  # who was asked last and had a slot, but not the memory
        for task in ready:
            self.add(task)

    def add(self, task: Ready) -> None:
        self._tasks[task.name] = task
        if task.batch:
            self._batches[_batch(task)][task.name] = task
        self._put(task, None)

    @property
    def most_memory(self) -> int:
        """The most that one of them asks for, of those that have been put aside for it or have just come."""
        asked = [why[1] for (_, why), queue in self._queues.items() if why and why[0] == "memory" and queue]
        new = (task.memory for queue in self._queues.values() for task in queue.new)
        return max([*(each for each in asked if isinstance(each, int)), *new], default=0)

    def take(
        self, capacity: Mapping[str, int], in_use: Mapping[str, int], running: Iterable[Start], *,
        serial: bool = False, memory: int = 0,
    ) -> tuple[Start, ...]:  # fmt: skip
        """What starts now; it is in the line no more. As `startable` says."""
        running = tuple(running)
        free = {pool: slots - in_use.get(pool, 0) for pool, slots in capacity.items()}
        first = None
        if serial:
            candidates = [task for task in self._tasks.values() if task.pool is None or free[task.pool] > 0]
            if running or not candidates:
                return ()
            first = min(candidates, key=lambda task: (task.pool == GATE, task.order))
            free = dict.fromkeys(free, 1)
        held = _Held(running, memory)
        self.short = held.short
        if first is not None:
            start = self._together(first, held)
            return (start,) if start else ()
        return tuple(self._starts(free, held))

    def _starts(self, free: dict[str, int], held: _Held) -> Iterator[Start]:
        asked: set[tuple[str | None, str | None]] = set()  # batches
        walks = [self._walk(key[0], queue, free) for key, queue in self._queues.items()]
        for *_, task, at, queue in heapq.merge(*walks, reverse=True):
            if self._tasks.get(task.name) is not task:  # it went with its batch
                del queue.items[at]
                continue
            if task.pool is not None and free[task.pool] < 1:
                continue
            if task.batch:
                if _batch(task) in asked:
                    continue
                asked.add(_batch(task))
            elif (why := held.against(task)) is not None:
                if why == queue.why:
                    queue.stopped = True  # and so it is for all that are behind it
                else:
                    del queue.items[at]
                    self._put(task, why)
                continue
            start = self._together(task, held)
            if start is None:
                continue
            if task.name not in self._tasks:
                del queue.items[at]
            if task.pool is not None:
                free[task.pool] -= 1
            yield start
        for key in [key for key, queue in self._queues.items() if not queue]:
            del self._queues[key]

    def _walk(
        self, pool: str | None, queue: _Queue, free: Mapping[str, int]
    ) -> Iterator[tuple[float, int, int, Ready, int, _Queue]]:
        """The first first; nothing more once the pool is full. Who is given one may take it out."""
        if pool is not None and free[pool] < 1:
            return
        queue.sort(self._priorities, self.STALE)
        at = len(queue.items)
        while at and not queue.stopped and (pool is None or free[pool] > 0):
            at -= 1
            yield (*queue.items[at], at, queue)

    def _put(self, task: Ready, why: Hindrance | None) -> None:
        key = (task.pool, why)
        if key not in self._queues:
            self._queues[key] = _Queue(why, self._count)
        self._queues[key].new.append(task)

    def _together(self, task: Ready, held: _Held) -> Start | None:
        """It, or what can start of its batch, holding what it asks for and out of the line."""
        batch = self._batches[_batch(task)] if task.batch else {task.name: task}
        members = []
        for each in sorted(batch.values(), key=lambda each: each.order):
            if held.against(each) is None:
                held.add(each)
                members.append(each)
                del self._tasks[each.name]
                del batch[each.name]
        return Start.of(members) if members else None


@attrs.define(eq=False)
class _Queue:
    """Tasks of one pool, the first at the end; why: what they were last seen to wait for beside a slot."""

    why: Hindrance | None
    count: Iterator[int]  # of the whole line: no two items are equal
    items: list[tuple[float, int, int, Ready]] = attrs.field(factory=list)  # ascending
    new: list[Ready] = attrs.field(factory=list)
    at: int = -1  # how many tasks had ended when it was put in order
    stopped: bool = False

    def __len__(self) -> int:
        return len(self.items) + len(self.new)

    def sort(self, priorities: Priorities, stale: int) -> None:
        self.stopped = False
        few = len(self.items) // stale
        if priorities.ends - self.at <= few and len(self.new) <= max(1, few) and self.at >= 0:
            for task in self.new:
                bisect.insort(self.items, self._item(task, priorities))
        else:
            everything = [*(item[-1] for item in self.items), *self.new]
            self.items = sorted(self._item(task, priorities) for task in everything)
            self.at = priorities.ends
        self.new.clear()

    def _item(self, task: Ready, priorities: Priorities) -> tuple[float, int, int, Ready]:
        return priorities.rank(task.name), -task.order, -next(self.count), task


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
    return Line(priorities, ready).take(capacity, in_use, running, serial=serial, memory=memory)


def _batch(task: Ready) -> tuple[str | None, str | None]:
    return task.pool, task.batch


class _Held:
    """What the tasks that run hold, and those that are about to."""

    def __init__(self, running: Iterable[Start], memory: int) -> None:
        self._locks, self._memory = Locks(), memory
        self.short: list[str] = []
        for start in running:
            self.add(start)

    def add(self, task: Ready | Start) -> None:
        self._locks.add(task.reads, task.writes)
        self._memory -= task.memory

    def against(self, task: Ready) -> Hindrance | None:
        """What keeps it from starting. All that one path, or too little memory for so much, keeps waiting can start no
        sooner than that changes."""
        if task.memory > max(0, self._memory):
            self.short.append(task.name)
            return "memory", task.memory
        return self._locks.against(task.reads, task.writes)


def conflict(one: Start, other: Start) -> str | None:
    """A path for which two tasks do not run at once; None where they may."""
    held = Locks()
    held.add(other.reads, other.writes)
    tried = [((path,), ()) for path in sorted(one.reads)] + [((), (path,)) for path in sorted(one.writes)]
    return next((path for r, w in tried for path in (*r, *w) if not held.may(r, w)), None)
