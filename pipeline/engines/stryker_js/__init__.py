"""The StrykerJS engine. Verbs and promises: pipeline.engines; what tests may run in: runners.py, docs/runners.md."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline import account, clock, process
from pipeline.engines import EngineError, Measured, TestRun, first_failure, javascript
from pipeline.engines.stryker_js import fresh, plain
from pipeline.engines.stryker_js.packages import CORE, is_installed, package_of, versions
from pipeline.engines.stryker_js.report import Report, judged_alone, read_report, scope_result
from pipeline.engines.stryker_js.runners import RUNNERS, Runner, node_flags, runner_of
from pipeline.engines.stryker_js.suite import JavaScriptSuite
from pipeline.model import EngineConfig, Scope
from pipeline.results import Outcome, Test
from pipeline.sandbox import Sandbox

HERE = Path(__file__).parent
PLAIN_TIME_LIMIT = 300.0  # seconds for one scope's tests on the original
TIDY_TIME_LIMIT = 60.0  # seconds for the project's formatters, over all tests of one round
MOST_TIDIED = 32 << 20  # bytes
OLDEST_NODE = 20
MOST_RANGES = 20  # stretches of lines of one file that the engine is told one by one
CONFIG_NAMES = tuple(
    f"{stem}.{ext}" for stem in ("stryker.conf", "stryker.config") for ext in ("json", "js", "mjs", "cjs")
)
RUNNER_CONFIG_NAMES = tuple(dict.fromkeys(name for runner in RUNNERS.values() for name in runner.config))
_VERSION = re.compile(r"v(\d+)\.")


@attrs.define
class StrykerJS:
    config: EngineConfig
    name: str = "stryker-js"
    language: str = "javascript"
    links: tuple[str, ...] = ("node_modules",)
    outputs: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()
    suite: JavaScriptSuite = attrs.field(factory=JavaScriptSuite)
    _node: str | None = None
    _node_major: int = 0
    _versions: dict[Path, str] = attrs.field(factory=dict)
    _options: dict[bytes, Any] = attrs.field(factory=dict)  # a runner's, by the configuration files they come from
    _runners: dict[bytes, Runner] = attrs.field(factory=dict)  # by the same files

    def __attrs_post_init__(self) -> None:
        self.suite = attrs.evolve(self.suite, runner=self.runner)

    def essence(self, text: str) -> str | None:
        return None

    def version(self, root: Path) -> str:
        if root not in self._versions:
            self._versions[root] = self._told(root)
        return self._versions[root]

    def _told(self, root: Path) -> str:
        self.node()
        packages = [f"{p.rpartition('/')[2]} {version}" for p, version in versions(root, self.runner(root)).items()]
        ours = hashlib.sha256(b"".join(p.read_bytes() for p in _programs())).hexdigest()[:12]
        command = ["command", *self.config.command] if self.config.command else []
        return " ".join([*packages, f"node v{self._node_major}", *command, ours])

    def installed(self, root: Path) -> tuple[Path, ...]:
        return (Path(self.node()), *(package_of(root, p) / "package.json" for p in self.runner(root).packages))

    def config_files(self) -> tuple[str, ...]:
        own = (self.config.config,) if self.config.config else ()
        locks = ("package-lock.json", "yarn.lock", "pnpm-lock.yaml")
        return (*CONFIG_NAMES, *RUNNER_CONFIG_NAMES, "package.json", *locks, *own)

    def notes(self, root: Path, scopes: Sequence[Scope]) -> Sequence[str]:
        return ()

    def check(self, root: Path, installs: bool) -> None:
        runner = self.runner(root)
        if not installs and is_installed(root, CORE):  # without it, what was measured before may still hold
            versions(root, runner)

    def tool(self, name: str, root: Path) -> Path:
        if name == "node":
            return Path(self.node())
        inside = [root / "node_modules", root / "node_modules/@stryker-mutator/instrumenter/node_modules"]
        for folder in (*inside, *(above / "node_modules" for above in root.parents)):
            manifest = folder / name / "package.json"
            if manifest.is_file():
                return folder / name / str(json.loads(manifest.read_bytes()).get("main", "index.js"))
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

        def test(files: Sequence[str] | None) -> TestRun:
            return self.test(root, files, timeout=PLAIN_TIME_LIMIT, record=True)

        plainly = {s.name: test(None) for s in scopes if s.tests is None}  # which files those are is known afterwards
        tests = {s.name: plainly[s.name].files if s.tests is None else s.tests for s in scopes}
        shares = self.runner(root).shares
        due = [s for s in scopes if tests[s.name]]
        groups = list(_disjoint(due)) if shares else [[scope] for scope in due]
        beside: dict[str, TestRun] = {}

        def run_plainly() -> None:
            left = {name: files for name, files in tests.items() if name not in plainly}
            if shares:
                beside.update(plain.together(test, {name: files for name, files in left.items() if files}))
            plainly.update({name: beside.get(name) or test(files) for name, files in left.items()})

        def run_engine() -> None:
            first.extend(self._run(root, group, tests, workers, log) for group in groups[:1])

        first: list[Report | Measured] = []
        # Stryker's start keeps one core busy: the tests run beside it. A scope whose tests fail spoils that run.
        jobs: Sequence[Callable[[], None]] = [run_plainly, run_engine]
        process.side_by_side(lambda job: job(), jobs, len(jobs))
        measured = {n: failure for n, run in plainly.items() if (failure := first_failure(run))}
        for i, group in enumerate(groups):
            due = [s for s in group if s.name not in measured]
            known = first[0] if i == 0 and (len(due) == len(group) or isinstance(first[0], Report)) else None
            measured |= self._measure_group(root, due, tests, plainly, workers, log, known)
        return {n: attrs.evolve(m, beside=n in beside) for n, m in measured.items()}

    def _measure_group(
        self, root: Path, scopes: Sequence[Scope], tests: Mapping[str, Sequence[str]], plainly: Mapping[str, TestRun],
        workers: int, log: Path, known: Report | Measured | None = None,
    ) -> dict[str, Measured]:  # fmt: skip
        """One Stryker process; if it breaks, halves, so that a scope that breaks it costs the others no result.

        tests: scope -> its test files. known: what came of these scopes' process, where it has run.
        """
        if not scopes:
            return {}
        result = known or self._run(root, scopes, tests, workers, log)
        if isinstance(result, Report):
            return {s.name: scope_result(root, s, result, plainly[s.name]) for s in scopes}
        if not self._breaks(result, scopes):
            return {s.name: result for s in scopes}
        middle = len(scopes) // 2
        first = self._measure_group(root, scopes[:middle], tests, plainly, workers, log)
        return first | self._measure_group(root, scopes[middle:], tests, plainly, workers, log)

    def _run(
        self, root: Path, scopes: Sequence[Scope], tests: Mapping[str, Sequence[str]], workers: int, log: Path
    ) -> Report | Measured:
        """One Stryker process over all these scopes: its report, or how it failed."""
        began = clock.now()
        found = self._process(root, scopes, tests, workers, log)
        if self._breaks(found, scopes):
            account.told("phase", account.BISECT, began)
        return found

    def _breaks(self, found: Report | Measured, scopes: Sequence[Scope]) -> bool:
        """Is it one of several scopes that broke their run? A mistake of the configuration's is everybody's."""
        return isinstance(found, Measured) and len(scopes) > 1 and found.outcome is not Outcome.BAD_CONFIG

    def _process(
        self, root: Path, scopes: Sequence[Scope], tests: Mapping[str, Sequence[str]], workers: int, log: Path
    ) -> Report | Measured:
        with fresh.scratch_folder(root) as scratch:
            request = self._request(root, scratch, scopes, tests, workers)
            (scratch / "scopes.json").write_text(json.dumps(request))
            # Stryker reads its configuration relative to the project; the file's own imports resolve from where it is.
            shutil.copy(HERE / "config.mjs", scratch / "stryker.config.mjs")
            started = time.time()
            account.engine_started()
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
            report = read_report(scratch / "report.json", finished, log, started)
            if isinstance(report, Measured):
                return report
            if unmatched := re.search(rb'Glob pattern "(.*)" did not result in any files', finished.out + finished.err):
                return Measured(Outcome.HOLLOW_REPORT, f"Stryker found no file {unmatched[1].decode(errors='replace')}")
            sandboxes = sorted((scratch / "tmp").glob("sandbox*"))
            files = {f: place / f for s in scopes for f in s.mutate for place in sandboxes if (place / f).exists()}
            instrumented = {f: place.read_bytes() for f, place in files.items()}
            return Report(report, instrumented, finished.peak_bytes, judged_alone(scratch))

    def _request(
        self, root: Path, scratch: Path, scopes: Sequence[Scope], tests: Mapping[str, Sequence[str]], workers: int
    ) -> dict[str, Any]:
        spec = sorted({f for s in scopes for f in tests[s.name]})
        runner = self.runner(root)
        return {
            "root": str(root),
            "runner": runner.plugin,
            "titlesFile": str(scratch / "titles.json"),
            "userConfig": self._user_config(root),
            "scopes": [{"mutate": s.mutate, "tests": tests[s.name]} for s in scopes],
            "overrides": {
                "mutate": [_literal(f) + lines for s in scopes for f in s.mutate for lines in _ranges(s, f)],
                **runner.options(spec),
                **({"testRunnerNodeArgs": flags} if (flags := node_flags(root)) else {}),
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
        only: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        sandbox: Sandbox | None = None,
        watch: bool = False,
    ) -> TestRun:
        known = self._options.get(configured := self._configuration(root))
        runner, flags = self.runner(root), node_flags(root)
        asked = fresh.Request(
            root.resolve(), runner, flags, files, mutant, timeout, record, shuffle, only, env or {}, sandbox, watch,
            known,
        )  # fmt: skip
        done, options = fresh.run(self.node(), self._node_major, asked)
        if options is not None:
            self._options.setdefault(configured, options)
        return done

    def tidy(self, root: Path, write: str, tests: Sequence[Test]) -> Sequence[Test]:
        request = {"root": str(root.resolve()), "write": write, "tests": [[t.code, t.imports] for t in tests]}
        finished = process.run(
            [self.node(), HERE / "tidy.mjs"], cwd=root, env=process.environment(), stdin=json.dumps(request).encode(),
            timeout=TIDY_TIME_LIMIT, max_output=MOST_TIDIED,
        )  # fmt: skip
        try:
            codes = [str(code) for code in json.loads(finished.out)["codes"]] if finished.ok else []
        except (ValueError, KeyError, TypeError):
            codes = []
        if len(codes) != len(tests):
            return tests
        return [
            attrs.evolve(t, code=code) if javascript.tests(code) == (code,) and javascript.title(code) == t.title else t
            for t, code in zip(tests, codes, strict=True)
        ]

    def runner(self, root: Path) -> Runner:
        """What the tests of the project in `root` run in. Raises EngineError."""
        configured = self._configuration(root)
        if configured not in self._runners:
            self._runners[configured] = runner_of(root, self._user_config(root))
        return self._runners[configured]

    def _configuration(self, root: Path) -> bytes:
        """All that the choice of a runner and its options come from, as one text."""
        own = (self.config.config,) if self.config.config else ()
        found = (root / name for name in (*CONFIG_NAMES, *RUNNER_CONFIG_NAMES, "package.json", *own))
        return b"\0".join(str(f).encode() + f.read_bytes() for f in found if f.is_file())

    # -- what is installed

    def _command(self, root: Path) -> tuple[str, ...]:
        return self.config.command or (self.node(), str(package_of(root, "@stryker-mutator/core") / "bin/stryker.js"))

    def _user_config(self, root: Path) -> str | None:
        if self.config.config:
            if not (root / self.config.config).is_file():
                raise EngineError(f"engine.config: {self.config.config} is not a file of the project")
            return self.config.config
        return next((n for n in CONFIG_NAMES if (root / n).is_file()), None)


def _programs() -> list[Path]:
    """Ours that run in Node.js: what they say depends on them."""
    return sorted((*HERE.glob("*.mjs"), *HERE.glob("*.cjs")))


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


def _ranges(scope: Scope, file: str) -> list[str]:
    """What stands behind a file's name for the lines that the scope is about. A pattern cannot have it, nor a file that
    has many: all of such a file is measured."""
    mine = [(first, last) for of, first, last in scope.lines or () if of == file]
    whole = not mine or _literal(file) != file or len(mine) > MOST_RANGES
    return [""] if whole else [f":{first}-{last}" for first, last in mine]


def _literal(path: str) -> str:
    """A path as a glob that matches it alone. Stryker turns backslashes into slashes: a class of one escapes."""
    return re.sub(r"([\[{}()*?!+@])", r"[\1]", path).replace("[!]", "!")
