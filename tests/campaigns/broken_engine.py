"""Engines that report what cannot be, or end as they should not; and what a run makes of each.

    python -m tests.campaigns.broken_engine

One project, one run; real git, doit and tests. The engine is a stand-in (tests/standins/broken-engine) that writes what
StrykerJS has reported for real, broken in one way for each scope. Prints a line for each: what is broken, the outcome,
what is said of it. Exit status 1 where an outcome is not what it must be, a token was spent on a scope that was not
measured, or a process is left.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs
from conftest import SHOP, STANDINS, World, make_world

from campaigns.hostile import Line, alive
from pipeline.engines.stryker_js import StrykerJS
from pipeline.measuring import Baseline
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import Status, is_survivor
from pipeline.results import load

SOURCE = """\
export function label(name, width) {
  if (name.length > width) {
    return '\U0001f642 ' + name.slice(0, width) + '…';
  }
  return name;
}
"""
TEST = """\
import assert from 'node:assert/strict';
import { label } from '../src/NAME.js';

it('keeps a short name', () => {
  assert.equal(label('abc', 5), 'abc');
});
"""
# Runs the real one, and keeps what it leaves.
RECORDER = """\
import fs from 'node:fs';
import { spawnSync } from 'node:child_process';
const [into, ...words] = process.argv.slice(2);
const { status } = spawnSync(process.execPath, ['node_modules/@stryker-mutator/core/bin/stryker.js', ...words]);
const { overrides } = JSON.parse(fs.readFileSync(process.env.DOIT_MUTATE_SCOPES));
fs.copyFileSync(overrides.jsonReporter.fileName, `${into}/report.json`);
const [sandbox] = fs.readdirSync(overrides.tempDirName);
fs.copyFileSync(`${overrides.tempDirName}/${sandbox}/src/plain.js`, `${into}/code.js`);
process.exit(status);
"""


@attrs.frozen
class Case:
    """What is broken in the scope of this name; its outcome, and a pattern of what is said of it."""

    what: str
    outcome: str = "ok"
    said: str = ""


CONTENT = {
    "plain": Case("nothing"),
    "unrun": Case("Survived by 0 tests, though tests cover it", "hollow-report", "without a test having been run"),
    "unreplaced": Case("no replacement", "hollow-report", "has no replacement"),
    "timeouts": Case("all Timeout", "hollow-report", "timed out: nothing was judged"),
    "slow": Case("every kill a Timeout"),
    "empty": Case("no mutants", "hollow-report", "no mutant of src/empty.js, which holds some"),
    "untold": Case("no testFiles", "hollow-report", "covered by a test that it does not list"),
    "other": Case("of another text", "hollow-report", "another text of src/other.js"),
    "unbuilt": Case("all CompileError, RuntimeError, Ignored", "hollow-report", "none of .* mutants was judged: Comp"),
    "errors": Case("some RuntimeError"),
    "pending": Case("one Pending", "hollow-report", "still pending"),
    "zombie": Case("an unknown status", "hollow-report", "Zombie"),
    "beyond": Case("a place beyond the end", "hollow-report", "99:1 to 99:2"),
    "backslash": Case("a path with backslashes"),
    "absolute": Case("an absolute path"),
    "twice": Case("one file under two spellings", "hollow-report", "it has src/twice.js twice"),
    "uncoded": Case("no code with the mutants", "hollow-report", "is missing beside it"),
}
ENDS = {
    "truncated": Case("a report that breaks off", "hollow-report", "breaks off"),
    "old": Case("a report older than the run", "hollow-report", "older than the run"),
    "nothing": Case("exit status 0, no report", "no-report", "all good"),
    "failing": Case("exit status 1, no report", "crashed", "log"),
    "failed": Case("exit status 1, and a report"),
    "hang": Case("it hangs, its report written", "time-limit"),
    "flood": Case("it prints without end", "crashed", "printed without end"),
    "leave": Case("it leaves a process behind"),
    "full": Case("a full disk", "crashed", "File too large"),
}
CASES = CONTENT | ENDS
LIMIT = 4  # seconds for one engine run


def record(place: Path, node_modules: Path) -> Path:
    """A folder with what a real run reports of SOURCE, and the code with its mutants."""
    root, recorded = place / "real", place / "recorded"
    for folder in (root / "src", root / "test", recorded):
        folder.mkdir(parents=True)
    (root / "package.json").write_text('{ "type": "module" }')
    (root / "src/plain.js").write_text(SOURCE)
    (root / "test/plain.test.js").write_text(TEST.replace("NAME", "plain"))
    (root / "node_modules").symlink_to(node_modules)
    (place / "recorder.mjs").write_text(RECORDER)
    engine = StrykerJS(EngineConfig(command=(StrykerJS(EngineConfig()).node(), f"{place}/recorder.mjs", f"{recorded}")))
    scope = Scope("plain", ("src/plain.js",), ("test/plain.test.js",), "test/plain.mutants.test.js")
    assert engine.measure(root, [scope], workers=1, log=place / "log")["plain"].outcome == "ok"
    return recorded


def make(place: Path, node_modules: Path) -> World:
    """One scope for each case. Those that share a file are measured by processes of their own."""
    project = place / "project"
    for folder in ("src", "test"):
        (project / folder).mkdir(parents=True)
    (project / "package.json").write_text('{ "name": "broken", "private": true, "type": "module" }')
    scopes = ""
    for name in CASES:
        file = name if name in CONTENT else "shared"
        (project / f"src/{file}.js").write_text(SOURCE)
        (project / f"test/{name}.test.js").write_text(TEST.replace("NAME", file))
        scopes += (
            f"  - {{name: {name}, mutate: src/{file}.js, tests: test/{name}.test.js, write: test/{name}.m.test.js}}\n"
        )
    engine = json.dumps([sys.executable, str(STANDINS / "broken-engine"), str(record(place, node_modules))])
    plan = f"""\
