"""StrykerJS for real: what a scope is told does not depend on who shares its process, and every bad end has a name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from conftest import PLAN, make_world

from pipeline.engines import EngineError, Measured, Switch, layers
from pipeline.engines.stryker_js import StrykerJS
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import Mutant, Status, identify, mutate, raw_mutants
from pipeline.results import Outcome

ASSERT = "import assert from 'node:assert/strict';\n"
SIGN = {
    "src/sign.js": "export function sign(n) {\n  return n < 0 ? 'minus' : 'plus';\n}\n",
    "test/sign.test.js": f"{ASSERT}import {{ sign }} from '../src/sign.js';\n"
    "it('tells the sign', () => {\n  assert.equal(sign(-1), 'minus');\n  assert.equal(sign(1), 'plus');\n});\n",
}


@attrs.frozen
class Project:
    root: Path

    def write(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def measure(self, *names: str, config: EngineConfig | None = None) -> Mapping[str, Measured]:
        """Measure the scopes of src/<name>.js, tested by test/<name>.test.js, in one process."""
        scopes = [Scope(n, (f"src/{n}.js",), (f"test/{n}.test.js",), f"test/{n}.mutants.test.js") for n in names]
        return StrykerJS(config or EngineConfig()).measure(self.root, scopes, workers=2, log=self.root.parent / "log")

    def program(self, text: str) -> Path:
        path = self.root.parent / "engine"
        path.write_text(text)
        path.chmod(0o755)
        return path


@pytest.fixture
def project(tmp_path: Path, node_modules: Path) -> Project:
    made = Project(tmp_path / "project")
    made.write({"package.json": '{ "type": "module" }', **SIGN})
    (made.root / "node_modules").symlink_to(node_modules)
    return made


def statuses(measured: Measured) -> dict[str, Status]:
    return {m.key: m.status for m in measured.mutants}


def at(measured: Measured, replacement: str, original: str = "") -> Mutant:
    (found,) = (m for m in measured.mutants if m.replacement == replacement and original in m.original)
    return found


# -- one process, many scopes

EACH_OTHER = {
    "src/odd.js": "import { isEven } from './even.js';\n\nexport function isOdd(n) {\n"
    "  return n === 0 ? false : isEven(n - 1);\n}\n",
    "src/even.js": "import { isOdd } from './odd.js';\n\nexport function isEven(n) {\n"
    "  return n === 0 ? true : isOdd(n - 1);\n}\n\nexport function half(n) {\n  return n / 2;\n}\n",
}


def each_others_tests(title_of_even: str) -> dict[str, str]:
    return {
        "test/odd.test.js": f"{ASSERT}import {{ isOdd }} from '../src/odd.js';\n"
        "it('is odd', () => {\n  assert.equal(isOdd(3), true);\n});\n",
        "test/even.test.js": f"{ASSERT}import {{ isEven }} from '../src/even.js';\n"
        f"it('{title_of_even}', () => {{\n  assert.equal(isEven(0), true);\n}});\n",
    }


@pytest.mark.parametrize("title", ["is even", "is odd"], ids=["titles-differ", "one-title-in-two-files"])
def test_scopes_that_load_each_other_get_from_one_process_what_each_would_get_alone(
    project: Project, title: str
) -> None:
    project.write({**EACH_OTHER, **each_others_tests(title)})
    together = project.measure("odd", "even")
    for name in ("odd", "even"):
        alone = project.measure(name)[name]
        assert alone.outcome is together[name].outcome is Outcome.OK
        assert statuses(together[name]) == statuses(alone)
        assert (
            together[name].inputs
            == alone.inputs
            == tuple(sorted(["src/even.js", "src/odd.js", f"test/{name}.test.js"]))
        )
        assert together[name].reached == alone.reached
    assert at(together["even"], "n * 2").status is Status.NO_COVERAGE  # odd's tests do not reach it either
    assert Status.SURVIVED in statuses(together["even"]).values()  # and what they kill there counts for odd alone


def test_a_scope_that_breaks_the_process_costs_the_others_nothing(project: Project) -> None:
    project.write(
        {
            "src/shown.js": "export function shown(n) {\n  return n + 1;\n}\n",
            "test/shown.test.js": f"{ASSERT}import {{ shown }} from '../src/shown.js';\n"
            "it('is what it is', () => {\n  assert.match(String(shown), /return n \\+ 1;/);\n});\n",
        }
    )
    measured = project.measure("sign", "shown")
    assert measured["sign"].outcome is Outcome.OK and len(measured["sign"].mutants) > 5
    assert measured["shown"].outcome is Outcome.TESTS_FAIL_FIRST
    assert "is what it is" in measured["shown"].detail


def test_two_scopes_that_mutate_one_file_are_measured_apart(project: Project) -> None:
    project.write(
        {"test/more.test.js": f"{ASSERT}import {{ sign }} from '../src/sign.js';\nit('ends', () => sign(0));\n"}
    )
    scopes = [Scope(n, ("src/sign.js",), (f"test/{n}.test.js",), f"test/{n}.m.test.js") for n in ("sign", "more")]
    measured = StrykerJS(EngineConfig()).measure(project.root, scopes, workers=2, log=project.root.parent / "log")
    assert at(measured["sign"], "false").status is Status.KILLED
    assert at(measured["more"], "false").status is Status.SURVIVED


def test_a_program_that_is_mutated_may_be_started_by_its_tests(project: Project) -> None:
    project.write(
        {
            "src/says.js": "#!/usr/bin/env node\nconsole.log(process.argv.length > 2 ? 'some' : 'none');\n",
            "test/says.test.js": f"{ASSERT}import {{ execFileSync }} from 'node:child_process';\n"
            "it('says none', () => {\n  assert.equal(String(execFileSync('src/says.js')), 'none\\n');\n});\n",
        }
    )
    (project.root / "src/says.js").chmod(0o755)
    measured = project.measure("says")["says"]
    assert measured.outcome is Outcome.OK, measured.detail


# -- mutants


def test_a_mutant_of_what_runs_at_load_is_static_and_an_endless_loop_is_no_kill(project: Project) -> None:
    project.write(
        {
            "src/list.js": "const most = 3 + 1;\n\nexport function upTo(n) {\n  const found = [];\n"
            "  for (let i = 0; i < Math.min(n, most); i++) {\n    found.push(i);\n  }\n  return found;\n}\n",
            "test/list.test.js": f"{ASSERT}import {{ upTo }} from '../src/list.js';\n"
            "it('counts', () => {\n  assert.deepEqual(upTo(9), [0, 1, 2, 3]);\n});\n",
        }
    )
    measured = project.measure("list")["list"]
    static = at(measured, "3 - 1")
    assert static.static and static.status is Status.KILLED
    assert measured.reached[static.key] == ("test/list.test.js",)
    endless = at(measured, "i--")
    assert not endless.static and endless.status is Status.TIMEOUT
    assert measured.switch is not None
    measured.switch.lay(project.root)
    began = time.monotonic()
    run = StrykerJS(EngineConfig()).test(
        project.root, ["test/list.test.js"], mutant=measured.switch.ids[endless.key], timeout=60
    )
    assert run.outcome is Outcome.TIME_LIMIT
    assert time.monotonic() - began < 30


AT_LOAD = """\
export const SIZES = [1, 2];
export const LABEL = 'shirt';
export const FIRST = [3].map((n) => n)[0].toFixed();
SIZES.length === 2 || process.exit(3);

