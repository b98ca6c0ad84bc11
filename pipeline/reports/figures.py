"""What a run's events come to, as values: every report shows these, and computes none of its own. Pure.

A figure is measured; or estimated, and `how` says by what method; or None, which is shown as `not measured`.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import attrs

from pipeline import replay, timeline
from pipeline.holds import NO_END, What
from pipeline.ledger import ByEvent, Event
from pipeline.model import GENERATION, VALIDATION
from pipeline.results import Outcome
from pipeline.timeline import Timeline

N = TypeVar("N", int, float)
THRESHOLD = 0.35  # of f, from which on two lanes are worth having
_ASKING = ("generate", "draft", "repair")  # kinds of tasks that ask a model
FIRST_COME = "two lanes, first come"
HOW = "recorded durations in simulated time, a batch as one piece of work"
MOST_REPLAYED = 1000  # tasks; the cost grows with the square: 1.7 s of CPU for 980


class Contradiction(ValueError):
    """Times of events that cannot all be so: what is summed up from them is not the time by the clock."""


@attrs.define  # a long run has 100,000 of them, and a frozen one takes three times as long to make
class Row:
    """Seconds of one thing that slots, or a scope, did or waited for."""

    sort: Annotated[str, "useful, recovery, rerun, wait, idle"]
    label: Annotated[str, "A phase; of a wait what for; of what is idle why"]
    cause: Annotated[str, "Of recovery the outcome; of a wait the task, the path or the like by name; else empty"]
    seconds: Annotated[float, "Slot-seconds in a lane; seconds by the clock of a scope"]


@attrs.frozen
class Lane:
    """What the slots of one lane did, and what they waited for."""

    name: str
    slots: Annotated[int, "How many it had"]
    seconds: Annotated[float, "Slots × the wall clock; the rows sum to it"]
    rows: Annotated[tuple[Row, ...], "The most seconds first"]


@attrs.define(eq=False)
class Spent:
    """What the calls of one scope, round and model cost, by the providers' envelopes."""

    scope: Annotated[str, "Or the task of an agent"]
    round: Annotated[int | None, "null: of an agent's task"]
    model: Annotated[str | None, "null where nothing told it"]
    calls: Annotated[int, "Those that failed too"]
    seconds: Annotated[float, "Of the calls, added up"]
    fresh_input: Annotated[int | None, "Tokens; null, as the other counts, where the envelope of any call did not say"]
    cache_write: Annotated[int | None, "Tokens of input that were put into the provider's cache"]
    cache_read: Annotated[int | None, "Tokens of input that came out of it"]
    output: Annotated[int | None, "Tokens"]
    cost: Annotated[float | None, "USD; null where the envelope of any call did not say"]
    kills: Annotated[int, "Mutants that the tests of that scope and round kill, whatever model wrote them"]
    nothing_for: Annotated[str, "Why these tokens bought nothing; empty where they bought a kill, or an agent's draft"]

    def add(self, call: Event) -> None:
        """One more call, by its envelope."""
        told: Mapping[str, Any] = call.get("tokens") or {}
        self.calls += 1
        if began := call.get("started"):
            self.seconds += call["ended"] - began
        said = told.get("source") == "envelope"
        self.fresh_input = _plus(self.fresh_input, told.get("fresh_input", 0) if said else None)
        self.cache_write = _plus(self.cache_write, told.get("cache_write", 0) if said else None)
        self.cache_read = _plus(self.cache_read, told.get("cache_read", 0) if said else None)
        self.output = _plus(self.output, told.get("output", 0) if said else None)
        self.cost = _plus(self.cost, told.get("cost"))

    @property
    def measured(self) -> bool:
        return self.fresh_input is not None

    @property
    def tokens(self) -> int | None:
        """What is paid in full: a cache's read is not."""
        if self.fresh_input is None or self.cache_write is None or self.output is None:
            return None
        return self.fresh_input + self.cache_write + self.output


@attrs.frozen
class Shares:
    """Of generation and of validation. Waits are in neither. f = g / (g + v)."""

    g: Annotated[float, "Seconds of calls to models"]
    v: Annotated[float, "Seconds of the engine's runs, audits, proofs, builds and landings"]
    spread: Annotated[
        tuple[float, float, float] | None,
        "Least, median and most f of the rounds that asked a model; null where none did and was validated",
    ]

    @property
    def f(self) -> float | None:
        return self.g / (self.g + self.v) if self.g > 0 and self.v > 0 else None

    @property
    def ceiling(self) -> float | None:
        """The most that two lanes can gain, as a factor."""
        return None if self.f is None else 1 / (1 - self.f)


