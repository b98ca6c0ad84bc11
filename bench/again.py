"""Generated tests once they are written: run again and again in the project's own runner, and read by its own tools."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from pipeline.engines.stryker_js.runners import manifest, runner_of
from pipeline.engines.stryker_js.suite import JavaScriptSuite
from pipeline.results import Test

COMMANDS = {
    "mocha": ("mocha",), "vitest": ("vitest", "run"), "jest": ("jest", "--coverage=false", "--runTestsByPath"),
    "tape": ("tape",), "node:test": ("node", "--test"),
}  # fmt: skip
ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Auckland")
LANGUAGES = ("C.UTF-8", "en_US.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8")
TIME_LIMIT = 120  # seconds for one run
# A tool: what says that a project uses it (a file of its root, or a word of its package.json), and how it reads a file.
TOOLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "eslint": (r"eslint\.config\.\w+|\.eslintrc(\.\w+)?", ("eslint",)),
    "prettier": (r"\.prettierrc(\.\w+)?|prettier\.config\.\w+", ("prettier", "--check")),
    "biome": (r"biome\.jsonc?", ("biome", "check")),
    "standard": (r"", ("standard",)),
    "tsc": (r"tsconfig\.json", ("tsc", "--noEmit", "--pretty", "false", "-p", "tsconfig.json")),
}


@attrs.frozen
class Written:
    """A library with the tests that were proved for it. root: the copy that was measured, its packages beside it."""

    root: Path
    write: str
    tests: tuple[Test, ...]


@attrs.frozen
class Told:
    """What came of some of a library's tests."""

    name: str
    tests: int
    runs: int
    failed: tuple[str, ...] = ()  # what was said in each run that failed
    tools: Mapping[str, str] = attrs.field(factory=dict)  # tool → "" or what it found fault with

    def __str__(self) -> str:
        read = ", ".join(f"{tool} {'finds fault' if said else 'is content'}" for tool, said in self.tools.items())
        lines = [f"| {self.name} | {self.tests} | {self.runs} | {len(self.failed)} | {read or 'none'} |"]
        lines += [
            f"    {line}"
            for said in (*self.failed[:1], *filter(None, self.tools.values()))
            for line in said[-1500:].splitlines()
        ]
        return "\n".join(lines)


HEAD = "| library | tests | shuffled runs | of these failed | its own tools |\n" + "|---" * 5 + "|"


def sampled(libraries: Sequence[Written], count: int, seed: int) -> list[Written]:
    """`count` of all tests, taken at random, by library."""
    every = [(at, test) for at, library in enumerate(libraries) for test in library.tests]
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    return [
        attrs.evolve(library, tests=tuple(test for here, test in chosen if here == at))
        for at, library in enumerate(libraries)
    ]


def told(library: Written, runs: int, seed: int) -> Told:
    """Runs the tests in a file of their own, each time in another order, zone and language; shows it to the tools."""
    root, chance = library.root, random.Random(seed)
    runner = runner_of(root, None)
    file, suite = root / library.write, JavaScriptSuite()
    tests, failed = list(library.tests), []
    kept = file.read_bytes() if file.exists() else None
    try:
        for _ in range(runs if tests else 0):
            chance.shuffle(tests)
            file.write_text(suite.add("", tests))
            env = {"TZ": chance.choice(ZONES), "LC_ALL": chance.choice(LANGUAGES), "CI": "1", "NODE_ENV": "test"}
            ran = _ran(root, [*COMMANDS[runner.name], library.write], env)
            if ran.returncode:
                failed.append(ran.stdout + ran.stderr)
        return Told(root.name, len(tests), runs, tuple(failed), _read(root, library.write) if tests else {})
    finally:
        file.unlink(missing_ok=True)
        if kept is not None:
            file.write_bytes(kept)


def _read(root: Path, write: str) -> dict[str, str]:
    """What each tool that the project has says of a file; a tool that is not installed is told as such."""
    names, package = [path.name for path in root.iterdir()], manifest(root)
    script = json.dumps(package.get("scripts", {}))
    uses = {
        tool for tool, (pattern, _) in TOOLS.items() if any(re.fullmatch(pattern, name) for name in names if pattern)
    }
    uses |= {tool for tool in TOOLS if re.search(rf"\b{tool}\b", script)}
    uses |= {"eslint"} if "eslintConfig" in package else set()
    uses |= {"prettier"} if "prettier" in package else set()
    if not write.endswith("ts"):
        uses.discard("tsc")
    return {tool: _said(root, tool, write) for tool in sorted(uses)}


def _said(root: Path, tool: str, write: str) -> str:
    if not (root / "node_modules/.bin" / tool).exists():
        return f"{tool} is not installed"
    if tool == "tsc":
        ran = _ran(root, [*TOOLS[tool][1]], {})
        return "\n".join(line for line in ran.stdout.splitlines() if write in line)
    ran = _ran(root, [tool, *TOOLS[tool][1][1:], write], {})
    return f"{tool}: {ran.stdout}{ran.stderr}" if ran.returncode else ""


def _ran(root: Path, command: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    path = f"{root / 'node_modules/.bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=root, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True, timeout=TIME_LIMIT
    )  # fmt: skip
