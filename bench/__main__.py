"""`python -m bench [NAME ...]`: measure, and print the table that docs/speed.md carries.

Every figure is a ratio between two commands that ran in turn on the same machine, pair by pair; the table gives the
median and the spread. Absolute seconds are of this machine and mean little elsewhere.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import gate as gates
from bench import gated as gateds
from bench import hoist as hoists
from bench import many as manys
from bench import order as orders
from bench import page as pages
from bench import scopes as scopess
from bench import seeing as seeings
from bench import trees as treess
from bench.measuring import ROOT, Row, doit, run
from bench.net import net
from bench.plan import table

SHOP = ROOT / "examples" / "shop"
DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"
PLAN = """\
version: 1
generate: {with: [differential]}
scopes:
  - {mutate: src/**/*.js, tests: "test/{stem}.test.js", write: "test/{stem}.mutants.test.js"}
"""


def stryker(*args: str) -> list[str | Path]:
    return ["node", "node_modules/@stryker-mutator/core/bin/stryker.js", "run", "--concurrency", "2", *args]


def repository(place: Path, fill: Callable[[Path], None], plan: str = PLAN) -> Path:
    """A new repository with a project in it, one commit, and the packages linked."""
    root = place / "repo"
    root.mkdir(parents=True)
    fill(root)
    (root / "dodo.py").write_text(DODO)
    (root / "tasks.yaml").write_text(plan)
    (root / ".gitignore").write_text("node_modules\ncache/\n__pycache__/\nreports/\n.stryker-tmp/\n")
    (root / "node_modules").symlink_to(SHOP / "node_modules")
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def shop(root: Path) -> None:
    for name in ("src", "test", "package.json", "package-lock.json", "stryker.config.json"):
        source = SHOP / name
        shutil.copytree(source, root / name) if source.is_dir() else shutil.copy(source, root / name)


def cold(place: Path, pairs: int) -> list[Row]:
    """The example's baselines, and the whole drive, from nothing, against one plain run of the engine."""
    found = scopess.rows(
        place / "baselines", pairs, "the example's 7 scopes", lambda at: repository(at, shop),
        stryker("--reporters", "json"),
    )  # fmt: skip
    drives: list[float] = []
    plain: list[float] = []
    for i in range(pairs):
        there = place / f"drive{i}"
        drives.append(run(doit("-n", "2", "mutate"), repository(there, shop), there / "home").seconds)
        there = place / f"plain{i}"
        plain.append(run(stryker("--reporters", "json"), repository(there, shop), there).seconds)
    return [*found, Row("the whole drive without a model against plain `stryker run`", drives, plain, "-")]


def edit(place: Path, pairs: int) -> list[Row]:
    """5 and 50 scopes cold, and after a test was added to one, against runs of the engine with --incremental."""
    incremental = stryker("--reporters", "json", "--incremental")
    found: list[Row] = []
    for count, tables in ((5, True), (50, True), (50, False)):
        what = f"{count} scopes{'' if tables else ' without a static mutant'}"
        make = functools.partial(repository, fill=scopess.generated(count, tables))
        found += scopess.rows(
            place / what.replace(" ", "-"), pairs, what, make, incremental, lambda root: scopess.add_test(root, 3)
        )
    return found


def nothing(place: Path, pairs: int) -> list[Row]:
    """A second run with nothing to do."""
    ours = repository(place / "ours", shop)
    theirs = repository(place / "theirs", shop)
    run(doit("-n", "2", "mutate"), ours, place / "home")
    incremental = stryker("--reporters", "json", "--incremental")
    run(incremental, theirs, place)
    a: list[float] = []
    b: list[float] = []
    for _ in range(pairs):
        a.append(run(doit("-n", "2", "mutate"), ours, place / "home").seconds)
        b.append(run(incremental, theirs, place).seconds)
    return [Row("nothing to do, against `stryker run --incremental`", a, b, "0.10")]


