"""What went wrong, by name: with a run of Stryker.NET, with tests on the original, with a build."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from pipeline import process
from pipeline.engines import Measured, TestResult
from pipeline.engines.stryker_net import dotnet, running
from pipeline.engines.stryker_net.suite import tests_of
from pipeline.model import Scope
from pipeline.results import Outcome


def first_failure(plain: running.Ran, own: Collection[str], scope: Scope, files: Iterable[str]) -> Measured | None:
    """How a scope's tests fail on the original, or None."""
    if plain.outcome not in (Outcome.OK, Outcome.NO_TESTS):
        return Measured(plain.outcome, plain.detail)
    cases = [c for c in plain.cases if c.type in own]
    if failed := [c for c in cases if c.outcome == "Failed"]:
        first = failed[0]
        detail = f"{first.type}.{first.method} fails before any mutant: {first.message.strip().splitlines()[0]}"
        return Measured(Outcome.TESTS_FAIL_FIRST, detail)
    if not any(c.outcome == "Passed" for c in cases):
        return Measured(Outcome.NO_TESTS, f"no test ran in {', '.join(sorted(files)) or scope.write}")
    return None


def blamed(root: Path, errors: Iterable[dotnet.BuildError], files: Collection[str]) -> tuple[TestResult, ...]:
    """The tests that the errors of a build lie in."""
    found: dict[tuple[str, str], str] = {}
    for error in errors:
        if error.file in files and error.line is not None:
            text = (root / error.file).read_text(encoding="utf-8-sig", errors="replace").replace("\r\n", "\n")
            lines = text.split("\n")
            at = sum(len(line) + 1 for line in lines[: error.line - 1]) + len(lines[error.line - 1].rstrip())
            for member in tests_of(text):
                if member.start <= at <= member.end:
                    found.setdefault((error.file, member.name), str(error))
    return tuple(TestResult(file, title, "failed", "other", said) for (file, title), said in found.items())


def failure(finished: process.Finished, log: Path) -> Measured:
    """Stryker.NET exits with 1 for everything, and with 0 for much: what it said tells what it was."""
    said = finished.said
    last = re.split(r"For more information see the logs\s+below:", said)[-1]
    lines = [line.strip() for line in last.splitlines() if re.search(r"[A-Za-z]{3}", line) and "INF]" not in line]
    detail = "\n".join([*(lines[:6] if last != said else lines[-6:]), f"(log: {log})"])
    if finished.timed_out:
        return Measured(Outcome.TIME_LIMIT, detail)
    if finished.exit_code < 0:
        return Measured(Outcome.SIGNAL, f"ended by signal {-finished.exit_code}\n{detail}")
    for outcome, pattern in _SAID:
        if re.search(pattern, said, re.IGNORECASE):
            return Measured(outcome, detail)
    if finished.exit_code == 0:
        return Measured(Outcome.NO_REPORT, detail)
    return Measured(Outcome.CRASHED, detail)


_SAID = (
    (Outcome.TESTS_FAIL_FIRST, r"failing tests|initial test run failed|tests? (?:is|are) failing"),
    (Outcome.NO_TESTS, r"have test cases matching|No tests? (?:(?:has been|was|were) )?(?:found|detected)"),
    (Outcome.BUILD_ERROR, r"Initial build of targeted project failed|build failed"),
    (Outcome.BAD_CONFIG, r"Unrecognized|Invalid|No project|config file|not allowed"),
    (Outcome.MEMORY, r"OutOfMemoryException"),
)
