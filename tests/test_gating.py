"""Changes through the batch gate: real doit, git and builds; a stand-in for the paid agent."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_project import BRANCH, Project, make_project, task, writing

BUILD = "echo built >> $BUILDS; cc -Wall -Werror -o {out}/prog src/*.c && {out}/prog"
CHEAP = {"compiles": "for f in src/*.c; do cc -fsyntax-only $f || exit 1; done"}
ONE = "int one(void) { return 1; }\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def gated(project: Project, names: Sequence[str], tasks: Sequence[dict[str, Any]] = (), **gate: Any) -> None:
    """A plan of tasks that each write a file of their own name, through a gate."""
    own = [task(name, f"src/{name}.c", check=CHEAP) for name in names]
    builds = project.root.parent / "builds"
    builds.touch()
    command = BUILD.replace("$BUILDS", str(builds))
    project.plan(
        [*own, *tasks], pools={"generation": 4}, gate={"batch": 5, "build": command, "owns": {}, **gate}
    )  # fmt: skip
    project.commit("plan")


def builds(project: Project) -> int:
    """Builds that were really made, all runs together."""
    return len((project.root.parent / "builds").read_text().split())


def said(project: Project, name: str) -> str:
    landed = json.loads((project.root / "cache/tasks" / name / "landed.json").read_text())
    return f"{landed['outcome']}: {landed['detail']}"


NOWHERE = "int nowhere(void);\nint bad(void) { return nowhere(); }\n"  # compiles, and does not link


def test_what_is_green_together_lands_together_and_the_guilty_one_and_the_pair_are_parked(project: Project) -> None:
    names = ["a", "b", "bad", "c", "d", "twin", "e", "other"]
    gated(project, names)
    project.agent(
        {"match": "cannot land yet", "exit": 1}, *(writing(name) for name in ("a", "b", "c", "d", "e")),
        writing("bad", NOWHERE), writing("twin", ONE), writing("other", ONE),
    )  # fmt: skip
    project.doit("-n", "2", "check")
    tip = project.git("rev-parse", "HEAD")
    done = project.doit("-n", "2", "gate", "--check", code=1)
    together = "green alone, and red together with twin, before it in landing order"
    assert {"a: green: it would land", "bad: check-failed: red alone", f"other: check-failed: {together}"} <= {
        *done.out.splitlines()
    }
    assert "2 of 8 would not land" in done.out
    assert project.git("rev-parse", "--all").split() == [tip.strip()], "it lands nothing"
    judged = builds(project)
    assert judged <= 16

    project.doit("-n", "2", "build", code=1)
    assert builds(project) == judged, "no state is judged twice, in whatever run"
    assert project.landed() == ["a", "b", "c", "d", "twin", "e"]
    assert said(project, "other").startswith(f"crashed: check-failed: build, {together}; its repair: crashed")
    assert said(project, "bad").startswith("crashed: check-failed: build, red alone; its repair: crashed")
    mending = [brief for each in project.drafts() if "cannot land yet" in (brief := each["brief"])]
    assert len(mending) == 2 and any(together in brief and "multiple definition" in brief for brief in mending)
    project.build_each()
    trees = project.git("log", "--format=%T", f"HEAD..{BRANCH}").split()
    green = {e["tree"] for e in project.events("build") if e["verdict"] == "green"}
    assert trees[0] in green, "what landed was built as it landed"


def test_a_mended_draft_goes_through_the_gate_again_and_who_waits_for_one_that_landed_need_not_wait_for_others(
    project: Project,
) -> None:
    later = task("later", "src/later.c", check=CHEAP, needs=["a"])
    gated(project, ["a", "bad", "b"], [later], each="! grep -q FORBIDDEN src/*.c", batch="auto")
    mended = {"match": "cannot land yet", "write": {"src/bad.c": "int bad(void) { return 0; }\n"}}
    project.agent(mended, writing("a"), writing("b"), writing("bad", NOWHERE), writing("later"))
    done = project.doit("-n", "2", "build")
    assert sorted(project.landed()) == ["a", "b", "bad", "later"]
    assert "repaired once" in done.out
    names = [e["name"] for e in project.events("condition") if e["scope"] == "a"]
    assert names[:2] == ["each", "compiles"]
    assert any("FORBIDDEN" in brief for brief in (each["brief"] for each in project.drafts()))
    project.build_each()
    green = {e["tree"] for e in project.events("build") if e["verdict"] == "green"}
    steps = project.git("log", "--format=%H %T", f"HEAD..{BRANCH}").splitlines()
    assert steps[0].split()[1] in green
    assert project.left() == []


def test_what_the_machine_could_not_finish_is_tried_again_covered_or_parked_as_unverified(project: Project) -> None:
    once = f"test -e {project.root.parent}/once || {{ touch {project.root.parent}/once; kill -9 $$; }}"
    hang = "grep -q HANG src/*.c && sleep 60"
    crash = "! grep -q CRASH src/*.c || sh -c 'kill -SEGV $$'"
    build = [f"echo built >> {project.root.parent}/builds", once, crash, f"{hang}; true"]
    gated(project, ["a", "hang", "crash"], timeout=1.5, build=build)
    project.agent(
        {"match": "cannot land yet", "exit": 1}, writing("a"),
        writing("hang", "/* HANG */\n"), writing("crash", "/* CRASH */\n"),
    )  # fmt: skip
    project.doit("-n", "2", "check")
    project.doit("-n", "2", "gate", code=1)
    assert project.landed() == ["a"]
    assert said(project, "hang").startswith("unverified: twice the machine could not finish a build of it")
    assert "no end within 1.5 s" in said(project, "hang")
    assert said(project, "crash").startswith("check-failed: red alone")
    assert "crashed with SIGSEGV" in said(project, "crash")
    first, second = project.events("build")[:2]
    assert (first["verdict"], second["stack"]) == ("unverified", first["stack"])
    assert "killed by SIGKILL" in first["detail"]
    covered = {e["task"]: e["verdict"] for e in project.events("covered")}
    assert covered["a"] == "green", "a later build holds it"
    assert builds(project) == len([e for e in project.events("build") if not e["cached"]])


def test_nothing_lands_on_a_branch_that_is_red_itself_and_nobody_is_blamed_for_it(project: Project) -> None:
    gated(project, ["a", "b"])
    project.write("src/main.c", "int nowhere(void);\nint main(void) { return nowhere(); }\n")
    project.commit("red")
    project.agent(writing("a"), writing("b"))
    project.doit("-n", "2", "build", code=1)
    assert all(said(project, name).startswith("blocked: the branch is red without it: ") for name in "ab")
    assert len(project.drafts()) == 2, "no repair"


def test_the_gate_owns_the_build_and_a_killed_run_is_gone_on_with(project: Project) -> None:
    """A watcher has the one tool all the time: whatever is built beside it fails."""
    place = project.root.parent
    tool = f"mkdir {place}/tool || exit 1; touch {place}/began; sleep $(cat {place}/seconds); rmdir {place}/tool"
    owns = {
        "pause": f"rmdir {place}/tool; echo pause >> {place}/log",
        "resume": f"mkdir -p {place}/tool; echo resume >> {place}/log",
    }
    (place / "seconds").write_text("0.01")
    (place / "tool").mkdir()
    gated(project, ["a", "b", "c"], batch=2, build=tool)
    project.agent(*map(writing, "abc"), {"match": "cannot land yet", "exit": 1})
    project.doit("-n", "2", "check")
    project.doit("-n", "2", "gate", "--check", code=1)
    assert {e["verdict"] for e in project.events("build")} == {"red"}, "it was no test"
    gated(project, ["a", "b", "c"], batch=2, build=tool, owns=owns)
    (place / "seconds").write_text("60")
    run = project.start("-n", "2", "gate", "--again")  # those that were red are built once more
    while not (place / "began").exists():
        time.sleep(0.05)
    run.kill()
    run.wait()
    (place / "seconds").write_text("0.01")
    project.doit("-n", "2", "gate", "--again")
    assert sorted(project.landed()) == ["a", "b", "c"]
    assert [e["verdict"] for e in project.events("build")] == ["green", "green"]
    log = (place / "log").read_text().split()
    assert (log[0], log[-1], log.count("pause")) == ("pause", "resume", 3)
    assert (place / "tool").is_dir(), "the watcher has it again"
    assert project.left() == []


@pytest.mark.parametrize("again", [False, True], ids=["landed", "to land again, behind the other"])
def test_a_repair_that_outlives_its_run_is_the_answer_though_the_gate_would_now_blame_for_another_reason_or_another(
    project: Project, again: bool
) -> None:
    """Of two that do not go together the first has landed when the run is killed: the other is red alone then; and
    where that one is to land once more, behind the other, it is the one that is red."""
    gated(project, ["twin", "other"])
    mended = {
        "match": "Write other.\n\n---\n\nYou have done",
        "write": {"src/other.c": "int other(void) { return 1; }\n"},
    }
    project.agent({**mended, "delay": 3, "tokens": 9}, writing("twin", ONE), {**writing("other", ONE), "delay": 0.5})
    project.doit("-n", "2", "check")
    run = project.start("-n", "2", "build")
    while len(project.drafts()) < 3:
        time.sleep(0.05)
    run.kill()
    run.wait()
    assert project.landed() == ["twin"]
    if again:
        project.git("branch", "--delete", "--force", BRANCH)
        gated(project, ["other", "twin"])
    project.doit("-n", "2", "build")
    assert sorted(project.landed()) == ["other", "twin"]
    assert project.on_branch("src/twin.c") == ONE
    assert len(project.drafts()) == 3, "it is not paid for twice, and neither is another one"
    project.build_each()
