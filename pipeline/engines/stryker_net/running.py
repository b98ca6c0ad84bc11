"""Run built tests once in a fresh process, and say what became of each."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import process, scratch
from pipeline import sandbox as sandboxes
from pipeline.engines import TestResult
from pipeline.engines.stryker_net import dotnet, host
from pipeline.engines.stryker_net.host import Case, Only
from pipeline.results import Outcome
from pipeline.sandbox import Sandbox

MOST_PRINTED = 16 << 20  # bytes that the tests of one process may print
_ENVIRONMENT = {  # a process of less than a second gains nothing by these, and a fourth without
    "DOTNET_TieredPGO": "0", "DOTNET_gcConcurrent": "0", "DOTNET_EnableWriteXorExecute": "0",
    "DOTNET_EnableDiagnostics": "0",  # no socket for debuggers
}  # fmt: skip
_LONGEST_FILTER = 100_000  # characters; one argument may have 128 KiB
_EXCEPTION = re.compile(r"^\s*(?:Test method \S+ threw exception:\s*)?(?:(?:\w+\.)+\w+|\w*Exception) ?: ")
_BESIDE = re.compile(
    r"^\s*(?:\w*(?:SetUp|TearDown)\b|\[Test \w+ Cleanup|Test execution timed out|Initialization method|\w+ Cleanup)"
)
_FRAME = re.compile(r"^\s*at (?P<method>.+?)\(.*?\)(?: in (?P<file>.+?):line \d+)?\s*$", re.MULTILINE)
_LIBRARIES = ("System.", "Microsoft.", "Xunit.", "NUnit.", "InvokeStub_", "MSTest.")


@attrs.frozen
class Ran:
    """One process. `outcome` OK: it ran to its end with at least one test."""

    outcome: Outcome
    detail: str = ""
    cases: tuple[Case, ...] = ()
    covered: tuple[str, ...] | None = ()  # ids of mutants that were run through; None: nobody wrote which
    seconds: float = 0.0
    cpu_seconds: float | None = None
    running: str = ""  # where it ended early: the method that was running

    def seconds_of(self, types: Collection[str]) -> float:
        """What the tests of some classes alone would take, with the start of the process."""
        everything = sum(c.seconds for c in self.cases)
        own = sum(c.seconds for c in self.cases if c.type in types)
        return min(self.seconds, max(0.0, self.seconds - everything) + own)


def run(
    root: Path,
    output: Path,
    assembly: str,
    hosts: host.Hosts,
    *,
    over: Mapping[str, Path],
    only: Only | None,
    mutant: str | None,
    timeout: float,
    env: Mapping[str, str] | None = None,
    seed: int | None = None,
    sandbox: Sandbox | None = None,
) -> Ran:
    """Run the tests of an assembly in a copy of its output folder: what they leave there is met by no others.

    over: file name -> what is laid over it in the copy. only: None for all. mutant: the id to switch on; "" switches
    none on, and tells `covered`. seed: of the tests' order. sandbox: what they may write beside temporary files.
    """
    with scratch.folder() as place:
        (place / "tmp").mkdir()
        if sandbox:
            sandbox = attrs.evolve(sandbox, writable=(*sandbox.writable, place)) if not sandboxes.missing() else None
        # As deep as the original: tests look for files by ../../..
        stage = output.with_name(f"{output.name}-{place.name[-8:]}")
        shared = sandbox is not None and not any(stage.is_relative_to(folder) for folder in sandbox.writable)
        try:
            shutil.copytree(output, stage, symlinks=True, copy_function=_linked if shared else shutil.copy2)
            for name, content in over.items():
                (stage / name).unlink(missing_ok=True)
                shutil.copyfile(content, stage / name)
                (stage / name).with_suffix(".pdb").unlink(missing_ok=True)  # of the original: its lines are others
            extra = dict(_ENVIRONMENT)
            if mutant == "":
                extra |= {"STRYKER_COVERAGE_FILE": "coverage.txt"}
            on = None if mutant is None else host.On(mutant, tuple(over))
            words, wanted = hosts.prepare(root, stage, assembly, place, only, seed, on)
            variables = dotnet.environment(place / "tmp", {**extra, **wanted, **(env or {})})
            done = process.run(
                words, cwd=stage, env=variables, timeout=timeout, max_output=MOST_PRINTED, sandbox=sandbox
            )
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        covered = covered_in(place / "tmp") if mutant == "" else ()
        return _read(done, host.read(place / "answer"), timeout, covered)


def _linked(source: str, target: str) -> None:
    """The same file twice: nothing writes into it."""
    try:
        os.link(source, target)
    except OSError:  # a file system without such links
        shutil.copy2(source, target)


def covered_in(temp: Path) -> tuple[str, ...] | None:
    """What MutantControl wrote when its process ended: `1,2;3`, the second part those of static initialisation."""
    texts = [path.read_text() for path in temp.glob("coverage-*.txt")]
    if not texts:
        return None
    return tuple(dict.fromkeys(i for text in texts for i in re.findall(r"\d+", text)))


def _read(done: process.Finished, answer: host.Answer, timeout: float, covered: tuple[str, ...] | None) -> Ran:
    said = "\n".join(answer.errors) or done.tail(12)
    outcome, detail = Outcome.OK, ""
    if done.timed_out:
        outcome, detail = Outcome.TIME_LIMIT, f"the tests did not end within {timeout:.0f} s"
    elif done.too_much_output:
        outcome, detail = Outcome.CRASHED, f"the tests printed more than {MOST_PRINTED >> 20} MB"
    elif not answer.whole:
        memory = "OutOfMemoryException" in done.tail(40) or "Out of memory" in done.tail(40)
        outcome = Outcome.MEMORY if memory else Outcome.CRASHED
        detail = f"the test process died: {said or f'exit code {done.exit_code}'}"
    elif done.outlived:
        outcome, detail = Outcome.CRASHED, "a program that the tests had started outlived them"
    elif not any(c.outcome in ("Passed", "Failed") for c in answer.cases):
        outcome, detail = Outcome.NO_TESTS, f"no test ran{f': {said}' if answer.errors else ''}"
    return Ran(outcome, detail, answer.cases, covered, done.seconds, done.cpu_seconds, answer.running)


def results(cases: Sequence[Case], file_of: Callable[[str, str], str], test_folder: Path) -> tuple[TestResult, ...]:
    """One result for each method: a theory fails where a case does. file_of: class, method -> the file."""
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
            found.append(TestResult(file_of(type_, method), method, "failed", kind, message))
        else:
            state = "passed" if any(c.outcome == "Passed" for c in some) else "skipped"
            found.append(TestResult(file_of(type_, method), method, state))
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


def filter_of(types: Collection[str]) -> str:
    """A filter expression for the tests of classes; "" where it would be too long: then all run."""
    text = "|".join(f"FullyQualifiedName~{_escaped(t)}." for t in sorted(types))
    return text if len(text) <= _LONGEST_FILTER else ""


def _escaped(name: str) -> str:
    return re.sub(r"([\\()&|=!~])", r"\\\1", name)
