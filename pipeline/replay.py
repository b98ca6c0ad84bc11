"""A run's work again, in another order or with other caps: the durations are those recorded, the order is schedule.py's
own, or that of something simpler. Pure; time is simulated.

What is taken over: what each task did (its waits left out), what it waited for, the paths that it locked, and that
tasks of a batch went together. A batch counts as one slot's work, whatever it took beside it.
"""

from __future__ import annotations

import graphlib
import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import attrs

from pipeline import schedule
from pipeline.holds import Hold
from pipeline.model import GENERATION, VALIDATION
from pipeline.priorities import Priorities, Work

KIND = "kind "  # before a kind, as the ledger tells a need of all of it
_MERGE = "the merge lock"  # as a path that landings write


@attrs.define(eq=False)
class Unit:
    """Tasks that share a slot. seconds: of work."""

    name: str
    pool: str | None
    seconds: float
    needs: frozenset[str] = frozenset()  # names of units
    kind: str | None = None
    scope: str | None = None
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


def units(holds: Sequence[Hold], groups: Mapping[str, Sequence[str]]) -> list[Unit]:
    """What ran, as work that can be done again. groups: names that stand for others, as the ledger tells them."""
    of_task: dict[str, str] = {}
    names: dict[str, Hold] = {}
    for hold in holds:
        name = hold.names[0]
        if name in names:
            name = f"{name}@{hold.start}"
        names[name] = hold
        for each in hold.names:
            of_task.setdefault(each, name)
    barriers: dict[str, Unit] = {}

    def unit_of(need: str) -> str | None:
        """The unit that a need stands for; a group, or a kind, is a unit without work that needs its members."""
        if need in of_task:
            return of_task[need]
        if need in barriers:
            return need
        kind = need.removeprefix(KIND) if need.startswith(KIND) else None
        of_kind = [name for name, hold in names.items() if hold.kind == kind] if kind else []
        if not of_kind and need not in groups:
            return None  # it was up to date
        barriers[need] = Unit(need, None, 0.0)
        members = of_kind or [unit for each in groups[need] if (unit := unit_of(each))]
        barriers[need].needs = frozenset(members)
        return need

    work = []
    expected: dict[str, str] = {}  # name of a leg -> the unit before it
    merge = frozenset([_MERGE])
    for name, hold in names.items():
        try:
            needs = frozenset(map(of_task.__getitem__, hold.needs))
        except KeyError:  # a group, a kind, or what was up to date
            needs = frozenset([found for need in hold.needs if (found := of_task.get(need) or unit_of(need))])
        if name in needs:
            needs -= {name}
        if expected and (leg := expected.pop(hold.names[0], None)) is not None:
            needs |= {leg}
        if hold.then:
            expected[hold.then] = name
        writes = hold.locks.writes | merge if hold.kind == "land" else hold.locks.writes
        scope = hold.scopes[0] if hold.scopes else None
        work.append(Unit(name, hold.lane, hold.worked, needs, hold.kind, scope, hold.locks.reads, writes))
    return [*work, *barriers.values()]


def two_lanes(work: Sequence[Unit], capacity: Mapping[str, int], serial: bool = False) -> float:
    """Seconds that the run would take in lanes of these sizes, in the order of schedule.py, which knows no durations
    when it begins."""
    return _makespan(simulated(work, capacity, learning(work), serial))


def first_come(work: Sequence[Unit], capacity: Mapping[str, int]) -> float:
    """In lanes, in the order in which tasks become ready."""
    return _makespan(simulated(work, capacity, Priorities(())))


def coupled(work: Sequence[Unit], capacity: Mapping[str, int]) -> float:
    """In slots that do everything, as many as the validation lane has: who generates keeps the slot until that is
    validated."""
    slots = {VALIDATION: capacity.get(VALIDATION, 1)}
    return _makespan(simulated(_fused(work), slots, Priorities(())))


def waves(work: Sequence[Unit], capacity: Mapping[str, int]) -> float:
    """In lanes, with a barrier: nothing starts before all has ended that stands a step before it in the graph."""
    level = _levels(work)
    gates = {n: f"wave {n}" for n in range(max(level.values(), default=0) + 1)}
    held = [attrs.evolve(u, needs=frozenset([gates[level[u.name] - 1]] if level[u.name] else [])) for u in work]
    ends = [
        Unit(
            gate, None, 0.0, frozenset([*(u.name for u in work if level[u.name] == n), *([gates[n - 1]] if n else [])])
        )
        for n, gate in gates.items()
    ]
    return _makespan(simulated([*held, *ends], capacity, Priorities(())))


