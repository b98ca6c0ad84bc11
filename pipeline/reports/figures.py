"""What a run's events come to, as values: every report shows these, and computes none of its own. Pure.

A figure is measured; or estimated, and `how` says by what method; or None, which is shown as `not measured`.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import attrs

from pipeline import replay, timeline
from pipeline.holds import NO_END, What
from pipeline.ledger import ByEvent, Event
from pipeline.model import GENERATION, VALIDATION
from pipeline.results import Outcome
from pipeline.timeline import Timeline

THRESHOLD = 0.35  # of f, from which on two lanes are worth having
_COUNTS = ("fresh_input", "cache_write", "cache_read", "output")
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


@attrs.define
class Spent:
    """What the calls of one scope, round and model cost, by the providers' envelopes."""

    scope: str
    round: int | None
    model: str | None
    calls: int
    fresh_input: int | None  # tokens; None where the envelope of any call did not say it
    cache_write: int | None
    cache_read: int | None
    output: int | None
    cost: float | None  # USD
    kills: int  # of that scope and round
    nothing_for: str  # why these tokens bought nothing; "" where they bought a kill

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


def of(events: ByEvent, found: Timeline, share: Shares, replayed: bool = True, run: str = "") -> Figures:
    """The figures of one run's events, of its timeline and its shares. replayed: whether what the work would have taken
    in other orders is asked for."""
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
    in_flight = sum(hold.outcome == NO_END and hold.kind in _ASKING for hold in found.holds)
    busy = sum(row.seconds for lane in lanes if lane.name == GENERATION for row in lane.rows if _worked(row))
    return Figures(
        run, found.start, found.end, killed, in_flight, lanes, scopes, together, busy, _spent(events), share,
        _verdict(events, found, replayed),
    )  # fmt: skip


def _worked(row: Row) -> bool:
    return row.sort in ("useful", "recovery", "rerun")


def _rows(sums: Mapping[What, float]) -> tuple[Row, ...]:
    ordered = sorted([(-seconds, what.label, what.cause, what.sort) for what, seconds in sums.items() if seconds > 0])
    return tuple([Row(sort, label, cause, -seconds) for seconds, label, cause, sort in ordered])


# -- tokens


def paid(call: Event) -> int | None:
    """Tokens of one call: fresh input, cache write and output. None where no envelope says it."""
    told = call.get("tokens") or {}
    if told.get("source") != "envelope":
        return None
    return int(told["fresh_input"] + told["cache_write"] + told["output"])


def _spent(events: ByEvent) -> tuple[Spent, ...]:
    kills: Counter[tuple[str, int | None]] = Counter()
    dropped: dict[tuple[str, int | None], Counter[str]] = defaultdict(Counter)
    found: dict[tuple[str, int | None, str | None], Spent] = {}
    failed: dict[tuple[str, int | None, str | None], list[str]] = defaultdict(list)
    well = str(Outcome.OK)
    by_key: dict[tuple[str, int | None, str | None], list[Event]] = defaultdict(list)
    for e in events.get("call", ()):
        by_key[e["scope"], e.get("round"), e.get("model")].append(e)
    for key, calls in by_key.items():
        failed[key] = [e["outcome"] for e in calls if e["outcome"] != well]
        told = [e.get("tokens") or {} for e in calls]
        costs: list[float] = [each["cost"] for each in told if each.get("cost") is not None]
        cost = math.fsum(costs) if len(costs) == len(told) else None
        said = all(each.get("source") == "envelope" for each in told)
        fresh, write, read, out = (sum(each.get(name, 0) for each in told) if said else None for name in _COUNTS)
        found[key] = Spent(*key, len(calls), fresh, write, read, out, cost, 0, "")
    for e in events.get("candidate-dropped", ()):
        dropped[e["scope"], e.get("round")][e["outcome"]] += 1
    for e in events.get("attempt", ()):
        if e.get("killed") and e.get("kind") == "validate":
            kills[e["scope"], e.get("round")] += e["killed"]
    for key, spent in found.items():
        spent.kills = kills.get(key[:2], 0)
        spent.nothing_for = _nothing(spent, failed.get(key, ()), dropped.get(key[:2], Counter()))
    return tuple([found[key] for key in sorted(found, key=lambda key: (key[0], key[1] or 0, key[2] or ""))])


def _nothing(spent: Spent, failed: Sequence[str], dropped: Counter[str]) -> str:
    """Why calls bought nothing; "" where they did, and where what they bought is no kill: an agent's draft."""
    if len(failed) == spent.calls:
        return f"the calls ended as {', '.join(sorted(set(failed)))}"
    if spent.kills or spent.round is None:
        return ""
    if dropped:
        return f"the candidates were dropped: {', '.join(f'{n} {outcome}' for outcome, n in dropped.most_common())}"
    return "no candidate came of them"


# -- the verdict on lanes


def shares(events: ByEvent, found: Timeline) -> Shares:
    g, rounds = 0.0, dict[tuple[str, int], float]()
    for e in events.get("call", ()):
        if e.get("started"):
            took = e["ended"] - e["started"]
            g += took
            if (round_ := e.get("round")) is not None:
                rounds[e["scope"], round_] = rounds.get((e["scope"], round_), 0.0) + took
    v, validated = 0.0, dict[str, float]()
    for hold in found.holds:
        if hold.lane != GENERATION:
            v += hold.worked
        if hold.kind == "validate":
            validated.update(dict.fromkeys(hold.names, hold.worked))
    each = [
        took / (took + after)
        for (scope, n), took in rounds.items()
        if took and (after := validated.get(f"validate:{scope}:{n}"))
    ]
    return Shares(g, v, (min(each), statistics.median(each), max(each)) if each else None)


def _verdict(events: ByEvent, found: Timeline, replayed: bool) -> Verdict:
    work = work_of(events, found)
    took = max(hold.end for hold in found.holds) - min(hold.start for hold in found.holds)
    bound, by = replay.bound(work, found.lanes)
    two = replayed and any(hold.lane == GENERATION for hold in found.holds)
    return Verdict(took, bound, by, replays(work, found.lanes) if two else {})


def work_of(events: ByEvent, found: Timeline) -> list[replay.Unit]:
    groups = {e["task"]: e.get("needs", ()) for e in events.get("attempt", ()) if e.get("kind") == "group"}
    return replay.units(found.holds, groups)


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
    work = work_of(events, found)
    return replay.two_lanes(work, {**found.lanes, **lanes}), replay.two_lanes(work, found.lanes)
