"""`doit plan`: what it says of a plan, the ways out that it offers, and the gate that it is."""

# ruff: noqa: E501 - what is said of a plan is one line, and is to be read as one

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from conftest import DODO, World

from pipeline import config, fragments, reports
from pipeline.model import Task
from pipeline.reports.plan import Asked, edit
from pipeline.reports.plan.answer import answer
from pipeline.session import Session

HERE = Path(__file__).parent
STORY = (HERE / "plans" / "story.yaml").read_text()
KBUILD = "tests/kunit/Kbuild"
WARN = (
    "WARN tests/kunit/Kbuild is written by 12 of 12 tasks and alone serializes them into 12 waves; without it: 5 "
    "(longest chain 5). Ways out: doit plan --hoist tests/kunit/Kbuild"
)


def told(text: str, path: str = KBUILD) -> str:
    """The plan with commands that take {fragment} for what they write of `path`."""
    return text.replace(f">> {path}", ">> {fragment}")


@attrs.frozen
class Lab:
    """A repository, and `doit plan` on it in this process."""

    world: World
    capsys: pytest.CaptureFixture[str]

    @property
    def root(self) -> Path:
        return self.world.root

    def session(self) -> Session:
        plan = config.load(self.root / "tasks.yaml")
        return Session(plan, reports.notes, reports.close)

    def plan(self, text: str | None = None, **asked: Any) -> tuple[int, str, str]:
        """Exit status, standard output, standard error; text: the tasks.yaml."""
        if text is not None:
            self.world.write("tasks.yaml", text)
        status = answer(self.session(), Asked(**asked))
        return status, *self.capsys.readouterr()

    def elsewhere(self, plan: Any, **asked: Any) -> tuple[int, str, str]:
        """What is said of a plan of an orchestrator, given as JSON or as text."""
        self.world.write("plan.json", plan if isinstance(plan, str) else json.dumps(plan))
        return self.plan(from_="plan.json", **asked)

    def problems(self, plan: Any) -> list[str]:
        status, out, err = self.elsewhere(plan)
        assert (status, out) == (1, "")
        return [line.removeprefix("plan.json: ") for line in err.splitlines()]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lab:
    world = World(tmp_path / "repo", tmp_path / "home")
    (tmp_path / "gitconfig").write_text("[user]\nname = Tess\nemail = tess@example.invalid\n")
    world.write("dodo.py", DODO)
    world.write(".gitignore", "__pycache__/\ncache/\n")
    world.write("tasks.yaml", "version: 1\ntasks: [{name: a, run: 'true'}]\n")
    world.git("init", "--quiet")
    world.commit("begin")
    monkeypatch.chdir(world.root)
    return Lab(world, capsys)


def tasks(*each: Mapping[str, Any], **more: Any) -> str:
    return yaml.safe_dump({"version": 1, **more, "tasks": [{"run": "true", **task} for task in each]}, sort_keys=False)


# What is said


def test_the_story_is_seen_before_it_runs_and_a_gate_refuses_it_without_noise(lab: Lab) -> None:
    lab.world.write("tasks.yaml", STORY)
    done = lab.world.doit("plan", "-n", "4", "--strict", code=1)
    lines = done.out.splitlines()
    assert done.err == ""
    assert (
        lines[0] == "declared tasks: 12 waves of 12 tasks; longest chain 5; at most 1 at once (5 if only needs counted)"
    )
    assert sum(line.startswith("  wave ") for line in lines) == 12
    assert "critical path: 5.0 s: io → irq → dma → netdev → ethtool (no task has run yet: each counts 1 s)" in lines
    assert "wall clock: at least 12.0 s at -n 4" in lines
    assert lines.count(WARN) == 1
    assert (
        "     core/io.c (3 tasks), Documentation/xcvr/index.rst (2 tasks), core/cache.c (2 tasks), core/port.c (2 tasks): "
        "cost no wave once tests/kunit/Kbuild is gone"
    ) in lines
    assert lines[-1] == (
        "refused: tests/kunit/Kbuild serializes declared tasks; declared tasks run one at a time, though 5 could by their needs"
    )


def test_a_lock_over_the_machine_is_named_with_all_that_hold_it(lab: Lab) -> None:
    owns = {"lock": "mxbuild"}
    agent = {
        "name": "c", "agent": {"brief": "Write c.", "use": "command", "run": "true"}, "writes": ["c"],
        "check": {"build": {"run": "true", "owns": owns}},
    }  # fmt: skip
    first, other = ({"name": name, "run": "true", "writes": [name], "owns": owns} for name in "ab")
    plan = yaml.safe_dump({"version": 1, "gate": {"build": "true", "owns": owns}, "tasks": [first, other, agent]})
    holders = ["a", "b", "c (build)", "the gate's builds"]
    assert json.loads(lab.plan(plan, json=True)[1])["locks"] == {"mxbuild": holders}
    said = f"lock mxbuild: one at a time, on this machine: {', '.join(holders)}; waves and wall clock do not count it"
    assert said in lab.plan()[1]


