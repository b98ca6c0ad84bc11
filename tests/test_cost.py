"""What `doit plan --cost` and `doit report` say of declared tasks and of agents' tasks. Real doit, no engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from agent_project import BRANCH, Project, make_project, task, writing

from pipeline import config, reports
from pipeline.reports import machine, whole
from pipeline.session import Session


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def cost(project: Project) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(project.doit("plan", "--cost", "--json", "-n", "2").out)
    return told


def test_declared_tasks_that_are_due_are_counted_with_the_seconds_that_they_took(project: Project) -> None:
    project.write("in.txt", "1\n")
    project.write("other.txt", "1\n")
    project.plan(
        [
            {"name": "make", "run": "sleep 0.3; cp in.txt out.txt", "reads": ["in.txt"], "writes": ["out.txt"]},
            {"name": "use", "run": "cp out.txt used.txt", "reads": ["out.txt"], "writes": ["used.txt"]},
            {"name": "apart", "run": "cp other.txt apart.txt", "reads": ["other.txt"], "writes": ["apart.txt"]},
            {"name": "after", "run": "cp other.txt after.txt", "reads": ["other.txt"], "writes": ["after.txt"],
             "needs": ["make"]},
        ]
    )  # fmt: skip
    told = cost(project)
    assert (told["tasks_due"], told["unknown"], told["wall"]) == (4, ["make", "use", "apart", "after"], 0)
    said = project.doit("plan", "--cost").out
    assert "4 declared tasks have something to do" in said
    assert "how long it takes, for no run has ended it well: make, use, apart, after" in said
    project.doit("-n", "2")
    assert "nothing to do: no engine run, no call" in project.doit("plan", "--cost").out
    project.write("in.txt", "2\n")
    told = cost(project)
    # `after` comes behind it, and reads nothing of it: a run leaves it.
    assert (told["tasks_due"], told["at_most"], told["unknown"]) == (2, 1, [])
    assert 0.3 <= told["tasks"]["low"] < told["tasks"]["mean"] == pytest.approx(told["wall"])
    assert told["validation"] == told["tasks"] and told["calls"]["high"] == 0 == told["cost"]["mean"]
    assert "1 of them only where what comes before leaves other files" in project.doit("plan", "--cost").out
    assert {e["task"] for e in done(project, "-n", "2")} == {"make", "use"}, "the run says the same"


def done(project: Project, *words: str) -> list[dict[str, Any]]:
    project.doit(*words)
    return [e for e in project.events() if e["lane"]]


def test_drafts_are_calls_at_most_where_one_waits_for_another_and_none_where_the_answer_is_here(
    project: Project,
) -> None:
    two = task("two", "src/two.c", reads=["src/one.c"])
    project.plan([task("one", "src/one.c"), two])
    project.commit("plan")
    told = cost(project)
    assert (told["due"], told["agents_due"], told["drafts"], told["at_most"]) == (0, 2, 2, 0)
    assert told["calls"] == {"low": 1, "mean": 2, "high": 4}  # each may be repaired
    assert (told["tokens"]["mean"], told["cost"]) == (100_000, None)
    said = project.doit("plan", "--cost").out
    assert "2 tasks of agents have something to do" in said and "with 2 calls, at most 4" in said
    assert "at most 2 drafts of agents' tasks; each may be repaired once" in said
    assert "draft 300 s" in said and "50,000 tokens a draft" in said
    project.agent(writing("one"), writing("two"))
    project.doit("-n", "2")
    assert "nothing to do: no engine run, no call" in project.doit("plan", "--cost").out
    paid = project.all_events("call")[0]["tokens"]

    # `two` reads what `one` will change: its draft is asked for at most, and what was paid tells what one costs.
    project.plan([task("one", "src/one.c", agent={"brief": "Write one. Again."}), two])
    told = cost(project)
    assert (told["agents_due"], told["drafts"], told["at_most"], told["calls"]["low"]) == (2, 2, 1, 1)
    assert told["tokens"]["low"] == paid["fresh_input"] + paid["cache_write"] + paid["output"]
    # What was answered, if badly, is not asked again: a run has something to do, and pays for nothing.
    project.agent(writing("one", append={"src/main.c": "/* mine */\n"}))
    assert "outside" in project.doit("-n", "2", code=1).out
    calls = len(project.drafts())
    told = cost(project)
    assert (told["drafts"], told["calls"]["low"]) == (1, 0), "of `two`, should `one` land after all"
    project.doit("-n", "2", code=1)
    assert len(project.drafts()) == calls


def test_a_plan_of_declared_tasks_alone_is_reported_and_checked_as_what_it_is(project: Project) -> None:
    project.write("in.txt", "1\n")
    project.plan(
        [
            {"name": "make", "run": "grep -q 1 in.txt", "reads": ["in.txt"]},
            {"name": "lone", "run": "true"},
            {"name": "last", "run": "true", "needs": ["make"]},
        ]
    )
    said = project.doit("report", "--check", code=1).out
    assert said.endswith("no run has begun here: run `doit`\n") and "survivors" not in said
    assert project.doit("report", "--markdown").out == "No task has run yet.\n"
    project.doit("-n", "2")
    assert "3 tasks taken on by the run" in project.doit("report", "--check").out
    assert project.doit("report", "--markdown").out == "3 tasks ran, 0 failed; no tokens.\n"
    assert "s with validation 3;" in project.doit("report", "--what-if", "n=3").out
    for words, why in (
        (("--what-if", "n=3,n=4"), "one number of slots for each pool, and n has two"),
        (("--what-if", "n=3", "n=4"), "one number of slots for each pool, and n has two"),
        (("--what-if", "n=٣"), "'n=٣' is no such thing"),
        (("--what-if", "n=2", "--since", "2"), "--since is about something else"),
        (("--what-if=n=8",), "--what-if n=8"),
    ):
        err = project.doit("report", *words, code=3).err
        assert why in err and err.count("\n") == 1, err
    project.write("in.txt", "2\n")
    project.doit("-n", "2", "--continue", code=2)
    told = project.doit("report", "--json", "--check", code=1)
    assert "make: failed: grep -q 1 in.txt" in told.err
    report = json.loads(told.out)
    jsonschema.validate(report, machine.schema())
    assert (report["branch"], report["runs"][-1]["failed"]) == ("", 1)
    assert project.doit("report", "--markdown").out == "2 tasks ran, 1 failed; no tokens.\n"
    path = project.root / "cache/ledger.jsonl"
    kept = [e for e in map(json.loads, path.read_text().splitlines()) if not e.get("failure")]
    path.write_text("".join(json.dumps({**e, **({"status": 130} if "status" in e else {})}) + "\n" for e in kept))
    assert "exit status 130 before all was done: run again" in project.doit("report", "--check", code=1).out


def test_the_branch_of_a_report_is_a_name_or_none(project: Project) -> None:
    def branch() -> str:
        return whole._branch(Session(config.load(project.root / "tasks.yaml"), reports.notes, reports.close))

    project.plan([task("one", "src/one.c")])
    assert branch() == BRANCH
    project.git("checkout", "--quiet", "--detach")
    assert branch() == ""
    project.plan([task("one", "src/one.c")], land={"branch": "fixed"})
    assert branch() == "fixed"


def test_a_lane_with_more_slots_than_there_can_be_is_a_line_that_is_named(project: Project) -> None:
    began = {"event": "run-started", "run": "1", "at": 1.0, "lanes": {"validation": 10**8}}
    ran = {
        "event": "attempt", "run": "1", "task": "a", "kind": "task", "lane": "validation", "slot": 0, "ready": 1.0,
        "started": 1.0, "ended": 2.0, "outcome": "ok",
    }  # fmt: skip
    project.plan([{"name": "a", "run": "true"}])
    project.write("cache/ledger.jsonl", "".join(f"{json.dumps(e)}\n" for e in (began, ran)))
    assert "ledger.jsonl:1: no event as this program" in project.doit("report", code=3, timeout=60).err
