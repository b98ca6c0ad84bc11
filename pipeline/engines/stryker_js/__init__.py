"""The StrykerJS engine, for projects whose tests run in mocha. Verbs and promises: pipeline.engines.

Checked with StrykerJS 9.6.1 and mocha 11 on Node.js 20 and 24.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs

from pipeline import process
from pipeline.engines import EngineError, Measured, Switch, TestResult, TestRun
from pipeline.engines.stryker_js.suite import MochaSuite
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import Mutant, ReportError, Status, identify, raw_mutants
from pipeline.results import Outcome

HERE = Path(__file__).parent
PLAIN_TIME_LIMIT = 300.0  # seconds for one scope's tests on the original
OLDEST_NODE = 20
INSTRUMENTED = "stryMutAct_"  # the name of Stryker's switch: a file that has it has mutants
PACKAGES = ("@stryker-mutator/core", "@stryker-mutator/mocha-runner", "mocha")
CONFIG_NAMES = tuple(
    f"{stem}.{ext}" for stem in ("stryker.conf", "stryker.config") for ext in ("json", "js", "mjs", "cjs")
)
_VERSION = re.compile(r"v(\d+)\.")
MOCHA_CONFIG_NAMES = tuple(f".mocharc.{ext}" for ext in ("js", "cjs", "mjs", "yaml", "yml", "json", "jsonc"))
_COLOUR = r"\x1b\[[0-9;]*m"
_NOISE = re.compile(  # colours, times and process ids, stacks
    rf"^(?:{_COLOUR})?\d\d:\d\d:\d\d \(\d+\) |{_COLOUR}|^\s*at .*\n", re.MULTILINE
)
_OUTSIDE = re.compile(r"(^|/)(node_modules|\.stryker-tmp|\.doit-mutate)(/|$)")


@attrs.frozen
class _Report:
    """What one Stryker process left."""

    report: Mapping[str, Any]
    instrumented: Mapping[str, str]  # mutated file -> its text with all mutants in it
    peak_bytes: int | None


@attrs.define
class StrykerJS:
    config: EngineConfig
    name: str = "stryker-js"
    language: str = "javascript"
    links: tuple[str, ...] = ("node_modules",)
    suite: MochaSuite = attrs.field(factory=MochaSuite)
    _node: str | None = None
    _node_major: int = 0
    _versions: dict[Path, str] = attrs.field(factory=dict)
    _options: dict[bytes, Any] = attrs.field(factory=dict)  # mocha's, by the configuration files that they come from

    def version(self, root: Path) -> str:
        if root not in self._versions:
            self._versions[root] = self._version(root)
        return self._versions[root]

    def _version(self, root: Path) -> str:
        self.node()
        packages = [
            f"{p.rpartition('/')[2]} {json.loads((_package(root, p) / 'package.json').read_text())['version']}"
            for p in PACKAGES
        ]
        ours = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(HERE.glob("*.mjs")))).hexdigest()[:12]
        command = ["command", *self.config.command] if self.config.command else []
        return " ".join([*packages, f"node v{self._node_major}", *command, ours])

    def installed(self, root: Path) -> tuple[Path, ...]:
        return (Path(self.node()), *(_package(root, p) / "package.json" for p in PACKAGES))

    def config_files(self) -> tuple[str, ...]:
        own = (self.config.config,) if self.config.config else ()
        locks = ("package-lock.json", "yarn.lock", "pnpm-lock.yaml")
        return (*CONFIG_NAMES, *MOCHA_CONFIG_NAMES, "package.json", *locks, *own)

    def tool(self, name: str, root: Path) -> Path:
        if name == "node":
            return Path(self.node())
        inside = [root / "node_modules", root / "node_modules/@stryker-mutator/instrumenter/node_modules"]
        for folder in (*inside, *(above / "node_modules" for above in root.parents)):
            manifest = folder / name / "package.json"
            if manifest.is_file():
                return folder / name / str(json.loads(manifest.read_text()).get("main", "index.js"))
        raise EngineError(f"{name} is not installed in {root}")

    def node(self) -> str:
        """Path of a Node.js that is new enough. Raises EngineError."""
        if self._node is None:
            env = process.environment()
            found = [w for d in env["PATH"].split(os.pathsep) if (w := shutil.which("node", path=d))]
            if not found:
                raise EngineError("Node.js not found: install it, or `pip install 'doit-mutate[node]'`")
            said = []
            for path in dict.fromkeys(found):
                said.append(process.run([path, "--version"], cwd=Path.cwd()).text.strip())
                version = _VERSION.match(said[-1])
                if version and int(version[1]) >= OLDEST_NODE:
                    self._node, self._node_major = path, int(version[1])
                    return path
            raise EngineError(
                f"Node.js {said[0]} at {found[0]} is too old: StrykerJS needs {OLDEST_NODE} or newer; "
                "install it, or `pip install 'doit-mutate[node]'`"
            )
        return self._node

    # -- measure

    def measure(self, root: Path, scopes: Sequence[Scope], *, workers: int, log: Path) -> Mapping[str, Measured]:
        self.version(root)
        plain: dict[str, TestRun] = {}  # each scope's tests on the original: they tell its inputs, and fail first

        def run_plainly(some: Sequence[Scope]) -> None:
            for scope in some:
                plain[scope.name] = self.test(root, scope.tests, timeout=PLAIN_TIME_LIMIT, record=True)

        run_plainly([s for s in scopes if s.tests is None])  # which files those are is known afterwards
        tests = {s.name: plain[s.name].files if s.tests is None else s.tests for s in scopes}
        groups = list(_disjoint([s for s in scopes if tests[s.name]]))
        first: list[_Report | Measured] = []
        # Stryker's start keeps one core busy: the tests run beside it. A scope whose tests fail spoils that run.
        jobs = [
            lambda: run_plainly([s for s in scopes if s.tests is not None]),
            lambda: first.extend(self._run(root, group, tests, workers, log) for group in groups[:1]),
        ]
        process.side_by_side(lambda job: job(), jobs, len(jobs))
        measured = {n: failure for n, run in plain.items() if (failure := _first_failure(run))}
        for i, group in enumerate(groups):
            due = [s for s in group if s.name not in measured]
            known = first[0] if i == 0 and (len(due) == len(group) or isinstance(first[0], _Report)) else None
            measured |= self._measure_group(root, due, tests, plain, workers, log, known)
        return measured

    def _measure_group(
        self, root: Path, scopes: Sequence[Scope], tests: Mapping[str, Sequence[str]], plain: Mapping[str, TestRun],
        workers: int, log: Path, known: _Report | Measured | None = None,
    ) -> dict[str, Measured]:  # fmt: skip
        """One Stryker process; if it breaks, halves, so that a scope that breaks it costs the others no result.

        tests: scope -> its test files. known: what came of these scopes' process, where it has run.
        """
        if not scopes:
            return {}
        result = known or self._run(root, scopes, tests, workers, log)
        if isinstance(result, _Report):
            return {s.name: _scope_result(root, s, result, plain[s.name]) for s in scopes}
        if len(scopes) == 1 or result.outcome is Outcome.BAD_CONFIG:
            return {s.name: result for s in scopes}
        middle = len(scopes) // 2
        first = self._measure_group(root, scopes[:middle], tests, plain, workers, log)
        return first | self._measure_group(root, scopes[middle:], tests, plain, workers, log)

    def _run(
        self, root: Path, scopes: Sequence[Scope], tests: Mapping[str, Sequence[str]], workers: int, log: Path
    ) -> _Report | Measured:
        """One Stryker process over all these scopes: its report, or how it failed."""
        with _scratch(root) as scratch:
            request = self._request(root, scratch, scopes, tests, workers)
            (scratch / "scopes.json").write_text(json.dumps(request))
            # Stryker reads its configuration relative to the project; the file's own imports resolve from where it is.
            shutil.copy(HERE / "config.mjs", scratch / "stryker.config.mjs")
            finished = process.run(
                [*self._command(root), "run", str(scratch / "stryker.config.mjs")],
                cwd=root,
                env=process.environment({"DOIT_MUTATE_SCOPES": str(scratch / "scopes.json"), "NO_COLOR": "1"}),
                timeout=self.config.time_limit,
                measure_memory=True,
            )
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                file.write(finished.out + finished.err)
            try:
                report = json.loads((scratch / "report.json").read_text())
            except (OSError, ValueError):
                return _failure(finished, log)
            if unmatched := re.search(rb'Glob pattern "(.*)" did not result in any files', finished.out + finished.err):
                return Measured(Outcome.HOLLOW_REPORT, f"Stryker found no file {unmatched[1].decode(errors='replace')}")
            sandboxes = sorted((scratch / "tmp").glob("sandbox*"))
            files = {f: place / f for s in scopes for f in s.mutate for place in sandboxes if (place / f).exists()}
            return _Report(report, {f: place.read_text() for f, place in files.items()}, finished.peak_bytes)

    def _request(
        self, root: Path, scratch: Path, scopes: Sequence[Scope], tests: Mapping[str, Sequence[str]], workers: int
    ) -> dict[str, Any]:
        spec = sorted({f for s in scopes for f in tests[s.name]})
        return {
            "root": str(root),
            "titlesFile": str(scratch / "titles.json"),
            "userConfig": self._user_config(root),
            "scopes": [{"mutate": s.mutate, "tests": tests[s.name]} for s in scopes],
            "overrides": {
                "mutate": [_literal(f) for s in scopes for f in s.mutate],
                "mochaOptions": {"spec": spec},  # mocha takes a name that exists for what it is
                "testRunner": "doit-mutate",
                "plugins": [str(HERE / "scoped_runner.mjs")],
                "coverageAnalysis": "perTest",
                "concurrency": workers,
                "reporters": ["json"],
                "jsonReporter": {"fileName": str(scratch / "report.json")},
                "tempDirName": str(scratch / "tmp"),
                "cleanTempDir": False,
                "ignorePatterns": [".doit-mutate"],
                "incremental": False,
                "ignoreStatic": False,
                "thresholds": {"high": 80, "low": 60, "break": None},
                "allowConsoleColors": False,
                "fileLogLevel": "off",
                "inPlace": False,
            },
        }

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
        only: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> TestRun:
        with _scratch(root) as scratch:
            variables = dict(env or {})
            if record:
                variables["NODE_V8_COVERAGE"] = str(scratch / "loaded")
            if mutant:
                variables["__STRYKER_ACTIVE_MUTANT__"] = mutant  # for processes that the tests start
            request = {
                "root": str(root.resolve()), "files": None if files is None else list(files),
                "out": str(scratch / "answer.json"), "mutant": mutant, "shuffle": shuffle, "only": only,
                "options": self._options.get(configured := self._mocha_configuration(root)),
            }  # fmt: skip
            started = time.monotonic()
            finished = process.run(
                [self.node(), str(HERE / "run_tests.mjs")], cwd=root.resolve(),
                env=process.environment(variables), stdin=json.dumps(request).encode(), timeout=timeout,
            )  # fmt: skip
            seconds = time.monotonic() - started
            if finished.timed_out:
                detail = f"the tests did not end within {timeout:.0f} s"
                return TestRun(Outcome.TIME_LIMIT, detail, seconds=seconds, cpu_seconds=finished.cpu_seconds)
            try:
                answer = json.loads((scratch / "answer.json").read_text())
                self._options.setdefault(configured, answer.get("options"))
                tests = tuple(TestResult(**t) for t in answer["tests"])
                loaded = tuple(sorted(_loaded(scratch / "loaded", root.resolve()))) if record else ()
            except (OSError, ValueError, KeyError, TypeError):
                if b"No test files found" in finished.err:
                    return TestRun(Outcome.NO_TESTS, "mocha found no test file", seconds=seconds)
                return TestRun(Outcome.CRASHED, f"the test process died: {finished.tail(8)}", seconds=seconds)
        outcome, detail = Outcome.OK, ""
        if answer["error"]:
            outcome, detail = Outcome.BUILD_ERROR, answer["error"]
        elif answer.get("looped"):
            outcome, detail = Outcome.TIME_LIMIT, "the mutant made a loop endless"
        elif not any(t.state != "skipped" for t in tests):
            outcome, detail = Outcome.NO_TESTS, f"no test ran in {', '.join(answer['files'])}"
        reached = {i: tuple(titles) for i, titles in answer["reached"].items()}
        return TestRun(
            outcome, detail, tests, tuple(answer["files"]), loaded, reached, seconds, finished.cpu_seconds
        )  # fmt: skip

    def _mocha_configuration(self, root: Path) -> bytes:
        """All that mocha's options come from, as one text."""
        found = (root / name for name in (*MOCHA_CONFIG_NAMES, "package.json"))
        return b"\0".join(str(f).encode() + f.read_bytes() for f in found if f.is_file())

    # -- what is installed

    def _command(self, root: Path) -> tuple[str, ...]:
        return self.config.command or (self.node(), str(_package(root, "@stryker-mutator/core") / "bin/stryker.js"))

    def _user_config(self, root: Path) -> str | None:
        if self.config.config:
            if not (root / self.config.config).is_file():
                raise EngineError(f"engine.config: {self.config.config} is not a file of the project")
            return self.config.config
        return next((n for n in CONFIG_NAMES if (root / n).is_file()), None)


