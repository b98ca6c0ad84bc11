"""Two runs at once on one repository, each with real doit and StrykerJS: what one pays for, the other uses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import PLAN, World, make_world

pytestmark = pytest.mark.campaign

LABEL = "test/label.mutants.test.js"
TITLE = "opens for the one word"
REPLY = f"```js\nit('{TITLE}', () => {{\n  assert.equal(gate('sesame seed'), 'open');\n}});\n```"


def at_once(*worlds: World) -> None:
    """Run the plan in each, all started together."""
    runs = [world.start("-n", "2", "mutate") for world in worlds]
    for world, run in zip(worlds, runs, strict=True):
        assert run.wait(300) == 0, (world.root.parent / "out").read_text()


def beside(world: World, *command: str) -> World:
    """Another checkout that git makes of this one, with the same home."""
    place = world.root.parent / "second" / "repo"
    place.parent.mkdir()
    subprocess.run(["git", *command], cwd=world.root, env=world.environment, check=True, capture_output=True)
    (place / "node_modules").symlink_to((world.root / "node_modules").resolve())
    return World(place, world.home, {**world.env, "GIT_CONFIG_GLOBAL": str(world.home.parent / "gitconfig")})


def test_of_two_checkouts_that_want_one_scope_one_measures_and_pays_and_both_land(
    tmp_path: Path, node_modules: Path
) -> None:
    world = make_world(tmp_path, node_modules, PLAN.replace("src/*.js", "src/label.js"))
    world.use_claude()
    world.script([{"match": "*", "text": REPLY, "delay": 3}])
    world.commit()
    second = beside(world, "clone", "--quiet", ".", "../second/repo")
    at_once(world, second)
    assert len(world.calls()) == 1
    measured = [e["engine_run"] for each in (world, second) for e in each.events() if e["kind"] == "baseline"]
    assert sorted(measured) == [False, True]
    assert TITLE in world.titles(LABEL)
    assert world.on_branch(LABEL) == second.on_branch(LABEL)


def test_two_worktrees_land_at_once_each_on_a_branch_of_its_own(driven: World) -> None:
    before = driven.on_branch(LABEL)
    driven.git("branch", "--quiet", "-D", "mutate/main")
    second = beside(driven, "worktree", "add", "--quiet", "-b", "other", "../second/repo")
    at_once(driven, second)
    for branch in ("mutate/main", "mutate/other"):
        assert driven.on_branch(LABEL, branch) == before
        assert len(driven.subjects(branch)) == 3
    assert driven.git("worktree", "list").count("\n") == 2
