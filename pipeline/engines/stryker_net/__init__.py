"""The Stryker.NET engine, for C# projects whose tests run in xunit, NUnit or MSTest. Verbs: pipeline.engines.

Checked with Stryker.NET 5.1.0 on .NET SDK 10.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import process, scratch
from pipeline.engines import EngineError, Measured, Switch, TestRun, csharp
from pipeline.engines.stryker_net import dotnet, picture, projects, running, settings
from pipeline.engines.stryker_net.builds import Builds
from pipeline.engines.stryker_net.host import Hosts, Only
from pipeline.engines.stryker_net.outcomes import blamed, failure, first_failure
from pipeline.engines.stryker_net.projects import Pair, Project
from pipeline.engines.stryker_net.report import FEW, Report, scope_result
from pipeline.engines.stryker_net.suite import CSharpSuite, classes_of
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import ReportError
from pipeline.results import Outcome
from pipeline.sandbox import Sandbox

PLAIN_TIME_LIMIT = 900.0  # seconds for all tests of a project on the original
SWITCH = ".doit-mutate/switch"  # the folder in a worktree where a switch is laid
CONTROLS = 3  # kills of a report that are tried on the picture before it counts as none


@attrs.frozen
class _Run:
    """What one Stryker process left."""

    report: Report
    mutated: bytes  # the assembly
    peak_bytes: int | None


@attrs.frozen
class _Tests:
    """The tests of one test project, by file."""

    files: tuple[str, ...]  # those that hold tests
    file_of: Mapping[str, str]  # class -> file

    @classmethod
    def of(cls, root: Path, project: Project, known: projects.Projects) -> _Tests:
        file_of: dict[str, str] = {}
        for file in projects.files(root, [project], known.by_path.values()):
            if file.endswith(".cs"):
                text = (root / file).read_text(encoding="utf-8-sig", errors="replace")
                file_of.update(dict.fromkeys(classes_of(text), file))
        return cls(tuple(sorted(set(file_of.values()))), file_of)

    def classes(self, files: Collection[str]) -> frozenset[str]:
        return frozenset(type_ for type_, file in self.file_of.items() if file in files)


@attrs.define
class StrykerNet:
    config: EngineConfig
    name: str = "stryker-net"
    language: str = "csharp"
    links: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("bin", "obj")
    compiled: tuple[str, ...] = (".cs",)
    suite: CSharpSuite = attrs.field(factory=CSharpSuite)
    builds: Builds = attrs.field(factory=Builds)
    hosts: Hosts = attrs.field(factory=Hosts)

    def essence(self, text: str) -> str | None:
        return csharp.essence(text)

    def version(self, root: Path) -> str:
        return f"Stryker.NET {dotnet.stryker(root)} SDK {dotnet.sdk(root)}"

    def installed(self, root: Path) -> tuple[Path, ...]:
        return dotnet.installed()

    def config_files(self) -> tuple[str, ...]:
        own = (self.config.config,) if self.config.config else ()
        return (*projects.ABOVE, *settings.NAMES, ".config/dotnet-tools.json", *own)

    def tool(self, name: str, root: Path) -> Path:
        raise EngineError(f"{name} is not a part of this engine")

    def notes(self, root: Path, scopes: Sequence[Scope]) -> Sequence[str]:
        found: dict[str, None] = {}
        with contextlib.suppress(EngineError, OSError):  # said by the baseline that comes to it
            known = projects.read(root)
            for scope in scopes:
                found[settings.find(root, known.pair(scope, self.config).tests.folder, self.config.config).note] = None
        return [note for note in found if note]

    # -- measure

    def measure(self, root: Path, scopes: Sequence[Scope], *, workers: int, log: Path) -> Mapping[str, Measured]:
        self.version(root)
        known = projects.read(root)
        measured: dict[str, Measured] = {}
        groups: dict[Pair, list[Scope]] = {}
        for scope in scopes:
            try:
                groups.setdefault(known.pair(scope, self.config), []).append(scope)
            except EngineError as error:
                measured[scope.name] = Measured(error.outcome, str(error))
        for pair, some in groups.items():
            measured |= self._measure_pair(root, known, pair, some, workers, log)
        return measured

    def _measure_pair(
        self, root: Path, known: projects.Projects, pair: Pair, scopes: Sequence[Scope], workers: int, log: Path
    ) -> dict[str, Measured]:
        """All scopes of one source and test project: built once, their tests run once, one Stryker process."""
        inputs = projects.files(root, known.reached(pair.tests), known.by_path.values())
        built = self.builds.build(root, pair.tests, inputs, log)
        if built.outcome is not Outcome.OK:
            return {s.name: Measured(built.outcome, built.detail) for s in scopes}
        tests = _Tests.of(root, pair.tests, known)
        mine = {s.name: tests.files if s.tests is None else s.tests for s in scopes}
        every = {file for files in mine.values() for file in files}
        only = None if every >= set(tests.files) else Only(tests.classes(every))
        plain = self._ran(root, pair.tests, built, only=only, timeout=PLAIN_TIME_LIMIT)
        measured: dict[str, Measured] = {}
        seconds = {}
        for scope in scopes:
            own = tests.classes(mine[scope.name])
            if failure := first_failure(plain, own, scope, mine[scope.name]):
                measured[scope.name] = failure
            seconds[scope.name] = plain.seconds_of(own)
        due = [s for s in scopes if s.name not in measured]
        # With tests of several scopes in one process, all that kill a mutant must be known, not only the first.
        apart = len({tuple(sorted(mine[s.name])) for s in due}) > 1
        if due and len(due) < len(scopes):
            only = Only(tests.classes({f for s in due for f in mine[s.name]}))
        filter_ = "" if only is None else running.filter_of(only.types)
        found_of = self._run_all(root, pair, due, filter_, apart, workers, log)
        true = {id(run): self._is_true(root, pair, inputs, run) for run in found_of.values() if isinstance(run, _Run)}
        for name, found in found_of.items():
            scope = next(s for s in due if s.name == name)
            if isinstance(found, _Run):
                found = found if true[id(found)] else attrs.evolve(found, mutated=b"")
                found = self._of_scope(root, pair, scope, found, mine[name], seconds[name])
            measured[name] = attrs.evolve(found, tests=tuple(sorted(mine[name])), inputs=inputs)
        return measured

    def _run_all(
        self, root: Path, pair: Pair, scopes: Sequence[Scope], only: str, apart: bool, workers: int, log: Path
    ) -> dict[str, _Run | Measured]:
        """One Stryker process; if it breaks, halves, so that a scope that breaks it costs the others no result."""
        if not scopes:
            return {}
        found = self._run(root, pair, scopes, only, apart, workers, log)
        breaks = isinstance(found, Measured) and found.outcome in (Outcome.CRASHED, Outcome.NO_REPORT)
        if len(scopes) == 1 or not breaks:
            return {s.name: found for s in scopes}
        middle = len(scopes) // 2
        first = self._run_all(root, pair, scopes[:middle], only, apart, workers, log)
        return first | self._run_all(root, pair, scopes[middle:], only, apart, workers, log)

    def _run(
        self, root: Path, pair: Pair, scopes: Sequence[Scope], only: str, apart: bool, workers: int, log: Path
    ) -> _Run | Measured:
        theirs = settings.find(root, pair.tests.folder, self.config.config)
        folder = root / pair.tests.folder
        with scratch.folder() as place:
            for name in ("tmp", "out"):
                (place / name).mkdir()
            chosen = dict(theirs.theirs)
            if filter_ := settings.both(only, str(chosen.get("test-case-filter") or "")):
                chosen["test-case-filter"] = filter_
            (place / "stryker-config.json").write_text(json.dumps({"stryker-config": chosen}))
            mutated = [os.path.relpath(f, pair.source.folder) for s in scopes for f in s.mutate]
            words = [
                *self._command(), "-f", os.path.relpath(place / "stryker-config.json", folder),
                "-p", Path(pair.source.path).name, "--skip-version-check", "-r", "json",
                "-O", str(place / "out"), "-c", str(workers), "--break-on-initial-test-failure", "--break-at", "0",
                *(("-t", "mtp") if pair.tests.runner == "mtp" else ()), *(("--disable-bail",) if apart else ()),
                *(word for path in mutated for word in ("-m", _literal(path))),
            ]  # fmt: skip
            output = self.builds.folder(root, pair.tests)
            with picture.taken(output / f"{pair.source.assembly}.dll") as taken:
                finished = process.run(
                    words, cwd=folder, env=dotnet.environment(place / "tmp"), timeout=self.config.time_limit,
                    measure_memory=True,
                )  # fmt: skip
            self.builds.forget(root)  # believed again once it is built: a run that was ended leaves the mutated one
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                file.write(f"{theirs.note}\n".encode() + finished.out + finished.err)
            try:
                content = json.loads((place / "out/reports/mutation-report.json").read_text(encoding="utf-8-sig"))
                report = Report.of(content, str(root.resolve()))
            except (OSError, ValueError, ReportError):
                return failure(finished, log)
            return self._believed(report, finished, taken, log)

    def _believed(
        self, report: Report, finished: process.Finished, taken: picture.Picture, log: Path
    ) -> _Run | Measured:
        """A report that this run wrote, where nothing says that it cannot be true."""
        if finished.exit_code != 0:
            return failure(finished, log)
        if taken.disturbed:
            detail = f"something else built or tested in the same folder: such a report is wrong (log: {log})"
            return Measured(Outcome.HOLLOW_REPORT, detail)
        if b"coverage capture failed" in (finished.out + finished.err).lower():
            detail = f"Stryker could not tell which tests run a mutant: is the test runner the right one? (log: {log})"
            return Measured(Outcome.COVERAGE_FAILED, detail)
        if report.tested >= FEW and not report.killed:
            detail = f"{report.tested} mutants were tested and none was killed: the tests do not see them (log: {log})"
            return Measured(Outcome.NO_KILLS, detail)
        return _Run(report, taken.content or b"", finished.peak_bytes)

    def _is_true(self, root: Path, pair: Pair, inputs: Sequence[str], run: _Run) -> bool:
        """Whether the picture is one of this run: a kill of its report is a kill there."""
        kills = run.report.killed_by()[:CONTROLS]
        built = self.builds.build(root, pair.tests, inputs, None)
        if not run.mutated or not kills or built.outcome is not Outcome.OK:
            return bool(run.mutated)
        with scratch.folder() as place:
            (place / "mutated").write_bytes(run.mutated)
            over = {f"{pair.source.assembly}.dll": place / "mutated"}
            tries = (
                self._ran(
                    root, pair.tests, built, only=Only((), (test.name,)), over=over, mutant=id_,
                    timeout=PLAIN_TIME_LIMIT,
                )
                for id_, test in kills
            )  # fmt: skip
            return any(c.outcome == "Failed" for ran in tries for c in ran.cases)

    def _of_scope(
        self, root: Path, pair: Pair, scope: Scope, run: _Run, mine: Collection[str], seconds: float
    ) -> Measured:
        try:
            sources = {f: (root / f).read_bytes().decode("utf-8-sig").replace("\r\n", "\n") for f in scope.mutate}
            measured, ids = scope_result(scope, run.report, sources, mine)
        except (ReportError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
            return Measured(Outcome.HOLLOW_REPORT, f"the report cannot be read: {error}")
        if measured.outcome is not Outcome.OK:
            return measured
        if not run.mutated:
            return Measured(
                Outcome.UNVERIFIED, "no picture of the mutated assembly could be taken that does what the report says"
            )
        files = {f"{SWITCH}/{pair.source.assembly}.dll": run.mutated}
        return attrs.evolve(
            measured,
            switch=Switch(files, ids),
            seconds=seconds,
            peak_bytes=run.peak_bytes,
            doubtful=pair.tests.runner == "mtp",
        )

    def _command(self) -> tuple[str, ...]:
        return self.config.command or (dotnet.find(), "stryker")

    # -- test

    def test(
        self,
        root: Path,
        files: Sequence[str] | None,
        *,
        mutant: str | None = None,
        timeout: float,
        record: bool = False,
        shuffle: int | None = None,
        only: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        sandbox: Sandbox | None = None,
        watch: bool = False,
    ) -> TestRun:
        """As pipeline.engines says, but that another day is never made, and `watch` is not followed so far."""
        known = projects.read(root)
        project = self._test_project(known, files)
        inputs = projects.files(root, known.reached(project), known.by_path.values())
        built = self.builds.build(root, project, inputs, None)
        wanted = None if files is None else {file.partition("::")[0] for file in files}
        if built.outcome is not Outcome.OK:
            return TestRun(built.outcome, built.detail, blamed(root, built.errors, wanted or set()))
        tests = _Tests.of(root, project, known)
        if wanted is not None and not tests.classes(wanted):
            return TestRun(Outcome.NO_TESTS, f"no test in {', '.join(sorted(wanted))}")
        over = {path.name: path for path in (root / SWITCH).glob("*.dll")} if mutant is not None else {}
        if mutant is not None and not over:
            raise EngineError("no mutated assembly was laid over the worktree", Outcome.UNVERIFIED)
        ran = self._ran(
            root, project, built, only=_chosen(tests, files, only), over=over, mutant=mutant, timeout=timeout, env=env,
            seed=shuffle, sandbox=sandbox,
        )  # fmt: skip
        results = running.results(ran.cases, tests.file_of, root.resolve() / project.folder)
        results = tuple(r for r in results if wanted is None or r.file in wanted or not r.file)
        outcome, detail = ran.outcome, ran.detail
        titles = tuple(r.title for r in results)  # which of them, one process for all does not tell
        reached = None if ran.covered is None else dict.fromkeys(ran.covered, titles)
        if outcome is Outcome.OK and not any(r.state != "skipped" for r in results):
            outcome, detail = Outcome.NO_TESTS, f"no test ran in {', '.join(sorted(wanted or ()))}"
        return TestRun(
            outcome, detail, results, tuple(sorted({r.file for r in results})), inputs if record else (),
            reached, ran.seconds, ran.cpu_seconds, ran.running,
        )  # fmt: skip

    def _ran(
        self, root: Path, project: Project, built: dotnet.Built, *, only: Only | None, timeout: float,
        over: Mapping[str, Path] | None = None, mutant: str | None = None, env: Mapping[str, str] | None = None,
        seed: int | None = None, sandbox: Sandbox | None = None,
    ) -> running.Ran:  # fmt: skip
        assert built.output is not None
        return running.run(
            root, built.output, project.assembly, self.hosts, over=over or {}, only=only, mutant=mutant,
            timeout=timeout, env=env, seed=seed, sandbox=sandbox,
        )  # fmt: skip

    def _test_project(self, known: projects.Projects, files: Sequence[str] | None) -> Project:
        if self.config.tests:
            return known.by_path[self.config.tests]
        owners = [known.owner(f.partition("::")[0]) for f in files or ()]
        found = next((p for p in owners if p is not None), None)
        if found is None:
            raise EngineError(f"{', '.join(files or ('no file',))}: in no test project")
        return found


def _chosen(tests: _Tests, files: Sequence[str] | None, titles: Sequence[str] | None) -> Only | None:
    """What of the test project is to run: None for all of it."""
    whole = {f for f in files or () if "::" not in f}
    if titles is not None:
        classes = tests.classes(tests.files if files is None else {f.partition("::")[0] for f in files})
        return Only((), [f"{type_}.{title}" for title in titles for type_ in sorted(classes)], len(titles) > 1)
    if files is None or whole >= set(tests.files):
        return None
    return Only(tests.classes(whole), sorted({f.partition("::")[2] for f in files if "::" in f}))


def _literal(path: str) -> str:
    """A path as a glob that matches it alone."""
    return re.sub(r"([\[*?])", r"[\1]", path)
