"""The embedded generator, with real Node and StrykerJS's own instrumenter: what it finds is proved by real mocha."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from pipeline.generators import differential
from pipeline.generators.differential import SearchMutant, SearchReply
from pipeline.model import Scope
from pipeline.results import Outcome, Test

PROJECT = Path(__file__).parent / "projects" / "differential"


@attrs.frozen
class Laboratory:
    """A copy of the fixture project in which some files are instrumented."""

    root: Path
    sources: dict[str, str]
    mutants: tuple[SearchMutant, ...]

    @property
    def name(self) -> str:
        return Path(next(iter(self.sources))).stem

    def search(self, **more: Any) -> SearchReply:
        tests = tuple(more.pop("tests", (self.tests,)))
        suffix = Path(tests[0]).suffix
        scope = Scope(self.name, tuple(self.sources), tests, f"test/{self.name}.mutants.test{suffix}")
        parser = (self.root / "node_modules/@babel/parser/lib/index.js").resolve()
        given: dict[str, Any] = {"sources": self.sources, "parser": parser, "node": "node", "budget": 60.0}
        return differential.search(self.root, scope, self.mutants, tests, **(given | more))

    @property
    def tests(self) -> str:
        return f"test/{self.name}.test.js"

    def missed(self, reply: SearchReply, file: str | None = None) -> set[str]:
        """`original => replacement` of the mutants without a test."""
        texts = {m.key: f"{m.original} => {m.replacement}" for m in self.mutants if file in (None, m.file)}
        return {texts[missed.key] for missed in reply.missed if missed.key in texts}

    def results(self, tests: Sequence[Test], mutant: str = "", suffix: str = "js") -> dict[str, Any]:
        """Title → mocha's error, {} where it passed, for a run in a fresh process."""
        file = self.root / "test" / f"proved.test.{suffix}"
        imports = sorted({line for test in tests for line in test.imports})
        file.write_text("\n".join([*imports, "", *(test.code for test in tests)]) + "\n")
        env = {"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo", "__STRYKER_ACTIVE_MUTANT__": mutant}
        out = self.root / "results.json"
        mocha = ["node", "node_modules/mocha/bin/mocha.js", "--reporter", "json", "--reporter-option", f"output={out}"]
        subprocess.run([*mocha, str(file)], cwd=self.root, env=env, stdout=subprocess.DEVNULL, timeout=60)
        results = json.loads(out.read_text())["tests"]
        file.unlink()
        out.unlink()
        return {test["fullTitle"]: test["err"] for test in results}

    def prove(self, reply: SearchReply) -> None:
        """Every test passes on the original and fails for each mutant that it claims, as the proof demands."""
        assert reply.outcome is Outcome.OK, reply.detail
        assert self.results(reply.tests) == {test.title: {} for test in reply.tests}
        ids = {m.key: m.id for m in self.mutants}
        for key in {key for test in reply.tests for key in test.kills}:
            errors = self.results(reply.tests, ids[key])
            for test in reply.tests:
                if key in test.kills:
                    assert is_kill(errors[test.title]), (test.code, errors[test.title])


def is_kill(error: dict[str, Any]) -> bool:
    """An assertion, or an exception that comes out of the code under test."""
    frames = [line for line in error.get("stack", "").splitlines() if line.strip().startswith("at ")]
    return error.get("code") == "ERR_ASSERTION" or bool(frames and "/src/" in frames[0])


Open = Callable[[str], Laboratory]


def opened(root: Path, node_modules: Path, files: Sequence[str]) -> Laboratory:
    """A copy of the fixture project in which `files` are instrumented."""
    shutil.copytree(PROJECT, root)
    (root / "node_modules").symlink_to(node_modules)
    sources = {file: (root / file).read_text() for file in files}
    run = subprocess.run(["node", "instrument.mjs", *files], cwd=root, capture_output=True, check=True, timeout=60)
    static = {id_ for file in files if not file.endswith(".ts") for id_ in visited_as_it_loads(root, file)}
    mutants = (SearchMutant(**(m | {"static": m["id"] in static})) for m in json.loads(run.stdout))
    return Laboratory(root, sources, tuple(mutants))


