"""`doit prove`: every landed test again, from its stored proof alone. Each check sees what is done to exactly that."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import jsonschema
import pytest
from conftest import World
from hypothesis import given
from hypothesis import strategies as st

from pipeline import sandbox, store
from pipeline.engines import TestResult, TestRun
from pipeline.equivalent import TRIES, possibly_equivalent
from pipeline.mutants import Raw, Status, as_kill, find_span, identify, mutate, with_kill
from pipeline.recheck import unneeded
from pipeline.rerun import rerun
from pipeline.results import KILLS_NOTHING, Candidates, Dropped, Kill, Outcome, Proofs, Proved, Test

HERE = Path(__file__).parent
BRANCH, CART, WRITE = "mutate/main", "src/cart.js", "test/cart.mutants.test.js"
TITLE = "isFree returns true for no items"  # the one test that lands for src/cart.js
TRAILERS = f"\n\nMutate-Scope: {CART}\nMutate-Base: 0"


def commit(world: World, act: Callable[[Path], object], message: str, *options: str) -> None:
    """A commit on the landing branch of what is done to the files of a checkout of it."""
    place = world.root.parent / "theirs"
    world.git("worktree", "add", "--quiet", str(place), BRANCH)
    act(place)
    world.git("-C", str(place), "add", "--all")
    world.git("-C", str(place), "commit", "--quiet", *options, "--message", message)
    world.git("worktree", "remove", "--force", str(place))


def replaced(path: str, old: str, new: str) -> Callable[[Path], object]:
    def act(place: Path) -> None:
        text = (place / path).read_text()
        assert old in text
        (place / path).write_text(text.replace(old, new))

    return act


def proof_file(world: World) -> Path:
    (found,) = world.home.glob("data/projects/*/tests/*cart*/*.json")
    return found


def stored(world: World, change: Callable[[Any], object]) -> None:
    """Change what the store has of the test."""
    data = json.loads(proof_file(world).read_text())
    change(data)
    proof_file(world).write_text(json.dumps(data))


def claimed(key: str, value: object) -> Callable[[World], object]:
    """Another claim in its proof, about the first of the two mutants."""
    return lambda w: stored(w, lambda data: data["proofs"][0]["kills"][0].update({key: value}))


def forged(statement: str, runs: int = 2) -> Callable[[World], object]:
    """The test does one thing more, in the store and on the branch, as if it had been proved so."""

    def act(world: World) -> None:
        def change(data: Any) -> None:
            code = data["test"]["code"]
            data["test"]["code"] = data["as_landed"] = new = code.replace("{\n", f"{{\n  {statement}\n", 1)
            data["proofs"][0]["runs"] = runs
            commit(world, replaced(WRITE, code, new), f"forge{TRAILERS}")

        stored(world, change)

    return act


def twin(world: World) -> None:
    """A second test that does the same, with a proof of its own."""
    data = json.loads(proof_file(world).read_text())
    data["test"] |= {"title": "twin", "code": data["test"]["code"].replace(TITLE, "twin")}
    data["as_landed"] = data["test"]["code"]
    (proof_file(world).parent / "twin.json").write_text(json.dumps(data))
    commit(world, added(data["test"]["code"]), f"twin{TRAILERS}")


def added(code: str) -> Callable[[Path], object]:
    return lambda place: (place / WRITE).write_text(f"{(place / WRITE).read_text()}\n{code}\n")


def leaning(world: World) -> None:
    """The test needs one before it that somebody has put there."""
    first = "it('first', () => {\n  globalThis.ready = true;\n});\n\n"
    commit(world, replaced(WRITE, "// Pins", f"{first}// Pins"), "by hand")
    forged("assert.ok(globalThis.ready);")(world)


def merged(world: World) -> None:
    """HEAD has the landed test, and one of somebody's beside it, which a commit of ours skips."""
    world.git("merge", "--quiet", BRANCH)
    added("it('theirs', () => {\n  assert.ok(isFree);\n});")(world.root)
    world.commit("by hand")
    world.git("branch", "--force", BRANCH, "HEAD")
    commit(world, replaced(WRITE, "it('theirs'", "it.skip('theirs'"), f"skip{TRAILERS}")


