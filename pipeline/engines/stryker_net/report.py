"""Stryker.NET's report → what a run of each scope alone would say. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from pipeline.engines import Measured
from pipeline.model import Scope
from pipeline.mutants import Mutant, Raw, ReportError, Status, identify, raw_mutants
from pipeline.results import Outcome

FILTERED = "Removed by mutate filter"  # not by the project's own wish: we did not ask for that file
FEW = 3  # mutants that may well survive, all of them


@attrs.frozen
class TestAt:
    """A test as the report names it."""

    __test__ = False

    file: str
    name: str  # in full: Shop.Tests.PricingTests.Adds


@attrs.frozen
class Report:
    """A report with the paths of the repository."""

    content: Mapping[str, Any]
    names: Mapping[str, str]  # path relative to the root -> the key in the report
    tests: Mapping[str, TestAt]  # id -> which it is
    killers: Mapping[str, frozenset[str]]  # mutant's id -> the tests that it made fail

    @classmethod
    def of(cls, content: Mapping[str, Any], root: str) -> Report:
        """root: the absolute path that the run's files lie below. Raises ReportError."""
        prefix = f"{root.rstrip('/')}/"
        try:
            names = {key.removeprefix(prefix): key for key in content["files"]}
            tests = {
                str(test["id"]): TestAt(file.removeprefix(prefix), str(test["name"]).partition("(")[0])
                for file, entry in (content.get("testFiles") or {}).items()
                for test in entry.get("tests", ())
            }
            killers = {
                str(m["id"]): frozenset(map(str, m.get("killedBy") or ()))
                for entry in content["files"].values()
                for m in entry["mutants"]
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise ReportError(f"{type(error).__name__}: {error}") from error
        return cls(content, names, tests, killers)

    def tests_in(self, files: Collection[str]) -> frozenset[str]:
        """Ids of the tests in some files."""
        return frozenset(id_ for id_, test in self.tests.items() if test.file in files)

    @property
    def tested(self) -> int:
        """How many mutants met a test."""
        return self._count("Killed", "Survived", "Timeout")

    @property
    def killed(self) -> int:
        return self._count("Killed")

    def _count(self, *statuses: str) -> int:
        return sum(m["status"] in statuses for entry in self.content["files"].values() for m in entry["mutants"])

    def killed_by(self) -> list[tuple[str, TestAt]]:
        """(mutant's id, a test that killed it), those first that act when their code runs."""
        found = [
            (bool(m.get("static")), str(m["id"]), self.tests[t])
            for entry in self.content["files"].values()
            for m in entry["mutants"]
            if m["status"] == "Killed"
            for t in sorted(map(str, m.get("killedBy") or ()))[:1]
            if t in self.tests
        ]
        return [(id_, test) for _, id_, test in sorted(found, key=lambda f: (f[0], int(f[1])))]


def scope_result(
    scope: Scope, report: Report, sources: Mapping[str, str], mine: Collection[str],
    settled: Mapping[str, Status] | None = None,
) -> tuple[Measured, Mapping[str, str]]:  # fmt: skip
    """A scope's part of a report that holds many, and mutant key -> the engine's id.

    sources: mutated file -> its text. mine: the scope's own test files: what others' tests kill is not killed here.
    settled: what those say of the mutants that are `unsettled`.
    """
    own = report.tests_in(mine)
    mutants: list[Mutant] = []
    ids: dict[str, str] = {}
    reached: dict[str, tuple[str, ...]] = {}
    for file in scope.mutate:
        if file not in report.names:
            return Measured(Outcome.HOLLOW_REPORT, f"the report does not know {file}: no project compiles it"), {}
        raws = raw_mutants(report.content["files"][report.names[file]], file)
        for raw, mutant in zip(raws, identify(raws, file, sources[file]), strict=True):
            if mutant.status is Status.IGNORED and raw.reason == FILTERED:
                return Measured(Outcome.ALL_FILTERED, f"the filter that names {file} left its mutants out"), {}
            status = (settled or {}).get(raw.id) or _status(raw, mutant.status, report, own)
            mutants.append(attrs.evolve(mutant, status=status))
            ids[mutant.key] = raw.id
            reached[mutant.key] = _reached(raw, report, own, mine)
    return _judged(scope, mutants, reached), ids


def unsettled(scope: Scope, report: Report, mine: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Mutants that others' tests killed, though the scope's own run through them too: where Stryker has ended with the
    first test that failed, nothing is known of those. Gives the engine's id -> what `test` takes to run them.
    Raises ReportError."""
    own = report.tests_in(mine)
    entries = ((file, report.content["files"].get(report.names.get(file, ""))) for file in scope.mutate)
    raws = [raw for file, entry in entries for raw in raw_mutants(entry, file) if raw.status is Status.KILLED]
    taken = [raw for raw in raws if report.killers[raw.id] and report.killers[raw.id].isdisjoint(own)]
    return {raw.id: reached for raw in taken if (reached := _reached(raw, report, own, mine))}


def _status(raw: Raw, said: Status, report: Report, own: frozenset[str]) -> Status:
    """What the scope's own tests say of a mutant, where all tests of the project ran."""
    killers = report.killers[raw.id]
    if said is Status.KILLED and killers and killers.isdisjoint(own):
        said = Status.SURVIVED
    if said in (Status.SURVIVED, Status.TIMEOUT) and raw.covered_by and own.isdisjoint(raw.covered_by):
        return Status.NO_COVERAGE
    return said


def _reached(raw: Raw, report: Report, own: frozenset[str], mine: Collection[str]) -> tuple[str, ...]:
    """What `test` takes to run the tests that reach a mutant; Stryker does not say it of a static one."""
    if raw.static:
        return tuple(sorted(mine))
    covering = (report.tests[t] for t in raw.covered_by if t in own)
    return tuple(sorted({f"{test.file}::{test.name}" for test in covering}))


def _judged(scope: Scope, mutants: Sequence[Mutant], reached: Mapping[str, tuple[str, ...]]) -> Measured:
    files = ", ".join(scope.mutate)
    if not mutants:
        return Measured(Outcome.NO_MUTANTS, f"nothing to mutate in {files}")
    if all(m.status in (Status.IGNORED, Status.PENDING) for m in mutants):
        reasons = ", ".join(sorted({m.reason for m in mutants}))
        return Measured(Outcome.HOLLOW_REPORT, f"all {len(mutants)} mutants of {files} were left out: {reasons}")
    if len(mutants) > 1 and all(m.status is Status.TIMEOUT for m in mutants):
        return Measured(Outcome.HOLLOW_REPORT, f"all {len(mutants)} mutants timed out: nothing was judged")
    return Measured(Outcome.OK, mutants=tuple(mutants), reached=reached)