@pytest.fixture
def laboratory(tmp_path: Path, node_modules: Path) -> Open:
    """Opens a copy of the fixture project in which src/<name>.js is instrumented."""
    return lambda name: opened(tmp_path / name, node_modules, [f"src/{name}.js"])


def visited_as_it_loads(root: Path, file: str) -> set[str]:
    """Ids of the mutants that act while the module loads."""
    script = (
        f"import('./{file}').then(() => console.log(Object.keys(__stryker__.mutantCoverage?.static ?? {{}}).join()))"
    )
    run = subprocess.run(["node", "-e", script], cwd=root, capture_output=True, timeout=60)
    return set(run.stdout.decode().strip().split(","))


# What each construct leaves: mutants that are equivalent, or that no test can kill without hanging.
ES_MODULES = {
    "src/unnamed.js": set(),
    "src/closures.js": set(),
    "src/callbacks.js": {"i++ => i--"},
    "src/members.js": {"hours > Span.#most => hours >= Span.#most"},
    "src/kinds.js": set(),
    "src/sequences.js": {"from-- => from++"},
    "src/through.js": {"'title' => \"\""},
    "src/patterns.js": set(),
    "src/computed.js": set(),
    "src/tags.js": set(),
    "src/skipped.js": {'[] => ["Stryker was here"]'},
    "src/grouped.js": set(),
    "src/alike.js": set(),
    "src/read.js": set(),
    "src/quiet.js": set(),
    "src/codes.js": {"line.charCodeAt(depth) === WIDE => line.charCodeAt(depth) !== WIDE"},
    "src/glass.js": {
        "{ ownKeys: () => 3 } => {}",
        "() => 3 => () => undefined",
        "n > 2 => false",
        "(n) => ({ n: n * 2, get rest() { throw new Error(`${n}`); } }) => () => undefined",
        "{ throw new Error(`${n}`); } => {}",
        "`${n}` => ``",
        "{ Promise.resolve().then(() => done(n)); } => {}",
        "() => done(n) => () => undefined",
    },
    "src/typed.ts": {"options.limit !== undefined => true"},
}
COMMON_JS = {
    "src/required.cjs": {"i++ => i--"},
    "src/older.cjs": set(),
    "src/till.cjs": set(),
    "src/wrapped.cjs": {"typeof exports === 'object' => true"},
}


@attrs.frozen
class Searched:
    lab: Laboratory
    reply: SearchReply
    left: dict[str, set[str]]  # file → what no test kills
    suffix: str

    def told(self, file: str) -> list[Test]:
        keys = {m.key for m in self.lab.mutants if m.file == file}
        return [test for test in self.reply.tests if keys & set(test.kills)]


def searched(root: Path, node_modules: Path, left: dict[str, set[str]]) -> Searched:
    lab = opened(root, node_modules, list(left))
    stems = {Path(file).stem for file in left}
    tests = sorted(f"test/{path.name}" for path in (root / "test").iterdir() if path.name.split(".")[0] in stems)
    reply = lab.search(tests=tests)
    suffix = "cjs" if next(iter(left)).endswith(".cjs") else "js"
    return Searched(lab, reply, left, suffix)


@pytest.fixture(scope="module")
def es_modules(tmp_path_factory: pytest.TempPathFactory, node_modules: Path) -> Searched:
    """One search over a file for each construct."""
    done = searched(tmp_path_factory.mktemp("es") / "project", node_modules, ES_MODULES)
    # The tests import what a compiler would have made.
    strip = (
        "const [{ transformSync }, fs] = [require('@babel/core'), require('fs')];"
        "const presets = [require.resolve('@babel/preset-typescript')];"
        "const { code } = transformSync(fs.readFileSync('src/typed.ts', 'utf8'), { filename: 'typed.ts', presets });"
        "fs.writeFileSync('src/typed.js', code)"
    )
    subprocess.run(["node", "-e", strip], cwd=done.lab.root, check=True, timeout=60)
    return done