FALSE = f"{TITLE}: kills: {CART}: ConditionalExpression: total(items) <= 0 -> "
TAMPERED: Mapping[str, tuple[Callable[[World], object], Sequence[str]]] = {
    "a landed test that asserts nothing any more": (
        lambda w: commit(w, replaced(WRITE, "  assert", "  // assert"), "by hand"),
        [f"{TITLE}: text: its text in {WRITE} is not the one that was proved: nothing is proved of it"],
    ),
    "a test that no proof is stored of": (
        lambda w: proof_file(w).unlink(),
        [f"{TITLE}: text: no proof of it is stored"],
    ),
    "a stored proof that is none": (
        lambda w: stored(w, lambda data: data.update(proofs=[])),
        [f"{TITLE}: proof: none is stored with it: take it out"],
    ),
    "a proof that says nothing": (
        lambda w: stored(w, lambda data: data["proofs"][0].update(kills=[], elsewhere={"CI": "1"}, runs=0)),
        [
            f"{TITLE}: kills: its proof names no mutant",
            f"{TITLE}: kills: it is stored with 2 kills that none of its proofs names",
            f"{TITLE}: alone: its proof names no other time zone and locale",
        ],
    ),
    "a proof that does not say what it is about": (
        lambda w: stored(w, lambda data: data["proofs"][0].update(inputs={})),
        [f"{TITLE}: inputs: {CART} is not among what its proof says that it was proved on"],
    ),
    "a kill that the proof has lost": (
        lambda w: stored(w, lambda data: data["proofs"][0]["kills"].pop()),
        [f"{TITLE}: kills: it is stored with 1 kills that none of its proofs names"],
    ),
    "a mutant of a test": (
        claimed("file", "test/cart.test.js"),
        [
            f"{TITLE}: kills: its proof names mutants of tests: test/cart.test.js",
            "unverified: the source does not hold it any more",
        ],
    ),
    "a mutant that is none": (
        claimed("replacement", "total(items) <= 0"),
        [f"{FALSE}total(items) <= 0: it passes with this mutant"],
    ),
    "a mutant of a line that is not there": (
        claimed("place", ["export function isFree(items) {", "return total(items) <= 1;"]),
        [f"{FALSE}false: unverified: the source does not hold it any more"],
    ),
    "a mutant of a file outside": (
        lambda w: claimed("file", str(w.home.parent / "gitconfig"))(w),
        [
            "gitconfig is not among what its proof says that it was proved on",
            "gitconfig is no file of the project",
        ],
    ),
    "a file that the tests load": (
        lambda w: commit(w, replaced("src/price.js", "net < 0", "net <  0"), "by hand"),
        [f"{TITLE}: inputs: it was proved on another src/price.js than "],
    ),
    "a stray file in a commit of ours, and a standing test that it skips": (
        lambda w: commit(w, replaced("test/cart.test.js", "it('adds", "it.skip('adds"), f"skip{TRAILERS}"),
        [
            "files: commit ", f"{TITLE}: inputs: it was proved on another test/cart.test.js than ",
            "cart adds up: kept: test/cart.test.js: is skipped",
        ],
    ),
    "a standing test of the write file that is skipped": (
        merged,
        ["theirs: kept: HEAD has it, and on the branch it is changed, skipped or gone"],
    ),
    "a test that is not steady": (
        forged("assert.ok(process.env.TZ === 'Pacific/Chatham' || Math.random() < 0.5);", runs=16),
        [f"{TITLE}: runs: it passes in "],
    ),
    "a test that its time zone decides": (
        forged("assert.notEqual(new Date(0).getTimezoneOffset(), -765);"),
        [f"{TITLE}: alone: alone, with LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8 TZ=Pacific/Chatham: it fails: "],
    ),
    "a test that its locale decides": (
        forged("assert.notEqual(new Intl.NumberFormat().resolvedOptions().locale, 'tr-TR');"),
        [f"{TITLE}: alone: alone, with LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8 TZ=Pacific/Chatham: it fails: "],
    ),
    "a test that leans on one beside it": (
        leaning,
        [
            f"{TITLE}: runs: it passes in 1 of 2 fresh, shuffled runs",
            f"{TITLE}: alone: alone, with LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8 TZ=Pacific/Chatham: it fails: ",
        ],
    ),
    "a test that fails by an error of its own": (
        forged("if (!isFree([])) throw new Error('so');"),
        [
            f"{FALSE}false: it fails otherwise than by an assertion: so",
            "EqualityOperator: total(items) <= 0 -> total(items) < 0: it fails otherwise than by an assertion: so",
        ],
    ),
    "a test that writes a file": (
        forged("process.getBuiltinModule('fs').writeFileSync('left', '');"),
        (
            [
                f"{TITLE}: runs: it passes in 0 of 2 fresh, shuffled runs",
                f"{TITLE}: alone: alone, with LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8 TZ=Pacific/Chatham: it fails: ",
                f"{FALSE}false: it fails otherwise than by an assertion: ",
                "EqualityOperator: total(items) <= 0 -> total(items) < 0: it fails otherwise than by an assertion: ",
            ]
            if not sandbox.missing()
            else ["files: its tests wrote left"]
        ),
    ),
    "a test beside it that kills the same": (
        twin,
        ["twin: needed: without it no kill is lost"],
    ),
}  # fmt: skip


