"""`doit plan --cost`: what the next run is likely to take: minutes, calls, tokens, money. From the ledger's history;
where that says nothing, from defaults, which are said."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from pipeline import ledger, replay
from pipeline.freshness import Freshness
from pipeline.generators.base import LIMIT
from pipeline.model import GENERATION, VALIDATION, Budget, Scope
from pipeline.replay import Unit
from pipeline.results import Candidates, Outcome, Survivors, find
from pipeline.session import Session

SECONDS: Mapping[str, float] = {
    "baseline": 60.0, "search": 20.0, "validate": 30.0, "generate": 60.0, "land": 5.0, "confirm": 60.0,
}  # fmt: skip
LEFT = 5.0  # survivors of a scope that search leaves
KILLED = 0.5  # of those that a round asks about
CALL, QUESTION = 2_000, 1_000  # tokens of a call, and of each question in it
NEVER = 0.5, 2.0  # spread of a default, as factors


@attrs.frozen
class Spread:
    """An expectation, and where it is likely to lie: the 10th and the 90th percentile of what was seen."""

    low: float
    mean: float
    high: float

    def times(self, n: float) -> Spread:
        return Spread(self.low * n, self.mean * n, self.high * n)

    def plus(self, other: Spread) -> Spread:
        return Spread(self.low + other.low, self.mean + other.mean, self.high + other.high)


_NONE = Spread(0.0, 0.0, 0.0)


@attrs.frozen
class Cost:
    """What a run is likely to take. Seconds, tokens as a budget counts them, USD."""

    due: int  # scopes that have anything to do
    engine: Spread  # baselines and confirms
    validation: Spread  # all of that lane, those included
    generation: Spread
    calls: Spread
    tokens: Spread
    cost: Spread | None  # None: no envelope has said a cost yet
    wall: float  # expected, in the order of the scheduler
    guessed: tuple[str, ...]  # what no run has told yet, and what was taken for it


def estimate(session: Session, capacity: Mapping[str, int]) -> Cost:
    history = _History(list(ledger.events(session.ledger_path)))
    left, killed = _yields(session, history)
    lanes = {VALIDATION: _NONE, GENERATION: _NONE}
    engine = calls = tokens = _NONE
    units: list[Unit] = []
    due = 0
    for scope in session.plan.scopes:
        before: frozenset[str] = frozenset()
        steps = list(_due(session, scope, left, killed))
        due += bool(steps)
        for kind, asked in steps:
            lane = GENERATION if kind == "generate" else VALIDATION
            many = math.ceil(asked / LIMIT) if kind == "generate" else 1
            took = history.seconds(kind).times(many)
            lanes[lane] = lanes[lane].plus(took)
            engine = engine.plus(took) if kind in ("baseline", "confirm") else engine
            if kind == "generate":
                calls = calls.plus(Spread(many, many, many))
                tokens = tokens.plus(history.tokens(many, asked))
            name = f"{kind}:{scope.name}:{len(units)}"
            units.append(Unit(name, lane, took.mean, before, kind, scope.name))
            before = frozenset([name])
    money = None if history.price is None else tokens.times(history.price)
    wall = replay.two_lanes(units, capacity) if len(units) < 3000 else replay.bound(units, capacity)[0]
    guessed = tuple(history.guessed)
    return Cost(due, engine, lanes[VALIDATION], lanes[GENERATION], calls, tokens, money, wall, guessed)


class _History:
    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.guessed: dict[str, None] = {}  # in words
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._calls: list[int] = []
        cost = 0.0
        for e in events:
            if e["event"] == "attempt" and e.get("lane") and e["outcome"] in (Outcome.OK, Outcome.NO_MUTANTS):
                self._seconds[str(e.get("kind"))].append((e["ended"] - e["started"]) * e.get("share", 1.0))
            elif e["event"] == "call" and "round" in e and (e.get("tokens") or {}).get("source") == "envelope":
                t = e["tokens"]
                self._calls.append(t["fresh_input"] + t["cache_write"] + t["output"])
                cost += t.get("cost") or 0.0
        self.price = cost / sum(self._calls) if cost and self._calls else None  # USD a token

    def seconds(self, kind: str) -> Spread:
        """Of one task of a kind; of one call where that is generate."""
        if seen := self._seconds.get(kind):
            return _spread(seen)
        taken = SECONDS[kind]
        self.guessed[f"{kind} {taken:.0f} s"] = None
        return Spread(taken * NEVER[0], taken, taken * NEVER[1])

    def tokens(self, calls: int, asked: float) -> Spread:
        """Of so many calls with so many questions."""
        if self._calls:
            return _spread(self._calls).times(calls)
        self.guessed[f"{CALL:,} tokens a call and {QUESTION:,} a question"] = None
        taken = CALL * calls + QUESTION * asked
        return Spread(taken * NEVER[0], taken, taken * NEVER[1])

    def guess(self, what: str) -> None:
        self.guessed[what] = None


def _spread(seen: Sequence[float]) -> Spread:
    mean = statistics.fmean(seen)
    if len(seen) < 2:
        return Spread(mean, mean, mean)
    tenths = statistics.quantiles(seen, n=10, method="inclusive")
    return Spread(min(tenths[0], mean), mean, max(tenths[-1], mean))


def _yields(session: Session, history: _History) -> tuple[float, float]:
    """Survivors that search leaves of a scope, and which part of those asked about a round kills: by the targets."""
    if not session.plan.generate.last_round:
        return 0.0, 0.0
    after: dict[int, list[int]] = defaultdict(list)
    for scope in session.plan.scopes:
        for r in range(session.plan.generate.last_round + 1):
            if found := find(session.target(scope.name, f"survivors.{r}.json"), Survivors):
                after[r].append(len(found.survivors))
    left = statistics.fmean(after[0]) if after[0] else LEFT
    asked = sum(sum(after[r - 1]) for r in after if r and len(after[r]) == len(after[r - 1]))
    spared = sum(sum(after[r]) for r in after if r and len(after[r]) == len(after[r - 1]))
    if not after[0]:
        history.guess(f"{LEFT:.0f} survivors a scope after search")
    if not asked:
        history.guess(f"{KILLED:.0%} of what is asked about killed in a round")
    return left, 1 - spared / asked if asked else KILLED


def _due(session: Session, scope: Scope, left: float, killed: float) -> Iterator[tuple[str, float]]:
    """Kinds of tasks that are due for a scope, in order; with generate, how many survivors it asks about."""
    fresh = Freshness(session)
    all_of_it = not fresh.baseline(scope)
    if all_of_it:
        yield "baseline", 0.0
    asking = left
    for r in range(session.plan.generate.last_round + 1):
        kind = "generate" if r else "search"
        known = None if all_of_it else find(session.target(scope.name, f"survivors.{r}.json"), Survivors)
        if all_of_it or not fresh.ended_well(scope, f"candidates.{r}.json", Candidates):
            if r == 0 or asking >= 0.5:
                yield kind, asking if r else 0.0
            all_of_it = True
        if all_of_it or not fresh.validated(scope, r):
            yield "validate", 0.0
            all_of_it = True
        asking = len(known.survivors) if known else asking * (1 - killed) if r else left
    if all_of_it or not fresh.landed(scope):
        yield "land", 0.0
        yield "confirm", 0.0


def text(cost: Cost, capacity: Mapping[str, int], budget: Budget) -> str:
    if not cost.due:
        return "nothing to do: no engine run, no call"
    lanes = ", ".join(f"{lane} {slots}" for lane, slots in capacity.items())
    money = "not known: no envelope has said a cost yet" if cost.cost is None else _range(cost.cost, ".2f", " USD")
    rows = [
        f"{cost.due} scopes have something to do; likely (and from the 10th to the 90th percentile of what was seen):",
        f"  by the clock  {_minutes(cost.wall)} at {lanes}, estimated in simulated time",
        f"  validation    {_range(cost.validation.times(1 / 60), '.1f', ' min')}, of that the engine "
        f"{_range(cost.engine.times(1 / 60), '.1f', ' min')}",
        f"  generation    {_range(cost.generation.times(1 / 60), '.1f', ' min')} with {cost.calls.mean:.0f} calls",
        f"  tokens        {_range(cost.tokens, ',.0f', '')}",
        f"  cost          {money}",
    ]
    over = [f"{budget.tokens:,} tokens"] if budget.tokens and cost.tokens.high > budget.tokens else []
    over += [f"{budget.cost:.2f} USD"] if budget.cost and cost.cost and cost.cost.high > budget.cost else []
    if over:
        rows.append(
            f"  the budget    {' or '.join(over)}: then no further call is made, and what is left is not reached"
        )
    if cost.guessed:
        rows.append(f"nothing is known yet of, and taken as: {'; '.join(cost.guessed)}; half to twice of that")
    return "\n".join(rows)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _range(spread: Spread, form: str, unit: str) -> str:
    return f"{spread.mean:{form}}{unit} ({spread.low:{form}} to {spread.high:{form}})"
