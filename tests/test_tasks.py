"""Declared tasks: doit and git for real, in a small repository without Node."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from conftest import DODO, World

HERE = Path(__file__).parent


@pytest.fixture
def lab(tmp_path: Path) -> World:
    """A repository with one commit, and no task yet."""
    world = World(tmp_path / "repo", tmp_path / "home")
    (tmp_path / "gitconfig").write_text(
        "[user]\nname = Tess\nemail = tess@example.invalid\n[init]\ndefaultBranch = main\n"
    )
    world.write("dodo.py", DODO)
    world.write(".gitignore", "__pycache__/\ncache/\nbuild/\n")
    world.write("in.txt", "one\n")
    world.write("src/a.c", "a\n")
    world.write("src/b.c", "b\n")
    world.git("init", "--quiet")
    world.write("tasks.yaml", "version: 1\n")
    world.commit("begin")
    return world


def plan(world: World, *tasks: dict[str, Any], **more: Any) -> None:
    """The plan of these tasks, committed."""
    world.write("tasks.yaml", yaml.safe_dump({"version": 1, **more, "tasks": list(tasks)}))
    world.commit("plan")


def task(name: str, run: str | list[str], **fields: Any) -> dict[str, Any]:
    return {"name": name, "run": run, **fields}


def outcomes(world: World) -> dict[str, str]:
    return {event["task"]: event["outcome"] for event in world.events()}


def run(world: World, *names: str, n: int = 2, code: int = 0, options: tuple[str, ...] = ()) -> dict[str, str]:
    """What the tasks came to, by the ledger."""
    world.doit("-n", str(n), *options, *names, code=code)
    return outcomes(world)


def overlapping(world: World) -> set[frozenset[str]]:
    """Pairs of tasks that were running at one time in the last run."""
    ran = [(e["started"], e["ended"], e["task"]) for e in world.events() if e["lane"]]
    return {
        frozenset((a[2], b[2])) for a, b in itertools.combinations(ran, 2) if a[0] < b[1] and b[0] < a[1]
    }  # fmt: skip