def test_all_that_landed_holds(driven: World) -> None:
    done = driven.doit("-n", "2", "prove")
    assert "6 of 6 landed tests hold on mutate/main (" in done.out
    rows = [line.split()[:4] for line in done.out.splitlines() if line.startswith("src/")]
    assert rows == [
        [CART, "2/2", "2/2", "yes"], ["src/label.js", "4/4", "2/2", "yes"], ["src/label.js", "1/1", "2/2", "yes"],
        *3 * [["src/price.js", "1/1", "2/2", "yes"]],
    ]  # fmt: skip
    assert driven.git("worktree", "list").count("\n") == 1


@pytest.mark.parametrize("what", TAMPERED)
def test_what_does_not_hold_any_more_is_named_and_nothing_else(driven: World, what: str) -> None:
    tamper, expected = TAMPERED[what]
    tamper(driven)
    done = driven.doit("-n", "2", "prove", CART, code=1)
    said = [line for line in done.out.splitlines() if line.startswith(f"{CART}: ")]
    assert all(any(part in line for line in said) for part in expected), done.out
    assert len(said) == len(expected), done.out
    *_, last = (line for line in done.out.splitlines() if line.endswith(")") and BRANCH in line)
    # Of our one test nothing holds that is said of it, unless something else is wrong beside it.
    other = {
        "a standing test of the write file that is skipped": "1 of 1",
        "a test beside it that kills the same": "1 of 2",
    }
    assert last.startswith(f"{other.get(what, '0 of 1')} landed tests hold on "), last


def test_what_was_merged_is_judged_on_head_whatever_is_edited_or_was_proved_since(driven: World) -> None:
    driven.git("merge", "--quiet", BRANCH)
    driven.edit(CART, "total(items) <= 0", "total(items) < 0")
    stored(driven, lambda data: data["proofs"].insert(0, {**data["proofs"][0], "inputs": {CART: "another"}}))
    assert "1 of 1 landed tests hold" in driven.doit("prove", CART).out


def test_a_scope_that_is_none_is_refused_and_one_with_nothing_landed_is_said_as_such(world: World) -> None:
    done = world.doit("prove", "src/cart", code=3)
    assert "prove: 'src/cart' is none of src/cart.js, src/label.js, src/price.js" in done.err
    assert "nothing landed on mutate/main" in world.doit("prove").out


def test_commits_for_a_scope_that_the_plan_has_not_any_more_are_named(driven: World) -> None:
    driven.edit("tasks.yaml", "src/*.js", "src/cart.js")
    done = driven.doit("prove", code=1)
    assert "1 of 1 landed tests hold" in done.out
    assert "of src/label.js changes test/label.mutants.test.js" in done.out


def test_a_proof_is_stored_as_its_schema_says(driven_once: World) -> None:
    written = json.loads((HERE.parent / "docs/proof.schema.json").read_text())
    assert written == store.schema(), "run: python -m pipeline.store > docs/proof.schema.json"
    jsonschema.Draft202012Validator.check_schema(written)
    files = [*driven_once.home.glob("data/projects/*/tests/*/*.json")]
    assert len(files) == 6
    for path in files:
        data = json.loads(path.read_text())
        jsonschema.validate(data, written)
        (proof,) = data["proofs"]
        assert sorted(kill["key"] for kill in proof["kills"]) == data["test"]["kills"] != []
        assert proof["runs"] == 2 and proof["engine"].startswith("stryker-js core ") and proof["inputs"]


def test_the_check_shares_no_code_with_what_it_checks() -> None:
    ask = "import sys, pipeline.recheck; print(sorted(m for m in sys.modules if m.startswith('pipeline.')))"
    loaded = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    assert "'pipeline.recheck'" in loaded
    assert not any(f"'pipeline.{name}'" in loaded for name in ("proof", "landing", "asking", "steps"))


