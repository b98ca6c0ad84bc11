"""Projects whose tests run in other runners than mocha with ES modules: a small drive each, all programs real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import filelock
import pytest
from conftest import HERE, PLAN, World, make_world

RUNNERS = HERE / "projects" / "runners"
WRITE = "test/sizes.mutants.test.js"


@pytest.fixture(scope="session")
def packages() -> Path:
    """What all of these projects are tested with, installed once."""
    installed = RUNNERS / "node_modules"
    with filelock.FileLock(RUNNERS / ".install.lock"):
        if not (installed / ".package-lock.json").exists():
            npm = shutil.which("npm") or str(Path(sys.prefix) / "bin" / "npm")
            path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.prefix) / 'bin'}"
            subprocess.run(
                [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=RUNNERS, check=True,
                env={**os.environ, "PATH": path},
            )  # fmt: skip
    return installed


def project(name: str, place: Path, packages: Path) -> World:
    return make_world(place, packages, f"{PLAN}engine: {{concurrency: 1}}\n", RUNNERS / name)


@pytest.mark.parametrize("name", ["mocha-cjs", "node-test", "vitest", "jest", "tape"])
def test_a_project_is_driven_in_its_own_runner_and_the_tests_stand_as_its_own_do(
    name: str, tmp_path: Path, packages: Path
) -> None:
    world = project(name, tmp_path, packages)
    done = world.doit("-n", "2", "mutate")
    assert done.ending("src/sizes.js") == "landed", done.both
    print(done.out)
    print(world.on_branch(WRITE))
    assert 0, "look"
