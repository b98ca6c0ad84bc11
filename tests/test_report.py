"""A report of StrykerJS that no measurement comes to: each rule of what is believed, on a report made by hand."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline import process
from pipeline.engines import Measured, TestRun
from pipeline.engines.stryker_js.report import Report, failure, read_report, scope_result
from pipeline.model import Scope
from pipeline.mutants import Status, score
from pipeline.results import Outcome

FILE, TEST = "src/a.js", "test/a.test.js"
SOURCE = "export const many = (n) => n > 3;\n"
SCOPE = Scope(name="a", mutate=(FILE,), tests=(TEST,), write="test/a.m.test.js")
PLAIN = TestRun(Outcome.OK, files=(TEST,), inputs=(FILE, TEST), seconds=0.1)


def mutant(number: int, replacement: str, status: str) -> dict[str, Any]:
    start, end = {"line": 1, "column": 28}, {"line": 1, "column": 33}
    return {
        "id": str(number), "mutatorName": "EqualityOperator", "replacement": replacement, "status": status,
        "location": {"start": start, "end": end}, "coveredBy": ["t"], "testsCompleted": 1,
    }  # fmt: skip


WHOLE: Mapping[str, Any] = {
    "files": {FILE: {"source": SOURCE, "mutants": [mutant(0, "n >= 3", "Survived"), mutant(1, "n < 3", "Killed")]}},
    "testFiles": {TEST: {"tests": [{"id": "t", "name": "is many"}]}},
}


def told(
    place: Path, change: Callable[[Any], object] = lambda report: None, *, coded: bool = True, late: float = 0.0
) -> Measured:
    """What a scope is told of the report after a change of it. late: seconds after which the run began."""
    report = copy.deepcopy(dict(WHOLE))
    change(report)
    (place / "src").mkdir()
    (place / FILE).write_text(SOURCE)
    path, log = place / "report.json", place / "log"
    path.write_text(json.dumps(report))
    began = time.time()
    os.utime(path, (began - late, began - late))
    read = read_report(path, process.Finished((), 0, b"", b"", 1.0, None, None), log, began)
    if isinstance(read, Measured):
        return read
    return scope_result(place, SCOPE, Report(read, {FILE: b"stryMutAct_9fa48()"} if coded else {}, None), PLAIN)


def entry(report: Any) -> Any:
    return report["files"][FILE]


def every(status: str) -> Callable[[Any], object]:
    return lambda report: [m.update(status=status) for m in entry(report)["mutants"]]


def first(**change: Any) -> Callable[[Any], object]:
    return lambda report: entry(report)["mutants"][0].update(change)


HOLLOW: Mapping[str, tuple[Callable[[Any], object], Mapping[str, Any], str]] = {
    "a mutant is pending": (first(status="Pending"), {}, "mutant 0 of src/a.js is still pending"),
    "it survived tests that did not run": (first(testsCompleted=0), {}, "survived without a test having been run"),
    "a test that it does not list": (first(coveredBy=["t", "u"]), {}, "covered by a test that it does not list: u"),
    "one file twice": (lambda r: r["files"].update({f"./{FILE}": entry(r)}), {}, "it has src/a.js twice"),
    "about another text": (lambda r: entry(r).update(source="x"), {}, "it is about another text of src/a.js"),
    "no mutants, and there are some": (lambda r: entry(r).update(mutants=[]), {}, "it has no mutant of src/a.js"),
    "no code with the mutants": (lambda r: None, {"coded": False}, "the code of src/a.js with its mutants is missing"),
    "nothing was judged": (every("RuntimeError"), {}, "none of 2 mutants was judged: RuntimeError"),
    "all timed out": (every("Timeout"), {}, "all 2 mutants timed out"),
    "it is older than the run": (lambda r: None, {"late": 3.0}, "older than the run that was to make it"),
}


@pytest.mark.parametrize("what", HOLLOW)
def test_a_report_that_no_measurement_comes_to_is_hollow(tmp_path: Path, what: str) -> None:
    change, more, said = HOLLOW[what]
    measured = told(tmp_path, change, **more)
    assert (measured.outcome, said in measured.detail, measured.mutants) == (Outcome.HOLLOW_REPORT, True, ())


@pytest.mark.parametrize(
    "change",
    [
        lambda report: None,
        first(status="Timeout"),
        first(status="RuntimeError"),
        first(status="NoCoverage", coveredBy=[], testsCompleted=0),
        lambda report: report["files"].update({f".\\{FILE}".replace("/", "\\"): report["files"].pop(FILE)}),
    ],
)
def test_a_report_that_may_be_is_believed(tmp_path: Path, change: Callable[[Any], object]) -> None:
    measured = told(tmp_path, change, late=1.0)  # a file system's clock may be behind
    assert (measured.outcome, len(measured.mutants)) == (Outcome.OK, 2), measured.detail


def test_the_honest_score_gives_no_credit_for_a_timeout() -> None:
    found = score([Status.KILLED, Status.SURVIVED, Status.NO_COVERAGE, *2 * [Status.TIMEOUT]])
    assert found.honest == pytest.approx(100 / 3) and found.mutation == pytest.approx(60)
    assert score([Status.TIMEOUT]).honest is None


def test_what_an_engine_printed_without_end_is_told_in_short() -> None:
    endless = process.Finished((), 1, b"x" * (8 << 20) + b"\nERROR so\n", b"y" * (8 << 20), 1.0, None, None)
    measured = failure(endless, Path("log"))
    assert (measured.outcome, len(measured.detail) < 3000) == (Outcome.CRASHED, True)
    assert measured.detail.startswith("ERROR so\nyyy") and measured.detail.endswith("…\n(log: log)")
    assert len(endless.tail()) < 3000
