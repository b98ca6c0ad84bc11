"""The Stryker.NET engine, for C# projects whose tests run in xunit, NUnit or MSTest. Verbs: pipeline.engines.

Checked with Stryker.NET 5.1.0 on .NET SDK 10.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from pipeline.engines import EngineError, Measured, TestRun, csharp
from pipeline.engines.stryker_net import baseline, by_engine, dotnet, projects, running, settings
from pipeline.engines.stryker_net.baseline import SWITCH
from pipeline.engines.stryker_net.builds import Builds
from pipeline.engines.stryker_net.host import Hosts, Only
from pipeline.engines.stryker_net.outcomes import blamed
from pipeline.engines.stryker_net.projects import Pair, Project
from pipeline.engines.stryker_net.suite import CSharpSuite
from pipeline.engines.stryker_net.testfiles import TestFiles
from pipeline.model import EngineConfig, Scope
from pipeline.results import Outcome, Test
from pipeline.sandbox import Sandbox


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
            try:
                measured |= baseline.measured(
                    self.config, self.builds, self.hosts, root, known, pair, some, workers, log
                )
            except EngineError as error:
                measured |= {scope.name: Measured(error.outcome, str(error)) for scope in some}
        return measured

    # -- test

    def check(self, root: Path, installs: bool) -> None:
        if not installs:
            self.version(root)

    def tidy(self, root: Path, write: str, tests: Sequence[Test]) -> Sequence[Test]:
        return tests

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
        tests = TestFiles.of(root, project, known)
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
            root, project, built, only=tests.chosen(files, only), over=over, mutant=mutant if over else None,
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
