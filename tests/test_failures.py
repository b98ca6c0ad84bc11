"""What goes wrong is named, costs nobody else anything, and is tried again; what can't begin says why."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Collection
from pathlib import Path

import pytest
from conftest import PLAN, World, make_world

from pipeline import ledger

SCOPES = ("src/cart.js", "src/label.js", "src/price.js")
TEST = """\
import assert from 'node:assert/strict';
import {{ {name} }} from '../src/{name}.js';

it('{name} works', () => {{
  assert.equal({name}(1), {value});
}});
"""


def add_scope(world: World, name: str, value: str) -> None:
    world.write(f"src/{name}.js", f"export function {name}(n) {{\n  return n > 3 ? 'many' : '{name}';\n}}\n")
    world.write(f"test/{name}.test.js", TEST.format(name=name, value=value))


def test_of_five_scopes_one_fails_and_one_parks_and_the_others_land_and_only_those_two_are_tried_again(
    driven: World,
) -> None:
    add_scope(driven, "broken", "'other'")
    add_scope(driven, "refused", "'refused'")
    driven.edit("src/price.js", "export function gross", "// Edited.\nexport function gross")
    driven.commit()
    hook = driven.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n! git diff --cached --name-only | grep -q refused || { echo 'not there'; exit 1; }\n")
    hook.chmod(0o755)
    for _ in range(2):
        done = driven.doit("-n", "2", "mutate", code=1)
        assert {s: done.ending(s) for s in SCOPES} == dict.fromkeys(SCOPES, "landed")
        assert done.ending("src/broken.js") == "failed" and done.ending("src/refused.js") == "parked"
        assert "tests-fail-first: test/broken.test.js: broken works" in done.out
        assert "src/refused.js: parked: rejected: the commit was refused" in done.out and "not there" in done.out
    assert driven.ran("baseline") == {"src/broken.js"}
    assert driven.ran("land") == {"src/refused.js"}
    assert driven.ran("validate") == set()
    assert len(driven.subjects()) == 3


@pytest.mark.campaign
def test_scopes_whose_blocker_failed_are_not_reached_and_name_it(driven: World) -> None:
    driven.edit(
        "tasks.yaml",
        "version: 1",
        "version: 1\nengine: {needs: [packages]}\ntasks:\n"
        "  - {name: login, run: echo who are you; exit 7}\n  - {name: packages, run: 'true', needs: [login]}",
    )
    driven.commit()
    done = driven.doit("-n", "2", "mutate", code=1)
    for scope in SCOPES:
        why = "blocker login failed: echo who are you; exit 7: exit status 7"
        assert f"{scope}: not reached: {why}, before baseline:{scope}" in done.out
    assert driven.ran("baseline") == driven.ran("land") == set()


# -- what can't begin


MISTAKES: dict[str, tuple[str, str, str]] = {
    "unknown key": ("rounds: 2", "round: 2", "rounds"),
    "wrong type": ("rounds: 2", "rounds: many", "tasks.yaml:4: generate.rounds"),
    "no such file": ("mutate: src/*.js", "mutate: lib/*.js", "lib/*.js"),
    "one file, two writers": ("{stem}.mutants", "all.mutants", "test/all.mutants.test.js"),
    "no YAML": ("scopes:", "scopes: [", "tasks.yaml:"),
}
WITH_ROUNDS = PLAN.replace("  with: [differential]", "  with: [differential]\n  rounds: 2")


def nothing_ran(world: World) -> bool:
    return not (world.root / "cache" / "ledger.jsonl").exists() and not world.home.exists()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_plan_is_an_error_with_its_place_and_nothing_runs(world: World, mistake: str) -> None:
    old, new, said = MISTAKES[mistake]
    assert old in WITH_ROUNDS
    world.write("tasks.yaml", WITH_ROUNDS.replace(old, new))
    done = world.doit("-n", "2", "mutate", code=3)
    assert said in done.both and "tasks.yaml" in done.both
    assert nothing_ran(world)


def test_all_mistakes_are_told_at_once(world: World) -> None:
    world.write(
        "tasks.yaml",
        "version: 1\npools: {generation: none}\ngenerate: {round: 2}\nengine: {use: striker-js}\n"
        "scopes:\n  - {mutate: lib/*.js, write: test/a.test.js}\n",
    )
    done = world.doit("-n", "2", "mutate", code=3)
    for said in ("tasks.yaml:2", "tasks.yaml:3", "tasks.yaml:4", "stryker-js"):
        assert said in done.both
    assert nothing_ran(world)


def test_a_project_in_no_repository_is_an_error_with_the_remedy(world: World) -> None:
    shutil.rmtree(world.root / ".git")
    done = world.doit("-n", "2", "mutate", code=3)
    assert "git init" in done.both
    assert nothing_ran(world)


def test_what_git_cannot_take_is_an_error_in_its_words(world: World) -> None:
    world.write("src/inner/some.js", "export const some = 1;\n")
    world.git("init", "--quiet", "src/inner")  # without a commit: git does not know what to add
    done = world.doit("-n", "2", "mutate", code=3)
    assert "src/inner" in done.both and "does not have a commit checked out" in done.both


@pytest.mark.parametrize(
    "how",
    ["a file", pytest.param("read-only", marks=pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere"))],
)
def test_a_cache_that_cannot_be_written_is_an_error(world: World, how: str) -> None:
    place = world.root / "cache"
    if how == "a file":
        place.write_text("")
    else:
        place.mkdir(0o500)
    try:
        done = world.doit("-n", "2", "mutate", code=3)
        assert str(place) in done.both
    finally:
        place.chmod(0o700)


@pytest.mark.campaign
def test_a_second_run_names_the_one_that_holds_the_cache_and_lists_work_meanwhile(driven: World) -> None:
    driven.use_claude()
    driven.script([{"match": "*", "delay": 60}])
    run = driven.start("-n", "2", "mutate")
    try:
        while not driven.calls():
            assert run.poll() is None, (driven.root.parent / "out").read_text()
            time.sleep(0.05)
        done = driven.doit("-n", "2", "mutate", code=3)
        assert f"pid {run.pid}" in done.both and str(driven.root / "cache") in done.both
        assert "mutate" in driven.doit("list").out
        assert "src/label.js" in driven.doit("report").out
    finally:
        run.send_signal(signal.SIGTERM)
        assert run.wait(30) == 130
    assert len(driven.calls()) == 1
    (*_, ended) = map(json.loads, driven.read("cache/ledger.jsonl").splitlines())
    assert (ended["event"], ended["status"], ended["interrupted"]) == ("run-ended", 130, True)


# -- what is there and is not as it should be


@pytest.mark.parametrize(
    "name",
    [
        "baseline.json", "survivors.json", "inputs.json", "candidates.0.json", "proofs.0.json", "survivors.0.json",
        "landed.json", "confirmed.json",
    ],
)  # fmt: skip
def test_a_target_that_is_damaged_or_gone_is_not_believed(driven: World, name: str) -> None:
    scopes = driven.root / "cache" / "scopes"
    damaged, gone = scopes / "src%2Flabel.js" / name, scopes / "src%2Fprice.js" / name
    whole = damaged.read_bytes(), gone.read_bytes()
    tip = driven.git("rev-parse", "mutate/main")
    damaged.write_bytes(whole[0][: len(whole[0]) // 2])
    gone.unlink()
    done = driven.doit("-n", "2", "mutate")
    if name == "candidates.0.json":  # offered again from the proof store, with the kills that were proved
        offered = {t["title"] for t in json.loads(damaged.read_bytes())["tests"]}
        assert set(driven.titles("test/label.mutants.test.js")) <= offered
    else:
        assert (damaged.read_bytes(), gone.read_bytes()) == whole
    assert driven.git("rev-parse", "mutate/main") == tip
    assert {s: done.ending(s) for s in SCOPES} == dict.fromkeys(SCOPES, "landed")
    assert driven.measured() == set()  # kept in the action cache


def test_a_damaged_result_in_the_action_cache_is_measured_again(driven: World) -> None:
    for blob in (driven.home / "cache" / "actions" / "blobs").iterdir():
        blob.write_bytes(blob.read_bytes()[:-9])
    (driven.root / "cache" / "scopes" / "src%2Flabel.js" / "baseline.json").unlink()
    done = driven.doit("-n", "2", "mutate")
    assert driven.measured() == {"src/label.js"}
    assert done.ending("src/label.js") == "landed"


def test_half_a_line_in_the_ledger_is_passed_over(driven: World) -> None:
    path = driven.root / "cache" / "ledger.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    driven.doit("-n", "2", "mutate")
    events = list(ledger.events(path))
    runs = [e["run"] for e in events if e["event"] == "run-started"]
    assert len(runs) == 2
    assert [e["event"] for e in events if e["run"] == runs[1]] == [
        "run-started", *["attempt"] * 15, *["ending"] * 3, "run-ended",
    ]  # fmt: skip
    assert "landed" in driven.doit("report").out


def test_doit_says_in_words_why_a_task_would_run(driven: World) -> None:
    driven.edit("src/cart.js", "total(items) <= 0", "total(items) < 0")
    said = driven.doit("info", "baseline:src/cart.js", code=1).out
    assert "its files, its engine and what the plan says are as it was measured (not so: src/cart.js)" in said
    for task in ("validate:src/cart.js:0", "land:src/cart.js", "confirm:src/cart.js"):
        assert " object at 0x" not in driven.doit("info", task, code=None).out


# -- what needs no engine


def test_the_plan_is_browsed_and_cleaned_without_node_and_without_packages(driven: World, tmp_path: Path) -> None:
    (driven.root / "node_modules").unlink()
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "git").symlink_to(shutil.which("git") or "")
    bare = World(driven.root, driven.home, {**driven.env, "PATH": str(tools)})
    assert "mutate" in bare.doit("list").out
    assert "baseline:src/cart.js" in bare.doit("list", "--all").out
    assert "up-to-date" in bare.doit("info", "baseline:src/cart.js").out
    assert "src/cart.js" in bare.doit("report").out
    assert "report" in bare.doit("help", "report").out
    bare.doit("forget", "land:src/cart.js")
    bare.doit("clean", "land:src/cart.js")
    assert not (driven.root / "cache" / "scopes" / "src%2Fcart.js" / "landed.json").exists()


# -- lanes


def most_at_once(spans: Collection[tuple[float, float]]) -> int:
    edges = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


def test_twenty_scopes_fill_both_lanes_and_never_more(tmp_path: Path, node_modules: Path) -> None:
    project = tmp_path / "many"
    (project / "src").mkdir(parents=True)
    (project / "test").mkdir()
    (project / "package.json").write_text('{ "name": "many", "private": true, "type": "module" }')
    names = [f"n{i:02}" for i in range(20)]
    for name in names:
        (project / f"src/{name}.js").write_text(
            f"export function {name}(n) {{\n  return n > 3 ? 'many' : '{name}';\n}}\n"
        )
        (project / f"test/{name}.test.js").write_text(TEST.format(name=name, value=f"'{name}'"))
    plan = PLAN.replace(
        "with: [differential]\nland: {proof_runs: 2}",
        "with: [claude]\n  rounds: 1\nland: {proof_runs: 1}\npools: {generation: 6}",
    )
    world = make_world(tmp_path, node_modules, plan, project)
    world.script([*(rule(name) for name in names[:6]), {"match": "*", "text": '{"tests": []}', "delay": 3}])
    done = world.doit("-n", "4", "mutate", timeout=500)
    assert "validation 4 (-n 4), generation 6 (tasks.yaml), engine workers 1" in done.out
    assert len(world.subjects()) == 6
    attempts = world.events()
    validations = {(e["started"], e["ended"]) for e in attempts if e["lane"] == "validation"}  # a set is one span
    generations = [(e["started"], e["ended"]) for e in attempts if e["lane"] == "generation"]
    assert most_at_once(validations) == 4
    assert most_at_once(generations) == 6
    assert most_at_once([(e["started"], e["ended"]) for e in world.events("call")]) == 6
    assert len(world.calls()) == 20


def rule(name: str) -> dict[str, object]:
    unit = {
        "kills": [1],
        "title": f"{name} knows many",
        "imports": ["import assert from 'node:assert/strict';", f"import {{ {name} }} from '../src/{name}.js';"],
        "code": f"it('{name} knows many', () => {{\n  assert.equal({name}(4), 'many');\n"
        f"  assert.equal({name}(3), '{name}');\n}});",
    }
    return {"match": f"src/{name}.js", "text": json.dumps({"tests": [unit]}), "delay": 3}


@pytest.mark.parametrize("text", ["null", "3", "[]", "{}", "{", '"x"'])
def test_a_target_that_is_anything_but_ours_is_made_again(driven: World, text: str) -> None:
    for name in ("baseline", "survivors", "inputs", "candidates.0", "proofs.0", "landed", "confirmed"):
        driven.write(f"cache/scopes/src%2Fcart.js/{name}.json", text)
    assert driven.doit("-n", "2", "mutate").ending("src/cart.js") == "landed"
    assert driven.measured() == set()
    assert len(driven.subjects()) == 3
