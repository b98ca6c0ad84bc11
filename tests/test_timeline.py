"""Where a run's time went: by hand for six tasks, and for any run that the scheduler could make."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import ledger, replay, timeline
from pipeline.holds import NO_END, What
from pipeline.replay import Unit
from pipeline.timeline import DECIDING, DEPENDENCY, LOCK, MEMORY, NOT_MEASURED, NOTHING_LEFT

CAPS = {"validation": 2, "generation": 1}


def attempt(name: str, lane: str, slot: int, ready: float, started: float, ended: float, **more: Any) -> dict[str, Any]:
    kind, _, scope = name.partition(":")
    fields = {"task": name, "kind": kind, "scope": scope, "lane": lane, "slot": slot, "share": 1.0, "outcome": "ok"}
    return {"event": "attempt", **fields, "ready": ready, "started": started, "ended": ended, **more}


def run(*events: dict[str, Any], end: float, **more: Any) -> list[dict[str, Any]]:
    begin = {"event": "run-started", "at": 0.0, "lanes": CAPS, "scopes": [], **more}
    return [begin, *events, {"event": "run-ended", "at": end}]


# Two slots of validation, one of generation. a and b are measured side by side; a's generation takes the only slot, so
# b's waits for it; both are validated; c writes what a's validation writes, and waits for the lock.
SIX = run(
    attempt("baseline:a", "validation", 0, 1, 1, 4),
    attempt("baseline:b", "validation", 1, 1, 1, 5),
    attempt("generate:a", "generation", 0, 4, 4, 9, after="baseline:a", spans=[("wait", "a retry's back-off", 6, 8)]),
    attempt("generate:b", "generation", 0, 5, 9, 11, after="baseline:b"),
    attempt("validate:a", "validation", 0, 9, 9, 14, after="generate:a", writes=["/p/t"]),
    attempt("task:c", "validation", 1, 9, 14, 15, after="generate:a", writes=["/p/t"], outcome="crashed"),
    end=16,
)


def test_every_wait_of_six_tasks_has_its_cause() -> None:
    found = timeline.of(ledger.by_event(SIX))
    assert found is not None
    assert dict(found.slots["validation"]) == pytest.approx(
        {
            What("useful", "baseline"): 7,
            What("useful", "validate"): 5,
            What("recovery", "task", "crashed"): 1,
            What("wait", DECIDING): 2,  # before the first tasks
            What("wait", DEPENDENCY, "generate:a"): 5,  # from 4 to 9, one slot and then two, but for its back-off
            What("wait", "a retry's back-off", "generate:a"): 4,
            What("wait", LOCK, "/p/t"): 5,  # c, from 9 to 14
            What("idle", NOTHING_LEFT): 3,
        }
    )
    assert dict(found.slots["generation"]) == pytest.approx(
        {
            What("useful", "generate"): 5,
            What("wait", "a retry's back-off"): 2,
            What("wait", DECIDING): 1,
            What("wait", DEPENDENCY, "baseline:a"): 3,
            What("idle", NOTHING_LEFT): 5,
        }
    )
    pieces = [(p.start, p.end, p.what) for p in found.scopes["b"]]
    assert pieces == [
        (0, 1, What("wait", DECIDING)),
        (1, 5, What("useful", "baseline")),
        (5, 9, What("wait", "a slot of generation")),
        (9, 11, What("useful", "generate")),
        (11, 16, What("idle", "ended")),
    ]
    assert found.together == pytest.approx(
        {(): 2, ("validation",): 7, ("generation",): 4, ("validation", "generation"): 3}
    )


def test_a_scope_and_an_idle_slot_wait_for_one_cause_and_for_memory_as_long_as_the_scheduler_said_so() -> None:
    """b may run beside a but lacks the memory from 2 on, when a slot is free; c writes what b does."""
    events = run(
        attempt("task:a", "validation", 0, 0, 0, 6, memory=60),
        attempt("task:x", "validation", 1, 0, 0, 2),
        attempt("task:b", "validation", 1, 1, 6, 9, memory=60, short=2.0, writes=["/p/t"]),
        attempt("task:c", "validation", 0, 1, 9, 10, writes=["/p/t"]),
        end=10,
    )
    found = timeline.of(ledger.by_event(events))
    assert found is not None
    waits = {what: seconds for what, seconds in found.slots["validation"].items() if what.sort == "wait"}
    assert waits == pytest.approx({What("wait", MEMORY): 4, What("wait", LOCK, "/p/t"): 3})
    of_scope = {
        scope: [(p.start, p.end, p.what.label) for p in pieces if p.what.sort == "wait"]
        for scope, pieces in found.scopes.items()
    }
    assert of_scope["b"] == [(0, 1, DECIDING), (1, 2, "a slot of validation"), (2, 6, MEMORY)]
    # From 2 to 6 nothing stood in c's way but that it comes after b.
    assert of_scope["c"] == [(0, 1, DECIDING), (1, 2, "a slot of validation"), (2, 6, DECIDING), (6, 9, LOCK)]


# Any run that the scheduler could make: drawn as work, done in simulated time, told as a ledger tells it.


@st.composite
def works(draw: st.DrawFn) -> list[Unit]:
    units: list[Unit] = []
    for i in range(draw(st.integers(1, 14))):
        pool = draw(st.sampled_from(["validation", "generation"]))
        needs = draw(st.sets(st.sampled_from([u.name for u in units]), max_size=2)) if units else set()
        writes = draw(st.sets(st.sampled_from(["a", "a/b", "c"]), max_size=1))
        seconds = draw(st.integers(1, 50)) / 10
        units.append(
            Unit(f"task:{i}", pool, seconds, frozenset(needs), "task", f"s{i % 3}", frozenset(), frozenset(writes))
        )
    return units


def told(units: list[Unit], caps: dict[str, int]) -> list[dict[str, Any]]:
    """As attempts of a run: half a second to judge before anything starts, and after it ended."""
    times = replay.simulated(units, caps, replay.learning(units))
    free: dict[str, list[float]] = {pool: [0.0] * slots for pool, slots in caps.items()}
    events = []
    for u in sorted(units, key=lambda u: times[u.name]):
        start, end = times[u.name]
        assert u.pool
        slot = next(i for i, until in enumerate(free[u.pool]) if until <= start)
        free[u.pool][slot] = end
        last = max(u.needs, key=lambda need: times[need][1], default=None)
        ready = times[last][1] if last else 0.0
        more: dict[str, Any] = {
            "writes": sorted(u.writes),
            "needs": sorted(u.needs),
            **({"after": last} if last else {}),
        }
        events.append(attempt(u.name, u.pool, slot, ready + 0.5, start + 0.5, end + 0.5, **{**more, "scope": u.scope}))
    end = max(e["ended"] for e in events) + 0.5
    return run(*events, end=end, lanes=caps)


@settings(max_examples=60, deadline=None)
@given(works(), st.integers(1, 3), st.integers(1, 3))
def test_what_slots_and_scopes_did_sums_to_the_wall_clock(units: list[Unit], n: int, generation: int) -> None:
    events = told(units, {"validation": n, "generation": generation})
    found = timeline.of(ledger.by_event(events))
    assert found is not None
    millisecond_an_event = len(events) / 1000
    for lane, slots in found.lanes.items():
        did = found.slots[lane]
        assert sum(did.values()) == pytest.approx(slots * found.wall, abs=millisecond_an_event)
        assert min(did.values()) >= 0
        work = sum(u.seconds for u in units if u.pool == lane)
        assert sum(seconds for what, seconds in did.items() if what.busy) == pytest.approx(work)
        # Nothing but the half second at each end is the run's own doing: what could start has started.
        assert did.get(What("wait", DECIDING), 0.0) <= slots * 0.5 + millisecond_an_event
    for pieces in found.scopes.values():
        assert pieces[0].start == found.start and pieces[-1].end == found.end
        assert all(a.end == pytest.approx(b.start, abs=1e-9) for a, b in itertools.pairwise(pieces))
    assert sum(found.together.values()) == pytest.approx(found.wall)


@settings(max_examples=60, deadline=None)
@given(works(), st.integers(1, 3), st.integers(1, 3))
def test_what_ran_can_be_replayed_and_no_order_beats_the_bound(units: list[Unit], n: int, generation: int) -> None:
    caps = {"validation": n, "generation": generation}
    events = told(units, caps)
    found = timeline.of(ledger.by_event(events))
    assert found is not None
    order = [u.name for u in units]
    again = sorted(replay.units(found.holds, {}), key=lambda u: order.index(u.name))
    assert {(u.name, u.needs, u.writes) for u in again} == {(u.name, u.needs, u.writes) for u in units}
    took = max(e["ended"] for e in events if e["event"] == "attempt") - 0.5
    assert replay.two_lanes(again, caps) == pytest.approx(took)
    least, _ = replay.bound(again, caps)
    for policy in (replay.two_lanes, replay.first_come, replay.waves):
        assert policy(again, caps) >= least - 1e-6


def test_a_batch_is_one_piece_of_work_and_a_group_stands_for_its_members() -> None:
    events = run(
        attempt("task:x", "validation", 0, 0, 0, 2),
        {"event": "attempt", "task": "all", "kind": "group", "lane": None, "needs": ["task:x"], "outcome": "cached"},
        attempt("baseline:a", "validation", 0, 2, 2, 6, share=0.5, needs=["all"]),
        attempt(
            "baseline:b", "validation", 0, 2, 2, 6, share=0.5, needs=["all"], spans=[["extra", "validation", 3, 5]]
        ),
        attempt("land:a", "validation", 0, 6, 6, 7, needs=["baseline:a"]),
        attempt("land:b", "validation", 1, 6, 6, 7, needs=["baseline:b"]),
        attempt("confirm:a", "validation", 0, 7, 7, 8, needs=["land:a", "kind land"]),
        end=8,
    )
    found = timeline.of(ledger.by_event(events))
    assert found is not None
    assert found.slots["validation"][What("useful", "baseline")] == 4 + 2
    work = {u.name: u for u in replay.units(found.holds, {"all": ["task:x"]})}
    assert work["baseline:a"].seconds == 4
    assert work["baseline:a"].needs == {"all"} and work["all"].needs == {"task:x"}
    assert work["confirm:a"].needs == {"land:a", "kind land"}
    assert work["kind land"].needs == {"land:a", "land:b"}
    # One lands after the other: 2 + 4 + 1 + 1 + 1.
    assert replay.two_lanes(list(work.values()), CAPS) == 9


def test_what_ran_when_a_run_was_killed_held_its_slot_until_the_last_event_and_what_came_next_is_not_measured() -> None:
    began = {"event": "started", "kind": "generate", "lane": "generation", "slot": 0, "ready": 4, "started": 4}
    other = {"event": "started", "kind": "baseline", "lane": "validation", "slot": 0, "ready": 1, "started": 1}
    events = [
        SIX[0],
        {**other, "tasks": ["baseline:a"], "scopes": ["a"]},
        attempt("baseline:a", "validation", 0, 1, 1, 4),
        {**began, "tasks": ["generate:a"], "scopes": ["a"], "after": "baseline:a"},
        attempt("baseline:b", "validation", 1, 1, 1, 9),
    ]
    found = timeline.of(ledger.by_event(events))
    assert found is not None and (found.start, found.end) == (0, 9)
    lost = What("recovery", "generate", NO_END)
    assert found.slots["generation"][lost] == 5
    assert found.slots["validation"][What("idle", NOT_MEASURED, "no event tells what comes next")] == 5
    assert all(what.label != NOTHING_LEFT for lane in found.slots.values() for what in lane)
    for lane, slots in CAPS.items():
        assert sum(found.slots[lane].values()) == slots * 9
    assert [(p.start, p.end, p.what) for p in found.scopes["a"]][-1] == (4, 9, lost)


def test_a_batch_is_of_use_where_one_of_its_members_is_and_a_run_that_broke_is_recovery() -> None:
    spans = [["phase", "bisect", 1, 3]]
    events = run(
        attempt("baseline:a", "validation", 0, 0, 0, 9, outcome="tests-fail-first", spans=spans),
        attempt("baseline:b", "validation", 0, 0, 0, 9),
        attempt("baseline:c", "validation", 0, 0, 9, 11, outcome="tests-fail-first"),
        attempt("baseline:d", "validation", 0, 0, 9, 11, outcome="cached"),
        end=11,
    )
    found = timeline.of(ledger.by_event(events))
    assert found is not None
    assert {what: seconds for what, seconds in found.slots["validation"].items() if what.busy} == {
        What("useful", "baseline"): 7,
        What("recovery", "bisect", "a scope that broke the run of several"): 2,
        What("recovery", "baseline", "tests-fail-first"): 2,
    }


def test_a_slot_that_a_task_takes_beside_its_own_is_waited_for_as_that_task_is() -> None:
    events = run(
        attempt("land:a", "validation", 0, 0, 0, 4),
        attempt("confirm:a", "validation", 0, 4, 4, 10, after="land:a", spans=[["extra", "validation", 5, 9]]),
        end=10,
    )
    found = timeline.of(ledger.by_event(events))
    assert found is not None
    idle = {what: seconds for what, seconds in found.slots["validation"].items() if not what.busy}
    assert idle == {
        What("wait", DEPENDENCY, "land:a"): 4, What("wait", DEPENDENCY, "confirm:a"): 1,
        What("idle", NOTHING_LEFT): 1,
    }  # fmt: skip


def test_of_a_run_that_ended_what_began_is_left_out_whoever_wrote_the_line_and_of_others_it_is_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.jsonl"
    for run in ("over", "killed", 'odd"name'):
        book = ledger.Ledger(path, run)
        book.write("started", tasks=["task:x"])
        book.write("attempt", task='{"event":"started","run":"over"', outcome="ok")
        if run == "over":
            book.write("run-ended", at=9)
        book.close()
    with path.open("a") as file:
        file.write('{"run": "over", "event": "started", "tasks": ["task:y"]}\n{"event":"started","run":"kil\n[1]\n7\n')
    found = ledger.runs(path)
    assert list(found) == ["over", "killed", 'odd"name']
    assert {run: [*map(len, events.values())] for run, events in found.items()} == {
        "over": [1, 1, 1], "killed": [1, 1], 'odd"name': [1, 1]
    }  # fmt: skip
    assert found["over"]["started"][0]["tasks"] == ["task:y"]
    whole = ledger.by_event(ledger.events(path))
    assert {name: len(events) for name, events in whole.items()} == {"started": 4, "attempt": 3, "run-ended": 1}
