"""What stands on the landing branch, whatever has become of it, of HEAD and of the project in the meantime."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from conftest import PLAN, MadeOnce, World, copy_world

from pipeline.branch import LandingBranch
from pipeline.engines import Engine
from pipeline.engines.stryker_js.suite import JavaScriptSuite
from pipeline.store import ProofStore
from pipeline.worktree import Worktree, find_repository

BRANCH = "mutate/main"
CART, LABEL, PRICE = WRITES = tuple(f"test/{stem}.mutants.test.js" for stem in ("cart", "label", "price"))
SCOPES = {"src/cart.js", "src/label.js", "src/price.js"}
MODELS = "opens for the one word"
ONE_SCOPE = PLAN.replace("src/*.js", "src/label.js")
REPLY = f"```js\nit('{MODELS}', () => {{\n  assert.equal(gate('sesame seed'), 'open');\n}});\n```"


@pytest.fixture(scope="session")
def landed_once(driven_once: World, made_once: MadeOnce) -> World:
    def make(place: Path) -> World:
        world = copy_world(driven_once, place)
        world.use_claude()
        world.write("notes.txt", "one\n")
        world.script([{"match": "src/label.js", "text": REPLY}, {"match": "*", "text": '{"tests": []}'}])
        world.commit("ask a model too")
        world.doit("-n", "2", "mutate")
        assert MODELS in world.titles(LABEL)
        return world

    return made_once("landed", make)


@pytest.fixture
def landed(landed_once: World, tmp_path: Path) -> World:
    """A copy of a repository where every scope has landed, src/label.js with a test that a model wrote."""
    return copy_world(landed_once, tmp_path / "w")


def on(world: World, branch: str = BRANCH) -> dict[str, list[str]]:
    """Titles on a branch, by file."""
    return {write: sorted(world.titles(write, branch)) for write in WRITES}


def mutate(world: World, *, code: int = 0, calls: int = 0, branch: str = BRANCH) -> str:
    """Run the plan; what must be so after every run; what it said."""
    before = len(world.calls())
    done = world.doit("-n", "2", "mutate", code=code)
    assert len(world.calls()) == before + calls
    assert "disagree" not in done.out
    if code == 0:
        world.git("merge-base", "--is-ancestor", "HEAD", branch)
        assert set(world.git("diff", "--name-only", "HEAD", branch).split("\n")) <= {*WRITES, ""}
        for write in WRITES:
            titles = world.titles(write, branch)
            assert len(titles) == len(set(titles))
    return done.out


def at_rest(world: World) -> None:
    """The same again does nothing."""
    tip = world.git("for-each-ref", "refs/heads")
    assert "nothing to do: 0 engine runs, 0 calls" in mutate(world)
    assert world.git("for-each-ref", "refs/heads") == tip


def theirs(world: World, act: Callable[[Path], object], branch: str = BRANCH) -> str:
    """A person's commit on a branch: what they do to the files of a checkout of it."""
    place = world.root.parent / "theirs"
    world.git("worktree", "add", "--quiet", str(place), branch)
    act(place)
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "by hand"]):
        world.git("-C", str(place), *words)
    world.git("worktree", "remove", "--force", str(place))
    return world.git("rev-parse", branch).strip()


def note(world: World, text: str) -> None:
    """A commit on HEAD that changes nothing that a scope depends on."""
    world.write("notes.txt", f"{text}\n")
    world.git("commit", "--quiet", "--message", text, "--", "notes.txt")


def hook(world: World, text: str) -> None:
    path = world.root / ".git" / "hooks" / "pre-commit"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


# -- the branch, and HEAD


def test_each_commit_holds_one_write_file_and_says_which_mutants_its_tests_kill(landed: World) -> None:
    head = landed.git("rev-parse", "HEAD").strip()
    for commit in landed.git("rev-list", f"HEAD..{BRANCH}").split():
        (changed,) = landed.git("show", "--format=", "--name-only", commit).split()
        said = landed.git("show", "-s", "--format=%B", commit)
        scope = re.search(r"^Mutate-Scope: (.*)$", said, re.M)
        assert scope and changed == f"test/{Path(scope[1]).stem}.mutants.test.js"
        assert f"\nMutate-Base: {head}\n" in said
        added = [t for _, t in re.findall(r"^\+it\((['\"`])(.*?)\1,", landed.git("show", "--format=", commit), re.M)]
        assert re.findall(r"^- (.*)$", said, re.M) == added != []
        assert len(re.findall(rf"^  {re.escape(scope[1])}:\d+ \w+: .* -> .*$", said, re.M)) >= len(added)