@pytest.fixture(scope="module")
def common_js(tmp_path_factory: pytest.TempPathFactory, node_modules: Path) -> Searched:
    return searched(tmp_path_factory.mktemp("cjs") / "project", node_modules, COMMON_JS)


AFTER_ONE_SEARCH = pytest.mark.xdist_group("constructs")  # in the worker that has searched


def holds(done: Searched) -> None:
    """Every mutant that can be killed is; all tests pass on the original, and of each file one fails on its mutant."""
    lab, reply = done.lab, done.reply
    assert reply.outcome is Outcome.OK, reply.detail
    assert {file: lab.missed(reply, file) for file in done.left} == done.left
    assert lab.results(reply.tests, suffix=done.suffix) == {test.title: {} for test in reply.tests}
    ids = {m.key: m.id for m in lab.mutants}
    for file in done.left:
        test = done.told(file)[0]
        error = lab.results([test], ids[min(test.kills)], done.suffix)[test.title]
        assert is_kill(error), (file, test.code, error)


@AFTER_ONE_SEARCH
def test_constructs_of_es_modules_and_typescript_are_reached(es_modules: Searched) -> None:
    holds(es_modules)


@AFTER_ONE_SEARCH
def test_constructs_of_commonjs_and_umd_are_reached(common_js: Searched) -> None:
    holds(common_js)


@AFTER_ONE_SEARCH
def test_what_a_method_does_to_its_object_is_looked_at(common_js: Searched) -> None:
    assert any(re.search(r"\.add\(\d+\);\n  .*, \d+\)", test.code) for test in common_js.told("src/older.cjs"))
    assert any("Object.assign({}, till, { total: " in test.code for test in common_js.told("src/till.cjs"))


def test_what_a_class_inherits_is_called_on_those_that_are_exported(laboratory: Open) -> None:
    lab = laboratory("inherited")
    reply = lab.search()
    lab.prove(reply)
    assert {"throw" in text or "shape" in text for text in lab.missed(reply)} == {True}  # nothing gets there
    assert {"size", "around"} <= {word for test in reply.tests for word in re.findall(r"\w+", test.code)}


@AFTER_ONE_SEARCH
def test_a_file_of_commonjs_is_strict_where_those_beside_it_are(common_js: Searched, es_modules: Searched) -> None:
    assert all(test.imports[0] == "'use strict';" for test in common_js.reply.tests)
    assert not any("strict'" in line.split("from")[0] for test in es_modules.reply.tests for line in test.imports)


@AFTER_ONE_SEARCH
def test_modules_are_named_as_the_existing_tests_name_them(es_modules: Searched, common_js: Searched) -> None:
    lines = {line for done in (es_modules, common_js) for test in done.reply.tests for line in test.imports}
    assert "import prefixed from '../src/unnamed.js';" in lines
    assert "import { gap } from '../src/typed.js';" in lines
    assert "const total = require('../src/required.cjs');" in lines
    assert not any(line.startswith("import") for test in common_js.reply.tests for line in test.imports)


@AFTER_ONE_SEARCH
def test_what_is_returned_is_used_and_what_is_handed_in_is_spied_on(es_modules: Searched) -> None:
    assert any("made.undo();" in test.code for test in es_modules.told("src/closures.js"))
    assert any("calls.push(args);" in test.code for test in es_modules.told("src/callbacks.js"))
    assert any("await assert.rejects(" in test.code for test in es_modules.told("src/sequences.js"))


@AFTER_ONE_SEARCH
def test_values_of_many_kinds_are_written_as_one_reads_them(es_modules: Searched) -> None:
    code = "\n".join(test.code for test in es_modules.told("src/kinds.js"))
    kinds = ("new Map([[", "new Set([", "new Date('", "new Uint8Array([", "$/", "Symbol.for('", "Object.assign([")
    assert [kind for kind in kinds if kind not in code] == []


