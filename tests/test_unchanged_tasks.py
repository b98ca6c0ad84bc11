"""Of a plan of declared tasks alone, too: nothing to do, and what `doit list` says, without loading the plan."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SAID = "tasks are up to date: nothing has changed since they were last looked at"
DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"
OWN = "\n\ndef task_mine():\n    return {'actions': ['touch mine.out'], 'file_dep': ['a']}\n"
PLAN = """\
version: 1
tasks:
  - {name: one, run: cp a one.out, reads: [a], writes: [one.out]}
  - {name: two, run: cat one.out b.txt > two.out, reads: [one.out, b.txt], writes: [two.out]}
"""


def doit(root: Path, *words: str, code: int = 0, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "doit", *words], cwd=root, capture_output=True, text=True, check=False,
        env={**os.environ, "DOIT_MUTATE_HOME": str(root.parent / "home"), **(env or {})},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def looked(tmp_path: Path) -> Path:
    """A project whose next run is answered from the note of the last, and so is its list."""
    root = tmp_path / "project"
    root.mkdir()
    for name, text in {
        "dodo.py": DODO, "tasks.yaml": PLAN, "a": "a\n", "b.txt": "b\n", ".gitignore": "cache/\n*.out\n__pycache__/\n",
    }.items():  # fmt: skip
        (root / name).write_text(text)
    for words in ("init -q -b main", "add -A", "-c user.name=n -c user.email=n@n.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    assert SAID not in doit(root, "-n", "2")
    assert SAID not in doit(root, "-n", "2")
    assert SAID in doit(root, "-n", "2")
    doit(root, "list")
    assert lists_from_a_note(root)
    return root


def lists_from_a_note(root: Path) -> bool:
    """Was `doit list` answered before any of the plan was read?"""
    return "yaml" not in loaded(root, "list")


def loaded(root: Path, *words: str) -> set[str]:
    """The modules that a command loads."""
    said = doit(root, *words, env={"PYTHONVERBOSE": "1"})
    return {line.split("'")[1].partition(".")[0] for line in said.splitlines() if line.startswith("import '")}


def same_time_and_size(path: Path) -> None:
    was = path.stat()
    path.write_bytes(b"x" * was.st_size)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


RUN_AGAIN: dict[str, Callable[[Path], object]] = {
    "an input": lambda root: (root / "a").write_text("other\n"),
    "an input that keeps its size and time": lambda root: same_time_and_size(root / "a"),
    "an input gone that another is put in the place of": lambda root: (root / "b.txt").rename(root / "c"),
    "an output": lambda root: (root / "two.out").write_text("mine\n"),
    "an output gone": lambda root: (root / "one.out").unlink(),
    "a task forgotten": lambda root: doit(root, "forget", "two"),
    "the plan": lambda root: (root / "tasks.yaml").write_text(PLAN + "  - {name: more, run: 'true', reads: [a]}\n"),
    "the dodo file": lambda root: (root / "dodo.py").write_text(f"{DODO}{OWN}"),
    "another branch": lambda root: subprocess.run(["git", "switch", "-qc", "other"], cwd=root, check=True),
}  # fmt: skip


@pytest.mark.parametrize("change", RUN_AGAIN)
def test_every_change_is_noticed(looked: Path, change: str) -> None:
    RUN_AGAIN[change](looked)
    gone = change.startswith("an input gone")
    assert SAID not in doit(looked, "-n", "2", code=3 if gone else 0)
    listed = doit(looked, "list", code=3 if gone else 0)
    assert ("more" in listed) == (change == "the plan")
    assert ("mine" in listed) == (change == "the dodo file")


def test_a_selection_an_option_and_a_variable_are_other_questions(looked: Path) -> None:
    assert SAID not in doit(looked, "-n", "2", "one")
    assert SAID not in doit(looked, "-n", "2", "-a")
    assert SAID not in doit(looked, "-n", "2", env={"DOIT_MUTATE_MAX_SLOTS": "1"})
    assert "one.out" in doit(looked, "list", "--deps")


def test_tasks_of_the_dodos_own_are_looked_at_each_time(looked: Path) -> None:
    (looked / "dodo.py").write_text(f"{DODO}{OWN}")
    for _ in range(3):
        assert SAID not in doit(looked, "-n", "2", "one", "mine")
    assert not lists_from_a_note(looked)


def test_an_edit_of_a_file_that_is_tracked_is_no_news_to_the_list(looked: Path) -> None:
    before = doit(looked, "list")
    (looked / "a").write_text("other\n")
    assert doit(looked, "list") == before


def test_list_loads_neither_what_draws_nor_what_starts_programs(looked: Path) -> None:
    (looked / "cache/listed.json").unlink()
    modules = loaded(looked, "list")
    assert "yaml" in modules, "it has read the plan"
    assert not {"rich", "sh", "psutil"} & modules
