"""The Stryker.NET engine, for C# projects whose tests run in xunit, NUnit or MSTest. Verbs: pipeline.engines.

Checked with Stryker.NET 5.1.0 on .NET SDK 10.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import scratch
from pipeline.engines import EngineError, Measured, Switch, TestRun, csharp
from pipeline.engines.stryker_net import by_engine, dotnet, projects, running, settings, stryker
from pipeline.engines.stryker_net.builds import Builds
from pipeline.engines.stryker_net.host import Hosts, Only
from pipeline.engines.stryker_net.outcomes import blamed, first_failure
from pipeline.engines.stryker_net.projects import Pair, Project
from pipeline.engines.stryker_net.report import scope_result
from pipeline.engines.stryker_net.suite import CSharpSuite, classes_of
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import ReportError
from pipeline.results import Outcome
from pipeline.sandbox import Sandbox

PLAIN_TIME_LIMIT = 900.0  # seconds for all tests of a project on the original
SWITCH = ".doit-mutate/switch"  # the folder in a worktree where a switch is laid
CONTROLS = 3  # kills of a report that are tried on the picture before it counts as none


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
    builds: Builds = attrs.field(default=attrs.Factory(lambda self: Builds(self.config.config), takes_self=True))
    hosts: Hosts = attrs.field(factory=Hosts)
    asking: by_engine.ByEngine = attrs.field(
        default=attrs.Factory(lambda self: by_engine.ByEngine(self.config, self.builds), takes_self=True)
    )

    def essence(self, text: str) -> str | None:
        return csharp.essence(text)

    def version(self, root: Path) -> str:
        sdk = dotnet.sdk(root)  # what it lacks is said before what only it can install
        return f"Stryker.NET {dotnet.stryker(root)} SDK {sdk}"

    def installed(self, root: Path) -> tuple[Path, ...]:
        return dotnet.installed()

    def config_files(self) -> tuple[str, ...]:
        own = (self.config.config,) if self.config.config else ()
        return (*projects.ABOVE, *settings.NAMES, ".config/dotnet-tools.json", *own)

    def tool(self, name: str, root: Path) -> Path:
        if name == "mutation-testing-elements":  # it is in there, as a resource
            return dotnet.core(root)
        raise EngineError(f"{name} is not a part of this engine")

    def notes(self, root: Path, scopes: Sequence[Scope]) -> Sequence[str]:
        found: dict[str, None] = {}
        with contextlib.suppress(EngineError, OSError):  # said by the baseline that comes to it
            known = projects.read(root)
            for scope in scopes:
                tests = known.pair(scope, self.config).tests
                found[settings.find(root, tests.folder, self.config.config).note] = None
                if unseen := projects.unseen(root, known.reached(tests)):
                    said = (
                        f"{', '.join(unseen[:4])}: above the project's folder: no change of it is seen; put the dodo.py"
                    )
                    found[f"{said} at the top of the repository"] = None
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
        runs = [run for run in found_of.values() if isinstance(run, stryker.Run)]
        true = {id(run): self._is_true(root, pair, inputs, run) for run in runs}
        for name, found in found_of.items():
            scope = next(s for s in due if s.name == name)
            if isinstance(found, stryker.Run) and not true[id(found)]:
                found = Measured(Outcome.UNVERIFIED, "the assembly that was tested does not do what the report says")
            elif isinstance(found, stryker.Run):
                found = self._of_scope(root, pair, scope, found, mine[name], seconds[name])
            measured[name] = attrs.evolve(found, tests=tuple(sorted(mine[name])), inputs=inputs)
        return measured

    def _run_all(
        self, root: Path, pair: Pair, scopes: Sequence[Scope], only: str, apart: bool, workers: int, log: Path
    ) -> dict[str, stryker.Run | Measured]:
        """One Stryker process; if it breaks, halves, so that a scope that breaks it costs the others no result."""
        if not scopes:
            return {}
        files = [file for scope in scopes for file in scope.mutate]
        found = stryker.run(self.config, self.builds, root, stryker.Question(pair, files, only, apart, workers, log))
        breaks = isinstance(found, Measured) and found.outcome in (Outcome.CRASHED, Outcome.NO_REPORT)
        if len(scopes) == 1 or not breaks:
            return {s.name: found for s in scopes}
        middle = len(scopes) // 2
        first = self._run_all(root, pair, scopes[:middle], only, apart, workers, log)
        return first | self._run_all(root, pair, scopes[middle:], only, apart, workers, log)

    def _is_true(self, root: Path, pair: Pair, inputs: Sequence[str], run: stryker.Run) -> bool:
        """Whether the picture is one of this run: a kill of its report is a kill there."""
        kills = run.report.killed_by()[:CONTROLS]
        built = self.builds.build(root, pair.tests, inputs, None)
        if not run.mutated or not kills or built.outcome is not Outcome.OK:
            return True
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
        self, root: Path, pair: Pair, scope: Scope, run: stryker.Run, mine: Collection[str], seconds: float
    ) -> Measured:
        try:
            sources = {f: (root / f).read_bytes().decode("utf-8-sig").replace("\r\n", "\n") for f in scope.mutate}
            measured, ids = scope_result(scope, run.report, sources, mine)
        except (ReportError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
            return Measured(Outcome.HOLLOW_REPORT, f"the report cannot be read: {error}")
        if measured.outcome is not Outcome.OK:
            return measured
        files = {f"{SWITCH}/{pair.source.assembly}.dll": run.mutated}
        if not run.mutated:
            files = {f"{SWITCH}/{by_engine.NAME}": by_engine.request(pair, scope.mutate)}
        return attrs.evolve(
            measured,
            switch=Switch(files, ids),
            seconds=seconds,
            peak_bytes=run.peak_bytes,
            doubtful=pair.tests.runner == "mtp",
            fresh=bool(run.mutated),
        )

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
        asked = root / SWITCH / by_engine.NAME
        if mutant is not None and only is not None and asked.is_file():
            return TestRun(Outcome.UNVERIFIED, "Stryker is asked of whole files")
        if mutant and asked.is_file():
            classes = tests.classes(wanted or tests.files)
            return self.asking.test(root, asked, known, inputs, mutant, wanted or tests.files, classes)
        if mutant is not None and not over and not asked.is_file():
            raise EngineError("no mutated assembly was laid over the worktree", Outcome.UNVERIFIED)
        ran = self._ran(
            root, project, built, only=_chosen(tests, files, only), over=over, mutant=mutant if over else None,
            timeout=timeout, env=env, seed=shuffle, sandbox=sandbox,
        )  # fmt: skip
        results = running.results(ran.cases, tests.file_of, root.resolve() / project.folder)
        results = tuple(r for r in results if wanted is None or r.file in wanted or not r.file)
        outcome, detail = ran.outcome, ran.detail
        titles = tuple(r.title for r in results)  # which of them, one process for all does not tell
        reached = None if ran.covered is None or asked.is_file() else dict.fromkeys(ran.covered, titles)
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
