"""Projects whose tests run in other runners than mocha with ES modules: a small drive each, all programs real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs
import filelock
import pytest
from conftest import HERE, PLAN, World, make_world

from pipeline.engines import EngineError, TestRun, stryker_js
from pipeline.engines.stryker_js import StrykerJS
from pipeline.engines.stryker_js.runners import runner_of
from pipeline.model import EngineConfig
from pipeline.results import Outcome
from pipeline.sandbox import Sandbox

RUNNERS = HERE / "projects" / "runners"
TEST, WRITE = "test/sizes.test.js", "test/sizes.mutants.test.js"
CORE = "@stryker-mutator/core"


@pytest.fixture(scope="session")
def packages() -> Path:
    """What all of these projects are tested with, installed once."""
    installed = RUNNERS / "node_modules"
    with filelock.FileLock(RUNNERS / ".install.lock"):
        done, wanted = installed / ".package-lock.json", RUNNERS / "package-lock.json"
        if not done.exists() or done.stat().st_mtime < wanted.stat().st_mtime:
            npm = shutil.which("npm") or str(Path(sys.prefix) / "bin" / "npm")
            path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.prefix) / 'bin'}"
            subprocess.run(
                [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=RUNNERS, check=True,
                env={**os.environ, "PATH": path},
            )  # fmt: skip
    return installed


# -- from the baseline to the branch

LANDED = {
    "mocha-cjs": """\
const { expect } = require("chai");
const { size } = require("../src/sizes");

{mark}
it('size returns "small" for 1', function () {
  expect(size(1)).to.equal("small");
});
""",
    "node-test": """\
import assert from 'node:assert/strict'
import test from 'node:test'
import { size } from '../src/sizes.js'

{mark}
test("size returns 'small' for 1", () => {
    assert.equal(size(1), 'small')
})
""",
    "vitest": """\
import { expect, it } from 'vitest';
import { size } from '../src/sizes';

{mark}
it("size returns 'small' for 1", () => {
  expect(size(1)).toBe('small');
});
""",
    "jest": """\
const { size } = require('../src/sizes');

{mark}
test("size returns 'small' for 1", () => {
  expect(size(1)).toBe('small');
});
""",
    "tape": """\
'use strict';

const test = require('tape');
const { size } = require('../src/sizes.js');