version: 1
engine: {{command: {engine}, time_limit: {LIMIT}}}
generate: {{with: [claude], rounds: 1}}
pools: {{generation: 4}}
scopes:
{scopes}"""
    return make_world(place, node_modules, plan, project)


def run(world: World) -> Iterator[Line]:
    """One drive over all of it."""
    done = world.doit("-n", "2", "mutate", code=1, timeout=600)
    paid = {call["scope"] for call in world.events("call")}
    rounds = [event for event in world.events("attempt") if event["kind"] == "generate"]
    # Two scopes of one file have one question: the second may find its answer kept.
    asked = paid | {event["scope"] for event in rounds if event.get("kept_replies")}
    plain = load(world.root / "cache/scopes/plain/baseline.json", Baseline)
    for name, case in CASES.items():
        baseline = load(world.root / f"cache/scopes/{name}/baseline.json", Baseline)
        measured = baseline.outcome == "ok"
        survivors = any(is_survivor(m.final) for m in baseline.mutants)
        right = baseline.outcome == case.outcome and bool(re.search(case.said, baseline.detail, re.DOTALL))
        right &= done.ending(name) == ("exhausted" if measured else "failed")
        right &= (name in asked) == (measured and survivors)  # a token only for what was measured
        right &= not measured or len(baseline.mutants) == len(plain.mutants)
        yield Line(case.what, baseline.outcome, baseline.detail.split("\n")[0], right)
    yield from told(world, plain, done.out)
    size = len(done.both) + sum(p.stat().st_size for p in (world.root / "cache").rglob("*.json*"))
    yield Line("what is told of one that prints without end", "short", "", size < 1 << 20)
    yield Line("processes", "none is left", "", not alive("sleep 8765"))


def told(world: World, plain: Baseline, said: str) -> Iterator[Line]:
    """What is right about what was measured."""
    keys = {m.key for m in plain.mutants}
    starts = [(m.line, m.column) for m in plain.mutants]
    yield Line("mutants with one start", "told apart", "", len(keys) == len(starts) > len(set(starts)))
    originals = {m.original for m in plain.mutants}
    block = SOURCE[SOURCE.index("{\n    return") : SOURCE.index("\n  return name")]
    yield Line("a span of several lines", "read", block.split("\n")[1].strip(), block in originals)
    yield Line("columns after an emoji", "read", "'…'", {"'\U0001f642 '", "'…'"} <= originals)
    slow = load(world.root / "cache/scopes/slow/baseline.json", Baseline)
    count = sum(m.status is Status.TIMEOUT for m in slow.mutants)
    row = next(line for line in said.splitlines() if line.startswith("slow "))
    yield Line("the honest score of timeouts alone", row.split()[8], "", count > 1 and row.split()[8] == "0.0")
    line = f"slow: {count} of {count} detected mutants only timed out"
    yield Line("mostly timeouts, in the summary", "said", line, line in said)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="broken-engine-campaign-") as name:
        lines = list(run(make(Path(name), SHOP / "node_modules")))
    width = max(len(line.reply) for line in lines)
    for line in lines:
        wrong = "" if line.good else "WRONG  "
        print(f"{wrong}{line.reply:{width}}  {line.outcome:13}  {line.reason[:110]}")
    print(f"\n{len(lines)} lines, {sum(not line.good for line in lines)} wrong")
    return 0 if all(line.good for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
