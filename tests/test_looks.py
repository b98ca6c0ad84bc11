"""Looks at what has landed: by a tool in the run that lands it, by a person at a terminal whenever there is one."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_project import Project, make_project, task, writing


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def at_a_terminal(project: Project, typed: str, *words: str) -> tuple[int, str]:
    """doit with a person at it, who types that: its exit status, and all that was on the screen."""
    ours, theirs = pty.openpty()
    try:
        run = subprocess.Popen(
            [sys.executable, "-m", "doit", *words], cwd=project.root, env=project.environment, stdin=theirs,
            stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        os.write(ours, f"{typed}\n".encode())
        screen = b""
        while True:
            try:
                screen += os.read(ours, 4096)
            except OSError:  # nobody has the other end any more
                return run.wait(), screen.decode().replace("\r\n", "\n")
    finally:
        os.close(ours)


def looked_at(project: Project) -> dict[str, Any]:
    """What was looked at in the last run, and what came of it."""
    return {e["scope"]: e["outcome"] for e in project.events("condition") if e["phase"] == "look"}


def test_a_tool_looks_as_things_land_and_a_person_when_there_is_one_and_neither_twice_at_the_same(
    project: Project,
) -> None:
    shown = "cat src/shown.c; read answer && test $answer = good"
    picture = {"run": "sleep 0.2; cp src/shot.c {out}/picture && grep -q int src/shot.c", "by": "tool"}
    project.plan([task("shown", "src/shown.c", look=shown), task("shot", "src/shot.c", look=picture)])
    project.commit("plan")
    project.agent(writing("shown"), writing("shot"))
    done = project.doit("-n", "2", "build")
    assert looked_at(project) == {"shot": "ok"}
    assert "int shot" in (project.root / "cache/tasks/shot/look/picture").read_text()
    assert "looks: 1 seen, 1 owed (doit look): shown" in done.out
    assert "look 0." in done.out, "it is a phase"
    assert "shown: a look at it is owed: doit look:shown" in project.doit("report", "--check", code=1).out

    done = project.doit("look", code=1)
    assert "a person is to look, and there is no terminal" in done.out
    assert looked_at(project) == {}
    status, screen = at_a_terminal(project, "bad", "look")
    assert status == 1
    assert "int shown(void)" in screen
    assert looked_at(project) == {"shown": "check-failed"}
    status, screen = at_a_terminal(project, "good", "-n", "2", "look")
    assert (status, looked_at(project)) == (0, {"shown": "ok"})
    assert "looks: 2 seen, 0 owed" in screen
    project.doit("look")
    assert looked_at(project) == {}, "the same was looked at"
    project.doit("report", "--check")
    assert len(project.drafts()) == 2, "who looks asks no agent"

    project.write("src/other.c", "int other(void) { return 1; }\n")
    project.commit("elsewhere")
    project.doit("-n", "2", "build")
    assert len(project.landed()) == 2
    assert looked_at(project) == {}, "it has landed again, and is the same"
    project.plan(
        [
            task("shown", "src/shown.c", look=shown),
            task("shot", "src/shot.c", look=picture, agent={"brief": "Write shot. Without a number."}),
        ]
    )
    project.commit("another brief")
    project.agent({**writing("shot", "void shot(void) {}\n"), "match": "Write shot. Without a number."})
    done = project.doit("-n", "2", "build", code=1)
    assert looked_at(project) == {"shot": "check-failed"}
    assert "shot: look: check-failed: sleep 0.2; cp" in done.out
    assert len(project.landed()) == 2, "what does not please has landed all the same"
    assert project.left() == []
