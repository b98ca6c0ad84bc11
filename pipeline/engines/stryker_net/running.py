"""Run built tests once in a fresh process, and read what became of each from its trx file."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as xml
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import process, scratch
from pipeline.engines import TestResult
from pipeline.engines.stryker_net import dotnet
from pipeline.results import Outcome

ACTIVE = "DOIT_MUTATE_ACTIVE"  # the variable that holds the id of the mutant that is on
_ENVIRONMENT = {
    "DOTNET_TieredPGO": "0",  # a process of a second gains nothing by it, and a fourth without
    # Milliseconds. vstest.console ends a test host that takes longer than 100 to end, before it says what it covered.
    "VSTEST_TESTHOST_SHUTDOWN_TIMEOUT": "60000",
    "VSTEST_CONNECTION_TIMEOUT": "300",  # seconds; 90 are not enough on a machine that is busy otherwise
}
_LONGEST_FILTER = 100_000  # characters; one argument may have 128 KiB
_XML = "{http://microsoft.com/schemas/VisualStudio/TeamTest/2010}"
_EXCEPTION = re.compile(r"^\s*(?:Test method \S+ threw exception:\s*)?(?:(?:\w+\.)+\w+|\w*Exception) ?: ")
_BESIDE = re.compile(
    r"^\s*(?:\w*(?:SetUp|TearDown)\b|\[Test \w+ Cleanup|Test execution timed out|Initialization method|\w+ Cleanup)"
)
_FRAME = re.compile(r"^\s*at (?P<method>.+?)\(.*?\)(?: in (?P<file>.+?):line \d+)?\s*$", re.MULTILINE)
_LIBRARIES = ("System.", "Microsoft.", "Xunit.", "NUnit.", "InvokeStub_", "MSTest.")


@attrs.frozen
class Case:
    """One row of a trx file: a test, or a theory's case."""

    type: str  # full name of the class
    method: str
    outcome: str  # Passed | Failed | NotExecuted | ...
    message: str = ""
    stack: str = ""
    seconds: float = 0.0


@attrs.frozen
class Ran:
    """One process. `outcome` OK: it ran to its end with at least one test."""

    outcome: Outcome
    detail: str = ""
    cases: tuple[Case, ...] = ()
    covered: tuple[str, ...] | None = ()  # ids of mutants that were run through; None: nobody wrote which
    seconds: float = 0.0
    cpu_seconds: float | None = None

    def seconds_of(self, types: Collection[str]) -> float:
        """What the tests of some classes alone would take, with the start of the process."""
        everything = sum(c.seconds for c in self.cases)
        own = sum(c.seconds for c in self.cases if c.type in types)
        return min(self.seconds, max(0.0, self.seconds - everything) + own)


def run(
    root: Path,
    assembly: Path,
    *,
    over: Mapping[str, Path],
    only: str,
    runner: str,
    mutant: str | None,
    timeout: float,
    env: Mapping[str, str] | None = None,
) -> Ran:
    """Run the tests of an assembly of `root` in a copy of its folder: what they leave there is met by no others.

    over: file name -> what is laid over it in the copy. only: a filter expression, "" for all. mutant: the id to switch
    on; "" switches none on, and tells `covered`.
    """
    with scratch.folder() as place:
        (place / "tmp").mkdir()
        # As deep as the original: tests look for files by ../../..
        stage = assembly.parent.with_name(f"{assembly.parent.name}-{place.name[-8:]}")
        try:
            shutil.copytree(assembly.parent, stage, symlinks=True)
            for name, content in over.items():
                shutil.copyfile(content, stage / name)
                (stage / name).with_suffix(".pdb").unlink(missing_ok=True)  # of the original: its lines are others
            extra = dict(_ENVIRONMENT)
            if mutant is not None:
                extra |= {"STRYKER_MUTANT_ID_CONTROL_VAR": ACTIVE, ACTIVE: mutant}
                extra |= {} if mutant else {"STRYKER_COVERAGE_FILE": "coverage.txt"}
            words = (
                _mtp(stage / assembly.name, only, place)
                if runner == "mtp"
                else _vstest(root, stage / assembly.name, only, place)
            )
            variables = dotnet.environment(place / "tmp", {**extra, **(env or {})})
            done = process.run(words, cwd=stage, env=variables, timeout=timeout)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        covered = covered_in(place / "tmp") if mutant == "" else ()
        return _read(done, place / "results" / "r.trx", timeout, covered)


def _vstest(root: Path, assembly: Path, only: str, place: Path) -> list[str]:
    words = [
        *dotnet.vstest(root),
        str(assembly),
        "--logger:trx;LogFileName=r.trx",
        f"--ResultsDirectory:{place / 'results'}",
    ]
    return [*words, *([f"--TestCaseFilter:{only}"] if only else ())]


def _mtp(assembly: Path, only: str, place: Path) -> list[str]:
    """xunit.v3's own command line: each test project is a program."""
    words = [dotnet.find(), "exec", str(assembly), "-trx", str(place / "results" / "r.trx"), "-noColor"]
    (place / "results").mkdir()
    for part in only.split("|") if only else ():  # of -class and -method both would have to hold
        name = re.sub(r"\\(.)", r"\1", part.split("~", 1)[-1].split("=", 1)[-1])
        words += ["-method", f"{name}*" if "~" in part else name]
    return words


