"""The batch gate for real: git, doit, and builds of a small C project; a script writes what an agent would.

`python -m bench gated` counts builds for each draft that landed, beside the simulated ones of `bench gate`; `python -m
bench race` lets a watcher break what is built beside it, with and without `owns`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from bench.measuring import doit

DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"
AGENT = "read -r _ name rest\nif test -n \"$rest\"; then call='return nowhere();'; else call='return 0;'; fi\n"
AGENT += 'echo "int nowhere(void); int $name(void) { $call }" > src/$name.c\n'
DRAFTS, SEED = 60, 1
# A tool of which one runs at a time on a machine, as it says itself.
TOOL = """\
mkdir "$STATE/running" 2>/dev/null || { echo "another build is running"; exit 1; }
trap 'rmdir "$STATE/running"' EXIT
cc -o "$1" src/*.c && sleep 0.05
"""
WATCHER = 'while :; do sh tool "$STATE/watched" >/dev/null 2>&1; sleep 0.6; done\n'


def project(place: Path, drafts: int, guilty: Collection[int], gate: Mapping[str, Any]) -> Path:
    """A repository whose plan has so many tasks, one file each; what the guilty write compiles and does not link."""
    root = place / "repo"
    (root / "src").mkdir(parents=True)
    (root / "src/main.c").write_text("int main(void) { return 0; }\n")
    (root / "dodo.py").write_text(DODO)
    (root / "agent.sh").write_text(AGENT)
    (root / "tool").write_text(TOOL)
    (root / "watcher.sh").write_text(WATCHER)
    (root / ".gitignore").write_text("cache/\n__pycache__/\n")
    briefs = [f"Write f{i}" + (" badly" if i in guilty else "") for i in range(drafts)]
    tasks = [
        {
            "name": f"f{i}", "writes": [f"src/f{i}.c"], "check": {"compiles": f"cc -fsyntax-only src/f{i}.c"},
            "agent": {"use": "command", "run": "sh agent.sh", "brief": brief},
        }
        for i, brief in enumerate(briefs)
    ]  # fmt: skip
    plan = {"version": 1, "pools": {"generation": 4}, "gate": dict(gate), "tasks": tasks}
    (root / "tasks.yaml").write_text(yaml.safe_dump(plan))
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def run(root: Path, *words: str) -> int:
    """doit's exit status."""
    env = {**os.environ, "DOIT_MUTATE_HOME": str(root.parent / "home")}
    return subprocess.run(doit(*words), cwd=root, env=env, check=False, stdout=subprocess.DEVNULL).returncode


def events(root: Path, kind: str) -> list[dict[str, Any]]:
    lines = (root / "cache/ledger.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def figures(place: Path) -> None:
    """Builds that were made for each draft that landed: all drafts wait, and the gate is opened."""
    print(f"{DRAFTS} drafts that wait together, seed {SEED}")
    print("| guilty | batch | builds | landed | builds per landed draft |\n|---|---|---|---|---|")
    for percent in (0, 5, 20):
        guilty = random.Random(SEED).sample(range(DRAFTS), DRAFTS * percent // 100)
        for batch in (5, "auto"):
            build = "cc -o {out}/prog src/*.c && {out}/prog"
            root = project(place / f"{percent}-{batch}", DRAFTS, guilty, {"batch": batch, "build": build, "owns": {}})
            run(root, "-n", "2", "check")
            run(root, "-n", "2", "gate")
            built = [e for e in events(root, "build") if not e["cached"]]
            landed = int(git(root, "rev-list", "--count", "main..mutate/main"))
            assert landed == DRAFTS - len(guilty), "who is not guilty lands"
            print(f"| {percent}% | {batch} | {len(built)} | {landed} | {len(built) / landed:.2f} |", flush=True)
            shutil.rmtree(root.parent)


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def race(place: Path, builds: int = 40) -> None:
    """Builds of one draft each, none guilty, while a watcher uses the same tool about a tenth of the time."""
    print(
        f"{builds} builds of the gate, of one draft each, none guilty, beside a watcher that builds with the same tool"
    )
    print("| owns | builds | green | broken by the watcher |\n|---|---|---|---|")
    for name, owned in (("pause, resume", True), ("none", False)):
        there = place / name.partition(",")[0]
        state = there / "state"
        state.mkdir(parents=True)
        pause = f"kill $(cat {state}/pid); sleep 0.05; rm -rf {state}/pid {state}/running"
        resume = f"STATE={state} sh watcher.sh & echo $! > {state}/pid"
        owns = {"owns": {"pause": pause, "resume": resume}} if owned else {"owns": {}}
        root = project(there, builds, (), {"batch": 1, "build": f"STATE={state} sh tool {{out}}/prog", **owns})
        run(root, "-n", "2", "check")
        subprocess.run(["sh", "-c", resume], cwd=root, check=True)
        try:
            made: list[str] = []
            while len(made) < builds:  # a run stops where the branch itself looks red
                run(root, "-n", "2", "gate", "--check", "--again")
                made = [e["verdict"] for e in events(root, "build") if not e["cached"]]
            first = made[:builds]
            print(f"| {name} | {builds} | {first.count('green')} | {first.count('red')} |", flush=True)
        finally:
            os.kill(int((state / "pid").read_text()), signal.SIGKILL)


if __name__ == "__main__":
    {"figures": figures, "race": race}[sys.argv[1]](Path(sys.argv[2]))