@AFTER_ONE_SEARCH
def test_calls_are_recorded_where_a_test_computes_what_it_gives(es_modules: Searched) -> None:
    assert any("zyx'" in test.code for test in es_modules.told("src/computed.js"))


@AFTER_ONE_SEARCH
def test_values_that_only_a_mutant_compares_are_given(es_modules: Searched) -> None:
    given = [m.groups() for t in es_modules.told("src/tags.js") for m in re.finditer(r"'(\w+)'\], '(\w+)/\*'", t.code)]
    assert any(asked == tag[:-1] for tag, asked in given)


@AFTER_ONE_SEARCH
def test_what_is_looked_up_is_given(es_modules: Searched) -> None:
    assert any("'undefined" in test.code for test in es_modules.told("src/skipped.js"))


@AFTER_ONE_SEARCH
def test_keys_are_varied_as_texts_are(es_modules: Searched) -> None:
    assert any(re.search(r"'[^']+/[^']*': \d", test.code) for test in es_modules.told("src/grouped.js"))


@AFTER_ONE_SEARCH
def test_a_text_is_given_the_character_whose_code_is_compared(es_modules: Searched) -> None:
    assert any("\u3000" in test.code for test in es_modules.told("src/codes.js"))


@AFTER_ONE_SEARCH
def test_an_error_that_does_not_say_where_it_comes_from_makes_an_assertion_fail(es_modules: Searched) -> None:
    (broken,) = (
        m for m in es_modules.lab.mutants if (m.original, m.replacement) == ("record[key] === undefined", "false")
    )
    test = next(t for t in es_modules.told("src/quiet.js") if broken.key in t.kills)
    assert "doesNotThrow" in test.code
    assert is_kill(es_modules.lab.results([test], broken.id)[test.title])


@AFTER_ONE_SEARCH
def test_lists_with_holes_are_told_from_lists_of_nothing(es_modules: Searched) -> None:
    assert any("new Array(" in test.code for test in es_modules.told("src/alike.js"))


@AFTER_ONE_SEARCH
def test_of_an_object_that_holds_functions_the_keys_are_asserted(es_modules: Searched) -> None:
    (test,) = (t for t in es_modules.told("src/read.js") if "Object.keys(read(" in t.code)
    assert re.search(r"^read has the keys? '", test.title)


@AFTER_ONE_SEARCH
def test_the_keys_that_a_helper_reads_are_given_to_who_hands_them_on(es_modules: Searched) -> None:
    assert any("frame: 'double'" in test.code for test in es_modules.told("src/through.js"))


@AFTER_ONE_SEARCH
def test_a_mutant_that_is_left_says_how_near_the_search_came(es_modules: Searched) -> None:
    (left,) = (m for m in es_modules.lab.mutants if m.replacement == "hours >= Span.#most")
    (missed,) = (m for m in es_modules.reply.missed if m.key == left.key)
    assert missed.reason == "never-told-apart"
    assert re.fullmatch(
        r"the same in \d+ of \d+ programs that reach it; reached by .*new members\(.*; compared there: \d+ with 24",
        missed.detail,
    )


def test_boundaries_of_given_and_of_computed_values_are_met(laboratory: Open) -> None:
    lab = laboratory("boundaries")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()


def test_arguments_come_from_constants_and_helpers_of_the_tests(laboratory: Open) -> None:
    lab = laboratory("helpers")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()
    assert all("sku: 'LAMP'" in test.code for test in reply.tests if "invoice([{" in test.code)


def test_classes_are_made_then_used_then_looked_at(laboratory: Open) -> None:
    lab = laboratory("account")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()
    assert any("[...account.entries()]" in test.code for test in reply.tests)
    assert any("name: 'Overdrawn'" in test.code for test in reply.tests)


def test_option_keys_that_no_test_gives_are_read_from_the_source(laboratory: Open) -> None:
    lab = laboratory("options")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()


def test_lists_are_given_where_a_default_in_a_pattern_is_one(laboratory: Open) -> None:
    lab = laboratory("hours")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == {'[] => ["Stryker was here"]'}