@attrs.frozen
class Verdict:
    """What the two lanes, and their order, were worth."""

    took: Annotated[float, "Seconds from the first task's start to the last one's end"]
    bound: Annotated[float, "Seconds: no order is faster; estimated from the durations that were recorded"]
    bound_by: Annotated[str, "Which of the bounds that is: the critical path, the work of a lane, what writes a path"]
    replays: Annotated[
        Mapping[str, float],
        "Order -> seconds that the same work takes in it, estimated; empty where that was not asked",
    ]
    how: Annotated[str, "By what method the replays are estimated"] = HOW


@attrs.frozen
class Figures:
    run: str
    start: Annotated[float, "Seconds since the epoch"]
    end: Annotated[float, "Seconds since the epoch: of a run that was killed or goes on, its last event"]
    killed: Annotated[bool, "Nobody wrote that it ended: it was killed, or is running"]
    in_flight: Annotated[
        int, "Tasks that asked a model and had no end when it was killed: what they cost is in no figure here"
    ]
    lanes: tuple[Lane, ...]
    scopes: Annotated[Mapping[str, tuple[Row, ...]], "Scope -> rows that sum to the wall clock"]
    together: Annotated[
        Mapping[str, float],
        'The lanes that worked at once, joined by " + ", or none -> seconds; they sum to the wall clock',
    ]
    agents: Annotated[float, "Seconds of agents and models at work, all of them added up"]
    spent: Annotated[tuple[Spent, ...], "By scope, round and model"]
    shares: Shares
    verdict: Verdict

    @property
    def wall(self) -> float:
        return self.end - self.start


def of(
    events: ByEvent, found: Timeline, spent: tuple[Spent, ...], share: Shares, replayed: bool = True, run: str = ""
) -> Figures:
    """The figures of one run's events, its timeline, what was spent, and its shares. replayed: whether what the work
    would have taken in other orders is asked for."""
    lanes = tuple(
        Lane(lane, slots, slots * found.wall, _rows(found.slots[lane])) for lane, slots in found.lanes.items()
    )
    scopes: dict[str, tuple[Row, ...]] = {}
    for scope, course in found.courses.items():
        sums: dict[What, float] = defaultdict(float)
        for start, end, what in course:
            sums[what] += end - start
        scopes[scope] = _rows(sums)
    together = {" + ".join(working) or "none": seconds for working, seconds in found.together.items()}
    _agree(events, found, scopes)
    killed = "run-ended" not in events
    in_flight = sum(hold.outcome == NO_END and hold.kind in _ASKING for hold in found.holds) if killed else 0
    busy = sum(row.seconds for lane in lanes if lane.name == GENERATION for row in lane.rows if _worked(row))
    return Figures(
        run, found.start, found.end, killed, in_flight, lanes, scopes, together, busy,
        spent, share, _verdict(found, replayed),
    )  # fmt: skip


def _agree(events: ByEvent, found: Timeline, scopes: Mapping[str, Sequence[Row]]) -> None:
    """Raises Contradiction where a sum is off by more than a millisecond an event."""
    sums = {lane: sum(did.values()) / found.lanes[lane] for lane, did in found.slots.items() if lane in found.lanes}
    sums |= {scope: sum([row.seconds for row in rows]) for scope, rows in scopes.items()}
    near = sum(map(len, events.values())) / 1000
    for name, seconds in (*sums.items(), ("all lanes", sum(found.together.values()))):
        if not abs(seconds - found.wall) <= near:
            run = next(iter(events.values()))[0]["run"]
            what = f"{name}: {seconds:.3f} s accounted for, and {found.wall:.3f} s by the clock"
            raise Contradiction(f"the times of the run {run} contradict each other ({what}); take its lines out")


def _worked(row: Row) -> bool:
    return row.sort in ("useful", "recovery", "rerun")


def _rows(sums: Mapping[What, float]) -> tuple[Row, ...]:
    ordered = sorted([(-seconds, what.label, what.cause, what.sort) for what, seconds in sums.items() if seconds > 0])
    return tuple([Row(sort, label, cause, -seconds) for seconds, label, cause, sort in ordered])


# -- tokens


