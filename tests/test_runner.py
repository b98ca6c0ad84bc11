"""The run command in lanes: real doit, a small host, steps that are functions of the test."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest
from doit.cmd_base import ModuleTaskLoader
from doit.doit_cmd import DoitMain

from pipeline import limits, process
from pipeline.action import Refusal, Step
from pipeline.host import Attempt, RunInfo, Slot
from pipeline.results import Outcome
from pipeline.slots import Slots

TaskDict = dict[str, Any]
OK = Attempt(Outcome.OK)


@attrs.define(eq=False)
class Lab:
    """A host, and a way to run doit on a list of tasks in a directory of its own."""

    capsys: pytest.CaptureFixture[str]
    pools: Mapping[str, int] = attrs.field(factory=lambda: {"generation": 2})
    engine_peak_bytes: int | None = None
    engine_workers: int | None = None
    refusal: str = ""
    said: tuple[str, ...] = ()
    status: int = 0
    estimates: dict[str, float] = attrs.field(factory=dict)
    infos: list[RunInfo] = attrs.field(factory=list)
    events: list[Mapping[str, Any]] = attrs.field(factory=list)
    closed: list[tuple[int, bool]] = attrs.field(factory=list)
    err: str = ""

    def open(self, info: RunInfo) -> None:
        if self.refusal:
            raise Refusal(self.refusal)
        self.infos.append(info)

    def notes(self) -> Sequence[str]:
        return self.said

    def peak(self, task: str) -> int | None:
        return None

    def estimate(self, task: str) -> float | None:
        return self.estimates.get(task)

    def progress(self) -> Sequence[str]:
        return ()

    def began(self, event: Mapping[str, object]) -> None:
        json.dumps(event)

    def record(self, event: Mapping[str, object]) -> None:
        json.dumps(event)
        self.events.append(event)

    def close(self, result: int, interrupted: bool, alone: bool) -> tuple[int, str]:
        self.closed.append((result, interrupted))
        return self.status, "all told"

    def task(self, name: str, perform: Callable[[Slot], Attempt] = lambda slot: OK, **fields: Any) -> TaskDict:
        """A task with one Step; what isn't one of doit's fields goes to meta."""

        def performer(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
            return {key: perform(slot) for key in keys}

        return self.step(name, performer, **fields)

    def step(self, name: str, performer: Any, **fields: Any) -> TaskDict:
        own = {
            "file_dep",
            "targets",
            "task_dep",
            "uptodate",
            "verbosity",
            "teardown",
            "setup",
            "getargs",
            "calc_dep",
            "clean",
        }
        meta = {"pool": "validation"} | {key: value for key, value in fields.items() if key not in own}
        kept = {key: value for key, value in fields.items() if key in own}
        return {"basename": name, "actions": [Step(self, name, performer)], "meta": meta, **kept}

    def doit(self, tasks: Sequence[TaskDict], *args: str, **names: Any) -> tuple[int, str]:
        """Exit status and standard output; what went to standard error is in `err`."""

        def task_all() -> Iterator[TaskDict]:
            yield from map(dict, tasks)  # doit takes keys out of them

        config = {"backend": "sqlite3", "dep_file": "doit.db", "outfile": sys.stdout}
        status = DoitMain(ModuleTaskLoader({"task_all": task_all, "DOIT_CONFIG": config, **names})).run(list(args))
        out, self.err = self.capsys.readouterr()
        return status, out

    def outcomes(self) -> dict[str, str]:
        return {event["task"]: event["outcome"] for event in self.events}

    def most_at_once(self, lane: str) -> int:
        times = [(e["started"], 1) for e in self.events if e["lane"] == lane]
        times += [(e["ended"], -1) for e in self.events if e["lane"] == lane]
        return max(itertools.accumulate(step for _, step in sorted(times)))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Lab]:
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield Lab(capsys)
    assert threading.enumerate() == [threading.main_thread()], "a thread is left"
    assert {number: signal.getsignal(number) for number in before} == before, "a handler is left"


def saved() -> set[str]:
    with sqlite3.connect("doit.db") as connection:
        rows = {row[0] for row in connection.execute("select task_id from doit")}
    connection.close()
    return rows


def nap(seconds: float = 0.1) -> Callable[[Slot], Attempt]:
    def perform(slot: Slot) -> Attempt:
        time.sleep(seconds)
        return OK

    return perform


def writing(*paths: str, text: str = "made") -> Callable[[Slot], Attempt]:
    def perform(slot: Slot) -> Attempt:
        for path in paths:
            Path(path).write_text(text)
        return OK

    return perform


# Lanes


def test_both_lanes_run_at_once_and_each_at_its_cap(lab: Lab) -> None:
    tasks = [lab.task(f"v{i}", nap(), scope=f"{i}") for i in range(6)]
    tasks += [lab.task(f"g{i}", nap(), pool="generation", scope=f"{i}") for i in range(4)]
    status, out = lab.doit(tasks, "-n", "3")
    assert (status, lab.closed) == (0, [(0, False)])
    assert lab.most_at_once("validation") == 3
    assert lab.most_at_once("generation") == 2
    assert min(e["started"] for e in lab.events if e["lane"] == "generation") < min(
        e["ended"] for e in lab.events if e["lane"] == "validation"
    )
    assert out.startswith("lanes: validation 3 (-n 3), generation 2 (tasks.yaml), engine workers ")
    assert out.endswith("all told\n")


def test_what_the_host_has_to_say_is_said_once_before_anything_starts(lab: Lab) -> None:
    lab.said = ("WARN one", "WARN two")
    _, out = lab.doit([lab.task("a"), lab.task("b")], "-n", "2")
    assert out.splitlines()[1:4] == ["WARN one", "WARN two", ".  a"]
    assert out.count("WARN") == 2
    for reporter in ("json", "zero"):
        assert "WARN" not in lab.doit([lab.task("c")], "-n", "2", "-r", reporter)[1] + lab.err


def test_a_full_pool_delays_its_task_and_leaves_the_worker_free(lab: Lab) -> None:
    lab.pools = {"generation": 1}
    tasks = [lab.task(f"g{i}", nap(0.15), pool="generation") for i in range(3)]
    tasks += [lab.task(f"v{i}", nap(0.05)) for i in range(3)]
    lab.doit(tasks, "-n", "1")
    assert lab.most_at_once("generation") == 1
    ended = [e["task"] for e in lab.events]
    assert ended.index("v2") < ended.index("g1")


def test_two_running_sets_of_one_lane_never_share_an_index(lab: Lab) -> None:
    held: set[int] = set()
    guard = threading.Lock()

    def perform(slot: Slot) -> Attempt:
        with guard:
            assert slot.index not in held
            held.add(slot.index)
        time.sleep(0.01)
        with guard:
            held.remove(slot.index)
        return attrs.evolve(OK, fields={"index": slot.index, "workers": slot.workers})

    status, _ = lab.doit([lab.task(f"t{i}", perform) for i in range(20)], "-n", "3")
    assert status == 0
    assert {e["index"] for e in lab.events} == {0, 1, 2}
    assert {e["workers"] for e in lab.events} == {lab.infos[0].lanes.workers}


def test_an_extra_slot_is_had_only_where_one_is_free_and_counts(lab: Lab) -> None:
    lab.pools = {"generation": 2}
    running = 0
    guard = threading.Lock()

    def perform(slot: Slot) -> Attempt:
        nonlocal running
        with slot.try_extra() as first, slot.try_extra() as second:
            with guard:
                running += 1 + first
                assert running <= 2
            time.sleep(0.05)
            with guard:
                running -= 1 + first
            return attrs.evolve(OK, fields={"extra": (first, second)})

    status, _ = lab.doit([lab.task(f"g{i}", perform, pool="generation") for i in range(3)], "-n", "1")
    assert status == 0
    assert all(not e["extra"][1] for e in lab.events), "two slots: never a second extra one"
    lab.events.clear()
    lab.doit([lab.task("alone", perform, pool="generation")], "-n", "1")
    assert lab.events[0]["extra"] == (True, False)


def test_an_extra_slot_that_is_free_again_lets_the_next_task_start(lab: Lab) -> None:
    free = threading.Event()

    def greedy(slot: Slot) -> Attempt:
        with slot.try_extra() as extra:
            assert extra
            time.sleep(0.1)
        assert free.wait(5), "the other task never started"
        return OK

    def other(slot: Slot) -> Attempt:
        free.set()
        return OK

    tasks = [lab.task("greedy", greedy, pool="generation"), lab.task("first", nap(0.02))]
    tasks += [lab.task("other", other, pool="generation", task_dep=["first"])]
    assert lab.doit(tasks, "-n", "1")[0] == 0


def test_writers_of_one_file_never_overlap(lab: Lab) -> None:
    tasks = [lab.task(f"w{i}", nap(0.03), writes=["src/a.js"]) for i in range(3)]
    tasks += [lab.task("dir", nap(0.03), writes=["src/"]), lab.task("free", nap(0.03), writes=["b"])]
    assert lab.doit(tasks, "-n", "5")[0] == 0
    locked = sorted((e["started"], e["ended"]) for e in lab.events if e["task"] != "free")
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(locked))


def test_a_task_with_locks_is_judged_when_it_holds_them(lab: Lab) -> None:
    writer = lab.task("writer", writing("shared", text="new"), writes=["shared"])
    reader = lab.task("reader", writing("read"), reads=["shared"], file_dep=["shared"], targets=["read"])
    Path("shared").write_text("old")
    lab.doit([reader], "-n", "2")
    lab.events.clear()
    lab.estimates = {"writer": 9}
    lab.doit([writer, reader], "-n", "2")
    assert lab.outcomes() == {"writer": "ok", "reader": "ok"}, "judged before the write it would have been up to date"


def test_tasks_of_a_batch_share_a_slot_and_one_call(lab: Lab) -> None:
    calls: list[tuple[Hashable, ...]] = []

    def performer(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        calls.append(tuple(keys))
        return {key: attrs.evolve(OK, fields={"index": slot.index}) for key in keys}

    tasks = [lab.step(f"b{i}", performer, batch="baseline") for i in range(5)]
    for words in (("-n", "2"), ()):
        calls.clear()
        lab.doit(tasks, *words)
        assert calls == [("b0", "b1", "b2", "b3", "b4")]
        assert {e["task"] for e in lab.events} == {"b0", "b1", "b2", "b3", "b4"}


@pytest.mark.parametrize(("n", "workers"), [(1, 4), (2, 4), (3, 3), (8, 4)])
def test_a_slot_with_all_free_ones_of_its_lane_has_their_workers(
    n: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "cores", lambda: 4)
    slots = Slots({"validation": n}, lambda: None)
    index = slots.take("validation")
    assert index == 0
    slot = Slot("validation", index, max(1, 4 // n), slots)
    with slot.all_free() as given:
        assert given == workers
        assert slots.in_use() == {"validation": n}
    assert slots.in_use() == {"validation": 1}


def test_a_place_that_is_lent_is_somebody_else_s_and_has_to_come_back_first(lab: Lab) -> None:
    """One place: `other` can only begin while `waiter` waits, and `last` only when `waiter` has gone on and ended."""
    others, told = threading.Event(), list[str]()

    def waiter(slot: Slot) -> Attempt:
        with slot.lent():
            assert others.wait(20)
        told.append("waiter is back")
        time.sleep(0.1)
        told.append("waiter has ended")
        return attrs.evolve(OK, fields={"index": slot.index})

    def other(slot: Slot) -> Attempt:
        others.set()
        time.sleep(0.2)
        told.append("other has ended")
        return attrs.evolve(OK, fields={"index": slot.index})

    def last(slot: Slot) -> Attempt:
        told.append("last")
        return OK

    tasks = [lab.task(f.__name__, f, pool="one") for f in (waiter, other, last)]
    lab.pools = {"one": 1}
    lab.estimates = {"waiter": 9.0, "other": 5.0, "last": 1.0}
    status, _ = lab.doit(tasks, "-n", "2")
    assert status == 0
    assert told == ["other has ended", "waiter is back", "waiter has ended", "last"]
    at = {e["task"]: e.get("index") for e in lab.events}
    assert at["waiter"] != at["other"], "an index is nobody else's while it is held, lent or not"


def test_a_run_that_ends_while_a_place_is_lent_waits_for_nobody(lab: Lab) -> None:
    def waiter(slot: Slot) -> Attempt:
        with slot.lent():
            os.kill(os.getpid(), signal.SIGINT)
            process.pause(30)
        return OK

    began = time.monotonic()
    status, _ = lab.doit([lab.task("waiter", waiter)], "-n", "1")
    assert status == 130
    assert time.monotonic() - began < 10
    assert lab.outcomes() == {"waiter": "interrupted"}


def test_however_places_are_lent_no_more_are_taken_than_there_are() -> None:
    slots, lock, active, most = Slots({"p": 2}, lambda: None), threading.Lock(), [0], [0]

    def count(by: int) -> None:
        with lock:
            active[0] += by
            most[0] = max(most[0], active[0])

    def work(seed: int) -> None:
        lot = random.Random(seed)
        while True:
            with slots.lock:
                index = slots.take("p")
            if index is not None:
                break
            time.sleep(0.002)
        count(1)
        for _ in range(3):
            time.sleep(lot.random() / 100)
            count(-1)
            with Slot("p", index, 1, slots).lent():
                time.sleep(lot.random() / 100)
            count(1)
        time.sleep(lot.random() / 100)
        count(-1)
        slots.give("p", index)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [2]
    assert slots.in_use() == {"p": 0}
    assert [slots.take("p") is None for _ in range(3)] == [False, False, True]


def test_members_of_a_batch_that_are_up_to_date_are_not_performed(lab: Lab) -> None:
    calls: list[tuple[Hashable, ...]] = []

    def performer(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        calls.append(tuple(keys))
        return dict.fromkeys(keys, OK)

    Path("in").write_text("")
    old = lab.step("old", performer, batch="b", writes=["x"], file_dep=["in"])
    lab.doit([old], "-n", "1")
    lab.doit([old, lab.step("new", performer, batch="b", writes=["y"])], "-n", "1")
    assert calls == [("old",), ("new",)]
    assert lab.outcomes()["old"] == "cached"


def test_after_waits_for_every_task_of_a_kind_and_is_judged_then(lab: Lab) -> None:
    Path("branch").write_text("old")
    lands = [lab.task(f"land{i}", writing("branch", text="new"), kind="land", scope=f"{i}") for i in range(3)]
    confirm = lab.task("confirm", kind="confirm", after="land", file_dep=["branch"])
    lab.doit([confirm], "-n", "2")
    lab.events.clear()
    lab.doit([confirm, *lands], "-n", "2")
    assert lab.events[-1]["task"] == "confirm"
    assert lab.events[-1]["outcome"] == "ok", "judged before the landings it would have been up to date"
    assert lab.events[-1]["ready"] >= max(e["ended"] for e in lab.events[:-1])


def test_after_is_no_dependency_a_failed_landing_does_not_stop_the_confirmation(lab: Lab) -> None:
    lands = [lab.task(f"land{i}", lambda slot: Attempt(Outcome.CONFLICT, "no"), kind="land") for i in range(2)]
    status, _ = lab.doit([lab.task("confirm", after="land"), *lands], "-n", "2", "--continue")
    assert status == 1
    assert lab.outcomes() == {"land0": "conflict", "land1": "conflict", "confirm": "ok"}


def test_after_does_not_wait_for_what_will_never_run(lab: Lab) -> None:
    Path("in").write_text("")
    setup = lab.task("setup", kind="land")
    owner = lab.task("owner", setup=["setup"], file_dep=["in"])
    confirm = lab.task("confirm", after="land")
    assert lab.doit([owner, setup], "-n", "2", "owner")[0] == 0
    lab.events.clear()
    assert lab.doit([owner, setup, confirm], "-n", "2", "owner", "confirm")[0] == 0
    assert lab.outcomes() == {"owner": "cached", "confirm": "ok"}


def test_after_what_waits_for_it_is_an_error_that_names_both(lab: Lab) -> None:
    tasks = [lab.task("confirm", after="land"), lab.task("land", kind="land", task_dep=["confirm"])]
    status, out = lab.doit(tasks, "-n", "2")
    assert status == 2
    assert "tasks wait for each other: confirm, land" in out


# One at a time


@pytest.mark.parametrize("seed", range(8))
def test_without_n_tasks_run_one_at_a_time_in_doits_order(lab: Lab, seed: int) -> None:
    def graph(make: Callable[..., TaskDict]) -> list[TaskDict]:
        rng = random.Random(seed)
        names = [f"t{i}" for i in range(15)]
        # Each is needed by one other at most: doit keeps those that wait for a task in a set, in no order.
        needs: dict[str, list[str]] = {name: [] for name in names}
        for i, name in enumerate(names[:-1]):
            if rng.random() < 0.8:
                needs[rng.choice(names[i + 1 :])].append(name)
        rng.shuffle(names)
        return [make(name, task_dep=needs[name], pool=rng.choice(["validation", "generation"])) for name in names]

    def ordinary(name: str, pool: str, **fields: Any) -> TaskDict:
        return {"basename": name, "actions": [lambda: None], **fields}

    def order(out: str) -> list[str]:
        return [line.split()[1] for line in out.splitlines() if line.startswith(".  ")]

    _, stock = lab.doit(graph(ordinary))
    assert lab.infos == [], "doit's own runner"
    _, out = lab.doit(graph(lab.task))
    assert order(out) == order(stock)
    assert len(order(out)) == 15
    assert lab.most_at_once("validation") == lab.most_at_once("generation") == 1
    assert "(one task at a time)" in out


# What fails


def failing(message: str = "no good") -> Callable[[Slot], Attempt]:
    return lambda slot: Attempt(Outcome.BUILD_ERROR, message, output="what the compiler said\n")


def test_a_failure_starts_nothing_new_and_what_runs_is_finished_and_saved(lab: Lab) -> None:
    tasks = [lab.task("bad", failing()), lab.task("slow", nap(0.2)), lab.task("next"), lab.task("last")]
    status, out = lab.doit(tasks, "-n", "2")
    assert (status, lab.closed) == (1, [(1, False)])
    assert lab.outcomes() == {"bad": "build-error", "slow": "ok"}
    assert saved() == {"slow"}
    assert "TaskFailed - taskid:bad\nno good\n" in out
    assert "bad <stdout>:\nwhat the compiler said\n" in out


def test_continue_goes_on_with_all_that_does_not_need_it(lab: Lab) -> None:
    tasks = [lab.task("bad", failing()), lab.task("needs", task_dep=["bad"]), lab.task("other")]
    status, out = lab.doit(tasks, "-n", "2", "--continue")
    assert status == 2, "doit: an unmet dependency is an error"
    assert lab.outcomes() == {"bad": "build-error", "other": "ok"}
    assert "UnmetDependency - taskid:needs" in out


def test_an_exception_is_an_error_with_its_traceback_for_every_task_of_the_set(lab: Lab) -> None:
    def performer(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        raise ZeroDivisionError("by nought")

    status, out = lab.doit([lab.step(name, performer, batch="b") for name in ("one", "two")], "-n", "1")
    assert status == 2
    assert out.count("ZeroDivisionError: by nought") == 2
    assert "TaskError - taskid:one" in out
    assert "TaskError - taskid:two" in out
    assert lab.outcomes() == {"one": "crashed", "two": "crashed"}
    assert saved() == set()


def test_a_task_without_a_result_failed(lab: Lab) -> None:
    status, out = lab.doit([lab.step("mute", lambda keys, slot: {})], "-n", "1")
    assert status == 1
    assert "mute: ended without a result" in out


def test_a_missing_target_is_a_failure_whatever_was_returned(lab: Lab) -> None:
    status, out = lab.doit([lab.task("t", targets=["never"])], "-n", "1")
    assert status == 1
    assert "t: ended without its target never" in out
    assert (lab.outcomes(), saved()) == ({"t": "crashed"}, set())


def test_what_was_interrupted_is_not_saved_though_its_targets_are_there(lab: Lab) -> None:
    def perform(slot: Slot) -> Attempt:
        Path("out").write_text("half")
        return Attempt(Outcome.INTERRUPTED)

    status, out = lab.doit([lab.task("t", perform, targets=["out"])], "-n", "1")
    assert status == 1
    assert saved() == set()
    assert "TaskFailed" not in out


def test_outcomes_that_are_data_fail_nothing(lab: Lab) -> None:
    tasks = [lab.task("t", lambda slot: Attempt(Outcome.NO_TESTS, line="t: no test ran"))]
    status, out = lab.doit(tasks, "-n", "1")
    assert (status, lab.outcomes()) == (0, {"t": "no-tests"})
    assert "t: no test ran\n" in out


# What doit remembers


def test_up_to_date_tasks_are_recorded_as_cached_and_a_runs_them(lab: Lab) -> None:
    Path("in").write_text("")
    tasks = [lab.task("t", file_dep=["in"], kind="baseline", scope="s", round=0)]
    lab.doit(tasks, "-n", "1")
    first = lab.events[0]
    assert {key: first[key] for key in ("kind", "scope", "round", "lane")} == {
        "kind": "baseline", "scope": "s", "round": 0, "lane": "validation",
    }  # fmt: skip
    assert first["ready"] <= first["started"] <= first["ended"]
    lab.doit(tasks, "-n", "1")
    assert (lab.events[1]["outcome"], lab.events[1]["lane"]) == ("cached", None)
    lab.doit(tasks, "-n", "1", "-a")
    assert lab.events[2]["outcome"] == "ok"
    assert [info.always for info in lab.infos] == [False, False, True]


def test_a_record_is_gone_before_its_task_starts_and_back_as_soon_as_it_ends(lab: Lab) -> None:
    Path("in").write_text("1")
    seen: list[set[str]] = []

    def look(slot: Slot) -> Attempt:
        seen.append(saved())
        return OK

    tasks = [lab.task("one", look, file_dep=["in"]), lab.task("two", look, file_dep=["in"], task_dep=["one"])]
    lab.doit(tasks, "-n", "1")
    Path("in").write_text("22")
    lab.doit(tasks, "-n", "1")
    assert seen == [set(), {"one"}, {"two"}, {"one"}]


def test_an_input_edited_while_its_task_runs_makes_it_stale(lab: Lab) -> None:
    Path("in").write_text("before")

    def edit(slot: Slot) -> Attempt:
        Path("in").write_text("after!")
        return OK

    tasks = [lab.task("t", edit, file_dep=["in"])]
    lab.doit(tasks, "-n", "1")
    lab.doit(tasks, "-n", "1")
    lab.doit(tasks, "-n", "1")
    assert [e["outcome"] for e in lab.events] == ["ok", "ok", "cached"]


def test_a_value_that_cannot_be_saved_fails_its_task_and_loses_nothing_else(lab: Lab) -> None:
    odd = {"basename": "odd", "actions": [lambda: {"x": object()}]}
    status, out = lab.doit([lab.task("good"), odd, lab.task("fine")], "-n", "1", "--continue")
    assert status == 2
    assert "odd: what it returned can't be saved: Object of type object is not JSON serializable" in out
    assert saved() == {"good", "fine"}


@pytest.mark.parametrize("backend", ["dbm", "json"])
def test_other_backends_work_as_in_doit(lab: Lab, backend: str) -> None:
    Path("in").write_text("")
    tasks = [lab.task("t", file_dep=["in"])]
    for _ in range(2):
        assert lab.doit(tasks, "--backend", backend, "--db-file", "other.db", "-n", "1")[0] == 0
    assert [e["outcome"] for e in lab.events] == ["ok", "cached"]


# What people see


def test_the_output_of_a_task_is_in_one_piece(lab: Lab) -> None:
    def talk(name: str) -> Callable[[Slot], Attempt]:
        lines = "".join(f"{name} {i}\n" for i in range(50))
        return lambda slot: attrs.evolve(OK, output=lines.rstrip(), line=f"{name} done")

    tasks = [lab.task(name, talk(name)) for name in "abcdef"]
    _, out = lab.doit(tasks, "-n", "3", "-v", "2")
    said = [line for line in out.splitlines() if line[0] in "abcdef" and line != "all told"]
    assert [name for name, _ in itertools.groupby(line[0] for line in said)] == [line[0] for line in said[::50]]
    assert all(len(list(lines)) == 50 for _, lines in itertools.groupby(line[0] for line in said))
    assert "   a: a done\n" in out
    for verbosity in "01":
        _, out = lab.doit(tasks, "-n", "3", "-v", verbosity)
        assert "a 1\n" not in out
        assert ("a done\n" in out) == (verbosity == "1")


def test_what_waits_for_something_up_to_date_was_made_ready_by_what_that_needs(lab: Lab) -> None:
    tasks = [lab.task("a"), lab.task("b", uptodate=[True], task_dep=["a"]), lab.task("c", task_dep=["b"])]
    lab.doit(tasks, "-n", "2")
    lab.events.clear()
    lab.doit(tasks, "-n", "2")
    assert lab.outcomes() == {"a": "ok", "b": "cached", "c": "ok"}
    assert next(e for e in lab.events if e["task"] == "c")["after"] == "a"


def test_verbosity_0_says_nothing_of_ours_while_all_goes_well_and_everything_when_it_does_not(lab: Lab) -> None:
    good = lab.task("good", lambda slot: attrs.evolve(OK, output="said", line="good done"))
    status, out = lab.doit([good], "-n", "2", "-v", "0")
    assert (status, out) == (0, ".  good\n")
    status, out = lab.doit([lab.task("bad", failing())], "-n", "2", "-v", "0")
    assert status == 1 and "all told" in out and "lanes:" not in out


def test_json_stays_one_document_with_the_lanes_and_the_summary(lab: Lab) -> None:
    lab.engine_peak_bytes = 1 << 60
    tasks = [lab.task("t", lambda slot: attrs.evolve(OK, output="said", line="t fine"), verbosity=2)]
    tasks += [lab.task("bad", failing())]
    status, out = lab.doit(tasks, "-n", "2", "-r", "json")
    document = json.loads(out)
    assert status == 1
    assert {t["name"]: t["result"] for t in document["tasks"]} == {"t": "success", "bad": "fail"}
    assert document["lanes"].startswith("lanes: validation 2 (-n 2)")
    assert document["summary"] == "all told"
    assert document["out"] == "said\n"
    assert document["err"].startswith("warning: validation 2 × ")


@pytest.mark.parametrize(
    ("reporter", "shown"), [("console", True), ("executed-only", True), ("zero", False), ("error-only", False)]
)
def test_lanes_and_summary_go_through_the_reporter(lab: Lab, reporter: str, shown: bool) -> None:
    tasks = [lab.task("t", lambda slot: attrs.evolve(OK, line="t fine"))]
    assert lab.doit(tasks, "-n", "1", "-r", reporter, "-o", "log") == (0, "")
    lines = Path("log").read_text().splitlines()
    assert [line.split()[0] for line in lines] == (["lanes:", ".", "t:", "all"] if shown else [])


def test_more_engine_runs_than_memory_holds_are_warned_of(lab: Lab) -> None:
    lab.engine_peak_bytes = 1 << 60
    _, out = lab.doit([lab.task(f"t{i}") for i in range(2)], "-n", "2")
    assert "warning: validation 2 × 1073741824.0 GiB an engine run needs more than the " in out
    assert "-n 1 fits\n" in out
    lab.engine_peak_bytes = 1
    _, out = lab.doit([lab.task("t")], "-n", "2")
    assert "warning" not in out


# The host


def test_a_refusal_is_an_error_without_a_traceback_and_nothing_ran(lab: Lab) -> None:
    lab.refusal = "standing on the landing branch; check out another"
    status, out = lab.doit([lab.task("t")], "-n", "1", "-r", "json", "-o", "log")
    assert (status, out, lab.err) == (3, "", "ERROR: standing on the landing branch; check out another\n")
    assert (lab.events, lab.closed, Path("log").exists()) == ([], [], False)


def test_the_host_is_told_what_is_selected_and_by_what_lanes(lab: Lab) -> None:
    group = {"basename": "mutate", "actions": None, "task_dep": ["b"]}
    lab.doit(
        [lab.task("a"), lab.task("b", file_dep=["x"]), lab.task("x", writing("x"), targets=["x"]), group], "mutate"
    )
    lab.doit([lab.task("a")])
    assert [set(info.selected) for info in lab.infos] == [{"b", "x", "mutate"}, {"a"}]
    assert lab.infos[0].lanes.serial
    assert lab.infos[0].run < lab.infos[1].run


def test_the_worse_of_doits_and_the_hosts_status_is_the_exit_status(lab: Lab) -> None:
    lab.status = 1
    assert lab.doit([lab.task("t")], "-n", "1")[0] == 1
    assert lab.doit([lab.step("t", lambda keys, slot: 1 // 0)], "-n", "1")[0] == 2


def test_the_host_is_closed_when_something_breaks_in_doit_itself(lab: Lab) -> None:
    def broken() -> bool:
        raise LookupError("in an uptodate callable")

    tasks = [lab.task("slow", nap()), lab.task("t", uptodate=[broken], task_dep=["first"]), lab.task("first")]
    status, _ = lab.doit(tasks, "-n", "2")
    assert (status, lab.closed) == (3, [(2, False)])
    assert "LookupError: in an uptodate callable" in lab.err


@pytest.mark.parametrize(
    ("n", "message"),
    [
        ("0", "-n 0: the validation lane needs a slot at least"),
        ("-3", "-n -3: the validation lane needs a slot at least"),
        ("many", "Error parsing parameter 'num_process'"),
    ],
)
def test_a_number_of_slots_that_is_none_is_an_error(lab: Lab, n: str, message: str) -> None:
    status, _ = lab.doit([lab.task("t")], "-n", n)
    assert (status, lab.infos) == (3, [])
    assert message in lab.err
    assert "Traceback" not in lab.err


def test_a_bad_cap_in_the_environment_is_an_error(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOIT_MUTATE_MAX_SLOTS", "two")
    status, _ = lab.doit([lab.task("t")], "-n", "2")
    assert status == 3
    assert lab.err.startswith("ERROR: DOIT_MUTATE_MAX_SLOTS=two: not a positive integer")


def test_the_cap_in_the_environment_holds_for_every_lane(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOIT_MUTATE_MAX_SLOTS", "1")
    tasks = [lab.task(f"{pool[0]}{i}", nap(0.02), pool=pool) for i in range(2) for pool in ("validation", "generation")]
    _, out = lab.doit(tasks, "-n", "2")
    assert lab.most_at_once("validation") == lab.most_at_once("generation") == 1
    assert "validation 1 (DOIT_MUTATE_MAX_SLOTS), generation 1 (DOIT_MUTATE_MAX_SLOTS)" in out


def test_a_pool_nobody_declared_is_an_error_before_anything_starts(lab: Lab) -> None:
    status, _ = lab.doit([lab.task("a"), lab.task("t", pool="gpu")], "-n", "1")
    assert (status, lab.infos) == (3, [])
    assert "ERROR: t: no pool is named 'gpu'; there are generation, validation" in lab.err


def test_a_task_with_a_pool_and_another_action_is_an_error(lab: Lab) -> None:
    status, _ = lab.doit([lab.task("a"), {"basename": "t", "actions": ["true"], "meta": {"pool": "validation"}}])
    assert (status, lab.infos) == (3, [])
    assert "ERROR: t: a task with a pool has one action, a Step" in lab.err


# doit's other features, beside lanes


def test_without_a_task_in_a_pool_among_the_selected_the_host_is_not_asked(lab: Lab) -> None:
    def report(only: str, files: list[str]) -> None:
        print("report on", only, *files)

    plain = {
        "basename": "report",
        "actions": [report],
        "verbosity": 2,
        "params": [{"name": "only", "long": "only", "default": ""}],
        "pos_arg": "files",
    }
    assert lab.doit([lab.task("t"), plain], "report", "--only", "t", "t") == (0, ".  report\nreport on t t\n")
    assert lab.infos == []


def test_ordinary_tasks_groups_values_setup_and_teardown_work_as_in_doit(lab: Lab) -> None:
    log: list[str] = []

    def note(text: str) -> Callable[[], None]:
        return lambda: log.append(text)

    def use(got: int) -> None:
        log.append(f"got {got}")

    def step(slot: Slot) -> Attempt:
        log.append("step")
        return OK

    tasks: list[TaskDict] = [
        {"basename": "value", "actions": [lambda: {"x": 42}]},
        {"basename": "user", "actions": [use], "getargs": {"got": ("value", "x")}},
        {"basename": "setup", "actions": [note("setup")], "teardown": [note("teardown")]},
        {"basename": "deps", "actions": [lambda: {"task_dep": ["late"]}]},
        {"basename": "late", "actions": [note("late")]},
        lab.task("step", step, setup=["setup"], teardown=[note("undo")], calc_dep=["deps"]),
        lab.task("ignored"),
        {"basename": "group", "actions": None, "task_dep": ["step", "user", "ignored"]},
    ]
    lab.doit(tasks, "ignore", "ignored")
    status, out = lab.doit(tasks, "-n", "3", "group")
    assert status == 0, out
    assert "!! ignored\n" in out
    assert sorted(log) == ["got 42", "late", "setup", "step", "teardown", "undo"]
    assert log.index("late") < log.index("setup") < log.index("step")
    assert log[-2:] == ["undo", "teardown"]
    assert lab.outcomes() == {"value": "ok", "user": "ok", "setup": "ok", "deps": "ok", "late": "ok", "step": "ok"}


def test_single_runs_only_what_is_named(lab: Lab) -> None:
    status, _ = lab.doit([lab.task("a"), lab.task("b", task_dep=["a"])], "-n", "2", "-s", "b")
    assert (status, lab.outcomes()) == (0, {"b": "ok"})
    assert lab.infos[0].selected == ("b",)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["list"], "t   \n"),
        (["info", "t"], "status     : up-to-date"),
        (["clean", "t"], "t - executing 'Step: t'"),
        (["forget", "t"], "forgetting t"),
        (["help", "t"], "t"),
    ],
)
def test_doits_other_commands_take_the_tasks_as_they_are(lab: Lab, command: list[str], says: str) -> None:
    Path("in").write_text("")
    tasks = [lab.task("t", kind="baseline", file_dep=["in"], clean=[Step(lab, "t", lambda keys, slot: {})])]
    lab.doit(tasks, "-n", "1")
    _, out = lab.doit(tasks, *command)
    assert says in out
    assert "Traceback" not in lab.err


# Signals and kills: processes of their own

DODO = """
    import json, os, subprocess, sys, time
    from pathlib import Path
    from pipeline import process
    from pipeline.results import Outcome
    from pipeline.action import Step
    from pipeline.host import Attempt

    class Host:
        pools, engine_peak_bytes, engine_workers = {"generation": 2}, None, None
        def open(self, info):
            if os.environ.get("SLOW_OPEN"): print("opening", flush=True); time.sleep(60)
        def peak(self, task): return None
        def estimate(self, task): return None
        def notes(self): return []
        def progress(self): return ""
        def began(self, event): pass
        def record(self, event):
            with open("events", "a") as file: file.write(json.dumps(event) + "\\n")
        def close(self, result, interrupted, alone): return result, f"closed, interrupted: {interrupted}"

    def perform(keys, slot):
        [key] = keys
        with open("ran", "a") as file: file.write(key + "\\n")
        seconds = "0.05" if key.startswith("quick") or not os.environ.get("SLOW") else "60"
        command = f"trap '' TERM; sleep {seconds}" if os.environ.get("STUBBORN") else f"sleep {seconds} & wait"
        process.run(["sh", "-c", command], cwd=Path.cwd())
        Path(key).write_text("")
        return {key: Attempt(Outcome.OK)}

    host = Host()
    DOIT_CONFIG = {"backend": "sqlite3", "dep_file": "doit.db", "default_tasks": ["steps"]}
    Path("in").touch()

    def task_steps():
        for key in ["quick0", "quick1", "long0", "long1", "next"]:
            yield {"name": key, "actions": [Step(host, key, perform)], "file_dep": ["in"], "targets": [key],
                   "meta": {"pool": "validation"}}

    def task_plain():
        return {"actions": ["sleep 60"], "task_dep": ["steps:quick0"]}
