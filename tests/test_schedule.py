"""The scheduler's decisions, by example and over random plans."""

from __future__ import annotations

import heapq
import itertools
import posixpath
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.priorities import Priorities, Work
from pipeline.schedule import Lanes, Line, Ready, Start, lanes, max_slots, startable

NO_WORK = Priorities([])


def names(starts: Iterable[Start]) -> list[tuple[str, ...]]:
    return [start.names for start in starts]


def start(
    *ready: Ready,
    running: Iterable[Start] = (),
    serial: bool = False,
    priorities: Priorities = NO_WORK,
    memory: int = 0,
    **capacity: int,
) -> list[tuple[str, ...]]:
    in_use = Counter(each.pool for each in running if each.pool)
    counts = {pool: count for pool, count in in_use.items() if pool}
    return names(startable(ready, capacity, counts, running, priorities, serial=serial, memory=memory))


# Slots and locks


def test_a_full_pool_delays_its_own_tasks_only() -> None:
    ready = [Ready(f"v{i}", i, "validation") for i in range(3)] + [Ready("g", 9, "generation")]
    running = [Start(("v",), "validation")]
    assert start(*ready, running=running, validation=1, generation=2) == [("g",)]


def test_a_task_without_a_pool_takes_no_slot() -> None:
    assert start(Ready("group", 0), running=[Start(("v",), "validation")], validation=1) == [("group",)]


def test_two_writers_of_one_file_never_run_together_and_readers_do() -> None:
    writers = [Ready(f"w{i}", i, "validation", writes=frozenset({"a"})) for i in range(2)]
    readers = [Ready(f"r{i}", i, "validation", reads=frozenset({"a"})) for i in range(2)]
    assert start(*writers, validation=4) == [("w0",)]
    assert start(*readers, validation=4) == [("r0",), ("r1",)]
    assert start(*readers, running=[Start(("w",), "validation", writes=frozenset({"a"}))], validation=4) == []
    assert start(*writers, running=[Start(("r",), "validation", reads=frozenset({"a"}))], validation=4) == []


@pytest.mark.parametrize(
    ("held", "wanted", "meet"),
    [
        ("src/", "src/a.js", True),
        ("src", "src/deep/er/a.js", True),
        ("src/a.js", "src", True),
        ("src/a.js", "./src/", True),
        ("src/a.js", "src/b.js", False),
        ("src/a", "src/ab", False),
        (".", "src/a.js", True),
        ("src/a.js", ".", True),
        ("/x/y", "/x", True),
        ("/x/y", "/", True),
        ("/x/y", "/x/z", False),
    ],
)
def test_a_directory_locks_everything_under_it(held: str, wanted: str, meet: bool) -> None:
    holder = Start(("holder",), "validation", writes=frozenset({held}))
    task = Ready("task", 0, "validation", reads=frozenset({wanted}))
    assert start(task, running=[holder], validation=2) == ([] if meet else [("task",)])


def test_what_misses_one_lock_takes_none() -> None:
    held = Start(("holder",), "validation", writes=frozenset({"b"}))
    both = Ready("both", 0, "validation", writes=frozenset({"a", "b"}))
    one = Ready("one", 1, "validation", writes=frozenset({"a"}))
    assert start(both, one, running=[held], validation=3) == [("one",)]


def test_memory_that_is_asked_for_is_kept_free_and_what_asks_for_none_never_waits() -> None:
    ready = [
        Ready(name, i, "validation", memory=asked) for i, (name, asked) in enumerate([("a", 6), ("b", 5), ("c", 4)])
    ]
    free = Ready("free", 9, "validation")
    assert start(*ready, free, validation=9, memory=10) == [("a",), ("c",), ("free",)]
    held = [Start(("a",), "validation", memory=6), Start(("over",), "validation", memory=6)]
    assert start(*ready, free, running=held, validation=9, memory=10) == [("free",)]
    assert start(*ready[:1], validation=9, memory=6) == [("a",)]


