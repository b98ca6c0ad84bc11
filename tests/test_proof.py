"""What a candidate must do to become a proof. The engine is a stand-in: which tests it runs, and what they do, is
read from the text of the test file that it is given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines import Engine, Switch, TestResult, TestRun
from pipeline.engines.stryker_js.suite import JavaScriptSuite
from pipeline.model import Scope
from pipeline.proof import Bench, cover, elsewhere, holds, prove
from pipeline.results import Dropped, Outcome, Proved, Survivor, Test
from pipeline.sandbox import Sandbox
from pipeline.worktree import Worktree

WRITE = "x.mutants.test.js"


@attrs.define
class Place:
    """A worktree without git: one file in a folder."""

    root: Path
    strayed: tuple[str, ...] = ()

    def reset(self, tree: str) -> None:
        (self.root / WRITE).unlink(missing_ok=True)

    def changed(self) -> tuple[str, ...]:
        return (WRITE, *self.strayed)


@attrs.define
class Runs:
    """Tests do what words in their bodies say: kills(a), fails, breaks (the file does not load), flaky, harms, skips
    (another), leans (on a test beside it), local (to its time zone), reads (it fails in the code with mutants), leaves,
    spoils (those after it fail), ends (the process), hangs(a) (with that mutant on), throws(a) (by its own fault),
    lingers (alone, its process does not end well, though it passes), strays (so in one shuffled run)."""

    broken: str = ""  # the outcome of every run that has a switch laid
    needy: bool = False  # the covering tests fail in a sandbox
    boxes: list[tuple[bool, Sandbox | None]] = attrs.field(
        factory=list
    )  # of each run: the write file alone? where may it write?
    names: bool = False  # whether a build that fails names the test that does it
    tells: bool = True  # whether a run tells which mutants its tests reach
    suite: JavaScriptSuite = attrs.field(factory=JavaScriptSuite)
    count: Counter[str] = attrs.field(factory=Counter)
    # of each run of the write file: the mutant, what the file holds, what of it was asked for
    asked: list[tuple[str | None, tuple[str, ...], Sequence[str] | None]] = attrs.field(factory=list)

    def test(
        self, root: Path, files: Sequence[str], *, mutant: str | None = None, timeout: float, record: bool = False,
        shuffle: int | None = None, only: Sequence[str] | None = None, env: Mapping[str, str] | None = None,
        sandbox: Sandbox | None = None, watch: bool = False,
    ) -> TestRun:  # fmt: skip
        text = (root / WRITE).read_text() if (root / WRITE).exists() else ""
        bodies = {self.suite.titles(b)[0]: b for b in self.suite.bodies(text)}
        if any("breaks" in b for b in bodies.values()):
            guilty = [TestResult(WRITE, t, "failed", "other", "line 7") for t, b in bodies.items() if "breaks" in b]
            return TestRun(Outcome.BUILD_ERROR, "SyntaxError", tuple(guilty) if self.names else ())
        self.boxes.append((files == [WRITE], sandbox))
        self.asked += [(mutant, tuple(bodies), only)] if files == [WRITE] else []
        for title, body in bodies.items():
            if only is not None and title not in only:
                continue
            if "ends" in body:
                return TestRun(Outcome.CRASHED, "died", running=title)
            if f"hangs({mutant})" in body:
                late = TestResult(WRITE, title, "failed", "assertion", "so")
                return TestRun(Outcome.TIME_LIMIT, "it did not end", (late,), running=title)
        if mutant is not None and self.broken:
            return TestRun(Outcome(self.broken), "it did not end")
        reached: dict[str, tuple[str, ...]] = {}
        tests = []
        spoilt = False
        for title, body in bodies.items():
            if only is not None and title not in only:
                continue
            kills = re.findall(r"(?:kills|hangs|throws)\((\w)\)", body)
            for key in kills:
                reached[key] = (*reached.get(key, ()), title)
            bad = "fails" in body or mutant in kills or ("flaky" in body and shuffle == 3)
            bad |= spoilt or ("reads" in body and mutant is not None)
            bad |= ("leans" in body and only == [title]) or ("local" in body and "TZ" in (env or {}))
            spoilt |= "spoils" in body
            left = "it leaves x changed" if "leaves" in body and watch else ""
            kind = "other" if f"throws({mutant})" in body else "assertion"
            state, kind = ("failed", kind) if bad else ("passed", "")
            tests.append(TestResult(WRITE, title, state, kind, "so", left))
        if files != [WRITE]:
            harmed = any("harms" in b for b in bodies.values()) or (self.needy and sandbox is not None)
            skipped = any("skips" in b for b in bodies.values())
            state = "failed" if harmed else "skipped" if skipped else "passed"
            tests.append(TestResult("x.test.js", "own", state, "other", "harmed"))
        if any(("lingers" in b and only == [t]) or ("strays" in b and shuffle == 3) for t, b in bodies.items()):
            return TestRun(Outcome.CRASHED, "a program outlived it", tuple(tests))
        self.count["run"] += 1
        known = reached if self.tells else None
        return TestRun(Outcome.OK, "", tuple(tests), inputs=("x.js",), reached=known)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    scope = Scope(name="x", mutate=("x.js",), tests=("x.test.js",), write=WRITE)
    return Bench(
        cast(Engine, Runs()), cast(Worktree, Place(tmp_path)), "tree", scope,
        Switch({}, {k: k for k in "abc"}), ("x.test.js",), 0.1, 1,
    )  # fmt: skip


SURVIVORS = [Survivor(k, "x.js", "M", "o", "r", "h") for k in "abc"]


def candidate(title: str, does: str) -> Test:
    return Test(title, f"it('{title}', () => {{\n  {does}\n}});")


def judge(bench: Bench, *tests: Test, **more: Any) -> tuple[dict[str, tuple[str, ...]], dict[str, Dropped]]:
    verdict = prove(bench, more.pop("base", ""), (), tests, SURVIVORS, 5, **more)
    return {p.test.title: p.test.kills for p in verdict.proved}, {d.title: d for d in verdict.dropped}


def test_of_what_was_built_once_no_part_is_built_but_what_is_needed_and_that_alone_is_judged_for_a_proof(
    bench: Bench,
) -> None:
    engine = Runs(suite=JavaScriptSuite(ordered=False), names=True)
    tests = {
        "wrong": "fails", "broken": "breaks", "last": "ends", "one": "kills(a)", "two": "kills(a); kills(b)",
        "three": "kills(c)", "idle": "nothing",
    }  # fmt: skip
    proved, dropped = judge(
        attrs.evolve(bench, engine=cast(Engine, engine)), *(candidate(t, does) for t, does in tests.items())
    )
    assert proved == {"two": ("a", "b"), "three": ("c",)}
    assert {t: d.outcome for t, d in dropped.items()} == {
        "wrong": Outcome.REJECTED, "broken": Outcome.BUILD_ERROR, "last": Outcome.CRASHED, "one": Outcome.REJECTED,
        "idle": Outcome.REJECTED,
    }  # fmt: skip
    built = list(dict.fromkeys(titles for _, titles, _ in engine.asked))
    assert built == [("wrong", "last", "one", "two", "three", "idle"), ("two", "three")]
    exact = [(mutant, only) for mutant, titles, only in engine.asked if titles == ("two", "three")]
    assert {m for m, only in exact if only is None} == {None, "", *"abc"}  # each mutant met that very text, whole
    assert all(only for _, titles, only in engine.asked[1:] if titles == built[0])  # but for the first, which one ended


def test_where_the_whole_of_what_was_built_cannot_be_judged_its_part_is(bench: Bench) -> None:
    @attrs.define
    class Whole(Runs):
        def test(self, root: Path, files: Sequence[str], **more: Any) -> TestRun:
            if more.get("mutant") is not None and more.get("only") is not None:
                return TestRun(Outcome.UNVERIFIED, "of whole files only")
            return Runs.test(self, root, files, **more)

    there = attrs.evolve(bench, engine=cast(Engine, Whole(suite=JavaScriptSuite(ordered=False))))
    proved, _ = judge(there, candidate("wrong", "fails"), candidate("one", "kills(a)"))
    assert proved == {"one": ("a",)}


def test_each_test_is_credited_with_what_it_was_seen_to_kill_whatever_it_claims(bench: Bench) -> None:
    claims = attrs.evolve(candidate("one", "kills(a)"), kills=("b", "c"))
    proved, dropped = judge(bench, claims, candidate("two", "kills(b)"))
    assert proved == {"one": ("a",), "two": ("b",)}
    assert dropped == {}


@pytest.mark.parametrize(
    ("does", "outcome", "reason"),
    [
        ("fails", Outcome.REJECTED, "it fails on the original: so"),
        ("breaks", Outcome.BUILD_ERROR, "SyntaxError"),
        ("nothing", Outcome.REJECTED, "it kills nothing"),
        ("kills(b); flaky", Outcome.REJECTED, "it passes on the original in 4 of 5 runs"),
        ("kills(b); leans", Outcome.REJECTED, "alone and with TZ=Pacific/Chatham it fails: so"),
        ("kills(b); local", Outcome.REJECTED, "alone and with TZ=Pacific/Chatham it fails: so"),
        ("kills(b); lingers", Outcome.REJECTED, "alone and with TZ=Pacific/Chatham a program outlived it"),
        ("kills(b); harms", Outcome.REJECTED, "beside it, x.test.js: own fails: harmed"),
        ("kills(b); skips", Outcome.REJECTED, "beside it, x.test.js: own is skipped, or not there any more"),
        (
            "kills(b); reads", Outcome.REJECTED,
            "it fails in the code with the mutants, none of them on: it looks at the code's text",
        ),
        ("kills(b); leaves", Outcome.REJECTED, "it leaves x changed"),
        ("kills(b); spoils", Outcome.REJECTED, "after it, 'good c' fails"),
        ("kills(b); ends", Outcome.CRASHED, "died"),
    ],
)  # fmt: skip
def test_one_bad_test_is_dropped_with_its_reason_and_takes_no_other_with_it(
    bench: Bench, does: str, outcome: Outcome, reason: str
) -> None:
    good = [candidate(f"good {k}", f"kills({k})") for k in "ac"]
    proved, dropped = judge(bench, good[0], candidate("bad", does), good[1])
    assert proved == {"good a": ("a",), "good c": ("c",)}
    assert {t: (d.outcome, d.reason, d.failed) for t, d in dropped.items()} == {"bad": (outcome, reason, True)}


def test_a_test_whose_kills_others_have_is_dropped_without_having_failed(bench: Bench) -> None:
    proved, dropped = judge(bench, candidate("a", "kills(a)"), candidate("b", "kills(a); kills(b)"))
    assert proved == {"b": ("a", "b")}
    assert not dropped["a"].failed and dropped["a"].reason == "every mutant it kills is killed by another test"


def test_a_test_that_spoils_those_after_it_is_told_from_them_wherever_it_stands(bench: Bench) -> None:
    good = [candidate(f"good {k}", f"kills({k})") for k in "ab"]
    bad = candidate("bad", "kills(c); spoils")
    for tests in ([bad, *good], [good[0], bad, good[1]], [*good, bad]):
        proved, dropped = judge(bench, *tests)
        assert proved.keys() == {"good a", "good b"}
        assert re.fullmatch("after it, 'good [ab]' fails", dropped["bad"].reason)


def test_what_a_bad_test_made_needless_is_not_lost_with_it(bench: Bench) -> None:
    cheap, dear = candidate("cheap", "kills(a); flaky"), candidate("dear", "kills(a);         ;")
    proved, dropped = judge(bench, cheap, dear)
    assert proved == {"dear": ("a",)}
    assert dropped.keys() == {"cheap"} and "4 of 5 runs" in dropped["cheap"].reason


def test_what_nobody_has_read_runs_in_a_sandbox_always_and_by_itself_may_write_nowhere(bench: Bench) -> None:
    judge(bench, candidate("a", "kills(a)"), candidate("bad", "kills(b); harms"))
    boxes = cast(Runs, bench.engine).boxes
    assert {box for alone, box in boxes if alone} == {Sandbox(())}
    assert {box for alone, box in boxes if not alone} == {Sandbox((bench.worktree.root,))}


def test_where_the_projects_own_tests_need_more_than_a_sandbox_allows_they_are_run_beside_it_without(
    bench: Bench,
) -> None:
    cast(Runs, bench.engine).needy = True
    proved, dropped = judge(bench, candidate("a", "kills(a)"), candidate("bad", "kills(b); harms"))
    assert proved == {"a": ("a",)}
    assert dropped["bad"].reason == "beside it, x.test.js: own fails: harmed"
    boxes = cast(Runs, bench.engine).boxes
    assert None in {box for alone, box in boxes if not alone}
    assert {box for alone, box in boxes if alone} == {Sandbox(())}


def test_a_test_that_stands_on_the_branch_stays_when_a_better_one_comes(bench: Bench) -> None:
    proved, _ = judge(bench, candidate("a", "kills(a)"), candidate("b", "kills(a); kills(b)"), standing=["a"])
    assert proved == {"a": ("a",), "b": ("a", "b")}


def test_of_two_with_one_title_the_other_is_judged_where_the_first_does_not_hold(bench: Bench) -> None:
    proved, dropped = judge(bench, candidate("t", "fails"), candidate("t", "kills(a)"))
    assert proved == {"t": ("a",)}
    assert dropped["t"].code == candidate("t", "fails").code
    proved, dropped = judge(bench, candidate("t", "kills(a)"), candidate("t", "kills(b)"))
    assert proved == {"t": ("a",)}
    assert dropped["t"].reason == "the file has a test of this title"


@pytest.mark.parametrize("outcome", [Outcome.TIME_LIMIT, Outcome.CRASHED])
def test_what_could_not_be_run_with_mutants_is_unverified_and_has_not_failed(bench: Bench, outcome: Outcome) -> None:
    cast(Runs, bench.engine).broken = outcome
    proved, dropped = judge(bench, candidate("a", "kills(a)"))
    assert proved == {}
    assert dropped["a"].outcome is Outcome.UNVERIFIED and not dropped["a"].failed


def test_a_test_that_the_compiler_names_is_dropped_alone_and_the_rest_is_built_once_more(bench: Bench) -> None:
    runs = cast(Runs, bench.engine)
    runs.names = True
    good = [candidate(f"good {k}", f"kills({k})") for k in "abc"]
    proved, dropped = judge(bench, *good[:2], candidate("bad", "breaks"), good[2])
    assert set(proved) == {"good a", "good b", "good c"}
    assert (dropped["bad"].outcome, dropped["bad"].reason, dropped["bad"].failed) == (
        Outcome.BUILD_ERROR, "line 7", True,
    )  # fmt: skip
    named = runs.count["run"]
    runs.names, runs.count = False, Counter()
    assert judge(bench, *good[:2], candidate("bad", "breaks"), good[2])[0] == proved
    assert named < runs.count["run"]  # found by halves, the good ones are run in parts


def test_where_nobody_tells_what_tests_reach_every_mutant_is_tried(bench: Bench) -> None:
    cast(Runs, bench.engine).tells = False
    proved, _ = judge(bench, candidate("one", "kills(a)"), candidate("two", "kills(b); kills(c)"))
    assert proved == {"one": ("a",), "two": ("b", "c")}


def test_only_a_failed_assertion_or_an_exception_of_the_code_in_a_run_to_its_end_is_a_kill(bench: Bench) -> None:
    proved, dropped = judge(bench, candidate("one", "kills(a); hangs(b); throws(c)"), candidate("two", "hangs(b)"))
    assert proved == {"one": ("a",)}
    assert dropped["two"].reason == "it kills nothing"


def test_one_that_never_ends_on_a_mutant_hides_no_kill_of_the_others(bench: Bench) -> None:
    endless = [candidate(f"endless {i}", "hangs(a); kills(b)") for i in range(2)]
    proved, dropped = judge(bench, *endless, candidate("good", "kills(a)"))
    assert proved["good"] == ("a",) and sorted(proved) == ["endless 1", "good"]
    assert dropped["endless 0"].reason == "every mutant it kills is killed by another test"
    landed = [Proved(endless[0], {"b": "assertion"}), Proved(candidate("good", "kills(a)"), {"a": "assertion"})]
    assert holds(bench, bench.engine.suite.add("", [p.test for p in landed]), landed, 5) == ()


def test_where_the_code_itself_seems_never_to_end_not_every_test_is_asked_whether_it_is_to_blame(bench: Bench) -> None:
    judge(bench, *(candidate(f"{i}", "hangs(a); kills(b)") for i in range(9)))
    met = [held for mutant, held, _ in cast(Runs, bench.engine).asked if mutant == "a"]
    assert [len(held) for held in met] == [9, 9, 9, 9, 1]


def test_a_file_that_is_written_only_beside_the_covering_tests_drops_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = cast(Runs, bench.engine).boxes  # of the last run
    monkeypatch.setattr(Place, "changed", lambda _: (WRITE,) if alone[-1][0] else (WRITE, "y.js"))
    proved, dropped = judge(bench, candidate("a", "kills(a)"))
    assert proved == {}
    assert (dropped["a"].outcome, dropped["a"].reason) == (Outcome.OUTSIDE_SCOPE, "the tests wrote y.js")


def test_a_test_that_writes_a_file_is_outside_its_scope(bench: Bench) -> None:
    cast(Place, bench.worktree).strayed = ("/etc/x", "y.js")
    proved, dropped = judge(bench, candidate("a", "kills(a)"))
    assert proved == {}
    assert (dropped["a"].outcome, dropped["a"].reason) == (Outcome.OUTSIDE_SCOPE, "it wrote /etc/x, y.js")


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ("kills(a); kills(b)", None),
        ("kills(a)", "1 of 2 kills are lost"),
        ("kills(a); kills(b); flaky", "it passes on the original in 4 of 5 runs"),
        ("kills(a); kills(b); strays", "it passes on the original in 4 of 5 runs"),
        ("kills(a); kills(b); local", "alone and with TZ=Pacific/Chatham it fails: so"),
        ("kills(a); kills(b); harms", "beside it, x.test.js: own fails: harmed"),
        ("kills(a); kills(b); skips", "beside it, x.test.js: own is skipped, or not there any more"),
        ("breaks", "SyntaxError"),
    ],
)
def test_what_was_proved_holds_on_another_text_only_if_all_of_it_does(bench: Bench, now: str, why: str | None) -> None:
    verdict = prove(bench, "", (), [candidate("t", "kills(a); kills(b)")], SURVIVORS, 5)
    text = JavaScriptSuite().add("", [candidate("t", now)])
    assert [d.reason for d in holds(bench, text, verdict.proved, 5)] == ([why] if why else [])


def test_what_cannot_be_run_with_mutants_any_more_does_not_hold_and_has_not_failed(bench: Bench) -> None:
    test = candidate("t", "kills(a)")
    verdict = prove(bench, "", (), [test], SURVIVORS, 5)
    cast(Runs, bench.engine).broken = Outcome.CRASHED
    (dropped,) = holds(bench, JavaScriptSuite().add("", [test]), verdict.proved, 5)
    assert (dropped.outcome, dropped.failed) == (Outcome.UNVERIFIED, False)


@pytest.mark.parametrize(
    ("seconds_west", "spoken", "zone", "locale"),
    [
        (0, "", "Pacific/Chatham", "tr_TR.UTF-8"),
        (-45900, "en_NZ.UTF-8", "America/St_Johns", "tr_TR.UTF-8"),  # Chatham itself: 12:45 before Greenwich
        (45900, "tr_TR.UTF-8", "Pacific/Chatham", "de_DE.UTF-8"),
    ],
)
def test_elsewhere_is_another_time_zone_and_another_locale_than_here(
    monkeypatch: pytest.MonkeyPatch, seconds_west: int, spoken: str, zone: str, locale: str
) -> None:
    monkeypatch.setattr("time.timezone", seconds_west)
    monkeypatch.setenv("LC_ALL", "")
    monkeypatch.setenv("LANG", spoken)
    assert elsewhere() == {"TZ": zone, "LC_ALL": locale, "LANG": locale}
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    assert elsewhere()["LANG"] == "de_DE.UTF-8"


def test_a_process_has_ten_times_as_long_as_the_covering_tests_and_ten_seconds_at_least(bench: Bench) -> None:
    assert [attrs.evolve(bench, seconds=seconds).limit for seconds in (0.0, 0.9, 1.2, 3.0)] == [10.0, 10.0, 12.0, 30.0]


def test_what_the_later_ones_of_a_cover_make_needless_goes_again() -> None:
    kills = {"most": "abcd", "left": "abe", "right": "cdf"}
    chosen = cover({title: dict.fromkeys(keys, "assertion") for title, keys in kills.items()}, dict.fromkeys(kills, 1))
    assert chosen == {"left", "right"}


def test_what_stands_already_need_not_be_killed_again_and_the_cheaper_of_equals_is_chosen() -> None:
    kills = {title: dict.fromkeys(keys, "assertion") for title, keys in {"s": "abcd", "dear": "abce", "x": "e"}.items()}
    assert cover(kills, {"s": 1, "dear": 9, "x": 1}, ["s"]) == {"s", "x"}


KILLS = st.dictionaries(
    st.text("stuvw", min_size=1, max_size=3), st.dictionaries(st.sampled_from("abcdefgh"), st.just("assertion"))
)


@given(KILLS, st.sets(st.text("stuvw", min_size=1, max_size=3)), st.data())
def test_a_cover_keeps_every_kill_and_what_stands_and_no_new_test_that_is_not_needed(
    kills: Mapping[str, Mapping[str, str]], standing: set[str], data: st.DataObject
) -> None:
    cost = {title: data.draw(st.integers(1, 9)) for title in kills}
    chosen = cover(kills, cost, standing)

    def killed(titles: frozenset[str]) -> set[str]:
        return {key for t in titles for key in kills[t]}

    assert killed(chosen) == killed(frozenset(kills))
    assert {t for t in standing if kills.get(t)} <= chosen
    assert all(killed(chosen - {t}) < killed(chosen) for t in chosen - standing)
    assert cover(dict(reversed(list(kills.items()))), cost, standing) == chosen
