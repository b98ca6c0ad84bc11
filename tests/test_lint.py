"""Findings against a baseline: what is new, however the lines have shifted; and what a tool's end says of it."""

# ruff: noqa: E501 - what is said of a mistake is one line, and is to be read as one

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from conftest import DODO, World
from hypothesis import given
from hypothesis import strategies as st

from pipeline import findings, lint
from pipeline.findings import Finding, Unreadable
from pipeline.lint import BadBaseline, Entry, as_entry, judge
from pipeline.model import Lint
from pipeline.process import Finished

RUFF = f"{sys.executable} -m ruff check --isolated --no-cache --select F401"
SARIF = Lint("l", "x", "sarif", "b")
REGEX = attrs.evolve(
    SARIF, format="regex", pattern=r"(?P<path>[^:\s]+):(?P<line>\d+):\d+: (?P<rule>\w+): (?P<message>.*)"
)
LINES = attrs.evolve(SARIF, format="lines")


def in_text(text: Sequence[str], rule: str = "R", path: str = "a.c") -> tuple[Finding, ...]:
    """A finding on each line that begins with `bad`, with its line as another tool would say it."""
    said = "\n".join(
        f"{path}:{n}:1: {rule}: no good" for n, line in enumerate(text, 1) if line.strip().startswith("bad")
    )
    return findings.read(REGEX, said, "", "/r", {path: text}.get)


# --- what is new (pure)

texts = st.lists(st.sampled_from(["bad 1", "bad 2", "  bad 1", "good 1", "good 2", ""]), max_size=12)


@given(texts, st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["good 3", "", "\tgood 4"])), max_size=5))
def test_lines_that_are_put_anywhere_between_make_nothing_new(text: list[str], more: list[tuple[int, str]]) -> None:
    baseline = [as_entry(finding) for finding in in_text(text)]
    shifted = list(text)
    for at, line in more:
        shifted.insert(at, line)
    judged = judge(in_text(shifted), baseline)
    assert (judged.new, judged.gone) == ((), ())
    assert sorted(judged.kept) == sorted(baseline)


@given(texts, texts, st.randoms())
def test_every_finding_is_new_or_known_and_every_entry_known_or_gone_and_no_more_is_new_than_there_is_more_of(
    before: list[str], after: list[str], lot: Any
) -> None:
    baseline, found = [as_entry(finding) for finding in in_text(before)], in_text(after)
    lot.shuffle(baseline)
    judged = judge(found, baseline)
    assert Counter([*judged.new, *(finding for finding, _ in judged.known)]) == Counter(found)
    assert Counter([*judged.gone, *(entry for _, entry in judged.known)]) == Counter(baseline)
    had, has = (Counter(entry.same for entry in entries) for entries in (baseline, map(as_entry, found)))
    assert Counter(as_entry(finding).same for finding in judged.new) == has - had
    assert Counter(entry.same for entry in judged.gone) == had - has
    assert judge(found, sorted(baseline)) == judged, "the order of the baseline's lines says nothing"