def test_where_no_memory_is_left_not_a_byte_is_given_out() -> None:
    held = [Start(("a",), "validation", memory=6)]
    assert start(Ready("byte", 0, "validation", memory=1), running=held, validation=9, memory=6) == []
    asks_for_none = [Start(("a",), "validation")]
    for asked, starts in ((6, [("x",)]), (7, [])):
        ready = Ready("x", 0, "validation", memory=asked)
        assert start(ready, running=asks_for_none, validation=9, memory=6) == starts


def test_members_of_a_batch_share_out_the_memory_that_there_is() -> None:
    ready = [Ready(name, i, "validation", batch="b", memory=6) for i, name in enumerate("ab")]
    assert start(*ready, validation=2, memory=11) == [("a",)]
    assert start(*ready, validation=2, memory=12) == [("a", "b")]


def test_serial_starts_the_first_in_doits_order_and_nothing_beside_it() -> None:
    ready = [Ready("second", 2, "generation"), Ready("first", 1, "validation"), Ready("third", 3)]
    assert start(*ready, serial=True, validation=1, generation=1) == [("first",)]
    assert start(*ready, serial=True, running=[Start(("g",), "generation")], validation=1, generation=1) == []


def test_without_n_the_gate_waits_until_nothing_else_is_ready_and_takes_all_that_is() -> None:
    landings = [Ready(f"land:{name}", i, "gate", batch="gate") for i, name in enumerate("ab")]
    others = [Ready("draft:c", 7, "generation"), Ready("check:c", 8, "validation")]
    assert start(*landings, *others, serial=True, validation=1, generation=1, gate=1) == [("draft:c",)]
    assert start(*landings, serial=True, gate=1) == [("land:a", "land:b")]
    beside = start(*landings, *others, validation=1, generation=1, gate=1)
    assert beside == [("land:a", "land:b"), ("draft:c",), ("check:c",)]
    busy = [Start(("land:z",), "gate")]
    assert start(*landings, running=busy, gate=1) == [], "they go together when it is free"


# Batches


def batch(costs: Mapping[str, float]) -> tuple[list[Ready], Priorities]:
    ready = [Ready(name, i, "validation", batch="baseline") for i, name in enumerate(costs)]
    return ready, Priorities(Work(name, kind=name, expected=cost) for name, cost in costs.items())


def test_the_ready_tasks_of_a_batch_start_together_in_one_slot() -> None:
    ready, priorities = batch({"a": 5, "b": 4, "c": 3})
    alone = Ready("x", 9, "validation")
    assert start(*ready, alone, priorities=priorities, validation=2) == [("a", "b", "c"), ("x",)]
    busy = [Start(("y",), "validation")]
    assert start(*ready, priorities=priorities, running=busy, validation=2) == [("a", "b", "c")]
    assert start(*ready, priorities=priorities, serial=True, validation=1) == [("a", "b", "c")]


def test_members_of_a_batch_that_write_one_file_do_not_share_a_set() -> None:
    ready = [Ready(name, i, "validation", writes=frozenset({"f"}), batch="b") for i, name in enumerate("ab")]
    assert start(*ready, validation=2) == [("a",)]


# Priorities


def test_what_has_the_longest_chain_behind_it_goes_first() -> None:
    plan = Priorities([Work("short", expected=2), Work("long", expected=1), Work("tail", ("long",), expected=5)])
    assert (plan.of("short"), plan.of("long")) == (2, 6)
    ready = [Ready("short", 0, "validation"), Ready("long", 1, "validation")]
    assert start(*ready, priorities=plan, validation=1) == [("long",)]


@pytest.mark.parametrize("order", list(itertools.permutations("abcd")))
def test_of_two_chains_behind_a_task_the_one_with_more_work_counts_in_whatever_order_they_are_declared(
    order: tuple[str, ...],
) -> None:
    works = {
        "a": Work("a", expected=1),
        "b": Work("b", ("a",), expected=5),
        "c": Work("c", ("a",), expected=1),
        "d": Work("d", ("c",), expected=1),
    }
    assert Priorities(works[name] for name in order).of("a") == 6


def test_a_path_that_many_write_is_a_queue_that_must_not_start_late() -> None:
    hub = frozenset({"index.js"})
    plan = Priorities([Work(f"hub{i}", locks=hub, expected=2) for i in range(4)] + [Work("alone", expected=5)])
    assert plan.of("hub0") == 8
    assert plan.of("alone") == 5
    for i in range(3):
        plan.ended(f"hub{i}", 2)
    assert plan.of("hub3") == 2
    assert Priorities([Work("short", locks=hub, expected=0.25)]).of("short") == 0.25  # who is alone does not queue