"""


@attrs.define
class Drive:
    """doit in a process and a directory of its own."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls, *args: str, **env: str) -> Drive:
        Path("dodo.py").write_text(textwrap.dedent(DODO))
        return cls(
            subprocess.Popen(
                [sys.executable, "-m", "doit", *args], env=os.environ | env, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err

    def until_ran(self, *keys: str) -> None:
        self.until(lambda: set(keys) <= set(ran()))

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert self.process.poll() is None, self.end()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def sleepers(self) -> list[psutil.Process]:
        return [p for p in psutil.Process(self.process.pid).children(recursive=True) if p.name() == "sleep"]


def ran() -> list[str]:
    return Path("ran").read_text().split() if Path("ran").exists() else []


def assert_gone(processes: Sequence[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, 3)
    assert not alive


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_children_saves_what_finished_and_the_next_run_continues(lab: Lab, number: int) -> None:
    drive = Drive.start("-n", "2", SLOW="1")
    drive.until_ran("long0", "long1")
    drive.until(lambda: len(drive.sleepers()) == 2)
    children = drive.sleepers()
    drive.process.send_signal(number)
    status, out, err = drive.end()
    assert (status, err) == (130, "")
    assert out.endswith("closed, interrupted: True\n")
    assert_gone(children)
    assert saved() == {"steps:quick0", "steps:quick1"}
    events = [json.loads(line) for line in Path("events").read_text().splitlines()]
    assert [e["outcome"] for e in events] == ["ok", "ok", "interrupted", "interrupted"]
    before = len(ran())
    assert Drive.start("-n", "2").end()[0] == 0
    assert sorted(ran()[before:]) == ["long0", "long1", "next"]


def test_a_signal_that_comes_twice_at_one_moment_as_timeout_sends_it_is_one(lab: Lab) -> None:
    drive = Drive.start("-n", "2", SLOW="1", STUBBORN="1")
    drive.until_ran("long0", "long1")
    drive.until(lambda: len(drive.sleepers()) == 2)
    drive.process.send_signal(signal.SIGTERM)
    time.sleep(0.03)
    drive.process.send_signal(signal.SIGTERM)
    status, out, err = drive.end()
    assert (status, err) == (130, "")
    assert out.endswith("closed, interrupted: True\n")


def test_a_second_signal_kills_at_once(lab: Lab) -> None:
    drive = Drive.start("-n", "2", SLOW="1", STUBBORN="1")
    drive.until_ran("long0", "long1")
    drive.until(lambda: len(drive.sleepers()) == 2)
    children = drive.sleepers()
    drive.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert drive.process.poll() is None, "its children ignore SIGTERM: they have a while"
    asked = time.monotonic()
    drive.process.send_signal(signal.SIGINT)
    status, _, err = drive.end()
    assert (status, err) == (130, "")
    assert time.monotonic() - asked < 2
    assert_gone(children)


def test_a_signal_while_the_host_opens_ends_the_run(lab: Lab) -> None:
    drive = Drive.start("-n", "2", SLOW_OPEN="1")
    assert drive.process.stdout is not None
    assert drive.process.stdout.readline() == "opening\n"
    drive.process.send_signal(signal.SIGTERM)
    assert drive.end() == (130, "", "")
    assert ran() == []


def test_a_signal_while_a_task_is_judged_ends_the_run_without_a_traceback(lab: Lab) -> None:
    def judge() -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        process.run(["sleep", "60"], cwd=Path.cwd())
        return True

    status, _ = lab.doit([lab.task("a", uptodate=[judge]), lab.task("b")], "-n", "2")
    assert status == 130 and "Traceback" not in lab.err
    assert lab.closed == [(0, True)] and not lab.events
    for thread in set(threading.enumerate()) - {threading.main_thread()}:
        thread.join(5)  # sh's own looks once a second


def test_a_signal_while_the_host_tidies_up_lets_it(lab: Lab) -> None:
    class Tidying(Lab):
        def close(self, result: int, interrupted: bool, alone: bool) -> tuple[int, str]:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)
            assert process.run(["sleep", "0.3"], cwd=Path.cwd()).ok
            return super().close(result, interrupted, alone)

    tidying = Tidying(lab.capsys)
    status, out = tidying.doit([tidying.task("a")], "-n", "2")
    assert status == 130 and "all told" in out
    assert tidying.outcomes() == {"a": "ok"}
    for thread in set(threading.enumerate()) - {threading.main_thread()}:
        thread.join(5)  # sh's own looks once a second


def test_a_signal_during_an_ordinary_task_ends_what_it_started(lab: Lab) -> None:
    drive = Drive.start("-n", "2", "plain")
    drive.until_ran("quick0")
    drive.until(lambda: saved() == {"steps:quick0"} and len(drive.sleepers()) == 1)
    children = drive.sleepers()
    drive.process.send_signal(signal.SIGTERM)
    status, _, err = drive.end()
    assert (status, err) == (130, "")
    assert_gone(children)
    assert saved() == {"steps:quick0"}


def test_after_kill_9_finished_tasks_are_not_run_again(lab: Lab) -> None:
    drive = Drive.start("-n", "2", SLOW="1")
    drive.until_ran("long0", "long1")
    drive.until(lambda: len(drive.sleepers()) == 2)
    children = drive.sleepers()
    drive.process.kill()
    drive.end()
    for child in children:
        os.killpg(os.getsid(child.pid), signal.SIGKILL)
    Path("long0").write_text("half")
    before = len(ran())
    assert Drive.start("-n", "2").end()[0] == 0
    assert sorted(ran()[before:]) == ["long0", "long1", "next"]


def test_a_reader_that_goes_away_ends_the_run_in_order(lab: Lab) -> None:
    drive = Drive.start("-n", "2", "-v", "2")
    assert drive.process.stdout is not None
    drive.process.stdout.close()
    drive.process.stdout = None
    status, _, err = drive.end()
    assert (status, err) == (130, "")