def covered_in(temp: Path) -> tuple[str, ...] | None:
    """What MutantControl wrote when its process ended: `1,2;3`, the second part those of static initialisation."""
    texts = [path.read_text() for path in temp.glob("coverage-*.txt")]
    if not texts:
        return None
    return tuple(dict.fromkeys(i for text in texts for i in re.findall(r"\d+", text)))


def _read(done: process.Finished, trx: Path, timeout: float, covered: tuple[str, ...] | None) -> Ran:
    said = done.tail(12)
    if done.timed_out:
        detail = f"the tests did not end within {timeout:.0f} s"
        return Ran(Outcome.TIME_LIMIT, detail, seconds=done.seconds, cpu_seconds=done.cpu_seconds)
    try:
        cases = cases_of(trx.read_bytes())
    except (OSError, xml.ParseError):
        if "No test" in done.text or "No test" in said or done.exit_code == 0:
            return Ran(Outcome.NO_TESTS, f"no test ran: {said.splitlines()[-1] if said else ''}", seconds=done.seconds)
        return Ran(Outcome.CRASHED, f"the test process died: {said}", seconds=done.seconds)
    outcome, detail = Outcome.OK, ""
    if "aborted" in said or "Test host process crashed" in said:
        outcome, detail = Outcome.CRASHED, f"the test process died: {said}"
    elif not any(c.outcome in ("Passed", "Failed") for c in cases):
        outcome, detail = Outcome.NO_TESTS, "no test ran"
    return Ran(outcome, detail, cases, covered, done.seconds, done.cpu_seconds)


def cases_of(trx: bytes) -> tuple[Case, ...]:
    """The rows of a trx file. Raises ParseError for what is none."""
    tree = xml.fromstring(trx)
    methods = {}
    for test in tree.iter(f"{_XML}UnitTest"):
        method = test.find(f"{_XML}TestMethod")
        if method is not None:
            methods[test.get("id")] = (method.get("className") or "", method.get("name") or "")
    found = []
    for row in tree.iter(f"{_XML}UnitTestResult"):
        type_, name = methods.get(row.get("testId"), ("", row.get("testName") or ""))
        message = row.findtext(f".//{_XML}ErrorInfo/{_XML}Message") or ""
        stack = row.findtext(f".//{_XML}ErrorInfo/{_XML}StackTrace") or ""
        name = name.removeprefix(f"{type_}.").partition("(")[0]
        took = re.fullmatch(r"(\d+):(\d+):([\d.]+)", row.get("duration") or "")
        seconds = int(took[1]) * 3600 + int(took[2]) * 60 + float(took[3]) if took else 0.0
        found.append(Case(type_, name, row.get("outcome") or "", message, stack, seconds))
    return tuple(found)


def results(cases: Sequence[Case], file_of: Mapping[str, str], test_folder: Path) -> tuple[TestResult, ...]:
    """One result for each method: a theory fails where a case does. file_of: class -> the file that declares it."""
    rows: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        rows.setdefault((case.type, case.method), []).append(case)
    found = []
    for (type_, method), some in rows.items():
        failed = [c for c in some if c.outcome == "Failed"]
        if failed:
            message = failed[0].message.strip() or "it failed and said nothing"
            kinds = [kind_of(c, test_folder) for c in failed]
            kind = next((k for k in ("assertion", "exception") if k in kinds), "other")
            found.append(TestResult(file_of.get(type_, ""), method, "failed", kind, message))
        else:
            state = "passed" if any(c.outcome == "Passed" for c in some) else "skipped"
            found.append(TestResult(file_of.get(type_, ""), method, state))
    return tuple(found)


def kind_of(case: Case, test_folder: Path) -> str:
    """How a test failed: by an assertion, by an exception out of the code under test, or otherwise.

    An exception's first frame that is no library's tells whose it is: the test's, where it lies in the test project.
    """
    if _BESIDE.match(case.message):
        return "other"
    if not _EXCEPTION.match(case.message):
        return "assertion"  # every framework names the type of an exception, and of an assertion that fails none
    for frame in _FRAME.finditer(case.stack):
        if frame["file"] and Path(frame["file"]).is_relative_to(test_folder):
            return "other"
        if frame["method"].startswith(case.type.replace("+", ".")):
            return "other"
        if not frame["method"].startswith(_LIBRARIES):
            return "exception"
    return "other"


def filter_of(types: Collection[str], tests: Collection[str]) -> str:
    """A filter expression for classes in full and tests by full name; "" where it would be too long: then all run."""
    parts = [f"FullyQualifiedName~{_escaped(t)}." for t in sorted(types)]
    # NUnit has a case's arguments in its name, xunit and MSTest have not.
    parts += [
        part
        for t in sorted(tests)
        for part in (f"FullyQualifiedName={_escaped(t)}", f"FullyQualifiedName~{_escaped(t)}\\(")
    ]
    text = "|".join(parts)
    return text if len(text) <= _LONGEST_FILTER else ""


def _escaped(name: str) -> str:
    return re.sub(r"([\\()&|=!~])", r"\\\1", name)
