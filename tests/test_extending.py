"""A report out of an earlier one, where tests came behind all others: by the engine's measure, mutant by mutant."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from conftest import World, copy_world, make_world
from test_engine import ASSERT

from pipeline import account
from pipeline.engines import EngineError, Measured
from pipeline.engines.growth import added
from pipeline.engines.stryker_js import StrykerJS
from pipeline.measuring import Measurement, Measuring
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import Status
from pipeline.sameness import Sameness
from pipeline.store import ActionCache
from pipeline.worktree import Worktree, Worktrees, find_repository

# -- what has been added, told from two texts

HEAD = "import assert from 'node:assert/strict';\nimport { f } from '../src/f.js';\n"
ONE = "it('one', () => {\n  assert.equal(f(1), 1);\n});\n"
TWO = "it('two', async () => assert.equal(await f(2), 2));\n"
TAPE = "const test = require('tape');\n"
FLAT = HEAD + ONE
BLOCK = f"{HEAD}\ndescribe('f', () => {{\n{ONE}\n}});\n"


def inside(text: str, more: str) -> str:
    """The text with more at the end of its last block."""
    at = text.rindex("});\n")
    return text[:at] + more + text[at:]


@pytest.mark.parametrize(
    ("before", "after", "titles"),
    [
        (FLAT, f"{FLAT}\n{TWO}", ["two"]),
        (FLAT.rstrip("\n"), f"{FLAT}{TWO}", ["two"]),
        (FLAT, f"{FLAT}// more\n{TWO}\ntest(\"it's\", function (done) {{ done(); }}, 5_000)\n", ["two", "it's"]),
        (FLAT, f"{FLAT}describe('a', function () {{{TWO}describe('b', () => {{{ONE}}});\n}});\n", ["a two", "a b one"]),
        (BLOCK, inside(BLOCK, f"\n{TWO}"), ["f two"]),
        (f"describe(`x`, () => {{\n{BLOCK}}});\n", f"describe(`x`, () => {{\n{inside(BLOCK, TWO)}}});\n", ["x f two"]),
        (inside(BLOCK, "\n\n"), inside(BLOCK, f"{TWO}\n{TWO.replace('two', 'three')}\n"), ["f two", "f three"]),
        (FLAT.replace("\n", "\r\n"), f"{FLAT}{TWO}".replace("\n", "\r\n"), ["two"]),
        (f"import {{ it }} from 'vitest';\n{FLAT}", f"import {{ it }} from 'vitest';\n{FLAT}{TWO}", ["two"]),
        (f"{TAPE}{FLAT}", f"{TAPE}{FLAT}test('t', t => t.end());\n", ["t"]),
    ],
)  # fmt: skip
def test_whole_tests_at_the_end_of_a_file_or_of_its_last_block_are_named(
    before: str, after: str, titles: Sequence[str]
) -> None:
    assert added(before, after) == tuple(titles)


@pytest.mark.parametrize(
    "after",
    [
        FLAT,
        FLAT + "\n// nothing more\n",
        HEAD + TWO + ONE,  # in the middle
        FLAT.replace("f(1), 1", "f(1), 1.0") + TWO,  # what was there is another
        HEAD + TWO,
        HEAD.replace("{ f }", "{ f, g }") + ONE + TWO,
        FLAT + "const all = [1, 2];\n" + TWO,
        FLAT + "let f;\n",
        FLAT + "beforeEach(() => {});\n" + TWO,
        FLAT + TWO.replace("assert.equal", "after(() => {}); assert.equal"),
        FLAT + f"describe('b', () => {{ const n = f(1); {TWO} }});\n",
        FLAT + f"describe('b', () => {{ before(() => f(1)); {TWO} }});\n",
        FLAT + f"describe('b', () => {{ {TWO} }}).timeout(9);\n",
        FLAT + f"if (f(1)) {TWO}",
        FLAT + f"for (const n of [1, 2]) {{ {TWO} }}\n",
        FLAT + f"[1, 2].forEach(() => {{ {TWO} }});\n",
        FLAT + TWO.replace("it(", "it.only("),
        FLAT + TWO.replace("'two'", "`two ${f(2)}`"),
        FLAT + "it('two', made(2));\n",
        FLAT + "it('two', () => {}, f(2));\n",
        FLAT + "it('two', function () {}.bind(f(2)));\n",
        FLAT + "it('two', function () {}());\n",
        FLAT + "it('two', { timeout: f(2) }, () => {});\n",
        FLAT + TWO.rstrip(";\n") + "\n(f(2));\n",
        FLAT + TWO.rstrip(";\n") + ", f(2);\n",
        FLAT + "it('two', () => { jest.mock('../src/f.js'); });\n",
        FLAT + "it('two', () => { vi.hoisted(() => f(2)); });\n",
        FLAT + "it('two', () => { expect(f(2)).toMatchSnapshot(); });\n",
        FLAT + "// @vitest-environment jsdom\n" + TWO,
        FLAT + "it('two', () => { assert.ok(import.meta.url); });\n",
        FLAT.rstrip("\n") + " " + TWO,  # on a line of what was there
        FLAT + "x" + TWO,
    ],
)  # fmt: skip
def test_whatever_else_differs_is_another_file(after: str) -> None:
    assert added(FLAT, after) is None


@pytest.mark.parametrize(
    ("before", "more"),
    [
        (f"{HEAD}if (f(1)) describe('f', () => {{\n{ONE}}});\n", TWO),
        (f"{HEAD}if (f(1))\n  describe('f', () => {{\n{ONE}}});\n", TWO),
        (f"{HEAD}[1, 2].forEach(() => {{\n{ONE}}});\n", TWO),
        (f"{HEAD}describe.each([1, 2])('f', () => {{\n{ONE}}});\n", TWO),
        (f"{HEAD}describe('f', (name = f(1)) => {{\n{ONE}}});\n", TWO),
        (f"{HEAD}describe(`${{f(1)}}`, () => {{\n{ONE}}});\n", TWO),
        (f"{HEAD}it('one', () => {{\n  f(1);\n}});\n", TWO),
    ],
)
def test_tests_in_a_block_that_may_run_otherwise_are_not_told(before: str, more: str) -> None:
    assert added(before, inside(before, more)) is None


@pytest.mark.parametrize(
    "named",
    [
        "function it(title, body) { body(); }\n",
        "const it = global.it;\n",
        "import { it } from './made.js';\n",
        "import { test as it } from './made.js';\n",
        "export default (it) => it('x', () => {});\n",
    ],
)
def test_where_a_name_is_not_a_runner_s_it_says_nothing(named: str) -> None:
    assert added(f"{named}{FLAT}", f"{named}{FLAT}{TWO}") is None


# -- by the engine's measure

SOURCE = """\
const UNIT = 'kg';