function half(n) {
  return n / 2;
}

export const MIDDLE = half(SIZES[1]);
await (MIDDLE ? 1 : new Promise(() => {}));

export function more(n) {
  return MIDDLE + half(n);
}
"""
AT_LOAD_TEST = f"""{ASSERT}import {{ SIZES, MIDDLE, more }} from '../src/load.js';
it('adds', () => {{
  assert.equal(more(4), 3);
}});
it('begins with one', () => {{
  assert.ok(!(SIZES[0] > 1));
}});
it.skip('is not run', () => {{
  assert.equal(MIDDLE, 7);
}});
"""


def test_what_acts_at_load_has_the_status_that_the_engine_alone_gives_it(project: Project) -> None:
    config = {"testRunner": "mocha", "reporters": ["json"], "mutate": ["src/load.js"]}
    files = {"src/load.js": AT_LOAD, "test/load.test.js": AT_LOAD_TEST, "stryker.config.json": json.dumps(config)}
    project.write(files)
    (project.root / "test/sign.test.js").unlink()
    ours = project.measure("load")["load"]
    engine = project.root / "node_modules/@stryker-mutator/core/bin/stryker.js"
    subprocess.run(["node", engine, "run", "--concurrency", "2"], cwd=project.root, check=True, capture_output=True)
    report = json.loads((project.root / "reports/mutation/mutation.json").read_text())
    theirs = identify(raw_mutants(report["files"]["src/load.js"], "src/load.js"), "src/load.js", AT_LOAD)
    judged = {(m.key, m.status, m.static) for m in ours.mutants if m.key not in ours.late}
    assert judged == {(m.key, m.status, m.static) for m in theirs if m.key not in ours.late}
    seen = {m.status for m in theirs if m.static}
    assert seen == {Status.KILLED, Status.SURVIVED, Status.TIMEOUT, Status.RUNTIME_ERROR}
    # Those are spared the audit, but for what a busy machine gave no time.
    assert {*ours.alone, *ours.late} == {m.key for m in ours.mutants if m.static}


def test_what_acts_at_load_and_had_no_time_is_met_again(tmp_path: Path, node_modules: Path) -> None:
    files = Project(tmp_path / "project")
    test = "it('has a limit', () => {\n  assert.equal(LIMIT, 4);\n});\n"
    files.write(
        {
            "package.json": '{ "type": "module" }',
            "stryker.config.json": '{ "testRunner": "mocha", "timeoutMS": 1, "timeoutFactor": 0 }',
            "src/limit.js": "export const LIMIT = 3 + 1;\nexport const UNIT = 'kg';\n",
            "test/limit.test.js": f"{ASSERT}import {{ LIMIT }} from '../src/limit.js';\n{test}",
        }
    )
    world = make_world(tmp_path, node_modules, PLAN, files.root)
    done = world.doit("-n", "2", "baseline")
    baseline = json.loads((world.root / "cache/scopes/src%2Flimit.js/baseline.json").read_text())
    said = {m["replacement"]: (m["status"], m["audited"]) for m in baseline["mutants"]}
    assert said == {"3 - 1": ("Killed", None), '""': ("Survived", None)}, done.out


def test_mochas_options_in_the_engines_configuration_are_the_engines_to_read(project: Project) -> None:
    config = {"testRunner": "mocha", "mochaOptions": {"require": ["./setup.mjs"]}}
    setup = "export const mochaHooks = { beforeAll() { globalThis.ready = true; } };\n"
    test = "it('begins', () => {\n  assert.ok(!globalThis.ready || MOST === 4);\n});\n"
    project.write(
        {
            "setup.mjs": setup,
            "src/most.js": "export const MOST = 3 + 1;\n",
            "test/most.test.js": f"{ASSERT}import {{ MOST }} from '../src/most.js';\n{test}",
            "stryker.config.json": json.dumps(config),
        }
    )
    measured = project.measure("most")["most"]
    assert [(m.status, m.static) for m in measured.mutants] == [(Status.KILLED, True)] and not measured.alone


def test_the_identity_of_mutants_is_unique_and_outlives_edits_elsewhere_in_the_file(project: Project) -> None:
    before = (
        "export function pair(a) {\n  return [a + 1, a + 1];\n}\n\n"
        "export function other(a) {\n  if (a) {\n    return a + 1;\n  }\n  return a - 1;\n}\n"
    )
    tests = (
        f"{ASSERT}import {{ pair }} from '../src/pair.js';\n"
        "it('pairs', () => {\n  assert.deepEqual(pair(1), [2, 2]);\n});\n"
    )
    project.write({"src/pair.js": before, "test/pair.test.js": tests})
    first = project.measure("pair")["pair"].mutants
    project.write(
        {"src/pair.js": f"// One\n\nexport const ONE = 1;\n\n{before.replace('return a - 1', 'return a - ONE')}"}
    )
    second = project.measure("pair")["pair"].mutants
    assert len({m.key for m in first}) == len(first) and len({m.key for m in second}) == len(second)
    equal = [m for m in first if (m.original, m.replacement, m.line) == ("a + 1", "a - 1", 2)]
    assert len(equal) == 2
    kept = {m.key for m in first if m.end_line < 9}
    assert kept <= {m.key for m in second}
    assert {m.key: m.around for m in first if m.line < 4}.items() <= {m.key: m.around for m in second}.items()


def test_a_false_survivor_is_audited_away(tmp_path: Path, node_modules: Path) -> None:
    files = Project(tmp_path / "project")
    files.write(
        {
            "package.json": '{ "type": "module" }',
            "src/memo.js": "const known = new Map();\n\nexport function double(n) {\n  if (!known.has(n)) {\n"
            "    known.set(n, n * 2);\n  }\n  return known.get(n);\n}\n",
            "test/memo.test.js": f"{ASSERT}import {{ double }} from '../src/memo.js';\n"
            "it('doubles', () => {\n  assert.equal(double(3), 6);\n});\n",
        }
    )
    world = make_world(tmp_path, node_modules, f"{PLAN}engine: {{concurrency: 1}}\n", files.root)
    done = world.doit("-n", "2", "baseline")
    baseline = json.loads((world.root / "cache/scopes/src%2Fmemo.js/baseline.json").read_text())
    hidden = [m for m in baseline["mutants"] if m["audited"] == "Killed"]
    assert "n / 2" in {m["replacement"] for m in hidden}
    assert f"{len(hidden)} false survivors" in done.out
    left = json.loads((world.root / "cache/scopes/src%2Fmemo.js/survivors.json").read_text())["survivors"]
    assert not {m["key"] for m in hidden} & {s["key"] for s in left}


def test_an_audit_lays_over_one_tree_only_what_cannot_switch_on_two_mutants() -> None:
    def measured(file: str, *ids: str, whole: bool = True) -> Measured:
        return Measured(Outcome.OK, switch=Switch({file: b""}, {f"{file} {id_}": id_ for id_ in ids}, whole))

    one_run = {"a": measured("a.js", "0", "1"), "b": measured("b.js", "2")}
    assert layers(one_run) == [["a", "b"]]
    assert layers({**one_run, "other run": measured("c.js", "1", "2", "3")}) == [["a", "b"], ["other run"]]
    assert layers({**one_run, "same file": measured("a.js", "7")}) == [["a", "b"], ["same file"]]
    with_others = {"c": measured("c.dll", "5", whole=False), "d": measured("d.dll", "6", whole=False)}
    assert sorted(layers({**with_others, **one_run})) == [["a", "b"], ["c"], ["d"]]


def test_inputs_are_recorded_however_deep_and_without_packages(project: Project) -> None:
    packages = (project.root / "node_modules").resolve()
    (project.root / "node_modules").unlink()
    (project.root / "node_modules").mkdir()
    (project.root / "node_modules" / "mocha").symlink_to(packages / "mocha")
    project.write(
        {
            "node_modules/tiny/package.json": '{ "name": "tiny", "main": "index.js" }',
            "node_modules/tiny/index.js": "module.exports = 1;\n",
            "src/a.js": "export { b } from './lib/b with space.js';\n",
            "src/lib/b with space.js": "import c from './c.cjs';\nexport const b = () => c;\n",
            "src/lib/c.cjs": "module.exports = require('./d.cjs');\n",
            "src/lib/d.cjs": "module.exports = 7;\n",
            "src/unused.js": "export const no = 0;\n",
            "test/a.test.js": f"{ASSERT}import 'tiny';\nimport {{ b }} from '../src/a.js';\n"
            "it('is seven', () => assert.equal(b(), 7));\n",
        }
    )
    run = StrykerJS(EngineConfig()).test(project.root, ["test/a.test.js"], timeout=60, record=True)
    assert run.green
    assert run.inputs == ("src/a.js", "src/lib/b with space.js", "src/lib/c.cjs", "src/lib/d.cjs", "test/a.test.js")


def test_one_test_of_a_file_is_run_alone_with_variables_of_its_own(project: Project) -> None:
    titles = ["a (b)", "a", "a [b]+"]
    tests = "".join(f"it('{t}', () => assert.equal(process.env.TZ, 'Asia/{i}'));\n" for i, t in enumerate(titles))
    project.write({"test/a.test.js": f"{ASSERT}{tests}"})
    for i, title in enumerate(titles):
        env = {"TZ": f"Asia/{i}"}
        run = StrykerJS(EngineConfig()).test(project.root, ["test/a.test.js"], timeout=60, only=[title], env=env)
        assert run.green and [t.title for t in run.tests] == [title]
    assert StrykerJS(EngineConfig()).test(project.root, None, timeout=60, only=["b"]).outcome is Outcome.NO_TESTS


def test_a_place_after_an_emoji_is_where_the_engine_says(project: Project) -> None:
    project.write(
        {
            "src/sign.js": "export function sign(n) {\n  return '\U0001f642' + (n < 0 ? 'minus' : 'plus');\n}\n",
            "test/sign.test.js": SIGN["test/sign.test.js"]
            .replace("'minus'", "'\U0001f642minus'")
            .replace("'plus'", "'\U0001f642plus'"),
        }
    )
    mutants = project.measure("sign")["sign"].mutants
    assert {"n < 0", "'minus'", "'plus'", "'\U0001f642'"} <= {m.original for m in mutants}
    source = (project.root / "src/sign.js").read_text()
    (less,) = (m for m in mutants if m.replacement == "n <= 0")
    assert mutate(source, less) == source.replace("n < 0", "n <= 0")


# -- bad ends

ENDS: dict[str, tuple[dict[str, str], Outcome, str]] = {
    "a test fails": (
        {"test/sign.test.js": SIGN["test/sign.test.js"].replace("'plus'", "'more'")},
        Outcome.TESTS_FAIL_FIRST, "test/sign.test.js: tells the sign: ",
    ),
    "a test that does not load": ({"test/sign.test.js": "import '../src/none.js';\n"}, Outcome.BUILD_ERROR, "none.js"),
    "no test": ({"test/sign.test.js": "// nothing yet\n"}, Outcome.NO_TESTS, "test/sign.test.js"),
    "all tests skipped": ({"test/sign.test.js": "it.skip('later', () => {});\n"}, Outcome.NO_TESTS, "sign.test.js"),
    "no mutants": (
        {
            "src/sign.js": "export { isNaN as sign } from './other.js';\n",
            "src/other.js": "const { isNaN } = Number;\nexport { isNaN };\n",
            "test/sign.test.js": "import { sign } from '../src/sign.js';\nit('is there', () => sign(1));\n",
        },
        Outcome.NO_MUTANTS, "src/sign.js",
    ),
    "a wrong setting": ({"stryker.config.json": '{ "timeoutMS": "long" }'}, Outcome.BAD_CONFIG, "timeoutMS"),
    "settings that are no JSON": ({"stryker.config.json": '{ "timeoutMS": '}, Outcome.BAD_CONFIG, "config.json"),
    "a plugin that is not there": ({"stryker.config.json": '{ "checkers": ["none"] }'}, Outcome.BAD_CONFIG, "none"),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
def test_a_scope_that_cannot_be_measured_says_why(project: Project, case: str) -> None:
    files, outcome, said = ENDS[case]
    project.write(files)
    measured = project.measure("sign")["sign"]
    assert (measured.outcome, said in measured.detail) == (outcome, True), measured.detail
    assert measured.mutants == ()


@pytest.mark.parametrize(
    ("script", "outcome", "said"),
    [
        ("echo 'out of luck' >&2; exit 1", Outcome.CRASHED, "out of luck"),
        ("echo 'all good'; exit 0", Outcome.NO_REPORT, "all good"),
        ("echo 'one moment'; sleep 600", Outcome.TIME_LIMIT, "one moment"),
        ("kill -SEGV $$", Outcome.SIGNAL, "signal 11"),
        ("echo 'FATAL ERROR: JavaScript heap out of memory' >&2; exit 134", Outcome.MEMORY, "heap out of memory"),
    ],
)
def test_an_engine_without_a_report_is_told_by_how_it_ended(
    project: Project, script: str, outcome: Outcome, said: str
) -> None:
    program = project.program(f"#!/bin/sh\n{script}\n")
    measured = project.measure("sign", config=EngineConfig(command=(str(program),), time_limit=2.0))["sign"]
    assert (measured.outcome, said in measured.detail) == (outcome, True), measured.detail
    assert str(project.root.parent / "log") in measured.detail


def test_engine_command_names_another_program(project: Project) -> None:
    stryker = project.root / "node_modules/@stryker-mutator/core/bin/stryker.js"
    node = StrykerJS(EngineConfig()).node()
    program = project.program(f'#!/bin/sh\necho "$@" > ../asked\nshift\nexec {node} {stryker} "$@"\n')
    config = EngineConfig(command=(str(program), "--ours"))
    assert project.measure("sign", config=config)["sign"].outcome is Outcome.OK
    assert (project.root.parent / "asked").read_text().startswith("--ours run ")
    assert StrykerJS(config).version(project.root) != StrykerJS(EngineConfig()).version(project.root)


# -- what is installed


def fake_node(folder: Path, says: str) -> str:
    folder.mkdir()
    (folder / "node").write_text(f"#!/bin/sh\n{says}\n")
    (folder / "node").chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("says", ["echo v18.20.1", "echo not installed, says the shim", "exit 3"])
def test_a_node_that_is_no_good_is_passed_over_for_the_next_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    real = StrykerJS(EngineConfig()).node()
    monkeypatch.setenv("PATH", f"{fake_node(tmp_path / 'old', says)}{os.pathsep}{os.environ['PATH']}")
    assert StrykerJS(EngineConfig()).node() == real


def test_without_a_node_that_is_good_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", fake_node(tmp_path / "old", "echo v18.20.1"))
    with pytest.raises(EngineError, match=r"v18\.20\.1 at .*old/node is too old: StrykerJS needs 20 or newer; install"):
        StrykerJS(EngineConfig()).node()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"Node\.js not found: install it"):
        StrykerJS(EngineConfig()).node()


def test_packages_that_are_not_installed_are_named_with_the_remedy(project: Project) -> None:
    (project.root / "node_modules").unlink()
    with pytest.raises(EngineError, match=r"@stryker-mutator/core is not installed in .*: run `npm install --save-dev"):
        project.measure("sign")


def test_packages_may_be_installed_above_the_project(project: Project) -> None:
    (project.root / "node_modules").rename(project.root.parent / "node_modules")
    assert project.measure("sign")["sign"].outcome is Outcome.OK


# -- names, and reports that cannot be true


@pytest.mark.parametrize("name", ["[id]", "cl [amp] é", "a(b)+c{d}", "at@home!"])
def test_a_name_full_of_pattern_characters_is_that_one_file(project: Project, name: str) -> None:
    project.write(
        {
            f"src/{name}.js": "export function twice(n) {\n  return n * 2;\n}\n",
            f"test/{name}.test.js": f"{ASSERT}import {{ twice }} from '../src/{name}.js';\n"
            "it('doubles', () => {\n  assert.equal(twice(2), 4);\n});\n",
            **EACH_OTHER,
            **each_others_tests("is even"),
        }
    )
    measured = project.measure(name, "even")
    assert {m.outcome for m in measured.values()} == {Outcome.OK}
    assert {m.file for m in measured[name].mutants} == {f"src/{name}.js"}


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ("r.files = {};", "it has no mutant of src/even.js, which holds some"),
        ("for (const f of Object.values(r.files)) f.mutants = [];", "it has no mutant of src/even.js"),
        (
            "for (const f of Object.values(r.files)) for (const m of f.mutants) m.status = 'Timeout';",
            "mutants timed out: nothing was judged",
        ),
    ],
)
def test_a_report_that_cannot_be_true_is_hollow(project: Project, tmp_path: Path, change: str, detail: str) -> None:
    project.write({**EACH_OTHER, **each_others_tests("is even")})
    wrapper = tmp_path / "engine.mjs"
    wrapper.write_text(
        "import fs from 'node:fs';\nimport { spawnSync } from 'node:child_process';\n"
        "const stryker = 'node_modules/@stryker-mutator/core/bin/stryker.js';\n"
        "spawnSync(process.execPath, [stryker, ...process.argv.slice(2)]);\n"
        "const { overrides } = JSON.parse(fs.readFileSync(process.env.DOIT_MUTATE_SCOPES));\n"
        "const file = overrides.jsonReporter.fileName;\nconst r = JSON.parse(fs.readFileSync(file));\n"
        f"{change}\nfs.writeFileSync(file, JSON.stringify(r));\n"
    )
    found = project.measure("even", config=EngineConfig(command=("node", str(wrapper))))["even"]
    assert found.outcome is Outcome.HOLLOW_REPORT
    assert detail in found.detail
