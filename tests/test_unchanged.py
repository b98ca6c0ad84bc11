"""A run with nothing to do is recognised without loading anything, and every kind of change is noticed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from conftest import World

SAID = "tasks are up to date: nothing has changed since they were last looked at"


@pytest.fixture
def looked(driven: World) -> World:
    """A world whose last run had nothing to do, and whose next one sees that it is so still."""
    assert SAID not in driven.doit("-n", "2", "mutate").out
    assert SAID in driven.doit("-n", "2", "mutate").out
    return driven


def test_it_says_what_the_last_run_said_and_writes_nothing(looked: World) -> None:
    def files() -> dict[Path, int]:
        return {
            p: p.stat().st_mtime_ns for p in looked.root.rglob("*") if p.is_file() and "node_modules" not in p.parts
        }

    before = files()
    done = looked.doit("-n", "4", "mutate")
    assert done.out.startswith("15 " + SAID)
    assert done.ending("src/price.js") == "landed"
    assert "nothing to do: 0 engine runs, 0 calls" in done.out
    assert files() == before


CHANGES: dict[str, Callable[[World], object]] = {
    "a source": lambda w: w.edit("src/label.js", "// A", "// The"),
    "a new file": lambda w: w.write("test/more.test.js", "it('x', () => {});\n"),
    "a commit": lambda w: w.git("commit", "--quiet", "--allow-empty", "--message", "more"),
    "another branch": lambda w: w.git("switch", "--quiet", "--create", "other"),
    "the landing branch deleted": lambda w: w.git("branch", "-D", "mutate/main"),
    "the landing branch moved": lambda w: w.git("branch", "--force", "mutate/main", "mutate/main~1"),
    "the landing branch checked out": lambda w: w.git("worktree", "add", "--quiet", "../there", "mutate/main"),
    "the plan": lambda w: w.edit("tasks.yaml", "version: 1", "version: 1\nstore: kept"),
    "a target gone": lambda w: (w.root / "cache/scopes/src%2Fcart.js/survivors.json").unlink(),
    "a target more": lambda w: w.write("cache/scopes/src%2Fcart.js/more.json", "{}"),
    "a task forgotten": lambda w: w.doit("forget", "search:src/cart.js"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(looked: World, change: str) -> None:
    CHANGES[change](looked)
    assert SAID not in looked.doit("-n", "2", "mutate:src/nothing", code=3).out  # another selection is another question
    ran = looked.doit("-n", "2", "baseline" if change == "a new file" else "mutate", code=None)
    assert SAID not in ran.out


def test_another_engine_is_noticed(looked: World, tmp_path: Path) -> None:
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text(f'#!/bin/sh\nexec "{_node()}" "$@"\n')
    node.chmod(0o755)
    env = {**looked.env, "PATH": f"{node.parent}{os.pathsep}{looked.environment['PATH']}"}
    assert SAID not in attrs.evolve(looked, env=env).doit("-n", "2", "mutate").out


@pytest.mark.parametrize("options", [["-a"], ["-r", "json"], ["-n", "2", "-v", "2"], ["-o", "log"], ["-n", "0"]])
def test_with_other_options_everything_is_looked_at(looked: World, options: list[str]) -> None:
    assert SAID not in looked.doit(*options, "baseline:src/label.js", code=None).out


def _node() -> str:
    import shutil

    return shutil.which("node") or str(Path(sys.prefix) / "bin" / "node")
