"""The memory of the machine is a pool too: what tasks ask for, and what they took when they ran last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import limits
from pipeline.memory import Memory

MIB = 1 << 20
DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"
TAKE = "import time; held = b'x' * ({} << 20); time.sleep({})"


def project(root: Path, tasks: str) -> Path:
    root.mkdir()
    (root / "dodo.py").write_text(DODO)
    (root / "tasks.yaml").write_text(f"version: 1\ntasks:\n{tasks}")
    (root / ".gitignore").write_text("cache/\n*.out\n__pycache__/\n")
    (root / "in").write_text("1")
    for words in ("init -q -b main", "add -A", "-c user.name=n -c user.email=n@n.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def doit(root: Path, *words: str, code: int = 0, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "doit", *words], cwd=root, capture_output=True, text=True, check=False,
        env={**os.environ, "DOIT_MUTATE_HOME": str(root.parent / "home"), **env},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def most_at_once(root: Path) -> int:
    """How many tasks ran beside each other, in the last run of the ledger."""
    events = [json.loads(line) for line in (root / "cache/ledger.jsonl").read_text().splitlines()]
    last = [e for e in events if e["run"] == events[-1]["run"] and e["event"] == "attempt" and e.get("lane")]
    spans = [(float(e["started"]), float(e["ended"])) for e in last]
    return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)


def waited_for_memory(root: Path) -> bool:
    (lane,) = json.loads(doit(root, "report", "--json"))["figures"]["lanes"]
    return ("wait", "memory") in {(row["sort"], row["label"]) for row in lane["rows"]}


def holding(names: str, mib: int, seconds: float, more: str = "") -> str:
    command = json.dumps(f'"{sys.executable}" -c "{TAKE.format(mib, seconds)}"')
    return "".join(
        f"  - {{name: {name}, run: {command}, reads: [in], writes: [{name}.out]{more}}}\n".replace(
            '\\"", reads', f'\\" && touch {name}.out", reads'
        )
        for name in names
    )


def test_what_is_asked_for_and_is_not_there_waits_and_the_lanes_line_says_why(tmp_path: Path) -> None:
    root = project(tmp_path / "p", holding("abcd", 30, 0.3, ", memory: 120MiB"))
    said = doit(root, "-n", "4", DOIT_MUTATE_MEMORY="250MiB")
    assert "memory 0.24 GiB (DOIT_MUTATE_MEMORY): 4 tasks at once may take 0.47 GiB, so some wait" in said
    assert most_at_once(root) == 2
    assert all((root / f"{name}.out").exists() for name in "abcd")
    assert waited_for_memory(root)
    (root / "in").write_text("2")
    said = doit(root, "-n", "4", DOIT_MUTATE_MEMORY="480MiB")
    assert "some wait" not in said, "there is enough for all"
    assert not waited_for_memory(root)


def test_what_was_seen_to_take_memory_asks_for_that_the_next_time(tmp_path: Path) -> None:
    root = project(tmp_path / "p", holding("abc", 150, 1.5))
    said = doit(root, "-n", "3", DOIT_MUTATE_MEMORY="400MiB")
    assert "some wait" not in said, "nothing is known of them"
    peaks = json.loads((root / "cache/peaks.json").read_text())
    assert set(peaks) == set("abc")
    assert all(150 * MIB < peak < 250 * MIB for peak in peaks.values())
    (root / "in").write_text("2")
    said = doit(root, "-n", "3", DOIT_MUTATE_MEMORY="400MiB")
    assert "so some wait" in said
    assert most_at_once(root) == 2
    assert waited_for_memory(root)


def test_a_task_that_took_more_than_there_is_now_runs_alone_and_one_that_asks_for_it_is_refused(tmp_path: Path) -> None:
    root = project(tmp_path / "p", holding("a", 150, 1.2))
    doit(root, "-n", "2")
    (root / "in").write_text("2")
    doit(root, "-n", "2", DOIT_MUTATE_MEMORY="80MiB")
    (root / "tasks.yaml").write_text(f"version: 1\ntasks:\n{holding('a', 1, 0, ', memory: 100MiB')}")
    said = doit(root, "-n", "2", code=3, DOIT_MUTATE_MEMORY="80MiB")
    assert "a: asks for 0.1 GiB of memory, and DOIT_MUTATE_MEMORY leaves 0.1 GiB" in said
    assert "DOIT_MUTATE_MEMORY=lots: say bytes" in doit(root, "-n", "2", code=3, DOIT_MUTATE_MEMORY="lots")


def test_what_is_really_free_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    free = 10
    monkeypatch.setattr(limits, "free_memory", lambda: free)
    memory = Memory({"a": 4, "b": 12}, 100, "this machine")
    assert memory.to_share(0, 4) == 10
    assert memory.to_share(0, 12) == 12, "nothing runs: who asks for more than is free would wait for ever"
    assert memory.to_share(4, 4) == 10, "no more than was free when nothing ran, though none of it is taken yet"
    free = 1  # somebody else took it
    assert memory.to_share(4, 4) == 5
    assert Memory({}, 0, "").to_share(0, 0) == 0


def test_a_control_group_is_a_limit_whichever_version_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_GROUPS", tmp_path)
    monkeypatch.setattr(limits, "_own_groups", lambda _: iter([tmp_path / "deep", tmp_path]))
    (tmp_path / "deep").mkdir()
    (tmp_path / "memory.max").write_text("max\n")
    for name, text in {"memory.max": 1000, "memory.current": 700, "memory.stat": "anon 1\ninactive_file 200"}.items():
        (tmp_path / "deep" / name).write_text(f"{text}\n")
    monkeypatch.delenv("DOIT_MUTATE_MEMORY", raising=False)
    assert limits.memory() == (1000, "control group")
    assert limits.free_memory() == 500
    (tmp_path / "deep/cpu.max").write_text("150000 100000\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    assert limits.cores() == 2
    assert (limits.slots("cpu"), limits.slots("75%"), limits.slots("10%"), limits.slots("3")) == (2, 1, 1, None)
    monkeypatch.setattr(limits, "_own_groups", lambda _: iter([]))
    assert (limits.slots("cpu"), limits.slots("75%")) == (8, 6)
    words = ["-n", "cpu", "-n75%", "--process=cpu", "--process", "50%", "-n", "many", "cpu", "-n"]
    assert limits.counted(words) == ["-n", "8", "-n6", "--process=8", "--process", "4", "-n", "many", "cpu", "-n"]


def test_dash_n_means_what_it_says(tmp_path: Path) -> None:
    root = project(tmp_path / "p", holding("abcdefghij", 1, 0))
    cores = limits.cores()
    assert f"validation {min(10, cores)} (-n {cores})" in doit(root, "-n", "cpu")
    assert "validation 1 (-n 1)" in doit(root, "-n", "1%")
    assert "Error parsing parameter 'num_process'" in doit(root, "-n", "many", code=3)
