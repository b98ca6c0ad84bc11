"""What an engine is: three verbs, and how a test is written in its language. A new engine is one file and one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from pipeline.model import EngineConfig, Scope
from pipeline.mutants import Mutant
from pipeline.results import Outcome, Test
from pipeline.sandbox import Sandbox


class EngineError(Exception):
    """The engine cannot work here. `outcome` names the kind; the text says what to do."""

    def __init__(self, message: str, outcome: Outcome = Outcome.BAD_CONFIG) -> None:
        super().__init__(message)
        self.outcome = outcome


@attrs.frozen
class Switch:
    """What it takes to run a test against one mutant without the engine.

    `files`: path -> content with all mutants in it, chosen at run time; `ids`: mutant key -> the engine's id;
    `whole`: no other mutant is in the files, so that what can be switched on in them is known.
    """

    files: Mapping[str, bytes]
    ids: Mapping[str, str]
    whole: bool = False

    def lay(self, root: Path) -> None:
        """Put the files over those of a worktree."""
        for path, content in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)


@attrs.frozen
class Measured:
    """What a run of one scope alone would give."""

    outcome: Outcome
    detail: str = ""  # for people: what went wrong, with the last lines of the engine's own output
    mutants: tuple[Mutant, ...] = ()
    tests: tuple[str, ...] = ()  # the test files that were used
    inputs: tuple[str, ...] = ()  # every project file that the measured processes loaded
    reached: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # mutant key -> what `test` takes to run it
    switch: Switch | None = None
    seconds: float = 0.0  # of plain tests on the original: what time limits are made from
    peak_bytes: int | None = None
    doubtful: bool = False  # its kills want an audit too: one process has met many mutants
    beside: bool = False  # its tests have passed beside those of other scopes, and not yet by themselves
    # key of a mutant that met its tests in a fresh process, and so wants no audit -> seconds that took
    alone: Mapping[str, float] = attrs.field(factory=dict)
    late: tuple[str, ...] = ()  # keys of mutants whose time was up before their tests had had it: nobody judged them
    fresh: bool = True  # a test can meet a mutant in a fresh process; else `test` asks the engine, which costs a run
    # names of tests that the engine has not run: only what survived its run has met them (extending.py)
    added: tuple[str, ...] = ()


@attrs.frozen
class TestResult:
    """One test in one process. `kind` says how a failed one failed."""

    __test__ = False

    file: str
    title: str
    state: str  # passed | failed | skipped
    kind: str = ""  # assertion | exception (out of the code under test) | engine (which alone has seen it) | other
    message: str = ""
    left: str = ""  # what it left changed or open, for the tests after it; only where asked for
    seconds: float = 0.0  # that it took, where the runner says so
    outside: bool = False  # what failed is a time limit or a hook: another process may say otherwise


@attrs.frozen
class TestRun:
    """One process that ran tests. `outcome` OK means that it ran to its end with at least one test, whatever failed."""

    __test__ = False

    outcome: Outcome
    detail: str = ""
    tests: tuple[TestResult, ...] = ()
    files: tuple[str, ...] = ()  # the test files that were loaded
    inputs: tuple[str, ...] = ()  # project files loaded; only where asked for
    # engine's mutant id -> titles of tests that may run it; None: that could not be told, and any may
    reached: Mapping[str, tuple[str, ...]] | None = attrs.field(factory=dict)
    seconds: float = 0.0
    cpu_seconds: float | None = None
    running: str = ""  # where the process ended early: title of the test that was running
    # of several test files: what each loads, itself included; None where that was not asked for, or could not be told
    loads: Mapping[str, tuple[str, ...]] | None = None

    @property
    def failed(self) -> tuple[TestResult, ...]:
        return tuple(t for t in self.tests if t.state == "failed")

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(t.title for t in self.tests if t.state == "passed")

    @property
    def green(self) -> bool:
        return self.outcome is Outcome.OK and not self.failed


def first_failure(run: TestRun) -> Measured | None:
    """What keeps a scope from being measured at all, told by its tests on the original; None where nothing does."""
    if run.outcome is not Outcome.OK:
        return Measured(run.outcome, run.detail)
    if run.failed:
        first = run.failed[0]
        more = f" (and {len(run.failed) - 1} more)" if len(run.failed) > 1 else ""
        return Measured(Outcome.TESTS_FAIL_FIRST, f"{first.file}: {first.title}: {first.message}{more}")
    return None


def switch_of(measured: Measured) -> Switch:
    assert measured.switch is not None
    return measured.switch


def layers(measured: Mapping[str, Measured]) -> list[list[str]]:
    """The scopes, in groups whose switches may lie over one tree: no file has two contents, no id means two mutants."""
    apart: list[list[str]] = []
    shared: list[tuple[list[str], set[str], set[str]]] = []
    for name, m in measured.items():
        switch = switch_of(m)
        mine = set(switch.ids.values())
        fits = (each for each in shared if each[1].isdisjoint(switch.files) and each[2].isdisjoint(mine))
        if not switch.whole:
            apart.append([name])
        elif (layer := next(fits, None)) is None:
            shared.append(([name], set(switch.files), mine))
        else:
            names, files, ids = layer
            names.append(name)
            files.update(switch.files)
            ids.update(mine)
    return [*apart, *(names for names, *_ in shared)]


class Suite(Protocol):
    """How tests stand in a test file of this language. Text in, text out."""

    @property
    def ordered(self) -> bool:
        """Tests run in the order of the text, and what stands beside a test that is not run may act all the same. Where
        not, one build of a file is enough to try any of its tests, in any order."""

    def framework(self, root: Path, write: str) -> str:
        """For prompts: the framework, the assertion library, the module system of the tests in `write`."""

    def bodies(self, text: str) -> tuple[str, ...]:
        """The whole tests in the file, as text, to show their style."""

    def imports(self, text: str, file: str, write: str) -> tuple[str, ...]:
        """The import statements of a test file, as they would read in `write`. Paths relative to the project's root."""

    def add(self, text: str, tests: Sequence[Test]) -> str:
        """The file with the tests added at its end and their imports at its top; all else to the byte."""

    def remove(self, text: str, title: str) -> str:
        """The file without the test of that title and our mark above it; all else to the byte."""

    def titles(self, text: str) -> tuple[str, ...]:
        """Titles of the tests in the file, as far as they can be read without running it."""

    def find(self, text: str, title: str) -> str | None:
        """The whole test of that title as it stands in the file, or None."""

    def added(self, before: str, after: str) -> tuple[str, ...] | None:
        """As the runner names them, the tests that a file has got behind all others, whole; None where anything else
        differs, or where that cannot be told."""

    def excerpt(self, source: str, line: int) -> tuple[int, int]:
        """Half-open range of lines of a mutated file (from 0) that a prompt shows for a mutant at `line` (from 1)."""

    def outline(self, source: str, line: int) -> str:
        """What stands around that, as signatures; "" where the excerpt needs none."""


