"""In which order ready tasks go: simulated drives in two lanes, by the scheduler itself (schedule.py, replay.py).

`python -m bench order` prints the table of docs/speed.md; `--pairs` is not asked. Every figure is a makespan divided by
what no order can beat: the longest chain, a lane's work by its slots, or the work of those that share a lock. Pure and
seeded: it is the same on every machine, however busy.

A drive: 24 scopes of unlike size, one to four rounds each (which the plan says), durations log-normal, a quarter of the
scopes in groups of three that write one file; 4 slots of validation, 8 of generation. f: generation's share of a round.
"""

from __future__ import annotations

import random
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from bench.measuring import Row, doit, run
from pipeline import ledger, replay, timeline
from pipeline.model import GENERATION, VALIDATION
from pipeline.priorities import Priorities, Work
from pipeline.replay import Unit
from pipeline.reports import figures

CAPACITY = {VALIDATION: 4, GENERATION: 8}
SHARES = (0.1, 0.35, 0.5, 0.7)
SEEDS, MANY = 300, 1000


def drive(seed: int, share: float) -> list[Unit]:
    chance = random.Random(seed)
    units = []
    for number in range(24):
        scope, size = f"s{number}", chance.lognormvariate(0, 0.5)
        lock = frozenset([f"hub{number % 2}"]) if number < 6 else frozenset[str]()
        before = ""
        for round_ in range(chance.randint(1, 4)):
            seconds = 60 * size * chance.lognormvariate(0, 0.5)
            for kind, pool, part, writes in (
                ("generate", GENERATION, share, frozenset[str]()),
                ("validate", VALIDATION, 1 - share, lock),
            ):
                name = f"{kind}:{scope}:{round_}"
                needs = frozenset({before} - {""})
                units.append(Unit(name, pool, seconds * part, needs, kind, scope, frozenset(), writes))
                before = name
    return units


class Knowing(Priorities):
    """Knows every duration to the second."""

    def cost(self, name: str) -> float:
        return self._prior.get(name, 0.0)


class Rounds(Priorities):
    """Knows that a scope has rounds left, and no duration."""

    def cost(self, name: str) -> float:
        return 1.0

    def _queue(self, name: str, cost: Callable[[str], float]) -> float:
        return 0.0


def known(kind: type[Priorities], work: Sequence[Unit]) -> Priorities:
    return kind(Work(u.name, tuple(u.needs), u.kind, u.scope, u.reads | u.writes, u.seconds, u.pool) for u in work)


def _by(make: Callable[[Sequence[Unit]], Priorities]) -> Callable[[Sequence[Unit], Mapping[str, int]], float]:
    def makespan(work: Sequence[Unit], capacity: Mapping[str, int]) -> float:
        return max(end for _, end in replay.simulated(work, capacity, make(work)).values())

    return makespan


POLICIES: dict[str, Callable[[Sequence[Unit], Mapping[str, int]], float]] = {
    "coupled slots": replay.coupled,
    "waves with barriers": replay.waves,
    "two lanes, first come": replay.first_come,
    "two lanes, most rounds left": _by(lambda work: known(Rounds, work)),
    "ours, nothing known at the start": replay.two_lanes,
    "ours, durations of an earlier run": _by(lambda work: known(Priorities, jittered(work))),
    "two lanes, every duration known": _by(lambda work: known(Knowing, work)),
}


def jittered(work: Sequence[Unit]) -> list[Unit]:
    """As a run before took: each task within about a fifth of what it takes now."""
    chance = random.Random(len(work))
    return [attrs.evolve(u, seconds=u.seconds * chance.lognormvariate(0, 0.2)) for u in work]


def ratio(policy: str, seed: int, share: float) -> float:
    work = drive(seed, share)
    return POLICIES[policy](work, CAPACITY) / replay.bound(work, CAPACITY)[0]


def table() -> None:
    print(f"| order of work, {SEEDS} seeds | {' | '.join(f'f {share}' for share in SHARES)} |")
    print(f"|---|{'---|' * len(SHARES)}", flush=True)
    for policy in POLICIES:
        means = [statistics.mean(ratio(policy, seed, share) for seed in range(SEEDS)) for share in SHARES]
        print(f"| {policy} | {' | '.join(f'{mean:.3f}' for mean in means)} |", flush=True)
    first, ours = "two lanes, first come", "ours, nothing known at the start"
    for share in SHARES:
        worse = [ratio(ours, seed, share) / ratio(first, seed, share) for seed in range(MANY)]
        over = sum(each > 1.02 for each in worse)
        print(
            f"f {share}, {MANY:,} seeds: ours by first come {statistics.mean(worse):.3f}, at worst {max(worse):.3f}; "
            f"worse by more than 2 % on {over}",
            flush=True,
        )


LIVE = 24  # tasks that sleep


def live(place: Path, pairs: int) -> Row:
    """Real runs of tasks that sleep, some of them in queues for one file, and the same ledger in the simulator, which
    is told no duration before it has seen one. It wants a machine that does nothing else."""
    place.mkdir(parents=True)
    chance, tasks = random.Random(1), ""
    for i in range(LIVE):
        seconds, hub = chance.uniform(0.5, 3), f", hub{i % 2}" if i < 6 else ""
        needs = f", needs: [t{i - 8}]" if i >= 8 else ""
        tasks += f"  - {{name: t{i}, run: sleep {seconds:.2f}; touch t{i}, writes: [t{i}{hub}]{needs}}}\n"
    tasks = tasks.replace("; touch", " && touch")
    (place / "dodo.py").write_text("from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n")
    (place / "tasks.yaml").write_text(f"version: 1\ntasks:\n{tasks}")
    (place / ".gitignore").write_text("cache/\n__pycache__/\n")
    for hub in ("hub0", "hub1"):
        (place / hub).touch()
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=place, check=True)
    took, simulated = [], []
    for _ in range(pairs):
        (place / "cache/durations.json").unlink(missing_ok=True)
        run(doit("-n", "4"), place, place / "home")
        *_, events = ledger.runs(place / "cache/ledger.jsonl").values()
        found = timeline.of(events)
        assert found is not None
        took.append(max(hold.end for hold in found.holds) - min(hold.start for hold in found.holds))
        simulated.append(replay.two_lanes(figures.work_of(found), found.lanes))
    return Row("a live run of tasks that sleep, against its own simulation", took, simulated, "0.98 to 1.02")


if __name__ == "__main__":
    table()
