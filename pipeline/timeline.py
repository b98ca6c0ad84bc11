"""Where a run's time went, from its events alone: for every instant and each slot of a lane what it did, or why it did
nothing; for every scope the same. Pure. What the seconds sum to is exact: slots × wall clock, or the wall clock.

An idle slot is charged to the task that comes next in its lane, and to what that task waits for at that instant. Of
several idle slots each is charged to another task, the first to start first. A slot that no task comes to any more has
nothing left to do. So a task is charged from the moment at which the last slot that tasks before it leave is free,
until it starts: of each task one stretch, or a few where slots were lent.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from pipeline import holds as held
from pipeline import schedule
from pipeline.charging import Charged, Lane
from pipeline.holds import Hold, Stretch, What
from pipeline.ledger import ByEvent

NOTHING_LEFT = "nothing left to start"
DECIDING = "the run itself: judging, saving, starting"
DEPENDENCY = "a dependency"
LOCK = "a lock"
ONE_AT_A_TIME = "one task at a time (no -n)"
MEMORY = "memory"
ENDED = "ended"
NOT_MEASURED = "not measured"

_NOTHING_LEFT, _ENDED, _DECIDING = What("idle", NOTHING_LEFT), What("idle", ENDED), What("wait", DECIDING)
_NOT_MEASURED = What("idle", NOT_MEASURED, "no event tells what comes next")


class Piece(NamedTuple):
    """A stretch of time in seconds since the epoch."""

    start: float
    end: float
    what: What

    @property
    def seconds(self) -> float:
        return self.end - self.start


@attrs.frozen
class Timeline:
    start: float
    end: float
    lanes: Mapping[str, int]
    told: held.Told
    slots: Mapping[str, Mapping[What, float]]  # lane -> slot-seconds; they sum to slots × wall clock
    courses: Mapping[str, Iterable[Stretch]]  # scope -> what it did and waited for, from start to end without a gap
    charged: Mapping[str, Iterable[Charged]]  # lane -> what its idle slots waited for, in no order
    together: Mapping[tuple[str, ...], float]  # which lanes worked at once -> seconds; they sum to the wall clock

    @property
    def wall(self) -> float:
        return self.end - self.start

    @property
    def holds(self) -> Sequence[Hold]:
        return self.told.holds

    @functools.cached_property
    def scopes(self) -> Mapping[str, Sequence[Piece]]:
        return {scope: [Piece(*each) for each in course] for scope, course in self.courses.items()}

    def idle(self, lane: str) -> Iterator[tuple[float, float, tuple[What, ...]]]:
        """From, to, what each slot that was idle then waited for; in order."""
        starts = sorted(self.charged[lane], key=lambda each: each[0])
        now: list[Charged] = []
        at = 0
        for left, right in itertools.pairwise(sorted({edge for each in starts for edge in each[:2]})):
            now = [each for each in now if each[1] > left]
            while at < len(starts) and starts[at][0] <= left:
                now.append(starts[at])
                at += 1
            if now:
                yield left, right, tuple(what for *_, what, _ in sorted(now, key=lambda each: each[3]))


def of(events: ByEvent) -> Timeline | None:
    """The timeline of one run's events, None where no task of it ran in a lane. A run that was killed ends with its
    last event."""
    told = held.of(events)
    if not (holds := told.holds):
        return None
    began = next(iter(events.get("run-started", ())), {})
    ended = next((e["at"] for e in events.get("run-ended", ())), None)
    start = min(began.get("at", holds[0].start), holds[0].start)
    last = max([hold.end for hold in holds])
    end = max(ended or 0.0, last)
    nothing, over = (_NOTHING_LEFT, _ENDED) if ended is not None else (_NOT_MEASURED, _NOT_MEASURED)
    used: dict[str, list[Hold]] = defaultdict(list)
    of_scope: dict[str, list[Hold]] = defaultdict(list, {scope: [] for scope in began.get("scopes") or ()})
    slots: dict[str, dict[What, float]] = defaultdict(lambda: defaultdict(float))
    for hold in holds:
        used[hold.lane].append(hold)
        for scope in hold.scopes if len(hold.scopes) < 2 else dict.fromkeys(hold.scopes):
            of_scope[scope].append(hold)
        did = slots[hold.lane]
        for since, until, what in hold.pieces:
            did[what] += until - since
    said = began.get("lanes") or {}  # a ledger of an older version says nothing of capacities
    lanes = {lane: max(said.get(lane, 1), 1) for lane in dict.fromkeys([*said, *used]) if lane in used}
    placed = [(hold, place) for hold in holds if hold.places for place in hold.places if place[0] in lanes]
    for hold, (lane, since, until, more) in placed:
        for left, right, what in hold.within(since, until):
            slots[lane][what] += more * (right - left)
    found = {
        lane: Lane(n, used[lane], [each for each in placed if each[1][0] == lane], start, end, nothing)
        for lane, n in lanes.items()
    }
    waits = _Waits(holds, found, bool(began.get("serial")))
    charged = {name: _Idle(waits, lane) for name, lane in found.items()}
    for name, idle in charged.items():
        did = slots[name]
        for since, until, what, _ in idle:
            did[what] += until - since
    courses = {scope: _Course(waits, mine, start, end, over) for scope, mine in of_scope.items()}
    return Timeline(start, end, lanes, told, slots, courses, charged, _together(found, start, end))


@attrs.frozen
class _Idle:
    """What the idle slots of a lane waited for: made anew whenever it is asked for, as sums need it but once."""

    waits: _Waits
    lane: Lane

    def __iter__(self) -> Iterator[Charged]:
        yield from self.lane.left
        for window in self.lane.windows:
            yield from self.waits.why(*window)


class _Waits:
    """What a task that has not started waits for."""

    def __init__(self, holds: Sequence[Hold], lanes: Mapping[str, Lane], serial: bool) -> None:
        self.holds, self.lanes, self.serial = holds, lanes, serial

    def why(self, hold: Hold, start: float, end: float, order: int) -> list[Charged]:
        """From the end back to the start: along the chain of those that it waited for."""
        found: list[Charged] = []
        lane = hold.lane
        while end > start:
            ready = hold.ready if hold.ready > start else start
            if end > ready:
                if hold.lane == lane and not self.hindered(hold):
                    found.append((ready, end, _DECIDING, order))
                else:
                    full = _waited(f"a slot of {hold.lane}", hold.names[0])
                    found += [(*each, order) for each in self.ready(hold, ready, end, lane, full)]
                end = ready
            before = hold.before
            until = before.end if before is not None and before.end > start else start
            if end > until:
                found.append((until, end, _DECIDING, order))
                end = until
            if before is None:
                break
            since = before.start if before.start > start else start
            if end > since:
                name = before.names[0]
                for_it = _waited(DEPENDENCY, name)
                found += [
                    (left, right, _waited(what.label, what.cause or name) if what.sort == "wait" else for_it, order)
                    for left, right, what in before.within(since, end)
                ]
                end = since
            hold = before
        return found

    def hindered(self, hold: Hold) -> bool:
        """May anything but a full lane have kept it from starting?"""
        return self.serial or hold.locks is not held.NO_LOCKS or hold.short is not None

    def ready(self, hold: Hold, start: float, end: float, lane: str, full: What) -> Iterator[Stretch]:
        """It is ready and does not start; in no order. lane: one in which a slot is idle all the while; full: what it
        waits for where its own is full."""
        free = [(start, end)]
        if hold.lane != lane:
            free = []
            at = start
            for left, right in self.lanes[hold.lane].full.between(start, end):
                free += [(at, left)] if left > at else []
                yield left, right, full
                at = right
            free += [(at, end)] if end > at else []
        if not self.hindered(hold):
            yield from ((left, right, _DECIDING) for left, right in free)
            return
        for left, right in free:
            beside = self._beside(left, right)
            changes = [hold.short or left, *(edge for each in beside for edge in (each.start, each.end))]
            edges = {left, right, *(edge for edge in changes if left < edge < right)}
            for since, until in itertools.pairwise(sorted(edges)):
                now = [each for each in beside if each.start <= since and each.end >= until]
                yield since, until, self._hindrance(hold, now, since)

    def _hindrance(self, hold: Hold, beside: Sequence[Hold], at: float) -> What:
        if self.serial and beside:
            return What("wait", ONE_AT_A_TIME)
        if hold.locks.reads or hold.locks.writes:
            for other in beside:
                if path := schedule.conflict(hold.locks, other.locks):
                    return What("wait", LOCK, path)
        if hold.short is not None and hold.short <= at:
            return What("wait", MEMORY)
        return _DECIDING

    def _beside(self, start: float, end: float) -> list[Hold]:
        """What ran at any moment in between, in the order in which it started."""
        found = []
        for track in self._tracks:
            first = max(0, bisect.bisect_right(track, start, key=lambda hold: hold.start) - 1)
            for hold in itertools.islice(track, first, None):
                if hold.start >= end:
                    break
                if hold.end > start:
                    found.append(hold)
        return sorted(found, key=lambda hold: hold.start)

    @functools.cached_property
    def _tracks(self) -> list[list[Hold]]:
        """Each of holds one after the other, as few as there ran at once."""
        tracks: list[list[Hold]] = []
        for hold in self.holds:
            if hold.end > hold.start:
                mine = next((track for track in tracks if track[-1].end <= hold.start), None)
                if mine is None:
                    tracks.append(mine := [])
                mine.append(hold)
        return tracks


@functools.lru_cache(100_000)
def _waited(label: str, cause: str = "") -> What:
    return What("wait", label, cause)


# -- scopes


@attrs.frozen
class _Course:
    """What a scope did and waited for: made anew whenever it is asked for, as sums need it but once."""

    waits: _Waits
    holds: Sequence[Hold]
    start: float
    end: float
    over: What

    def __iter__(self) -> Iterator[Stretch]:
        found: list[Stretch] = []
        at = self.start
        for hold in self.holds:
            if hold.start > at:
                self._gap(hold, at, found)
                found += hold.pieces
                at = hold.end
                continue
            for since, until, what in hold.pieces:
                if until > at:
                    found.append((max(since, at), until, what))
                    at = until
        if at < self.end:
            found.append((at, self.end, self.over))
        return iter(found)

    def _gap(self, hold: Hold, at: float, found: list[Stretch]) -> None:
        """From then to its start: not ready yet; then ready: no slot free for so long, the rest for something else,
        which is looked at where there may be something."""
        end, ready = hold.start, hold.ready
        ready = at if ready < at else end if ready > end else ready
        if ready > at:
            until = at if hold.before is None else min(max(hold.before.end, at), ready)
            if until > at:
                found.append((at, until, _waited(DEPENDENCY, hold.after or "")))
            if ready > until:
                found.append((until, ready, _DECIDING))
        if end > ready and self.waits.hindered(hold):
            waited_for = self.waits.ready(hold, ready, end, "", _waited(f"a slot of {hold.lane}"))
            found += sorted(waited_for, key=operator.itemgetter(0))
        elif end > ready:
            waited = ready + min(self.waits.lanes[hold.lane].full.within(ready, end), end - ready)
            if waited > ready:
                found.append((ready, waited, _waited(f"a slot of {hold.lane}")))
            if end > waited:
                found.append((waited, end, _DECIDING))


def _together(lanes: Mapping[str, Lane], start: float, end: float) -> dict[tuple[str, ...], float]:
    """Which lanes worked at once -> seconds."""
    found: dict[tuple[str, ...], float] = defaultdict(float)
    changes: dict[float, list[str]] = {start: [], end: []}
    for name, lane in lanes.items():
        for stretch in lane.busy.between(start, end):
            for edge in stretch:
                changes.setdefault(edge, []).append(name)
    busy = dict.fromkeys(lanes, False)
    for left, right in itertools.pairwise(sorted(changes)):
        for name in changes[left]:
            busy[name] = not busy[name]
        found[tuple(name for name in lanes if busy[name])] += right - left
    return found
