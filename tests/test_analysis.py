"""Waves, what a shared path costs, and bounds: by example, and against exhaustive search on a thousand small plans."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
import yaml

from pipeline import analysis
from pipeline.analysis import (
    Finding,
    Job,
    critical_path,
    findings,
    free_width,
    lower_bound,
    overlaps,
    single_costs,
    waves,
    width,
)

STORY = Path(__file__).parent / "plans" / "story.yaml"


def story() -> list[Job]:
    return [
        Job(task["name"], tuple(task.get("needs", ())), (), tuple(task["writes"]))
        for task in yaml.safe_load(STORY.read_text())["tasks"]
    ]


def writers(*paths: str) -> list[Job]:
    return [Job(f"t{i}", writes=(path,)) for i, path in enumerate(paths)]


# By example


def test_the_file_that_every_task_writes_makes_the_plan_serial() -> None:
    plan = waves(story())
    assert (plan.count, plan.chain, plan.minimal) == (12, 5, True)
    assert findings(plan) == (Finding(("tests/kunit/Kbuild",), 12, 12, before=12, after=5, hoisted=6, chain=5),)


def test_what_hid_behind_it_is_listed_with_what_it_costs_then() -> None:
    plan = waves(story())
    (first,) = findings(plan)
    assert [(*each.paths, each.writers, each.before, each.after) for each in overlaps(plan, first)] == [
        ("core/io.c", 3, 5, 5),
        ("Documentation/xcvr/index.rst", 2, 5, 5),
        ("core/cache.c", 2, 5, 5),
        ("core/port.c", 2, 5, 5),
    ]


def test_two_files_that_hide_each_other_are_found_together() -> None:
    jobs = [Job(f"t{i}", writes=("Kbuild", "io.c") if i else ("Kbuild",)) for i in range(12)]
    (found,) = findings(waves(jobs))
    assert (found.paths, found.before, found.after, found.hoisted) == (("Kbuild", "io.c"), 12, 1, 2)


def test_four_files_that_hide_each_other_are_no_finding() -> None:
    assert findings(waves([Job(f"t{i}", writes=("a", "b", "c", "d")) for i in range(12)])) == ()


def test_files_that_hide_each_other_are_found_in_a_plan_too_large_to_try_all_sets() -> None:
    jobs = [Job(f"t{i}", writes=("Kbuild", "Makefile", f"pair{i // 2}")) for i in range(1000)]
    (found,) = findings(waves(jobs))
    assert (found.paths, found.before, found.after) == (("Kbuild", "Makefile"), 1000, 2)


def test_all_sets_are_tried_up_to_so_many_jobs_packed_and_not_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two rings, each of which takes a wave more than any queue is long: nothing says which paths are in the way.
    rings = [[f"{ring}{i}" for i in range(3)] for ring in "xy"]
    jobs = [Job(f"{ring[i]}", writes=(ring[i], ring[i - 1])) for ring in rings for i in range(3)]
    monkeypatch.setattr(analysis, "TRIALS", math.comb(6, 2) * len(jobs))
    assert {each.paths for each in findings(waves(jobs))} == set(itertools.product(*rings))
    monkeypatch.setattr(analysis, "TRIALS", math.comb(6, 2) * len(jobs) - 1)
    assert findings(waves(jobs)) == ()


def test_plans_are_told_apart_and_shown_by_their_waves_alone() -> None:
    jobs = writers("a", "a", "b")
    assert waves(jobs) == waves(jobs) != waves(writers("a", "b", "b"))
    assert repr(waves(jobs)) == "Waves(of={'t0': 0, 't1': 1, 't2': 0}, bound=2, chain=1)"


def test_every_single_path_is_tried_however_large_the_plan() -> None:
    ring = [Job("r0", writes=("x", "y")), Job("r1", writes=("y", "z")), Job("r2", writes=("z", "x"))]
    plan = waves([*ring, *(Job(f"p{i}", writes=(f"pair{i // 2}",)) for i in range(340))])
    assert (plan.count, plan.bound) == (3, 2)
    assert [(*each.paths, each.after) for each in findings(plan)] == [("x", 2), ("y", 2), ("z", 2)]


def test_a_file_that_costs_less_than_a_tenth_of_the_waves_is_no_finding() -> None:
    chain = [Job(f"c{i}", needs=(f"c{i - 1}",) if i else ()) for i in range(10)]
    plan = waves([*chain, *(Job(f"w{i}", writes=("log",)) for i in range(11))])
    assert (plan.count, findings(plan)) == (11, ())
    assert single_costs(plan) == {"log": 10}


def test_what_two_tasks_write_counts_and_what_one_writes_does_not() -> None:
    assert single_costs(waves(writers("a", "a", "b"))) == {"a": 1}


def test_readers_share_a_wave_but_none_with_a_writer() -> None:
    readers = [Job(f"r{i}", reads=("a",)) for i in range(3)]
    plan = waves([*readers, *writers("a", "a")])
    assert (plan.groups(), plan.minimal) == ((("t0",), ("t1",), ("r0", "r1", "r2")), True)
    assert waves(readers).count == 1


def test_a_packing_is_turned_over_until_it_meets_the_bound() -> None:
    jobs = [
        Job("a"),
        Job("b", writes=("x", "y")),
        Job("c", writes=("x", "z")),
        Job("d", ("a",), writes=("z",)),
        Job("e", ("d",), writes=("y",)),
        Job("f", ("b", "c")),
    ]
    assert first_fit(ordered(jobs), needs_of(jobs)) == {"a": 0, "b": 0, "c": 1, "d": 2, "e": 3, "f": 2}
    assert waves(jobs).of == {"a": 0, "b": 1, "c": 0, "d": 1, "e": 2, "f": 2}


@pytest.mark.parametrize(
    "one, other, together",
    [
        ("a/", "a/b", False),
        ("a", "a/b/c", False),
        ("a/", "a", False),
        (".", "x", False),
        ("a/b", "a/c", True),
        ("a/", "ab", True),
    ],
)
def test_a_directory_holds_all_that_is_under_it(one: str, other: str, together: bool) -> None:
    for jobs in (writers(one, other), writers(other, one), [Job("r", reads=(one,)), *writers(other)]):
        assert (waves(jobs).count == 1) is together


def test_a_directory_is_out_with_all_that_is_under_it() -> None:
    plan = waves(writers("lib/", "lib/a", "lib/b", "lib/b"))
    assert plan.count == 3
    assert single_costs(plan) == {"lib/": 1, "lib/b": 2}


def test_critical_path_is_the_chain_that_takes_longest_and_the_first_declared_of_equals() -> None:
    jobs = [
        Job("slow", seconds=5.0),
        Job("a", seconds=2.0),
        Job("b", ("a",), seconds=2.0),
        Job("c", ("a",), seconds=2.0),
        Job("d", ("c", "b"), seconds=2.0),
    ]
    assert critical_path(jobs) == (6.0, ("a", "b", "d"))
    assert critical_path([]) == (0.0, ())


def test_of_two_jobs_that_wait_for_one_the_longer_is_on_the_critical_path_in_whatever_order_they_are_declared() -> None:
    first, long, short = Job("a"), Job("long", ("a",), seconds=5.0), Job("short", ("a",))
    for jobs in itertools.permutations([first, long, short]):
        assert critical_path(jobs) == (6.0, ("a", "long"))


def test_a_plan_of_nothing_has_no_wave() -> None:
    plan = waves([])
    assert (plan.count, plan.bound, plan.groups(), findings(plan)) == (0, 0, (), ())


def test_width_is_of_the_plan_as_it_is_and_free_width_of_its_needs_alone() -> None:
    jobs = writers("a", "a", "a")
    assert (width(waves(jobs)), free_width(jobs)) == (1, 3)
    assert (width(waves([])), free_width([])) == (0, 0)


@pytest.mark.parametrize(
    "jobs, seconds",
    [
        ([Job("a", seconds=3.0), Job("b", ("a",), seconds=4.0)], 7.0),  # the critical path
        ([Job(f"t{i}", seconds=2.0) for i in range(5)], 5.0),  # ten seconds of work, two slots
        ([Job(f"t{i}", seconds=2.0, pool="generation") for i in range(5)], 10.0),  # one slot
        ([Job(f"t{i}", seconds=2.0, pool=None) for i in range(5)], 2.0),  # no slot needed
        ([Job("a", writes=("x",), pool=None), Job("b", writes=("x/y",), seconds=2.0, pool=None)], 3.0),
        ([Job("a", writes=("x",), pool=None), Job("b", reads=("x",), seconds=2.0, pool=None)], 3.0),
    ],
)
def test_no_run_is_quicker_than_the_lower_bound(jobs: Sequence[Job], seconds: float) -> None:
    assert lower_bound(jobs, {"validation": 2, "generation": 1}) == seconds


# Against exhaustive search, which compares every job with every other


@functools.cache
def under(path: str, directory: str) -> bool:
    path, directory = (each.rstrip("/") for each in (path, directory))
    return path == directory or path.startswith(f"{directory}/")


def meet(some: Iterable[str], others: Iterable[str]) -> bool:
    return any(under(a, b) or under(b, a) for a in some for b in others)


def conflict(a: Job, b: Job) -> bool:
    return meet(a.writes, b.writes) or meet(a.writes, b.reads) or meet(a.reads, b.writes)


def chains(jobs: Sequence[Job]) -> dict[str, int]:
    """For each job the longest chain of those that wait for it."""
    behind = dict.fromkeys((job.name for job in jobs), 0)
    for _ in jobs:
        for job in jobs:
            for need in job.needs:
                behind[need] = max(behind[need], behind[job.name] + 1)
    return behind


def first_fit(order: Iterable[Job], after: Mapping[str, Iterable[str]]) -> dict[str, int]:
    of: dict[str, int] = {}
    placed: list[Job] = []
    for job in order:
        wave = max((of[each] + 1 for each in after[job.name]), default=0)
        while any(of[each.name] == wave and conflict(job, each) for each in placed):
            wave += 1
        of[job.name] = wave
        placed.append(job)
    return of


def ordered(jobs: Sequence[Job]) -> list[Job]:
    behind = chains(jobs)
    wanted = {job.name: sum(path in other.writes for path in job.writes for other in jobs) for job in jobs}
    return sorted(jobs, key=lambda job: (-behind[job.name], -wanted[job.name]))


def needs_of(jobs: Iterable[Job]) -> dict[str, tuple[str, ...]]:
    return {job.name: job.needs for job in jobs}


def packed(jobs: Sequence[Job], bound: int) -> dict[str, int]:
    """The rule of docs/waves.md, word for word."""
    waiting = {job.name: [each.name for each in jobs if job.name in each.needs] for job in jobs}
    of = first_fit(ordered(jobs), needs_of(jobs))
    count, before = 1 + max(of.values()), math.inf
    while bound < count < before:
        for after in (waiting, needs_of(jobs)):
            waves = of
            of = first_fit(sorted(jobs, key=lambda job: -waves[job.name]), after)
        count, before = 1 + max(of.values()), count
    return of


def optimum(jobs: Sequence[Job]) -> int:
    """The fewest waves of all assignments."""
    behind = chains(jobs)
    order = sorted(jobs, key=lambda job: -behind[job.name])

    def fits(count: int, of: dict[str, int]) -> bool:
        if len(of) == len(order):
            return True
        job = order[len(of)]
        first = max((of[need] + 1 for need in job.needs), default=0)
        return any(
            fits(count, of | {job.name: wave})
            for wave in range(first, count - behind[job.name])
            if not any(of.get(each.name) == wave and conflict(job, each) for each in jobs)
        )

    return next(count for count in itertools.count(1) if fits(count, {}))


def longest_queue(jobs: Sequence[Job]) -> int:
    """The longest chain, or the queue for a path: of some of those in it, what all have before them, they themselves,
    and what all have behind them."""
    behind = chains(jobs)
    waiting = {job.name: tuple(each.name for each in jobs if job.name in each.needs) for job in jobs}
    before = chains([attrs.evolve(job, needs=waiting[job.name]) for job in jobs])
    longest = 1 + max(behind.values())
    for path in {path for job in jobs for path in (*job.reads, *job.writes)}:
        line = [job.name for job in jobs if any(under(path, each) for each in job.writes)]
        readers = [job.name for job in jobs if any(under(path, each) for each in job.reads) and job.name not in line]
        if line and readers:
            line.append(max(readers, key=lambda name: before[name] + behind[name]))
        for head, tail in itertools.product((before[name] for name in line), (behind[name] for name in line)):
            some = [name for name in line if before[name] >= head and behind[name] >= tail]
            longest = max(longest, head + len(some) + tail if some else 0)
    return longest


def keep(paths: Iterable[str], gone: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if not any(under(path, each) for each in gone))


def without(jobs: Iterable[Job], paths: Iterable[str]) -> list[Job]:
    return [attrs.evolve(job, reads=keep(job.reads, paths), writes=keep(job.writes, paths)) for job in jobs]


def hoisted(jobs: Sequence[Job], paths: Sequence[str]) -> list[Job]:
    kept = [attrs.evolve(job, writes=keep(job.writes, paths)) for job in jobs]
    former = tuple(job.name for job, left in zip(jobs, kept, strict=True) if job != left)
    return [*kept, Job("wiring", former, writes=tuple(paths))]


def shared(jobs: Sequence[Job]) -> list[str]:
    written = sorted({path for job in jobs for path in job.writes})
    return [path for path in written if sum(any(under(each, path) for each in job.writes) for job in jobs) > 1]


def exhaustive_findings(jobs: Sequence[Job], before: int, chain: int) -> set[Finding]:
    for size in (1, 2, 3):
        found = set()
        for paths in itertools.combinations(shared(jobs), size):
            after = waves(without(jobs, paths)).count
            if before - after >= 1 and before - after >= before / 10:
                count = sum(any(under(each, path) for each in job.writes for path in paths) for job in jobs)
                last = waves(hoisted(jobs, paths)).count
                found.add(Finding(paths, count, len(jobs), before, after, last, chain))
        if found:
            return found
    return set()


def small_plan(seed: int) -> list[Job]:
    """Up to seven jobs that share up to seven paths, a directory among them; a need may be declared after its job."""
    chance = random.Random(seed)
    paths = chance.sample(["a", "b", "c", "e", "d/x", "d/y", "d/"], chance.randint(2, 7))
    count = chance.randint(2, 7)
    jobs = [
        Job(
            f"t{i}",
            needs=tuple(f"t{j}" for j in range(i) if chance.random() < 0.15),
            reads=tuple(chance.sample(paths, chance.choice([0, 0, 0, 1]))),
            writes=tuple(chance.sample(paths, chance.randint(0, min(3, len(paths))))),
        )
        for i in range(count)
    ]
    return chance.sample(jobs, count)


SMALL_PLANS = [small_plan(seed) for seed in range(1000)]


def test_waves_are_what_the_rule_says_and_the_bound_is_one() -> None:
    missed, proved = [], 0
    for jobs in SMALL_PLANS:
        plan = waves(jobs)
        assert plan.of == packed(jobs, plan.bound)
        best = optimum(jobs)
        assert plan.bound == longest_queue(jobs) <= best <= plan.count
        missed.append(plan.count - best)
        proved += plan.minimal
    # The figures of docs/waves.md.
    assert (sum(map(bool, missed)), max(missed), proved) == (8, 1, 928)


def test_no_job_shares_a_wave_with_one_that_it_conflicts_with_or_needs() -> None:
    for jobs in SMALL_PLANS:
        of = waves(jobs).of
        for a, b in itertools.permutations(jobs, 2):
            assert of[a.name] < of[b.name] or a.name not in b.needs
            assert of[a.name] != of[b.name] or not conflict(a, b)


def test_the_cost_of_every_path_is_what_packing_the_plan_without_it_gives() -> None:
    for jobs in SMALL_PLANS:
        plan = waves(jobs)
        assert single_costs(plan) == {
            path: min(plan.count, waves(without(jobs, (path,))).count) for path in shared(jobs)
        }


def test_findings_are_those_of_trying_every_set_of_up_to_three_paths() -> None:
    sizes = set()
    for jobs in SMALL_PLANS:
        plan = waves(jobs)
        found = findings(plan)
        assert set(found) == exhaustive_findings(jobs, plan.count, plan.chain)
        assert list(found) == sorted(found, key=lambda each: each.after)
        sizes |= {len(each.paths) for each in found}
    assert sizes == {1, 2, 3}


def test_overlaps_are_what_the_plan_without_the_finding_says() -> None:
    for jobs in SMALL_PLANS:
        plan = waves(jobs)
        for first in findings(plan):
            left = without(jobs, first.paths)
            found = overlaps(plan, first)
            assert {each.paths[0]: each.after for each in found} == single_costs(waves(left))
            for each in found:
                assert each.writers == sum(any(under(path, each.paths[0]) for path in job.writes) for job in left)
