"""Whatever ends a run, the next one goes on: nothing finished is redone, nothing half done is believed, none is paid
for twice, and nobody is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import MadeOnce, World, copy_world, kill_tree

from pipeline import ledger
from pipeline.journals import boot_id
from pipeline.store import digest

EDITED = {"src/cart.js", "src/label.js"}
KILLS = {
    "kills": [1],
    "title": "the gate opens for its word",
    "imports": ["import assert from 'node:assert/strict';", "import { gate } from '../src/label.js';"],
    "code": "it('the gate opens for its word', () => {\n  assert.equal(gate('sesame seed'), 'open');\n});",
}
ANSWER = {"match": "*", "text": json.dumps({"tests": [KILLS]})}


def asking(world: World) -> World:
    """A model is to be asked about one scope; all else is as it was."""
    world.use_claude()
    world.script([ANSWER])
    return world


def edited(world: World) -> World:
    """Two scopes have all the way to go again, and a model is asked about one of them."""
    for scope in EDITED:
        world.write(scope, f"// Edited.\n{world.read(scope)}")
    world.commit()
    return asking(world)


def branch(world: World) -> str:
    """What the branch holds, every file to the byte."""
    return world.git("rev-parse", "mutate/main^{tree}")


Prepare = Callable[[World], World]


@pytest.fixture(scope="module")
def undisturbed(driven_once: World, made_once: MadeOnce) -> Callable[[Prepare], str]:
    """How to prepare a world -> the branch after a run in it that nothing disturbs."""

    def branch_of(prepare: Prepare) -> str:
        def make(place: Path) -> World:
            world = prepare(copy_world(driven_once, place))
            world.doit("-n", "2", "mutate")
            assert KILLS["title"] in world.titles("test/label.mutants.test.js")
            return world

        return branch(made_once(f"undisturbed-{prepare.__name__}", make))

    return branch_of


def alive(world: World) -> list[str]:
    """Processes that a run in this world has started and that live on."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("DOIT_MUTATE_HOME") == str(world.home):
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        except psutil.Error:
            continue
    return found


def wait_for(process: subprocess.Popen[bytes], seen: Callable[[], bool], world: World) -> None:
    for _ in range(6000):
        if seen():
            return
        assert process.poll() is None, (world.root.parent / "out").read_text()
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


def ended(world: World, kind: str) -> set[str]:
    """Scopes whose task of this kind the second run in this world has come to the end of."""
    try:
        if (world.root / "cache" / "ledger.jsonl").read_text().count('"run-started"') < 2:
            return set()
        return {e["scope"] for e in world.events() if e["kind"] == kind and e["lane"] and e["outcome"] != "interrupted"}
    except ValueError:  # half a line
        return set()


def children(world: World) -> list[dict[str, Any]]:
    """The journal: programs that run now."""
    found = []
    for entry in (world.root / "cache" / "processes").glob("*.json"):
        try:
            found.append(json.loads(entry.read_text()))
        except (OSError, ValueError):
            continue
    return found


def runs(world: World, word: str) -> bool:
    return any(word in word_ for child in children(world) for word_ in child["argv"])


MOMENTS: dict[str, Callable[[World], bool]] = {
    "the engine measures": lambda world: runs(world, "stryker.js"),
    "the model is asked": lambda world: bool(world.calls()),
    "the first is proved": lambda world: ended(world, "search") == EDITED and runs(world, "run_tests.mjs"),
    "the first has landed": lambda world: bool(ended(world, "land")),
}


def finished(world: World) -> set[str]:
    return {e["task"] for e in world.events() if e["lane"] and e["outcome"] in ("ok", "cached")}


def goes_on(world: World, done_before: set[str], expected: str) -> None:
    """A plain run ends what was begun, and tidies up."""
    world.doit("-n", "2", "mutate")
    redone = done_before & {e["task"] for e in world.events() if e["lane"]}
    assert not redone
    assert branch(world) == expected
    assert world.git("worktree", "list").count("\n") == 1
    assert not list((world.home / "cache" / "worktrees").glob("*/*/"))
    assert alive(world) == []


@pytest.mark.parametrize("moment", ["the engine measures", "the first is proved"])  # all others: campaigns/crash.py
def test_after_kill_9_a_plain_run_goes_on(driven: World, undisturbed: Callable[[Prepare], str], moment: str) -> None:
    world, expected = edited(driven), undisturbed(edited)
    run = world.start("-n", "2", "mutate")
    wait_for(run, lambda: MOMENTS[moment](world), world)
    kill_tree(run)
    goes_on(world, finished(world), expected)
    assert len(world.calls()) == 1


