"""Whatever state a repository is in, and whatever is done to it meanwhile: a landing ends as docs/trust.md says."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import filelock
import pytest
from quick import BRANCH, PLAN, Place, StandIn, environment, make_place, pins

from pipeline import engines, process
from pipeline.action import Refusal
from pipeline.config import PlanErrors
from pipeline.engines.stryker_js.suite import JavaScriptSuite
from pipeline.landing import Landing
from pipeline.reports.summary import outcome
from pipeline.results import Landed, Outcome
from pipeline.sandbox import Sandbox
from pipeline.session import LANDING
from pipeline.worktree import find_repository

pytestmark = pytest.mark.campaign

A, B = "test/a.mutants.test.js", "test/b.mutants.test.js"
BETA, GAMMA = pins("has beta", "beta"), pins("has gamma", "gamma")
OTHER = pins("has beta of b", "beta", source="src/b.js")
T = TypeVar("T")
TESTS = {"src/a.js": [BETA], "src/b.js": [OTHER]}


def open_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast(dict[str, Any], engines.ENGINES), "stryker-js", StandIn)
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def landed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = tmp_path_factory.mktemp("landed")
        open_home(folder / "home", monkeypatch)
        assert ending(make_place(folder / "repo").run(TESTS)) == "landed"
        return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A repository where nothing has run yet."""
    open_home(tmp_path / "home", monkeypatch)
    return make_place(tmp_path / "repo")