def test_of_those_that_want_one_path_only_the_first_is_in_a_hurry() -> None:
    hub = frozenset({"index.js"})
    works = [Work(name, locks=hub, expected=2) for name in ("short", "long", "last")]
    plan = Priorities([*works, Work("tail", ("long",), expected=1), Work("alone", expected=5)])
    assert [plan.of(name) for name in ("long", "short", "last")] == [6, 4, 2]  # the longest chain, then as declared
    ready = [Ready(w.name, i, "validation", writes=hub) for i, w in enumerate(works)]
    assert start(*ready, Ready("alone", 9, "validation"), priorities=plan, validation=2) == [("long",), ("alone",)]


def test_a_round_that_took_long_to_generate_is_expected_to_take_long_to_prove() -> None:
    plan = Priorities(
        Work(f"{k}:{s}:{r}", (f"generate:{s}:{r}",) if k == "validate" else (), k, s, expected=10)
        for s in "ab" for r in range(2) for k in ("generate", "validate")
    )  # fmt: skip
    plan.ended("generate:a:0", 5)
    plan.ended("generate:a:1", 40)
    quick, long = (plan.cost(f"validate:a:{r}") for r in range(2))
    assert quick < long < quick * 40 / 5, "each as its own generation, and both as large as the scope"
    assert plan.cost("validate:b:0") == plan.cost("validate:b:1")


def test_priorities_follow_what_the_run_learns() -> None:
    plan = Priorities(
        [Work(f"fast{i}", kind="fast", scope=str(i), expected=10) for i in range(9)]
        + [Work(f"slow{i}", kind="slow", scope=str(i), expected=5) for i in range(9)]
    )
    assert plan.of("fast8") > plan.of("slow8")
    for i in range(8):
        plan.ended(f"fast{i}", 1)
        plan.ended(f"slow{i}", 50)
    assert plan.of("fast8") < 4
    assert plan.of("slow8") > 30


def test_the_first_of_a_kind_to_end_draws_the_others_a_third_of_the_way() -> None:
    plan = Priorities(Work(name, kind="land", scope=name, expected=1) for name in "ab")
    plan.ended("a", 4)
    assert plan.cost("b") == 2


def test_a_scope_that_turns_out_slow_is_believed_before_the_mean_of_its_kind() -> None:
    plan = Priorities(Work(f"validate:{s}:{r}", kind="validate", scope=s) for s in "ab" for r in range(4))
    for r in range(3):
        plan.ended(f"validate:a:{r}", 9)
        plan.ended(f"validate:b:{r}", 1)
    assert plan.cost("validate:a:3") > plan.cost("validate:b:3") + 2


def test_a_task_nobody_knows_costs_what_its_kind_is_known_to_cost() -> None:
    plan = Priorities([Work("a", kind="baseline", expected=60), Work("new", kind="baseline"), Work("b", kind="land")])
    assert plan.cost("new") == 60
    assert plan.cost("b") == Priorities.GUESS


def test_a_cycle_is_left_for_doit_to_name() -> None:
    plan = Priorities([Work("a", ("b",)), Work("b", ("a",))])
    assert plan.of("a") == Priorities.GUESS


def test_a_scope_that_took_long_over_one_kind_is_expected_to_take_long_over_the_next() -> None:
    kinds = ("generate", "validate")
    plan = Priorities(Work(f"{k}:{s}", kind=k, scope=s, expected=10) for s in "abc" for k in kinds)
    for scope, seconds in (("a", 30), ("b", 10), ("c", 2)):
        plan.ended(f"generate:{scope}", seconds)
    large, usual, small = (plan.cost(f"validate:{scope}") for scope in "abc")
    assert large > usual > small
    assert 10 < large < 30, "drawn to what was expected, not believed at once"
    unscoped = Priorities([Work("x", kind="task", expected=10), Work("y", kind="task", expected=10)])
    unscoped.ended("x", 10)
    assert unscoped.cost("y") == 10


