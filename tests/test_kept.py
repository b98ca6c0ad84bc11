"""A large plan is parsed in a process that ends with it; whatever becomes of that, the plan is what its text says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# The tasks of a plan, whether this process parsed anything, and what was kept.
PROGRAM = """\
import json, os, signal, sys
from pathlib import Path
from pipeline import config, source
parse, here = source.parse, []
def counted(*args):
    here.append(os.getpid())
    {fault}
    return parse(*args)
source.parse = counted
try:
    said = [task.run[0] for task in config.load(Path('tasks.yaml')).tasks]
except config.PlanErrors as errors:
    said = str(errors).splitlines()
kept = Path('cache/parsed.json')
print(json.dumps([said[:2], len(said), len(here), kept.exists() and len(json.loads(kept.read_text())[1]['tasks'])]))
"""
FAULTS = {
    "none": "",
    "killed": "if os.getppid() == {parent}: os.kill(os.getpid(), signal.SIGKILL)",
    "broken": "if os.getppid() == {parent}: raise MemoryError",
}
COUNT = 1000


def plan(more: str = "") -> str:
    task = "  - {{name: t{i}, run: make {i}, reads: [src/f{i}.txt], writes: [out/f{i}.txt]}}\n"
    return "version: 1\ntasks:\n" + "".join(task.format(i=i) for i in range(COUNT)) + more


def loaded(root: Path, text: str, fault: str = "") -> list[object]:
    (root / "src").mkdir(exist_ok=True)
    (root / "cache").mkdir(exist_ok=True)
    for i in range(COUNT):
        (root / f"src/f{i}.txt").touch()
    (root / "tasks.yaml").write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    program = PROGRAM.replace("{fault}", fault.replace("{parent}", "os.getpgid(0)"))
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False, start_new_session=True
    )
    assert ran.returncode == 0 and not ran.stderr, ran.stderr
    found: list[object] = json.loads(ran.stdout)
    return found


def test_another_process_parses_and_what_came_of_it_is_kept(tmp_path: Path) -> None:
    for _ in range(2):
        assert loaded(tmp_path, plan()) == [["make 0", "make 1"], COUNT, 0, COUNT]


@pytest.mark.parametrize("fault", ["killed", "broken"])
def test_what_ends_that_process_leaves_the_plan_as_it_is(tmp_path: Path, fault: str) -> None:
    assert loaded(tmp_path, plan(), FAULTS[fault]) == [["make 0", "make 1"], COUNT, 1, COUNT]


def test_mistakes_are_told_with_their_lines_and_nothing_of_them_is_kept(tmp_path: Path) -> None:
    twice = loaded(tmp_path, plan("  - {name: more, run: x, run: y}\n"))
    assert twice[1:] == [1, 1, False]
    assert f"tasks.yaml:{COUNT + 3}: tasks[{COUNT}].run: given twice" in str(twice[0])
    unknown = loaded(tmp_path, plan("  - {name: more, run: x, raeds: [a]}\n"))
    assert unknown[1] == 1 and f"tasks.yaml:{COUNT + 3}" in str(unknown[0])
