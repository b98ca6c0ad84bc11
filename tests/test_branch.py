"""The landing branch put on another HEAD, in what few drives come to: git for real, our commits made by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import attrs
import pytest
from quick import BRANCH, Place, StandIn, environment, make_place, pins

from pipeline.branch import DRAFT, SCOPE, TASK, Conflict, LandingBranch, marks
from pipeline.engines import Engine
from pipeline.engines.stryker_js.suite import JavaScriptSuite
from pipeline.model import EngineConfig
from pipeline.results import Test
from pipeline.store import Proof, ProofStore, Stored
from pipeline.worktree import Repository, Worktree, find_repository

A, B = "test/a.mutants.test.js", "test/b.mutants.test.js"
OF_A, OF_B = pins("has beta", "beta"), pins("has beta of b", "beta", source="src/b.js")


@attrs.frozen
class Made:
    """A repository whose branch is checked out in a person's worktree."""

    place: Place
    theirs: Place
    repository: Repository
    store: ProofStore
    worktree: Worktree

    def branch(self, kept: Callable[[str, str], bool] = lambda task, draft: False) -> LandingBranch:
        engine = cast(Engine, StandIn(EngineConfig()))
        return LandingBranch(BRANCH, self.repository, self.store, engine, lambda: self.worktree, {A, B}, kept)

    def commit(
        self, files: Mapping[str, str | None], subject: str = "by hand", whose: Mapping[str, str] | None = None
    ) -> str:
        """A commit on the branch with these files otherwise. whose: what makes it one of ours, on the HEAD of now."""
        for path, text in files.items():
            if text is None:
                (self.theirs.root / path).unlink()
            else:
                self.theirs.write(path, text)
        self.theirs.git("add", "--all")
        content = self.branch().content(find_repository(self.theirs.root), "", list(files))
        lines = marks(whose, self.head, content) if whose else []
        return self.theirs.commit("\n".join([subject, "", *lines]))

    def lands(self, write: str, test: Test, *loads: str) -> str:
        """A commit with one more proved test. loads: what it was proved on."""
        states = self.repository.files("main")
        proof = Proof({path: states[path] for path in loads}, (), "stand-in", 1, {})
        self.store.put(write, Stored(test, self.head, proofs=(proof,)))
        text = JavaScriptSuite().add(self.place.on(BRANCH, write) or "", [test])
        return self.commit({write: text}, test.title, {SCOPE: f"src/{Path(write).name[0]}.js"})

    def drafted(self, task: str, reply: str, **files: str) -> str:
        return self.commit({f"{name}.txt": text for name, text in files.items()}, task, {TASK: task, DRAFT: reply})

    @property
    def head(self) -> str:
        return self.place.git("rev-parse", "main").strip()

    def go_on(self, path: str = "notes.txt", text: str = "three\n") -> None:
        """A commit on HEAD."""
        self.place.write(path, text)
        self.place.commit()

    def start(self, branch: LandingBranch | None = None) -> str:
        return (branch or self.branch()).start(self.head, self.repository.rev(BRANCH))

    def subjects(self, commit: str) -> list[str]:
        """Of what it has on HEAD, oldest first."""
        return self.place.git("log", "--reverse", "--topo-order", "--format=%s", f"{self.head}..{commit}").splitlines()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    for name, value in environment(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    place = make_place(tmp_path / "repo")
    place.git("worktree", "add", "--quiet", "-b", BRANCH, str(tmp_path / "theirs"))
    place.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "ours"))
    (tmp_path / "excludes").touch()
    repository = find_repository(place.root)
    worktree = Worktree(repository, tmp_path / "ours", tmp_path / "excludes", {})
    return Made(place, Place(tmp_path / "theirs"), repository, ProofStore(tmp_path / "store", lambda: "p"), worktree)


def test_a_tasks_change_comes_off_where_it_can_land_again_and_nobody_has_built_on_it(made: Made) -> None:
    made.commit({"plain.txt": "theirs\n"}, "before it")
    made.drafted("plain", "r1", plain="theirs\nours\n")
    made.drafted("two files", "r2", one="1\n", two="2\n")
    made.drafted("built upon", "r3", base="ours\n")
    made.commit({"base.txt": "ours\ntheirs\n"}, "upon it")
    made.drafted("not kept", "r4", lost="ours\n")
    made.drafted("amended", "r5", amended="ours\n")
    made.theirs.write("amended.txt", "ours\ntheirs\n")
    made.theirs.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    made.go_on()
    asked = []

    def kept(task: str, draft: str) -> bool:
        asked.append((task, draft))
        return task != "not kept"

    start = made.start(made.branch(kept))
    assert made.subjects(start) == ["before it", "built upon", "upon it", "not kept", "amended"]
    assert sorted(asked) == [("not kept", "r4"), ("plain", "r1"), ("two files", "r2")]
    there = {name: made.place.on(start, f"{name}.txt") for name in ("plain", "one", "two", "base", "lost", "amended")}
    assert there == {
        "plain": "theirs\n", "one": None, "two": None, "base": "ours\ntheirs\n", "lost": "ours\n",
        "amended": "ours\ntheirs\n",
    }  # fmt: skip


