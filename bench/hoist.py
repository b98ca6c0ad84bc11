"""What a hoist gains: the plan of twelve features whose changes agents write, before it and after it.

Each registers itself in one file, so that they go one after another; hoisted, each leaves a fragment. A script stands
in for the agent and takes as long for each draft. Git, doit, checks and landings are real, and in both figures.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from bench.gated import DODO, events, git
from bench.measuring import ROOT, doit, run

SHARED, CAP, SECONDS = "tests/kunit/Kbuild", 4, 8
PLAN = ROOT / "tests/plans/story.yaml"
# It changes every file that it may change: in C a declaration, else a line with its name.
AGENT = f"""\
brief=$(cat)
name=$(printf '%s' "$brief" | sed -n '1s/^Write //p')
files=$(printf '%s' "$brief" | sed -n 's/^You may change these, and nothing else: //p' | tr -d ,)
sleep {SECONDS}
for file in $files; do
  mkdir -p "$(dirname "$file")"
  part=$(basename "$file" .c)
  case $file in *.c) echo "int ${{name}}_$part(void);" >> "$file";; *) echo "$name" >> "$file";; esac
done
"""


def project(place: Path) -> Path:
    root = place / "repo"
    (root / "core").mkdir(parents=True)
    (root / "core/none.c").write_text("int none;\n")
    (root / "agent.sh").write_text(AGENT)
    (root / "dodo.py").write_text(DODO)
    (root / ".gitignore").write_text("cache/\n__pycache__/\n")
    tasks = [
        {
            "name": each["name"], "writes": each["writes"], "needs": each.get("needs", []),
            "agent": {"use": "command", "run": "sh agent.sh", "brief": f"Write {each['name']}"},
            "check": {"build": "cc -fsyntax-only core/*.c", "registered": f"cat {SHARED} {SHARED}.d/* | grep -q ."},
        }
        for each in yaml.safe_load(PLAN.read_text())["tasks"]
    ]  # fmt: skip
    plan = {"version": 1, "pools": {"generation": CAP}, "compose": {SHARED: "include"}, "tasks": tasks}
    (root / "tasks.yaml").write_text(yaml.safe_dump(plan, sort_keys=False))
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        git(root, *words.split())
    return root


def landed(root: Path, home: Path) -> tuple[int, float, int]:
    """Land the plan: its waves, the seconds from the first draft's start to the last landing's end, changes landed."""
    said = subprocess.run(doit("plan", "--json"), cwd=root, check=True, capture_output=True, text=True).stdout
    waves: dict[str, Any] = json.loads(said)["tasks"]
    run(doit("-n", str(CAP), "build"), root, home)
    ran = [e for e in events(root, "attempt") if e["lane"]]
    seconds = max(e["ended"] for e in ran) - min(e["started"] for e in ran)
    return waves["waves"], seconds, int(git(root, "rev-list", "--count", "main..mutate/main"))


def figures(place: Path) -> None:
    """Both ways in turn on one machine, and how many times as fast the second is."""
    print(f"12 changes, {CAP} drafts at once, {SECONDS} s each (asked: all 12 land, at least 1.8 times as fast)")
    print("| plan | waves | landed | seconds | times as fast |\n|---|---|---|---|---|")
    before = 0.0
    for name in ("as it is", "hoisted"):
        root = project(place / name.replace(" ", "-"))
        if name == "hoisted":
            subprocess.run(doit("plan", "--hoist", SHARED, "--write"), cwd=root, check=True, stdout=subprocess.DEVNULL)
            git(root, "-c", "user.name=b", "-c", "user.email=b@b.invalid", "commit", "-qam", "hoisted")
        waves, seconds, changes = landed(root, place / "home" / name)
        before = before or seconds
        print(f"| {name} | {waves} | {changes} | {seconds:.1f} | {before / seconds:.2f} |", flush=True)