export function size(n) {
  return n > 10 ? 'large' : n > 5 ? 'medium' : 'small';
}

export function shown(n) {
  return `${n} ${UNIT}`;
}

export function halves(n) {
  let steps = 0;
  while (n > 1) {
    n = Math.floor(n / 2);
    steps += 1;
  }
  return steps;
}
"""
TESTS = f"""\
{ASSERT}import {{ halves, shown, size }} from '../src/box.js';

describe('box', () => {{
  it('is large', () => {{
    assert.equal(size(20), 'large');
  }});
}});
"""
KILLS = (
    "  it('is medium', () => {\n    assert.equal(size(6), 'medium');\n    assert.equal(size(10).length, 6);\n  });\n"
)
SEES = "  it('is shown', () => {\n    shown(1);\n    size(1);\n  });\n  it('is nothing', () => {});\n"
THROWS = "  it('is short', () => {\n    assert.ok(size(0).at(0).length);\n    JSON.parse(size(0) && '1');\n  });\n"
WAITS = "  it('waits', (done) => {\n    if (size(6) === 'medium') done();\n  });\n"
SCOPE = Scope("box", ("src/box.js",), ("test/box.test.js",), "test/box.mutants.test.js")


@attrs.define
class WithoutEngine(StrykerJS):
    """An engine that does not start."""

    def measure(self, root: Path, scopes: Sequence[Scope], *, workers: int, log: Path) -> Mapping[str, Measured]:
        raise EngineError("the engine is asked")


@attrs.frozen
class Bench:
    world: World
    worktree: Worktree

    def measure(
        self, engine: StrykerJS | None = None, by_engine: bool = False, scope: Scope = SCOPE, since: float = 0.0
    ) -> Measurement:
        """The scope, as the files stand."""
        engine = engine or WithoutEngine(EngineConfig())
        self.world.git("add", "--all")
        tree = self.world.git("write-tree").strip()
        sameness = Sameness(self.worktree.repository, engine)
        measuring = Measuring(engine, ActionCache(self.world.home / "actions"), sameness, since)
        return measuring.measure(self.worktree, tree, [scope], 2, self.world.home / "log", by_engine)[scope.name]


@pytest.fixture(scope="module")
def measured_once(tmp_path_factory: pytest.TempPathFactory, node_modules: Path) -> tuple[World, Measured]:
    world = make_world(tmp_path_factory.mktemp("extending"), node_modules)
    for folder in ("src", "test"):
        shutil.rmtree(world.root / folder)
    world.write("src/box.js", SOURCE)
    world.write("test/box.test.js", TESTS)
    with Worktrees(find_repository(world.root), world.home / "trees", "run", ("node_modules",)).opened() as trees:
        measured = Bench(world, trees.get("slot")).measure(StrykerJS(EngineConfig())).measured
    return world, measured


@pytest.fixture
def bench(measured_once: tuple[World, Measured], tmp_path: Path) -> Iterator[Bench]:
    """Where the scope has been measured once."""
    world = copy_world(measured_once[0], tmp_path / "w")
    with Worktrees(find_repository(world.root), world.home / "trees", "run", ("node_modules",)).opened() as trees:
        yield Bench(world, trees.get("slot"))


def finals(measured: Measured) -> dict[str, Status]:
    return {m.key: m.final for m in measured.mutants}


def test_tests_behind_all_others_are_met_by_survivors_alone_and_each_mutant_has_the_status_that_the_engine_gives_it(
    bench: Bench, measured_once: tuple[World, Measured]
) -> None:
    before, path = measured_once[1], "test/box.test.js"
    with account.opened() as spent:
        bench.world.write(path, inside(TESTS, KILLS))
        first = bench.measure().measured
        bench.world.write(path, inside(bench.world.read(path), SEES))
        assert not bench.measure().cached
        bench.world.write(path, inside(bench.world.read(path), THROWS))
        last = bench.measure()  # on what two others were made of
        assert bench.measure().cached
    assert spent.engine_runs == 0
    assert last.measured.added == ("box is medium", "box is shown", "box is nothing", "box is short")
    assert (before.added, first.added) == ((), ("box is medium",))
    assert "4 tests added since the engine ran, and met by what survived it" in last.line

    with account.opened() as spent:
        engine = bench.measure(StrykerJS(EngineConfig()), by_engine=True)  # who wants its word gets that
    assert spent.engine_runs == 1 and not engine.measured.added
    assert finals(last.measured) == finals(engine.measured)
    assert bench.measure().measured == engine.measured  # and what it said comes first from then on

    became = {
        (before_, now)
        for before_, now in zip(finals(before).values(), finals(last.measured).values(), strict=True)
        if before_ is not now
    }
    survived, unseen, killed = Status.SURVIVED, Status.NO_COVERAGE, Status.KILLED
    assert became == {(survived, killed), (unseen, killed), (unseen, survived)}
    assert unseen in finals(last.measured).values()  # of what no test runs
    assert (last.measured.tests, last.measured.inputs) == (engine.measured.tests, engine.measured.inputs)
    left = [key for key, status in finals(last.measured).items() if status is survived]
    assert {k: last.measured.reached[k] for k in left} == {k: engine.measured.reached[k] for k in left}


def beside(text: str) -> Callable[[World], None]:
    return lambda world: world.write("test/box.test.js", text)


def both(*edits: Callable[[World], None]) -> Callable[[World], None]:
    def edit(world: World) -> None:
        for each in edits:
            each(world)

    return edit


GROWN = inside(TESTS, KILLS)
ASKS: dict[str, Callable[[World], None]] = {
    "a hook": beside(f"{TESTS}beforeEach(() => {{}});\n"),
    "a hook beside a test": beside(inside(TESTS, "  afterEach(() => {});\n" + KILLS)),
    "a variable": beside(f"{TESTS}const more = 1;\n"),
    "a test in the middle": beside(TESTS.replace("  it('is large'", KILLS + "  it('is large'")),
    "a test that is another": beside(TESTS.replace("size(20)", "size(21)")),
    "fewer tests": beside(TESTS.replace("it(", "xit(")),
    "another source": both(beside(GROWN), lambda w: w.edit("src/box.js", "'kg'", "'lb'")),
    "another configuration": both(beside(GROWN), lambda w: w.edit("package.json", "{", '{"description": "x", ')),
    "a test file that is gone": lambda w: (w.root / "test/box.test.js").unlink(),
    # What only a run tells:
    "a test that a runner puts before blocks": beside(TESTS + KILLS),
    "a test that fails": beside(inside(TESTS, KILLS.replace("'medium'", "'wide'"))),
    "a test that is passed over": beside(inside(TESTS, "  it('is skipped', function () { this.skip(); });\n")),
    "a name that is there": beside(inside(TESTS, KILLS.replace("is medium", "is large"))),
    "a loop that a mutant makes endless": beside(inside(TESTS, "  it('halves', () => { halves(8); });\n")),
    "a test that waits for a mutant": beside(inside(TESTS, WAITS)),
}  # fmt: skip


@pytest.mark.parametrize("edit", ASKS)
def test_in_doubt_the_engine_is_asked(bench: Bench, edit: str) -> None:
    ASKS[edit](bench.world)
    with pytest.raises(EngineError, match="the engine is asked"):
        bench.measure()


def test_what_is_too_old_or_of_another_file_s_tests_is_no_ground(bench: Bench) -> None:
    bench.world.write("test/box.test.js", GROWN)
    with pytest.raises(EngineError, match="the engine is asked"):
        bench.measure(since=1.0)
    last = attrs.evolve(SCOPE, tests=("test/box.test.js", "test/last.test.js"))
    bench.world.write("test/last.test.js", "it('is last', () => {});\n")
    bench.world.write("test/box.test.js", TESTS)
    assert not bench.measure(StrykerJS(EngineConfig()), scope=last).cached
    bench.world.write("test/box.test.js", GROWN)
    with pytest.raises(EngineError, match="the engine is asked"):  # its tests would run before others
        bench.measure(scope=last)


def test_a_drive_says_what_the_engine_has_not_run_and_confirms_with_the_engine(driven: World) -> None:
    def add_test(world: World) -> None:
        test = "  it('stays shut', () => {\n    assert.equal(gate('y'), 'shut');\n  });\n"
        world.write("test/label.test.js", inside(world.read("test/label.test.js"), test))
        world.commit()

    before = driven.git("rev-parse", "HEAD").strip()
    driven.git("merge", "--quiet", "mutate/main")
    add_test(driven)
    done = driven.doit("-n", "2", "baseline")
    assert "1 test added since the engine ran" in done.both and not driven.measured()
    driven.git("reset", "--quiet", "--hard", before)
    add_test(driven)  # what lands on it makes the same state, which has been measured, but not by the engine
    done = driven.doit("-n", "2", "mutate")
    assert "src/label.js: 1 test added since the engine measured it" in done.out
    by_engine = {(e["kind"], e["scope"]) for e in driven.events() if e.get("engine_run")}
    assert by_engine == {("confirm", "src/label.js")}, done.both
    (baseline,) = (json.loads(p.read_bytes()) for p in driven.root.glob("cache/scopes/*label*/baseline.json"))
    assert baseline["added"] == ["label stays shut"]
    report = json.loads(driven.doit("report", "--json").out)
    assert {s["scope"]: s["added"] for s in report["scopes"]}["src/label.js"] == ["label stays shut"]
