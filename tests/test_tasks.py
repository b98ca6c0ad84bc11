"""Declared tasks: doit and git for real, in a small repository without Node."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from conftest import DODO, World

HERE = Path(__file__).parent


@pytest.fixture
def lab(tmp_path: Path) -> World:
    """A repository with one commit, and no task yet."""
    world = World(tmp_path / "repo", tmp_path / "home")
    (tmp_path / "gitconfig").write_text(
        "[user]\nname = Tess\nemail = tess@example.invalid\n[init]\ndefaultBranch = main\n"
    )
    world.write("dodo.py", DODO)
    world.write(".gitignore", "__pycache__/\ncache/\nbuild/\n")
    world.write("in.txt", "one\n")
    world.write("src/a.c", "a\n")
    world.write("src/b.c", "b\n")
    world.git("init", "--quiet")
    world.write("tasks.yaml", "version: 1\n")
    world.commit("begin")
    return world


def plan(world: World, *tasks: dict[str, Any], **more: Any) -> None:
    """The plan of these tasks, committed."""
    world.write("tasks.yaml", yaml.safe_dump({"version": 1, **more, "tasks": list(tasks)}))
    world.commit("plan")


def task(name: str, run: str | list[str], **fields: Any) -> dict[str, Any]:
    return {"name": name, "run": run, **fields}


def outcomes(world: World) -> dict[str, str]:
    carried = (name for event in world.events("carried") for name in event["tasks"])
    return {**dict.fromkeys(carried, "cached"), **{event["task"]: event["outcome"] for event in world.events()}}


def run(world: World, *names: str, n: int = 2, code: int = 0, options: tuple[str, ...] = ()) -> dict[str, str]:
    """What the tasks came to, by the ledger."""
    world.doit("-n", str(n), *options, *names, code=code)
    return outcomes(world)


def overlapping(world: World) -> set[frozenset[str]]:
    """Pairs of tasks that were running at one time in the last run."""
    ran = [(e["started"], e["ended"], e["task"]) for e in world.events() if e["lane"]]
    return {
        frozenset((a[2], b[2])) for a, b in itertools.combinations(ran, 2) if a[0] < b[1] and b[0] < a[1]
    }  # fmt: skip


def test_doit_alone_runs_all_that_is_declared_where_nothing_is_to_be_mutated(lab: World) -> None:
    plan(lab, task("a", "echo a > build_a", writes=["build_a"]), task("b", "true"))
    assert run(lab) == {"a": "ok", "b": "ok"}
    lab.doit("clean", "a")
    assert lab.read("build_a") == "a\n"


# Up to date


def test_a_task_runs_again_for_its_commands_its_variables_its_reads_and_what_is_in_them(lab: World) -> None:
    kept = {
        "kept": task("kept", "true", reads=["in.txt"], writes=["build/"]),
        "command": task("command", "true", reads=["in.txt"]),
        "variable": task("variable", "true", reads=["in.txt"], env={"A": "1"}),
        "reads": task("reads", "true", reads=["in.txt"]),
        "file": task("file", "true", reads=["src/a.c"]),
        "directory": task("directory", "true", reads=["src"]),
        "pattern": task("pattern", "true", reads=["src/**/*.c"]),
        "without": task("without", "true", reads=["src/**", "!src/a.c"]),
        "always": task("always", "true"),
    }
    lab.write("build/made", "")  # ignored by git
    plan(lab, *kept.values())
    assert run(lab, *kept) == dict.fromkeys(kept, "ok")
    os.utime(lab.root / "src/b.c", (1, 1))
    assert run(lab, *kept) == dict.fromkeys(kept, "cached") | {"always": "ok"}
    kept["command"]["run"] = "true again"
    kept["variable"]["env"] = {"A": "2"}
    kept["reads"]["reads"] = ["in.txt", "src/b.c"]
    lab.write("src/a.c", "edited\n")
    plan(lab, *kept.values())
    changed = ["command", "variable", "reads", "file", "directory", "pattern", "always"]
    assert run(lab, *kept) == dict.fromkeys(kept, "cached") | dict.fromkeys(changed, "ok")
    lab.write("src/deep/new.c", "")
    seen = ["directory", "pattern", "without", "always"]
    assert run(lab, *kept) == dict.fromkeys(kept, "cached") | dict.fromkeys(seen, "ok")


def test_what_was_edited_while_a_task_read_it_makes_it_run_again(lab: World) -> None:
    command = "cat src/*.c > build/all; echo edited >> src/a.c"
    plan(lab, task("slow", command, reads=["src/"], writes=["build/all", "src/"]))
    lab.write("build/.keep", "")
    assert run(lab, "slow") == {"slow": "ok"}
    assert run(lab, "slow") == {"slow": "ok"}


def test_what_was_written_and_is_no_longer_as_it_was_left_makes_its_writers_run_again(lab: World) -> None:
    tasks = [
        task("a", "echo a >> Kbuild", reads=["src/a.c"], writes=["Kbuild"]),
        task("b", "echo b >> Kbuild", reads=["src/b.c"], writes=["Kbuild"]),
        task("out", "mkdir -p build/x && echo 1 > build/x/o", reads=["in.txt"], writes=["build/x/"]),
        task("gen", "mkdir -p gen && echo 1 > gen/1.h", reads=["in.txt"], writes=["gen/*.h"]),
    ]
    everything = ["a", "b", "out", "gen"]
    plan(lab, *tasks)
    assert run(lab, *everything) == dict.fromkeys(everything, "ok")
    assert run(lab, *everything) == dict.fromkeys(everything, "cached")
    lab.write("src/b.c", "edited\n")
    lab.write("build/x/o", "not what it made\n")
    assert run(lab, *everything) == {"a": "cached", "b": "ok", "out": "ok", "gen": "cached"}
    assert lab.read("Kbuild").split() in (["a", "b", "b"], ["b", "a", "b"])
    (lab.root / "gen/1.h").unlink()
    lab.write("Kbuild", "somebody else's\n")
    assert run(lab, *everything) == {"a": "ok", "b": "ok", "out": "cached", "gen": "ok"}
    assert sorted(lab.read("Kbuild").split()) == ["a", "b", "else's", "somebody"]


@pytest.mark.parametrize(
    ("writes", "said"),
    [
        ("made", "ended without its target made"),
        ("build/made/", "ended without its target build/made/"),
        ("gen/**/*.c", "ended without its target gen/**/*.c"),
        ("src/new", "src/new is a directory: say src/new/ in `writes`"),
    ],
)
def test_success_without_what_was_declared_is_a_failure(lab: World, writes: str, said: str) -> None:
    plan(lab, task("a", "mkdir -p src/new gen", reads=["in.txt"], writes=[writes]))
    assert f"a: {said}\n" in lab.doit("a", code=1).out
    assert outcomes(lab) == {"a": "crashed"}


def test_the_half_made_targets_of_a_failed_task_are_not_believed(lab: World) -> None:
    half = "echo half > {0} && test -e go && echo whole > {0}"
    plan(
        lab,
        task("file", half.format("made"), reads=["in.txt"], writes=["made"]),
        task("folder", f"mkdir -p out; {half.format('out/made')}", reads=["in.txt"], writes=["out/"]),
        task("one", half.format("shared"), reads=["in.txt"], writes=["shared"]),
        task("other", "echo other >> shared", reads=["in.txt"], writes=["shared"]),
    )
    names = ("file", "folder", "one")
    assert run(lab, "other") == {"other": "ok"}
    assert run(lab, *names, code=1, options=("--continue",)) == dict.fromkeys(names, "crashed")
    lab.write("go", "")
    assert run(lab, *names, "other") == dict.fromkeys((*names, "other"), "ok"), "what it shared was spoilt as well"
    assert (lab.read("made"), lab.read("out/made")) == ("whole\n", "whole\n")


def test_the_half_made_target_of_a_killed_run_is_not_believed(lab: World) -> None:
    command = "echo half > made; sleep $(cat wait); echo whole > made"
    lab.write("wait", "0")
    plan(lab, task("a", command, reads=["in.txt"], writes=["made"]))
    assert run(lab, "a") == {"a": "ok"}
    lab.write("in.txt", "edited\n")
    lab.write("wait", "60")
    process = lab.start("-n", "1", "a")
    deadline = time.monotonic() + 20
    while lab.read("made") != "half\n":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lab.write("in.txt", "one\n")  # as it was when the task succeeded
    lab.write("wait", "0")
    assert run(lab, "a") == {"a": "ok"}
    assert lab.read("made") == "whole\n"


# How a task fails


def test_what_a_failed_command_said_is_shown_whole_and_once_in_the_order_in_which_it_was_said(lab: World) -> None:
    plan(lab, task("bad", ["echo before", "echo one; echo two >&2; seq 1000; echo three; exit 3", "echo never"]))
    for options in ((), ("-v", "2"), ("-v", "0")):
        out = lab.doit(*options, "bad", code=1).both
        numbers = "\n".join(map(str, range(1, 1001)))
        assert out.count(f"before\none\ntwo\n{numbers}\nthree\n") == 1
        assert out.count("\nthree\n") == 1
        assert out.count("three; exit 3, echo never: exit status 3") == 0
        assert "seq 1000; echo three; exit 3: exit status 3" in out
        assert "never" not in out


def test_a_task_that_takes_too_long_or_too_much_or_is_killed_ends_with_that_outcome(lab: World) -> None:
    plan(
        lab,
        task("slow", ["sleep 0.3", "sleep 0.3", "sleep 60"], timeout=0.5),
        task("big", ["head -c 300000000 /dev/zero | tail | sleep 60"], memory="100MB"),
        task("killed", "kill -9 $$"),
        task("after", "true", needs=["killed"]),
    )
    done = lab.doit("-n", "4", "--continue", "slow", "big", "killed", "after", code=2)
    assert outcomes(lab) == {"slow": "time-limit", "big": "memory", "killed": "signal"}
    assert "sleep 0.3: no end within 0.5 s" in done.out
    assert "tail | sleep 60: more than the 100,000,000 bytes of memory that it asked for" in done.out
    assert "kill -9 $$: killed by SIGKILL" in done.out


def test_info_shows_every_command_and_what_is_locked(lab: World) -> None:
    plan(lab, task("a", ["echo one > made", "echo two"], reads=["src/"], writes=["made", "gen/*.c"], memory="1GiB"))
    out = lab.doit("info", "a", code=1).out
    for text in (
        "echo one > made",
        "echo two",
        f"{lab.root}/src'",
        f"{lab.root}/gen'",
        f"{lab.root}/made'",
        "1073741824",
    ):
        assert text in out


# Outside its scope


def test_a_task_that_changes_what_it_did_not_declare_fails_however_often_it_is_tried(lab: World) -> None:
    good = "echo 1 > made; mkdir -p gen/d build; echo 1 > gen/d/x.c; echo 1 > build/o; git add made"
    plan(
        lab,
        task("good", good, writes=["made", "gen/**/*.c"]),
        task("bad", "echo 1 > new.txt; echo 1 >> src/a.c; rm -f src/b.c; echo 1 > mine.txt", writes=["src/c.c"]),
        task("commits", "echo 1 >> src/a.c; git commit -qam x"),
    )
    lab.write("mine.txt", "the user's\n")
    lab.write("unknown.txt", "the user's\n")
    lab.write("in.txt", "edited by the user\n")
    assert run(lab, "good") == {"good": "ok"}
    assert "changed outside its `writes`: mine.txt, new.txt, src/a.c, src/b.c\n" in lab.doit("bad", code=1).out
    assert outcomes(lab) == {"bad": "outside-scope"}
    assert "changed outside its `writes`: mine.txt, new.txt, src/a.c\n" in lab.doit("bad", code=1).out
    lab.commit("all of it")
    assert "changed outside its `writes`: src/a.c\n" in lab.doit("commits", code=1).out


def test_a_name_that_no_terminal_takes_is_told_all_the_same(lab: World) -> None:
    plan(lab, task("odd", r"printf x > $(printf 'a\377')"))
    assert r"changed outside its `writes`: 'a\udcff'" in lab.doit("odd", code=1).out


def test_what_changes_outside_the_project_but_in_its_repository_is_named_from_the_project(lab: World) -> None:
    plan(lab, task("a", "echo 1 > ../above.txt"), project="src")
    assert "changed outside its `writes`: ../above.txt\n" in lab.doit("a", code=1).out


def test_a_change_is_charged_to_those_that_ran_then_unless_one_of_them_may_write_it(lab: World) -> None:
    wait = "for i in $(seq 500); do test -e build/{0} && break; sleep 0.02; done; "
    bad = "touch build/bad; " + wait.format("beside") + "echo 1 >> wrong; touch build/told"
    beside = "touch build/beside; " + wait.format("bad") + wait.format("told")
    early = task("early", "true")
    (lab.root / "build").mkdir()
    plan(lab, early, task("bad", bad, needs=["early"]), task("beside", beside, needs=["early"]))
    blamed = {"early": "ok", "bad": "outside-scope", "beside": "outside-scope"}
    assert run(lab, "bad", "beside", n=3, code=1) == blamed
    for file in (lab.root / "build").iterdir():
        file.unlink()
    plan(lab, task("bad", bad), task("beside", beside, writes=["wrong"]))
    assert run(lab, "bad", "beside", n=3) == {"bad": "ok", "beside": "ok"}


# What runs beside what


def test_two_spellings_of_one_file_are_one_path(lab: World) -> None:
    (lab.root / "linked").symlink_to("src")
    (lab.root / "link.c").symlink_to("src/a.c")
    spellings = ["src/a.c", "./src//a.c", "src/../src/a.c", "linked/a.c", "link.c", "src/", "linked", "s*c/*.c"]
    plan(lab, *[task(f"t{i}", "sleep 0.05", writes=[each]) for i, each in enumerate(spellings)])
    names = [f"t{i}" for i in range(len(spellings))]
    assert run(lab, *names, n=8) == dict.fromkeys(names, "ok")
    assert overlapping(lab) == set()


def test_memory_that_is_asked_for_is_kept_free_and_more_than_there_is_starts_nothing(lab: World) -> None:
    most = int(psutil.virtual_memory().total * 0.6)
    big = [task(f"big{i}", "sleep 0.3", memory=most) for i in range(2)]
    small = [task(f"small{i}", "sleep 0.05", memory="100MB") for i in range(2)]
    plan(lab, *big, *small, task("huge", "true", memory="1024TiB"))
    assert set(run(lab, "big0", "big1", "small0", "small1", n=4).values()) == {"ok"}
    assert frozenset(("big0", "big1")) not in overlapping(lab), "though a small one ended, and left a slot"
    assert frozenset(("big0", "small0")) in overlapping(lab)
    done = lab.doit("-n", "4", "small0", "huge", code=3)
    assert "huge: asks for 1048576.0 GiB of memory, and this machine has" in done.err
    assert len(lab.events()) == 4, "nothing started"


FILES = ("gen/a.c", "gen/b.c", "gen/sub/c.c", "gen/a.h", "lib/x", "lib/y", "Kbuild")
DECLARED = {
    "gen/": FILES[:4],
    "gen/**/*.c": FILES[:3],
    "gen/*.[ch]": ("gen/a.c", "gen/b.c", "gen/a.h"),
    "lib": ("lib/x", "lib/y"),
    "{lib/y,Kbuild}": ("lib/y", "Kbuild"),
    "Kbuild": ("Kbuild",),
    "./gen//a.c": ("gen/a.c",),
    "gen/sub/../b.c": ("gen/b.c",),
    "lib/x": ("lib/x",),
}
# Not a file that one task may alone write: whoever reads it waits for that one, which may be a cycle.
UNORDERED = ["gen/", "gen/**/*.c", "gen/*.[ch]", "lib", "{lib/y,Kbuild}", "Kbuild"]


@pytest.mark.parametrize("seed", range(3))
def test_in_whatever_plan_no_two_tasks_overlap_in_time_on_a_written_path(lab: World, seed: int) -> None:
    """Paths, directories and patterns over a few files; what they come to is spelled out above, not computed."""
    rng = random.Random(seed)
    for file in FILES:
        lab.write(file, "")
    tasks, reads, writes = [], {}, {}
    for i in range(12):
        name = f"t{i}"
        written = ["Kbuild"] if i < 2 else rng.sample(sorted(DECLARED), rng.randint(0, 2))
        read = rng.sample(UNORDERED, rng.randint(0, 2))
        writes[name] = {file for each in written for file in DECLARED[each]}
        reads[name] = {file for each in read for file in DECLARED[each]}
        commands = [f"sleep {rng.uniform(0.02, 0.05):.3f}", *(f"echo {name} >> {file}" for file in writes[name])]
        needs = [f"t{j}" for j in range(i) if rng.random() < 0.08]
        tasks.append(task(name, commands, writes=written, reads=read, needs=needs))
    plan(lab, *tasks)
    assert run(lab, *reads, n=8) == dict.fromkeys(reads, "ok")
    together = overlapping(lab)
    assert together, "it was no test: nothing ran beside anything"
    for one, other in map(sorted, together):
        assert not writes[one] & (writes[other] | reads[other]), (one, other)
        assert not writes[other] & reads[one], (one, other)
    for file in FILES:
        assert sorted(lab.read(file).split()) == sorted(name for name in writes if file in writes[name])


def test_the_story_runs_in_the_order_of_its_plan_and_its_shared_files_have_one_writer_at_a_time(lab: World) -> None:
    story = yaml.safe_load((HERE / "plans/story.yaml").read_text())
    plan(lab, *story["tasks"])
    names = [each["name"] for each in story["tasks"]]
    assert run(lab, *names, n=8) == dict.fromkeys(names, "ok")
    times = {e["task"]: (e["started"], e["ended"]) for e in lab.events()}
    for each in story["tasks"]:
        assert all(times[need][1] <= times[each["name"]][0] for need in each.get("needs", ()))
    assert overlapping(lab) == set(), "all of them write tests/kunit/Kbuild"
    by_start = sorted(names, key=lambda name: times[name])
    for file in ("tests/kunit/Kbuild", "core/io.c", "Documentation/xcvr/index.rst"):
        writers = {each["name"] for each in story["tasks"] if file in each["writes"]}
        assert lab.read(file).split() == [name for name in by_start if name in writers]


def test_what_is_edited_in_a_directory_is_noticed_though_nothing_else_has_changed(world: World) -> None:
    """The note of a run that had nothing to do knows files that were named, and not those of a directory."""
    world.write(".gitignore", "node_modules\n__pycache__/\ncache/\nbuild/\n")
    world.write("build/one", "")
    plan(world, task("a", "true", reads=["src/cart.js"]))
    assert run(world, "a") == {"a": "ok"}
    assert run(world, "a") == {"a": "cached"}
    assert (world.root / "cache/unchanged.json").exists()
    # Nor does it know of a watcher that a killed run has left paused.
    paused = {"resume": ["echo resumed > build/log"], "root": str(world.root)}
    world.write("cache/paused/x.json", json.dumps(paused))
    assert run(world, "a") == {"a": "cached"}
    assert world.read("build/log") == "resumed\n"
    (world.root / "build/log").unlink()
    plan(world, task("a", "true", reads=["build/"]))
    assert run(world, "a") == {"a": "ok"}
    assert run(world, "a") == {"a": "cached"}
    world.write("build/one", "edited")
    assert run(world, "a") == {"a": "ok"}


# What a task owns


WATCHER = {
    "pause": "kill $(cat build/pid) && rm build/pid && echo pause >> build/log",
    "resume": "sh watcher.sh & echo $! > build/pid; echo resume >> build/log",
}


@pytest.fixture
def watched(lab: World) -> Iterator[World]:
    """Somebody's watcher runs here, which breaks what is built beside it."""
    lab.write("watcher.sh", "while :; do echo tick >> build/ticks; sleep 0.02; done\n")
    lab.write("build/log", "")
    lab.commit("watcher")
    subprocess.run(["sh", "-c", WATCHER["resume"]], cwd=lab.root, check=True)
    yield lab
    if (lab.root / "build/pid").exists():
        os.kill(int(lab.read("build/pid")), signal.SIGKILL)


