"""What a run's events come to, as values: every report shows these, and computes none of its own. Pure.

A figure is measured; or estimated, and `how` says by what method; or None, which is shown as `not measured`.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

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


@attrs.define  # a long run has 100,000 of them, and a frozen one takes three times as long to make
class Row:
    """Seconds of one thing that slots, or a scope, did or waited for."""

    sort: str  # useful, recovery, rerun, wait, idle
    label: str
    cause: str
    seconds: float


@attrs.frozen
class Lane:
    name: str
    slots: int
    seconds: float  # slots × wall clock; the rows sum to it
    rows: tuple[Row, ...]  # the most first


@attrs.define(eq=False)
class Spent:
    """What the calls of one scope, round and model cost, by the providers' envelopes."""

    scope: str
    round: int | None
    model: str | None
    calls: int
    seconds: float  # of the calls, added up
    fresh_input: int | None  # tokens; None where the envelope of any call did not say it
    cache_write: int | None
    cache_read: int | None
    output: int | None
    cost: float | None  # USD
    kills: int  # of that scope and round
    nothing_for: str  # why these tokens bought nothing; "" where they bought a kill

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
    """Of generation and of validation. Waits are in neither."""

    g: float  # seconds of calls to models
    v: float  # seconds of the engine's runs, audits, proofs, builds and landings
    spread: tuple[float, float, float] | None  # of f by scope and round: least, median, most

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

    took: float  # from the first start to the last end, in seconds
    bound: float  # no order is faster; estimated from the durations that were recorded
    bound_by: str
    replays: Mapping[str, float]  # policy -> seconds, estimated: simulated with the recorded durations
    how: str = HOW


@attrs.frozen
class Figures:
    run: str
    start: float  # seconds since the epoch
    end: float
    killed: bool  # nobody wrote that it ended
    in_flight: int  # tasks that asked a model and had no end when it was killed: what they cost is in no figure here
    lanes: tuple[Lane, ...]
    scopes: Mapping[str, tuple[Row, ...]]  # each sums to the wall clock
    together: Mapping[str, float]  # the lanes that worked at once, joined by " + " -> seconds
    agents: float  # seconds of agents and models at work, all of them added up
    spent: tuple[Spent, ...]
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
    killed = "run-ended" not in events
    in_flight = sum(hold.outcome == NO_END and hold.kind in _ASKING for hold in found.holds) if killed else 0
    busy = sum(row.seconds for lane in lanes if lane.name == GENERATION for row in lane.rows if _worked(row))
    return Figures(
        run, found.start, found.end, killed, in_flight, lanes, scopes, together, busy,
        spent, share, _verdict(found, replayed),
    )  # fmt: skip


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
    work = work_of(found)
    return replay.two_lanes(work, {**found.lanes, **lanes}), replay.two_lanes(work, found.lanes)
