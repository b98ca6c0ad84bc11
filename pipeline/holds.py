"""What held a slot, and what it did there: a run's events as stretches of time. Pure."""

from __future__ import annotations

import bisect
import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import attrs

from pipeline import account, schedule
from pipeline.ledger import ByEvent
from pipeline.results import Outcome

Class = Literal["useful", "recovery", "rerun", "wait", "idle"]
_BUSY = ("useful", "recovery", "rerun")
_WELL = frozenset((Outcome.OK, Outcome.CACHED, Outcome.NO_MUTANTS))
NO_END = "no end: killed, or running"
NO_LOCKS = schedule.Start(())
_TOGETHER = ("check", "land", "gate")  # kinds with conditions and builds inside, which have events of their own


class What(NamedTuple):
    """What a slot or a scope did, or why it did nothing."""

    sort: Class
    label: str  # a phase; of recovery and reruns too; for the rest what was waited for
    cause: str = ""  # of recovery: the outcome; of a wait: by name

    @property
    def busy(self) -> bool:
        return self.sort in _BUSY


Stretch = tuple[float, float, What]  # from and until in seconds since the epoch, and what was done; a run has 200,000
Place = tuple[str, float, float, int]  # lane, from, until, slots more or fewer


@attrs.define(eq=False)
class Hold:
    """Tasks that shared a slot for a span of time."""

    lane: str
    start: float
    end: float
    ready: float  # of the last of them
    names: tuple[str, ...]
    scopes: tuple[str, ...]
    kind: str
    slot: int
    after: str | None  # the task whose end made it ready
    outcome: str
    needs: Sequence[str]  # tasks and groups that end before it starts
    then: str | None  # the leg of the same task that comes after it
    short: float | None  # since when it would have started, were there the memory
    locks: schedule.Start = NO_LOCKS
    spans: Sequence[Any] = ()  # as the ledger tells them
    pieces: Sequence[Stretch] = ()  # its time from start to end
    places: Sequence[Place] = ()
    worked: float = 0.0  # seconds; what it waited for in between is not in them
    before: Hold | None = None  # that of `after`; None too where it began no earlier, as no ledger of ours tells it

    def within(self, start: float, end: float) -> Sequence[Stretch]:
        """Its pieces from then until then."""
        if start <= self.start and end >= self.end:
            return self.pieces
        first = max(0, bisect.bisect_right(self.pieces, start, key=operator.itemgetter(0)) - 1)
        last = bisect.bisect_left(self.pieces, end, first, key=operator.itemgetter(0))
        return [(max(start, since), min(end, until), what) for since, until, what in self.pieces[first:last]]


@attrs.frozen
class Told:
    """What the attempts of a run tell. A long run has so many that they are read once, for all that asks."""

    holds: list[Hold]  # in the order in which they start
    groups: dict[str, Sequence[str]]  # names that stand for other tasks
    kills: dict[tuple[str, int | None], int]  # mutants, by scope and round of the validation


def of(events: ByEvent) -> Told:
    """What has begun and not ended holds its slot until the last event."""
    holds: dict[tuple[str, int, float], Hold] = {}
    told = Told([], {}, defaultdict(int))
    # Of equal texts the first: a long run has 40,000 of every sort, far apart in memory, each slow to read once more.
    one: Callable[[Any, Any], Any] = {}.setdefault
    for e in events.get("attempt", ()):
        get = e.get
        kind = get("kind") or "task"
        if kind == "group":
            told.groups[e["task"]] = get("needs", ())
        elif kind == "validate" and (killed := get("killed")):
            told.kills[e["scope"], get("round")] += killed
        if (lane := get("lane")) is None:
            continue
        key = lane, get("slot", 0), e["started"]
        if (hold := holds.get(key)) is None:
            name, scope, after, outcome = e["task"], get("scope"), get("after"), e["outcome"]
            needs = get("needs", ())
            hold = holds[key] = Hold(
                one(lane, lane), key[2], e["ended"], e["ready"], (one(name, name),),
                (one(scope, scope),) if scope else (), one(kind, kind), key[1], one(after, after),
                one(outcome, outcome), (*map(one, needs, needs),), get("then"), get("short"),
            )  # fmt: skip
        else:
            _beside(hold, e)
        if get("reads") or get("writes"):
            reads, writes = hold.locks.reads.union(get("reads", ())), hold.locks.writes.union(get("writes", ()))
            hold.locks = schedule.Start((), None, reads, writes)
        if more := get("spans"):
            hold.spans = [*hold.spans, *more] if hold.spans else more
    if "run-ended" not in events:
        holds |= _begun(events.get("started", ()), holds)
    inside = _inside(events)
    told.holds.extend(sorted(holds.values(), key=operator.attrgetter("end")))
    told.holds.sort(key=operator.attrgetter("start"))  # two sorts by one number each are faster than one by pairs
    last: dict[str | None, Hold] = {}
    for hold in told.holds:
        _fill(hold, inside)
        hold.before = last.get(hold.after)
        for name in hold.names:
            last[name] = hold
    return told


