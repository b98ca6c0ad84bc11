"""What people read of a judged plan. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pipeline.analysis import Finding
from pipeline.model import VALIDATION, Plan, Scope
from pipeline.reports.plan.foreign import Foreign
from pipeline.reports.plan.jobs import TASK
from pipeline.reports.plan.judge import Judged
from pipeline.source import listed

NAMES = 8  # of a wave, or of the critical path, that are named
STEPS = 3  # of scopes, in a wave, that are named; of more, their kinds and numbers
ROWS = 30  # waves that are shown; of more, the first and the last of them


def part(judged: Judged) -> str:
    """The waves, then what they come to."""
    waves, jobs = judged.waves, judged.what.jobs
    if not jobs:
        return f"{judged.title}: none"
    sure = "" if waves.minimal else f", {waves.bound} at the least"
    lines = [
        f"{judged.title}: {_count(waves.count, 'wave')} of {_count(len(jobs), 'task')}{sure}; longest chain "
        f"{waves.chain}; at most {judged.width} at once ({judged.free_width} if only needs counted)"
    ]
    lines += _rows(judged)
    lines.append(
        f"critical path: {_time(judged.critical_seconds)}: {_path(judged.critical_path)} ({_durations(judged)})"
    )
    slots = ", ".join(
        f"{pool} {n}" for pool, n in judged.capacity.items() if pool != VALIDATION and _used(judged, pool)
    )
    lines.append(
        f"wall clock: at least {_time(judged.at_least)} at -n {judged.capacity[VALIDATION]}" + (slots and f", {slots}")
    )
    return "\n".join(lines)


def warnings(judged: Judged, ways_out: str | None = None) -> list[str]:
    """A line for each finding; what other paths cost once the first is gone. ways_out: in the place of `--hoist`."""
    if not judged.findings:
        return []
    gone = " and ".join(judged.findings[0].paths)
    costly = [each for each in judged.overlaps if each.after < each.before]
    free = [f"{each.paths[0]} ({each.writers} tasks)" for each in judged.overlaps if each not in costly]
    return [
        *(warning(finding, ways_out) for finding in judged.findings),
        *(
            f"     {each.paths[0]} is written by {each.writers} of {each.jobs} tasks: costs "
            f"{_count(each.before - each.after, 'wave')} once {gone} is gone"
            for each in costly[:NAMES]
        ),
        *([f"     and {len(costly) - NAMES} paths more that cost waves then"] if len(costly) > NAMES else []),
        *([f"     {listed(free, NAMES)}: cost no wave once {gone} is gone"] if free else []),
    ]


def warning(finding: Finding, ways_out: str | None = None) -> str:
    """The one line of a finding."""
    several = len(finding.paths) > 1
    are, alone, them = ("are", "together serialize", "them") if several else ("is", "alone serializes", "it")
    hoist = "doit plan " + " ".join(f"--hoist {shlex.quote(path)}" for path in finding.paths)
    return (
        f"WARN {' and '.join(finding.paths)} {are} written by {finding.writers} of {finding.jobs} tasks and {alone} "
        f"them into {finding.before} waves; without {them}: {finding.after} (longest chain {finding.chain}). "
        f"Ways out: {ways_out or hoist}"
    )


def of_foreign(name: str, read: Foreign, judged: Judged) -> str:
    """What a plan from elsewhere is, and its waves as given beside those it could have."""
    lines = [f"{name}: {read.format}, {_count(len(read.jobs), 'task')}"]
    if read.given is not None:
        given = len(set(read.given.values()))
        lines.append(f"waves as given: {given}; as they could be, by files alone: {judged.waves.count}")
    if read.missing:
        lines.append(f"missing, and not needed here: {listed(read.missing, NAMES)}")
    if read.unknown:
        lines.append(f"fields of neither format, kept in --json: {listed([*read.unknown], NAMES)}")
    return "\n".join(lines)


def of_scopes(plan: Plan) -> str:
    """The scopes of a plan as a table, and what each goes through."""
    width = max([len(s.name) for s in plan.scopes], default=0)
    lines = [
        f"{s.name.ljust(width)}  {_count(len(s.mutate), 'file')}, {_tests(s.tests)} → {s.write}" for s in plan.scopes
    ]
    rounds = [plan.generate.of_round(r)[0].name for r in range(1, plan.generate.last_round + 1)]
    embedded = [g.name for g in plan.generate.generators if g.embedded]
    asked = f" ({', '.join(rounds)})" if rounds else ""
    search = ", ".join(embedded) or "tests proved earlier only"
    lines += [
        "",
        f"{_count(len(plan.scopes), 'scope')}, each: baseline, search ({search}), "
        f"{_count(len(rounds), 'round')}{asked}, land on {plan.land.branch}, confirm",
    ]
    return "\n".join(lines)


def of_locks(locks: Mapping[str, Sequence[str]]) -> str:
    """The locks over the machine: what holds one waits for what else does, and no wave says so. "" without any."""
    return "\n".join(
        f"lock {name}: one at a time, on this machine: {listed([*who], NAMES)}; waves and wall clock do not count it"
        for name, who in locks.items()
    )


def of_scope(scope: Scope) -> str:
    """One scope with all its files."""
    parts = {
        "mutates": scope.mutate,
        "tests": scope.tests or ("the whole suite",),
        "reads": scope.reads,
        "writes": (scope.write,),
    }
    return "\n".join(f"{key}: {' '.join(paths)}" for key, paths in parts.items() if paths)


def _rows(judged: Judged) -> Iterator[str]:
    groups = judged.waves.groups()
    kinds = dict(zip((job.name for job in judged.what.jobs), judged.what.kinds, strict=True))
    for number, names in enumerate(groups, 1):
        if len(groups) <= ROWS or number <= ROWS - 1 or number == len(groups):
            yield f"  wave {str(number).rjust(len(str(len(groups))))}  {_wave(names, kinds)}"
        elif number == ROWS:
            yield f"  … {len(groups) - ROWS} waves more …"


def _wave(names: Sequence[str], kinds: dict[str, str]) -> str:
    """Declared tasks by name; what scopes go through by kind, when there are many of them."""
    tasks = [name for name in names if kinds[name] == TASK]
    steps = [name for name in names if kinds[name] != TASK]
    if len(steps) > STEPS:
        steps = [f"{kind} × {count}" for kind, count in Counter(kinds[name] for name in steps).items()]
    return ", ".join([listed(tasks, NAMES), *steps] if tasks else steps)


def _durations(judged: Judged) -> str:
    known, total = judged.what.known, len(judged.what.jobs)
    if known == total:
        return "durations of earlier runs"
    if not known:
        return "no task has run yet: each counts 1 s"
    return f"durations of earlier runs for {known} of {total} tasks; the others as their kind took on average"


def _path(names: Sequence[str]) -> str:
    if len(names) <= NAMES:
        return " → ".join(names)
    return " → ".join([*names[: NAMES - 1], f"… {len(names) - NAMES} more …", names[-1]])


def _used(judged: Judged, pool: str) -> bool:
    return any(job.pool == pool for job in judged.what.jobs)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _tests(tests: tuple[str, ...] | None) -> str:
    return "the whole suite" if tests is None else _count(len(tests), "test file")