MOVES: dict[str, Callable[[World], object]] = {
    "the landing branch is deleted": lambda w: w.git("branch", "--quiet", "-D", BRANCH),
    "the landing branch is reset by a commit": lambda w: w.git("branch", "--force", BRANCH, f"{BRANCH}~1"),
    "HEAD is amended": lambda w: w.git("commit", "--quiet", "--amend", "--message", "another word for it"),
    "HEAD gets a commit to another file": lambda w: note(w, "two"),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_branch_that_moved_gets_the_same_tests_for_no_engine_run_and_no_call(landed: World, move: str) -> None:
    before = on(landed)
    MOVES[move](landed)
    mutate(landed)
    assert on(landed) == before
    assert landed.measured() == set()
    assert len(landed.git("rev-list", f"HEAD..{BRANCH}").split()) >= len(SCOPES)
    at_rest(landed)


def test_what_was_merged_is_not_landed_again_and_costs_no_engine_run(landed: World) -> None:
    before = on(landed)
    landed.git("merge", "--quiet", BRANCH)
    mutate(landed)
    assert landed.measured() == set()
    assert on(landed) == on(landed, "HEAD") == before
    assert landed.subjects() == []
    at_rest(landed)


def test_after_a_squash_merge_a_second_round_adds_to_what_was_merged(landed: World) -> None:
    before = on(landed)
    landed.git("merge", "--quiet", "--squash", BRANCH)
    landed.commit("tests")
    landed.write("src/price.js", landed.read("src/price.js") + "\nexport function half(n) {\n  return n / 2;\n}\n")
    landed.commit("half")
    mutate(landed)
    after = on(landed)
    assert set(before[PRICE]) < set(after[PRICE])
    assert (after[CART], after[LABEL]) == (before[CART], before[LABEL])
    assert landed.git("diff", "--name-only", "HEAD", BRANCH).split() == [PRICE]
    at_rest(landed)


def test_a_test_removed_from_head_after_a_squash_merge_does_not_come_back(landed: World) -> None:
    landed.git("merge", "--quiet", "--squash", BRANCH)
    landed.commit("tests")
    cut_last(landed.root / LABEL)
    landed.commit("without that one")
    left = on(landed, "HEAD")
    mutate(landed)
    assert on(landed) == left
    at_rest(landed)


def test_tests_of_an_edited_source_are_proved_anew_or_withdrawn_by_name(landed: World) -> None:
    before = on(landed)
    landed.edit("src/label.js", "name.length > width", "name.length >= width")
    landed.commit()
    said = mutate(landed)
    after = on(landed)
    assert MODELS in after[LABEL]
    gone = set(before[LABEL]) - set(after[LABEL])
    assert all(f"{title}: " in said for title in gone)
    assert (after[CART], after[PRICE]) == (before[CART], before[PRICE])
    assert landed.measured() == {"src/label.js"}
    at_rest(landed)


def test_another_branch_gets_a_landing_branch_of_its_own(landed: World) -> None:
    before, tip = on(landed), landed.git("rev-parse", BRANCH)
    landed.git("switch", "--quiet", "--create", "other")
    note(landed, "elsewhere")
    mutate(landed, branch="mutate/other")
    assert on(landed, "mutate/other") == before
    assert landed.git("rev-parse", BRANCH) == tip
    assert landed.measured() == set()


def test_a_renamed_source_takes_its_write_file_off_the_branch_and_gets_another(landed: World) -> None:
    before = on(landed)
    landed.git("mv", "src/label.js", "src/tag.js")
    landed.git("mv", "test/label.test.js", "test/tag.test.js")
    landed.edit("test/tag.test.js", "../src/label.js", "../src/tag.js")
    landed.commit()
    landed.doit("-n", "2", "mutate", code=None)
    assert landed.on_branch(LABEL) is None
    assert landed.titles("test/tag.mutants.test.js") != []
    assert (on(landed)[CART], on(landed)[PRICE]) == (before[CART], before[PRICE])


def test_the_file_of_a_scope_that_the_plan_no_longer_has_comes_off_the_branch(landed: World) -> None:
    before = on(landed)
    landed.edit("tasks.yaml", "mutate: src/*.js", 'mutate: [src/*.js, "!src/label.js"]')
    landed.commit()
    mutate(landed)
    assert landed.on_branch(LABEL) is None
    assert (on(landed)[CART], on(landed)[PRICE]) == (before[CART], before[PRICE])
    assert landed.measured() == set()


def test_one_scope_alone_keeps_what_the_others_have_on_the_branch(landed: World) -> None:
    before = on(landed)
    note(landed, "two")
    landed.doit("-n", "2", "mutate:src/cart.js")
    assert on(landed) == before
    landed.git("merge-base", "--is-ancestor", "HEAD", BRANCH)


# -- what a person does to the branch


def cut_last(path: Path) -> None:
    """Take the last of our tests out of a file."""
    text = path.read_text()
    path.write_text(text[: text.rindex("\n// Pins what the code does today")])


def test_a_test_that_a_person_took_out_is_not_put_back(landed: World) -> None:
    before = on(landed)
    theirs(landed, lambda place: cut_last(place / LABEL))
    said = mutate(landed)
    after = on(landed)
    assert len(after[LABEL]) == len(before[LABEL]) - 1
    assert "src/label.js: landed: 1 tests were taken out by a person" in said
    at_rest(landed)
    landed.edit("src/label.js", "// A word", "// Some word")
    landed.commit()
    mutate(landed)
    assert on(landed) == after


def test_a_commit_of_somebody_else_is_kept_when_head_moves(landed: World) -> None:
    before = on(landed)
    theirs(landed, lambda place: (place / "theirs.txt").write_text("mine\n"))
    landed.edit("src/label.js", "// A word", "// Some word")
    landed.commit()
    landed.doit("-n", "2", "mutate")
    assert landed.on_branch("theirs.txt") == "mine\n"
    assert "by hand" in landed.subjects()
    assert on(landed) == before
    landed.git("merge-base", "--is-ancestor", "HEAD", BRANCH)


def test_a_branch_that_somebody_merged_head_into_keeps_its_tests(landed: World) -> None:
    before = on(landed)
    note(landed, "two")
    place = landed.root.parent / "theirs"
    landed.git("worktree", "add", "--quiet", str(place), BRANCH)
    landed.git("-C", str(place), "merge", "--quiet", "--no-edit", "main")
    landed.git("worktree", "remove", str(place))
    mutate(landed)
    assert on(landed) == before
    assert landed.measured() == set()
    assert len(landed.subjects()) == len(set(landed.subjects())) == len(SCOPES) + 1


def test_a_write_file_goes_when_nothing_but_what_our_tests_imported_is_left_in_it(landed: World) -> None:
    def no_worktree() -> Worktree:
        raise AssertionError("nothing is to be checked out")

    engine = cast(Engine, SimpleNamespace(suite=JavaScriptSuite()))
    repository, store = find_repository(landed.root), ProofStore(landed.home, lambda: "mini")
    branch = LandingBranch(BRANCH, repository, store, engine, no_worktree, WRITES)
    imports = "import { label } from '../src/label.js';\n"
    with_a_test = imports + "\nit('theirs', () => {\n  label('', 0);\n});\n"
    assert branch.without_husk(imports, LABEL, "HEAD") == ""
    assert branch.without_husk(with_a_test, LABEL, "HEAD") == with_a_test
    assert branch.without_husk(imports, "test/label.test.js", "HEAD") == imports  # HEAD has that file
    with_a_helper = f"{imports}\nexport const narrow = (text) => label(text, 3);\n"
    assert branch.without_husk(with_a_helper, LABEL, "HEAD") == with_a_helper


# -- hooks


REFORMATS = """\
for file in $(git diff --cached --name-only); do
  sed -i 's/assert\\.equal(/assert.strictEqual(/' "$file"
  echo '// looked at' >> "$file"
  git add "$file"
done"""


def test_a_file_that_a_hook_reformats_lands_as_the_hook_made_it(landed: World) -> None:
    before = on(landed)
    landed.git("branch", "--quiet", "-D", BRANCH)
    hook(landed, REFORMATS)
    mutate(landed)
    text = landed.on_branch(LABEL) or ""
    assert "// looked at" in text and "assert.strictEqual(gate('sesame seed')" in text
    assert on(landed) == before
    at_rest(landed)
    note(landed, "two")
    mutate(landed)
    assert landed.on_branch(LABEL) == text
    at_rest(landed)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo no tests on a Friday >&2; exit 1", "rejected: the commit was refused: git commit: no tests on a Friday"),
        ("echo x > extra.txt; git add extra.txt", "outside-scope: a hook put extra.txt into the commit"),
    ],
    ids=["fails", "adds a file"],
)
def test_a_hook_that_fails_or_adds_a_file_parks_with_the_reason(landed: World, text: str, reason: str) -> None:
    landed.git("branch", "--quiet", "-D", BRANCH)
    hook(landed, text)
    said = mutate(landed, code=1)
    for scope in SCOPES:
        assert re.search(rf"{scope}: parked: {reason}", said)
    assert landed.git("branch", "--list", BRANCH) == ""