def test_the_one_count_at_which_a_loop_differs_is_approached_by_what_it_compares(laboratory: Open) -> None:
    lab = laboratory("stairs")
    reply = lab.search()
    lab.prove(reply)
    assert "stair > 731 => stair >= 731" not in lab.missed(reply)
    assert any("stairAfter(585), 731)" in test.code for test in reply.tests)


def test_an_object_is_given_the_key_that_is_compared_and_that_no_test_gives(laboratory: Open) -> None:
    lab = laboratory("trip")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()
    assert any(re.search(r"accept\(.*least.*\);\n.*trip\.(book|cancel)\(", test.code) for test in reply.tests)


def test_what_one_call_returns_is_handed_to_others_as_the_tests_do(laboratory: Open) -> None:
    lab = laboratory("desk")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()
    assert any(len(re.findall(r"desk\.call\(ticket\)", test.code)) >= 3 for test in reply.tests)


def test_nan_and_arguments_left_out_are_asserted_only_as_the_last_resort(laboratory: Open) -> None:
    lab = laboratory("hollow")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()
    (nan,) = (test for test in reply.tests if "NaN" in test.code)
    (short,) = (test for test in reply.tests if re.search(r"label\('\w+'\)", test.code))
    texts = {m.key: f"{m.original} => {m.replacement}" for m in lab.mutants}
    assert "whole === 0 => false" in {texts[key] for key in nan.kills}
    assert "arguments.length < 2 => false" in {texts[key] for key in short.kills}
    assert not any("TypeError" in test.code for test in reply.tests)


def test_static_mutants_are_loaded_anew(laboratory: Open) -> None:
    lab = laboratory("tables")
    assert any(mutant.static for mutant in lab.mutants)
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()


def test_changed_arguments_are_looked_at_where_nothing_is_returned(laboratory: Open) -> None:
    lab = laboratory("inplace")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()


def test_promises_are_awaited_and_rejections_asserted(laboratory: Open) -> None:
    lab = laboratory("remote")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == set()
    assert any("await assert.rejects(" in test.code for test in reply.tests)


def test_a_cache_in_a_module_hides_no_kill_and_makes_none(laboratory: Open) -> None:
    lab = laboratory("memo")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == {"!seen.has(key) => true"}


def test_what_holds_only_before_other_tests_have_called_the_module_is_never_asserted(laboratory: Open) -> None:
    lab = laboratory("counter")
    reply = lab.search()
    lab.prove(reply)
    assert reply.tests and not any("ticket(" in test.code for test in reply.tests)
    whys = {m.key: f"{m.reason}: {m.detail}" for m in reply.missed}
    (counted,) = (m for m in lab.mutants if m.replacement == "issued -= 1")
    assert whys[counted.key] == (
        "unpinned: told apart only by results that are others once other tests have called the module"
    )


def test_what_differs_between_runs_of_the_original_is_never_asserted(laboratory: Open) -> None:
    lab = laboratory("restless")
    reply = lab.search()
    assert reply.outcome is Outcome.OK, reply.detail
    assert reply.tests == ()
    assert {missed.key for missed in reply.missed} == {mutant.key for mutant in lab.mutants}


def test_what_another_engine_or_machine_would_give_is_never_asserted_and_is_told_as_such(laboratory: Open) -> None:
    lab = laboratory("foreign")
    reply = lab.search()
    assert reply.tests == ()
    lines = {m.key: m.line for m in lab.mutants}
    told: dict[str, set[int]] = {}
    for missed in reply.missed:
        for why in ("leaves to the engine", "another machine"):
            if missed.reason == "unpinned" and why in missed.detail:
                told.setdefault(why, set()).add(lines[missed.key])
    assert told == {
        "leaves to the engine": {4, 5, 6, 8, 12, *range(14, 19), *range(22, 26)},
        "another machine": {10, 11, 13, 21, 30},
    }


