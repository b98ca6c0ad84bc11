"""`python -m bench.libraries PATH[:FILE,FILE...] ...`: the embedded generator on checkouts of libraries.

For each checkout a copy of its commit is measured, searched and proved by the product itself, with no model; a row of
the table of docs/differential.md is printed. Its packages (node_modules, here or in a folder above) must be there: the
test runner, StrykerJS and Stryker's plugin for that runner. FILEs are what is mutated; without them, the sources that
the package ships. Nothing is written into the checkout.

--again N RUNS runs N of the proved tests, taken at random over all libraries, RUNS times in shuffled order in the
project's own runner, and shows them to the project's formatter, linter and compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs

from bench import again
from bench.again import Written
from bench.measuring import doit, run
from bench.tokens import tokens
from pipeline.generators import LIMIT, Ask, Question, prompt
from pipeline.mutants import block
from pipeline.results import Survivor, Test

DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"
HEAD = "| library | mutants | survivors | false | true | killed | s a survivor | tests |\n" + "|---" * 8 + "|"
_TEST = re.compile(r"(^|/)(tests?|spec|__tests__)(/|\.[cm]?[jt]s$)|\.(test|spec)\.[cm]?[jt]sx?$|_test\.[cm]?[jt]s$")
_CODE = re.compile(r"(?<!\.d)\.[cm]?[jt]s$")
_ASIDE = re.compile(
    r"(^|/)(bench\w*|examples?|dist|build|scripts?|docs?|support|fixtures?)/|bench\.[cm]?[jt]s$|\.config\."
)


@attrs.frozen
class Row:
    """What came of one library. seconds: CPU of the search, a survivor."""

    name: str
    mutants: int
    survivors: int  # as the engine says
    false: int  # of these, killed by the existing tests in a fresh process
    killed: int
    seconds: float
    tests: int
    missed: tuple[tuple[str, str], ...] = ()  # mutant, reason
    asked: tuple[int, int] = (0, 0)  # tokens of the prompts for what is left, without and with what was learnt
    written: Written | None = None

    def __str__(self) -> str:
        true = self.survivors - self.false
        share = f"{self.killed} ({self.killed / true:.0%})" if true else "0"
        each = f"{self.seconds / true:.2f}" if true else "-"
        cells = (self.name, self.mutants, self.survivors, self.false, true, share, each, self.tests)
        return f"| {' | '.join(map(str, cells))} |"


def files_of(checkout: Path) -> list[str]:
    names = subprocess.run(["git", "ls-files"], cwd=checkout, check=True, capture_output=True, text=True).stdout
    return [name for name in names.splitlines() if _CODE.search(name)]


def sources_and_tests(checkout: Path) -> tuple[list[str], list[str]]:
    """What is likely to be mutated, and the tests: by the names that such files have."""
    files = [name for name in files_of(checkout) if not _ASIDE.search(name)]
    tests = [name for name in files if _TEST.search(name)]
    sources = [name for name in files if name not in tests]
    inner = [name for name in sources if name.startswith(("src/", "lib/", "source/"))]
    return inner or [name for name in sources if "/" not in name], tests


def prepared(checkout: Path, mutate: Sequence[str], tests: Sequence[str], place: Path) -> Path:
    """A repository of the checkout's files with a plan in it: one scope for all that is mutated."""
    root = place / checkout.name
    subprocess.run(["git", "clone", "-q", "--local", str(checkout), str(root)], check=True)
    packages = next((p / "node_modules" for p in (checkout, *checkout.parents) if (p / "node_modules").is_dir()), None)
    if packages is None:
        raise SystemExit(f"{checkout}: no node_modules here or above: install the packages of the library first")
    if not (root / "node_modules").exists():
        (root / "node_modules").symlink_to(packages)
    first = tests[0]
    folder, suffix = Path(first).parent, "".join(re.findall(r"(\.test|\.spec)?(\.[cm]?[jt]s)$", first)[0])
    write = (folder / f"mutants{suffix}").as_posix()
    scope = {"name": checkout.name, "mutate": list(mutate), "tests": list(tests), "write": write}
    plan = {"version": 1, "generate": {"with": ["differential"]}, "scopes": [scope]}
    (root / "tasks.yaml").write_text(json.dumps(plan))  # JSON is YAML
    (root / "dodo.py").write_text(DODO)
    with (root / ".git/info/exclude").open("a") as file:
        file.write("node_modules\ncache/\n__pycache__/\n.stryker-tmp/\nreports/\n")
    for words in ("add -f tasks.yaml dodo.py", "-c user.name=b -c user.email=b@b.invalid commit -qnm plan"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def measured(root: Path, home: Path) -> Row:
    run(doit("-n", "1", "validate"), root, home)
    (scope,) = (root / "cache/scopes").iterdir()
    read = {p.name: json.loads(p.read_text()) for p in scope.glob("*.json")}
    mutants = read["baseline.json"]["mutants"]
    searched = read["candidates.0.json"]
    if searched["outcome"] != "ok":
        raise SystemExit(f"the search: {searched['outcome']}: {searched['detail']}")
    true = {s["key"]: s for s in read["survivors.json"]["survivors"]}
    said = [m for m in mutants if m["status"] in ("Survived", "NoCoverage")]
    false = sum(m.get("audited") == "Killed" for m in said)
    proved = read["proofs.0.json"]["proved"]
    killed = {key for each in proved for key in each["how"]}
    reasons: dict[str, str] = read["candidates.0.json"]["unreached"]
    left = [m for m in mutants if m["key"] in true and m["key"] not in killed]
    missed = tuple(
        (
            f"{m['file']}:{m['line']} `{_line(m['original'])}` → `{_line(m['replacement'])}`",
            reasons.get(m["key"], "not proved"),
        )
        for m in left
    )
    seconds = sum(_cpu(root / "cache"))
    (without, with_), _ = tokens([_prompts(root, left, true, {}), _prompts(root, left, true, reasons)], root)
    tests = tuple(Test(**each["test"]) for each in proved)
    plan = json.loads((root / "tasks.yaml").read_text())
    written = Written(root, plan["scopes"][0]["write"], tests)
    counts = (len(mutants), len(said), false, len(killed), seconds, len(proved))
    return Row(root.name, *counts, missed, (without, with_), written)


def _prompts(root: Path, left: Sequence[Any], survivors: Mapping[str, Any], hints: Mapping[str, str]) -> str:
    """The prompts that a model would get for these mutants."""
    questions = []
    for mutant in left:
        lines = (root / mutant["file"]).read_text().split("\n")
        start, end = block(lines, mutant["line"] - 1)
        text = "\n".join(lines[start:end])
        questions.append(
            Question(
                Survivor(**survivors[mutant["key"]]), mutant["line"], mutant["column"], mutant["end_line"],
                mutant["end_column"], text, start + 1, text.replace(mutant["original"], mutant["replacement"], 1),
                "Survived", hint=hints.get(mutant["key"], ""),
            )
        )  # fmt: skip
    asks = (questions[at : at + LIMIT] for at in range(0, len(questions), LIMIT))
    files = tuple(dict.fromkeys(m["file"] for m in left))
    return "".join(prompt.build(Ask(root.name, files, "m.js", "mocha", questions=tuple(some))) for some in asks)


def _line(text: str) -> str:
    return " ".join(text.split())[:60].replace("|", "\\|")


def _cpu(cache: Path) -> Iterable[float]:
    """CPU seconds of every search in the ledger."""
    for path in cache.rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            event: dict[str, Any] = json.loads(line)
            if str(event.get("task", "")).startswith("search"):
                yield float(event.get("cpu_seconds") or 0)


def row_of(word: str, place: Path) -> Row | None:
    """The row of a checkout; None where it could not be measured, and why is said."""
    path, _, named = word.partition(":")
    checkout = Path(path).resolve()
    mutate, tests = sources_and_tests(checkout)
    mutate = named.split(",") if named else mutate
    if not mutate or not tests:
        print(f"{checkout}: no {'tests' if mutate else 'sources'} found", file=sys.stderr)
        return None
    try:
        root = prepared(checkout, mutate, tests, place)
        row = measured(root, place / f"home-{root.name}")
    except SystemExit as error:
        print(f"{checkout}: {error}", file=sys.stderr)
        return None
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.libraries", description=__doc__)
    parser.add_argument("checkouts", nargs="+", metavar="PATH[:FILE,FILE...]")
    parser.add_argument("--missed", type=int, default=0, metavar="N", help="print N of the misses too, taken at random")
    parser.add_argument(
        "--again", type=int, nargs=2, default=(0, 0), metavar=("N", "RUNS"), help="run N tests RUNS times"
    )
    parser.add_argument("--jobs", type=int, default=1, help="checkouts measured at once (1)")
    parser.add_argument("--seed", type=int, default=1, help="of what is taken at random (1)")
    asked = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="libraries-"))
    try:
        print(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores\n{HEAD}", flush=True)
        with ThreadPoolExecutor(asked.jobs) as jobs:
            done = jobs.map(lambda word: row_of(word, place), asked.checkouts)
            rows = [row for row in done if row]
        if len(rows) > 1:
            keys = ("mutants", "survivors", "false", "killed", "seconds", "tests")
            print(Row("all", *(sum(getattr(row, key) for row in rows) for key in keys)))
        _tell_prompts(rows)
        missed = [(row.name, *each) for row in rows for each in row.missed]
        print(f"\n{len(missed)} missed; {min(asked.missed, len(missed))} of them by seed {asked.seed}:")
        for each in random.Random(asked.seed).sample(missed, min(asked.missed, len(missed))):
            print("| " + " | ".join(each) + " |")
        count, runs = asked.again
        libraries = again.sampled([row.written for row in rows if row.written], count, asked.seed)
        if count:
            print(f"\n{again.HEAD}")
        with ThreadPoolExecutor(asked.jobs) as jobs:
            for said in jobs.map(lambda library: again.told(library, runs, asked.seed), libraries if count else ()):
                print(said, flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _tell_prompts(rows: Sequence[Row]) -> None:
    method = tokens(["a"], rows[0].written.root)[1] if rows and rows[0].written else ""
    print(f"\nprompts for what is left, in {method}:")
    print("| library | mutants | without what was learnt | with it |\n" + "|---" * 4 + "|")
    for row in rows:
        print(f"| {row.name} | {len(row.missed)} | {row.asked[0]} | {row.asked[1]} |")


if __name__ == "__main__":
    main()
