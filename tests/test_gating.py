"""Changes through the batch gate: real doit, git and builds; a stand-in for the paid agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from test_agents import BRANCH, Project, project, task, writing

__all__ = ["project"]  # a fixture
BUILD = "echo built >> $BUILDS; cc -Wall -Werror -o {out}/prog src/*.c && {out}/prog"
CHEAP = {"compiles": "for f in src/*.c; do cc -fsyntax-only $f || exit 1; done"}
ONE = "int one(void) { return 1; }\n"


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

    project.doit("-n", "2", "build", "-a", code=1)
    assert builds(project) > judged, "unless it is asked for"