# -- the parts that need no project

SOURCE = """\
function f(a, b) {
  if (a > b) {
    return a + b;
  }
  if (a > b) {
    return [a,
      b];
  }
  return a + b;
}
"""


def mutants_of(source: str, texts: Sequence[tuple[str, str]]) -> list[tuple[Any, Kill]]:
    """For each text and its replacement, a mutant at each place where the text is."""
    raws = []
    for text, replacement in texts:
        at = source.find(text)
        while at >= 0:
            before, end = source[:at], source[: at + len(text)]
            raws.append(
                Raw(
                    str(at), "M", replacement, Status.SURVIVED, before.count("\n") + 1, at - before.rfind("\n"),
                    end.count("\n") + 1, len(end) - end.rfind("\n"), False, (), None, "",
                )
            )  # fmt: skip
            at = source.find(text, at + 1)
    found = identify(raws, "f.js", source)
    return [(m, as_kill(m, source, "assertion")) for m in found]


TEXTS = [("a > b", "true"), ("a + b", "a - b"), ("[a,\n      b]", "[]"), ("b", "a")]


def test_a_test_beside_it_that_never_ends_on_a_mutant_takes_no_kill_from_another(tmp_path: Path) -> None:
    (tmp_path / "f.js").write_text(SOURCE)
    kills = [kill for _, kill in mutants_of(SOURCE, TEXTS)][:2]

    def test(root: Path, *, only: Sequence[str] | None = None, **more: Any) -> TestRun:
        text = (root / "f.js").read_text()
        which = next((i for i, kill in enumerate(kills) if text == with_kill(kill, SOURCE)), None)
        if which == 0 and (only is None or "endless" in only):
            return TestRun(Outcome.TIME_LIMIT, "it did not end", running="endless")
        fails = {0: "good", 1: "endless"}.get(which, "") if which is not None else ""
        states = {t: "failed" if t == fails else "passed" for t in only or ("good", "endless")}
        return TestRun(Outcome.OK, tests=tuple(TestResult("w", t, s, "assertion") for t, s in states.items()))

    place = SimpleNamespace(root=tmp_path, reset=lambda tree: None, changed=tuple)
    landed = [
        SimpleNamespace(title=title, proof=SimpleNamespace(kills=(kill,), runs=1, elsewhere={}))
        for title, kill in zip(("good", "endless"), kills, strict=True)
    ]
    seen = rerun(cast(Any, SimpleNamespace(test=test)), [cast(Any, place)], "tree", "w", cast(Any, landed), 1, 1.0)
    assert [seen.lost(cast(Any, each)) for each in landed] == [{}, {}]


@given(st.lists(st.sampled_from(["// a > b", "", "const c = 1;", "function g() {", "  return a + b;"]), max_size=4))
def test_a_mutant_is_found_again_whatever_is_put_in_front_of_its_function(lines: list[str]) -> None:
    edited = "".join(f"{line}\n" for line in lines) + SOURCE
    for mutant, kill in mutants_of(SOURCE, TEXTS):
        assert mutate(SOURCE, mutant).replace(" ", "") == (with_kill(kill, SOURCE) or "").replace(" ", "")
        span = find_span(kill, edited)
        assert span is not None and edited[slice(*span)] == kill.original
        assert span[0] - (len(edited) - len(SOURCE)) == find_span(kill, SOURCE)[0]  # type: ignore[index]


def test_a_mutant_whose_line_was_edited_is_not_found_and_crlf_stays() -> None:
    for _, kill in mutants_of(SOURCE, TEXTS):
        assert find_span(kill, SOURCE.replace("a", "x").replace("b", "y")) is None
        assert find_span(attrs.evolve(kill, nth=kill.nth + 2), SOURCE) is None
        with_crlf = with_kill(kill, SOURCE.replace("\n", "\r\n"))
        assert with_crlf and with_crlf.replace("\r\n", "\n") == with_kill(kill, SOURCE)
        assert with_crlf.count("\r\n") == with_crlf.count("\n")


