"""Whole plans of agents' tasks: as wide as they are declared, every task with one ending, and none of it twice."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_project import BRANCH, CHECK, Project, make_project, task, writing
from conftest import HERE

KBUILD = "tests/kunit/Kbuild"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def story(project: Project) -> list[dict[str, Any]]:
    """The plan of twelve features, each to be drafted by an agent, with a function in each file that it writes."""
    data = yaml.safe_load((HERE / "plans/story.yaml").read_text())
    check = {"build": "cc -Wall -c -fsyntax-only core/*.c", "registered": "sh tests/registered"}
    rules, tasks = [], []
    for each in data["tasks"]:
        name, sources = each["name"], [path for path in each["writes"] if path.endswith(".c")]
        append = {path: f"int {name}_{path[5:-2]}(void);\n" for path in sources}
        append |= {path: f"{name}\n" for path in each["writes"] if path not in (*sources, KBUILD)}
        rules.append({"match": f"Write {name}.", "append": {**append, KBUILD: f"{name}\n"}, "delay": 2.0, "tokens": 10})
        tasks.append({**task(name, *each["writes"]), "needs": each.get("needs", []), "check": check})
    project.write("core/none.c", "int none;\n")
    project.write("tests/registered", f"cat {KBUILD} {KBUILD}.d/* 2>/dev/null | grep -q .\n")
    project.agent(*rules)
    return tasks


def test_twelve_features_land_all_serially_in_one_file_and_five_waves_deep_once_that_is_hoisted(
    project: Project,
) -> None:
    tasks = story(project)
    project.plan(tasks, pools={"generation": 4}, compose={KBUILD: "include"})
    project.commit("plan")

    def build() -> tuple[int, int]:
        """The most drafts at once, and how many one after another."""
        project.doit("-n", "4", "build")
        assert sorted(project.landed()) == sorted(each["name"] for each in tasks)
        drafts = [e for e in project.events() if e["kind"] == "draft"]
        most = max(sum(e["started"] <= at["started"] < e["ended"] for e in drafts) for at in drafts)
        row, ended = 0, 0.0
        for draft in sorted(drafts, key=lambda e: e["ended"]):
            if draft["started"] >= ended:
                row, ended = row + 1, draft["ended"]
        return most, row

    assert build() == (1, 12)
    assert (project.on_branch(KBUILD) or "").split().count("ethtool") == 1
    project.git("branch", "--delete", "--force", BRANCH)
    project.doit("plan", "--hoist", KBUILD, "--write")
    project.git("commit", "--quiet", "-am", "hoisted")
    assert "5 waves of 12 tasks" in project.doit("plan").out
    told = "Your share of tests/kunit/Kbuild goes into tests/kunit/Kbuild.d/"
    hoisted = [
        {**rule, "match": f"{told}{name},", "append": {**rule["append"], f"{KBUILD}.d/{name}": f"{name}\n"}}
        for rule in yaml.safe_load(Path(project.env["AGENT_SCRIPT"]).read_text())
        for name in [rule["match"].removeprefix("Write ").rstrip(".")]
        if rule["append"].pop(KBUILD)
    ]
    project.agent(*hoisted)
    most, row = build()
    assert 2 <= most <= 4
    assert 12 / row >= 1.8, "in drafts, of which each takes as long"


def test_forty_tasks_keep_their_caps_end_once_each_and_leave_every_commit_green(project: Project) -> None:
    """With AGENT_GATE=N set, through a gate that builds N changes at once."""
    tasks, rules, batch = [], [], os.environ.get("AGENT_GATE")
    for number in range(40):
        name = f"t{number:02}"
        more: tuple[str, ...] = ()
        if number < 18:  # three collision groups of six
            more = (f"src/shared{number % 3}.h",)
        each = task(name, f"src/{name}.c", *more)
        if number in (20, 21, 22):
            each["needs"] = ["t19"]  # which parks
        if number in (30, 31):
            each["needs"] = ["t04"]  # which parks, in the middle of a group
        tasks.append(each)
        rule = writing(name, append=dict.fromkeys(more, f"int {name}(void);\n"), delay=0.1, tokens=1)
        rules.append({**rule, "exit": 1, "tokens": 0} if number in (4, 19) else rule)
    gate = {"batch": int(batch), "build": "cc -Wall -Werror -o {out}/prog src/*.c", "owns": {}} if batch else None
    project.plan(tasks, pools={"generation": 6}, **({"gate": gate} if gate else {}))
    project.commit("plan")
    project.agent(*rules)
    done = project.doit("-n", "2", "build", code=1, timeout=900)
    events = project.events()
    for lane, cap in (("generation", 6), ("validation", 2)):
        spans = [(e["started"], e["ended"]) for e in events if e["lane"] == lane]
        assert max(sum(began <= at < ended for began, ended in spans) for at, _ in spans) <= cap
    parked = {f"t{number:02}" for number in (20, 21, 22, 30, 31)}
    ended = Counter(e["scope"] for e in project.events("ending"))
    assert ended == Counter(each["name"] for each in tasks), "admitted minus ended is empty"
    assert {e["scope"]: e["why"] for e in project.events("ending") if e["ending"] == "parked"} == {
        name: f"blocker {'t19' if name < 't30' else 't04'} did not land" for name in parked
    }
    assert set(project.landed()) == {each["name"] for each in tasks} - parked - {"t04", "t19"}
    assert not parked & {brief.split()[1].rstrip(".") for brief in project.asked()}
    for group in range(3):
        members = {f"t{number:02}" for number in range(18) if number % 3 == group}
        spans = sorted(
            (min(e["started"] for e in mine), max(e["ended"] for e in mine))
            for name in members
            if (mine := [e for e in events if e["scope"] == name and e["lane"]])
        )
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans)), "serial inside"
    assert "internal error" not in done.both
    project.build_each()


@pytest.mark.parametrize("gate", [False, True], ids=["one by one", "through the gate"])
def test_a_run_killed_at_any_moment_pays_for_no_draft_twice_and_lands_each_change_once(
    project: Project, gate: bool
) -> None:
    """Through the gate, one draft is to be mended, and one of two that do not go together."""
    kills, seed = int(os.environ.get("AGENT_KILLS", "5")), int(os.environ.get("AGENT_SEED", "7"))
    names = [f"k{number:02}" for number in range(max(6, kills))]
    shared = {name: {"src/all.h": f"int {name}(void);\n"} for name in names[4::5]}
    watcher = project.root.parent / "watcher"  # on or off, beside the builds
    watcher.write_text("on\n")
    owns = {"pause": f"echo off > {watcher}", "resume": f"echo on > {watcher}"}
    check, more = {**CHECK, "build": {"run": CHECK["build"], "owns": owns}}, {}
    good, twins = {name: f"int {name}(void) {{ return 0; }}\n" for name in names}, names[1:4:2] if gate else []
    first = {**good, **{name: f"{good[name]}int twin(void) {{ return 1; }}\n" for name in twins}}
    if gate:
        first["k02"] = "int nowhere(void);\nint k02(void) { return nowhere(); }\n"
        check = {"compiles": "for f in src/*.c; do cc -fsyntax-only $f || exit 1; done"}
        build = f"grep -q off {watcher} && sleep 0.3 && cc -Wall -Werror -o {{out}}/prog src/*.c && {{out}}/prog"
        more = {"gate": {"batch": 3, "each": "test -d src", "build": build, "owns": owns}}
    tasks = [
        {**task(name, f"src/{name}.c", *(["src/all.h"] if name in shared else [])), "check": check} for name in names
    ]
    project.plan(tasks, pools={"generation": 3}, **more)
    project.commit("plan")
    mend = [
        {**writing(name, delay=0.7), "match": f"Write {name}.\n\n---\n\nYou have done this"}
        for name in ([*twins, "k02"] if gate else [])
    ]
    drafted = [writing(name, first[name], delay=0.7, append=shared.get(name, {})) for name in names]
    project.agent(*mend, *drafted)
    chance = random.Random(seed)
    for _ in range(kills):
        run = project.start("-n", "2", "build")
        time.sleep(chance.uniform(0.8, 4.0))
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    project.doit("-n", "2", "build")
    asked = Counter(line.split()[1].rstrip(".") for line in project.asked())
    mended = sorted((asked - Counter(names)).elements())
    assert asked == Counter([*names, *mended]), "none is paid for twice"
    assert mended in [["k01", "k02"], ["k02", "k03"]] if gate else mended == [], "one of the pair"
    blamed = {e["task"] for e in project.all_events("gated") if e["guilty"]}
    assert set(mended) <= blamed, "no repair is paid that the gate has asked for of nobody"
    assert sorted(project.landed()) == names, "none is lost, none doubled"
    files = {f"src/{name}.c": (good if name in mended else first)[name] for name in names}
    before = project.git("ls-tree", "-r", "--name-only", "HEAD").split()
    there = project.git("ls-tree", "-r", "--name-only", BRANCH).split()
    assert there == sorted([*before, *files, "src/all.h"])
    assert {path: project.on_branch(path) for path in files} == files, "and each is as it was drafted, or mended"
    declared = sorted(each["src/all.h"] for each in shared.values())
    assert sorted((project.on_branch("src/all.h") or "").splitlines(keepends=True)) == declared
    assert watcher.read_text() == "on\n", "the watcher runs again"
    assert project.left() == []
    project.build_each()
    project.doit("-n", "2", "build")
    assert not [e for e in project.events() if e["lane"]]
    calls = Counter(e["scope"] for e in project.all_events("call") if e["tokens"])
    assert calls == asked, "each is in the books once"
