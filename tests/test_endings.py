"""Every scope that a run takes on comes to exactly one ending, the first that fits; `doit report --check` holds it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from conftest import World

from pipeline import config, ledger, reports
from pipeline.host import RunInfo
from pipeline.reports.endings import unended
from pipeline.reports.summary import FAILED, NOT_REACHED, PARKED, outcomes_of_run
from pipeline.schedule import lanes
from pipeline.session import Session

CART = (
    "baseline:src/cart.js",
    "search:src/cart.js",
    "validate:src/cart.js:0",
    "land:src/cart.js",
    "confirm:src/cart.js",
)


def session_of(
    world: World, *, selected: tuple[str, ...] = CART, scopes: tuple[str, ...] = ("src/cart.js",)
) -> Session:
    """As it is at the end of a run that selected these."""
    session = Session(config.load(world.root / "tasks.yaml"), reports.notes, reports.close)
    session.info = RunInfo("run", lanes(2, {}, {}, None, 2, None), selected, scopes, False, 0.0)
    session.home.mkdir(exist_ok=True)
    return session


def attempt(task: str, outcome: str, **more: object) -> Mapping[str, Any]:
    return {"event": "attempt", "task": task, "kind": task.partition(":")[0], "outcome": outcome, "lane": "x", **more}


def test_a_scope_without_an_ending_or_with_two_is_named() -> None:
    assert unended(["a", "b"], ["b", "a"]) == ()
    assert unended(["a", "b"], ["b", "b", "c"]) == (
        "a: no ending", "b: 2 endings", "c: an ending, and the run did not take it on",
    )  # fmt: skip


def test_a_run_that_loses_a_scope_fails_loudly_and_names_it(world: World) -> None:
    session = session_of(world, scopes=("src/cart.js", "src/ghost.js"))
    status, said = reports.close(session, 0, False)
    assert status == 2
    assert "internal error: src/ghost.js: no ending" in said and "src/cart.js: no ending" not in said


@pytest.mark.parametrize(
    ("seen", "ending", "why"),
    [
        ([(CART[0], "tests-fail-first", {"detail": "cart adds up"})], FAILED, "tests-fail-first: cart adds up"),
        ([(CART[0], "ok", {}), (CART[3], "conflict", {"detail": "both"})], PARKED, "conflict: both"),
        ([(CART[2], "time-limit", {}), (CART[3], "conflict", {})], FAILED, "validate:src/cart.js:0: time-limit"),
        ([(CART[3], "crashed", {"failure": "no space"})], FAILED, "crashed: no space"),
        ([(CART[0], "ok", {}), (CART[1], "interrupted", {})], NOT_REACHED, "the run was stopped, before search"),
        ([], NOT_REACHED, "the run was stopped, before baseline:src/cart.js"),
        ([(t, "ok", {}) for t in CART[:4]] + [(CART[4], "crashed", {"failure": "disk"})], FAILED, "crashed: disk"),
        ([(t, "ok", {}) for t in CART[:4]] + [(CART[4], "interrupted", {})], NOT_REACHED, "before confirm:src/cart.js"),
    ],
)
def test_of_a_scope_that_was_cut_short_the_first_ending_that_fits_is_said(
    world: World, seen: list[tuple[str, str, dict[str, str]]], ending: str, why: str
) -> None:
    session = session_of(world)
    session.events = [attempt(task, outcome, **more) for task, outcome, more in seen]
    (found,) = outcomes_of_run(session, interrupted=True)
    assert (found.ending, why in found.why) == (ending, True), found


def forget_the_ending(world: World) -> None:
    path = world.root / "cache" / "ledger.jsonl"
    kept = [e for e in ledger.events(path) if e["event"] != "ending" or e["scope"] != "src/cart.js"]
    path.write_text("".join(json.dumps(e) + "\n" for e in kept))


def end_it_twice(world: World) -> None:
    path = world.root / "cache" / "ledger.jsonl"
    (one,) = (e for e in ledger.events(path) if e["event"] == "ending" and e["scope"] == "src/cart.js")
    path.write_text(path.read_text() + json.dumps(one) + "\n")


def die_before_the_end(world: World) -> None:
    path = world.root / "cache" / "ledger.jsonl"
    kept = [e for e in ledger.events(path) if e["event"] not in ("ending", "run-ended")]
    path.write_text("".join(json.dumps(e) + "\n" for e in kept))


def damage_a_target(world: World) -> None:
    (world.root / "cache" / "scopes" / "src%2Fcart.js" / "landed.json").write_text("{")


def take_the_landing_of_another(world: World) -> None:
    scopes = world.root / "cache" / "scopes"
    shutil.copy(scopes / "src%2Flabel.js" / "landed.json", scopes / "src%2Fcart.js" / "landed.json")


def make_the_ledger_a_folder(world: World) -> None:
    (world.root / "cache" / "ledger.jsonl").unlink()
    (world.root / "cache" / "ledger.jsonl").mkdir()


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (forget_the_ending, "src/cart.js: no ending"),
        (end_it_twice, "src/cart.js: 2 endings"),
        (die_before_the_end, "has not come to its end: run again"),
        (damage_a_target, "src/cart.js: ended as landed, and its targets say not reached: run again"),
        (take_the_landing_of_another, "src/cart.js: ended as landed, and its targets say not reached: run again"),
        (lambda world: (world.root / "cache" / "ledger.jsonl").unlink(), "no run has begun here"),
        (make_the_ledger_a_folder, "no run has begun here"),
    ],
)
def test_report_check_exits_1_where_an_ending_is_missing_doubled_or_no_longer_true(
    driven: World, tamper: Callable[[World], None], said: str
) -> None:
    tamper(driven)
    done = driven.doit("report", "--check", code=1)
    assert said in done.out and "TaskFailed" not in done.both
    assert "src/cart.js" in driven.doit("report").out  # without --check it tells, and judges nothing


def test_report_check_exits_0_where_nobody_is_needed_and_1_where_the_last_run_needs_somebody(driven: World) -> None:
    assert "3 scopes taken on by the run" in driven.doit("report", "--check").out
    driven.edit("test/label.test.js", "'shut')", "'ajar')")
    driven.doit("-n", "2", "baseline:src/label.js", code=1)
    done = driven.doit("report", "--check", code=1)
    assert "src/label.js: failed: tests-fail-first: test/label.test.js: label is shut" in done.out