@given(texts)
def test_what_is_accepted_is_known_and_what_is_kept_without_what_has_gone_is_as_well(text: list[str]) -> None:
    found = in_text(text)
    baseline = lint.load(lint.dump(map(as_entry, found)))
    assert not judge(found, baseline).new and not judge(found, baseline).gone
    half = in_text(text[: len(text) // 2])
    kept = judge(half, baseline).kept
    assert not judge(half, kept).gone
    assert judge(half, kept).new == judge(half, baseline).new


def test_of_equal_lines_the_copy_is_new_and_not_the_one_that_was_there() -> None:
    before = ["int f()", "bad", "return 1", "int g()", "ok"]
    baseline = [as_entry(finding) for finding in in_text(before)]
    (new,) = judge(in_text(["int h()", "bad", "return 2", *before]), baseline).new
    assert new.line == 2
    (new,) = judge(in_text([*before, "bad", "return 2"]), baseline).new
    assert new.line == 6


@pytest.mark.parametrize(
    "change", [("bad x", "bad y"), ("bad x", "bad x, z")], ids=["another text", "a longer text"]
)  # fmt: skip
def test_a_line_that_is_edited_is_new_to_whoever_edits_it(change: tuple[str, str]) -> None:
    baseline = [as_entry(finding) for finding in in_text([change[0]])]
    judged = judge(in_text([change[1]]), baseline)
    assert len(judged.new) == len(judged.gone) == 1


def test_another_rule_or_another_file_is_another_finding_and_a_renamed_file_is_not() -> None:
    text = ["one", "bad", "two"]
    baseline = [as_entry(finding) for finding in in_text(text)]
    assert judge(in_text(text, rule="S"), baseline).new
    moved = in_text([*text, "three"], path="b.c")
    assert judge(moved, baseline).new
    judged = judge(moved, baseline, {"a.c": "b.c", "x.c": "y.c"})
    assert not judged.new and not judged.gone
    assert [entry.path for entry in judged.kept] == ["b.c"]


# --- the baseline

fields = st.text(st.characters(codec="utf-8"), max_size=12)


@given(
    st.lists(
        st.builds(Entry, fields.filter(lambda path: not path.startswith("# ")), fields, fields, fields), max_size=6
    )
)
def test_a_baseline_is_read_as_it_was_written_however_it_is_merged(entries: list[Entry]) -> None:
    entries = [entry for entry in entries if any(attrs.astuple(entry))]
    text = lint.dump(entries)
    assert lint.load(text) == tuple(lint.load(lint.dump(reversed(entries))))
    assert Counter(lint.load(text)) == Counter(entries)
    assert Counter(lint.load(text.replace("\n", "\r\n"))) == Counter(entries), "as git writes it on other systems"
    body = text.removeprefix(lint.HEADER).split("\n")
    assert Counter(lint.load("\n".join(reversed(body)) + "\n" + text)) == Counter(entries + entries)


def test_a_baseline_is_a_line_a_finding_sorted_and_without_line_numbers() -> None:
    found = in_text(["x", "", "  bad\t 2", "y", "bad 1"])
    first, second = lint.dump(map(as_entry, found)).removeprefix(lint.HEADER).splitlines()
    assert first.split("\t")[:2] == ["a.c", "R"] == second.split("\t")[:2]
    assert [line.split("\t")[2] for line in (first, second)] == ["bad 1", "bad 2"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a\tb\tc\n", 1, "3 fields between tabs"),
        ("# x\n<<<<<<< HEAD\na\tb\tc\td\n", 2, "a merge was left unfinished"),
        ("a\tb\tc\td\n=======\n", 2, "a merge was left unfinished"),
        ('{"version": 1}\n', 1, "1 fields"),
    ],
)
def test_a_line_that_is_no_finding_is_told_by_its_number(text: str, line: int, said: str) -> None:
    with pytest.raises(BadBaseline, match=said) as error:
        lint.load(text)
    assert error.value.line == line


# --- what tools say


def test_a_regex_finds_its_groups_in_both_outputs_and_colours_do_not_matter() -> None:
    out = "\x1b[1ma.c:3:9: \x1b[31mW1: not good (3 of 4)\x1b[0m\nsummary: 1 finding\n"
    err = "./sub/../b.c:7:1: W2: bad\n/r/c.c:1:1: W2: bad\n/elsewhere/d.c:1:1: W2: bad\n"
    found = findings.read(REGEX, out, err, "/r", {"a.c": ["", "x", "the  line", "y"]}.get)
    assert [(f.path, f.line, f.what, f.message) for f in found] == [
        ("a.c", 3, "W1", "not good (3 of 4)"), ("b.c", 7, "W2", "bad"), ("c.c", 1, "W2", "bad"),
        ("/elsewhere/d.c", 1, "W2", "bad"),
    ]  # fmt: skip
    assert found[0].text == "the line" and found[1].text == "bad"


def test_without_a_rule_a_finding_is_known_by_its_message_whatever_numbers_are_in_it() -> None:
    once, again = (
        findings.read(
            LINES, f"a.py:{n}: too complex ({n} > 10)\n{n} in all\n", "", "/r", {"a.py": ["def f():"] * 20}.get
        )
        for n in (12, 13)
    )
    assert judge(again, map(as_entry, once)).new == ()
    assert [str(f) for f in once] == ["a.py:12: too complex (12 > 10)", "12 in all"]
    assert judge(
        findings.read(LINES, "a.py:12: too long", "", "/r", {"a.py": ["def f():"] * 20}.get), map(as_entry, once)
    ).new


def sarif(*results: Any, **run: Any) -> str:
    rules = [{"id": "R0"}, {"id": "R1"}]
    return json.dumps({"version": "2.1.0", "runs": [{"tool": {"driver": {"rules": rules}}, "results": results, **run}]})


def result(line: int = 2, **more: Any) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": "src/a%20b.c"}, "region": {"startLine": line}}
    return {"ruleId": "R", "message": {"text": "no good"}, "locations": [{"physicalLocation": place}], **more}


def test_sarif_results_are_findings_unless_they_are_suppressed_or_no_failures() -> None:
    suppressed, open_ = {"kind": "inSource"}, {"kind": "external", "status": "underReview"}
    said = sarif(
        result(), result(kind="pass"), result(kind="informational"), result(suppressions=[suppressed]),
        result(suppressions=[suppressed, open_]), result(ruleId=None, ruleIndex=1), result(ruleId=None, rule={"id": "R0"}),
        {"message": {"id": "m"}},
    )  # fmt: skip
    found = findings.read(SARIF, said, "", "/r", {"src/a b.c": ["x", "bad", "y"]}.get)
    assert [f.what for f in found] == ["R", "R", "R1", "R0", "m"]
    assert {f.path for f in found} == {"src/a b.c", ""}
    assert found[0].text == "bad" and found[0].line == 2


@pytest.mark.parametrize(
    ("uri", "base"),
    [("file:///r/src/a.c", None), ("src/a.c", "file:///r/"), ("./src/a.c", "file:///r/x/../"), ("/r/src/a.c", None)],
)
def test_a_path_in_sarif_has_one_spelling(uri: str, base: str | None) -> None:
    place = {"artifactLocation": {"uri": uri, "uriBaseId": "ROOT"}}
    bases = {"originalUriBaseIds": {"ROOT": {"uri": base}}} if base else {}
    said = sarif(result(locations=[{"physicalLocation": place}]), **bases)
    assert findings.read(SARIF, said, "", "/r", lambda _: None)[0].path == "src/a.c"


def test_what_the_tool_itself_knows_a_finding_by_goes_before_the_text_of_its_line() -> None:
    marks = {"partialFingerprints": {"primaryLocationLineHash": "ab:1"}}
    once = findings.read(SARIF, sarif(result(1, **marks)), "", "/r", {"src/a b.c": ["bad 1"]}.get)
    again = findings.read(SARIF, sarif(result(2, **marks)), "", "/r", {"src/a b.c": ["", "bad, edited"]}.get)
    assert judge(again, map(as_entry, once)).new == ()
    other = findings.read(
        SARIF, sarif(result(1, partialFingerprints={"p": "x"})), "", "/r", {"src/a b.c": ["bad 1"]}.get
    )
    assert judge(other, map(as_entry, once)).new


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "not JSON"),
        ("Traceback (most recent call last):\n", "not JSON"),
        ('{"version": "2.1.0", "ru', "not JSON"),
        ("[]", "no list of `runs`"),
        ('{"runs": {}}', "no list of `runs`"),
        (json.dumps({"runs": [{"results": None}]}), "a run without `results`"),
        (sarif(result(), invocations=[{"executionSuccessful": False}]), "did not come to its end"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_whole_sarif_is_told(said: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        findings.read(SARIF, said, "", "/r", lambda _: None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["runs", "results", "message", "text", "locations", "physicalLocation", "artifactLocation", "uri", "region",
         "startLine", "ruleId", "ruleIndex", "partialFingerprints", "suppressions", "originalUriBaseIds"]), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_no_json_makes_reading_raise_anything_else_and_all_that_is_read_can_be_written(value: Any) -> None:
    for said in (json.dumps(value), json.dumps({"runs": [{"results": [value]}]})):
        try:
            found = findings.read(SARIF, said, "", "/r", lambda _: ["x"])
        except Unreadable:
            continue
        assert Counter(lint.load(lint.dump(map(as_entry, found)))) == Counter(map(as_entry, found))
        lint.dump(map(as_entry, found)).encode()


# --- the exit code and the count are two facts


@pytest.mark.parametrize(
    ("tool", "code", "found", "flags", "why"),
    [
        (SARIF, 0, 0, {}, ""),
        (SARIF, 1, 9, {}, ""),
        (SARIF, 1, 0, {}, ""),
        (REGEX, 1, 9, {}, ""),
        (REGEX, 0, 9, {}, ""),
        (REGEX, 0, 0, {}, ""),
        (REGEX, 1, 0, {}, "exit code 1, and no finding can be read in what it said"),
        (LINES, 1, 0, {}, "exit code 1, and no finding can be read in what it said"),
        (SARIF, 2, 9, {}, "exit code 2; if that is how it says findings, add it to `exit` (0, 1)"),
        (attrs.evolve(SARIF, exit=(0, 2)), 2, 9, {}, ""),
        (attrs.evolve(SARIF, exit=(0, 2)), 1, 9, {}, "exit code 1; if that is how it says findings, add it to `exit` (0, 2)"),
        (SARIF, 127, 0, {}, "exit code 127"),
        (SARIF, -9, 9, {}, "killed by SIGKILL"),
        (REGEX, 139, 9, {}, "crashed with SIGSEGV"),
        (REGEX, 1, 9, {"timed_out": True}, "no end within 600 s"),
        (REGEX, 1, 9, {"too_much_output": True}, "more output than can be kept"),
    ],
)  # fmt: skip
def test_a_tool_that_did_not_come_to_its_end_verifies_nothing(
    tool: Lint, code: int, found: int, flags: dict[str, bool], why: str
) -> None:
    done = Finished((), code, b"", b"", 0.0, None, None, **flags)
    assert lint.unverified(tool, done, found) == why


# --- doit lint

SOURCE = """\
import os
import sys


def f():
    return 1
"""
PLAN = f"""\
version: 1
lint:
  ruff: {{run: "{RUFF} --output-format sarif .", format: sarif, baseline: lint/ruff.txt}}
  brief:
    run: {RUFF} --output-format concise .
    format: regex
    pattern: '(?P<path>\\S+?):(?P<line>\\d+):\\d+: (?P<rule>\\w+) (?P<message>.*)'
    baseline: lint/brief.txt
"""


@pytest.fixture
def place(tmp_path: Path) -> World:
    root = tmp_path / "repo"
    root.mkdir()
    (tmp_path / "gitconfig").write_text(
        "[user]\nname = Tess\nemail = tess@example.invalid\n[init]\ndefaultBranch = main\n"
    )
    world = World(root, tmp_path / "home")
    for path, text in {
        "dodo.py": DODO,
        "tasks.yaml": PLAN,
        ".gitignore": "cache/\n__pycache__/\n",
        "a.py": SOURCE,
    }.items():
        world.write(path, text)
    world.git("init", "--quiet")
    world.commit("begin")
    return world


def events(world: World) -> dict[str, dict[str, Any]]:
    (attempt,) = [e for e in world.events() if e["task"] == "lint"]
    return {each["lint"]: each for each in attempt["lints"]}


def test_a_linter_with_known_findings_is_green_whatever_its_exit_code_and_only_new_ones_fail(place: World) -> None:
    done = place.doit("lint", "ruff", code=1)
    assert "ruff: exit code 1; 2 findings (0 known, 2 new): not green" in done.out
    assert "a.py:1: F401: `os` imported but unused" in done.out
    assert "there is no lint/ruff.txt yet; `doit lint --accept` begins one with these" in done.out
    assert place.git("status", "--porcelain") == "", "nothing is written that nobody asked for"

    done = place.doit("-n", "2", "lint", "--accept")
    assert "2 accepted into lint/ruff.txt: 2 more, 0 gone; commit it" in done.out
    place.commit("baselines")
    done = place.doit("-n", "2", "lint")
    for name in ("ruff", "brief"):
        assert (
            f"{name}: exit code 1; 2 findings (2 known, 0 new): green, for no finding is new: the exit code does not count"
            in done.out
        )
    assert {(e["exit_code"], e["known"], e["new"], e["outcome"]) for e in events(place).values()} == {(1, 2, 0, "ok")}

    # Lines shift, and one of the known lines is copied: the copy alone is new.
    place.write("a.py", f"# a comment\n\n{SOURCE}\n\ndef g():\n    import os\n")
    done = place.doit("lint", "ruff", code=1)
    assert "3 findings (2 known, 1 new): not green" in done.out
    assert "a.py:12: F401" in done.out and "a.py:3:" not in done.out
    assert events(place)["ruff"]["outcome"] == "new-findings"

    # Renamed and edited: known by the name that git gives. Then one is mended: it goes, and the file keeps its rights.
    place.git("mv", "a.py", "b.py")
    place.write("b.py", f"# a comment\n{SOURCE}")
    (place.root / "lint/ruff.txt").chmod(0o640)
    done = place.doit("lint", "ruff")
    assert "(2 known, 0 new)" in done.out and "2 moved with its file" in done.out
    assert [line.split("\t")[0] for line in place.read("lint/ruff.txt").splitlines()[2:]] == ["b.py"] * 2
    place.write("b.py", SOURCE.replace("import sys\n", ""))
    done = place.doit("lint", "ruff")
    assert "exit code 1; 1 finding (1 known, 0 new, 1 gone): green" in done.out
    assert "1 gone from lint/ruff.txt; commit it" in done.out
    assert len(place.read("lint/ruff.txt").splitlines()) == 3
    assert (place.root / "lint/ruff.txt").stat().st_mode & 0o777 == 0o640

    # What is edited while another is new is not forgotten: taken back, it is known again.
    before = place.read("lint/ruff.txt")
    place.edit("b.py", "import os", "import os as other")
    assert "1 new, 1 gone" in place.doit("lint", "ruff", code=1).out
    assert place.read("lint/ruff.txt") == before
    place.edit("b.py", "import os as other", "import os")
    assert "(1 known, 0 new): green" in place.doit("lint", "ruff").out


def test_a_linter_that_breaks_is_unverified_and_its_baseline_stays_as_it_was(place: World) -> None:
    place.doit("lint", "ruff", "--accept")
    before = place.read("lint/ruff.txt")
    place.edit("tasks.yaml", f'run: "{RUFF} --output-format sarif ."', "run: 'echo half >&2; kill -9 $$'")
    done = place.doit("lint", "ruff", code=1)
    assert "ruff: unverified: killed by SIGKILL\n  half" in done.out
    assert "unverified: ruff; see above" in done.both
    assert events(place)["ruff"] | {"known": 0} == {
        "lint": "ruff", "outcome": "unverified", "exit_code": -9, "why": "killed by SIGKILL", "known": 0, "new": 0, "gone": 0,
    }  # fmt: skip
    done = place.doit("lint", "ruff", "--accept", code=1)
    assert "nothing is accepted, and lint/ruff.txt is as it was" in done.out
    assert place.read("lint/ruff.txt") == before
    place.edit("tasks.yaml", "run: 'echo half >&2; kill -9 $$'", "run: 'echo half; exit 1'")
    assert "exit code 1, and what it said is no SARIF: it is not JSON" in place.doit("lint", "ruff", code=1).out
    place.edit("tasks.yaml", "run: 'echo half; exit 1'", "run: 'echo new > a.txt; echo {\\\"runs\\\": []}'")
    done = place.doit("lint", "ruff", code=1)
    assert "a linter changed files: a.txt" in done.both


def test_a_name_that_is_none_and_a_plan_without_linters_are_told(place: World) -> None:
    assert "'raff' is none of ruff, brief" in place.doit("lint", "raff", code=3).both
    place.write("tasks.yaml", "version: 1\ntasks:\n  - {name: a, run: 'true'}\n")
    assert "declares no linter" in place.doit("lint", code=1).both


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("format: sarif", "format: sarf", "3: lint.ruff.format: no such name, got 'sarf'; did you mean 'sarif'?"),
        ("    pattern", "    patern", "7: lint.brief.patern: no key 'patern' here; did you mean 'pattern'?"),
        ("(?P<path>", "(?P<file>", "7: lint.brief.pattern: no group 'file' here; say one of path, line, rule, message"),
        ("(?P<path>", "(?P<path", "is no regular expression: "),
        ("format: regex", "format: lines", "7: lint.brief.pattern: `format: lines` takes no `pattern`; `format: regex` and `pattern` go together"),
        ("format: sarif", "format: regex", "3: lint.ruff: `pattern` is missing; `format: regex` and `pattern` go together"),
        ("lint/brief.txt", "lint/ruff.txt", "8: lint.brief.baseline: two linters have the baseline 'lint/ruff.txt'; give each a file of its own"),
        ("lint/brief.txt", "../x", "8: lint.brief.baseline: '../x' lies outside the project; name a file of the project"),
        ("lint/brief.txt", "a.py", "8: lint.brief.baseline: 'a.py' is no baseline: line 1: 1 fields between tabs, where a finding has 4; mend it, or delete it and run `doit lint --accept`"),
        ("lint/brief.txt", ".git", "8: lint.brief.baseline: '.git' cannot be read: Is a directory; mend it, or"),
        ("format: regex", "format: regex\n    exit: [0, 256]", "7: lint.brief.exit[1]: expected a number from 0 to 255, got 256"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_before_anything_runs(place: World, old: str, new: str, said: str) -> None:
    place.edit("tasks.yaml", old, new)
    done = place.doit("list", code=3)
    assert said in done.both
    assert not (place.root / "lint").exists()


def test_one_linter_may_stand_without_a_name_and_its_mistakes_have_their_place(place: World) -> None:
    one = f"version: 1\nlint:\n  run: {RUFF} --output-format concise -q .\n  format: lines\n  baseline: known.txt\n"
    place.write("tasks.yaml", one)
    assert "lint: exit code 1; 2 findings (0 known, 2 new): not green" in place.doit("lint", code=1).out
    place.write("tasks.yaml", one.replace("lines", "line"))
    assert (
        "tasks.yaml:4: lint.format: no such name, got 'line'; did you mean 'lines'?" in place.doit("list", code=3).both
    )


def test_what_a_person_leaves_in_a_baseline_is_told_with_its_line(place: World) -> None:
    place.doit("lint", "--accept")
    text = place.read("lint/ruff.txt")
    place.write("lint/ruff.txt", text + "<<<<<<< HEAD\n")
    done = place.doit("lint", code=3)
    assert (
        f"'lint/ruff.txt' is no baseline: line {len(text.splitlines()) + 1}: a merge was left unfinished; mend it"
        in done.both
    )
    (place.root / "lint" / "ruff.txt").unlink()
    place.doit("lint", "--accept")
    assert place.read("lint/ruff.txt") == text


def test_two_branches_with_findings_of_their_own_merge_without_a_conflict(place: World) -> None:
    lines = "".join(f"import m{n:02}\n" for n in range(20))
    place.write("a.py", lines)
    place.doit("lint", "ruff", "--accept")
    place.commit("known")
    for branch, old, new in (("x", "import m02\n", ""), ("y", "import m17\n", "import m17\nimport m17b\n")):
        place.git("checkout", "--quiet", "-b", branch, "main")
        place.edit("a.py", old, new)
        place.doit("lint", "ruff", "--accept")
        place.commit(branch)
    place.git("merge", "--quiet", "x")
    done = place.doit("lint", "ruff")
    assert "20 findings (20 known, 0 new): green" in done.out
