"""Tasks of agents out of an orchestrator's plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_project import make_project

from pipeline import config
from pipeline.reports.plan import adopt, foreign
from pipeline.reports.plan.hoist import Refused

INDEX: dict[str, Any] = {
    "schema_version": 1, "meta": {}, "plan_hash": "x", "generated_at": "t",
    "tasks": [
        {"id": 1, "wave": 0, "files": ["core/a.c"], "description": "Write a.", "verify_commands": ["make", "./run a"],
         "codex": {}, "goals": ["be quick", "be right"]},
        {"id": 2, "wave": 1, "files": ["core/a.c", "core/b.c"], "description": "Write b.", "verify_commands": ["make"],
         "codex": {}, "goals": []},
        {"id": 3, "wave": 1, "files": ["docs/x/"], "description": "Document", "verify_commands": [], "codex": {},
         "goals": []},
    ],
}  # fmt: skip


def written(place: Path, plan: dict[str, Any]) -> str:
    path = place / "plan.index.json"
    path.write_text(json.dumps(plan))
    return str(path)


def test_a_plan_index_becomes_tasks_of_agents_in_a_tasks_yaml_that_keeps_every_other_byte(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    mine = "version: 1\n# mine\npools: {generation: 3}   # three\ntasks: [{name: install, run: 'true'}]\n"
    project.write("tasks.yaml", mine)
    source = written(tmp_path, INDEX)
    said = project.doit("plan", "--from", source, "--write", code=3).err
    assert said == f"{source}: task 3 has no `verify_commands`, and nothing lands unchecked; say --check COMMAND\n"
    assert project.read("tasks.yaml") == mine, "nothing is written where anything is wrong"
    done = project.doit("plan", "--from", source, "--write", "--check", "make test")
    assert "tasks.yaml is changed: 3 tasks of agents" in done.out
    assert project.read("tasks.yaml").startswith("version: 1\n# mine\npools: {generation: 3}   # three\n")
    plan = config.load(project.root / "tasks.yaml")
    one, two, three = plan.changes
    assert one.agent is not None
    assert one.agent.brief == "Write a.\n- be quick\n- be right"
    assert [condition.run for condition in one.check] == [("make",), ("./run a",)]
    assert (two.name, two.writes, two.needs) == ("task-2", ("core/a.c", "core/b.c"), ())
    assert (three.writes, three.needs) == (("docs/x/",), ("task-1",)), "no file explains why it comes later"
    assert [condition.run for condition in three.check] == [("make test",)]
    assert three.agent is not None
    assert three.agent.brief == "Do this: Document", "one word would be a file's name"
    assert "draft:task-3" in project.doit("list", "--all").out
    again = project.doit("plan", "--from", source, "--write", "--check", "make test", code=3).err
    assert again.count("has a task called") == 3
    (project.root / "tasks.yaml").unlink()
    project.doit("plan", "--from", source, "--write", "--check", "make test")
    assert len(config.load(project.root / "tasks.yaml").changes) == 3, "there need be none before"


def test_fragments_keep_their_needs_and_what_no_one_could_do_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    fragments = {"key": "core", "tasks": [
        {"key": "lib/x", "deps": [], "files": ["x.c"], "description": "Write x."},
        {"key": "y z", "deps": ["lib/x"], "files": ["y.c"], "description": "Write y."},
    ]}  # fmt: skip
    source = written(tmp_path, fragments)
    path = project.root / "tasks.yaml"
    path.unlink()
    done = adopt.adopted(path, source, foreign.read(source), "make")
    assert [(task.name, task.needs) for task in done.plan.changes] == [("lib/x", ()), ("y-z", ("lib/x",))]
    fragments["tasks"] = [{"key": "x", "deps": [], "files": []}]
    source = written(tmp_path, fragments)
    with pytest.raises(Refused) as refused:
        adopt.adopted(path, source, foreign.read(source), "make")
    assert "task x has no `description`" in str(refused.value)
    assert "task x names no file" in str(refused.value)