def test_json_is_all_that_is_printed(lab: Lab) -> None:
    lab.world.write("tasks.yaml", STORY)
    said = json.loads(lab.world.doit("plan", "--json", "-n", "4").out)
    judged = said["tasks"]
    assert said["refused"][0] == "tests/kunit/Kbuild serializes declared tasks"
    assert judged["findings"] == [
        {"paths": [KBUILD], "writers": 12, "jobs": 12, "waves": 12, "waves_without": 5, "waves_hoisted": 6}
    ]
    assert (judged["waves"], judged["width"], judged["width_by_needs"], judged["longest_chain"]) == (12, 1, 5, 5)
    assert judged["wall_clock_at_least"] == {"seconds": 12.0, "slots": {"validation": 4, "generation": 1}}
    waves = {job["name"]: job["wave"] for job in judged["jobs"]}
    assert sorted(waves.values()) == list(range(12))
    assert all(waves[need] < waves[job["name"]] for job in judged["jobs"] for need in job["needs"])
    assert {each["paths"][0] for each in judged["overlaps"]} == {
        "core/io.c", "core/port.c", "core/cache.c", "Documentation/xcvr/index.rst",
    }  # fmt: skip


@pytest.mark.parametrize("files", [1, 6000])
def test_a_reader_that_has_read_enough_is_no_failure_to_be_explained(lab: Lab, files: int) -> None:
    lab.world.write("plan.json", json.dumps(index({"id": 1, "wave": 0, "files": [f"f{n}" for n in range(files)]})))
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [sys.executable, "-m", "doit", "plan", "--from", "plan.json", "--json"], cwd=lab.root,
        env=lab.world.environment, stdout=write, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(write)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGPIPE, b"")


def test_a_path_that_two_more_hide_is_found_with_them(lab: Lab) -> None:
    pair = ({"name": "a", "writes": ["x.c", "y.c"]}, {"name": "b", "writes": ["x.c", "y.c"]})
    _, out, _ = lab.plan(tasks(*pair))
    assert out.splitlines()[-1] == (
        "WARN x.c and y.c are written by 2 of 2 tasks and together serialize them into 2 waves; without them: 1 "
        "(longest chain 1). Ways out: doit plan --hoist x.c --hoist y.c"
    )


def test_a_plan_that_runs_one_at_a_time_for_no_need_is_refused_also_without_a_finding(lab: Lab) -> None:
    four = ["p", "q", "r", "s"]
    status, out, _ = lab.plan(tasks({"name": "a", "writes": four}, {"name": "b", "writes": four}), strict=True)
    assert status == 1
    assert out.endswith("refused: declared tasks run one at a time, though 2 could by their needs\n")
    assert "WARN" not in out


def test_a_chain_of_needs_is_no_fault_of_the_plan(lab: Lab) -> None:
    status, out, _ = lab.plan(
        tasks({"name": "a", "writes": ["x"]}, {"name": "b", "writes": ["x"], "needs": ["a"]}), strict=True
    )
    assert (status, "WARN" in out) == (0, False)


def test_a_task_waits_for_the_one_that_makes_what_it_reads(lab: Lab) -> None:
    _, out, _ = lab.plan(
        tasks({"name": "use", "reads": ["made.c"]}, {"name": "make", "writes": ["./made.c"]}), json=True
    )
    assert {job["name"]: job["wave"] for job in json.loads(out)["tasks"]["jobs"]} == {"use": 1, "make": 0}


def test_scopes_are_chains_beside_each_other_behind_what_the_engine_needs(lab: Lab) -> None:
    for number in range(9):
        lab.world.write(f"src/{number}.js", "")
        lab.world.write(f"test/{number}.js", "")
    scopes = [{"mutate": "src/*.js", "tests": "test/{stem}.js", "write": "test/{stem}.mutants.js"}]
    text = tasks({"name": "install", "writes": ["made"]}, scopes=scopes, engine={"needs": ["install"]})
    _, out, _ = lab.plan(text, n=3, strict=True)
    assert "9 scopes, each: baseline, search (differential), 0 rounds, land on mutate/{branch}, confirm" in out
    part = out[out.index("scopes: 6 waves of 46 tasks") :].splitlines()
    assert part[0] == "scopes: 6 waves of 46 tasks; longest chain 6; at most 9 at once (9 if only needs counted)"
    assert [line.split("  ")[-1] for line in part[1:7]] == [
        "install", "baseline × 9", "search × 9", "validate × 9", "land × 9", "confirm × 9",
    ]  # fmt: skip
    assert "wall clock: at least 15.3 s at -n 3" in part  # 46 s of work in 3 slots


def test_durations_are_those_of_earlier_runs_and_a_failure_teaches_none(lab: Lab) -> None:
    lab.world.write("tasks.yaml", tasks({"name": "slow", "run": "sleep 0.4"}, {"name": "bad", "run": "exit 1"}))
    lab.world.doit("-n", "2", "--continue", "slow", "bad", code=1)
    assert set(json.loads(lab.world.read("cache/durations.json"))) == {"slow"}
    _, out, _ = lab.plan(json=True)
    seconds = {job["name"]: job["seconds"] for job in json.loads(out)["tasks"]["jobs"]}
    assert 0.4 <= seconds["slow"] == seconds["bad"] < 10
    _, out, _ = lab.plan()
    assert "(durations of earlier runs for 1 of 2 tasks; the others as their kind took on average)" in out


