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
        scope = Scope(self.name, tuple(self.sources), (self.tests,), f"test/{self.name}.mutants.test.js")
        parser = (self.root / "node_modules/@babel/parser/lib/index.js").resolve()
        given: dict[str, Any] = {"sources": self.sources, "parser": parser, "node": "node", "budget": 60.0}
        return differential.search(self.root, scope, self.mutants, [self.tests], **(given | more))

    @property
    def tests(self) -> str:
        return f"test/{self.name}.test.js"

    def missed(self, reply: SearchReply) -> set[str]:
        """`original => replacement` of the mutants without a test."""
        texts = {m.key: f"{m.original} => {m.replacement}" for m in self.mutants}
        return {texts[missed.key] for missed in reply.missed}

    def results(self, tests: Sequence[Test], mutant: str = "") -> dict[str, Any]:
        """Title → mocha's error, {} where it passed, for a run in a fresh process."""
        file = self.root / "test" / "proved.test.js"
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


@pytest.fixture
def laboratory(tmp_path: Path, node_modules: Path) -> Open:
    """Opens a copy of the fixture project in which src/<name>.js is instrumented."""

    def open_(name: str) -> Laboratory:
        root = tmp_path / name
        shutil.copytree(PROJECT, root)
        (root / "node_modules").symlink_to(node_modules)
        file = f"src/{name}.js"
        source = (root / file).read_text()
        run = subprocess.run(["node", "instrument.mjs", file], cwd=root, capture_output=True, check=True, timeout=60)
        static = visited_as_it_loads(root, file)
        mutants = (SearchMutant(**(m | {"static": m["id"] in static})) for m in json.loads(run.stdout))
        return Laboratory(root, {file: source}, tuple(mutants))

    return open_


def visited_as_it_loads(root: Path, file: str) -> set[str]:
    """Ids of the mutants that act while the module loads."""
    script = (
        f"import('./{file}').then(() => console.log(Object.keys(__stryker__.mutantCoverage?.static ?? {{}}).join()))"
    )
    run = subprocess.run(["node", "-e", script], cwd=root, capture_output=True, timeout=60)
    return set(run.stdout.decode().strip().split(","))


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


def test_what_differs_between_runs_of_the_original_is_never_asserted(laboratory: Open) -> None:
    lab = laboratory("restless")
    reply = lab.search()
    assert reply.outcome is Outcome.OK, reply.detail
    assert reply.tests == ()
    assert {missed.key for missed in reply.missed} == {mutant.key for mutant in lab.mutants}


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
