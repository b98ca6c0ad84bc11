"""A small C project whose changes are drafted by a stand-in for the paid agent."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import DODO, World

BRANCH = "mutate/main"
CHECK = {"build": "cc -Wall -Werror -o prog src/*.c", "tests": "./prog"}
MAIN = "int main(void) { return 0; }\n"
USE = {"use": "command", "run": "agent"}

Rule = dict[str, Any]


class Project(World):
    """A small C project, the plan of its tasks, and what the agent that stands in does."""

    def plan(self, tasks: Sequence[dict[str, Any]], **more: Any) -> None:
        self.write("tasks.yaml", yaml.safe_dump({"version": 1, **more, "tasks": list(tasks)}, sort_keys=False))

    def agent(self, *rules: Rule) -> None:
        Path(self.env["AGENT_SCRIPT"]).write_text(json.dumps(rules))

    def drafts(self) -> list[dict[str, Any]]:
        """The calls that the agent got, all runs together."""
        log = Path(self.env["AGENT_LOG"])
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if "brief" in line]

    def asked(self) -> list[str]:
        """The first line of the brief of each of them."""
        return [each["brief"].splitlines()[0] for each in self.drafts()]

    def landed(self) -> list[str]:
        """The tasks whose changes are on the branch, in the order in which they landed."""
        messages = self.git("log", "--reverse", "--format=%B", f"HEAD..{BRANCH}").splitlines()
        return [line.split(": ")[1] for line in messages if line.startswith("Mutate-Task: ")]

    def all_events(self, event: str) -> list[dict[str, Any]]:
        """Events of all runs together."""
        lines = (self.root / "cache/ledger.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e["event"] == event]

    def left(self) -> list[str]:
        """What the run has left of its worktrees."""
        places = [p for p in self.home.glob("cache/worktrees/*/*") if p.name != "drafts"]
        return [str(p) for p in (*places, *self.home.glob("cache/worktrees/*/drafts/*"))]

    def build_each(self, base: str = "HEAD") -> None:
        """Check every commit of the branch out, one by one, and build it."""
        folder = self.root.parent / "each"
        for commit in self.git("rev-list", "--reverse", f"{base}..{BRANCH}").split():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            files = subprocess.run(["git", "archive", commit], cwd=self.root, capture_output=True, check=True)
            subprocess.run(["tar", "-x"], cwd=folder, input=files.stdout, check=True)
            for command in CHECK.values():
                subprocess.run(command, shell=True, cwd=folder, check=True)


def task(name: str, *writes: str, **more: Any) -> dict[str, Any]:
    agent = {**USE, "brief": f"Write {name}.", **more.pop("agent", {})}
    return {"name": name, "agent": agent, "writes": list(writes), "check": CHECK, **more}


def writing(name: str, text: str = "", **more: Any) -> Rule:
    """The rule for a task's brief: a function of that name, in a file of that name."""
    write = {f"src/{name}.c": text or f"int {name}(void) {{ return 0; }}\n"}
    return {"match": f"Write {name}.", "write": write, "tokens": 100, **more}


def make_project(place: Path) -> Project:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler (cc): changes to a C project are not tried")
    root = place / "repo"
    (root / "src").mkdir(parents=True)
    identity = "[user]\nname = Tess\nemail = tess@example.invalid\n[init]\ndefaultBranch = main\n"
    (place / "gitconfig").write_text(identity)
    env = {"AGENT_SCRIPT": str(place / "script.json"), "AGENT_LOG": str(place / "agent.jsonl")}
    made = Project(root, place / "home", env)
    made.write("dodo.py", DODO)
    made.write("src/main.c", MAIN)
    made.write(".gitignore", "cache/\nprog\n__pycache__/\n")
    made.write("tasks.yaml", "version: 1\ntasks: []\n")
    made.git("init", "--quiet")
    made.commit("first")
    return made
