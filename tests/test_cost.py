"""What `doit plan --cost` and `doit report` say of declared tasks and of agents' tasks. Real doit, no engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_project import Project, make_project, task, writing


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
