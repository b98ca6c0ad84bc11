"""Waves, what a shared path costs, and the bounds of a plan."""

from __future__ import annotations

from pathlib import Path

import yaml

from pipeline.analysis import Job, findings, overlaps, waves

STORY = Path(__file__).parent / "plans" / "story.yaml"


def story() -> list[Job]:
    return [
        Job(task["name"], tuple(task.get("needs", ())), (), tuple(task["writes"]))
        for task in yaml.safe_load(STORY.read_text())["tasks"]
    ]


def test_the_file_that_every_task_writes_makes_the_plan_serial() -> None:
    jobs = story()
    plan = waves(jobs)
    assert (plan.count, plan.chain, plan.minimal) == (12, 5, True)
    (first,) = findings(plan)
    assert first.paths == ("tests/kunit/Kbuild",)
    assert (first.writers, first.jobs, first.before, first.after, first.hoisted, first.chain) == (12, 12, 12, 5, 6, 5)
    rest = overlaps(plan, first)
    assert [(*each.paths, each.writers, each.before, each.after) for each in rest] == [
        ("core/io.c", 3, 5, 5),
        ("Documentation/xcvr/index.rst", 2, 5, 5),
        ("core/cache.c", 2, 5, 5),
        ("core/port.c", 2, 5, 5),
    ]
