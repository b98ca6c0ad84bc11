"""What a program may do in a sandbox, and what a test can see and leave behind in the process that judges it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from pipeline import process, sandbox
from pipeline.engines import TestRun
from pipeline.engines.stryker_js import StrykerJS
from pipeline.model import EngineConfig
from pipeline.results import Outcome
from pipeline.sandbox import Sandbox

enforced = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing() or "enforced")
TRY = """\
const fs = require('fs');
function say(name, attempt) {
  try {
    attempt();
    console.log(name, 'done');
  } catch (error) {
    console.log(name, error.code ?? 'failed');
  }
}
say('inside', () => fs.writeFileSync('inside/x', ''));
say('outside', () => fs.writeFileSync('outside/x', ''));
say('emptied', () => fs.truncateSync('outside/full', 0));
say('removed', () => fs.rmSync('outside/full'));
say('renamed', () => fs.renameSync('outside/full', 'inside/full'));
say('linked', () => fs.writeFileSync('inside/link/x', ''));
say('mode', () => fs.chmodSync('outside/full', 0o777));
say('time', () => fs.utimesSync('outside/full', 1, 1));
say('signal', () => process.kill(process.ppid, 0));
say('child', () => require('child_process').execFileSync('touch', ['outside/y'], { stdio: 'ignore' }));
say('nothing', () => fs.writeFileSync('/dev/null', 'x'));
require('net').connect(9, '127.0.0.1').on('error', (e) => console.log('network', e.code));
"""


def run(place: Path, program: str, box: Sandbox | None) -> process.Finished:
    return process.run([StrykerJS(EngineConfig()).node(), "-e", program], cwd=place, sandbox=box, timeout=60)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("inside", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside/full").write_text("full")
    (tmp_path / "inside/link").symlink_to(tmp_path / "outside")
    return tmp_path


@enforced
def test_a_program_in_a_sandbox_writes_where_it_may_and_nowhere_else_and_reaches_nobody(place: Path) -> None:
    before = (place / "outside/full").stat()
    said = dict(line.split() for line in run(place, TRY, Sandbox((place / "inside",))).text.splitlines())
    assert {k for k, v in said.items() if v == "done"} == {"inside", "nothing"}
    assert {said[k] for k in ("outside", "emptied", "removed", "linked", "network")} == {"EACCES"}
    assert {said[k] for k in ("mode", "time", "signal")} == {"EPERM"}
    after = (place / "outside/full").stat()
    assert (after.st_mode, after.st_mtime, (place / "outside/full").read_text()) == (
        before.st_mode, before.st_mtime, "full",
    )  # fmt: skip
    assert [p.name for p in (place / "outside").iterdir()] == ["full"]


def test_without_a_sandbox_the_same_program_does_all_of_it(place: Path) -> None:
    said = dict(line.split() for line in run(place, TRY, None).text.splitlines())
    assert {k for k, v in said.items() if v != "done"} <= {"renamed", "mode", "time", "network"}  # it is gone by then


@enforced
def test_what_a_program_starts_in_a_sandbox_ends_with_it_and_is_told_also_where_it_wants_a_session_of_its_own(
    place: Path,
) -> None:
    spawn = "require('child_process').spawn('sleep', ['6543'], { detached: true, stdio: 'ignore' }).unref()"
    assert run(place, spawn, Sandbox(())).outlived
    assert not run(place, "require('child_process').execFileSync('true')", Sandbox(())).outlived
    for _ in range(50):
        left = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True).stdout
        if "sleep 6543" not in left:
            break
        time.sleep(0.1)
    assert "sleep 6543" not in left


@enforced
def test_memory_in_a_sandbox_has_an_end(place: Path) -> None:
    done = run(place, "const a = []; for (;;) a.push(new Array(2 ** 25).fill(0.5));", Sandbox(()))
    assert not done.timed_out and done.exit_code != 0
    # What is no object of JavaScript's counts too, though nothing of it is ever written.
    beside_the_heap = "const a = []; for (let i = 0; i < 6; i++) a.push(Buffer.alloc(2 ** 28));"
    assert run(place, beside_the_heap, Sandbox(())).exit_code != 0
    assert run(place, beside_the_heap, None).ok


# -- what a test sees and leaves

MODULE = """\
import fs from 'node:fs';
import { spawn } from 'node:child_process';
export const state = { on: true };
export const ofGlobal = (name) => globalThis[name];
export const env = (name) => process.env[name];
export const save = (path) => fs.writeFileSync(path, '');
export const makes = (text) => new Function(text)();
export const breaks = () => null.x;
export const daemon = () => spawn('sleep', ['6542'], { detached: true, stdio: 'ignore' }).unref();
"""
HEAD = """\
import assert from 'node:assert/strict';
import { breaks, daemon, env, makes, ofGlobal, save, state } from './code.js';
"""


def judge(
    place: Path, *bodies: str, mutant: str | None = None, shuffle: int | None = None, head: str = HEAD
) -> TestRun:
    tests = "".join(f"it('{i}', async () => {{ {body} }});\n" for i, body in enumerate(bodies))
    (place / "package.json").write_text('{ "type": "module" }')
    (place / "code.js").write_text(MODULE)
    (place / "x.test.js").write_text(head + tests)
    return StrykerJS(EngineConfig()).test(
        place, ["x.test.js"], mutant=mutant, timeout=60, shuffle=shuffle, sandbox=Sandbox(()), watch=True
    )


@pytest.fixture
def project(tmp_path: Path, node_modules: Path) -> Path:
    (tmp_path / "node_modules").symlink_to(node_modules)
    return tmp_path


LEFT = {
    "assert.equal = () => {};": "it leaves assert.strict.equal changed",
    "Object.prototype.x = 1;": "it leaves Object.prototype.x changed",
    "Math.random = () => 0;": "it leaves Math.random changed",
    "Date.now = () => 0;": "it leaves Date.now changed",
    "delete Array.prototype.map;": "it leaves Array.prototype.map changed",
    "ofGlobal('process').env.SOME = 'x';": "it leaves process.env.SOME changed",
    "ofGlobal('process').chdir('/');": "it leaves the working directory changed",
    "ofGlobal('process').on('exit', () => {});": "it leaves what listens to process.exit changed",
    "ofGlobal('process').once('beforeExit', () => {});": "it leaves what listens to process.beforeExit changed",
    "Promise.reject(new Error('late'));": "it leaves a promise that is rejected, and nobody looks at it",
    "setInterval(() => {}, 50);": "it leaves a Timeout that keeps the process from ending",
    "const real = Math.random; Math.random = () => 0; Math.random = real;": "",
    "setTimeout(() => {}, 30);": "it leaves a Timeout that keeps the process from ending",  # beside one that stays
    "state.on = false;": "",
}


def test_what_a_test_leaves_changed_or_open_is_told_and_the_next_are_judged_without_it(project: Path) -> None:
    run = judge(project, *LEFT, "assert.equal([1].map((n) => n)[0], 1); assert.equal({}.x, undefined);")
    assert [t.left for t in run.tests] == [*LEFT.values(), ""]
    assert run.failed == ()


def test_a_timer_that_runs_out_by_itself_is_none_left_open(project: Path) -> None:
    assert [t.left for t in judge(project, "setTimeout(() => {}, 30);").tests] == [""]


def test_a_test_makes_no_code_from_strings_and_no_other_tests_and_the_code_under_test_may(project: Path) -> None:
    run = judge(
        project, "const k = 'constructor'; save[k]('return 1')();", "(async () => {})['constructor']('return 1');",
        "await Promise.resolve('return 1').then(save['constructor']);", "const make = it; make('z', () => {});",
        "assert.equal(makes('return 7'), 7);",
    )  # fmt: skip
    assert [(t.title, t.state) for t in run.tests] == [*((str(i), "failed") for i in range(4)), ("4", "passed")]


@pytest.mark.parametrize("mutant", [None, "", "7"])
def test_a_test_cannot_tell_whether_a_mutant_is_on(project: Path, mutant: str | None) -> None:
    run = judge(
        project, "assert.equal(ofGlobal('__stryker__'), undefined);", "assert.ok(!env('__STRYKER_ACTIVE_MUTANT__'));",
        "assert.equal(ofGlobal('process').getBuiltinModule?.('fs').readFileSync('/dev/stdin', 'utf8') ?? '', '');",
        "let n = 0; Object.defineProperty(Object.prototype, 'activeMutant', { configurable: true, get() { n++; } });"
        " ofGlobal('x'); delete Object.prototype.activeMutant; assert.equal(n, 0);",
        "assert.throws(() => { Function.prototype.apply = () => {}; });",
        "const { Session } = ofGlobal('process').getBuiltinModule?.('inspector') ?? {};"
        " if (Session) assert.throws(() => new Session().connect(), /not for tests/);",
        mutant=mutant,
    )  # fmt: skip
    assert [t.state for t in run.tests] == ["passed"] * 6


def test_with_a_mutant_on_chance_is_as_without_one(project: Path) -> None:
    said = [judge(project, "assert.fail(String(Math.random()));", mutant=m).tests[0].message for m in ("", "7", None)]
    assert said[0] == said[1] != said[2]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("assert.equal(1, 2);", "assertion"),
        ("breaks();", "exception"),
        ("null.x;", "other"),
        ("await new Promise(() => {});", "other"),
        ("this.x.y;", "other"),
    ],
)
def test_how_a_test_fails_is_told_by_what_it_throws_and_where(project: Path, body: str, kind: str) -> None:
    (project / ".mocharc.json").write_text('{ "timeout": 300 }')
    (failed,) = judge(project, body).tests
    assert (failed.state, failed.kind) == ("failed", kind), failed.message


def test_a_hook_that_fails_is_no_failed_assertion_of_a_test(project: Path) -> None:
    run = judge(project, "assert.ok(1);", head=f"{HEAD}beforeEach(() => assert.equal(1, 2));\n")
    assert [t.kind for t in run.failed] == ["other"]


def test_another_shuffled_run_is_on_another_day_with_other_random_numbers(project: Path) -> None:
    now = f"assert.ok(new Date({1000 * int(time.time())}) > new Date(Date.now() - 864e5));"
    chance = "assert.ok(Math.random() > 0.001 && Math.random() < 0.999);"
    states = [{t.title: t.state for t in judge(project, now, chance, shuffle=seed).tests} for seed in range(3)]
    assert [s["0"] for s in states] == ["passed", "failed", "failed"]
    assert [s["1"] for s in states][1:] == ["failed", "failed"]


@pytest.mark.parametrize(
    ("body", "outcome", "said"),
    [
        ("ofGlobal('process').exit(0);", Outcome.CRASHED, "exit code 0"),
        ("for (let i = 0; i < 1e5; i++) console.log('x'.repeat(999));", Outcome.CRASHED, "printed more than 16 MB"),
    ],
)
def test_the_test_that_ends_its_process_is_named(project: Path, body: str, outcome: Outcome, said: str) -> None:
    run = judge(project, "assert.ok(1);", body, "assert.ok(1);")
    assert (run.outcome, run.running, said in run.detail) == (outcome, "1", True)


@enforced
def test_a_test_that_leaves_a_program_running_has_crashed(project: Path) -> None:
    run = judge(project, "daemon();")
    assert (run.outcome, run.detail) == (Outcome.CRASHED, "a program that the tests had started outlived them")


def test_where_the_system_enforces_nothing_node_keeps_tests_from_files_and_programs(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "missing", lambda: "nothing here")
    run = judge(project, "save('written');", "save(env('TMPDIR') + '/x');", "assert.ok(1);")
    assert {t.title: t.state for t in run.tests} == {"0": "failed", "1": "passed", "2": "passed"}
    assert not (project / "written").exists()
