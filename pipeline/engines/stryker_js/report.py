"""What one Stryker process left -> what each of its scopes is told, or how it failed. Starts nothing."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline import process
from pipeline.engines import Measured, Switch, TestRun
from pipeline.model import Scope
from pipeline.mutants import Mutant, Raw, ReportError, Status, identify, raw_mutants
from pipeline.results import Outcome

_CLOCKS = 2.0  # seconds: a file system's clock may be behind, and coarse
INSTRUMENTED = b"stryMutAct_"  # the name of Stryker's switch: a file that has it has mutants
_COLOUR = r"\x1b\[[0-9;]*m"
_NOISE = re.compile(  # colours, times and process ids, stacks
    rf"^(?:{_COLOUR})?\d\d:\d\d:\d\d \(\d+\) |{_COLOUR}|^\s*at .*\n", re.MULTILINE
)


@attrs.frozen
class Report:
    """What one Stryker process left."""

    report: Mapping[str, Any]
    instrumented: Mapping[str, bytes]  # mutated file -> its text with all mutants in it
    peak_bytes: int | None
    alone: Mapping[str, float] = attrs.field(factory=dict)  # id of a mutant that alone.mjs judged -> seconds that took


def scope_result(root: Path, scope: Scope, run: Report, plain: TestRun) -> Measured:
    """What a run of this scope alone would give."""
    mutants: list[Mutant] = []
    ids: dict[str, str] = {}
    reached: dict[str, tuple[str, ...]] = {}
    files: dict[str, bytes] = {}
    try:
        entries = _by_file(root, scope, run.report)
        file_of_test = _test_files(root, run.report)
        for file in scope.mutate:
            raws = raw_mutants(entries[file], file)
            if not raws and INSTRUMENTED in run.instrumented.get(file, INSTRUMENTED):
                raise ReportError(f"it has no mutant of {file}, which holds some")
            if file not in run.instrumented:
                raise ReportError(f"the code of {file} with its mutants is missing beside it")
            source = (root / file).read_bytes().decode().replace("\r\n", "\n")
            for raw, mutant in zip(raws, identify(raws, file, source), strict=True):
                mine = tuple(sorted({file_of_test[t] for t in raw.covered_by if t in file_of_test} & {*plain.files}))
                _believable(raw, file, mine, file_of_test)
                # A mutant that only other scopes' tests reach is, to this scope, not covered.
                if mutant.status is Status.SURVIVED and not mutant.static and not mine:
                    mutant = attrs.evolve(mutant, status=Status.NO_COVERAGE)
                mutants.append(mutant)
                ids[mutant.key] = raw.id
                reached[mutant.key] = plain.files if mutant.static else mine
            files[file] = run.instrumented[file]
    except (ReportError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        return Measured(Outcome.HOLLOW_REPORT, f"the report is not to be believed: {error}")
    if not mutants:
        return Measured(
            Outcome.NO_MUTANTS, f"nothing to mutate in {', '.join(scope.mutate)}", (), plain.files, plain.inputs
        )
    whole = scope.lines is None  # of a few lines, any of these may be true
    if whole and all(m.status in _UNJUDGED for m in mutants):
        said = ", ".join(sorted({str(m.status) for m in mutants}))
        return Measured(Outcome.HOLLOW_REPORT, f"none of {len(mutants)} mutants was judged: {said}")
    late = tuple(sorted(key for key, id_ in ids.items() if run.alone.get(id_) == math.inf))
    if whole and len(mutants) > 1 and not late and all(m.status is Status.TIMEOUT for m in mutants):
        return Measured(Outcome.HOLLOW_REPORT, f"all {len(mutants)} mutants timed out: nothing was judged")
    return Measured(
        Outcome.OK, "", tuple(mutants), plain.files, tuple(sorted({*plain.inputs, *scope.mutate})), reached,
        Switch(files, ids, whole=True), plain.seconds, run.peak_bytes,
        alone={key: run.alone[id_] for key, id_ in sorted(ids.items()) if run.alone.get(id_, math.inf) < math.inf},
        late=late,
    )  # fmt: skip


_UNJUDGED = (Status.IGNORED, Status.COMPILE_ERROR, Status.RUNTIME_ERROR)


def _by_file(root: Path, scope: Scope, report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The scope's file -> its entry in the report, whichever way the report spells its name. Raises ReportError."""
    found: dict[str, Mapping[str, Any]] = {file: {} for file in scope.mutate}
    for name, entry in report["files"].items():
        file = _spelled(root, name)
        if file not in found:
            continue
        if found[file]:
            raise ReportError(f"it has {file} twice")
        text = entry.get("source")
        if text is not None and _plain(text) != _plain((root / file).read_bytes().decode()):
            raise ReportError(f"it is about another text of {file}: it is older than the file")
        found[file] = entry
    return found


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _spelled(root: Path, name: str) -> str:
    """A path of the report as the plan has it: relative to the project's root, with forward slashes."""
    if (root / name).is_file() and not Path(name).is_absolute():
        return posixpath.normpath(name)
    return posixpath.normpath(name.replace("\\", "/").removeprefix(f"{root.as_posix()}/"))