def test_where_thousands_wait_an_end_costs_no_look_at_all_of_them() -> None:
    """Twice the tasks take about twice the looks, whether they wait for a slot, one file, or memory."""

    class Counting(Priorities):
        looks = 0

        def of(self, name: str) -> float:
            self.looks += 1
            return super().of(name)

    def looks(count: int, **asked: Any) -> int:
        priorities = Counting([])
        line = Line(priorities, (Ready(f"t{i}", i, "validation", **asked) for i in range(count)))
        running: list[Start] = []
        for _ in range(count):
            running += line.take({"validation": 2}, {"validation": len(running)}, running, memory=10)
            assert 0 < len(running) <= 2
            priorities.ended(running.pop(0).names[0], 1.0)
        assert not running
        return priorities.looks

    for asked in ({}, {"writes": frozenset({"hub"})}, {"memory": 8}):
        assert looks(2000, **asked) < 2.6 * looks(1000, **asked)


# Lanes


def test_the_lanes_line_names_where_each_number_comes_from() -> None:
    wide = {"validation": 99, "generation": None}
    assert lanes(4, {"generation": 4}, wide, None, 4) == Lanes(
        {"validation": 4, "generation": 4},
        1,
        False,
        "lanes: validation 4 (-n 4), generation 4 (tasks.yaml), engine workers 1 (cores 4 / 4)",
    )
    assert lanes(2, {}, wide, None, 8).line == (
        "lanes: validation 2 (-n 2), generation 1 (default), engine workers 4 (cores 8 / 2)"
    )


def test_caps_only_lower_and_say_so() -> None:
    capped = lanes(8, {"generation": 2, "gpu": 9}, {"validation": 3, "generation": None, "gpu": 9}, 4, 4)
    assert capped.capacity == {"validation": 3, "generation": 2, "gpu": 4}
    assert capped.line == (
        "lanes: validation 3 (width of the plan), generation 2 (tasks.yaml), gpu 4 (DOIT_MUTATE_MAX_SLOTS), "
        "engine workers 1 (cores 4 / 3)"
    )


def test_the_line_names_validation_always_and_other_pools_where_the_plan_uses_them() -> None:
    unused = lanes(4, {"worker": 2}, {}, None, 4)
    assert unused.line == "lanes: validation 4 (-n 4), engine workers 1 (cores 4 / 4)"


def test_more_slots_than_cores_leave_one_engine_worker_each() -> None:
    assert (
        lanes(8, {}, {"validation": 99}, None, 4).line == "lanes: validation 8 (-n 8), engine workers 1 (cores 4 / 8)"
    )


def test_workers_that_somebody_asked_for_are_not_shared_out() -> None:
    asked = lanes(4, {}, {"validation": 99}, None, 4, workers=3)
    assert asked.workers == 3
    assert asked.line == "lanes: validation 4 (-n 4), engine workers 3 (tasks.yaml)"


def test_without_n_every_lane_has_one_slot_and_one_task_runs_at_a_time() -> None:
    serial = lanes(None, {"generation": 4}, {"validation": 9, "generation": None}, None, 4)
    assert serial.serial
    assert serial.capacity == {"validation": 1, "generation": 1}
    assert serial.line == "lanes: validation 1, generation 1 (one task at a time), engine workers 4 (cores 4 / 1)"


@pytest.mark.parametrize("text", ["0", "-1", "four", "", "1.5", " 2"])
def test_a_cap_that_is_no_positive_integer_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=f"DOIT_MUTATE_MAX_SLOTS={text}: not a positive integer"):
        max_slots(text)


def test_a_cap_is_read() -> None:
    assert (max_slots(None), max_slots("3")) == (None, 3)


# Random plans, simulated


@attrs.frozen
class Planned:
    ready: Ready
    needs: tuple[str, ...]
    seconds: float


PATHS = st.sampled_from(["a", "a/x", "a/x/1", "a/y", "b", "b/z/", "c"])
POOLS = {"validation": 3, "generation": 2}
MEMORY = 10