@contextlib.contextmanager
def _scratch(root: Path) -> Iterator[Path]:
    """A folder for one program's files, in the worktree: what a killed run leaves of it goes with that."""
    folder = root.resolve() / ".doit-mutate"
    folder.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _package(root: Path, package: str) -> Path:
    """Where Node.js finds a package: in the project, or above it. Raises EngineError."""
    for folder in (root, *root.parents):
        if (folder / "node_modules" / package / "package.json").is_file():
            return folder / "node_modules" / package
    raise EngineError(
        f"{package} is not installed in {root}: run `npm install --save-dev {package}`, or name the task that "
        "installs it under engine.needs"
    )


def _scope_result(root: Path, scope: Scope, run: _Report, plain: TestRun) -> Measured:
    """What a run of this scope alone would give."""
    report = run.report
    mutants: list[Mutant] = []
    ids: dict[str, str] = {}
    reached: dict[str, tuple[str, ...]] = {}
    files: dict[str, str] = {}
    file_of_test = _test_files(report)
    try:
        for file in scope.mutate:
            raws = raw_mutants(report, file) if file in report["files"] else ()
            if not raws and INSTRUMENTED in run.instrumented.get(file, INSTRUMENTED):
                return Measured(Outcome.HOLLOW_REPORT, f"the report has no mutant of {file}, which holds some")
            source = (root / file).read_bytes().decode()
            for raw, mutant in zip(raws, identify(raws, file, source.replace("\r\n", "\n")), strict=True):
                mine = tuple(sorted({file_of_test.get(t, "") for t in raw.covered_by} & set(plain.files)))
                # A mutant that only other scopes' tests reach is, to this scope, not covered.
                if mutant.status is Status.SURVIVED and not mutant.static and not mine:
                    mutant = attrs.evolve(mutant, status=Status.NO_COVERAGE)
                mutants.append(mutant)
                ids[mutant.key] = raw.id
                reached[mutant.key] = plain.files if mutant.static else mine
            if file not in run.instrumented:
                return Measured(Outcome.HOLLOW_REPORT, f"Stryker's sandbox of {file} is missing")
            files[file] = run.instrumented[file]
    except (ReportError, UnicodeDecodeError, KeyError, TypeError) as error:
        return Measured(Outcome.HOLLOW_REPORT, f"the report cannot be read: {error}")
    if not mutants:
        return Measured(
            Outcome.NO_MUTANTS, f"nothing to mutate in {', '.join(scope.mutate)}", (), plain.files, plain.inputs
        )
    if all(m.status in (Status.IGNORED, Status.PENDING) for m in mutants):
        return Measured(Outcome.HOLLOW_REPORT, f"all {len(mutants)} mutants were ignored or left pending")
    if len(mutants) > 1 and all(m.status is Status.TIMEOUT for m in mutants):
        return Measured(Outcome.HOLLOW_REPORT, f"all {len(mutants)} mutants timed out: nothing was judged")
    return Measured(
        Outcome.OK, "", tuple(mutants), plain.files, tuple(sorted({*plain.inputs, *scope.mutate})), reached,
        Switch(files, ids), plain.seconds, run.peak_bytes,
    )  # fmt: skip