def test_the_finding_is_said_once_when_a_run_starts_and_json_stays_json(lab: Lab) -> None:
    lab.world.write(
        "tasks.yaml", tasks(*({"name": name, "writes": ["x"], "run": f"echo {name} >> x"} for name in "abc"))
    )
    lab.world.commit()
    warning = (
        "WARN x is written by 2 of 2 tasks and alone serializes them into 2 waves; without it: 1 (longest chain 1)."
    )
    done = lab.world.doit("-n", "2", "a", "b")
    assert done.both.count("WARN") == 1
    assert warning in done.out[: done.out.index(".  a")]
    assert set(json.loads(lab.world.doit("-r", "json", "-n", "2", "a", "b").out)) >= {"tasks", "lanes"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"write": True}, "--write goes with --hoist PATH, or with --from FILE"),
        ({"json": True, "dot": True}, "--json and --dot: one of them at a time"),
        ({"from_": "x", "hoist": ["y"]}, "--hoist and --from do not go together"),
        ({"n": 0}, "-n 0: the validation lane needs a slot at least; say -n 1 or more"),
        ({"scope": "x"}, "no scope is called 'x'; there is none"),
    ],
)
def test_a_question_without_an_answer_says_so(lab: Lab, asked: dict[str, Any], said: str) -> None:
    assert lab.plan(**asked) == (3, "", f"{said}\n")


def test_what_is_wrong_with_a_foreign_plan_is_an_answer_that_it_cannot_be_read_too(lab: Lab) -> None:
    said = "none.json: cannot be read: No such file or directory\n"
    assert lab.plan(from_="none.json") == (1, "", said)


# Drawings


def test_dot_draws_needs_waves_and_who_shares_a_path(lab: Lab) -> None:
    status, out, _ = lab.plan(
        tasks(*({"name": name, "writes": ["x"]} for name in "abc"), {"name": 'd"', "needs": ["a"]}), dot=True
    )
    assert status == 0
    assert '"declared tasks: a" -> "declared tasks: d\\"";' in out
    assert (
        '"declared tasks: a" -> "declared tasks: b" [label="x", style=dashed, dir=none, color=red, fontcolor=red];'
        in out
    )
    assert '{ rank=same; "declared tasks: b"; "declared tasks: d\\""; }' in out