@st.composite
def plans(draw: st.DrawFn) -> tuple[Planned, ...]:
    plan: list[Planned] = []
    for i in range(draw(st.integers(1, 25))):
        ready = Ready(
            f"t{i}",
            i,
            draw(st.sampled_from([*POOLS, None])),
            draw(st.frozensets(PATHS, max_size=2)),
            draw(st.frozensets(PATHS, max_size=2)),
            draw(st.sampled_from([None, None, "x", "y"])),
            draw(st.sampled_from([0, 0, 0, 3, 6, MEMORY])),
        )
        needs = draw(st.sets(st.sampled_from([p.ready.name for p in plan]), max_size=3)) if plan else set()
        plan.append(Planned(ready, tuple(sorted(needs)), draw(st.floats(0.1, 9))))
    return tuple(plan)


def meet(one: str, other: str) -> bool:
    one, other = posixpath.normpath(one), posixpath.normpath(other)
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def clash(one: Ready, other: Ready) -> bool:
    pairs = itertools.chain(
        itertools.product(one.writes, (*other.writes, *other.reads)), itertools.product(one.reads, other.writes)
    )
    return any(meet(*pair) for pair in pairs)


def simulate(plan: tuple[Planned, ...], *, serial: bool, extras: random.Random | None = None) -> list[str]:
    """Run a plan to its end, checking what is promised at every instant; the order in which tasks started."""
    tasks = {each.ready.name: each for each in plan}
    priorities = Priorities(
        Work(p.ready.name, p.needs, p.ready.pool, None, frozenset((*p.ready.reads, *p.ready.writes)), p.seconds)
        for p in plan
    )
    running: list[tuple[float, int, Start]] = []
    ended: set[str] = set()
    started: list[str] = []
    line, lined = Line(priorities), set[str]()
    now, count = 0.0, itertools.count()
    while len(ended) < len(plan):
        ready = [p.ready for p in plan if p.ready.name not in started and ended.issuperset(p.needs)]
        in_use = Counter(dict.fromkeys(POOLS, 0))
        in_use.update(s.pool for _, _, s in running if s.pool)
        if extras and running:  # somebody holds extra slots for a while
            for pool, slots in POOLS.items():
                in_use[pool] += extras.randint(0, slots - in_use[pool])
        for each in ready:
            if each.name not in lined:
                lined.add(each.name)
                line.add(each)
        holds = [s for _, _, s in running]
        starts = line.take(POOLS, in_use, holds, serial=serial, memory=MEMORY)
        afresh = startable(ready, POOLS, in_use, holds, priorities, serial=serial, memory=MEMORY)
        assert starts == afresh, "what is kept in order gives what all that is ready gives, asked afresh"
        for new in starts:
            started += new.names
            in_use.update([new.pool] if new.pool else [])
            heapq.heappush(running, (now + sum(tasks[n].seconds for n in new.names), next(count), new))
        assert all(in_use[pool] <= slots for pool, slots in POOLS.items())
        alive = [tasks[name].ready for _, _, s in running for name in s.names]
        assert not any(clash(one, other) for one, other in itertools.combinations(alive, 2))
        assert sum(each.memory for each in alive) <= MEMORY
        assert not serial or len(running) <= 1
        assert running, "nothing runs and nothing starts"
        now, _, done = heapq.heappop(running)
        ended.update(done.names)
        for name in done.names:
            priorities.ended(name, tasks[name].seconds)
    assert sorted(started) == sorted(tasks), "every task starts exactly once"
    return started


@settings(deadline=None)  # a busy machine is no failure
@given(plans(), st.randoms(use_true_random=False))
def test_no_plan_exceeds_a_pool_shares_a_lock_or_starves_a_task(
    plan: tuple[Planned, ...], extras: random.Random
) -> None:
    simulate(plan, serial=False)
    simulate(plan, serial=False, extras=extras)


@settings(deadline=None)
@given(plans())
def test_serial_follows_doits_order_among_what_is_ready(plan: tuple[Planned, ...]) -> None:
    unbatched = tuple(attrs.evolve(p, ready=attrs.evolve(p.ready, batch=None)) for p in plan)
    assert simulate(unbatched, serial=True) == [p.ready.name for p in plan], (
        "needs point backwards: order is a valid one"
    )
    simulate(plan, serial=True)