def _first_failure(run: TestRun) -> Measured | None:
    """What keeps a scope from being measured at all, told by its tests on the original; None where nothing does."""
    if run.outcome is not Outcome.OK:
        return Measured(run.outcome, run.detail)
    if run.failed:
        first = run.failed[0]
        more = f" (and {len(run.failed) - 1} more)" if len(run.failed) > 1 else ""
        return Measured(Outcome.TESTS_FAIL_FIRST, f"{first.file}: {first.title}: {first.message}{more}")
    return None


def _disjoint(scopes: Sequence[Scope]) -> Iterator[list[Scope]]:
    """Groups in which no file is mutated by two: such scopes cannot share a process."""
    left = list(scopes)
    while left:
        taken: set[str] = set()
        group = []
        for scope in list(left):
            if taken.isdisjoint(scope.mutate):
                taken.update(scope.mutate)
                group.append(scope)
                left.remove(scope)
        yield group


def _failure(finished: process.Finished, log: Path) -> Measured:
    """Stryker exits with 1 for everything: what it said tells what it was."""
    said = _NOISE.sub("", finished.out.decode(errors="replace") + finished.err.decode(errors="replace"))
    lines = [line for line in said.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.startswith("ERROR ")), len(lines[:-8]))
    detail = "\n".join([*lines[first : first + 6], f"(log: {log})"])
    if finished.timed_out:
        return Measured(Outcome.TIME_LIMIT, detail)
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


def _test_files(report: Mapping[str, Any]) -> dict[str, str]:
    """The report's test id -> its file."""
    return {
        str(test["id"]): file
        for file, entry in (report.get("testFiles") or {}).items()
        for test in entry.get("tests", ())
    }


def _loaded(folder: Path, root: Path) -> set[str]:
    """Project files among the scripts that V8 says were loaded: ES modules and CommonJS alike, however deep."""
    prefix = str(root) + os.sep
    loaded = set()
    for record in folder.glob("*.json"):
        for url in re.findall(r'"url":"(file://[^"]+)"', record.read_text()):
            path = unquote(urlsplit(url).path)
            if path.startswith(prefix) and not _OUTSIDE.search(path[len(prefix) :]):
                loaded.add(path[len(prefix) :])
    return loaded


def _literal(path: str) -> str:
    """A path as a glob that matches it alone. Stryker turns backslashes into slashes: a class of one escapes."""
    return re.sub(r"([\[{}()*?!+@])", r"[\1]", path).replace("[!]", "!")
