"""Baselines of 5, 7 and 50 scopes against one plain run of the engine: cold, and after one test was added to one.

Equal work: the peer mutates the same files with the same tests and as many workers, and writes its JSON report. What
ours does beside it: each scope's tests alone on the original, the inputs of each, and the audit, which is told apart.
What the peer does beside ours: it runs every test that reaches a mutant, whosever it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measuring import Ran, Row, doit, in_audit, run

# Two of the constants are used by tests, one by none: three to five mutants that act as the module loads.
TABLE = """\
const STEPS = [{step}, {step} * 2];
export const UNIT{i} = 'kg';
"""
MODULE = """\
{table}
export function parcel{i}(weight, express) {{
  if (weight <= 0) throw new RangeError('a parcel weighs something');
  const steps = {steps};
  const base = weight > steps[1] ? 9 : weight > steps[0] ? 6 : 4;
  return express ? base * 2 + {i} : base + {i};
}}

export function clamp{i}(n, low, high) {{
  if (low > high) [low, high] = [high, low];
  return Math.min(Math.max(n, low), high);
}}

export function runs{i}(text) {{
  const found = [];
  for (const letter of text) {{
    const last = found.at(-1);
    if (last && last.letter === letter) last.times += 1;
    else found.push({{ letter, times: 1 }});
  }}
  return found.map(({{ letter, times }}) => (times > 1 ? letter + times : letter)).join('');
}}

export function busy{i}(days, open = true) {{
  const hours = days.reduce((sum, day) => sum + (day.closed ? 0 : day.to - day.from), 0);
  return open && hours >= {step} && days.some((day) => !day.closed);
}}
"""
TEST = """\
import assert from 'node:assert/strict';
import {{ parcel{i}, clamp{i}, runs{i}, busy{i} }} from '../src/m{i}.js';

it('sends a parcel {i}', () => {{
  assert.equal(parcel{i}(1, false), {i} + 4);
  assert.equal(parcel{i}({step} + 1, true), {i} + 12);
  assert.equal(parcel{i}({step} * 2 + 1, false), {i} + 9);
}});

it('keeps a number in bounds {i}', () => {{
  assert.equal(clamp{i}(9, 1, 5), 5);
  assert.equal(clamp{i}(-9, 1, 5), 1);
}});

it('counts runs {i}', () => {{
  assert.equal(runs{i}('aabccc'), 'a2bc3');
}});

it('knows a busy week {i}', () => {{
  assert.equal(busy{i}([{{ from: 0, to: {step} }}, {{ closed: true }}]), true);
  assert.equal(busy{i}([{{ from: 1, to: {step} }}]), false);
}});
"""
MORE = """
it('turns bounds round {i}', () => {{
  assert.equal(clamp{i}(9, 5, 1), 5);
}});
"""


def generated(count: int, tables: bool) -> Callable[[Path], None]:
    """A project of `count` modules, each with a test file. tables: with constants, whose mutants are static."""

    def fill(root: Path) -> None:
        for folder in ("src", "test"):
            (root / folder).mkdir()
        manifest = {"name": "parcels", "private": True, "type": "module", "scripts": {"test": "mocha"}}
        (root / "package.json").write_text(json.dumps(manifest))
        (root / "stryker.config.json").write_text('{ "testRunner": "mocha", "coverageAnalysis": "perTest" }\n')
        for i in range(count):
            step = i % 7 + 3
            table = TABLE.format(i=i, step=step) if tables else ""
            steps = "STEPS" if tables else f"[{step}, {step} * 2]"
            (root / f"src/m{i}.js").write_text(MODULE.format(i=i, step=step, table=table, steps=steps).lstrip())
            (root / f"test/m{i}.test.js").write_text(TEST.format(i=i, step=step))

    return fill


def add_test(root: Path, i: int) -> None:
    with (root / f"test/m{i}.test.js").open("a") as file:
        file.write(MORE.format(i=i))


def attempts(root: Path) -> list[Mapping[str, Any]]:
    """Of the last run, those that took a slot."""
    events = [json.loads(line) for line in (root / "cache/ledger.jsonl").read_text().splitlines()]
    return [e for e in events if e["event"] == "attempt" and e["run"] == events[-1]["run"] and "slot" in e]


def without_audit(ran: Ran, root: Path) -> tuple[float, float]:
    """Wall clock and CPU seconds of a run, without what the audit took of either."""
    slots: dict[int, float] = {}
    for event in (done := attempts(root)):
        slots[event["slot"]] = slots.get(event["slot"], 0.0) + in_audit(event)
    cpu = sum(float(event.get("audit_cpu_seconds") or 0) for event in done)
    return ran.seconds - max(slots.values()), ran.cpu_seconds - cpu


def rows(
    place: Path, pairs: int, what: str, make: Callable[[Path], Path], peer: Sequence[str | Path],
    edit: Callable[[Path], None] | None = None,
) -> list[Row]:  # fmt: skip
    """Pair by pair: our baselines against `peer`, a plain run, of what `make` makes; then of what `edit` made of it."""
    kinds = ("cold", "one test added") if edit else ("cold",)
    ours: dict[str, list[Ran]] = {kind: [] for kind in kinds}
    bare: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    theirs: dict[str, list[Ran]] = {kind: [] for kind in kinds}
    for n in range(pairs):
        here, there = place / f"ours{n}", place / f"peer{n}"
        mine, other = make(here), make(there)
        for kind in kinds:
            if kind != "cold" and edit:
                edit(mine)
                edit(other)
            ours[kind].append(run(doit("-n", "2", "baseline"), mine, here / "home"))
            bare[kind].append(without_audit(ours[kind][-1], mine))
            theirs[kind].append(run(peer, other, there))
    found = []
    for kind in kinds:
        asked = "1.05" if kind == "cold" else "0.60"
        wall, cpu = [r.seconds for r in theirs[kind]], [r.cpu_seconds for r in theirs[kind]]
        found += [
            Row(f"{what}, {kind}, without the audit", [b[0] for b in bare[kind]], wall, asked),
            Row(f"{what}, {kind}, without the audit, CPU", [b[1] for b in bare[kind]], cpu, asked),
            Row(f"{what}, {kind}, with the audit", [r.seconds for r in ours[kind]], wall, "-"),
            Row(f"{what}, {kind}, with the audit, CPU", [r.cpu_seconds for r in ours[kind]], cpu, "-"),
        ]
    return found