def _plus(sum_: N | None, more: N | None) -> N | None:
    return None if sum_ is None or more is None else sum_ + more


def paid(call: Event) -> int | None:
    """Tokens of one call: fresh input, cache write and output. None where no envelope says it."""
    told = call.get("tokens") or {}
    if told.get("source") != "envelope":
        return None
    return int(told["fresh_input"] + told["cache_write"] + told["output"])


def spent(events: ByEvent, found: Timeline) -> tuple[Spent, ...]:
    """By scope, round and model."""
    kills = found.told.kills
    dropped: dict[tuple[str, int | None], Counter[str]] = defaultdict(Counter)
    for e in events.get("candidate-dropped", ()):
        dropped[e["scope"], e.get("round")][e["outcome"]] += 1
    said: dict[tuple[str, int | None, str | None], Spent] = {}
    failed: dict[Spent, list[str]] = defaultdict(list)
    well = str(Outcome.OK)
    for e in events.get("call", ()):
        scope, round_, model = key = e["scope"], e.get("round"), e.get("model")
        if (of := said.get(key)) is None:
            of = said[key] = Spent(scope, round_, model, 0, 0.0, 0, 0, 0, 0, 0.0, kills.get((scope, round_), 0), "")
        of.add(e)
        if e["outcome"] != well:
            failed[of].append(e["outcome"])
    for of in said.values():
        of.nothing_for = _nothing(of, failed.get(of, ()), dropped.get((of.scope, of.round)))
    return tuple(sorted(said.values(), key=lambda of: (of.scope, of.round or 0, of.model or "")))


def _nothing(spent: Spent, failed: Sequence[str], dropped: Counter[str] | None) -> str:
    """Why calls bought nothing; "" where they did, and where what they bought is no kill: an agent's draft."""
    if len(failed) == spent.calls:
        return f"the calls ended as {', '.join(sorted(set(failed)))}"
    if spent.kills or spent.round is None:
        return ""
    if dropped:
        return f"the candidates were dropped: {', '.join(f'{n} {outcome}' for outcome, n in dropped.most_common())}"
    return "no candidate came of them"


# -- the verdict on lanes


def shares(spent: Sequence[Spent], found: Timeline) -> Shares:
    rounds: dict[tuple[str, int], float] = defaultdict(float)
    for calls in spent:
        if calls.round is not None:
            rounds[calls.scope, calls.round] += calls.seconds
    g = sum([calls.seconds for calls in spent], 0.0)
    v, validated = 0.0, dict[str, float]()
    for hold in found.holds:
        if hold.lane != GENERATION:
            v += hold.worked
        if hold.kind == "validate":
            for name in hold.names:
                validated[name] = hold.worked
    each = sorted(
        took / (took + after)
        for (scope, n), took in rounds.items()
        if took and (after := validated.get(f"validate:{scope}:{n}"))
    )
    return Shares(g, v, (each[0], statistics.median(each), each[-1]) if each else None)


def _verdict(found: Timeline, replayed: bool) -> Verdict:
    work = work_of(found)
    took = max([hold.end for hold in found.holds]) - found.holds[0].start
    bound, by = replay.bound(work, found.lanes)
    two = replayed and GENERATION in found.lanes
    return Verdict(took, bound, by, replays(work, found.lanes) if two else {})


def work_of(found: Timeline) -> list[replay.Unit]:
    return replay.units(found.holds, found.told.groups)


def replays(work: Sequence[replay.Unit], lanes: Mapping[str, int]) -> dict[str, float]:
    """What the same work would have taken under other orders, in seconds; {} where there is too much of it."""
    if len(work) > MOST_REPLAYED:
        return {}
    return {
        "two lanes, most work left first": replay.two_lanes(work, lanes),
        FIRST_COME: replay.first_come(work, lanes),
        "waves with barriers": replay.waves(work, lanes),
        f"coupled slots, {lanes.get(VALIDATION, 1)} of them": replay.coupled(work, lanes),
    }


def what_if(events: ByEvent, lanes: Mapping[str, int]) -> tuple[float, float] | None:
    """What the recorded work would take with these caps, and with those that it had: seconds, estimated. None where
    nothing ran."""
    if (found := timeline.of(events)) is None:
        return None
    _agree(events, found, {})
    work = work_of(found)
    return replay.two_lanes(work, {**found.lanes, **lanes}), replay.two_lanes(work, found.lanes)
