"""How tests stand in a mocha test file. Nothing runs here."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines.stryker_js.suite import MARK, JavaScriptSuite
from pipeline.results import Test

SUITE = JavaScriptSuite()
ASSERT = "import assert from 'node:assert/strict';"
OWN = "import assert from 'node:assert/strict';\nimport { a } from '../src/x.js';\n\nit('own', () => {\n  a();\n});\n"


def test_of(title: str, *imports: str, body: str = "assert.equal(1, 1);") -> Test:
    return Test(title, f"it('{title}', () => {{\n  {body}\n}});", imports)


test_of.__test__ = False  # type: ignore[attr-defined]


def test_a_file_that_is_not_there_yet_begins_with_the_imports() -> None:
    text = SUITE.add("", [test_of("one", ASSERT, "import { a } from '../src/x.js';")])
    imports, _, rest = text.partition("\n\n")
    assert imports.split("\n") == [ASSERT, "import { a } from '../src/x.js';"]
    assert rest.startswith(MARK) and rest.endswith("\nit('one', () => {\n  assert.equal(1, 1);\n});\n")


def test_tests_added_one_after_another_give_the_text_of_all_at_once() -> None:
    tests = [
        test_of("one", ASSERT, "import { a } from '../src/x.js';"),
        test_of("two", ASSERT, "import { b, a } from '../src/x.js';"),
        test_of("three", "import * as y from '../src/y.js';", "import { c as d } from '../src/x.js';"),
    ]
    text = ""
    for test in tests:
        text = SUITE.add(text, [test])
    assert text == SUITE.add("", tests)
    assert "import { a, b, c as d } from '../src/x.js';\n" in text
    assert text.count("import ") == 3


@pytest.mark.parametrize(
    ("there", "wanted", "after"),
    [
        ("import { a } from 'x';", "import { a } from 'x';", "import { a } from 'x';"),
        ("import { a } from 'x'", 'import { b } from "x";', "import { a, b } from 'x'"),
        ("import {\n  a,\n  b,\n} from 'x';", "import { c } from 'x';", "import {\n  a,\n  b, c,\n} from 'x';"),
        ("import x, { a } from 'x';", "import { b } from 'x';", "import x, { a, b } from 'x';"),
        ("import { b, D } from 'x';", "import { c } from 'x';", "import { b, c, D } from 'x';"),
        ("import { d, b } from 'x';", "import { c } from 'x';", "import { d, b, c } from 'x';"),
        ("import x from 'x';", "import { b } from 'x';", "import x from 'x';\nimport { b } from 'x';"),
        # The same name from elsewhere cannot be imported twice: what the test makes of it is judged by its proof.
        ("import assert from 'node:assert';", ASSERT, "import assert from 'node:assert';"),
        ("import { strict as assert } from 'node:assert';", ASSERT, "import { strict as assert } from 'node:assert';"),
        ("import * as a from 'a';", "import { a } from 'b';", "import * as a from 'a';"),
        ("import 'a';", "import 'a';", "import 'a';"),
        ("import 'a';", "import 'b';", "import 'a';\nimport 'b';"),
        ("import a from 'a'; // why", "import b from 'b';", "import a from 'a'; // why\nimport b from 'b';"),
        ("import a from 'a' // why", "import b from 'b';", "import a from 'a' // why\nimport b from 'b';"),
        ("import a from 'a'; go(`\n`);", "import b from 'b';", "import a from 'a';\nimport b from 'b'; go(`\n`);"),
        ("import a from './a.json' with { type: 'json' };", "import 'b';",
         "import a from './a.json' with { type: 'json' };\nimport 'b';"),
    ],
)  # fmt: skip
def test_what_a_file_imports_is_not_imported_twice(there: str, wanted: str, after: str) -> None:
    text = SUITE.add(f"{there}\n\nconst s =\n  'foo'\n", [test_of("one", wanted)])
    assert text.startswith(f"{after}\n\nconst s =\n  'foo'\n\n{MARK}")


def test_a_new_file_begins_as_strictly_as_its_neighbours_and_one_that_is_there_stays_as_it_is() -> None:
    required = "const a = require('a');"
    one, two = test_of("one", "'use strict';", required), test_of("two", "'use strict';")
    text = SUITE.add("", [one, two])
    assert text.startswith(f"'use strict';\n\n{required}\n\n{MARK}") and text.count("use strict") == 1
    assert text == SUITE.add(SUITE.add("", [one]), [two])
    assert SUITE.add(f"{required}\n", [two]).startswith(f"{required}\n\n{MARK}")
    assert SUITE.remove(SUITE.remove(text, "one"), "two").strip() == f"'use strict';\n\n{required}"


def test_an_import_in_a_string_or_a_comment_is_none() -> None:
    own = "import { a } from 'a';\nconst code = `\nimport { b } from 'b';\n`;\n/*\nimport { c } from 'c';\n*/\n"
    text = SUITE.add(own, [test_of("one", "import { b } from 'b';", "import { c } from 'c';")])
    assert text.startswith("import { a } from 'a';\nimport { b } from 'b';\nimport { c } from 'c';\nconst code")


def test_crlf_and_a_byte_order_mark_are_kept_and_ours_follow_them() -> None:
    own = "\ufeff" + OWN.replace("\n", "\r\n")
    text = SUITE.add(own, [test_of("one", ASSERT, "import { b } from '../src/x.js';")])
    assert text.startswith(own.replace("{ a }", "{ a, b }"))
    assert "\n" not in text.replace("\r\n", "")
    assert SUITE.find(text, "one") == test_of("one").code
    assert SUITE.titles(text) == ("own", "one")


def test_lines_that_end_in_both_ways_stay_as_they_are() -> None:
    own = "import 'a';\r\n\nit('own', () => {\n});\r\n"
    text = SUITE.add(own, [test_of("one", "import 'b';")])
    assert text.startswith("import 'a';\r\nimport 'b';\r\n\nit('own', () => {\n});\r\n\r\n")
    assert SUITE.remove(text, "one") == own.replace("'a';\r\n", "'a';\r\nimport 'b';\r\n")


def test_what_cannot_be_told_apart_hides_none_of_our_tests() -> None:
    own = "it('own', () => {\n  const half = (n) / 2; const re = f() /'/;\n});\n"
    text = SUITE.add(own, [test_of("one"), test_of("two")])
    assert SUITE.bodies(own) == ()  # it cannot be read
    assert SUITE.titles(text) == ("own", "one", "two")
    assert SUITE.find(text, "two") == test_of("two").code
    assert SUITE.remove(text, "one") == SUITE.add(own, [test_of("two")])


def test_our_tests_are_found_in_a_describe_that_somebody_put_around_them() -> None:
    text = "describe('all', () => {\n" + SUITE.add("", [test_of("one")]) + "});\n"
    assert SUITE.find(text, "one") == test_of("one").code
    assert SUITE.remove(text, "one") == "describe('all', () => {\n});\n"


def test_titles_are_those_of_tests_in_any_form_and_not_of_what_is_commented_out() -> None:
    text = "it.skip('a', f);\nspecify(\"b\\n\", f);\ntest(`c`, f);\n// it('d', f);\nx.it('e', f);\nit(`${f}`, f);\n"
    assert SUITE.titles(text) == ("a", "b\n", "c")


TITLES = st.text(st.characters(codec="utf-8", exclude_characters="'\\\r\n\u2028\u2029"), min_size=1, max_size=20)
NEWLINES = st.sampled_from(["\n", "\r\n"])


@settings(deadline=None)
@given(st.lists(TITLES, min_size=1, max_size=5, unique=True), NEWLINES, st.booleans(), st.booleans(), st.data())
def test_a_test_that_is_added_and_removed_leaves_every_other_byte(
    titles: list[str], newline: str, bom: bool, own: bool, data: st.DataObject
) -> None:
    before = ("\ufeff" if bom else "") + (OWN if own else "").replace("\n", newline)
    tests = [test_of(t) for t in titles if t != "own"]
    text = SUITE.add(before, tests)
    assert text.startswith(before)
    assert [SUITE.find(text, t.title) for t in tests] == [t.code for t in tests]
    assert SUITE.titles(text) == (("own",) if own else ()) + tuple(t.title for t in tests)
    gone = data.draw(st.sets(st.sampled_from(tests)) if tests else st.just(set[Test]()))
    for test in sorted(gone, key=lambda t: t.title):
        text = SUITE.remove(text, test.title)
    assert text == SUITE.add(before, [t for t in tests if t not in gone])
    for test in tests:
        text = SUITE.remove(text, test.title)
    assert text == before