def memory(place: Path, pairs: int) -> list[Row]:
    """The runner's own peak at 1,000 scopes: cold, and with nothing to do."""

    def many(root: Path) -> None:
        for folder in ("src", "test"):
            (root / folder).mkdir()
        (root / "package.json").write_text('{"name": "many", "private": true, "type": "module"}\n')
        for i in range(1000):
            (root / f"src/m{i}.js").write_text(f"export const add{i} = (a) => a + {i + 1};\n")
            (root / f"test/m{i}.test.js").write_text(
                f"import assert from 'node:assert/strict';\nimport {{ add{i} }} from '../src/m{i}.js';\n"
                f"it('adds {i}', () => {{ assert.equal(add{i}(2), {i + 3}); }});\n"
            )

    root = repository(place / "many", many)
    for what in ("cold", "nothing to do"):
        ran = run(doit("-n", "2", "mutate"), root, place / "home")
        print(f"1,000 scopes, {what}: {ran.seconds:.1f} s, {ran.peak_mib:.0f} MiB (asked: under 200)", flush=True)
    return []


def plan(_place: Path, pairs: int) -> list[Row]:
    """Judging a plan of up to 10,000 tasks; prints a table of its own."""
    table(pairs)
    return []


def gate(_place: Path, _pairs: int) -> list[Row]:
    """What the batch gate costs in builds; prints a table of its own."""
    gates.table()
    return []


def gated(place: Path, _pairs: int) -> list[Row]:
    """What the batch gate costs in builds that were really made; prints a table of its own."""
    gateds.figures(place)
    return []


def race(place: Path, _pairs: int) -> list[Row]:
    """A watcher that breaks what is built beside it, with and without `owns`; prints a table of its own."""
    gateds.race(place)
    return []


def hoist(place: Path, _pairs: int) -> list[Row]:
    """A plan of agents' tasks that all write one file, before and after that is hoisted; prints a table of its own."""
    hoists.figures(place)
    return []


def seeing(place: Path, _pairs: int) -> list[Row]:
    """A long ledger folded, and the view of a run at a terminal; prints lines of its own."""
    seeings.figures(place)
    return []


def page(place: Path, pairs: int) -> list[Row]:
    """Opening the report page of a big project in Chromium; prints a line of its own."""
    pages.table(place, pairs)
    return []


def many(place: Path, pairs: int) -> list[Row]:
    """Plans of 100 and 1,000 trivial tasks, and the list of them."""
    found = [row for count in (100, 1_000) for row in manys.rows(place / str(count), count, pairs)]
    return [*found, *manys.listing(place / "list", 1_000, pairs)]


def most(place: Path, pairs: int) -> list[Row]:
    """As `many`, of 10,000."""
    return [*manys.rows(place, 10_000, pairs), *manys.listing(place / "list", 10_000, pairs)]


def order(_place: Path, _pairs: int) -> list[Row]:
    """In which order ready tasks go; prints a table of its own."""
    orders.table()
    return []


def trees(place: Path, _pairs: int) -> list[Row]:
    """Worktrees of a repository of 5,000 files; prints a table of its own."""
    treess.figures(place)
    return []


def live(place: Path, pairs: int) -> list[Row]:
    """Runs of tasks that sleep, against the simulation of what they did."""
    return [orders.live(place / "live", pairs)]


BENCHES: dict[str, Callable[[Path, int], list[Row]]] = {
    "cold": cold,
    "edit": edit,
    "nothing": nothing,
    "memory": memory,
    "many": many,
    "most": most,
    "order": order,
    "live": live,
    "trees": trees,
    "plan": plan,
    "gate": gate,
    "gated": gated,
    "race": race,
    "hoist": hoist,
    "seeing": seeing,
    "net": net,
    "page": page,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], help="which (default: cold nothing)")
    parser.add_argument("--pairs", type=int, default=3)
    asked = parser.parse_args()
    print("| what | ours | peer | ratio | spread | asked |\n|---|---|---|---|---|---|", flush=True)
    for name in asked.names or ["cold", "nothing"]:
        with tempfile.TemporaryDirectory(prefix="bench-") as place:
            for row in BENCHES[name](Path(place), asked.pairs):
                print(row, flush=True)


if __name__ == "__main__":
    main()