@pytest.fixture
def landed(landed_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A repository where a test of each scope has landed."""
    shutil.copytree(landed_once, tmp_path / "w", symlinks=True)
    open_home(tmp_path / "w/home", monkeypatch)
    return Place(tmp_path / "w/repo")


def ending(of: dict[str, Landed]) -> str:
    """As the summary names it, where both scopes end alike."""
    (found,) = {"parked" if o.outcome is not Outcome.OK else "held" if o.held else "landed" for o in of.values()}
    return found


# -- a repository in some state, and one run: prepare, how both scopes end, what is said

CASES: dict[str, tuple[Callable[[Place], object], str, str]] = {}


def case(row: str, ends: str, said: str = "^$") -> Callable[[Callable[[Place], object]], Callable[[Place], object]]:
    def keep(prepare: Callable[[Place], object]) -> Callable[[Place], object]:
        CASES[row] = (prepare, ends, said)
        return prepare

    return keep


@case("a hook reformats the file", "landed")
def _(place: Place) -> None:
    place.hook("pre-commit", "for f in $(git diff --cached --name-only); do echo '// seen' >> $f; git add $f; done")


@case("a hook fails", "parked", "the commit was refused: git commit: not on a Friday")
def _(place: Place) -> None:
    place.hook("pre-commit", "echo not on a Friday >&2; exit 1")


@case("a hook adds a file", "parked", "a hook put extra.txt into the commit")
def _(place: Place) -> None:
    place.hook("pre-commit", "echo x > extra.txt; git add extra.txt")


@case("a hook commits beside us", "parked", "a hook put extra.txt into the commit")
def _(place: Place) -> None:
    place.hook(
        "post-commit",
        "git log -1 --format=%s | grep -q extra && exit; echo x > extra.txt; git add extra.txt; git commit -qm extra",
    )


@case("a hook commits in the middle of ours", "parked", "the commit was refused: git commit: .*cannot lock ref 'HEAD'")
def _(place: Place) -> None:
    place.hook("pre-commit", "git commit-tree -p HEAD -m x HEAD^{tree} | xargs git update-ref HEAD")


@case("a hook leaves HEAD elsewhere", "parked", "a hook left HEAD on [0-9a-f]+, which is not on the branch")
def _(place: Place) -> None:
    place.hook("post-commit", "git checkout --quiet --detach $(git commit-tree -m x HEAD^{tree})")


@case("a hook puts text below our message", "landed")
def _(place: Place) -> None:
    place.hook("commit-msg", 'printf "\\nReviewed by nobody.\\n\\nTicket 1\\n" >> "$1"')


@case("hooks live in an ignored folder", "parked", "not on a Monday")
def _(place: Place) -> None:
    place.write("node_modules/.hooks/pre-commit", "#!/bin/sh\necho not on a Monday >&2\nexit 1\n")
    (place.root / "node_modules/.hooks/pre-commit").chmod(0o755)
    place.git("config", "core.hooksPath", "node_modules/.hooks")
    place.write(".gitignore", "cache/\nnode_modules/.hooks\n")
    place.commit("hooks")


@case("a signature is demanded and there is no key", "parked", "git commit: .*gpg failed to sign the data")
def _(place: Place) -> None:
    for name, value in (("commit.gpgSign", "true"), ("gpg.program", "/bin/false"), ("user.signingKey", "none")):
        place.git("config", name, value)


@case("git has a name for the committer and no address", "landed")
def _(place: Place) -> None:
    (place.root.parent / "home/gitconfig").write_text("[user]\nname = Tess\n")


@case("an unrelated file is staged, one edited, one new, one stashed", "landed")
def _(place: Place) -> None:
    for text in ("stashed\n", "staged\n", "not staged\n"):
        place.write("notes.txt", text)
        if text == "stashed\n":
            place.git("stash", "--quiet")
        elif text == "staged\n":
            place.git("add", "notes.txt")
    place.write("untracked.txt", "mine\n")
    place.git("branch", "aside")


@case("the person edits the write files, without a commit", "landed")
def _(place: Place) -> None:
    for path in (A, B):
        place.write(path, "it('is mine', () => {\n  says('src/a.js', 'alpha');\n});\n")


@case("the sources are edited, without a commit", "held", "commit src/[ab].js, run again: 1 tests land for nothing")
def _(place: Place) -> None:
    for path in ("src/a.js", "src/b.js"):
        place.write(path, (place.root / path).read_text() + "// edited\n")


@case("HEAD is detached, and the branch is named after it", "refused", "HEAD is detached, and land.branch is 'mutate/")
def _(place: Place) -> None:
    place.git("switch", "--quiet", "--detach")


@case("HEAD is detached, and the branch has a name of its own", "landed")
def _(place: Place) -> None:
    set_branch(place, BRANCH)
    place.git("switch", "--quiet", "--detach")


@case("the repository is a shallow clone", "landed")
def _(place: Place) -> None:
    shallow(place, 2)


@case("the tests need a submodule", "landed")
def _(place: Place) -> None:
    library = make_place(place.root.parent / "library")
    place.git("submodule", "--quiet", "add", str(library.root), "lib/words")
    use_library(place, "lib/words/src/a.js")


@case("a filter is configured that is not installed, as without Git LFS", "landed")
def _(place: Place) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    place.write("assets/alpha.bin", pointer + "'alpha'\n")
    place.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    use_library(place, "assets/alpha.bin")
    for key in ("clean", "smudge", "process"):
        place.git("config", f"filter.lfs.{key}", f"git-lfs-is-not-here {key} -- %f")
    place.git("config", "filter.lfs.required", "true")
    place.git("config", "filter.other.clean", "not-here-either")
    assert find_repository(place.root).raw_here == ["lfs"]  # what is said


@case("paths with spaces, brackets, quotes, letters of any script, a blank in front", "landed")
def _(place: Place) -> None:
    place.write(
        "tasks.yaml",
        PLAN.replace("test/{stem}.mutants", "\" [pins] für/ ž (x)'s {stem}").replace("{stem}.test.js\n", "x"),
    )
    folder = " [pins] für/ ž (x)'s"
    place.write("tasks.yaml", PLAN.replace("write: test/{stem}.mutants.test.js", f'write: "{folder}/{{stem}}.test.js"'))
    place.commit()


@case("the write files have CRLF and a byte order mark", "landed")
def _(place: Place) -> None:
    for path in (A, B):
        (place.root / path).write_bytes(
            b"\xef\xbb\xbf// mine\r\nit('is mine', () => {\r\n  says('src/a.js', 'alpha');   \r\n});\r\n"
        )
    place.commit()


@case("git converts line ends, and refuses what it could not convert back", "landed")
def _(place: Place) -> None:
    place.git("config", "core.autocrlf", "true")
    place.git("config", "core.safecrlf", "true")


@case("the project is a folder of the repository", "landed")
def _(place: Place) -> None:
    into_folder(place, "sub/[x] dir")


@case("the project is reached through a symbolic link", "landed")
def _(place: Place) -> None:
    into_folder(place, "sub/dir")
    (place.root / "link").symlink_to("sub/dir")
    place.write("tasks.yaml", (place.root / "tasks.yaml").read_text().replace("sub/dir", "link"))
    place.commit()


@case("the repository has no commit", "refused", "the repository has no commit yet: commit something first")
def _(place: Place) -> None:
    shutil.rmtree(place.root / ".git")
    place.git("init", "--quiet")


@case("land.branch is the branch that is checked out", "refused", "land.branch: 'main' is checked out")
def _(place: Place) -> None:
    set_branch(place, "main")


@case("land.branch is a branch of somebody's", "refused", "the branch mutation, .*, is there, and none of its commits")
def _(place: Place) -> None:
    set_branch(place, "mutation")
    place.git("branch", "mutation")


@case("a branch has the name of the landing branch's folder", "refused", "cannot exist beside the branch mutate: set")
def _(place: Place) -> None:
    place.git("branch", "mutate")


@case("the landing branch is another name of a branch", "refused", "the branch mutate/main and main are one")
def _(place: Place) -> None:
    place.git("symbolic-ref", f"refs/heads/{BRANCH}", "refs/heads/main")


@case("a branch is another name of the landing branch", "refused", "the branch mutate/main and mine are one")
def _(place: Place) -> None:
    place.git("branch", BRANCH)
    place.git("symbolic-ref", "refs/heads/mine", f"refs/heads/{BRANCH}")


def set_branch(place: Place, name: str) -> None:
    place.write("tasks.yaml", PLAN.replace("land: {", f"land: {{branch: {name}, "))
    place.commit("a branch of its own")


def shallow(place: Place, depth: int) -> Place:
    """The place becomes a clone of itself without most of its history."""
    for text in ("two", "three", "four"):
        place.write("notes.txt", text)
        place.commit()
    whole = place.root.with_name(f"whole{depth}")
    place.root.rename(whole)
    url = f"file://{place.root.with_name('origin')}"
    if not place.root.with_name("origin").exists():
        shutil.copytree(whole, place.root.with_name("origin"))
    place.git("clone", "--quiet", "--depth", str(depth), url, str(place.root), cwd=whole)
    return place


def use_library(place: Place, path: str) -> None:
    for name in ("a", "b"):
        text = (place.root / f"test/{name}.test.js").read_text()
        place.write(f"test/{name}.test.js", text.replace("\n});", f"\n  says('{path}', 'alpha');\n}});"))
    place.commit("a library")


def into_folder(place: Place, folder: str) -> None:
    for name in ("src", "test"):
        (place.root / folder).mkdir(parents=True, exist_ok=True)
        (place.root / name).rename(place.root / folder / name)
    place.write("tasks.yaml", PLAN.replace("version: 1", f'version: 1\nproject: "{folder}"'))
    place.commit("move")


@pytest.mark.parametrize("row", CASES)
def test_a_landing_ends_as_its_row_says(place: Place, row: str) -> None:
    prepare, ends, said = CASES[row]
    prepare(place)
    head = place.git("rev-parse", "HEAD").strip() if ends != "refused" else ""
    refs = place.git("for-each-ref")
    if ends == "refused":
        with pytest.raises((Refusal, PlanErrors), match=said):
            place.run(TESTS)
        assert place.git("for-each-ref") == refs
        return
    found = place.run(TESTS)
    assert ending(found) == ends
    assert all(re.search(said, landed.detail) for landed in found.values()), found
    if ends != "landed":
        assert place.git("for-each-ref") == refs
        return
    plan = place.session.plan
    for scope in plan.scopes:
        path = (Path(plan.root) / scope.write).relative_to(place.root.resolve()).as_posix()
        before, after = place.on(head, path) or "", place.on(BRANCH, path) or ""
        assert sorted([*place.titles(path, head), *(t.title for t in TESTS[scope.name])]) == place.titles(path)
        for line in before.removeprefix("\ufeff").splitlines(keepends=True):
            assert line in after
        assert ("// seen" in after) == ("reformats" in row)
        assert ("\r\n" in before) == ("\r\n" in after) and (before[:1] == "\ufeff") == (after[:1] == "\ufeff")
    subjects = place.git("log", "--format=%s", f"HEAD..{BRANCH}").splitlines()
    assert sorted(subjects) == [f"Kill 1 surviving mutants of {name}" for name in TESTS]


# -- what a person does to the branch, to HEAD, and when

ROWS: dict[str, str] = {}  # row -> ending, of the tests below


def row(name: str, ends: str) -> Callable[[T], T]:
    def keep(test: T) -> T:
        ROWS[name] = ends
        return test

    return keep


def tip(place: Place) -> str:
    return place.git("rev-parse", BRANCH).strip()


def without(text: str, title: str) -> str:
    return JavaScriptSuite().remove(text, title)


def edit_source(place: Place, name: str = "a") -> None:
    """An edit after which the tests of that scope are to be proved anew, and hold."""
    place.write(f"src/{name}.js", (place.root / f"src/{name}.js").read_text() + "// edited\n")
    place.commit("edit")


def drop_beta(place: Place) -> None:
    """An edit after which the test of that word fails, and others are as they were."""
    place.write("src/a.js", (place.root / "src/a.js").read_text().replace("  'beta',\n", ""))
    place.commit("without beta")


@row("a hook runs for ever", "parked")
def test_a_hook_that_never_ends_parks_its_scope_and_the_next_one_lands(place: Place) -> None:
    place.write("tasks.yaml", PLAN.replace("time_limit: 20", "time_limit: 2"))
    place.commit()
    place.hook("pre-commit", f"git diff --cached --name-only | grep -q {A} && sleep 600; true")
    found = place.run(TESTS)
    assert found["src/a.js"].outcome is Outcome.TIME_LIMIT
    assert found["src/a.js"].detail == "the commit did not end within 2 s (land.time_limit): look at its hooks"
    assert found["src/b.js"].titles == ("has beta of b",)


@row("somebody commits on the branch in mid-run", "landed")
def test_a_commit_made_on_the_branch_in_mid_run_is_under_ours(landed: Place) -> None:
    edit_source(landed)

    def theirs() -> None:
        with landed.by_hand() as checkout:
            checkout.write("theirs.txt", "mine\n")
            checkout.commit("by hand")

    found = landed.run({"src/a.js": [GAMMA]}, meanwhile=theirs)
    assert found["src/a.js"].titles == ("has beta", "has gamma")
    assert landed.on(BRANCH, "theirs.txt") == "mine\n"


MOVES_THE_BRANCH = """\
export GIT_INDEX_FILE=$(git rev-parse --git-dir)/theirs.index
parent=$(git rev-parse --verify --quiet refs/heads/mutate/main || git rev-parse main)
git read-tree "$parent"
git update-index --add --cacheinfo "100644,$(date +%N | git hash-object -w --stdin),theirs.txt"
git update-ref refs/heads/mutate/main "$(git commit-tree "$(git write-tree)" -p "$parent" -m 'by hand')"
"""


@row("the branch becomes another name of one in mid-run", "parked")
def test_a_branch_that_becomes_a_name_of_another_moves_neither(place: Place) -> None:
    place.git("branch", "aside")
    refs = place.git("for-each-ref")

    def theirs() -> None:
        place.git("symbolic-ref", f"refs/heads/{BRANCH}", "refs/heads/aside")

    found = place.run(TESTS, meanwhile=theirs)
    assert {landed.detail for landed in found.values()} == {f"{BRANCH} and aside became one meanwhile (a symbolic ref)"}
    place.git("symbolic-ref", "--delete", f"refs/heads/{BRANCH}")
    assert place.git("for-each-ref") == refs


@row("the branch moves each time that we would land", "parked")
def test_a_branch_that_never_stands_still_parks_and_is_theirs(place: Place) -> None:
    place.hook("pre-commit", MOVES_THE_BRANCH)
    found = place.run(TESTS)
    assert ending(found) == "parked"
    assert all(o.detail == "mutate/main moved 5 times while this landed: run again" for o in found.values())
    assert set(place.git("log", "--format=%s", f"main..{BRANCH}").split("\n")) == {"by hand", ""}


@row("the branch is checked out in mid-run", "parked")
@pytest.mark.parametrize("rebasing", [False, True])
def test_a_branch_that_is_checked_out_in_mid_run_is_left_alone(landed: Place, rebasing: bool) -> None:
    edit_source(landed)
    before = tip(landed)
    with landed.by_hand() as checkout:
        if rebasing:
            subprocess.run(["git", "rebase", "--exec", "false", "main~1"], cwd=checkout.root, capture_output=True)
            with pytest.raises(Refusal, match=f"the landing branch {BRANCH} is checked out in .*/theirs: switch"):
                landed.run()
            checkout.git("rebase", "--abort")
        checkout.git("switch", "--quiet", "--detach")

        def start() -> None:
            checkout.git("switch", "--quiet", BRANCH)
            if rebasing:
                subprocess.run(["git", "rebase", "--exec", "false", "main~1"], cwd=checkout.root, capture_output=True)

        found = landed.run({"src/a.js": [GAMMA]}, meanwhile=start)
        said = rf"{BRANCH} was checked out in .*/theirs meanwhile: switch to another branch there, run again"
        assert re.fullmatch(said, found["src/a.js"].detail)
        assert tip(landed) == before
    assert ending(landed.run()) == "landed"
    assert landed.titles() == ["has beta", "has gamma"]


@row("the person switches to another branch in mid-run", "landed")
def test_what_began_on_a_branch_lands_for_that_branch(place: Place) -> None:
    def switch() -> None:
        place.git("switch", "--quiet", "--create", "other")
        place.write("src/a.js", "'quite', 'another', 'file'\n")
        place.commit("elsewhere")

    assert ending(place.run(TESTS, meanwhile=switch)) == "landed"
    assert place.titles() == ["has beta"]
    assert place.git("merge-base", "main", BRANCH) == place.git("rev-parse", "main")
    assert place.git("branch", "--list", "mutate/*").split() == [BRANCH]


@row("the branch that the run began on is gone", "parked")
def test_what_was_proved_for_a_branch_that_is_gone_lands_for_no_other(place: Place) -> None:
    def leave() -> None:
        place.git("switch", "--quiet", "--create", "other")
        place.git("branch", "--quiet", "-D", "main")

    found = place.run(TESTS, meanwhile=leave)
    assert {o.detail for o in found.values()} == {"main is gone: what was proved lands in the next run"}
    assert place.git("branch", "--list", "mutate/*") == ""


@row("HEAD gets a commit in mid-run on which a test does not hold", "landed")
def test_what_does_not_hold_on_the_head_of_then_does_not_land(place: Place) -> None:
    def drop() -> None:
        drop_beta(place)

    found = place.run({**TESTS, "src/a.js": [BETA, GAMMA]}, meanwhile=drop)
    assert found["src/a.js"].titles == ("has gamma",)
    assert found["src/a.js"].withdrawn == ("has beta: it passes on the original in 0 of 1 runs",)
    assert place.titles() == ["has gamma"]


@row("the write file gets a commit in mid-run", "landed")
def test_a_test_of_the_persons_that_comes_in_mid_run_stays_beside_ours(place: Place) -> None:
    own = "".join(f"it('{t}', () => {{\n  says('src/a.js', 'alpha');\n}});\n" for t in ("has beta", "is mine"))

    def write() -> None:
        place.write(A, own)
        place.commit("mine")

    found = place.run({**TESTS, "src/a.js": [BETA, GAMMA]}, meanwhile=write)
    assert (found["src/a.js"].titles, found["src/a.js"].theirs) == (("has gamma",), ("has beta",))
    assert own in (place.on(BRANCH, A) or "")
    assert place.titles() == ["has beta", "has gamma", "is mine"]


@row("HEAD is amended, and the person rebases the branch", "landed")
def test_a_branch_that_a_person_has_rebased_is_as_good_as_before(landed: Place) -> None:
    landed.git("commit", "--quiet", "--amend", "--message", "another word for it")
    with landed.by_hand() as checkout:
        checkout.git("rebase", "--quiet", "--onto", "main", f"{BRANCH}~2")
    assert ending(landed.run()) == "landed"
    assert (landed.titles(), landed.titles(B)) == (["has beta"], ["has beta of b"])
    assert len(landed.git("rev-list", f"main..{BRANCH}").split()) == 2


@row("a test is taken out by amending our commit", "landed")
@pytest.mark.parametrize("later", [False, True])
def test_a_test_that_is_taken_out_by_amending_our_commit_stays_out(landed: Place, later: bool) -> None:
    if later:  # by amending a commit of ours that has brought another one
        landed.run({"src/a.js": [GAMMA]})
    with landed.by_hand() as checkout:
        if not later:
            checkout.git("reset", "--quiet", "--hard", "HEAD~1")  # a's is the first
        checkout.write(A, without((checkout.root / A).read_text(), "has beta"))
        checkout.git("commit", "--quiet", "--all", "--amend", "--no-edit", "--allow-empty")
    found = landed.run()
    assert found["src/a.js"].rejected == ("has beta",)
    said = outcome(landed.session, landed.session.scopes["src/a.js"], whole=True)
    # Nothing kills its mutant any more: it is no scope that has nothing to kill.
    assert (said.ending, said.left) == (("landed", 1) if later else ("exhausted", 2)), said
    edit_source(landed)
    landed.run()
    assert landed.titles() == (["has gamma"] if later else [])
    assert landed.titles(B) == ["has beta of b"]


@row("our commit is amended with something of the person's", "landed")
def test_what_a_person_adds_to_our_commit_is_kept_when_our_tests_come_off(landed: Place) -> None:
    with landed.by_hand() as checkout:
        checkout.git("reset", "--quiet", "--hard", "HEAD~1")
        checkout.write(
            A, (checkout.root / A).read_text() + "\nit('is mine', () => {\n  says('src/a.js', 'alpha');\n});\n"
        )
        checkout.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    drop_beta(landed)
    assert landed.run()["src/a.js"].withdrawn == ("has beta: it fails on the original: it differs",)
    assert landed.titles() == ["is mine"]


@row("a commit of somebody's does not go onto HEAD", "parked")
def test_a_commit_of_somebodys_that_conflicts_parks_and_the_branch_stays(landed: Place) -> None:
    with landed.by_hand() as checkout:
        checkout.write("notes.txt", "theirs\n")
        checkout.commit("by hand")
    landed.write("notes.txt", "ours\n")
    landed.commit()
    before = tip(landed)
    found = landed.run()
    assert ending(found) == "parked" and tip(landed) == before
    said = rf"commit {before[:10]} on {BRANCH} does not go onto HEAD: rebase {BRANCH} by hand, or delete it: .*"
    assert all(re.fullmatch(said, o.detail) for o in found.values())


@row("a landed test is edited, on the branch or after a merge", "landed")
@pytest.mark.parametrize("where", ["on the branch", "after a merge", "in a squash"])
def test_an_edited_test_stays_as_the_person_left_it(landed: Place, where: str) -> None:
    landed.run({"src/a.js": [GAMMA]})

    def edit(checkout: Place) -> str:
        text = (checkout.root / A).read_text().replace("'beta'", '"beta"')
        checkout.write(A, text)
        return text

    if where == "on the branch":
        with landed.by_hand() as checkout:
            text = edit(checkout)
            checkout.commit("edited")
    else:
        landed.git("merge", "--quiet", *(["--squash"] if where == "in a squash" else []), BRANCH)
        text = edit(landed)
        landed.commit("edited")
    for _ in range(2):
        landed.run()
        assert (
            landed.on(BRANCH if landed.git("rev-list", f"main..{BRANCH}") and where == "on the branch" else "main", A)
            == text
        )
        assert landed.titles() == ["has beta", "has gamma"] or where != "on the branch"
        edit_source(landed)


@row("a landed test is left out of a squash merge", "landed")
def test_a_test_that_is_left_out_of_a_squash_merge_does_not_come_back(landed: Place) -> None:
    landed.git("merge", "--quiet", "--squash", BRANCH)
    landed.write(A, without((landed.root / A).read_text(), "has beta"))
    landed.git("add", "--all")
    landed.git("commit", "--quiet", "--no-edit")
    assert landed.run()["src/a.js"].rejected == ("has beta",)
    assert landed.titles(branch="main") == [] and landed.titles(B, "main") == ["has beta of b"]


def test_only_a_branch_with_a_landing_branchs_name_and_a_commit_of_ours_on_top_is_taken_for_one(landed: Place) -> None:
    landed.git("merge", "--quiet", "--ff-only", BRANCH)  # main has one of ours on top
    assert ending(landed.run()) == "landed"
    landed.git("switch", "--quiet", "--create", "mutate/own", "main~2")  # the name, and the person's commit on top
    assert ending(landed.run()) == "landed"
    assert landed.titles(branch="mutate/mutate/own") == ["has beta"]
    landed.git("switch", "--quiet", "--create", "mutate/more", "main")
    with pytest.raises(Refusal, match="mutate/more is a landing branch, and it is checked out: switch to the branch"):
        landed.run()


@row("the branch is squash-merged between two landings of a run", "landed")
def test_a_squash_merge_between_two_landings_leaves_the_rest_to_land(place: Place) -> None:
    def squash() -> None:
        place.git("merge", "--quiet", "--squash", BRANCH)
        place.commit("tests of a")

    found = place.run(TESTS, between=squash)
    assert ending(found) == "landed"
    assert place.titles(branch="main") == place.titles() == ["has beta"]
    assert place.git("diff", "--name-only", "main", BRANCH).split() == [B]


@row("our test was withdrawn on the branch, and holds again", "landed")
def test_what_we_took_off_ourselves_is_not_taken_for_a_persons_doing(landed: Place) -> None:
    with landed.by_hand() as checkout:
        checkout.write(A, without((checkout.root / A).read_text(), "has beta"))
        checkout.commit("Withdraw tests of src/a.js\n\n- withdrawn: has beta: it passes on the original in 4 of 5 runs")
    assert landed.run()["src/a.js"].titles == ("has beta",)


@row("the proof store is lost, or another machine's", "landed")
def test_what_is_landed_stays_where_no_proof_of_it_is_known(landed: Place) -> None:
    shutil.rmtree(landed.root.parent / "home/data")
    landed.write("notes.txt", "three\n")
    landed.commit()
    landed.run()
    assert (landed.titles(), landed.titles(B)) == (["has beta"], ["has beta of b"])
    landed.git("merge-base", "--is-ancestor", "main", BRANCH)


# -- what nobody sees of it


def test_no_hook_runs_but_those_of_our_commits(place: Place) -> None:
    heard = place.root.parent / "heard"
    for name in ("post-checkout", "post-index-change", "reference-transaction", "post-rewrite", "pre-commit"):
        place.hook(name, f"echo {name} >> {heard}; test {name} != reference-transaction || git log -1 --format=%s")
    assert ending(place.run(TESTS)) == "landed"
    assert set(heard.read_text().split()) <= {"pre-commit", "post-index-change", "reference-transaction"}
    assert heard.read_text().split().count("pre-commit") == len(TESTS)
    assert heard.read_text().split().count("post-index-change") <= 2 * len(TESTS)


def test_the_index_stays_as_it_is_where_git_would_write_it_anew(place: Place) -> None:
    for path in ("notes.txt", "src/a.js"):  # the same content at another time: git looks, and would note that it did
        os.utime(place.root / path, (1, 1))
    assert ending(place.run(TESTS)) == "landed"  # and asks for equal bytes, the index's among them


def test_a_run_that_a_hook_starts_is_about_its_own_repository(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_place(place.root.parent / "other")  # whose hook it is, as git tells every program that it starts
    before, refs = other.state(), other.git("for-each-ref")
    for name, value in (("GIT_DIR", ".git"), ("GIT_INDEX_FILE", ".git/index"), ("GIT_WORK_TREE", "")):
        monkeypatch.setenv(name, str(other.root / value))
    repository = place.session.repository
    assert repository.top == place.root.resolve()
    assert repository.snapshot(None, ()) == repository.git("rev-parse", "HEAD^{tree}").text.strip()
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name)
    assert (other.state(), other.git("for-each-ref")) == (before, refs)


@pytest.mark.parametrize(
    ("word", "why"),
    [("delta", "it passes on the original in 0 of 1 runs"), ("alpha", "1 of 1 kills are lost")],
    ids=["it fails", "it kills nothing"],
)
def test_a_hook_that_takes_the_sense_out_of_a_test_lands_none_of_it(place: Place, word: str, why: str) -> None:
    place.hook("pre-commit", f"sed -i \"s/'beta'/'{word}'/\" {A} 2> /dev/null && git add {A}; true")
    found = place.run(TESTS)
    assert (found["src/a.js"].titles, found["src/b.js"].titles) == ((), ("has beta of b",))
    assert found["src/a.js"].withdrawn == (f"has beta: {why}",)
    assert place.titles() == []


def test_a_test_that_a_hook_has_rewritten_is_ours_from_then_on(place: Place) -> None:
    place.hook("pre-commit", f'sed -i "s/\'beta\'/\\"beta\\"/" {A} 2> /dev/null && git add {A}; true')
    for _ in range(2):
        assert [(o.titles, o.theirs) for o in place.run(TESTS).values()] == [
            (("has beta",), ()),
            (("has beta of b",), ()),
        ]
        assert "says('src/a.js', \"beta\")" in (place.on(BRANCH, A) or "")


def test_what_is_about_to_land_is_run_in_a_sandbox(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes, real = list[object](), StandIn.test

    def noted(*args: Any, **more: Any) -> Any:
        if args[1].name == LANDING:
            boxes.append(more.get("sandbox"))
        return real(*args, **more)

    monkeypatch.setattr(StandIn, "test", noted)
    assert ending(place.run(TESTS)) == "landed"
    assert boxes == [Sandbox(())] * 2


# -- one after another, and names for one place


@row("another run is landing in the repository", "landed")
def test_a_landing_waits_for_another_ones_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = filelock.FileLock(find_repository(place.root).common / "doit-mutate-landing.lock")
    results: list[dict[str, Landed]] = []
    seen: queue.SimpleQueue[str] = queue.SimpleQueue()  # what the run came to, once all is proved
    holding, land = process.holding, Landing.land

    def hold(of: filelock.BaseFileLock, what: str) -> contextlib.AbstractContextManager[None]:
        seen.put(f"waits for {of.lock_file}")
        return holding(of, what)

    def lands(*args: Any) -> Any:
        seen.put("lands")
        return land(*args)

    monkeypatch.setattr(process, "holding", hold)
    monkeypatch.setattr(Landing, "land", lands)

    def forget() -> None:
        while not seen.empty():
            seen.get()

    lock.acquire()
    run = threading.Thread(target=lambda: results.append(place.run(TESTS, meanwhile=forget)))
    run.start()
    try:
        while (first := seen.get(timeout=120)) != f"waits for {lock.lock_file}":
            assert first != "lands"
        run.join(0.3)
        assert run.is_alive() and seen.empty() and place.git("branch", "--list", BRANCH) == ""
    finally:
        lock.release()
        run.join()
    assert ending(results[0]) == "landed"


def test_shallow_clones_of_one_place_are_one_project_and_whole_ones_another(place: Place) -> None:
    def identity(depth: int) -> str:
        clone = place.root.with_name(f"depth{depth}")
        words = ["--depth", str(depth)] if depth else []
        place.git("clone", "--quiet", *words, f"file://{place.root}", str(clone))
        return find_repository(clone).identity()

    for text in ("two", "three"):
        place.write("notes.txt", text)
        place.commit()
    assert identity(1) == identity(2) != identity(0) == find_repository(place.root).identity()


def test_the_table_in_the_docs_has_each_row_with_its_ending_and_a_test() -> None:
    here = Path(__file__).parent
    section = (here.parent / "docs/trust.md").read_text().split("\n## Landing\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (.*?) \| (landed|held|parked|refused|not reached) \| (.*) \|$", section, re.MULTILINE)
    elsewhere = {what: why.split("::") for what, _, why in lines if "::" in why}
    for file, test in elsewhere.values():
        text = (here.parent / file).read_text()
        marked = "" if "\npytestmark = pytest.mark.campaign\n" in text else r"@pytest\.mark\.campaign\n(?:@.*\n)*"
        assert re.search(rf"^{marked}def {test}\(", text, re.MULTILINE)  # the short form has it too
    asked = {**{what: ends for what, (_, ends, _) in CASES.items()}, **ROWS}
    assert {what: ends for what, ends, _ in lines if what not in elsewhere} == asked