@pytest.mark.parametrize(
    ("source", "original", "replacement", "expected"),
    [
        ("return (w[0] ?? '').slice(1) || 'x';", "(w[0] ?? '').slice(1)", "w[0] ?? ''", "return (w[0] ?? '') || 'x';"),
        ("return q && a && b;", "q && a", "q || a", "return (q || a) && b;"),
        ("return x && !(a || b);", "!(a || b)", "a || b", "return x && (a || b);"),
        ("return a * b;", "a * b", "a / b", "return a / b;"),
        ("call()\n(a ?? b).trim()\n", "(a ?? b).trim()", "a ?? b", "call()\na ?? b\n"),
    ],
)
def test_a_mutant_stays_one_operand_of_what_is_around_it(
    source: str, original: str, replacement: str, expected: str
) -> None:
    ((_, kill),) = mutants_of(source, [(original, replacement)])
    plain, given = with_kill(kill, source, plain=True), with_kill(kill, source)
    assert (given or "").replace(" ", "") == expected.replace(" ", "")
    assert plain and plain.replace(" ", "") == source.replace(original, replacement).replace(" ", "")


NOBODY = Kill("k", "f.js", "M", "o", "r", ("o",), 1, 1, "assertion")
KILLED = st.dictionaries(st.sampled_from("stuvw"), st.frozensets(st.sampled_from("abcdef")), min_size=1)


def kills_of(letters: str | frozenset[str]) -> frozenset[Kill]:
    return frozenset(attrs.evolve(NOBODY, key=letter) for letter in letters)


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ([["a", "ab"]], []),  # in one commit, the one of fewer kills may have stood before
        ([["a"], ["ab"]], []),
        ([["ab"], ["a"]], ["a"]),
        ([["ab", "ab2"]], ["ab", "ab2"]),
        ([["ab"], ["ab2"]], ["ab2"]),
        ([["a", "none"]], ["none"]),
    ],
)
def test_a_test_is_needed_for_a_kill_that_none_before_it_has(order: list[list[str]], found: list[str]) -> None:
    killed = {"a": kills_of("a"), "ab": kills_of("ab"), "ab2": kills_of("ab"), "none": kills_of("")}
    assert unneeded(killed, order) == found


@given(KILLED, st.data())
def test_tests_that_each_kill_something_new_are_all_needed(
    given: Mapping[str, frozenset[str]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(sorted(given)))
    killed = {title: kills_of(given[title]) for title in order}
    seen: frozenset[Kill] = frozenset()
    new = []
    for title in order:
        if killed[title] - seen:
            new.append(title)
        seen |= killed[title]
    assert unneeded(killed, [[t] for t in new]) == []
    assert set(unneeded(killed, [[t] for t in order])) == set(order) - set(new)


def test_what_no_input_told_apart_or_three_tests_failed_to_kill_is_possibly_equivalent() -> None:
    def tests(*claims: str) -> tuple[Test, ...]:
        return tuple(Test(f"{i} {keys}", "", kills=tuple(keys)) for i, keys in enumerate(claims))

    search = Candidates(Outcome.OK, unreached={"a": "never-told-apart: the same", "b": "endless: so", "c": "budget"})
    asked = Candidates(Outcome.OK, tests=tests(*["de"] * TRIES, "f"))
    useless = tuple(Dropped(t.title, Outcome.REJECTED, KILLS_NOTHING, failed=True) for t in asked.tests)
    assert possibly_equivalent([search], []) == {"a"}
    judged = [Proofs(Outcome.OK), Proofs(Outcome.OK, dropped=useless)]
    assert possibly_equivalent([search, asked], judged) == {"a", "d", "e"}
    proved = Proofs(Outcome.OK, proved=(Proved(asked.tests[0], {"d": "assertion", "a": "exception"}),))
    assert possibly_equivalent([search, asked], [judged[0], proved]) == {"e"}
    broken = Dropped(asked.tests[0].title, Outcome.REJECTED, "it fails on the original: so", failed=True)
    assert possibly_equivalent([search, asked], [judged[0], Proofs(Outcome.OK, dropped=(broken,))]) == {"a"}


def test_a_test_keeps_a_proof_for_each_state_that_it_was_proved_on() -> None:
    proofs = [store.Proof({"x.js": str(i)}, (), f"e{i}", 5, {}) for i in range(store.PROOFS_A_TEST + 2)]
    kept = store.Stored(Test("t", "it"))
    for proof in [*proofs, proofs[3]]:
        kept = kept.proved(proof)
    assert [p.engine for p in kept.proofs] == ["e3", *(f"e{i}" for i in range(9, 3, -1)), "e2"]
    assert kept.inputs == {"x.js": "3"}
