"""`doit plan --cost`: what the next run is likely to take: minutes, calls, tokens, money. From the ledger's history;
where that says nothing, from defaults, which are said. What is due is judged in due.py."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pipeline import filescopes, ledger, replay
from pipeline.generators.base import LIMIT
from pipeline.model import GATE, GENERATION, VALIDATION, Budget
from pipeline.replay import Unit
from pipeline.reports.plan import due
from pipeline.reports.tables import many
from pipeline.results import Outcome, Survivors, find
from pipeline.session import Session

SECONDS: Mapping[str, float] = {
    "baseline": 60.0, "search": 20.0, "validate": 30.0, "generate": 60.0, "land": 5.0, "confirm": 60.0,
    "draft": 300.0, "check": 60.0, "look": 60.0,
}  # fmt: skip
LEFT = 5.0  # survivors of a scope that search leaves
KILLED = 0.5  # of those that a round asks about
CALL, QUESTION = 2_000, 1_000  # tokens of a call, and of each question in it
DRAFT = 50_000  # tokens of a draft
NEVER = 0.5, 2.0  # spread of a default, as factors
RECENT = 5  # runs of a declared task that tell how long it takes


@attrs.frozen
class Spread:
    """An expectation, and where it is likely to lie: the 10th and the 90th percentile of what was seen."""

    low: float
    mean: float
    high: float

    def times(self, n: float) -> Spread:
        return Spread(self.low * n, self.mean * n, self.high * n)

    def by(self, other: Spread) -> Spread:
        return Spread(self.low * other.low, self.mean * other.mean, self.high * other.high)

    def plus(self, other: Spread) -> Spread:
        return Spread(self.low + other.low, self.mean + other.mean, self.high + other.high)


_NONE = Spread(0.0, 0.0, 0.0)
_MAYBE = Spread(0.0, 1.0, 1.0)


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
    tasks_due: int  # declared tasks
    tasks: Spread  # what those take, in whatever pool
    unknown: tuple[str, ...]  # those of them that no run has ended yet: how long they take is counted nowhere
    agents_due: int  # agents' tasks that have anything to do
    drafts: int  # calls for drafts, at most; in `calls` with the repairs that may follow
    at_most: int  # declared tasks and agents' tasks that are due only where what is before them comes out otherwise


def estimate(session: Session, capacity: Mapping[str, int]) -> Cost:
    history = _History(list(ledger.events(session.ledger_path)))
    sums = _Sums(history)
    tasks_due, unknown, maybe = _commands(session, history, sums)
    scopes_due = _scopes(session, history, sums)
    agents_due, drafts, maybe_more = _agents(session, history, sums)
    wall = replay.two_lanes(sums.units, capacity) if len(sums.units) < 3000 else replay.bound(sums.units, capacity)[0]
    return Cost(
        scopes_due, sums.engine, sums.lanes[VALIDATION], sums.lanes[GENERATION], sums.calls, sums.tokens, sums.cost,
        wall, tuple(history.guessed), tasks_due, sums.declared, unknown, agents_due, drafts, maybe + maybe_more,
    )  # fmt: skip


@attrs.define
class _Sums:
    history: _History
    lanes: dict[str, Spread] = attrs.field(factory=lambda: defaultdict(lambda: _NONE))
    engine: Spread = _NONE
    declared: Spread = _NONE
    calls: Spread = _NONE
    tokens: Spread = _NONE
    cost: Spread | None = _NONE
    units: list[Unit] = attrs.field(factory=list)
    last: dict[str, str] = attrs.field(factory=dict)  # declared task, or agent's -> the unit that ends it

    def work(self, unit: Unit, took: Spread) -> None:
        """A task that takes so many seconds."""
        unit.seconds = took.mean
        self.units.append(unit)
        self.lanes[unit.pool or ""] = self.lanes[unit.pool or ""].plus(took)

    def ask(self, sort: str, calls: Spread, tokens: Spread) -> None:
        self.calls, self.tokens = self.calls.plus(calls), self.tokens.plus(tokens)
        price = self.history.price(sort)
        if tokens.high:
            self.cost = None if price is None or self.cost is None else self.cost.plus(tokens.times(price))

    def ends_of(self, names: Sequence[str]) -> frozenset[str]:
        """Of those that are due, the units that end them."""
        return frozenset(self.last[name] for name in names if name in self.last)


def _commands(session: Session, history: _History, sums: _Sums) -> tuple[int, tuple[str, ...], int]:
    """How many are due, those of which nobody knows how long they take, and how many are due at most."""
    found, order, unknown = due.commands(session), filescopes.waits(session.plan.tasks), []
    sums.last.update((name, name) for name in found)
    for name, surely in found.items():
        task, took = session.tasks[name], history.took(name)
        if took is None:
            unknown.append(name)
            took = _NONE
        took = took if surely else took.by(_MAYBE)
        locks = filescopes.locks(task)
        unit = Unit(name, task.pool, 0.0, sums.ends_of(order[name]), "task", None, locks.reads, locks.writes)
        sums.work(unit, took)
        sums.declared = sums.declared.plus(took)
    return len(found), tuple(unknown), sum(not surely for surely in found.values())


def _scopes(session: Session, history: _History, sums: _Sums) -> int:
    """How many have anything to do."""
    left, killed = _yields(session, history)
    first, count = sums.ends_of(session.plan.engine.needs), 0
    for scope in session.plan.scopes:
        before, steps = first, list(due.of_scope(session, scope, left, killed))
        count += bool(steps)
        for step in steps:
            kind = step.kind
            lane = GENERATION if kind == "generate" else VALIDATION
            calls = math.ceil(step.asked / LIMIT) if kind == "generate" else 1
            took = history.seconds(kind).times(calls)
            sums.engine = sums.engine.plus(took) if kind in ("baseline", "confirm") else sums.engine
            if kind == "generate":
                sums.ask(kind, Spread(calls, calls, calls), history.tokens(calls, step.asked))
            name = f"{kind}:{scope.name}:{len(sums.units)}"
            sums.work(Unit(name, lane, 0.0, before, kind, scope.name), took)
            before = frozenset([name])
    return count


def _agents(session: Session, history: _History, sums: _Sums) -> tuple[int, int, int]:
    """How many have anything to do, how many drafts are asked for at most, and how many are due at most."""
    pools = {"draft": GENERATION, "land": GATE if session.plan.gate else VALIDATION}
    count = drafts = maybe = 0
    for task, steps in due.of_agents(session):
        before = sums.ends_of([*task.needs, *session.order.after[task.name]])
        count += 1
        maybe += not any(step.surely for step in steps)
        for step in steps:
            took = _NONE if step.kind == "draft" and not step.calls else history.seconds(step.kind)
            if step.kind == "draft":
                drafts += step.calls
                asked = Spread(float(step.surely), 1.0, 1.0).times(step.calls)
                took = took.by(asked)
                sums.ask("draft", asked, history.draft_tokens(step.calls).by(asked))
            elif step.kind == "land":  # what fails there, or failed in its check, is asked about once more
                again = Spread(0.0, history.repaired, 1.0)
                sums.ask("draft", again, history.draft_tokens(1).by(again))
            took = took if step.surely or step.kind == "draft" else took.by(_MAYBE)
            name = f"{step.kind}:{task.name}"
            sums.work(Unit(name, pools.get(step.kind, VALIDATION), 0.0, before, step.kind, task.name), took)
            before = frozenset([name])
        sums.last[task.name] = name
    return count, drafts, maybe


class _History:
    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.guessed: dict[str, None] = {}  # in words
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._took: dict[str, list[float]] = defaultdict(list)  # by declared task
        self._calls: dict[str, list[int]] = defaultdict(list)  # generate | draft -> tokens of each
        self._cost: dict[str, float] = defaultdict(float)  # the same -> USD
        drafts = repairs = 0
        for e in events:
            if e["event"] == "attempt" and e.get("lane") and e["outcome"] in (Outcome.OK, Outcome.NO_MUTANTS):
                seconds = (e["ended"] - e["started"]) * e.get("share", 1.0)
                if e.get("kind") == "task":
                    self._took[e["task"]].append(seconds)
                else:
                    self._seconds[str(e.get("kind"))].append(seconds)
            elif e["event"] == "call" and "round" in e:
                drafts += e.get("kind") == "draft"
                repairs += e.get("kind") == "repair"
                if (e.get("tokens") or {}).get("source") == "envelope":
                    sort, t = "generate" if e["round"] is not None else "draft", e["tokens"]
                    self._calls[sort].append(t["fresh_input"] + t["cache_write"] + t["output"])
                    self._cost[sort] += t.get("cost") or 0.0
        self.repaired = min(1.0, repairs / drafts) if drafts else 0.0  # of drafts

    def price(self, sort: str) -> float | None:
        """USD a token."""
        cost, tokens = self._cost[sort], sum(self._calls[sort])
        return cost / tokens if cost and tokens else None

    def took(self, task: str) -> Spread | None:
        """Of a declared task; None where none of its runs has ended well."""
        seen = self._took.get(task)
        return _spread(seen[-RECENT:]) if seen else None

    def seconds(self, kind: str) -> Spread:
        """Of one task of a kind; of one call where that is generate."""
        if seen := self._seconds.get(kind):
            return _spread(seen)
        taken = SECONDS[kind]
        self.guessed[f"{kind} {taken:.0f} s"] = None
        return Spread(taken * NEVER[0], taken, taken * NEVER[1])

    def tokens(self, calls: int, asked: float) -> Spread:
        """Of so many calls with so many questions."""
        if seen := self._calls.get("generate"):
            return _spread(seen).times(calls)
        self.guessed[f"{CALL:,} tokens a call and {QUESTION:,} a question"] = None
        taken = CALL * calls + QUESTION * asked
        return Spread(taken * NEVER[0], taken, taken * NEVER[1])

    def draft_tokens(self, calls: int) -> Spread:
        """Of one draft, or repair; nothing is guessed where no call is made."""
        if not calls:
            return _NONE
        if seen := self._calls.get("draft"):
            return _spread(seen)
        self.guessed[f"{DRAFT:,} tokens a draft"] = None
        return Spread(DRAFT * NEVER[0], DRAFT, DRAFT * NEVER[1])

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


def text(cost: Cost, capacity: Mapping[str, int], budget: Budget) -> str:
    named = [(cost.due, "scope", ""), (cost.tasks_due, "declared task", ""), (cost.agents_due, "task", " of agents")]
    work = [f"{many(n, what)}{more}" for n, what, more in named if n]
    if not work:
        return "nothing to do: no engine run, no call"
    has = "have" if sum(n for n, *_ in named) > 1 else "has"
    lanes = ", ".join(f"{lane} {slots}" for lane, slots in capacity.items())
    money = "not known: no envelope has said a cost yet" if cost.cost is None else _range(cost.cost, ".2f", " USD")
    calls = many(round(cost.calls.mean), "call")
    calls += f", at most {cost.calls.high:.0f}" if round(cost.calls.high) > round(cost.calls.mean) else ""
    rows = [
        f"{' and '.join(work)} {has} something to do; "
        "likely (and from the 10th to the 90th percentile of what was seen):",
        f"  by the clock  {_minutes(cost.wall)} at {lanes}, estimated in simulated time",
        f"  validation    {_range(cost.validation.times(1 / 60), '.1f', ' min')}, of that the engine "
        f"{_range(cost.engine.times(1 / 60), '.1f', ' min')}",
        f"  generation    {_range(cost.generation.times(1 / 60), '.1f', ' min')} with {calls}",
        f"  tokens        {_range(cost.tokens, ',.0f', '')}",
        f"  cost          {money}",
    ]
    if cost.tasks_due:
        rows.insert(2, f"  tasks         {_range(cost.tasks.times(1 / 60), '.1f', ' min')} of declared tasks, added up")
    over = [f"{budget.tokens:,} tokens"] if budget.tokens and cost.tokens.high > budget.tokens else []
    over += [f"{budget.cost:.2f} USD"] if budget.cost and cost.cost and cost.cost.high > budget.cost else []
    if over and cost.due:
        rows.append(
            f"  the budget    {' or '.join(over)}: then no further call is made, and what is left is not reached"
        )
    if cost.drafts:
        rows.append(
            f"at most {many(cost.drafts, 'draft')} of agents' tasks; each may be repaired once, by one more call"
        )
    if cost.at_most:
        rows.append(f"{cost.at_most} of them only where what comes before leaves other files than there are now")
    if cost.unknown:
        names = ", ".join(cost.unknown[:5]) + (f" and {len(cost.unknown) - 5} more" if len(cost.unknown) > 5 else "")
        rows.append(f"not known, and not counted: how long it takes, for no run has ended it well: {names}")
    if cost.guessed:
        rows.append(f"nothing is known yet of, and taken as: {'; '.join(cost.guessed)}; half to twice of that")
    return "\n".join(rows)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _range(spread: Spread, form: str, unit: str) -> str:
    return f"{spread.mean:{form}}{unit} ({spread.low:{form}} to {spread.high:{form}})"
