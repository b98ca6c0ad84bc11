"""What a run's events come to, as values: every report shows these, and computes none of its own. Pure.

A figure is measured; or estimated, and `how` says by what method; or None, which is shown as `not measured`.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from pipeline import replay, timeline
from pipeline.holds import What
from pipeline.model import GENERATION, VALIDATION
from pipeline.results import Outcome
from pipeline.timeline import Timeline

THRESHOLD = 0.35  # of f, from which on two lanes are worth having
FIRST_COME = "two lanes, first come"
HOW = "recorded durations in simulated time, a batch as one piece of work"
MOST_REPLAYED = 1000  # tasks; the cost grows with the square: 1.7 s of CPU for 980
Event = Mapping[str, Any]


@attrs.frozen
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


@attrs.frozen
class Spent:
    """What the calls of one scope, round and model cost, by the providers' envelopes."""

    scope: str
    round: int | None
    model: str | None
    calls: int
    fresh_input: int
    cache_write: int
    cache_read: int
    output: int
    cost: float | None  # USD
    measured: bool  # whether the envelopes of all calls said it
    kills: int  # of that scope and round
    nothing_for: str  # why these tokens bought nothing; "" where they bought a kill

    @property
    def tokens(self) -> int:
        """What is paid in full: a cache's read is not."""
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


def of(events: Sequence[Event]) -> tuple[Figures, Timeline] | None:
    """The figures of one run's events, None where none of its tasks ran in a lane."""
    with _no_collection():
        return _of(events)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Of a long ledger much is made that stays: Python's collector would look through all of it again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _of(events: Sequence[Event]) -> tuple[Figures, Timeline] | None:
    found = timeline.of(events)
    if found is None:
        return None
    lanes = tuple(
        Lane(lane, slots, slots * found.wall, _rows(found.slots[lane])) for lane, slots in found.lanes.items()
    )
    scopes: dict[str, tuple[Row, ...]] = {}
    for scope, pieces in found.scopes.items():
        sums: dict[What, float] = defaultdict(float)
        for piece in pieces:
            sums[piece.what] += piece.seconds
        scopes[scope] = _rows(sums)
    together = {" + ".join(working) or "none": seconds for working, seconds in found.together.items()}
    killed = not any(e["event"] == "run-ended" for e in events)
    busy = sum(row.seconds for lane in lanes if lane.name == GENERATION for row in lane.rows if _worked(row))
    run = str(events[0].get("run", ""))
    figures = Figures(
        run,
        found.start,
        found.end,
        killed,
        lanes,
        scopes,
        together,
        busy,
        _spent(events),
        shares(events, found),
        _verdict(events, found),
    )
    return figures, found


def _worked(row: Row) -> bool:
    return row.sort in ("useful", "recovery", "rerun")


def _rows(sums: Mapping[What, float]) -> tuple[Row, ...]:
    rows = [Row(what.sort, what.label, what.cause, seconds) for what, seconds in sums.items() if seconds > 0]
    return tuple(sorted(rows, key=lambda row: (-row.seconds, row.label, row.cause)))


# -- tokens


def _spent(events: Sequence[Event]) -> tuple[Spent, ...]:
    kills: Counter[tuple[str, int | None]] = Counter()
    dropped: dict[tuple[str, int | None], Counter[str]] = defaultdict(Counter)
    for e in events:
        if e["event"] == "attempt" and e.get("kind") == "validate" and e.get("killed"):
            kills[e["scope"], e.get("round")] += e["killed"]
        elif e["event"] == "candidate-dropped":
            dropped[e["scope"], e.get("round")][e["outcome"]] += 1
    calls: dict[tuple[str, int | None, str | None], list[Event]] = defaultdict(list)
    for e in events:
        if e["event"] == "call":
            calls[e["scope"], e.get("round"), e.get("model")].append(e)
    found = []
    for (scope, round_, model), made in sorted(calls.items(), key=lambda item: (item[0][0], str(item[0][1:]))):
        envelopes = [e.get("tokens") or {} for e in made]
        fresh, write, read, output = (sum(t.get(name, 0) for t in envelopes) for name in _TOKENS)
        costs = [t.get("cost") for t in envelopes]
        key = scope, round_
        cost = None if None in costs else sum(c for c in costs if c is not None)
        measured = all(t.get("source") == "envelope" for t in envelopes)
        why = _nothing(made, kills[key], dropped[key])
        found.append(
            Spent(scope, round_, model, len(made), fresh, write, read, output, cost, measured, kills[key], why)
        )
    return tuple(found)


_TOKENS = ("fresh_input", "cache_write", "cache_read", "output")


def _nothing(made: Sequence[Event], kills: int, dropped: Counter[str]) -> str:
    """Why calls bought nothing; "" where they did, and where what they bought is no kill: an agent's draft."""
    failed = Counter(e["outcome"] for e in made if e["outcome"] != Outcome.OK)
    if failed.total() == len(made):
        return f"the calls ended as {', '.join(sorted(failed))}"
    if kills or made[0].get("round") is None:
        return ""
    if dropped:
        return f"the candidates were dropped: {', '.join(f'{n} {outcome}' for outcome, n in dropped.most_common())}"
    return "no candidate came of them"


# -- the verdict on lanes


def shares(events: Sequence[Event], found: Timeline) -> Shares:
    calls = [e for e in events if e["event"] == "call" and e.get("started")]
    work = [piece for hold in found.holds if hold.lane != GENERATION for piece in hold.pieces if piece.what.busy]
    g, v = sum(e["ended"] - e["started"] for e in calls), sum(piece.seconds for piece in work)
    return Shares(g, v, _spread(calls, found))


def _verdict(events: Sequence[Event], found: Timeline) -> Verdict:
    work = work_of(events, found)
    took = max(hold.end for hold in found.holds) - min(hold.start for hold in found.holds)
    bound, by = replay.bound(work, found.lanes)
    two = any(hold.lane == GENERATION for hold in found.holds)
    return Verdict(took, bound, by, replays(work, found.lanes) if two else {})


def work_of(events: Sequence[Event], found: Timeline) -> list[replay.Unit]:
    groups = {e["task"]: e.get("needs", ()) for e in events if e["event"] == "attempt" and e.get("kind") == "group"}
    return replay.units(found.holds, groups)


def _spread(calls: Sequence[Event], found: Timeline) -> tuple[float, float, float] | None:
    generated: dict[tuple[str, int], float] = defaultdict(float)
    for e in calls:
        if e.get("round") is not None:
            generated[e["scope"], e["round"]] += e["ended"] - e["started"]
    validated = {
        name: sum(piece.seconds for piece in hold.pieces if piece.what.busy)
        for hold in found.holds
        if hold.kind == "validate"
        for name in hold.names
    }
    each = [
        g / (g + v) for (scope, n), g in generated.items() if (v := validated.get(f"validate:{scope}:{n}", 0.0)) and g
    ]
    return (min(each), statistics.median(each), max(each)) if each else None


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


def what_if(events: Sequence[Event], lanes: Mapping[str, int]) -> tuple[float, float] | None:
    """What the recorded work would take with these caps, and with those that it had: seconds, estimated. None where
    nothing ran."""
    found = timeline.of(events)
    if found is None:
        return None
    work = work_of(events, found)
    return replay.two_lanes(work, {**found.lanes, **lanes}), replay.two_lanes(work, found.lanes)
