"""The tasks of agents, from brief to landing branch: real doit, git and builds; a stand-in for the paid agent."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from agent_project import BRANCH, CHECK, MAIN, Project, make_project, task, writing


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


# -- the whole way


def test_a_change_is_drafted_checked_and_landed_once_and_nothing_of_it_is_asked_for_again(project: Project) -> None:
    project.write("docs/sub.md", "# Subtraction\n\nWrite sub.\n")
    hidden = {"secret": {"run": "grep -q sub src/sub.c", "hidden": True}}
    sub = task("sub", "src/sub.c", agent={"brief": "docs/sub.md"}, reads=["src/main.c"], env={"TOLD": "yes"})
    project.plan([{**sub, "check": {**hidden, **CHECK}}])
    project.commit("plan")
    project.write("src/main.c", MAIN + "/* an edit that is not committed */\n")
    project.agent(writing("sub", run=["slot ls", "echo $TOLD", "git add --all", "git commit --quiet -m mine"]))
    listed = project.doit("list", "--all").out
    assert all(f"{kind}:sub" in listed for kind in ("draft", "check", "land", "build"))
    assert "its brief is the same" in project.doit("info", "draft:sub", code=1).out
    assert "sub" in project.doit("plan").out
    assert project.drafts() == []

    done = project.doit("-n", "2", "build")
    (call,) = project.drafts()
    assert project.landed() == ["sub"]
    assert "sub: Subtraction" in project.git("log", "-1", "--format=%s", BRANCH)
    assert "int sub" in (project.on_branch("src/sub.c") or "")
    assert project.on_branch("src/main.c") == MAIN, "what is not committed lands with nothing"
    assert call["nice"] == min(19, os.nice(0) + 10)
    assert call["cwd"] != str(project.root)
    assert all(said in call["brief"] for said in ("# Subtraction", "src/sub.c", "slot", "src/main.c", CHECK["build"]))
    assert "secret" not in call["brief"]
    assert "grep" not in call["brief"]
    (tokens,) = [e["tokens"] for e in project.events("call")]
    assert (tokens["fresh_input"], tokens["output"], tokens["cache_read"]) == (10, 100, 5)
    assert [e["name"] for e in project.events("condition")] == ["build", "tests", "secret"], "hidden ones come last"
    (log,) = (project.root / "cache/logs").glob("*-draft-sub.log")
    assert b'"type": "result"' in log.read_bytes()
    assert b"yes" in log.read_bytes()
    assert project.left() == []
    assert "landed" in done.out
    assert not (project.root / "src/sub.c").exists()
    assert "1 tasks taken on" in project.doit("report", "--check").out
    patch = (project.root / "cache/tasks/sub/change.patch").read_text()
    assert "+int sub" in patch

    def again(*words: str) -> set[str]:
        """The tasks that a run performs, none of which asks the agent."""
        project.doit("-n", "2", "build", *words)
        assert len(project.drafts()) == 1
        return {e["task"] for e in project.events() if e["lane"]}

    tip = project.git("rev-parse", BRANCH)
    assert again() == set()
    project.git("branch", "--delete", "--force", BRANCH)
    assert again() == {"land:sub"}, "a kept diff lands again"
    assert project.events("condition") == [], "on the tree that was checked"
    shutil.rmtree(project.root / "cache")
    assert again() == {"draft:sub", "check:sub", "land:sub"}, "the kept draft is found by what the branch says"
    assert len(project.landed()) == 1
    project.write("src/other.c", "int other(void) { return 1; }\n")
    project.git("add", "src/other.c")
    project.git("commit", "--quiet", "--message", "elsewhere")
    assert again() == {"land:sub"}, "HEAD moved, and nothing that it reads or writes"
    assert {e["phase"] for e in project.events("condition")} == {"rerun"}, "no landing on a check from before"
    assert project.git("rev-parse", BRANCH) != tip
    project.git("merge", "--quiet", "--ff-only", BRANCH)
    assert again() == set(), "merged"
    project.write("docs/sub.md", "# Subtraction\n\nWrite sub. Make it return 2.\n")
    project.agent(writing("sub", "int sub(void) { return 2; }\n"))
    project.doit("-n", "2", "build")
    assert len(project.drafts()) == 2, "another brief"
    assert "return 2" in (project.on_branch("src/sub.c") or "")
    project.git("merge", "--quiet", "--ff-only", BRANCH)
    project.git("commit", "--quiet", "-am", "what it reads")
    project.doit("-n", "2", "build")
    assert len(project.drafts()) == 3, "what it reads is otherwise on HEAD"
    assert {e["outcome"] for e in project.events()} == {"ok"}, "that nothing was left to do is no failure"
    project.doit("-n", "2", "build")
    assert not [e for e in project.events() if e["lane"]]


def test_each_way_in_which_a_draft_can_end_is_an_outcome_of_its_own_and_stops_no_other_task(project: Project) -> None:
    limits = {"hang": {"time_limit": 2}, "deaf": {"time_limit": 2}, "greedy": {"budget": 250}, "late": {"budget": 50}}
    names = ("good", "astray", "idle", "hang", "deaf", "greedy", "late", "limited", "broken", "red", "slow")
    tasks = [task(name, f"src/{name}.c", agent=limits.get(name, {})) for name in names]
    by_name = {each["name"]: each for each in tasks}
    by_name["slow"]["check"] = {"build": {"run": "sleep 60", "timeout": 0.5}}
    tasks.append(task("needy", "src/needy.c", needs=["hang"]))
    project.plan(tasks, pools={"generation": 11}, models={"backoff": 0.01})
    project.commit("plan")
    project.agent(
        writing("good"), writing("astray", append={"src/main.c": "/* mine */\n"}), {"match": "Write idle."},
        writing("hang", special="hang"), writing("deaf", special="deaf"), writing("greedy", stream=20),
        writing("late"), writing("limited", error="API Error: Rate limit reached\x1b[2J"),
        writing("broken", exit=3, tokens=0), {"match": "cannot land yet", "exit": 1},
        writing("red", "int red(void) { return 0 }\n"), writing("slow"),
    )  # fmt: skip
    done = project.doit("-n", "2", "build", code=1)
    lines = done.out.splitlines()
    said = {name: next(line for line in lines if line.startswith(f"{name}: ")) for name in (*names[1:], "needy")}
    expected = {
        "astray": "parked: outside-scope: it changed src/main.c, outside its `writes`",
        "idle": "parked: empty-reply: the agent ended well and changed no file",
        "hang": "failed: time-limit:", "deaf": "failed: time-limit:",
        "greedy": "parked: over-budget:", "late": "parked: over-budget: 110 tokens, and its budget is 50",
        "limited": "failed: exhausted: rate-limited 4 times: agent: API Error: Rate limit reached\\x1b[2J",
        "broken": "failed: crashed: agent ended with exit code 3",
        "red": "parked: crashed: check-failed: build; its repair: crashed:",
        "slow": "parked: unverified: build: sleep 60: no end within 0.5 s",
        "needy": "parked: blocker hang did not land",
    }  # fmt: skip
    assert {name: line for name, line in said.items() if not line.startswith(f"{name}: {expected[name]}")} == {}
    assert "\x1b" not in done.both, "what would steer a terminal is written out"
    assert project.landed() == ["good"]
    assert "Write needy." not in project.asked(), "not on a base that lacks what it needs"
    assert "+/* mine */" in (project.root / "cache/tasks/astray/change.patch").read_text(), "the change is kept"
    assert project.left() == []
    assert Counter(e["ending"] for e in project.events("ending")) == {"landed": 1, "parked": 7, "failed": 4}
    assert "needs" not in project.doit("report", "--check", code=1).err
    calls = len(project.drafts())

    project.plan(
        [{**each, "agent": {**each["agent"], "budget": 5000}} if each["name"] == "late" else each for each in tasks],
        pools={"generation": 11},
        models={"backoff": 0.01},
    )
    project.doit("-n", "2", "land:late", "land:astray", code=1)
    assert sorted(project.landed()) == ["good", "late"], "its draft was whole: a larger budget lets it through"
    assert len(project.drafts()) == calls, "nothing that was drafted to its end is paid for twice"


def test_whatever_an_agent_does_with_git_is_done_to_its_own_repository_and_its_change_is_found_all_the_same(
    project: Project,
) -> None:
    """Stash, branches, configuration and hooks of a worktree are those of the user's checkout."""
    does = {
        "stash": ["git log -1 --format=seen-%s; git stash list", "git stash --include-untracked; git stash pop"],
        "popped": ["git stash pop"],
        "named": ["git config user.name Mallory", "git config core.hooksPath /nowhere"],
        "hooked": ["echo exit 1 > $(git rev-parse --git-common-dir)/hooks/pre-commit",
                   "chmod +x $(git rev-parse --git-common-dir)/hooks/pre-commit"],
        "branched": ["git branch --force theirs HEAD~1; git branch more; git tag more; git worktree prune"],
        "bare": ["rm -rf .git"],
        "anew": ["rm -rf .git; git init --quiet; git add --all"],
        "inner": ["cd src/inner; git init --quiet", "git init --quiet src/inner/two; cd src/inner/two; echo 2 > two;"
                  "git add two; git commit --quiet -m two"],
        "forked": [f"setsid sh -c 'sleep 1; echo {project.root} >> src/forked.c; sleep 600' > /dev/null 2>&1 &"],
        "large": ["truncate -s 70M src/large.bin"],
    }  # fmt: skip
    rules = [writing(name, run=run) for name, run in does.items()]
    rules[list(does).index("inner")]["write"] = {"src/inner/one": "1\n"}
    extra = {"inner": ["src/inner/"], "large": ["src/large.bin"]}
    tasks = [{**task(name, f"src/{name}.c", *extra.get(name, [])), "check": {"any": "true"}} for name in does]
    project.plan(tasks, pools={"generation": 9})
    project.commit("plan")
    project.agent(*rules)
    project.write("src/main.c", MAIN + "/* to be stashed */\n")
    project.git("stash")
    project.git("branch", "theirs")

    def shared() -> list[object]:
        refs = [line for line in project.git("for-each-ref").splitlines() if BRANCH not in line]
        hooks = sorted(path.name for path in (project.root / ".git/hooks").iterdir())
        return [refs, hooks, project.git("stash", "list"), (project.root / ".git/config").read_text()]

    before = shared()
    project.doit("-n", "2", "build")
    assert shared() == before
    told = ["ps", "-e", "-ww", "-o", "args="]
    assert f"echo {project.root}" not in subprocess.run(told, capture_output=True, text=True, check=True).stdout
    assert sorted(project.landed()) == sorted(does)
    assert set(project.git("log", "--format=%an", f"HEAD..{BRANCH}").split()) == {"Tess"}
    assert [project.on_branch(f"src/inner/{path}") for path in ("one", "two/two")] == ["1\n", "2\n"]
    assert int(project.git("cat-file", "-s", f"{BRANCH}:src/large.bin")) == 70 << 20
    (log,) = (project.root / "cache/logs").glob("*-draft-stash.log")
    assert b"seen-plan" in log.read_bytes()
    assert b"WIP on main" not in log.read_bytes(), "the user's stash is not to be seen there"
    assert project.left() == []
    calls = len(project.drafts())
    project.doit("-n", "2", "build")
    assert len(project.drafts()) == calls
    assert all(e["tokens"] for e in project.all_events("call"))