def test_a_mutant_that_never_ends_costs_itself_and_not_the_file(laboratory: Open) -> None:
    lab = laboratory("loops")
    reply = lab.search()
    lab.prove(reply)
    assert reply.stats["files"][0]["deaths"] > 0
    assert not lab.missed(reply) & {"n / 2 => n * 2", "(n) => n / 2 => () => undefined"}


def test_a_mutant_that_eats_memory_costs_itself_and_not_the_file(laboratory: Open) -> None:
    lab = laboratory("hoards")
    reply = lab.search()
    lab.prove(reply)
    assert not lab.missed(reply) & {"n * 2 => n / 2", "(n) => n * 2 => () => undefined"}


def test_code_that_ends_the_process_or_leaves_it_is_not_asserted(laboratory: Open) -> None:
    lab = laboratory("leaves")
    reply = lab.search()
    lab.prove(reply)
    assert all("check(" in test.code for test in reply.tests)
    assert "n + 1 => n - 1" not in lab.missed(reply)
    assert not list(lab.root.rglob("saved-*"))


def test_a_module_that_ends_the_process_as_it_loads_is_said_to_be_unsupported(laboratory: Open) -> None:
    lab = laboratory("dies")
    reply = lab.search()
    assert reply.outcome is Outcome.OK
    assert reply.tests == ()
    assert {missed.reason for missed in reply.missed} == {"unsupported"}
    assert "ends the process" in reply.missed[0].detail


def test_output_without_end_is_dropped(laboratory: Open) -> None:
    lab = laboratory("prints")
    reply = lab.search()
    assert reply.outcome is Outcome.OK, reply.detail
    assert "word.toUpperCase() => word.toLowerCase()" not in lab.missed(reply)
    assert len(reply.tests[0].code) < 500


def test_equal_seeds_give_equal_replies(laboratory: Open) -> None:
    lab = laboratory("account")
    first, second = lab.search(seed=7), lab.search(seed=7)
    assert (first.tests, first.missed) == (second.tests, second.missed)


def test_what_no_reader_would_miss_is_in_titles_and_arguments(laboratory: Open) -> None:
    lab = laboratory("cart")
    reply = lab.search()
    lab.prove(reply)
    assert lab.missed(reply) == {"this.#total > 10 => this.#total >= 10"}
    for test in reply.tests:
        assert test.title.count("add(") == test.code.split("assert.")[0].count(".add("), test.code
        assert not re.search(r"(quarter|isLate)\((?!new Date\(.)", test.code.split("assert.")[1])
    assert any(re.search(r"greeted\((\['hello \w+'\]|new String)", test.code) for test in reply.tests)


def test_titles_are_unique_and_say_the_behaviour(laboratory: Open) -> None:
    lab = laboratory("account")
    (lab.root / "test/account.mutants.test.js").write_text("it('Account.balance is 0', () => {});\n")
    titles = [test.title for test in lab.search().tests]
    assert len(set(titles)) == len(titles)
    assert "Account.balance is 0" not in titles
    assert all(re.match(r"(Account|Overdrawn)\.\w+ (returns|is|throws|leaves) ", title) for title in titles)
    assert all(len(title) <= 100 for title in titles)


def test_tests_are_written_as_the_existing_ones_are(laboratory: Open) -> None:
    lab = laboratory("prints")
    (test, *_) = lab.search().tests
    assert test.imports == (
        'import assert from "node:assert/strict";',
        'import { shout } from "../src/prints.js";',
    )
    assert '\n  assert.equal(shout("' in test.code


def test_of_a_test_file_in_a_syntax_that_the_parser_does_not_know_only_the_calls_are_lost(laboratory: Open) -> None:
    lab = laboratory("prints")
    (title, *_) = [test.title for test in lab.search().tests]
    with (lab.root / lab.tests).open("a") as file:
        file.write(f'@decorated class Loud {{}}\nit("{title}", () => {{}});\n')
    reply = lab.search()
    lab.prove(reply)
    assert reply.tests and title not in {test.title for test in reply.tests}


