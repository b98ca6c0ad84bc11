"""What people at a terminal see while a run goes on; and that nobody else does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from bench.measuring import at_a_terminal
from pipeline import live
from pipeline.live import Doing, State

PLAN = """\
version: 1
pools: {generation: 2}
tasks:
  - {name: quick, run: "touch quick.txt", writes: [quick.txt]}
  - {name: slow, run: "sleep 3 && touch slow.txt", writes: [slow.txt]}
  - {name: asks, run: "sleep 3 && touch asks.txt", writes: [asks.txt], pool: generation}
"""
DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    root.mkdir()
    (root / "dodo.py").write_text(DODO)
    (root / "tasks.yaml").write_text(PLAN)
    (root / ".gitignore").write_text("cache/\n*.txt\n__pycache__/\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=e@e", "commit", "-qm", "c"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def seen(root: Path, *words: str, **env: str) -> str:
    """All that a terminal is sent by doit."""
    kept = {key: value for key, value in os.environ.items() if key != "CI"}
    said, status = at_a_terminal(
        [sys.executable, "-m", "doit", *words], root,
        {**kept, "TERM": "xterm", "DOIT_MUTATE_HOME": str(root.parent), **env},
    )  # fmt: skip
    assert status == 0
    return said


def test_a_terminal_is_shown_what_runs_in_each_lane_below_the_lines_that_are_whole(project: Path) -> None:
    said = seen(project, "-n", "2", "quick", "slow", "asks")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said).replace("\r", "")
    assert re.search(r"^validation +[12]/2 +(quick \d+ s · )?slow \d+ s", plain, re.MULTILINE)
    assert re.search(r"^generation +1/2 +asks \d+ s", plain, re.MULTILINE)
    assert re.search(r"^ +[01] of 3 tasks · about \d+ s left", plain, re.MULTILINE)
    for name in ("quick", "slow", "asks"):
        assert re.search(rf"^\.  {name}$", plain, re.MULTILINE)  # whole, as without a terminal
    redrawn = said[said.rindex("\x1b[1mgeneration") :]
    assert redrawn.count("\x1b[2K") >= 3  # what was redrawn is gone at the end


def test_whoever_is_no_terminal_or_asks_for_quiet_gets_lines_alone(project: Path) -> None:
    assert "1/2" not in seen(project, "-n", "2", "-v", "0", "quick")
    assert "\x1b" not in seen(project, "-n", "2", "-a", "quick", TERM="dumb")
    assert "\x1b" not in seen(project, "-n", "2", "-a", "quick", CI="true")


def test_many_tasks_are_counted_and_times_are_short() -> None:
    doing = [Doing("validation", (f"baseline:{n}",), 100 - n) for n in range(8)]
    text = " · ".join(live._listed(doing, 100.0, 60))
    assert text.startswith("baseline:0 0 s · baseline:1 1 s") and text.endswith("2 more")
    assert live._listed([Doing("x", ("a", "b", "c"), 40.0)], 100.0, 60) == ["a and 2 more 1:00 min"]
    assert [live.span(s) for s in (-1, 59.9, 61, 3600, 7384)] == ["0 s", "59 s", "1:01 min", "1:00 h", "2:03 h"]


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_shows_how_long_each_task_has_run_and_how_many_slots_are_in_use(width: int) -> None:
    names = ("validate:src/checkout/discounts.test.js:1", "baseline:a")
    doing = [Doing("validation", names[:1], 88.0), Doing("generation", names[1:], 99.0)]
    state = State({"validation": 4, "generation": 12}, {"validation": 3, "generation": 1}, doing, ["1 of 2 scopes"])
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(live._drawn(state, 100.0, width))
    lines = [line.rstrip().replace(live._UNBROKEN, " ") for line in captured.get().splitlines()]
    shown = names[0] if width == 80 else "validate…est.js:1"
    assert lines == [f"validation  3/4   {shown} 12 s", "generation  1/12  baseline:a 1 s", f"{'':18}1 of 2 scopes"]


def test_twenty_columns_have_a_line_for_each_thing() -> None:
    said = ["1 of 2 scopes", "x" * 30]
    doing = [Doing("validation", ("validate:src/checkout/discounts.test.js:1",), 88.0)]
    state = State({"validation": 4, "generation": 1}, {"validation": 3, "generation": 0}, doing, said)
    console = Console(width=20, color_system=None)
    with console.capture() as captured:
        console.print(live._drawn(state, 100.0, 20))
    assert captured.get().splitlines() == [
        "validation 3/4", " valida…st.js:1 12 s", "generation 0/1", " idle", "1 of 2 scopes", "x" * 19 + "…",
    ]  # fmt: skip