def test_a_test_that_is_not_green_on_the_new_head_comes_off_and_the_others_stay(made: Made) -> None:
    both = attrs.evolve(OF_A, code=OF_A.code.replace("\n}", "\n  says('src/c.js', 'delta');\n}"))
    made.go_on("src/c.js", "'delta'\n")
    made.theirs.git("merge", "--quiet", "main")
    made.lands(A, both, "src/a.js")  # that it reads src/c.js is not known
    made.lands(B, OF_B, "src/b.js")
    made.go_on("src/c.js", "'epsilon'\n")
    branch, before = made.branch(), made.place.on(BRANCH, A)
    start = made.start(branch)
    assert made.subjects(start) == [OF_B.title]
    assert made.place.on(start, A) is None
    assert branch.off == {A: before}


def test_a_commit_of_ours_that_does_not_go_onto_head_takes_the_files_other_tests_with_it(made: Made) -> None:
    made.commit({A: "// from the task\n"}, "drafted", {TASK: "drafted", DRAFT: "r1"})
    made.lands(A, OF_A, "src/a.js")
    made.lands(B, OF_B, "src/b.js")
    made.go_on()
    branch = made.branch(lambda task, draft: True)
    start = made.start(branch)
    assert made.subjects(start) == [OF_B.title]
    assert branch.off == {A: made.place.on(BRANCH, A)}


@pytest.mark.parametrize("whose", [None, {TASK: "task", DRAFT: "not kept"}], ids=["somebody's", "a task's"])
def test_a_write_file_goes_with_the_last_test_of_ours_that_comes_off_beside_other_commits(
    made: Made, whose: Mapping[str, str] | None
) -> None:
    made.lands(A, OF_A, "src/a.js")
    ours = made.place.on(BRANCH, A) or ""
    made.commit({A: f"{ours}\nit('is mine', () => {{\n  says('src/a.js', 'alpha');\n}});\n"}, "more", whose)
    made.commit({A: ours}, "not any more", whose)
    made.go_on("src/a.js", "'beta', 'edited'\n")
    branch = made.branch()
    start = made.start(branch)
    assert made.subjects(start) == [OF_A.title, "more", "not any more", f"Withdraw tests from {A}"]
    assert f"\n- withdrawn: {OF_A.title}: unproved on HEAD\n" in made.place.git("log", "-1", "--format=%B", start)
    assert made.place.on(start, A) is None
    assert branch.off == {A: ours}


def test_a_merge_is_left_out_unless_it_says_something_of_its_own(made: Made) -> None:
    made.lands(A, OF_A, "src/a.js")
    made.go_on("other.txt", "one\n")
    made.theirs.git("merge", "--quiet", "--no-edit", "main")
    made.go_on()
    assert made.subjects(made.start()) == [OF_A.title]
    made.theirs.git("merge", "--quiet", "--no-commit", "main")
    said = made.commit({"notes.txt": "of the merge alone\n"})
    made.go_on("other.txt", "two\n")
    with pytest.raises(Conflict, match=f"^commit {said[:10]} on {BRANCH} does not go onto HEAD: rebase {BRANCH} by"):
        made.start()


def test_a_branch_without_a_commit_of_ours_stands_where_it_forks_off(made: Made) -> None:
    branch, old = made.branch(), made.head
    assert branch.standing(made.head) == (made.head, True)
    tip = made.commit({"theirs.txt": "one\n"})
    assert (branch.standing(made.head), made.start()) == ((tip, True), tip)
    made.go_on()
    assert branch.standing(made.head) == (tip, False)
    assert made.subjects(made.start()) == ["by hand"]
    assert branch.standing(old) == (tip, True)
    made.theirs.git("checkout", "--quiet", "--orphan", "fresh")
    alone = made.theirs.commit("of another root")
    made.theirs.git("checkout", "--quiet", "-B", BRANCH)
    assert branch.standing(made.head) == (alone, False)
