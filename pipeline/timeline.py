"""Where a run's time went, from its events alone: for every instant and each slot of a lane what it did, or why it did
nothing; for every scope the same. Pure. What the seconds sum to is exact: slots × wall clock, or the wall clock.

An idle slot is charged to the task that comes next in its lane, and to what that task waits for at that instant. Of
several idle slots each is charged to another task, the first to start first. A slot that no task comes to any more has
nothing left to do.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import attrs

from pipeline import schedule
from pipeline.results import Outcome

Class = Literal["useful", "recovery", "rerun", "wait", "idle"]

NOTHING_LEFT = "nothing left to start"
DECIDING = "the run itself: judging, saving, starting"
DEPENDENCY = "a dependency"
LOCK = "a lock"
ONE_AT_A_TIME = "one task at a time (no -n)"
MEMORY = "memory"
ENDED = "ended"
_WELL = (Outcome.OK, Outcome.CACHED, Outcome.NO_MUTANTS)


class What(NamedTuple):
    """What a slot or a scope did, or why it did nothing."""

    sort: Class
    label: str  # a phase; of recovery and reruns too; for the rest what was waited for
    cause: str = ""  # of recovery: the outcome; of a wait: by name

    @property
    def busy(self) -> bool:
        return self.sort in ("useful", "recovery", "rerun")


_NOTHING_LEFT, _ENDED, _DECIDING = What("idle", NOTHING_LEFT), What("idle", ENDED), What("wait", DECIDING)


class Piece(NamedTuple):
    """A stretch of time in seconds since the epoch."""

    start: float
    end: float
    what: What

    @property
    def seconds(self) -> float:
        return self.end - self.start


@attrs.define(eq=False)
class Hold:
    """Tasks that shared a slot for a span of time."""

    lane: str
    start: float
    end: float
    ready: float  # of the last of them
    names: list[str]
    scopes: list[str]
    kind: str
    slot: int
    after: str | None  # the task whose end made it ready
    outcome: str
    locks: schedule.Start = attrs.field(factory=lambda: schedule.Start(()))
    memory: int = 0
    needs: list[str] = attrs.field(factory=list)  # tasks and groups that end before it starts
    then: str | None = None  # the leg of the same task that comes after it
    pieces: list[Piece] = attrs.field(factory=list)  # its time from start to end
    places: list[tuple[str, float, float, int]] = attrs.field(factory=list)  # lane, from, until, slots more or fewer

    def at(self, moment: float) -> What:
        i = bisect.bisect_right(self.pieces, moment, key=lambda piece: piece.start) - 1
        return self.pieces[max(0, i)].what


Idle = tuple[float, float, tuple[What, ...]]  # from, to, what each idle slot waited for


@attrs.frozen
class Timeline:
    start: float
    end: float
    lanes: Mapping[str, int]
    holds: Sequence[Hold]
    slots: Mapping[str, Mapping[What, float]]  # lane -> slot-seconds; they sum to slots × wall clock
    scopes: Mapping[str, Sequence[Piece]]  # each from start to end without a gap
    idle: Mapping[str, Sequence[Idle]]  # lane -> when slots of it were idle, in order
    together: Mapping[tuple[str, ...], float]  # which lanes worked at once -> seconds; they sum to the wall clock

    @property
    def wall(self) -> float:
        return self.end - self.start


def of(events: Sequence[Mapping[str, Any]]) -> Timeline | None:
    """The timeline of one run's events, None where no task of it ran in a lane. A run that was killed ends with its
    last event."""
    holds = _holds(events)
    if not holds:
        return None
    began = next((e for e in events if e["event"] == "run-started"), {})
    ended = next((e["at"] for e in events if e["event"] == "run-ended"), None)
    start = min([began.get("at", holds[0].start), *(h.start for h in holds)])
    end = max([ended or 0.0, *(h.end for h in holds)])
    lanes = dict(began.get("lanes") or {})
    for hold in holds:  # a ledger of an older version says nothing of capacities
        lanes[hold.lane] = max(lanes.get(hold.lane, 1), 1)
    lanes = {lane: slots for lane, slots in lanes.items() if any(h.lane == lane for h in holds)}
    sweep = _Sweep(holds, lanes, start, end, bool(began.get("serial")), int(began.get("memory") or 0))
    sweep.run()
    scopes = sweep.by_scope(began.get("scopes") or ())
    return Timeline(start, end, lanes, holds, sweep.slots, scopes, sweep.idle, sweep.together)


# -- events -> holds


def _holds(events: Iterable[Mapping[str, Any]]) -> list[Hold]:
    holds: dict[tuple[str, int, float], Hold] = {}
    inside: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    spans: dict[tuple[str, int, float], list[Any]] = defaultdict(list)
    built: set[str] = set()
    for e in events:
        if e["event"] == "condition":
            inside[e["scope"]].append((e["started"], e["ended"], e["phase"]))
        elif e["event"] == "build" and not e["cached"]:
            phase = "rerun" if e["tree"] in built else "build"
            built.add(e["tree"])
            inside[""].append((e["started"], e["ended"], phase))
        if e["event"] != "attempt" or e.get("lane") is None:
            continue
        key = e["lane"], e.get("slot", 0), e["started"]
        hold = holds.get(key)
        if hold is None:
            hold = holds[key] = Hold(
                e["lane"], e["started"], e["ended"], e["ready"], [], [], e.get("kind") or "task", e.get("slot", 0),
                e.get("after"), e["outcome"],
            )  # fmt: skip
        hold.names.append(e["task"])
        if e.get("scope"):
            hold.scopes.append(e["scope"])
        hold.needs += e.get("needs", ())
        hold.then = e.get("then", hold.then)
        if e["ready"] >= hold.ready:
            hold.ready, hold.after = e["ready"], e.get("after")
        if e["outcome"] not in _WELL:
            hold.outcome = e["outcome"]
        if e.get("reads") or e.get("writes"):
            reads, writes = hold.locks.reads.union(e.get("reads", ())), hold.locks.writes.union(e.get("writes", ()))
            hold.locks = schedule.Start((), None, reads, writes)
        hold.memory += e.get("memory") or 0
        spans[key] += e.get("spans", ())
    for key, hold in holds.items():
        _fill(hold, spans[key], inside)
    return sorted(holds.values(), key=lambda hold: (hold.start, hold.end))


def _fill(hold: Hold, spans: Sequence[Any], inside: Mapping[str, Sequence[tuple[float, float, str]]]) -> None:
    """Cut the time of a hold into pieces: of what is inside of what, the innermost counts."""
    plain = _phase(hold.kind, hold.outcome)
    if not spans and not (inside and hold.kind in ("check", "land", "gate")):
        hold.pieces = [Piece(hold.start, hold.end, plain)]
        return
    cuts: list[tuple[float, float, What]] = []
    for kind, name, start, end in spans:
        start, end = max(start, hold.start), min(end, hold.end)
        if kind in ("extra", "lent"):
            hold.places.append((name, start, end, 1 if kind == "extra" else -1))
        elif kind == "wait":
            cuts.append((start, end, What("wait", name)))
        else:
            cuts.append((start, end, _phase(name, hold.outcome)))
    if hold.kind in ("check", "land", "gate") and inside:
        for of in (*hold.scopes, *([""] if hold.kind in ("land", "gate") else ())):
            for start, end, phase in inside.get(of, ()):
                if hold.start <= start < hold.end:
                    cuts.append((start, min(end, hold.end), _phase(phase, hold.outcome)))
    hold.pieces = list(_nested(hold.start, hold.end, plain, cuts))


@functools.cache
def _slot_of(lane: str) -> What:
    return What("wait", f"a slot of {lane}")


@functools.cache
def _phase(name: str, outcome: str) -> What:
    if name == "rerun":
        return What("rerun", "rerun")
    if name == "repair":
        return What("recovery", name, outcome if outcome not in _WELL else "a check that failed")
    return What("useful", name) if outcome in _WELL else What("recovery", name, outcome)


def _nested(start: float, end: float, plain: What, cuts: Sequence[tuple[float, float, What]]) -> Iterator[Piece]:
    """Pieces without a gap: at each moment the cut that began last, of those that are open."""
    if not cuts:
        yield Piece(start, end, plain)
        return
    edges = sorted({start, end, *(edge for cut in cuts for edge in cut[:2])})
    for left, right in itertools.pairwise(edges):
        over = [cut for cut in cuts if cut[0] <= left and cut[1] >= right]
        yield Piece(left, right, max(over, key=lambda cut: (cut[0], -cut[1]))[2] if over else plain)


# -- holds -> seconds


class _Sweep:
    """From edge to edge: in between nothing changes."""

    def __init__(
        self, holds: Sequence[Hold], lanes: Mapping[str, int], start: float, end: float, serial: bool, memory: int
    ) -> None:
        self.holds, self.lanes, self.start, self.end = holds, lanes, start, end
        self.serial, self.memory = serial, memory
        self.of_task = {name: hold for hold in holds for name in hold.names}
        self.in_lane = {lane: [h for h in holds if h.lane == lane] for lane in lanes}
        self.slots: dict[str, dict[What, float]] = {lane: defaultdict(float) for lane in lanes}
        self.idle: dict[str, list[Idle]] = {lane: [] for lane in lanes}
        self.together: dict[tuple[str, ...], float] = defaultdict(float)
        self.full = {lane: _Stretches() for lane in lanes}  # when no slot was free
        self.running: set[Hold] = set()
        self.taken = dict.fromkeys(lanes, 0)
        self.begun = dict.fromkeys(lanes, 0)  # how many of a lane have started

    def run(self) -> None:
        for hold in self.holds:
            self._worked(hold)
        left = self.start
        for right, changes in self._edges():
            if right > left:
                self._interval(left, right)
                left = right
            for whose, lane, more in changes:
                if lane in self.taken:
                    self.taken[lane] += more
                if whose is None:
                    continue
                if more < 0:
                    self.running.discard(whose)
                    continue
                self.begun[lane] += 1
                if whose.end > whose.start:
                    self.running.add(whose)

    def _edges(self) -> Iterator[tuple[float, list[tuple[Hold | None, str, int]]]]:
        """Moments in order, with what changes then: the hold that starts or ends, a lane, slots taken."""
        changes: dict[float, list[tuple[Hold | None, str, int]]] = {self.start: [], self.end: []}
        for hold in self.holds:
            changes.setdefault(hold.end, []).append((hold, hold.lane, -1))
            for lane, start, end, more in hold.places:
                changes.setdefault(start, []).append((None, lane, more))
                changes.setdefault(end, []).append((None, lane, -more))
            for moment in (max(hold.ready, self.start), *(piece.start for piece in hold.pieces[1:])):
                changes.setdefault(moment, [])
        for hold in self.holds:  # what ends at a moment is over before what starts then
            changes.setdefault(hold.start, []).append((hold, hold.lane, 1))
        return iter(sorted(changes.items()))

    def _worked(self, hold: Hold) -> None:
        """Count what a hold did in the slots that it had."""
        mine = self.slots[hold.lane]
        for piece in hold.pieces:
            mine[piece.what] += piece.end - piece.start
            for lane, start, end, more in hold.places:
                overlap = min(end, piece.end) - max(start, piece.start)
                if overlap > 0 and lane in self.slots:
                    self.slots[lane][piece.what] += more * overlap

    def _interval(self, left: float, right: float) -> None:
        seconds = right - left
        for lane, capacity in self.lanes.items():
            idle = capacity - self.taken[lane]
            if idle <= 0:
                self.full[lane].add(left, right)
                continue
            begun = self.begun[lane]
            coming = self.in_lane[lane][begun : begun + idle]
            sums = self.slots[lane]
            why = (*(self._why(hold, left) for hold in coming), *[_NOTHING_LEFT] * (idle - len(coming)))
            for what in why:
                sums[what] += seconds
            was = self.idle[lane]
            if was and was[-1][1:] == (left, why):
                was[-1] = was[-1][0], right, why
            else:
                was.append((left, right, why))
        self.together[tuple(lane for lane, taken in self.taken.items() if taken > 0)] += seconds

    def _why(self, hold: Hold, moment: float) -> What:
        """What a task that has not started waits for."""
        while moment < hold.ready:
            before = self.of_task.get(hold.after or "")
            if before is None or before.end <= moment or before is hold:
                return _DECIDING
            if moment >= before.start:
                what = before.at(moment)
                label = what.label if what.sort == "wait" else DEPENDENCY
                return What("wait", label, what.cause or before.names[0])
            hold = before
        if self.taken[hold.lane] >= self.lanes[hold.lane]:
            return What("wait", f"a slot of {hold.lane}", hold.names[0])
        if self.serial and self.running:
            return What("wait", ONE_AT_A_TIME)
        if hold.locks.reads or hold.locks.writes:
            for other in self.running:
                if path := schedule.conflict(hold.locks, other.locks):
                    return What("wait", LOCK, path)
        if hold.memory and sum(other.memory for other in self.running) + hold.memory > self.memory:
            return What("wait", MEMORY)
        return _DECIDING

    # -- scopes

    def by_scope(self, scopes: Sequence[str]) -> dict[str, list[Piece]]:
        mine: dict[str, list[Hold]] = defaultdict(list)
        for hold in self.holds:
            for scope in dict.fromkeys(hold.scopes):
                mine[scope].append(hold)
        return {scope: list(self._of_scope(mine.get(scope, ()))) for scope in dict.fromkeys([*scopes, *mine])}

    def _of_scope(self, holds: Sequence[Hold]) -> Iterator[Piece]:
        at = self.start
        for hold in holds:
            if hold.start > at:
                yield from self._gap(hold, at, hold.start)
            for piece in hold.pieces:
                if piece.end > at:
                    yield Piece(max(at, piece.start), piece.end, piece.what)
                    at = piece.end
        if at < self.end:
            yield Piece(at, self.end, _ENDED)

    def _gap(self, hold: Hold, start: float, end: float) -> Iterator[Piece]:
        """Not ready yet; then ready, and no slot free for so long, the rest for something else."""
        ready = min(max(hold.ready, start), end)
        if ready > start:
            before = self.of_task.get(hold.after or "")
            until = start if before is None else min(max(before.end, start), ready)
            if until > start:
                yield Piece(start, until, What("wait", DEPENDENCY, hold.after or ""))
            if ready > until:
                yield Piece(until, ready, _DECIDING)
        waited = ready + min(self.full[hold.lane].within(ready, end), end - ready)
        if waited > ready:
            yield Piece(ready, waited, _slot_of(hold.lane))
        if end > waited:
            rest = ONE_AT_A_TIME if self.serial else LOCK if hold.locks.reads or hold.locks.writes else ""
            yield Piece(waited, end, What("wait", rest) if rest else _DECIDING)


class _Stretches:
    """Stretches of time, added in order; how much of a span they cover, in the time of a search."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._before = [0.0]  # seconds of all stretches before each

    def add(self, start: float, end: float) -> None:
        if self._ends and self._ends[-1] == start:
            self._ends[-1] = end
            self._before[-1] += end - start
        else:
            self._starts.append(start)
            self._ends.append(end)
            self._before.append(self._before[-1] + end - start)

    def within(self, start: float, end: float) -> float:
        return self._until(end) - self._until(start)

    def _until(self, moment: float) -> float:
        i = bisect.bisect_right(self._starts, moment)
        return self._before[i] - (max(0.0, self._ends[i - 1] - moment) if i else 0.0)