class Engine(Protocol):
    """measure, switch (a value: `Measured.switch`) and test."""

    name: str
    language: str  # of the sources: javascript, csharp, ...
    links: tuple[str, ...]  # names of ignored folders that the project's tools need: linked into each worktree
    outputs: tuple[str, ...]  # names of folders that its builds fill: kept in a worktree, never in a snapshot

    compiled: tuple[str, ...]  # endings of files of which only `essence` counts where a scope does not mutate them

    @property
    def suite(self) -> Suite: ...

    def essence(self, text: str) -> str | None:
        """What a compiler sees of such a file; None where that cannot be told."""

    def version(self, root: Path) -> str:
        """What a result depends on beside the project's files. Raises EngineError where the engine cannot run."""

    def check(self, root: Path, installs: bool) -> None:
        """Raises EngineError for what a run could only fail by: the project's files are in doubt, or half of what they
        need is installed. installs: tasks of the plan's install that, so it may lack now."""

    def tool(self, name: str, root: Path) -> Path:
        """A program or library that it works with, for an embedded generator. Raises EngineError."""

    def installed(self, root: Path) -> tuple[Path, ...]:
        """Files whose change means another version of it. Raises EngineError."""

    def config_files(self) -> tuple[str, ...]:
        """Files that, where the project has them, every result depends on: configuration and lock file."""

    def notes(self, root: Path, scopes: Sequence[Scope]) -> Sequence[str]:
        """What people are told before a run: what of their configuration does not count here. Never raises."""

    def measure(self, root: Path, scopes: Sequence[Scope], *, workers: int, log: Path) -> Mapping[str, Measured]:
        """Measure all scopes in as few processes as give each the result of a run of it alone."""

    def tidy(self, root: Path, write: str, tests: Sequence[Test]) -> Sequence[Test]:
        """The tests as the project's own formatter would have them in the file `write`, where it has one; what they do
        is for their proof to say. Never raises."""

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
        """Run test files (None: all) once in a fresh process, on the code as it stands in `root`.

        files: paths, or path::name for one test of a file, as `Measured.reached` has them.

        mutant: the engine's id of the mutant to switch on ("" for none, with coverage in `reached`), where a switch
        has been laid over `root`. timeout: seconds. record: say which project files were loaded. shuffle: seed of the
        tests' order; from 1 on, also of another day and other random numbers. only: the titles of the tests to run, in
        this order where the suite is not `ordered`.
        env: variables beside the process's own. sandbox: for tests that nobody has read. watch: say what each test left
        behind.
        """  # fmt: skip


def _stryker_js(config: EngineConfig) -> Engine:
    from pipeline.engines.stryker_js import StrykerJS

    return StrykerJS(config)


def _stryker_net(config: EngineConfig) -> Engine:
    from pipeline.engines.stryker_net import StrykerNet

    return StrykerNet(config)


ENGINES: Mapping[str, Callable[[EngineConfig], Engine]] = {"stryker-js": _stryker_js, "stryker-net": _stryker_net}


def get_engine(config: EngineConfig) -> Engine:
    try:
        return ENGINES[config.use](config)
    except KeyError:
        raise EngineError(f"engine.use: {config.use} is not there yet; use one of {', '.join(ENGINES)}") from None
