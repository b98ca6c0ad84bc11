"""Where the time of agents' tasks went: useful work, and what was recovery. From the ledger's events alone.

Each second of a lane is in one phase. Useful: a draft that ended well, a condition judged for the first time (check, or
lint), a look, a landing, a build of the gate. Recovery: a repair, a condition judged again for the same change or a
tree that is built again in one run (rerun), a draft that failed. Between the tries of a call that a gateway turns away
there is back-off: a wait, as those for a slot and for the merge lock are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import attrs

from pipeline.account import MERGE_LOCK
from pipeline.ledger import ByEvent, Event
from pipeline.results import Outcome

USEFUL = ("draft", "check", "build", "lint", "look", "land")
RECOVERY = ("failed draft", "repair", "rerun")
WAITING = ("wait for a slot", "wait for the merge lock", "back-off")
_WELL = (Outcome.OK, Outcome.CACHED, Outcome.NO_MUTANTS)
_KINDS = ("draft", "check", "repair", "land")


@attrs.frozen
class Phases:
    """Seconds by phase, how often, and what failed."""

    seconds: Mapping[str, float]
    count: Mapping[str, int]
    causes: Mapping[str, tuple[int, float]]  # outcome -> attempts that ended so, and their seconds

    def total(self, phases: Iterable[str]) -> float:
        return sum(self.seconds.get(phase, 0.0) for phase in phases)


def of(events: ByEvent) -> Phases:
    """The phases of one run's events."""
    seconds: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    causes: dict[str, tuple[int, float]] = {}

    def add(phase: str, took: float) -> None:
        seconds[phase] += took
        count[phase] += 1

    judged = events.get("condition", ())
    for e in judged:
        add(e["phase"], e["ended"] - e["started"])
    built = [e for e in events.get("build", ()) if not e["cached"]]  # of the gate; a tree again is a rerun
    for n, e in enumerate(built):
        add("rerun" if e["tree"] in {each["tree"] for each in built[:n]} else "build", e["ended"] - e["started"])
    for e in events.get("attempt", ()):
        if e.get("kind") not in _KINDS or e.get("lane") is None or "agent" not in _whose(e):
            continue
        took = e["ended"] - e["started"]
        waited = sum(until - since for _, what, since, until in e.get("spans", ()) if what == MERGE_LOCK)
        if off := min(took, e.get("waited") or 0.0):
            add("back-off", off)
        add("wait for a slot", e["started"] - e["ready"])
        well = e["outcome"] in _WELL
        if e["kind"] == "draft":
            add("draft" if well else "failed draft", took - off)
        elif e["kind"] == "repair":
            add("repair", took - off)
        else:
            mine = (c for c in judged if c["scope"] == e["scope"] and e["started"] <= c["started"] < e["ended"])
            inside = sum(c["ended"] - c["started"] for c in mine)
            together = sum(b["ended"] - b["started"] for b in built if e["started"] <= b["started"] < e["ended"])
            seconds[e["kind"]] += (took - together) * e.get("share", 1.0) - waited - inside  # of those in one batch
            count[e["kind"]] += e["kind"] == "land"  # of a check, its conditions are counted
        if waited:
            add("wait for the merge lock", waited)
        if not well and (e["kind"] != "check" or e["outcome"] in (Outcome.CHECK_FAILED, Outcome.UNVERIFIED)):
            number, minutes = causes.get(e["outcome"], (0, 0.0))
            causes[e["outcome"]] = number + 1, minutes + took
    return Phases(dict(seconds), dict(count), causes)


def _whose(event: Event) -> tuple[str, ...]:
    """Scopes have landings too."""
    return ("agent",) if event["kind"] != "land" or "repaired" in event or "then" in event else ()


def text(events: ByEvent) -> list[str]:
    """In a few lines; none where no task of an agent ran."""
    found = of(events)
    useful, recovery = found.total(USEFUL), found.total(RECOVERY)
    if not useful + recovery:
        return []
    share = useful / (useful + recovery)
    said = [f"useful work {useful:.1f} s ({share:.0%}): {_listed(found, USEFUL)}"]
    if recovery:
        said.append(f"recovery {recovery:.1f} s: {_listed(found, RECOVERY)}")
    said.append(f"waits: {_listed(found, WAITING)}")
    for cause, (number, seconds) in sorted(found.causes.items(), key=lambda each: -each[1][1]):
        said.append(f"{cause}: {number} times, {seconds:.1f} s")
    return said


def _listed(found: Phases, phases: Iterable[str]) -> str:
    known = [phase for phase in phases if phase in found.seconds]
    return ", ".join(f"{phase} {found.seconds[phase]:.1f} s ({found.count[phase]})" for phase in known) or "none"
