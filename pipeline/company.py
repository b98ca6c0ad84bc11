"""Which candidates pass on the original: alone, and in the company of the others. One that spoils others is told from
those that it spoils."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipeline.engines import TestResult, TestRun
from pipeline.results import Dropped, Outcome, Test

if TYPE_CHECKING:
    from pipeline.proof import Bench

_ENDLESS = 3  # tests that are left out for one mutant: it may be the code that does not end, whoever calls it


def runnable(
    bench: Bench, file_with: Callable[[Sequence[Test]], str], tests: list[Test], dropped: list[Dropped]
) -> tuple[list[Test], list[Test], set[str]]:
    """The tests that pass on the original, alone and beside each other, and touch nothing; those that they have been
    built with, where any of these can be tried by itself; the files that were loaded."""
    before = len(dropped)
    good, loaded = _passing(bench, file_with, tests, dropped)
    unfit = {d.title for d in dropped[before:] if d.outcome is Outcome.BUILD_ERROR}
    built = good if bench.engine.suite.ordered else [t for t in tests if t.title not in unfit]
    return _in_any_order(bench, file_with, good, built, dropped), built, loaded


def meeting(bench: Bench, mutant: str, titles: Sequence[str], only: Sequence[str] | None) -> TestRun:
    """The file's tests with a mutant on; those of `titles` that do not end there are left out one after another, for a
    process that does not end tells of no kill, the others' neither. only: what of the file is run at first."""
    run = bench.run(mutant, only=only)
    left = list(titles)
    while run.outcome is not Outcome.OK and run.running in left and len(titles) - len(left) < _ENDLESS and left[1:]:
        left.remove(run.running)
        run = bench.run(mutant, only=left)
    return run


def _passing(
    bench: Bench, file_with: Callable[[Sequence[Test]], str], tests: Sequence[Test], dropped: list[Dropped],
    within: Sequence[Test] = (),
) -> tuple[list[Test], set[str]]:  # fmt: skip
    """The tests that pass once on the original; the files that were loaded. within: those that they were built with."""
    if not tests:
        return [], set()
    run = _run(bench, file_with, tests, within)
    strayed = [p for p in bench.worktree.changed() if p != bench.scope.write]
    if run.outcome is Outcome.BUILD_ERROR and (blamed := {t.title: t.message for t in run.failed}) and not strayed:
        guilty = [t for t in tests if t.title in blamed]
        dropped += [dropping(t, Outcome.BUILD_ERROR, blamed[t.title], failed=True) for t in guilty]
        if guilty:  # the compiler names them: the others are judged without them
            return _passing(bench, file_with, [t for t in tests if t.title not in blamed], dropped)
    if run.outcome is not Outcome.OK or strayed:
        if len(tests) == 1:
            outcome = Outcome.OUTSIDE_SCOPE if strayed else run.outcome
            reason = f"it wrote {', '.join(strayed)}" if strayed else run.detail
            dropped.append(dropping(tests[0], outcome, reason, failed=True))
            return [], set()
        # One test that does not load, or ends the process, takes all others with it: the one that was running then,
        # else find it by halves.
        within = () if run.outcome is Outcome.BUILD_ERROR else within or tests
        suspects = [t for t in tests if t.title == run.running] or list(tests[: len(tests) // 2])
        first, loaded = _passing(bench, file_with, suspects, dropped, within)
        second, more = _passing(bench, file_with, [t for t in tests if t not in suspects], dropped, within)
        return [t for t in tests if t in first or t in second], loaded | more
    results = {r.title: r for r in run.tests}
    good, inputs = [], set(run.inputs)
    for test in tests:
        reason = _why_not(results.get(test.title))
        if not reason:
            good.append(test)
        elif len(tests) == 1:
            dropped.append(dropping(test, Outcome.REJECTED, reason, failed=True))
        else:  # by its own fault, or by that of another one?
            alone, more = _passing(bench, file_with, [test], dropped, within or tests)
            good += alone
            inputs |= more
    return good, inputs


def _run(
    bench: Bench, file_with: Callable[[Sequence[Test]], str], tests: Sequence[Test], within: Sequence[Test]
) -> TestRun:
    """These tests in this order: in a file that has no others; or picked from one that has, where that is the same."""
    if bench.engine.suite.ordered or not within:
        bench.write(file_with(tests))
        return bench.run(record=True)
    bench.write(file_with(within))
    return bench.run(record=True, only=[t.title for t in tests])


def _why_not(result: TestResult | None) -> str:
    """Why a test is none, by what it did on the original; "" where it passed and left all as it was."""
    if result is None or result.state == "skipped":
        return "no test of this title ran"
    return f"it fails on the original: {result.message}" if result.state == "failed" else result.left


def _in_any_order(
    bench: Bench, file_with: Callable[[Sequence[Test]], str], tests: Sequence[Test], built: Sequence[Test],
    dropped: list[Dropped],
) -> list[Test]:  # fmt: skip
    """Of tests that pass alone, those that do so beside the others: of any two, each comes first once. One that spoils
    another is dropped, not the one that it spoils."""

    def spoiled(order: Sequence[Test]) -> Test | None:
        """The first that does not pass in this order."""
        run = _run(bench, file_with, order, built)
        failed = [t for t in order if run.outcome is not Outcome.OK or t.title not in run.passed]
        return failed[0] if failed else None

    left = list(tests)
    while len(left) > 1:
        order = left if spoiled(left) else left[::-1]
        victim = spoiled(order)
        if victim is None:
            return left
        before = order[: order.index(victim)]
        low, high = 0, len(before)  # how many of those before it it takes
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if spoiled([*before[:middle], victim]) else (middle + 1, high)
        guilty, reason = victim, "it does not pass every time"
        if low and spoiled([*before[:low], victim]):
            guilty, reason = before[low - 1], f"after it, {victim.title!r} fails"
        dropped.append(dropping(guilty, Outcome.REJECTED, reason, failed=True))
        left.remove(guilty)
    return left


def dropping(test: Test, outcome: Outcome, reason: str, failed: bool = False) -> Dropped:
    return Dropped(test.title, outcome, reason, test.code, test.kills, failed)