# -- landing


def test_a_draft_that_outlives_its_run_is_counted_from_the_commit_that_it_was_made_from(project: Project) -> None:
    project.plan([task("slow", "src/slow.c"), task("quick", "src/quick.c")])
    project.commit("plan")
    project.agent(writing("slow", delay=2.0), writing("quick"))
    run = project.start("-n", "2", "build:slow")
    while not project.drafts():
        assert run.poll() is None, (project.root.parent / "out").read_text()
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    project.doit("-n", "2", "build:quick")
    assert project.landed() == ["quick"]
    project.doit("-n", "2", "build")
    assert sorted(project.landed()) == ["quick", "slow"]
    assert len(project.drafts()) == 2


def test_of_two_changes_that_are_green_alone_and_red_together_the_second_never_lands_as_it_is(project: Project) -> None:
    tasks = [task(name, f"src/{name}.c") for name in ("one", "two")]
    project.plan(tasks, pools={"generation": 2})
    project.commit("plan")
    same = "int twice(void) { return 2; }\n"
    mended = {"match": "multiple definition", "write": {"src/two.c": "int thrice(void) { return 3; }\n"}, "tokens": 50}
    project.agent({"match": "cannot land yet", "exit": 1}, writing("one", same), writing("two", same, delay=0.5))
    done = project.doit("-n", "2", "build", code=1)
    assert project.landed() == ["one"]
    assert "check-failed: build" in done.out
    project.build_each()
    attempts = [(e["task"], e["outcome"]) for e in project.events() if e["scope"] == "two"]
    assert attempts[-2:] == [("repair:two", "crashed"), ("land:two", "crashed")]

    first = project.drafts()
    project.agent(mended, writing("one", same), writing("two", same))
    done = project.doit("-n", "2", "build")
    assert len(project.drafts()) == len(first) + 1, "the repair alone was asked for again"
    assert project.landed() == ["one", "two"]
    assert "thrice" in (project.on_branch("src/two.c") or "")
    assert "two: landed: repaired once" in done.out
    assert "useful work" in done.out
    assert "recovery" in done.out
    project.build_each()
    assert project.doit("-n", "2", "build").out.count("-- ") == 6, "whether it was the check that failed or the landing"
    project.git("branch", "--delete", "--force", BRANCH)
    project.doit("-n", "2", "build")
    assert sorted(project.landed()) == ["one", "two"]
    assert len(project.drafts()) == len(first) + 1, "what was repaired lands again as well"