# -- refused before anything runs

REFUSALS: dict[str, tuple[Callable[[World], object], str]] = {
    "standing on the landing branch": (
        lambda w: w.git("switch", "--quiet", BRANCH),
        "mutate/main is a landing branch, and it is checked out: switch to",
    ),
    "the landing branch is checked out elsewhere": (
        lambda w: w.git("worktree", "add", "--quiet", "../another", BRANCH),
        "the landing branch mutate/main is checked out in .*/another: switch that worktree to another branch",
    ),
    "a branch has the name of a folder of it": (
        lambda w: (w.git("branch", "--quiet", "-D", BRANCH), w.git("branch", "mutate")),
        "the landing branch mutate/main cannot exist beside the branch mutate: set land.branch",
    ),
    "HEAD is detached": (
        lambda w: w.git("switch", "--quiet", "--detach"),
        "HEAD is detached, and land.branch is 'mutate/{branch}': check out a branch, or",
    ),
    "there is no commit yet": (
        lambda w: w.git("checkout", "--quiet", "--orphan", "fresh"),
        "the repository has no commit yet: commit something first",
    ),
}


@pytest.mark.campaign
@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_land_is_refused_before_anything_runs(driven: World, case: str) -> None:
    prepare, said = REFUSALS[case]
    prepare(driven)
    refs = driven.git("for-each-ref")
    ledger = (driven.root / "cache" / "ledger.jsonl").read_bytes()
    done = driven.doit("-n", "2", "mutate", code=3)
    assert re.search(said.replace("{", r"\{"), done.both)
    assert driven.git("for-each-ref") == refs
    assert (driven.root / "cache" / "ledger.jsonl").read_bytes() == ledger


def test_what_is_proved_on_an_edit_waits_for_its_commit_and_then_lands_for_nothing(landed: World) -> None:
    before = on(landed)
    landed.write("src/price.js", landed.read("src/price.js") + "\nexport function half(n) {\n  return n / 2;\n}\n")
    said = mutate(landed)
    assert "src/price.js: held: commit src/price.js, run again:" in said
    assert on(landed) == before
    landed.commit()
    mutate(landed)
    assert landed.ran("baseline") == landed.ran("validate") == set()
    assert set(on(landed)[PRICE]) > set(before[PRICE])


def test_a_scope_that_is_held_keeps_what_it_has_on_the_branch_when_head_moves_elsewhere(landed: World) -> None:
    before = on(landed)
    landed.edit("src/label.js", "// A word", "// Some word")
    assert "src/label.js: held:" in mutate(landed)
    note(landed, "two")
    assert "src/label.js: held:" in mutate(landed)
    assert on(landed) == before
