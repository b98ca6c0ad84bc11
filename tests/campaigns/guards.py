"""Take one guard away at a time, and see the test that must miss it fail.

    python -m tests.campaigns.guards

In a copy of the project, so that nothing here is touched: each guard of guards.yaml is replaced by what guards nothing,
and its test is run. First, all of these tests are run on the code as it is. Prints a line for each guard; --table
prints the table of docs/trust.md and runs nothing. Exit status 1 where a test fails on the code as it is, or misses
no guard.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import psutil
import yaml

ROOT = Path(__file__).parents[2]
LIMIT = 240  # seconds for one test; one that a missing guard makes hang has missed it
MARK = "DOIT_MUTATE_GUARD"  # in the environment of all that a test starts
NOTICED, UNNOTICED, SPOILT = "noticed", "UNNOTICED", "SPOILT"


@attrs.frozen
class Guard:
    """`old` stands once in `file` (of pipeline/); with `new` in its stead, `test` (of tests/) must fail."""

    guard: str
    file: str
    old: str
    new: str
    test: str

    def without(self, text: str) -> str:
        """The file's text without the guard. Raises ValueError where it is not what it was."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.guard}: {self.file} has {self.old!r} {text.count(self.old)} times")
        return text.replace(self.old, self.new)


def load() -> tuple[Guard, ...]:
    return tuple(Guard(**entry) for entry in yaml.safe_load((ROOT / "tests/campaigns/guards.yaml").read_text()))


def copied(place: Path) -> Path:
    """The project without what is not in git, but for the example's packages, which are linked."""
    for name in ("pipeline", "tests", "docs", "examples", "pyproject.toml", "README.md", "DESIGN.md"):
        if (ROOT / name).is_dir():
            skipped = shutil.ignore_patterns("node_modules", "__pycache__", "cache", "*.db")
            shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=skipped)
        else:
            shutil.copy2(ROOT / name, place / name)
    (place / "examples/shop/node_modules").symlink_to(ROOT / "examples/shop/node_modules")
    return place


def passes(place: Path, tests: Sequence[str], shown: bool = False) -> bool | None:
    """Whether these tests of the copy pass; None where they cannot be run. shown: print what pytest says."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    # In front of an installed one, for doit as well, which runs elsewhere. No bytecode: a file is replaced too soon
    # after it was written to be told by its time.
    env = {**kept, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", MARK: str(place)}
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    words += ["--basetemp", str(place / "tmp")]
    out = None if shown else subprocess.DEVNULL
    with subprocess.Popen(words, cwd=place, env=env, stdout=out, stderr=out) as run:
        try:
            code = run.wait(LIMIT * len(tests))
        except subprocess.TimeoutExpired:
            code = 1
        finally:
            end_all_of(place)
    return {0: True, 1: False}.get(code)


def end_all_of(place: Path) -> None:
    """What a test without a guard leaves running."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == str(place):
                process.kill()


def run(guards: Sequence[Guard], place: Path) -> Iterator[tuple[Guard, str]]:
    """What became of each guard's absence in the copy."""
    for guard in guards:
        file = place / "pipeline" / guard.file
        whole = file.read_text()
        test = f"tests/{guard.test}"
        try:
            file.write_text(guard.without(whole))
            how = passes(place, [test])
        finally:
            file.write_text(whole)
        yield guard, {True: UNNOTICED, False: NOTICED, None: SPOILT}[how]


def table(guards: Sequence[Guard]) -> str:
    """As docs/trust.md has it."""
    rows = [f"| {g.guard} | {g.file} | {g.test.replace('.py::test_', ': ').replace('_', ' ')} |" for g in guards]
    return "\n".join(["| guard | where | the test that fails without it |", "|---|---|---|", *rows])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.guards")
    parser.add_argument("--table", action="store_true", help="print them as docs/trust.md has them, and run nothing")
    parser.add_argument("--only", default="", help="a pattern: those of which the name, file or test has it")
    asked = parser.parse_args()
    guards = [g for g in load() if re.search(asked.only, f"{g.guard} {g.file} {g.test}")]
    if asked.table:
        print(table(guards))
        return 0
    with tempfile.TemporaryDirectory(prefix="guards-campaign-") as name:
        place = copied(Path(name) / "copy")
        if not passes(place, [f"tests/{test}" for test in sorted({g.test for g in guards})], shown=True):
            print("a test fails on the code as it is")
            return 1
        bad = 0
        for guard, how in run(guards, place):
            bad += how != NOTICED
            print(f"{how}: {guard.guard} ({guard.file})", flush=True)
    print(f"{len(guards)} guards, {bad} that no test misses")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