def test_svg_without_graphviz_says_what_to_install(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    session = lab.session()
    monkeypatch.setenv("PATH", str(lab.root))
    assert answer(session, Asked(svg="plan.svg")) == 3
    assert lab.capsys.readouterr().err == (
        "graphviz's `dot` is not installed; install graphviz (apt install graphviz, brew install graphviz), or take the text by --dot\n"
    )


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_svg_is_drawn_by_graphviz(lab: Lab) -> None:
    status, out, _ = lab.plan(STORY, svg="plan.svg")
    assert (status, out) == (0, "plan.svg is written\n")
    assert "</svg>" in lab.world.read("plan.svg")


# Ways out


def test_after_the_hoist_the_story_runs_in_five_waves_and_the_wiring_comes_last(lab: Lab) -> None:
    lab.world.write(KBUILD, "old\n")
    lab.world.write("tasks.yaml", told(STORY))
    lab.world.commit()
    _, shown, _ = lab.plan(hoist=[KBUILD])
    assert lab.world.read("tasks.yaml") == told(STORY)
    written = lab.world.doit("plan", "--hoist", KBUILD, "--write").out
    assert "waves: 12 → 6; at most 1 → " in shown
    assert shown.replace("nothing is changed; --write changes it", "tasks.yaml is changed") == written
    after = lab.world.read("tasks.yaml")
    lab.world.git("checkout", "--quiet", "tasks.yaml")
    (lab.root.parent / "diff").write_text(shown)
    lab.world.git("apply", "../diff")
    assert lab.world.read("tasks.yaml") == after

    status, out, _ = lab.plan(json=True, strict=True)
    assert status == 0
    judged = json.loads(out)["tasks"]
    waves = {job["name"]: job["wave"] for job in judged["jobs"]}
    assert sorted(set(waves.values())) == [0, 1, 2, 3, 4, 5]
    assert [name for name, wave in waves.items() if wave == 5] == ["wire-Kbuild"]

    needs = {job["name"]: job["needs"] for job in judged["jobs"]}
    for again in (False, True):
        lab.world.doit("-n", "4", *(["-a"] if again else []), "wire-Kbuild")
        ran = {event["task"]: event for event in lab.world.events()}
        assert set(ran) == set(waves)
        assert all(ran[need]["ended"] <= ran[name]["started"] for name in ran for need in needs[name])
        assert max(ran.values(), key=lambda event: event["started"])["task"] == "wire-Kbuild"
        # Once each, however often they ran; what was there first.
        assert lab.world.read(KBUILD).split() == ["old", *sorted(set(waves) - {"wire-Kbuild"})]


def test_a_shared_file_of_an_odd_name_is_put_together_from_all_its_shares_what_was_there_first(lab: Lab) -> None:
    odd, names = "-x y[1]é", ["one", ".hidden", "0"]
    lab.world.write(odd, "old\n")
    lab.world.write(
        "tasks.yaml", tasks(*({"name": n, "writes": [odd], "run": f"echo {n} >> './{{fragment}}'"} for n in names))
    )
    lab.world.commit()
    assert lab.plan(hoist=[odd], write=True)[::2] == (0, "")
    lab.world.doit("-n", "4")
    assert lab.world.read(odd).split() == ["old", "one", ".hidden", "0"]


def test_a_command_that_goes_on_writing_the_file_is_named_with_what_to_write(lab: Lab) -> None:
    text = tasks(
        {"name": "a", "writes": ["x"], "run": ["true", "echo a >> x"]},
        {"name": "b", "writes": ["x"], "run": "./b.sh"},
        {"name": "c", "writes": ["x"], "run": "echo c >> {fragment}"},
    )
    status, out, err = lab.plan(text, hoist=["x"], write=True)
    assert (status, out) == (3, "")
    assert err.splitlines() == [
        "x cannot be hoisted while commands go on writing it, whatever the plan declares. {fragment} stands for the file that takes a task's share:",
        "  a: write `echo a >> {fragment}` instead of `echo a >> x`",
        "  b: write {fragment} in the command that writes x",
    ]
    assert lab.world.read("tasks.yaml") == text


LAYOUTS = {
    "dashes at the margin": """\
version: 1   # the first
tasks:
- name: "a"     # one
  run: echo a >> {fragment}
  writes:
  - x   # shared

  # of b
- name: b
  writes: [ y,    # its own
            'x' ]
  run: |
    # not a comment
    echo b >> {fragment}

# the end
""",
    "tasks first, in braces": """\
tasks: [{name: a, run: "echo a >> {fragment}", writes: [x]},
        {name: b, run: "echo b >> {fragment}", writes: [./x]}]   # both
version: 1
""",
    "all in braces": '{version: 1, tasks: [{name: a, run: ["echo >> {fragment}"], writes: [x]}, {name: b, run: "echo >> {fragment}", writes: [x]}]}',
    "standing apart, no last newline": """\
version: 1

tasks:

  - name: a
    run: echo a >> {fragment}
    writes: [x]

  - name: b
    writes: [x]
    run: echo b >> {fragment}
    # b's own""",
    "windows, and letters that count twice": "version: 1\r\ntasks:\r\n  - {name: é😀, run: 'echo >> {fragment}', writes: [x]}\r\n  - {name: b, run: 'echo >> {fragment}', writes: [x]}\r\n",
    "a last key by an alias": """\
version: 1
tasks:
  - name: a
    env: &env {A: "1"}
    run: echo a >> {fragment}
    writes: [x]
  - name: b
    run: echo b >> {fragment}
    writes: [x]
    env: *env
pools: {net: 1}
""",
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_hoist_changes_what_it_must_and_no_other_byte(lab: Lab, layout: str) -> None:
    before = LAYOUTS[layout]
    (lab.root / "tasks.yaml").write_bytes(before.encode())
    status, _, err = lab.plan(hoist=["x"], write=True)
    assert (status, err) == (0, "")
    after = (lab.root / "tasks.yaml").read_bytes().decode()
    expected = yaml.safe_load(before)
    names = [task["name"] for task in expected["tasks"]]
    for task in expected["tasks"]:
        task["writes"] = [f"x.d/{task['name']}" if path in ("x", "./x") else path for path in task["writes"]]
    shares = [f"x.d/{name}" for name in names]
    expected["tasks"].append(
        {
            "name": "wire-x", "doc": "put together x from its fragments", "run": "cat x.d/* > x", "reads": shares,
            "writes": ["x"], "needs": names, "env": {"LC_ALL": "C"},
        }
    )  # fmt: skip
    expected["compose"] = {"x": "wire-x"}
    assert yaml.safe_load(after) == expected
    kept = iter(after.splitlines())
    untouched = [line for line in before.splitlines() if "x" not in line and not line.startswith("{")]
    assert all(line in kept for line in untouched)  # in their order
    assert ("\r\n" in before) == ("\r\n" in after)
    assert after.replace("\r\n", "").count("\r") == 0


@pytest.mark.parametrize("keys", [2, 4])
@pytest.mark.parametrize("inner", [0, 2])
@pytest.mark.parametrize("outer", [0, 2, 4])
def test_new_lines_stand_in_as_far_as_their_neighbours(lab: Lab, outer: int, inner: int, keys: int) -> None:
    out, deep, key = " " * outer, " " * (outer + 2 + inner), " " * keys
    text = (
        f"version: 1\ntasks:\n{out}- {{name: old, run: 'true'}}\n"
        f"{out}- {{name: a, run: 'echo >> {{fragment}}', writes: [x, y]}}\n"
        f"{out}- {{name: b, run: 'echo >> {{fragment:x}} >> {{fragment:y}}', writes: [y]}}\n"
        f"{out}- name: join\n{out}  run: cat x.d/* > x\n{out}  writes: [x]\n{out}  needs:\n{deep}- old   # first\n"
        f"compose:\n{key}x: join   # this\n"
    ).replace("'echo >> {fragment}'", "'echo >> {fragment:x} >> {fragment:y}'")
    assert lab.plan(text, hoist=["x", "y"], write=True)[0] == 0
    after = lab.world.read("tasks.yaml")
    join = f"{out}  needs:\n{deep}- old   # first\n{deep}- a\n{out}  reads:\n{deep}- x.d/a\n{out}- name: wire-y\n"
    assert join in after
    assert after.endswith(f"compose:\n{key}x: join   # this\n{key}y: wire-y\n")


# What ruamel.yaml spells otherwise or puts elsewhere: columns, brackets, commas, comments, headings, ends of lines.
ODD = """\
# top
version:   1
tasks:

    - {name: old,   run: 'true' }
    - name: "a"   # one
      run: >-
        echo   a
        >> {fragment}
      env: { A: "1",B:  'yes' }   # two
      writes: [ x, # shared
                y ]
      # a's last

    # of b
    - name: b
      run: 'echo >> {fragment}'
      reads: [ tasks.yaml, ]
      writes: [ z,
                ./x ]   # three

    # joins
    - name: join
      run: cat x.d/* > x
      needs: [ old,   # first
               a      # second
             ]
      writes: [x]
      reads:
      # odd
      - "dodo.py"   # self
      # timeout: 60

# Pools: who waits for what
pools: { net:  1 }
compose: {x: join}
# the end"""


@pytest.mark.parametrize(("mark", "ending", "end"), [("", "\n", ""), ("\ufeff", "\r\n", "\r\n"), ("", "\n", "\n\n")])
def test_what_a_hoist_is_not_about_stays_as_it_is(lab: Lab, mark: str, ending: str, end: str) -> None:
    def encoded(text: str) -> bytes:
        return (mark + (text + end).replace("\r\n", "\n").replace("\n", ending)).encode()

    (lab.root / "tasks.yaml").write_bytes(encoded(ODD))
    assert lab.plan(hoist=["x"], write=True)[::2] == (0, "")
    after = ODD
    for old, new in [
        ("[ x, # shared", "[ x.d/a, # shared"),
        ("./x ]   # three", "x.d/b ]   # three"),
        ("a      # second", "a, b      # second"),
        (
            '- "dodo.py"   # self\n      # timeout: 60\n',
            '- "dodo.py"   # self\n      # timeout: 60\n      - x.d/a\n      - x.d/b\n',
        ),
    ]:
        assert after.count(old) == 1
        after = after.replace(old, new)
    assert (lab.root / "tasks.yaml").read_bytes().decode() == encoded(after).decode()


def test_a_new_task_comes_before_the_heading_of_what_follows_its_list_and_after_what_is_on_the_last_task(
    lab: Lab,
) -> None:
    text = (
        "version: 1\ntasks:\n  - {name: a, run: 'echo >> {fragment}', writes: [x]}\n  - name: b\n"
        "    run: echo >> {fragment}\n    writes:\n    - x   # shared\n    # timeout: 60\n\n# Pools\npools: {net: 1}\n"
    )
    assert lab.plan(text, hoist=["x"], write=True)[0] == 0
    _, after = lab.world.read("tasks.yaml").split("    - x.d/b   # shared\n    # timeout: 60\n  - name: wire-x\n")
    assert after.endswith("\n\n# Pools\npools: {net: 1}\ncompose:\n  x: wire-x\n")


def test_no_edit_loses_a_comment() -> None:
    with pytest.raises(edit.Unwritten, match="give each item a line"):
        edit.edited("a: [x # why\n  , y]\n", [lambda data: data["a"].pop(0)])


def test_names_that_yaml_takes_for_something_else_are_put_in_quotes(lab: Lab) -> None:
    names = ["yes", "010", "1_0", "2001-01-01", "~"]
    text = tasks(*({"name": name, "writes": ["x"], "run": "echo >> {fragment}"} for name in names))
    assert lab.plan(text, hoist=["x"], write=True)[0] == 0
    assert yaml.safe_load(lab.world.read("tasks.yaml"))["tasks"][-1]["needs"] == names


def test_the_task_that_composes_a_file_gets_the_new_shares_and_no_wiring_task_is_made(lab: Lab) -> None:
    text = tasks(
        {"name": "a", "writes": ["x"], "run": "echo a >> {fragment}"},
        {"name": "join", "writes": ["x"], "run": "cat x.d/* > x", "needs": ["old"], "reads": ["x.d/old"]},
        {"name": "b", "writes": ["x"], "run": "echo b >> {fragment}"},
        {"name": "old", "writes": ["x.d/old"], "run": "echo old >> {fragment}"},
        compose={"x": "join"},
    )
    assert lab.plan(text, hoist=["x"], write=True)[0] == 0
    done = yaml.safe_load(lab.world.read("tasks.yaml"))
    assert [task["name"] for task in done["tasks"]] == ["a", "join", "b", "old"]
    join = done["tasks"][1]
    assert (join["needs"], join["reads"]) == (["old", "a", "b"], ["x.d/old", "x.d/a", "x.d/b"])
    lab.world.commit()
    lab.world.doit("-n", "2", "join")
    assert lab.world.read("x").split() == ["a", "b", "old"]


def test_where_the_build_system_includes_the_folder_no_task_makes_the_file(lab: Lab) -> None:
    each = ({"name": name, "writes": ["x"], "run": "echo >> {fragment}"} for name in ("a", "sub/b"))
    assert lab.plan(tasks(*each, compose={"x": "include"}), hoist=["x"], write=True)[0] == 0
    done = yaml.safe_load(lab.world.read("tasks.yaml"))
    assert [(task["name"], task["writes"]) for task in done["tasks"]] == [("a", ["x.d/a"]), ("sub/b", ["x.d/sub-b"])]
    assert lab.plan(json=True, strict=True)[0] == 0


def test_two_files_are_hoisted_at_once_and_each_command_says_which_share_is_meant(lab: Lab) -> None:
    bare = tasks(*({"name": name, "writes": ["x", "y"], "run": "echo >> {fragment}"} for name in "ab"))
    _, _, err = lab.plan(bare, hoist=["x", "y"])
    assert "  a: it has a share in 2 files; write {fragment:y} and {fragment:x}, each in its place" in err
    both = "echo x >> {fragment:x}; echo y >> {fragment:y}"
    text = tasks(*({"name": name, "writes": ["x", "y"], "run": both} for name in "ab"))
    status, out, _ = lab.plan(text, hoist=["x", "y"], write=True)
    assert (status, "waves: 2 → 2; at most 1 → 2 at once" in out) == (0, True)
    lab.world.commit()
    lab.world.doit("-n", "2", "wire-x", "wire-y")
    assert (lab.world.read("x"), lab.world.read("y.d/b")) == ("x\nx\n", "y\n")


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (tasks({"name": "a"}), "x", "x: no task writes it; none writes anything"),
        (tasks({"name": "a", "writes": ["x"]}), "x", "x: no two tasks write it: there is nothing to hoist"),
        (tasks({"name": "a", "writes": ["x/y.c"]}), "x/z.c", "x/z.c: no task writes it; did you mean 'x/y.c'?"),
        (
            tasks(*({"name": n, "writes": ["x", "lib/"], "run": "{fragment}"} for n in "ab")), "lib/x",
            "a writes lib/, which takes in lib/x; name the files that it writes\n"
            "b writes lib/, which takes in lib/x; name the files that it writes\n"
            "lib/x: no task writes it; did you mean 'lib'?",
        ),
        (
            "version: 1\ntasks:\n- {name: a, run: '{fragment}', writes: &w [x]}\n- {name: b, run: '{fragment}', writes: *w}\n", "x",
            "tasks.yaml: tasks[0].writes[0] shares what is to be changed, by an alias or a merge key; write it out",
        ),
        (
            "version: 1\ntasks:\n- &a {name: a, run: '{fragment}', writes: [x]}\n- {<<: *a, name: b}\n", "x",
            "tasks.yaml: tasks[0].writes[0] shares what is to be changed, by an alias or a merge key; write it out",
        ),
        (
            "version: 1\ntasks:\n- &j {name: join, run: cat, writes: [x]}\n- {<<: *j, name: b, writes: [y]}\n"
            "- {name: a, run: '{fragment}', writes: [x]}\ncompose: {x: join}\n", "x",
            "tasks.yaml: tasks[1] shares what is to be changed, by an alias or a merge key; write it out",
        ),
        (
            "version: 1\ntasks:\n- name:\ta\n  run: '{fragment}'\n  writes: [x]\n- {name: b, run: '{fragment}', writes: [x]}\n", "x",
            "tasks.yaml: line 3: ruamel.yaml, which edits it, cannot read it: found character '\\t' that cannot start any "
            "token; spell it another way",
        ),
        (
            "version: 1\ntasks:\n- {name: a, run: '{fragment}', writes: [x], doc: 2001-02-30}\n- {name: b, run: '{fragment}', writes: [x]}\n", "x",
            "tasks.yaml: ruamel.yaml, which edits it, cannot read it: day is out of range for month; spell it another way",
        ),
        (
            "version: 1\nengine:\n  needs:\n  - a\ntasks:\n   - {name: a, run: '{fragment}', writes: [x]}\n"
            "   - {name: b, run: '{fragment}', writes: [x]}\n", "x",
            "tasks.yaml: new lines find no place in this layout; indent all lists alike, and give each item a line",
        ),
        (
            tasks(*({"name": n, "writes": ["x"], "reads": ["x"], "run": "{fragment}"} for n in "ab")), "x",
            "x: the changed plan would not load:\n"
            "tasks.yaml:7: tasks[0].reads: each waits for the next, which it needs or which alone writes what it reads: "
            "a → wire-x → a; take one of the two out",
        ),
    ],
)  # fmt: skip
def test_a_hoist_that_cannot_be_is_refused_with_its_reason(lab: Lab, text: str, path: str, said: str) -> None:
    status, out, err = lab.plan(text, hoist=[path], write=True)
    assert (status, out) == (3, "")
    assert err.replace(f"{lab.root}/", "") == f"{said}\n"
    assert lab.world.read("tasks.yaml") == text