def watches(world: World) -> bool:
    """Whether the watcher is at work."""
    before = (world.root / "build/ticks").stat().st_size
    time.sleep(0.3)
    return (world.root / "build/ticks").stat().st_size > before


QUIET = "a=$(wc -l < build/ticks); sleep 0.3; test $a = $(wc -l < build/ticks)"


def test_a_task_has_its_watcher_paused_and_its_output_for_itself(watched: World) -> None:
    owns = {"owns": WATCHER}
    plan(
        watched,
        task("alone", QUIET),
        task("one", ["touch {out}/made", f"{QUIET}; test $(ls {{out}}) = made; echo {{out}} >> build/outs"], **owns),
        task("two", f"{QUIET}; test -z \"$(ls {{out}})\"; echo {{out}} >> build/outs", **owns),
        task("fails", "exit 3", **owns),
        task("braces", "test '{out}' = \"{o\"'ut}'"),
    )  # fmt: skip
    assert watches(watched)
    done = run(watched, "alone", code=1)
    assert done["alone"] == "crashed", "it was no test: the watcher disturbs nobody"
    found = run(watched, "one", "two", "fails", "braces", n=4, code=1, options=("--continue",))
    assert found == {"one": "ok", "two": "ok", "fails": "crashed", "braces": "ok"}
    one, two = watched.read("build/outs").split()
    assert one != two and not Path(one).exists() and not Path(two).exists()
    said = watched.read("build/log").split()
    assert said == ["resume", *["pause", "resume"] * (len(said) // 2)]
    assert watches(watched)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_a_watcher_is_resumed_after_a_signal_and_by_the_next_run_after_kill_9(watched: World, by: int) -> None:
    plan(watched, task("a", "touch build/began; sleep 60", owns=WATCHER), task("free", "true"))
    doit = watched.start("-n", "2", "a")
    while not (watched.root / "build/began").exists():
        time.sleep(0.05)
    assert not watches(watched)
    doit.send_signal(by)
    assert doit.wait(60) == (130 if by == signal.SIGTERM else -by)
    if by == signal.SIGKILL:
        assert not watches(watched)
        watched.doit("-n", "2", "free")
    assert watches(watched)
    assert watched.read("build/log").split() == ["resume", "pause", "resume"]
    assert not list((watched.root / "cache/paused").glob("*.json"))


def test_two_runs_in_two_repositories_share_a_lock_over_the_machine(lab: World, tmp_path: Path) -> None:
    held, go = tmp_path / "held", tmp_path / "go"
    command = f"echo begin >> {held}; until test -e {go}; do sleep 0.05; done; echo end >> {held}"
    owner = {"owns": {"lock": "mxbuild"}}
    plan(lab, task("a", command, **owner), task("b", command, **owner), task("free", "true"), store="mine")
    shutil.copytree(lab.root, tmp_path / "other" / "repo")
    other = World(tmp_path / "other" / "repo", lab.home, {"GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")})
    holder = other.start("-n", "3", "a", "b", "free")
    while not held.exists():
        time.sleep(0.05)
    waiter = lab.start("-n", "3", "a", "b", "free")
    told, deadline = "", time.monotonic() + 60
    while "waiting for the lock" not in told and time.monotonic() < deadline:
        told = (lab.root.parent / "out").read_text()
        time.sleep(0.05)
    go.touch()
    assert (holder.wait(60), waiter.wait(60)) == (0, 0)
    line = rf"waiting for the lock mxbuild: pid {holder.pid} on \S+ holds it since \S+ \S+, in {other.root}\n"
    assert re.search(line, told)
    assert held.read_text().split() == ["begin", "end"] * 4
    assert not {frozenset("ab")} & (overlapping(lab) | overlapping(other)), "who waits in its own run takes no slot"