def bound(work: Sequence[Unit], capacity: Mapping[str, int]) -> tuple[float, str]:
    """No order is faster than that many seconds; and what says so."""
    lanes = dict.fromkeys(capacity, 0.0)
    locked: dict[str, float] = defaultdict(float)
    for u in work:
        if u.pool in lanes:
            lanes[u.pool] += u.seconds
        for path in u.writes:
            locked[path] += u.seconds
    bounds = {"critical path": max(_chains(work).values(), default=0.0)}
    bounds |= {f"work of {pool} / {slots}": lanes[pool] / slots for pool, slots in capacity.items()}
    bounds |= {f"what writes {path}": seconds for path, seconds in locked.items()}
    name = max(bounds, key=lambda each: bounds[each])
    return bounds[name], name


def learning(work: Sequence[Unit]) -> Priorities:
    """The order of schedule.py, without durations from before."""
    return Priorities(
        Work(u.name, tuple(u.needs), u.kind, u.scope, u.reads | u.writes, None if u.pool else 0.0) for u in work
    )


def simulated(
    work: Sequence[Unit], capacity: Mapping[str, int], priorities: Priorities, serial: bool = False
) -> dict[str, tuple[float, float]]:
    """Unit -> when it starts and ends, in seconds since the beginning."""
    by_name = {u.name: u for u in work}
    missing = {u.name: len(u.needs) for u in work}
    waiting: dict[str, list[str]] = defaultdict(list)
    for u in work:
        for need in u.needs:
            waiting[need].append(u.name)
    line = schedule.Line(priorities)
    ready: set[str] = set()
    running: dict[str, schedule.Start] = {}
    ends: list[tuple[float, str]] = []
    in_use = dict.fromkeys(capacity, 0)
    now, order = 0.0, 0
    times: dict[str, tuple[float, float]] = {}

    def free(names: Iterable[str]) -> None:
        nonlocal order
        for name in names:
            u = by_name[name]
            order += 1
            ready.add(name)
            line.add(schedule.Ready(name, order, u.pool, u.reads, u.writes))

    free(u.name for u in work if not u.needs)
    while ready or ends:
        for start in line.take(capacity, in_use, running.values(), serial=serial):
            (name,) = start.names
            ready.discard(name)
            running[name] = start
            if start.pool is not None:
                in_use[start.pool] += 1
            times[name] = (now, now + by_name[name].seconds)
            heapq.heappush(ends, (times[name][1], name))
        if not ends:
            raise ValueError(f"tasks wait for each other: {', '.join(sorted(ready))}")
        now = ends[0][0]
        while ends and ends[0][0] <= now:
            _, name = heapq.heappop(ends)
            pool = running.pop(name).pool
            if pool is not None:
                in_use[pool] -= 1
            priorities.ended(name, by_name[name].seconds)
            for each in waiting[name]:
                missing[each] -= 1
            free(each for each in waiting[name] if not missing[each])
    return times


def _makespan(times: Mapping[str, tuple[float, float]]) -> float:
    return max((end for _, end in times.values()), default=0.0)


def _fused(work: Sequence[Unit]) -> list[Unit]:
    """Each generation and the one task that waits for it as one unit, all in one pool."""
    after: dict[str, list[Unit]] = defaultdict(list)
    for u in work:
        for need in u.needs:
            after[need].append(u)
    into: dict[str, str] = {}  # name -> the name of the unit that it is part of
    tails: dict[str, Unit] = {}
    for u in work:
        if u.pool == GENERATION and len(after[u.name]) == 1 and after[u.name][0].pool == VALIDATION:
            tails[u.name] = after[u.name][0]
            into[after[u.name][0].name] = u.name
    fused = []
    for u in work:
        if u.name in into:
            continue
        tail = tails.get(u.name)
        needs = {into.get(n, n) for n in u.needs | (tail.needs if tail else frozenset())} - {u.name}
        seconds = u.seconds + (tail.seconds if tail else 0.0)
        writes = u.writes | (tail.writes if tail else frozenset())
        pool = u.pool and VALIDATION
        fused.append(attrs.evolve(u, pool=pool, seconds=seconds, needs=frozenset(needs), writes=writes))
    return fused


def _in_order(work: Sequence[Unit]) -> Sequence[Unit]:
    """Each after all that it needs: as it is, where it is told so."""
    seen: set[str] = set()
    for u in work:
        if not u.needs <= seen:
            break
        seen.add(u.name)
    else:
        return work
    by_name = {u.name: u for u in work}
    return [by_name[name] for name in graphlib.TopologicalSorter({u.name: u.needs for u in work}).static_order()]


def _levels(work: Sequence[Unit]) -> dict[str, int]:
    level: dict[str, int] = {}
    for u in _in_order(work):
        level[u.name] = max((level[n] + (1 if u.pool else 0) for n in u.needs), default=0)
    return level


def _chains(work: Sequence[Unit]) -> dict[str, float]:
    """For each unit the seconds of the longest chain that ends with it."""
    chain: dict[str, float] = {}
    try:
        for u in work:
            chain[u.name] = u.seconds + (max(map(chain.__getitem__, u.needs)) if u.needs else 0.0)
    except KeyError:  # it is not told in the order of what needs what
        return _chains(_in_order(work))
    return chain