def test_a_placeholder_that_stands_for_nothing_fails_the_task_with_the_remedy(lab: Lab) -> None:
    lab.world.write("tasks.yaml", tasks({"name": "a", "run": "echo >> {fragment}"}))
    lab.world.commit()
    done = lab.world.doit("-n", "1", "a", code=1)
    assert (
        "{fragment} stands for nothing: a writes no fragment; `doit plan --hoist PATH` has it leave its share"
        in done.out
    )
    assert not (lab.root / "{fragment}").exists()


def test_a_placeholder_with_a_path_is_the_path_itself_until_it_is_hoisted() -> None:
    task = Task("a", ("cat {fragment:x} {fragment:y} ${HOME}",), writes=("x", "y.d/a"))
    assert fragments.filled(task.run[0], task, ["y"]) == "cat x y.d/a ${HOME}"
    with pytest.raises(
        fragments.Unfilled, match=r"\{fragment:z\} stands for nothing: a writes neither z nor a fragment"
    ):
        fragments.filled("{fragment:z}", task, ["y"])
    with pytest.raises(fragments.Unfilled, match=r"any of x\.d/a, y\.d/a: write \{fragment:x\} or \{fragment:y\}"):
        fragments.filled("{fragment}", Task("a", (), writes=("x.d/a", "y.d/a")), ["x", "y"])