def test_a_file_is_imported_by_its_url_whatever_it_is_called(laboratory: Open) -> None:
    lab = laboratory("prints")
    for folder in ("src/{}.js", "test/{}.test.js"):
        (lab.root / folder.format("prints")).rename(lab.root / folder.format("100% #1?"))
    odd, (source,) = "src/100% #1?.js", lab.sources.values()
    lab = Laboratory(lab.root, {odd: source}, tuple(attrs.evolve(m, file=odd) for m in lab.mutants))
    tests = lab.root / lab.tests
    tests.write_text(tests.read_text().replace("../src/prints.js", "../src/100%25 %231%3F.js"))
    reply = lab.search()
    assert {line for test in reply.tests for line in test.imports if "src" in line} == {
        'import { shout } from "../src/100%25 %231%3F.js";'
    }
    lab.prove(reply)


def test_one_test_serves_all_the_mutants_that_it_can(laboratory: Open) -> None:
    lab = laboratory("helpers")
    reply = lab.search()
    for test in reply.tests:
        others = {key for other in reply.tests if other is not test for key in other.kills}
        assert set(test.kills) - others, test.title


def test_a_program_that_cannot_start_is_an_outcome(laboratory: Open) -> None:
    lab = laboratory("options")
    assert lab.search(node="no-such-node").outcome is Outcome.BAD_CONFIG
    crashed = lab.search(parser=Path("/no/parser.js"))
    assert crashed.outcome is Outcome.CRASHED
    assert "/no/parser.js" in crashed.detail


def test_a_time_limit_is_an_outcome(laboratory: Open) -> None:
    assert laboratory("options").search(timeout=0.05).outcome is Outcome.TIME_LIMIT


def test_a_budget_that_is_spent_is_said_for_each_mutant(laboratory: Open) -> None:
    lab = laboratory("options")
    reply = lab.search(budget=0.0)
    assert reply.outcome is Outcome.OK
    assert {missed.reason for missed in reply.missed} == {"budget"}


def test_without_mutants_nothing_runs(tmp_path: Path) -> None:
    scope = Scope("a", ("a.js",), None, "a.test.js")
    reply = differential.search(tmp_path, scope, [], [], sources={}, parser=tmp_path, node="no-such-node")
    assert reply == SearchReply(Outcome.OK)


def test_the_version_is_a_hash_of_the_program() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", differential.VERSION)


def test_a_module_whose_name_holds_a_quote_is_named_so_that_it_can_be_read() -> None:
    style = Path(differential.__file__).parent / "style.mjs"
    asked = [["'", "./it's \\ a.js", "f"], ['"', './it\'s "b".js', "default"]]
    program = (
        f"import {{ statement }} from {json.dumps(str(style))};"
        f"for (const [mark, module, name] of {json.dumps(asked)})"
        "  for (const syntax of ['import', 'require'])"
        "    console.log(statement({ mark, semi: true, syntax }, 'f', module, name));"
    )
    ran = subprocess.run(["node", "--input-type=module", "-e", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        r"import { f } from './it\'s \\ a.js';", r"const { f } = require('./it\'s \\ a.js');",
        r"""import f from "./it's \"b\".js";""", r"""const f = require("./it's \"b\".js");""",
    ]  # fmt: skip


def test_what_a_timer_of_an_earlier_run_compares_is_at_no_place_of_a_later_one() -> None:
    """It comes while that one waits; one file's whole search ended with it."""
    here = Path(differential.__file__).parent
    script = f"""
        import {{ Exploration }} from '{(here / "explore.mjs").as_uri()}';
        import {{ UNTOLD }} from '{(here / "trace.mjs").as_uri()}';
        const pairs = [{{ place: UNTOLD + 1, a: 1, b: 2 }}, {{ place: 0, a: 3, b: 4 }}];
        const of = {{ lab: {{ order: async () => ({{ pairs }}) }}, places: [{{ names: ['n', null] }}] }};
        console.log(JSON.stringify(await Exploration.prototype.pairsOf.call(of, {{}})));
    """
    done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [{"place": 0, "a": 3, "b": 4, "names": ["n", None]}]