@pytest.mark.parametrize("gate", [False, True], ids=["in a check", "in the gate's build"])
def test_what_holds_only_of_files_that_the_check_has_changed_does_not_land(project: Project, gate: bool) -> None:
    mends = "sed -i s/broken/0/ src/one.c; git add --all"
    tasks = [task("one", "src/one.c"), task("two", "src/two.c")]
    check = {"any": "true"} if gate else {"mends": mends, **CHECK}
    build = {"gate": {"batch": 1, "build": f"{mends}; cc -c -o {{out}}/any.o src/main.c", "owns": {}}} if gate else {}
    made = {"touches": "touch src/main.c; echo new > new.txt", **CHECK}
    project.plan([{**tasks[0], "check": check}, {**tasks[1], "check": made}], pools={"generation": 1}, **build)
    project.commit("plan")
    project.agent(writing("one", "int one(void) { return broken; }\n"), writing("two"))
    done = project.doit("-n", "2", "build:one", code=1)
    assert "it changed src/one.c: what it judged is not what would land" in done.out
    assert "one: parked: unverified" in done.out
    assert len(project.drafts()) == 1, "no repair is paid for where nobody knows what is wrong"
    project.doit("-n", "2", "build:two")
    assert project.landed() == ["two"]


def test_a_conflict_gets_one_repair_in_which_the_merge_lock_is_free(project: Project) -> None:
    """A person changes the file on HEAD while the draft is made."""
    project.write("src/lib.c", "int lib(void) { return 1; }\n")
    tasks = [task("lib", "src/lib.c"), task("apart", "src/apart.c")]
    project.plan(tasks, pools={"generation": 2})
    project.commit("plan")
    theirs = "sed -i s/1/3/ src/lib.c; git commit --quiet -am theirs"
    project.agent(
        {"match": "this change do not go together", "write": {"src/lib.c": "int lib(void) { return 5; }\n"},
         "first": ["grep -n '<<<<' src/lib.c"], "delay": 1, "tokens": 9},
        writing("apart", delay=0.2),
        writing("lib", "int lib(void) { return 2; }\n", run=[f"cd {project.root} && {theirs}"]),
    )  # fmt: skip
    project.doit("-n", "2", "build")
    assert sorted(project.landed()) == ["apart", "lib"]
    assert "return 5" in (project.on_branch("src/lib.c") or "")
    (log,) = (project.root / "cache/logs").glob("*-repair-lib.log")
    assert b"<<<<" in log.read_bytes(), "with the conflict in the files"
    events = project.events()
    (repair,) = [e for e in events if e["kind"] == "repair"]
    assert repair["lane"] == "generation"
    project.build_each()


