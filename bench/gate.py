"""What a draft costs in builds that lands through the batch gate: thousands of plans, judged as pipeline/gate.py says.

`python -m bench gate` prints the table of docs/gate.md. A build is a judgement: nothing is built here, and the gate
is the one that runs. Two others judge the same plans: one draft after another, and batches that are cut in halves as
merge bots do it (a red batch is two batches, one after the other; a red draft alone is out).
"""

from __future__ import annotations

import random
import statistics
from collections import deque
from collections.abc import Callable, Sequence

import attrs

from pipeline.gate import Build, Gate, Land, Park, Stack, Verdict, observed
from pipeline.model import LARGEST

PLANS, DRAFTS = 1_000, 60
SEED = 1
RATES = (
    (0.0, 0.0),
    (0.02, 0.0),
    (0.05, 0.0),
    (0.1, 0.0),
    (0.2, 0.0),
    (0.3, 0.0),
    (0.0, 0.05),
    (0.05, 0.05),
    (0.2, 0.05),
)
# the second: of drafts that fail together with one of the four before them, and not alone
ASKED = {0.0: 0.25, 0.05: 0.6, 0.2: 1.1}  # builds per landed draft at N = 5


@attrs.define
class Plan:
    """Drafts by number, in landing order; who is guilty, and who fails with whom."""

    guilty: frozenset[int]
    pairs: frozenset[tuple[int, int]]
    built: int = 0
    landed: list[int] = attrs.field(factory=list)
    parked: set[int] = attrs.field(factory=set)

    def green(self, stack: Sequence[int]) -> bool:
        self.built += 1
        there = {*self.landed, *stack}
        return not (there & self.guilty) and not any(a in there and b in there for a, b in self.pairs)


def plan(chance: random.Random, rate: float, pairs: float) -> Plan:
    guilty = frozenset(d for d in range(DRAFTS) if chance.random() < rate)
    rest = [d for d in range(DRAFTS) if d not in guilty]
    both = ((rest[max(0, at - chance.randint(1, 4))], d) for at, d in enumerate(rest) if at and chance.random() < pairs)
    return Plan(guilty, frozenset(both))


def gated(its: Plan, most: int) -> None:
    """By the gate, which learns the rate of guilty drafts from this plan alone."""
    gate = Gate(most, waiting=[str(d) for d in range(DRAFTS)])
    while (what := gate.next()) is not None:
        if isinstance(what, Build):
            gate.built(what.stack, Verdict.GREEN if its.green(numbers(what.stack)) else Verdict.RED)
        elif isinstance(what, Land):
            its.landed += numbers(what.stack)
            gate.landed(what.stack)
        elif isinstance(what, Park):
            its.parked.add(int(what.draft))
            gate.gone(what.draft)
        else:
            raise AssertionError("the branch was green")
        gate.rate = observed(len(its.parked), len(its.parked) + len(its.landed))


def numbers(stack: Stack) -> list[int]:
    return [int(draft) for draft in stack]


def one_by_one(its: Plan) -> None:
    for draft in range(DRAFTS):
        if its.green([draft]):
            its.landed.append(draft)
        else:
            its.parked.add(draft)


def halves(its: Plan, size: int) -> None:
    batches = deque(range(at, min(at + size, DRAFTS)) for at in range(0, DRAFTS, size))
    while batches:
        batch = batches.popleft()
        if its.green(batch):
            its.landed += batch
        elif len(batch) == 1:
            its.parked.add(batch[0])
        else:
            middle = len(batch) // 2
            batches.extendleft([batch[middle:], batch[:middle]])


WAYS: dict[str, Callable[[Plan], None]] = {
    "gate, N = 5": lambda its: gated(its, 5),
    "gate, auto": lambda its: gated(its, LARGEST),
    "one by one": one_by_one,
    "halves, N = 5": lambda its: halves(its, 5),
}


def table() -> None:
    """For each rate and way: builds per landed draft over all plans together, and of nineteen plans in twenty."""
    print(f"{PLANS:,} plans of {DRAFTS} drafts that wait together, seed {SEED}: builds per landed draft")
    print(f"| guilty | pairs | {' | '.join(WAYS)} | asked at N = 5 |")
    print("|---|---|" + "---|" * (len(WAYS) + 1))
    for rate, pairs in RATES:
        cells = []
        for way in WAYS.values():
            chance = random.Random(SEED)
            plans = [plan(chance, rate, pairs) for _ in range(PLANS)]
            for its in plans:
                way(its)
                assert len(its.landed) + len(its.parked) == DRAFTS
            mean = sum(its.built for its in plans) / sum(len(its.landed) for its in plans)
            each = statistics.quantiles([its.built / max(1, len(its.landed)) for its in plans], n=20)
            cells.append(f"{mean:.2f} ({each[0]:.2f} to {each[-1]:.2f})")
        asked = f"{ASKED[rate]}" if rate in ASKED and not pairs else ""
        print(f"| {rate:.0%} | {pairs:.0%} | {' | '.join(cells)} | {asked} |", flush=True)
