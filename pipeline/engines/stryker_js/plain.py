"""Each scope's tests on the original, before any mutant: they tell what it depends on, and fail first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from pipeline.engines import TestRun
from pipeline.results import Outcome

Test = Callable[[Sequence[str]], TestRun]  # test files, run and recorded in one fresh process


def together(test: Test, tests: Mapping[str, Sequence[str]]) -> dict[str, TestRun]:
    """One process for the tests of several scopes: what came of each whose tests pass there. The others want a process
    of their own; so do all, where it cannot be told which of them loads what.

    tests: scope -> its test files. Where the process breaks, halves: what breaks it is one of them.
    """
    if len(tests) < 2:
        return {}
    run = test(sorted({file for files in tests.values() for file in files}))
    if run.outcome is Outcome.OK:
        return {scope: part for scope, files in tests.items() if (part := _part(run, files)) is not None}
    if run.outcome is Outcome.TIME_LIMIT:  # each half would take as long
        return {}
    names = list(tests)
    middle = len(names) // 2
    halves = (names[:middle], names[middle:])
    return {n: part for half in halves for n, part in together(test, {n: tests[n] for n in half}).items()}


def _part(run: TestRun, files: Sequence[str]) -> TestRun | None:
    """What a process that ran these files alone would have told; None where that is in doubt."""
    loads = run.loads
    if loads is None or not loads.keys() >= {*files, *(t.file for t in run.failed)}:
        return None
    mine = tuple(t for t in run.tests if t.file in files)
    if any(t.state == "failed" for t in mine) or not any(t.state == "passed" for t in mine):
        return None
    inputs = sorted({path for file in files for path in loads[file]})
    others = sum(t.seconds for t in run.tests if t.file not in files)
    return attrs.evolve(
        run, tests=mine, files=tuple(files), inputs=tuple(inputs), seconds=max(run.seconds - others, 0.0)
    )
