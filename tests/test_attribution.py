"""Every second of a run has a name: of a drive of twenty scopes in the real lanes, and of plans drawn at random."""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_runner import Lab, lab  # noqa: F401  (a fixture)
from test_timeline import told, works

from pipeline import account, ledger, timeline
from pipeline.holds import What
from pipeline.host import Attempt, Slot
from pipeline.replay import Unit
from pipeline.results import Outcome
from pipeline.timeline import ENDED, Timeline

SCOPES = [f"src/{n}.js" for n in range(20)]
Spent = dict[str, float]  # phase -> seconds


def assert_all_is_accounted_for(found: Timeline, events: Sequence[Mapping[str, Any]], work: Spent) -> None:
    """In total, by lane, by scope and by phase. work: what each phase took, all slots together."""
    near = len(events) / 1000  # a millisecond an event
    everything = sum(sum(did.values()) for did in found.slots.values())
    assert everything == pytest.approx(found.wall * sum(found.lanes.values()), abs=near)
    assert sum(found.together.values()) == pytest.approx(found.wall, abs=near)
    for lane, slots in found.lanes.items():
        assert sum(found.slots[lane].values()) == pytest.approx(slots * found.wall, abs=near)
        assert min(found.slots[lane].values()) >= -1e-6
        idle: dict[What, float] = defaultdict(float)
        for start, end, why in found.idle(lane):
            for what in why:
                idle[what] += end - start
        for what, seconds in idle.items():
            assert found.slots[lane][what] >= seconds - near
    for pieces in found.scopes.values():
        assert pieces[0].start == found.start and pieces[-1].end == found.end
        assert all(a.end == pytest.approx(b.start, abs=1e-6) for a, b in itertools.pairwise(pieces))
        assert sum(piece.seconds for piece in pieces) == pytest.approx(found.wall, abs=near)
    phases: Spent = defaultdict(float)
    for did in found.slots.values():
        for what, seconds in did.items():
            if what.busy:
                phases[what.label] += seconds
    assert dict(phases) == pytest.approx(work, abs=near)


def test_of_a_drive_of_twenty_scopes_in_real_lanes_no_second_is_without_a_name(lab: Lab) -> None:  # noqa: F811
    chance = random.Random(8)
    asked: Spent = defaultdict(float)

    def does(phase: str, *parts: tuple[str, str, float], outcome: Outcome = Outcome.OK) -> Callable[[Slot], Attempt]:
        """Scripted: naps, each of them a span of the task's or, by the task's own name, none."""
        for kind, name, seconds in parts:
            if kind == "phase":
                asked[name] += seconds

        def perform(slot: Slot) -> Attempt:
            for kind, name, seconds in parts:
                if kind == "backing off":
                    slot.wait(seconds)
                elif name == phase:
                    time.sleep(seconds)
                else:
                    with account.span("phase" if kind == "phase" else "wait", name):
                        time.sleep(seconds)
            return Attempt(outcome)

        return perform

    def short() -> float:
        return chance.uniform(0.002, 0.012)

    tasks = []
    for n, scope in enumerate(SCOPES):
        after = [f"baseline:{scope}"]
        tasks.append(
            lab.task(after[0], does("baseline", ("phase", "baseline", short()), ("phase", "audit", short())),
                     kind="baseline", scope=scope)
        )  # fmt: skip
        if n % 4:  # the others have nothing to ask
            tasks.append(
                lab.task(f"generate:{scope}:1", does("generate", ("phase", "generate", 4 * short()),
                         *[("backing off", "", short())] * (n % 3 == 0)), kind="generate", scope=scope, round=1,
                         pool="generation", task_dep=after)
            )  # fmt: skip
            after = [f"generate:{scope}:1"]
        parts = ("phase", "validate", short()), ("phase", "prove", short())
        proves = does("validate", *parts, outcome=Outcome.CRASHED if n == 7 else Outcome.OK)
        tasks.append(lab.task(f"validate:{scope}:1", proves, kind="validate", scope=scope, round=1, task_dep=after))
        tasks.append(
            lab.task(f"land:{scope}", does("land", ("wait", "the merge lock", short()), ("phase", "land", short())),
                     kind="land", scope=scope, task_dep=[f"validate:{scope}:1"], writes=["branch"])
        )  # fmt: skip
    status, _ = lab.doit(tasks, "run", "-n", "3")
    assert status == 0
    (info,) = lab.infos
    begin = {"event": "run-started", "at": info.started, "lanes": dict(info.lanes.capacity), "scopes": SCOPES}
    events = [begin, *({"event": "attempt", **e} for e in lab.events), {"event": "run-ended", "at": time.time()}]
    found = timeline.of(ledger.by_event(events))
    assert found is not None and found.lanes == {"validation": 3, "generation": 2}
    work: Spent = defaultdict(float)
    for e in lab.events:
        if e["lane"] is not None:
            spans = e.get("spans", ())
            # A place that was lent is waited for inside the back-off.
            own = [(start, end) for k, name, start, end in spans if k != "lent" and not name.startswith("a slot of")]
            work[e["kind"]] += e["ended"] - e["started"] - sum(end - start for start, end in own)
            for kind, name, start, end in spans:
                work[name] += end - start if kind == "phase" else 0.0
    assert_all_is_accounted_for(found, events, {phase: seconds for phase, seconds in work.items() if seconds})
    assert set(found.scopes) == set(SCOPES)
    assert {p.what.label for pieces in found.scopes.values() for p in pieces if p.what.busy} == set(asked)
    for phase, seconds in asked.items():  # no nap is shorter than it was asked for
        assert work[phase] >= seconds - 0.001 * len(events)
    whats = {what for did in found.slots.values() for what in did}
    assert {what.cause for what in whats if what.sort == "recovery"} == {"crashed"}
    causes = {what.label for what in whats if what.sort == "wait"}
    assert {"a dependency", "a retry's back-off", "the merge lock"} <= causes
    assert ENDED in {pieces[-1].what.label for pieces in found.scopes.values()}


@settings(max_examples=60, deadline=None)
@given(works(), st.integers(1, 3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_of_plans_drawn_at_random_no_second_is_without_a_name(
    units: list[Unit], n: int, generation: int, chance: random.Random
) -> None:
    events = told(units, {"validation": n, "generation": generation})
    work: Spent = defaultdict(float)
    for e in events:
        if e["event"] != "attempt":
            continue
        start, whole = e["started"], e["ended"] - e["started"]
        cuts = sorted(chance.choice([0.0, 0.25, 0.5, 0.75, 1.0]) for _ in range(2))
        since, until = (start + whole * cut for cut in cuts)
        kind, name = chance.choice([("phase", "prove"), ("phase", "rerun"), ("wait", "a retry's back-off")])
        e["kind"] = chance.choice(["baseline", "validate", "land"])
        e["outcome"] = chance.choice(["ok", "ok", "crashed"])
        e["spans"] = [[kind, name, since, until]]
        work[e["kind"]] += whole - (until - since)
        work[name] += until - since if kind == "phase" else 0.0
    found = timeline.of(ledger.by_event(events))
    assert found is not None
    assert_all_is_accounted_for(found, events, {phase: seconds for phase, seconds in work.items() if seconds > 1e-9})