{mark}
test("size returns 'small' for 1", (t) => {
\tt.equal(size(1), 'small');
\tt.end();
});
""",
}

MORE = {
    "mocha-cjs": "  it('more', () => {\n    expect(size(1)).to.equal('small');\n  });\n",
    "node-test": "test('more', () => {\n    assert.equal(size(1), 'small')\n})\n",
    "vitest": "  it('more', () => {\n    expect(size(1)).toBe('small');\n  });\n",
    "jest": "test('more', () => {\n  expect(size(1)).toBe('small');\n});\n",
    "tape": "test('more', (t) => {\n\tt.equal(size(1), 'small');\n\tt.end();\n});\n",
}


@pytest.mark.parametrize("name", LANDED)
def test_a_project_is_driven_in_its_own_runner_and_the_tests_stand_as_its_own_do(
    name: str, tmp_path: Path, packages: Path
) -> None:
    world = project(name, tmp_path, packages)
    suffix = typed(world) if name == "vitest" else ".js"
    source, write = f"src/sizes{suffix}", WRITE.replace(".js", suffix)
    done = world.doit("-n", "2", "mutate")
    assert done.ending(source) == "landed", done.both
    assert "3 → 0" in done.out and f"confirm:{source}: 0 survivors" in done.out
    text = world.on_branch(write) or ""
    (mark,) = [line for line in text.splitlines() if line.startswith("// Pins what the code does today")]
    assert text.replace(mark, "{mark}") == LANDED[name]
    if (world.root / ".prettierrc").exists():
        world.write(WRITE, text)
        prettier = [str(world.root / "node_modules/.bin/prettier"), "--check", WRITE]
        assert subprocess.run(prettier, cwd=world.root, capture_output=True, check=False).returncode == 0
    test = f"test/sizes.test{suffix}"
    before = world.read(test)
    at = before.rindex("})") if "describe(" in before else len(before)  # behind all others
    world.write(test, f"{before[:at]}{MORE[name]}{before[at:]}")
    done = world.doit("-n", "2", "baseline")
    assert "0 survivors, 1 test added since the engine ran" in done.both and not world.measured()


def typed(world: World) -> str:
    """Make it TypeScript, of which vitest has the types taken out by a program of its own."""
    for path in ("src/sizes", "test/sizes.test"):
        world.git("mv", f"{path}.js", f"{path}.ts")
    world.edit("src/sizes.ts", "(n, ", "(n: number, ")
    world.edit(
        "test/sizes.test.ts",
        "it('is big above the least', () =>",
        "it.each([[5]])('is big above the least: %s', (n) =>",
    )
    world.edit("test/sizes.test.ts", "size(5)", "size(n)")
    world.write("tasks.yaml", world.read("tasks.yaml").replace(".js", ".ts"))
    world.commit("typed")
    return ".ts"


def project(name: str, place: Path, packages: Path) -> World:
    return make_world(place, packages, f"{PLAN}engine: {{concurrency: 1}}\n", RUNNERS / name)


# -- one fresh process

SWITCHED = """\
function stryNS_9fa48() { return globalThis.__stryker__; }
function size(n) {
  const ns = stryNS_9fa48();
  if (ns && ns.currentTestId) ns.mutantCoverage.perTest[ns.currentTestId]['0'] = 1;
  if (ns && ns.activeMutant === '0') throw new TypeError('mutated');
  if (ns && ns.activeMutant === '1') return 'small';
  return n > 1 ? 'big' : 'small';
}
"""
BODIES = {
    "kills": "{equal}(size(5), 'big'){end}",
    "cannot see the switch": "{equal}(typeof globalThis.__stryker__, 'undefined'){end}",
    "makes code": "new Function('return 1')();",
    "leaves a method": "Array.prototype.last = 1;",
    "fails by itself": "null.f();",
}


@attrs.frozen
class Form:
    """How a test is written for a runner."""

    head: str
    test: str = "test('{title}', () => {{ {body} }});"
    equal: str = "assert.equal"
    end: str = ";"
    tail: str = "module.exports = { size };"
    skipped: str = "test.skip('is skipped', () => {});"
    also: Mapping[str, str] = attrs.field(factory=dict)  # title -> body of tests that leave something changed


EXTENDS = {"changes expect": "expect.extend({{ toBe: () => ({{ pass: true }}) }});"}
FORMS = {
    "mocha-cjs": Form(
        "const assert = require('node:assert'); const { size } = require('../src/sizes');",
        "it('{title}', () => {{ {body} }});", skipped="it.skip('is skipped', () => {});",
    ),
    "node-test": Form(
        "import assert from 'node:assert'; import test from 'node:test'; import { size } from '../src/sizes.js';",
        tail="export { size };",
    ),
    "vitest": Form(
        "import { assert, expect, test } from 'vitest'; import { size } from '../src/sizes';", tail="export { size };",
        also=EXTENDS,
    ),
    "jest": Form("const assert = require('node:assert'); const { size } = require('../src/sizes');", also=EXTENDS),
    "tape": Form(
        "const test = require('tape'); const { size } = require('../src/sizes');",
        "test('{title}', (t) => {{ {body} t.end(); }});", equal="t.equal",
        skipped="test('is skipped', { skip: true }, () => {});",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_each_test_in_a_fresh_process_is_told_of_and_the_guard_is_around_it(
    name: str, tmp_path: Path, packages: Path
) -> None:
    form, root = FORMS[name], tmp_path / "project"
    shutil.copytree(RUNNERS / name, root)
    (root / "node_modules").symlink_to(packages)
    (root / "src/sizes.js").write_text(SWITCHED + form.tail)
    tests = [
        form.test.format(title=title, body=body.format(equal=form.equal, end=form.end))
        for title, body in {**BODIES, **form.also}.items()
    ]
    (root / WRITE).write_text("\n".join([form.head, *tests, form.skipped]))
    engine = StrykerJS(EngineConfig())

    def run(mutant: str | None, shuffle: int | None = None, only: list[str] | None = None) -> TestRun:
        return engine.test(
            root, [WRITE], mutant=mutant, timeout=120, shuffle=shuffle, only=only, sandbox=Sandbox(()), watch=True
        )

    plain = run("", shuffle=4)
    assert plain.outcome is Outcome.OK, plain.detail
    told = {t.title: (t.file, t.state, t.kind) for t in plain.tests}
    assert told == {
        "kills": (WRITE, "passed", ""),
        "cannot see the switch": (WRITE, "passed", ""),
        "makes code": (WRITE, "failed", "other"),
        "leaves a method": (WRITE, "passed", ""),
        "fails by itself": (WRITE, "failed", "other"),
        **dict.fromkeys(form.also, (WRITE, "passed", "")),
        "is skipped": (WRITE, "skipped", ""),
    }
    assert {t.title for t in plain.tests if t.left} == {"leaves a method", *form.also}
    assert "may not make code" in next(t.message for t in plain.tests if t.title == "makes code")
    orders = {tuple(t.title for t in run.tests if t.state != "skipped") for run in (plain, run("", shuffle=5))}
    assert len(orders) == 2
    assert plain.reached == {"0": ("kills",)}
    for mutant, kind in {"0": "exception", "1": "assertion"}.items():
        on = run(mutant, only=["kills", "cannot see the switch"])
        assert [(t.title, t.state, t.kind) for t in on.tests if t.state != "skipped"] == [
            ("kills", "failed", kind), ("cannot see the switch", "passed", ""),
        ]  # fmt: skip


# -- which runner, and what it takes


@pytest.mark.parametrize(
    ("package", "stryker", "found"),
    [
        ('{"scripts": {"test": "node --test"}}', None, "node:test"),
        ('{"scripts": {"test": "npm run lint && npm run unit", "unit": "vitest run"}}', None, "vitest"),
        ('{"devDependencies": {"jest": "*", "mocha": "*"}, "scripts": {"test": "jest --ci"}}', None, "jest"),
        ('{"devDependencies": {"jest": "*", "mocha": "*"}}', '{"testRunner": "mocha"}', "mocha"),
        ('{"devDependencies": {"tape": "*"}}', '{"testRunner": "tap"}', "tape"),
        ("{}", '{"testRunner": "tap"}', "node:test"),
        ('{"jest": {}}', '{"testRunner": "command"}', "jest"),
        ("{}", None, "mocha"),
    ],
)
def test_the_runner_is_the_one_that_the_projects_own_files_tell_of(
    package: str, stryker: str | None, found: str, tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text(package)
    if stryker:
        (tmp_path / "stryker.config.json").write_text(stryker)
    assert runner_of(tmp_path, "stryker.config.json" if stryker else None).name == found


@pytest.mark.parametrize(
    ("package", "stryker", "said"),
    [
        ('{"devDependencies": {"jest": "*", "vitest": "*"}}', None, "are found .*: vitest and jest; name one"),
        ('{"scripts": {"test": "mocha && node --test"}}', None, "mocha and node:test; name one"),
        ("{}", '{"testRunner": "karma"}', "stryker.config.json: testRunner karma is not supported; supported are"),
        ('{"devDependencies": {"ava": "*"}}', None, r"package\.json: tests in ava are not supported; supported are"),
    ],
)  # fmt: skip
def test_two_runners_or_one_that_is_not_supported_are_told_by_name(
    package: str, stryker: str | None, said: str, tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text(package)
    if stryker:
        (tmp_path / "stryker.config.json").write_text(stryker)
    with pytest.raises(EngineError, match=said):
        runner_of(tmp_path, "stryker.config.json" if stryker else None)


def installed(root: Path, found: Mapping[str, str]) -> None:
    for package, version in found.items():
        (root / "node_modules" / package).mkdir(parents=True)
        (root / "node_modules" / package / "package.json").write_text(f'{{"version": "{version}"}}')


def test_a_plugin_that_lacks_or_does_not_go_with_the_core_stops_the_run_before_anything_runs(
    tmp_path: Path, node_modules: Path
) -> None:
    world = make_world(tmp_path, node_modules, project=RUNNERS / "vitest")
    (world.root / "node_modules").unlink()
    installed(world.root, {CORE: "9.6.1", "vitest": "3.2.4"})
    lacking = world.doit("mutate", code=None)
    assert lacking.code == 3, lacking.both
    assert "npm install --save-dev @stryker-mutator/vitest-runner@9.6.1" in lacking.both
    installed(world.root, {"@stryker-mutator/vitest-runner": "9.5.0"})
    with pytest.raises(EngineError, match=r"vitest-runner is 9\.5\.0 and .*/core 9\.6\.1, .*vitest-runner@9\.6\.1"):
        StrykerJS(EngineConfig()).version(world.root)


# -- as the project's own tools have it


def tidied(root: Path, write: str, codes: list[str], imports: list[str]) -> list[str]:
    request = {"root": str(root), "write": write, "tests": [[code, imports] for code in codes]}
    program = Path(stryker_js.__file__).parent / "tidy.mjs"
    ran = subprocess.run(["node", program], input=json.dumps(request), capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return [str(code) for code in json.loads(ran.stdout)["codes"]]


def test_what_a_compiler_would_refuse_is_marked_as_meant(tmp_path: Path, packages: Path) -> None:
    (tmp_path / "node_modules").symlink_to(packages)
    given = {
        "package.json": "{}",
        "tsconfig.json": '{"compilerOptions": {"strict": true, "types": []}, "include": ["*.ts"]}',
        "half.ts": "export const half = (n: number): number => n / 2;\n",
        "half.test.ts": "import { half } from './half';\n\nhalf(2);\n",
    }
    for name, text in given.items():
        (tmp_path / name).write_text(text)
    imports = ["import { half } from './half';", "import { test } from './nowhere';"]
    (tmp_path / "nowhere.ts").write_text("export const test = (title: string, fn: () => void): void => {};\n")
    right = "test('halves', () => {\n  half(1);\n});"
    wrong = "test('halves texts', () => {\n  half(\n    '1',\n  );\n  half();\n});"
    codes = tidied(tmp_path, "more.test.ts", [right, wrong], imports)
    expected = "// @ts-expect-error: as code without types may call it"
    marked = f"test('halves texts', () => {{\n  half(\n    {expected}\n    '1',\n  );\n  {expected}\n  half();\n}});"
    assert codes == [right, marked]
    (tmp_path / "more.test.ts").write_text("\n".join([*imports, *codes]) + "\n")
    tsc = ["node", str(packages / "typescript/bin/tsc"), "--noEmit", "-p", "."]
    assert subprocess.run(tsc, cwd=tmp_path, capture_output=True, text=True, check=False).stdout == ""
    # A compiler that reads none of the tests beside it says nothing of this one.
    (tmp_path / "tsconfig.json").write_text(given["tsconfig.json"].replace("*.ts", "half.ts"))
    assert tidied(tmp_path, "more.test.ts", [wrong], imports) == [wrong]