def _begun(
    started: Iterable[Mapping[str, Any]], ended: Mapping[tuple[str, int, float], Hold]
) -> dict[tuple[str, int, float], Hold]:
    """What a slot began last, where nothing tells its end."""
    last = max([0.0, *(hold.end for hold in ended.values())])
    latest: dict[tuple[str, int], float] = {}
    for lane, slot, began in ended:
        latest[lane, slot] = max(began, latest.get((lane, slot), 0.0))
    begun: dict[tuple[str, int], Mapping[str, Any]] = {}
    for e in started:
        begun[e["lane"], e["slot"]] = e
        last = max(last, e["started"])
    return {
        (lane, slot, e["started"]): Hold(
            lane, e["started"], last, e["ready"], (*e["tasks"],), (*e["scopes"],), e["kind"] or "task", slot,
            e.get("after"), NO_END, [after] if (after := e.get("after")) else [], None, None,
        )
        for (lane, slot), e in begun.items()
        if latest.get((lane, slot), -1.0) < e["started"]
    }  # fmt: skip


def _inside(events: ByEvent) -> Mapping[str, Sequence[tuple[float, float, str]]]:
    """What has events of its own inside of a hold: scope, or "" -> from, until, phase."""
    found: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for e in events.get("condition", ()):
        found[e["scope"]].append((e["started"], e["ended"], e["phase"]))
    built: set[str] = set()
    for e in events.get("build", ()):
        if not e["cached"]:
            found[""].append((e["started"], e["ended"], "rerun" if e["tree"] in built else "build"))
            built.add(e["tree"])
    return found


def _beside(hold: Hold, e: Mapping[str, Any]) -> None:
    """Another task of the set that shared the slot."""
    hold.names += (e["task"],)
    if e.get("scope"):
        hold.scopes += (e["scope"],)
    hold.needs = [*hold.needs, *e.get("needs", ())]
    hold.end = max(hold.end, e["ended"])
    hold.then = e.get("then", hold.then)
    hold.short = min((each for each in (hold.short, e.get("short")) if each is not None), default=None)
    if e["ready"] >= hold.ready:
        hold.ready, hold.after = e["ready"], e.get("after")
    if hold.outcome != Outcome.OK and e["outcome"] != Outcome.CACHED:  # what one of them brought was worth the time
        hold.outcome = e["outcome"]


def _fill(hold: Hold, inside: Mapping[str, Sequence[tuple[float, float, str]]]) -> None:
    """Cut the time of a hold into pieces: of what is inside of what, the innermost counts."""
    start, end, outcome = hold.start, hold.end, hold.outcome
    plain = _phase(hold.kind, outcome)
    together = inside and hold.kind in _TOGETHER
    if not (hold.spans or together):
        hold.pieces = ((start, end, plain),)
        hold.worked = end - start
        return
    cuts: list[Stretch] = []
    places: list[Place] = []
    for kind, name, since, until in hold.spans:  # no max and min: of a long run, each takes as long as the rest
        since, until = since if since >= start else start, until if until <= end else end
        if kind in ("extra", "lent"):
            places.append((name, since, until, 1 if kind == "extra" else -1))
        else:
            cuts.append((since, until, What("wait", name) if kind == "wait" else _phase(name, outcome)))
    if together:
        for of in (*hold.scopes, *([""] if hold.kind in ("land", "gate") else ())):
            for since, until, phase in inside.get(of, ()):
                if start <= since < end:
                    cuts.append((since, min(until, end), _phase(phase, outcome)))
    hold.places = places
    hold.pieces = pieces = _nested(start, end, plain, cuts)
    hold.worked = sum([until - since for since, until, what in pieces if what.sort in _BUSY])


@functools.cache
def _phase(name: str, outcome: str) -> What:
    if name == "rerun":
        return What("rerun", "rerun")
    if name == account.BISECT:
        return What("recovery", name, "a scope that broke the run of several")
    if name == "repair":
        return What("recovery", name, outcome if outcome not in _WELL else "a check that failed")
    return What("useful", name) if outcome in _WELL else What("recovery", name, outcome)


def _nested(start: float, end: float, plain: What, cuts: Sequence[Stretch]) -> list[Stretch]:
    """Pieces without a gap: at each moment the cut that began last, of those that are open."""
    if len(cuts) == 1:  # nearly all
        ((since, until, what),) = cuts
        after = max(since, until)
        found: list[Stretch] = []
        if since > start:
            found.append((start, since, plain))
        if until > since:
            found.append((since, until, what))
        if end > after:
            found.append((after, end, plain))
        return found
    edges = sorted({start, end, *(edge for cut in cuts for edge in cut[:2])})
    pieces = []
    for left, right in itertools.pairwise(edges):
        over = [cut for cut in cuts if cut[0] <= left and cut[1] >= right]
        pieces.append((left, right, max(over, key=lambda cut: (cut[0], -cut[1]))[2] if over else plain))
    return pieces


class Stretches:
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
        """Seconds of them in a span."""
        first = bisect.bisect_right(self._starts, start)
        last = bisect.bisect_right(self._starts, end, first)
        if last == 0:
            return 0.0
        covered = self._before[last] - self._before[first]
        if first and (over := self._ends[first - 1] - start) > 0:
            covered += over
        if (over := self._ends[last - 1] - end) > 0:
            covered -= over
        return covered if covered > 0 else 0.0

    def between(self, start: float, end: float) -> Iterator[tuple[float, float]]:
        """Those that lie in a span, cut to it."""
        for i in range(bisect.bisect_right(self._ends, start), len(self._starts)):
            if self._starts[i] >= end:
                return
            yield max(start, self._starts[i]), min(end, self._ends[i])
