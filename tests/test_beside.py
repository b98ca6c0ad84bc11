"""The tests of many scopes in one process: each is told what it would be told by itself, or is asked by itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from conftest import PLAN, make_world
from test_engine import ASSERT, SIGN, Project
from test_engine import project as project
from test_runners import RUNNERS
from test_runners import packages as packages

from pipeline.engines import TestRun
from pipeline.engines.stryker_js import StrykerJS, plain
from pipeline.model import EngineConfig

# one.js loads deep.js, and a helper that both tests have loads kept.json; two.js loads late.js when it is called.
IMPORTED = {
    "src/one.js": "import { deep } from './deep.js';\nexport const one = () => deep + 1;\n",
    "src/two.js": "export const two = async () => (await import('./late.js')).late;\n",
    "src/deep.js": "export const deep = 0;\n",
    "src/late.js": "export const late = 2;\n",
    "test/helper.js": "import { shared } from '../src/shared.js';\nexport const help = () => shared;\n",
    "src/shared.js": "export const shared = 1;\n",
}
REQUIRED = {
    "src/one.js": "const { deep } = require('./deep');\nexports.one = () => deep + 1;\n",
    "src/two.js": "exports.two = async () => require('./late').late;\n",
    "src/deep.js": "exports.deep = 0;\n",
    "src/late.js": "exports.late = 2;\n",
    "test/helper.js": "const { shared } = require('../src/shared');\nexports.help = () => shared;\n",
    "src/shared.js": "exports.shared = 1;\n",
}
IMPORTS = "import {{ help }} from './helper.js';\nimport {{ {name} }} from '../src/{name}.js';\n"
REQUIRES = "const {{ help }} = require('./helper');\nconst {{ {name} }} = require('../src/{name}');\n"
BODY = "  if ((await {name}()) !== {result} || help() !== 1) throw new Error('no');\n"
PLAINLY = "test('gives {result}', async () => {{\n" + BODY + "}});\n"
# runner -> sources, the head of a test file, a test
FORMS: Mapping[str, tuple[Mapping[str, str], str, str]] = {
    "mocha": (IMPORTED, IMPORTS, PLAINLY.replace("test(", "it(")),
    "mocha-cjs": (REQUIRED, REQUIRES, PLAINLY.replace("test(", "it(")),
    "node-test": (IMPORTED, "import test from 'node:test';\n" + IMPORTS, PLAINLY),
    "tape": (
        REQUIRED, "const test = require('tape');\n" + REQUIRES,
        "test('gives {result}', async (t) => {{\n" + BODY + "  t.end();\n}});\n",
    ),
    "vitest": (IMPORTED, "import {{ test }} from 'vitest';\n" + IMPORTS, PLAINLY),
}  # fmt: skip
TESTS = {"one": ("test/one.test.js",), "two": ("test/two.test.js",)}


@pytest.mark.parametrize("runner", FORMS)
def test_beside_others_a_scope_is_told_what_it_loads_and_nothing_of_theirs(
    runner: str, tmp_path: Path, packages: Path
) -> None:
    sources, head, test = FORMS[runner]
    project = Project(tmp_path / "project")
    if runner == "mocha":
        project.write({"package.json": '{ "type": "module", "scripts": { "test": "mocha" } }'})
    else:
        shutil.copytree(RUNNERS / runner, project.root)
    (project.root / "node_modules").symlink_to(packages)
    names = {"one": 1, "two": 2}
    project.write(
        {**sources, **{f"test/{n}.test.js": (head + test).format(name=n, result=r) for n, r in names.items()}}
    )
    engine, asked = StrykerJS(EngineConfig()), list[Sequence[str]]()

    def run(files: Sequence[str]) -> TestRun:
        asked.append(files)
        return engine.test(project.root, files, timeout=120, record=True)

    together = plain.together(run, TESTS)
    assert len(asked) == 1 and together.keys() == TESTS.keys()
    common = {"src/shared.js", "test/helper.js"}
    assert {*together["one"].inputs} == {*common, "test/one.test.js", "src/one.js", "src/deep.js"}
    assert {*together["two"].inputs} == {*common, "test/two.test.js", "src/two.js", "src/late.js"}
    for name, files in TESTS.items():
        by_itself, mine = run(files), together[name]
        assert (mine.outcome, mine.files, mine.inputs) == (by_itself.outcome, by_itself.files, by_itself.inputs)
        assert [(t.file, t.title, t.state) for t in mine.tests] == [(t.file, t.title, t.state) for t in by_itself.tests]


SPAWNS = (
    "import { spawnSync } from 'node:child_process';\nit('is run', () => {\n"
    "  spawnSync(process.execPath, ['src/sign.js'], { stdio: 'ignore' });\n});\n"
)
REGISTERS = (
    "import module from 'node:module';\nmodule.register('data:text/javascript,export const a = 1');\n"
    "it('is there', () => {});\n"
)
TWICE = "it('is new', async () => {\n  await import('../src/sign.js?a');\n  await import('../src/sign.js?b');\n});\n"


@pytest.mark.parametrize(
    "test", [SPAWNS, REGISTERS, TWICE], ids=["another-process", "loaders-of-its-own", "a-file-twice"]
)
def test_where_it_cannot_be_told_which_of_them_loads_what_each_is_asked_by_itself(project: Project, test: str) -> None:
    project.write({"test/odd.test.js": test})
    engine = StrykerJS(EngineConfig())
    run = engine.test(project.root, ["test/odd.test.js", "test/sign.test.js"], timeout=60, record=True)
    assert run.green and run.loads is None
    assert plain.together(lambda files: run, {"odd": ("test/odd.test.js",), "sign": ("test/sign.test.js",)}) == {}


def test_what_breaks_the_process_of_many_is_found_by_halves(project: Project) -> None:
    ends = {f"test/{n}.test.js": f"{ASSERT}it('{n}', () => {{}});\n" for n in "abcdefgh"}
    project.write({**ends, "test/d.test.js": "it('d', () => {\n"})
    engine, asked = StrykerJS(EngineConfig()), list[int]()

    def run(files: Sequence[str]) -> TestRun:
        asked.append(len(files))
        return engine.test(project.root, files, timeout=60, record=True)

    found = plain.together(run, {n: (f"test/{n}.test.js",) for n in "abcdefgh"})
    assert sorted(found) == list("abefgh")  # d breaks it, and c alone is no company
    assert asked == [8, 4, 2, 2, 4]


def test_tests_that_pass_beside_others_only_are_told_as_tests_that_fail(tmp_path: Path, node_modules: Path) -> None:
    project = Project(tmp_path / "project")
    project.write(
        {
            "package.json": '{ "type": "module" }',
            **SIGN,
            "src/late.js": "export function late(n) {\n  return n + 1;\n}\n",
            "test/late.test.js": f"{ASSERT}import {{ late }} from '../src/late.js';\nit('is late', () => {{\n"
            "  assert.equal(globalThis.early, true);\n  assert.equal(late(1), 2);\n});\n",
            "test/a.test.js": "globalThis.early = true;\nit('is early', () => {});\n",
            "src/a.js": "export function a(n) {\n  return n + 1;\n}\n",
        }
    )
    world = make_world(tmp_path, node_modules, f"{PLAN}engine: {{concurrency: 1}}\n", project.root)
    done = world.doit("-n", "2", "baseline", code=1)
    ended = {
        name: json.loads((world.root / f"cache/scopes/src%2F{name}.js/baseline.json").read_text())
        for name in ("a", "late", "sign")
    }
    assert [ended[name]["outcome"] for name in ended] == ["ok", "tests-fail-first", "ok"]
    assert "by themselves they do not" in ended["late"]["detail"] and "is late" in done.out
    assert {m["status"] for m in ended["a"]["mutants"]} == {"NoCoverage"}