def test_what_comes_off_as_head_moves_in_mid_run_is_not_told_as_landed_and_nothing_is_made_without_it(
    project: Project,
) -> None:
    tasks = [task(name, f"src/{name}.c") for name in ("a", "b", "c", "d")]
    for each, need in zip(tasks[1:], "aba", strict=True):
        each["needs"] = [need]
    project.plan(tasks, pools={"generation": 1})
    project.commit("plan")
    moves = f"cd {project.root} && git commit --quiet --allow-empty -m theirs"
    project.agent(writing("b", run=[moves]), *(writing(name) for name in ("a", "c", "d")))
    done = project.doit("-n", "2", "build", code=1)
    assert project.landed() == []
    assert "a: not reached: HEAD moved, and it came off mutate/main" in done.out
    lost = "parked: blocker a did not land: HEAD moved, and it came off"
    assert all(f"{name}: {lost}" in done.out for name in ("b", "d"))
    assert project.asked() == ["Write a.", "Write b."], "none without what it needs"
    assert "a: not reached" in project.doit("report", "--check", code=1).both
    project.doit("-n", "2", "build")
    assert sorted(project.landed()) == ["a", "b", "c", "d"]
    assert sorted(project.asked()) == [f"Write {name}." for name in ("a", "b", "c", "d")]
    project.doit("report", "--check")