def _believable(raw: Raw, file: str, mine: Sequence[str], file_of_test: Mapping[str, str]) -> None:
    """Raises ReportError for what no measurement comes to."""
    if raw.status is Status.PENDING:
        raise ReportError(f"mutant {raw.id} of {file} is still pending")
    if unknown := set(raw.covered_by) - file_of_test.keys():
        raise ReportError(f"mutant {raw.id} of {file} is covered by a test that it does not list: {min(unknown)}")
    if raw.status is Status.SURVIVED and raw.tests_completed == 0 and mine:
        raise ReportError(f"mutant {raw.id} of {file} survived without a test having been run, though tests cover it")


def read_report(path: Path, finished: process.Finished, log: Path, started: float) -> Mapping[str, Any] | Measured:
    """The report of a process that has ended, or how it failed. started: time.time() before it did."""
    if finished.timed_out or finished.too_much_output or finished.exit_code < 0 or not path.exists():
        return failure(finished, log)
    if path.stat().st_mtime < started - _CLOCKS:
        return Measured(Outcome.HOLLOW_REPORT, f"the report is older than the run that was to make it (log: {log})")
    try:
        report = json.loads(path.read_bytes())
    except ValueError as error:
        if finished.exit_code:
            return failure(finished, log)
        return Measured(Outcome.HOLLOW_REPORT, f"the report breaks off, or is no JSON: {error} (log: {log})")
    if not isinstance(report, dict):
        return Measured(Outcome.HOLLOW_REPORT, f"the report is no report (log: {log})")
    return report


def judged_alone(folder: Path) -> dict[str, float]:
    """Of the mutants that alone.mjs asked about in `folder`: the engine's id, and the seconds that each took; infinite
    where the start of the process took what the tests should have had: a machine with much else to do."""
    took = {}
    for asked in folder.glob("alone-*-asked.json"):
        id_ = asked.name.split("-")[1]
        ended = asked.with_name(f"alone-{id_}-ended")
        fair = ended.exists() and ended.read_text() == "fair"
        took[id_] = ended.stat().st_mtime - asked.stat().st_mtime if fair else math.inf
    return took


def failure(finished: process.Finished, log: Path) -> Measured:
    """Stryker exits with 1 for everything: what it said tells what it was."""
    said = _NOISE.sub("", finished.said)
    lines = [line for line in said.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("ERROR ")), len(lines[:-6]))
    detail = "\n".join([*lines[first : first + 6], f"(log: {log})"])
    if finished.timed_out:
        return Measured(Outcome.TIME_LIMIT, detail)
    if finished.too_much_output:
        return Measured(Outcome.CRASHED, f"it printed without end, and was ended\n{detail}")
    if finished.exit_code < 0:
        return Measured(Outcome.SIGNAL, f"ended by signal {-finished.exit_code}\n{detail}")
    if "There were failed tests in the initial test run" in said or "DOIT-MUTATE-SHARED-TITLE" in said:
        return Measured(Outcome.TESTS_FAIL_FIRST, detail)
    if re.search(r"Config(Reader)?Error|Please correct|Cannot find \w+ plugin", said):
        return Measured(Outcome.BAD_CONFIG, detail)
    if "heap out of memory" in said:
        return Measured(Outcome.MEMORY, detail)
    if finished.exit_code == 0:
        return Measured(Outcome.NO_REPORT, detail)
    return Measured(Outcome.CRASHED, detail)


def _test_files(root: Path, report: Mapping[str, Any]) -> dict[str, str]:
    """The report's test id -> its file."""
    return {
        str(test["id"]): _spelled(root, file)
        for file, entry in (report.get("testFiles") or {}).items()
        for test in entry.get("tests", ())
    }
