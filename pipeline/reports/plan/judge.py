"""Jobs -> all that is said of a plan: its waves, what makes it slow, and what a gate refuses. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pipeline import analysis
from pipeline.analysis import Finding, Waves
from pipeline.reports.plan.jobs import Jobs


@attrs.frozen
class Judged:
    """One kind of run of a plan: of its declared tasks, of its scopes, or of a plan from elsewhere."""

    title: str
    what: Jobs
    waves: Waves
    width: int  # the most jobs in one wave
    free_width: int  # what it would be if only needs counted
    critical_seconds: float
    critical_path: tuple[str, ...]
    at_least: float  # seconds that no run takes less than, with `capacity`
    capacity: Mapping[str, int]
    findings: tuple[Finding, ...]
    overlaps: tuple[Finding, ...]  # what every other shared path costs once the first finding is gone

    @property
    def needlessly_serial(self) -> bool:
        return self.width == 1 < self.free_width


def judge(title: str, what: Jobs, capacity: Mapping[str, int]) -> Judged:
    """capacity: the slots of each pool. Names are unique, needs known, without a cycle."""
    waves = analysis.waves(what.jobs)
    seconds, path = analysis.critical_path(what.jobs)
    findings = analysis.findings(waves)
    overlaps = analysis.overlaps(waves, findings[0]) if findings else ()
    return Judged(
        title, what, waves, analysis.width(waves), analysis.free_width(what.jobs), seconds, path,
        analysis.lower_bound(what.jobs, capacity), capacity, findings,
        overlaps,
    )  # fmt: skip


def refused(parts: Sequence[Judged]) -> list[str]:
    """Why `--strict` refuses a plan; [] if it doesn't."""
    why = []
    for part in parts:
        why += [f"{', '.join(finding.paths)} serializes {part.title}" for finding in part.findings]
        if part.needlessly_serial:
            why.append(f"{part.title} run one at a time, though {part.free_width} could by their needs")
    return why


def document(part: Judged) -> dict[str, Any]:
    """As JSON; docs/plans.md says what is in it."""
    return {
        "jobs": [
            {
                "name": job.name, "wave": part.waves.of[job.name], "needs": list(job.needs), "reads": list(job.reads),
                "writes": list(job.writes), "pool": job.pool, "seconds": round(job.seconds, 3),
            }
            for job in part.what.jobs
        ],
        "waves": part.waves.count,
        "waves_at_least": part.waves.bound,
        "longest_chain": part.waves.chain,
        "width": part.width,
        "width_by_needs": part.free_width,
        "critical_path": {"seconds": round(part.critical_seconds, 3), "jobs": list(part.critical_path)},
        "wall_clock_at_least": {"seconds": round(part.at_least, 3), "slots": dict(part.capacity)},
        "durations_known": part.what.known,
        "findings": [_finding(each) for each in part.findings],
        "overlaps": [_finding(each) for each in part.overlaps],
    }  # fmt: skip


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "paths": list(finding.paths), "writers": finding.writers, "jobs": finding.jobs, "waves": finding.before,
        "waves_without": finding.after, "waves_hoisted": finding.hoisted,
    }  # fmt: skip