@pytest.mark.parametrize(
    ("compose", "said"),
    [
        ({"x": "jion"}, "tasks.yaml:2: compose.x: no task is called 'jion'; did you mean 'join'?"),
        (
            {"y": "join"},
            "tasks.yaml:2: compose.y: 'join' does not write 'y'; name the task that makes it of its fragments",
        ),
        (
            {"../x": "include"},
            "tasks.yaml:2: compose['../x']: '../x' lies outside the project; name a file of the project",
        ),
    ],
)
def test_a_wrong_compose_is_refused_when_the_plan_is_loaded(lab: Lab, compose: dict[str, str], said: str) -> None:
    text = yaml.safe_dump(
        {"compose": compose, "version": 1, "tasks": [{"name": "join", "run": "true", "writes": ["x"]}]}, sort_keys=False
    )
    with pytest.raises(config.PlanErrors) as errors:
        lab.plan(text)
    assert str(errors.value) == said


# Plans from elsewhere


def index(*tasks: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    rest: dict[str, Any] = {"description": "d", "verify_commands": [], "codex": None, "goals": []}
    about = {"schema_version": "6.0", "meta": {}, "plan_hash": "h", "generated_at": "t"}
    return {**about, "tasks": [{**rest, "id": at, **task} for at, task in enumerate(tasks, 1)], **more}


def fragment(*tasks: Mapping[str, Any]) -> dict[str, Any]:
    return {"key": "core", "tasks": [{"deps": [], "files": [], "description": "d", **task} for task in tasks]}


def test_a_plan_index_is_judged_by_its_waves_and_by_those_it_could_have(lab: Lab) -> None:
    plan = index(*({"wave": n, "files": ["Kbuild", f"{n}.c"]} for n in range(4)), {"wave": 4, "files": ["z.c"]})
    status, out, err = lab.elsewhere(plan)
    assert (status, err) == (0, "")
    assert out.splitlines()[:2] == [
        "plan.json: plan index, 5 tasks",
        "waves as given: 5; as they could be, by files alone: 4",
    ]
    assert out.splitlines()[-1] == (
        "WARN Kbuild is written by 4 of 5 tasks and alone serializes them into 4 waves; without it: 1 (longest chain 1). "
        "Ways out: one task that wires it at the end, or a fragment a task (docs/plans.md)"
    )
    assert lab.elsewhere(plan, strict=True)[0] == 1
    said = json.loads(lab.elsewhere(plan, json=True)[1])
    assert (said["format"], said["waves_given"], said["tasks"]["waves"]) == ("plan index", 5, 4)


def test_tasks_of_one_wave_that_share_a_file_or_a_directory_are_named(lab: Lab) -> None:
    plan = index(
        {"wave": 0, "files": ["src/a.c"]}, {"wave": 0, "files": ["./src//a.c", "b"]}, {"wave": 1, "files": ["src/a.c", "bc"]},
        {"wave": 1, "files": ["src/"]}, {"wave": 2, "files": ["."]}, {"wave": 2, "files": ["x/y"]}, {"wave": 2, "files": []},
    )  # fmt: skip
    status, out, err = lab.elsewhere(plan)
    assert status == 1
    assert err.splitlines() == [
        "plan.json: tasks 1 and 2 of wave 0 both write src/a.c; move one of them",
        "plan.json: tasks 3 and 4 of wave 1 both write src/a.c; move one of them",
        "plan.json: tasks 5 and 6 of wave 2 both write x/y; move one of them",
    ]
    assert "waves as given: 3" in out
    said = json.loads(lab.elsewhere(plan, json=True)[1])
    assert len(said["problems"]) == 3


def test_what_no_format_has_is_kept_and_what_one_lacks_is_named(lab: Lab) -> None:
    plan = index({"wave": 0, "files": [], "priority": {"high": 1}}, owner="me")
    del plan["plan_hash"], plan["tasks"][0]["goals"]
    said = json.loads(lab.elsewhere(plan, json=True)[1])
    assert said["unknown"] == {"owner": "me", "tasks[0].priority": {"high": 1}}
    assert said["missing"] == ["plan_hash", "tasks[0].goals"]
    _, out, _ = lab.elsewhere(plan)
    assert "missing, and not needed here: plan_hash, tasks[0].goals" in out
    assert "fields of neither format, kept in --json: owner, tasks[0].priority" in out


def test_a_plan_from_elsewhere_without_a_task_has_nothing_to_say_of_time(lab: Lab) -> None:
    status, out, _ = lab.elsewhere(index(), strict=True)
    assert (status, out.splitlines()[-1]) == (0, "tasks: none")


def test_fragments_are_judged_by_their_dependencies_over_all_subsystems(lab: Lab) -> None:
    core = fragment({"key": "io", "files": ["io.c"]}, {"key": "irq", "deps": ["io"], "files": ["irq.c"]})
    net = {**fragment({"key": "net", "deps": ["irq"], "files": ["net/"]}), "key": "net"}
    _, out, _ = lab.elsewhere({"subsystems": [core, net]})
    assert "tasks: 3 waves of 3 tasks; longest chain 3; at most 1 at once (1 if only needs counted)" in out
    assert "critical path: 3.0 s: io → irq → net" in out
    _, out, _ = lab.elsewhere(core)
    assert "tasks: 2 waves of 2 tasks" in out


BAD: Mapping[str, tuple[Any, list[str]]] = {
    "not JSON": ('{"tasks": [1,]}', ["line 1, column 14: not JSON: Expecting value"]),
    "not UTF-8": ("\udcff", ["byte 0xff is not UTF-8"]),
    "half a character": ('{"tasks": [{"id": 1, "wave": 0, "files": ["\\ud800"]}]}', ["'\\ud800' is half a character; write the whole of it"]),
    "deep": ("[" * 100_000, ["nested too deeply"]),
    "a number without end": ('{"tasks": %s}' % ("1" * 5000), ["not JSON that can be read: Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits; use sys.set_int_max_str_digits() to increase the limit"]),
    "a key twice": ('{"tasks": [], "tasks": []}', ["an object has 'tasks' twice; keep one"]),
    "no plan": ([1], ['is neither a plan index ({"tasks": [...]}) nor fragments ({"key": ..., "tasks": [...]} or {"subsystems": [...]})']),
    "no tasks": ({"tasks": {}}, ['is neither a plan index ({"tasks": [...]}) nor fragments ({"key": ..., "tasks": [...]} or {"subsystems": [...]})']),
    "everything at once": (
        index({"wave": -1, "files": ["../a"]}, {"id": 1, "wave": 0, "files": "a"}, {"id": True, "files": ["/etc", 3]}, tasks_=1) | {},
        [
            "tasks[0].wave: expected a whole number from 0, got -1",
            "tasks[0].files[0]: '../a' lies outside the project",
            "tasks[1].files: expected a list, got 'a'",
            "tasks[1].id: two tasks are called '1' (also tasks[0].id); a name is given once",
            "tasks[2]: `wave` is missing",
            "tasks[2].id: expected a number or text, got true",
            "tasks[2].files[1]: expected text, got 3",
            "tasks[2].files[0]: '/etc' lies outside the project",
        ],
    ),
    "no object": ({"tasks": [1]}, ["tasks[0]: expected an object with id, wave, files, got 1"]),
    "a dangling need": (
        fragment({"key": "io", "deps": ["oi"]}),
        ["tasks[0].deps[0]: no task has the key 'oi'; choose from io"],
    ),
    "a cycle": (
        {"subsystems": [fragment({"key": "a", "deps": ["b"]}, {"key": "b", "deps": ["c"]}, {"key": "c", "deps": ["a", "b"]})]},
        ["subsystems[0].tasks[1].deps: no task of a cycle can ever start: b → c → b; take one of these `deps` out"],
    ),
    "a name in two subsystems": (
        {"subsystems": [fragment({"key": "a"}), fragment({"key": "a"})]},
        ["subsystems[1].tasks[0].key: two tasks are called 'a' (also subsystems[0].tasks[0].key); a name is given once"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_plan_from_elsewhere_is_refused_with_all_its_mistakes(lab: Lab, kind: str) -> None:
    plan, said = BAD[kind]
    if kind == "not UTF-8":
        (lab.root / "plan.json").write_bytes(b"\xff")
        status, out, err = lab.plan(from_="plan.json")
        assert (status, out, err) == (1, "", f"plan.json: {said[0]}\n")
        return
    assert lab.problems(plan) == said


def test_a_bad_plan_is_a_document_for_a_bot_too_and_doit_adds_nothing(lab: Lab) -> None:
    lab.world.write("plan.json", "{}")
    done = lab.world.doit("plan", "--from", "plan.json", "--json", code=1)
    assert json.loads(done.out)["problems"] == [
        'plan.json: is neither a plan index ({"tasks": [...]}) nor fragments ({"key": ..., "tasks": [...]} or {"subsystems": [...]})'
    ]
    assert done.err == ""
