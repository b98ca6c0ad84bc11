"""What judging a plan costs: its waves, and the waves that it would have without each of its shared paths.

`python -m bench plan` prints the table of docs/waves.md. Each figure is of a process of its own: CPU seconds from jobs
to answers, and the peak of the process's memory. The naive way packs the plan again for every path; where these are
many it is timed on some of them, and the table says on how many.
"""

from __future__ import annotations

import itertools
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from pipeline.analysis import Job, single_costs, waves

SIZES = (100, 1_000, 10_000)
SAMPLE = 20  # paths of the naive way that are timed
SEED = 1


def needs(chance: random.Random, at: int) -> tuple[str, ...]:
    """None or a few of the fifty tasks before it."""
    count = chance.choice([0, 0, 0, 1, 1, 2]) if at else 0
    return tuple(sorted({f"task{chance.randrange(max(0, at - 50), at)}" for _ in range(count)}))


def files(chance: random.Random, pool: Sequence[str], popular: Sequence[float] | None = None) -> tuple[str, ...]:
    return tuple(sorted(set(chance.choices(pool, cum_weights=popular, k=chance.randint(3, 5)))))


def hubs(count: int) -> list[Job]:
    """Three to five files each, of a few that everybody writes and many that few do (Zipf's law)."""
    chance, pool = random.Random(SEED), [f"src/part{i % 50}/file{i}.c" for i in range(count // 3)]
    popular = list(itertools.accumulate(1 / (i + 1) ** 0.6 for i in range(len(pool))))
    return [Job(f"task{i}", needs(chance, i), writes=files(chance, pool, popular)) for i in range(count)]


def even(count: int) -> list[Job]:
    """Three to five files each, all as likely: no path is to blame."""
    chance, pool = random.Random(SEED), [f"src/part{i % 50}/file{i}.c" for i in range(count // 5)]
    return [Job(f"task{i}", needs(chance, i), writes=files(chance, pool)) for i in range(count)]


def trees(count: int) -> list[Job]:
    """As hubs; one task in twenty writes a directory, and one in ten reads all twenty files that a glob matched."""
    chance = random.Random(SEED)
    jobs = []
    for i, job in enumerate(hubs(count)):
        part = chance.randrange(count // 10)
        its = f"lib/part{part}/" if chance.random() < 0.05 else f"lib/part{part}/f{i % 20}"
        reads = tuple(f"lib/part{part}/f{k}" for k in range(20)) if chance.random() < 0.1 else ()
        jobs.append(attrs.evolve(job, reads=reads, writes=(*job.writes, its)))
    return jobs


SHAPES: dict[str, Callable[[int], list[Job]]] = {"hubs": hubs, "even": even, "trees": trees}


@attrs.frozen
class Cost:
    """Of one way to answer."""

    seconds: float  # of CPU; of the naive way, for all paths
    mib: float
    paths: int
    timed: int  # paths that were answered; fewer than `paths` where the rest is extrapolated
    waves: int
    bound: int


def ours(jobs: Sequence[Job]) -> Cost:
    started = time.process_time()
    plan = waves(jobs)
    costs = single_costs(plan)
    seconds = time.process_time() - started
    return Cost(seconds, peak_mib(), len(costs), len(costs), plan.count, plan.bound)


def naive(jobs: Sequence[Job]) -> Cost:
    """As `ours`, but every path has the plan packed again. Raises AssertionError where the two differ."""
    started = time.process_time()
    plan = waves(jobs)
    once = time.process_time() - started
    costs = single_costs(plan)
    numbers = dict(zip(plan.packing.scopes.spelt, range(len(plan.packing.scopes.spelt)), strict=True))
    timed = random.Random(SEED).sample(sorted(costs), min(SAMPLE, len(costs)))
    started = time.process_time()
    for path in timed:
        packed = plan.packing.count(plan.packing.scopes.within([numbers[path]]))
        assert min(plan.count, packed) == costs[path], path
    seconds = once + (time.process_time() - started) * len(costs) / len(timed)
    return Cost(seconds, peak_mib(), len(costs), len(timed), plan.count, plan.bound)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


WAYS: dict[str, Callable[[Sequence[Job]], Cost]] = {"ours": ours, "naive": naive}


def alone(way: str, shape: str, count: int) -> Cost:
    """In a process of its own."""
    command = [sys.executable, "-m", "bench.plan", way, shape, str(count)]
    ran = subprocess.run(command, cwd=Path(__file__).parent.parent, check=True, stdout=subprocess.PIPE)
    return Cost(**json.loads(ran.stdout))


def table(pairs: int) -> None:
    print("| plan | tasks | shared paths | waves (bound) | CPU | peak | naive | times faster | spread |")
    print("|---|---|---|---|---|---|---|---|---|")
    for shape, count in itertools.product(SHAPES, SIZES):
        both = [(alone("ours", shape, count), alone("naive", shape, count)) for _ in range(pairs)]
        times = [theirs.seconds / mine.seconds for mine, theirs in both]
        mine, theirs = both[0]
        seconds = statistics.median(each.seconds for each, _ in both)
        peer = statistics.median(each.seconds for _, each in both)
        row = [shape, f"{count:,}", f"{mine.paths:,}", f"{mine.waves} ({mine.bound})"]
        row += [f"{seconds:.3f} s", f"{mine.mib:.0f} MiB"]
        row += [f"{peer:.1f} s" + ("" if theirs.timed == theirs.paths else f" (from {theirs.timed} paths)")]
        row += [f"{statistics.median(times):,.0f}", f"{min(times):,.0f} to {max(times):,.0f}"]
        print(f"| {' | '.join(row)} |", flush=True)
    print("Asked at 10,000: at most 0.5 s, under 500 MiB, at least 50 times faster.")


if __name__ == "__main__":
    way, shape, count = sys.argv[1:]
    print(json.dumps(attrs.asdict(WAYS[way](SHAPES[shape](int(count))))))