def test_what_a_person_took_back_does_not_land_again(project: Project) -> None:
    project.plan([task("one", "src/one.c")])
    project.commit("plan")
    project.agent(writing("one"))
    project.doit()  # one task at a time, and nothing else is declared
    project.git("merge", "--quiet", "--ff-only", BRANCH)
    project.git("revert", "--no-edit", "HEAD")
    done = project.doit("-n", "2", "build", code=1)
    assert "one: parked: rejected: somebody took src/one.c back" in done.out
    assert project.landed() == []
    assert len(project.drafts()) == 1


# -- order


def test_tasks_that_write_one_file_are_serial_and_one_that_parks_stops_those_that_need_it(project: Project) -> None:
    project.write("src/all.h", "\n")
    names = ("a", "b", "c", "d")
    tasks = [task(name, f"src/{name}.c", "src/all.h") for name in names] + [task("apart", "src/apart.c")]
    tasks[1]["needs"] = ["a"]
    project.plan(tasks, pools={"generation": 4})
    project.commit("plan")
    rules = [writing(n, append={"src/all.h": f"int {n}(void);\n"}, delay=0.1) for n in names]
    project.agent(*(r if r["match"] != "Write a." else {**r, "exit": 1, "tokens": 0} for r in rules), writing("apart"))
    project.doit("-n", "2", "build", code=1)
    assert [name for name in project.landed() if name != "apart"] == ["c", "d"]
    assert "Write b." not in project.asked()
    ends = {e["scope"]: e["ended"] for e in project.events() if e["kind"] == "land"}
    starts = {e["scope"]: e["started"] for e in project.events() if e["kind"] == "draft"}
    assert starts["d"] >= ends["c"]
    assert (project.on_branch("src/all.h") or "").split("\n")[1:3] == ["int c(void);", "int d(void);"]

    project.agent(*rules)
    calls = len(project.drafts())
    project.doit("-n", "2", "build")
    assert sorted(project.asked()[calls:])[:2] == ["Write a.", "Write b."]
    assert sorted(project.landed()) == ["a", "apart", "b", "c", "d"]
    project.build_each()
    settled = len(project.drafts())
    project.doit("-n", "2", "build")
    assert len(project.drafts()) == settled
    assert not [e for e in project.events() if e["lane"]], "a second run does nothing"