def test_a_call_that_outlives_its_run_is_waited_for_and_its_reply_is_used(
    driven: World, undisturbed: Callable[[Prepare], str]
) -> None:
    world, expected = asking(driven), undisturbed(asking)
    world.script([{**ANSWER, "delay": 5}])
    run = world.start("-n", "2", "mutate")
    wait_for(run, lambda: bool(world.calls()), world)
    kill_tree(run)
    (call,) = world.calls()
    goes_on(world, finished(world), expected)
    assert len(world.calls()) == 1
    assert world.events("run-started")[0]["calls_waited_for"] == 1
    (event,) = world.events("call")
    assert event["outcome"] == "ok" and event["recovered"]
    assert event["tokens"]["output"] == call["usage"]["output_tokens"]


def test_a_call_that_died_with_its_run_is_counted_as_lost_and_asked_again(
    driven: World, undisturbed: Callable[[Prepare], str]
) -> None:
    world, expected = asking(driven), undisturbed(asking)
    world.script([{**ANSWER, "delay": 60, "times": 1}, ANSWER])
    run = world.start("-n", "2", "mutate")
    wait_for(run, lambda: bool(world.calls()) and runs(world, "claude"), world)
    (call,) = (c for c in children(world) if c["keep"])
    kill_tree(run)
    os.killpg(call["pid"], signal.SIGKILL)
    goes_on(world, finished(world), expected)
    assert [e["outcome"] for e in world.events("call")] == ["lost", "ok"]
    assert len(world.calls()) == 2


def test_a_reply_whose_run_died_before_it_was_noted_is_neither_asked_for_nor_told_of_again(driven: World) -> None:
    asking(driven).doit("-n", "2", "mutate")
    (note,) = (driven.home / "data" / "replies").glob("*/ended.json")
    note.unlink()
    shutil.rmtree(next((driven.home / "data" / "projects").glob("*/asked")))
    (driven.root / "cache" / "scopes" / "src%2Flabel.js" / "candidates.1.json").unlink()
    driven.doit("-n", "2", "mutate")
    assert driven.ran("generate") == {"src/label.js"}
    assert len(driven.calls()) == 1
    events = list(ledger.events(driven.root / "cache" / "ledger.jsonl"))
    assert [e["outcome"] for e in events if e["event"] == "call"] == ["ok"]


def test_a_call_that_hangs_when_its_run_is_killed_is_not_waited_for_beyond_its_time_limit(
    driven: World, undisturbed: Callable[[Prepare], str]
) -> None:
    world, expected = asking(driven), undisturbed(asking)
    world.edit("tasks.yaml", "claude]", "{use: claude, time_limit: 8}]")
    world.script([{"match": "*", "special": "hang", "times": 1}, ANSWER])
    run = world.start("-n", "2", "mutate")
    wait_for(run, lambda: bool(world.calls()) and runs(world, "claude"), world)
    kill_tree(run)
    goes_on(world, finished(world), expected)
    assert [e["outcome"] for e in world.events("call")] == ["lost", "ok"]


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "the engine measures"),
        (signal.SIGTERM, "the model is asked"),
        (signal.SIGINT, "the first has landed"),
    ],
)
def test_a_signal_ends_everything_at_once_with_130_and_the_next_run_goes_on(
    driven: World, undisturbed: Callable[[Prepare], str], number: signal.Signals, moment: str
) -> None:
    world, expected = edited(driven), undisturbed(edited)
    if moment == "the model is asked":
        world.script([{**ANSWER, "delay": 60, "times": 1}, ANSWER])
    run = world.start("-n", "2", "mutate")
    wait_for(run, lambda: MOMENTS[moment](world), world)
    run.send_signal(number)
    assert run.wait(30) == 130, (world.root.parent / "out").read_text()
    assert "Traceback" not in (world.root.parent / "out").read_text()
    assert alive(world) == []
    assert world.git("worktree", "list").count("\n") == 1
    goes_on(world, finished(world), expected)


def test_a_run_with_nothing_to_do_removes_what_a_dead_one_left(driven: World) -> None:
    ours = driven.home / "cache" / "worktrees" / digest(str(driven.root / ".git"))[:16]
    dead = ours / "20200101T000000.000000Z-1"
    driven.git("worktree", "add", "--quiet", "--detach", str(dead / "validation-0"), "HEAD")
    assert driven.git("worktree", "list").count("\n") == 2
    driven.write("cache/run.json", json.dumps({"run": dead.name, "boot": boot_id()}))
    driven.write("cache/scopes/src%2Flabel.js/.new-1", "half")
    driven.doit("-n", "2", "mutate")
    assert driven.git("worktree", "list").count("\n") == 1
    assert not dead.exists() and not list((driven.root / "cache/scopes").rglob(".new-*"))
    assert driven.events("run-started")[0]["took_over"] == dead.name
