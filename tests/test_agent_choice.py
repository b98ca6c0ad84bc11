"""What an agent's task is asked of and held against: models by confidence and lane, findings that are new."""

# ruff: noqa: E501 - what is said of a mistake is one line, and is to be read as one

from pathlib import Path

import pytest
from agent_project import CHECK, MAIN, Project, make_project, task, writing

BAD = "/* BAD */\n"
LINT = {"run": "grep -nH BAD src/*.c", "format": "lines", "baseline": "known.txt"}
TELL = ["echo model=$DOIT_MUTATE_MODEL effort=$DOIT_MUTATE_EFFORT"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def test_agents_are_asked_by_confidence_and_group_and_go_down_the_ladder_and_only_new_findings_fail_their_check(
    project: Project,
) -> None:
    """The linter's one known finding, in src/main.c, fails no change; src/worse.c brings another."""
    project.write("src/main.c", MAIN + BAD)
    check = {**CHECK, "lint": LINT}
    plan = [
        {**task("sure", "src/sure.c", confidence="high"), "check": check},
        {**task("plain", "src/plain.c"), "check": check},
        {**task("one", "src/one.c", "src/both.c", confidence="high"), "check": check},
        {**task("two", "src/two.c", "src/both.c", confidence="low"), "check": check},
        {**task("worse", "src/worse.c", agent={"model": "inherit"}), "check": check},
    ]
    models = {
        "names": {"large": {"model": "opus", "effort": "high"}, "mid": "sonnet", "small": "haiku"},
        "ladder": ["large", "mid", "small"], "by_confidence": {"high": "small", "low": "large"}, "draft": "mid",
        "repair": "large", "tries": 2, "backoff": 0.01,
    }  # fmt: skip
    project.plan(plan, models=models, lint={"own": LINT}, pools={"generation": 4})
    project.doit("lint", "--accept")
    assert len(project.read("known.txt").splitlines()) == 3
    project.commit("plan")
    limit = "API Error: Rate limit reached"
    project.agent(
        {"match": "cannot land yet", "run": TELL, "exit": 1},
        writing("sure", run=TELL), {**writing("plain", error=limit), "times": 2}, writing("plain", run=TELL),
        writing("one", run=TELL), writing("two", run=TELL),
        {"match": "Write worse.", "write": {"src/worse.c": BAD + "int worse;\n"}, "run": TELL},
    )  # fmt: skip
    done = project.doit("-n", "2", "build", code=1)
    assert sorted(project.landed()) == ["one", "plain", "sure", "two"]
    drafts = {e["task"]: e for e in project.events() if e["kind"] in ("draft", "repair") and e["lane"]}
    asked = {name: (e["model"], e["effort"], e["chosen_by"]) for name, e in drafts.items()}
    assert asked == {
        "draft:sure": ("haiku", None, "confidence high"),
        "draft:plain": ("sonnet", None, "lane draft"),
        "draft:one": ("opus", "high", "confidence low; least confident of 2: two"),
        "draft:two": ("opus", "high", "confidence low; least confident of 2: two"),
        "draft:worse": (None, None, "task worse"),
        "repair:worse": (None, None, "task worse"),
    }
    stepped = {"model": "haiku", "effort": None, "chosen_by": "one step down from mid"}
    assert drafts["draft:plain"]["stepped_down"] == stepped and drafts["draft:plain"]["gateway_failures"] == 2
    said = {
        log.name.split("-draft-")[-1]: log.read_text() for log in (project.root / "cache/logs").glob("*-draft-*.log")
    }
    told = {"sure": "haiku effort=", "plain": "haiku effort=", "one": "opus effort=high", "worse": " effort="}
    assert {name for name, text in told.items() if f"model={text}\n" not in said[f"{name}.log"]} == set()

    assert "worse: parked: crashed: check-failed: lint" in done.out
    # The first of each: on a busy machine others land before it, and it is judged again on that.
    judged = {(e["scope"], e["name"]): e for e in reversed(project.events("condition"))}
    assert {judged["sure", name]["phase"] for name in ("lint", *CHECK)} == {"lint", "check"}
    assert "back-off 0.0 s (1)" in done.out
    assert judged["sure", "lint"]["said"].startswith("exit code 0; 1 finding (1 known, 0 new): green")
    assert judged["worse", "lint"]["said"].startswith("exit code 0; 2 findings (1 known, 1 new): not green")
    (brief,) = [call["brief"] for call in project.drafts() if "cannot land yet" in call["brief"]]
    assert "src/worse.c:1: /* BAD */" in brief and "src/main.c" not in brief.partition("cannot land yet")[2]
    assert "- lint: grep -nH BAD src/*.c (nothing that is not in known.txt)" in brief
    assert project.read("known.txt") == project.git("show", "HEAD:known.txt"), "a check writes no baseline"
    project.doit("-n", "2", "build", code=1)
    assert project.asked().count("Write plain.") == 3, "what a lower model has drafted is not asked for again"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"check": {"lint": {**LINT, "baseline": "src/x.c"}}}, "the agent may change 'src/x.c', which its change is held against; take it out of the task's `writes`"),
        ({"check": {"lint": {"run": "x", "format": "lines"}}}, "check.lint: `baseline` is missing; a linter has a `format` and a `baseline`"),
        ({"check": {"lint": {"run": "x", "exit": [0]}}}, "check.lint: `format` is missing; a linter has a `format` and a `baseline`"),
        ({"check": {"lint": {**LINT, "run": ["x", "y"]}}}, "check.lint.run: a linter is one command; join them, or make conditions of them"),
        ({"check": {"lint": {**LINT, "format": "regex"}}}, "check.lint: `pattern` is missing; `format: regex` and `pattern` go together"),
        ({"check": {"lint": {**LINT, "baseline": "src/main.c"}}}, "'src/main.c' is no baseline: line 1: 1 fields between tabs, where a finding has 4"),
        ({"agent": {"brief": "Write x.", "model": "lagre"}}, "agent.model: no model is called 'lagre'; say one of large, small, inherit"),
        ({"agent": {"brief": "Write x.", "use": "gemini", "effort": "high"}}, "agent.effort: no effort is called 'high'; say one of inherit"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_condition_or_a_choice_is_told_before_anything_runs(
    project: Project, change: dict[str, object], said: str
) -> None:
    project.plan([{**task("x", "src/x.c"), **change}], models={"ladder": ["large", "small"]})
    assert said in project.doit("list", code=3).both
