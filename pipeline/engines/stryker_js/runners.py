"""What a project's tests run in. A new runner is one line in the dict, and one module, in_RUNNER.mjs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline.engines import EngineError

PLUGINS = "@stryker-mutator"


@attrs.frozen
class Runner:
    """How test files are run: by Stryker, through one of its plugins; and once in a fresh process (in_RUNNER.mjs)."""

    name: str  # as people say it; of the module too, with _ for what is no letter
    plugin: str  # Stryker's name for it
    package: str | None  # the one that it comes in; None: Node.js itself
    describes: bool = True  # tests may stand in describe blocks
    given: str = ""  # the parameter that a test asserts with, as in `t.equal(...)`
    config: tuple[str, ...] = ()  # files that its configuration may stand in, beside package.json
    own_key: str = ""  # where it may stand in package.json
    command: str = ""  # a pattern of how a script starts it
    flags: tuple[str, ...] = ()  # of node, for a fresh process
    shares: bool = True  # a Stryker process may hold several scopes: a mutant meets only the tests that it is told
    traced: bool = True  # V8 tells which files were loaded; else the runner does

    @property
    def module(self) -> str:
        return re.sub(r"\W", "_", self.name)

    @property
    def packages(self) -> tuple[str, ...]:
        own = (self.package,) if self.package else ()
        return (f"{PLUGINS}/core", f"{PLUGINS}/{self.plugin}-runner", *own)

    def options(self, tests: Sequence[str]) -> dict[str, Any]:
        """What Stryker is told of the tests of one process, by their paths; over the project's own configuration."""
        return _OPTIONS[self.plugin](self, tests)


def _mocha(runner: Runner, tests: Sequence[str]) -> dict[str, Any]:
    return {"mochaOptions": {"spec": list(tests)}}  # mocha takes a name that exists for what it is


def _vitest(runner: Runner, tests: Sequence[str]) -> dict[str, Any]:
    return {"vitest": {"related": False}}  # which files: scoped_runner.mjs


def _jest(runner: Runner, tests: Sequence[str]) -> dict[str, Any]:
    patterns = [re.sub(r"([\[{}()*?!+@\\])", r"\\\1", f"<rootDir>/{test}") for test in tests]
    config = {"testMatch": [p.replace(r"<rootDir\>", "<rootDir>") for p in patterns], "testRegex": []}
    return {"jest": {"enableFindRelatedTests": False, "config": config}}


def _tap(runner: Runner, tests: Sequence[str]) -> dict[str, Any]:
    by = {"node:test": ["--test-reporter=tap"]}.get(runner.name)
    literal = [re.sub(r"([\[{}()*?!+@])", r"[\1]", test) for test in tests]
    return {"tap": {"testFiles": literal, **({"nodeArgs": by} if by else {})}}


_OPTIONS = {"mocha": _mocha, "vitest": _vitest, "jest": _jest, "tap": _tap}


def _names(stem: str, endings: str) -> tuple[str, ...]:
    return tuple(f"{stem}.{ending}" for ending in endings.split())


_ALL = "js cjs mjs ts mts cts"
RUNNERS: Mapping[str, Runner] = {
    r.name: r
    for r in (
        Runner(
            "mocha", "mocha", "mocha", command=r"\b_?mocha\b", own_key="mocha",
            config=_names(".mocharc", "js cjs mjs yaml yml json jsonc"),
        ),
        Runner(
            "node:test", "tap", None, command=r"\bnode\b[^&|;]*\s--test\b",
            flags=("--test-reporter={here}/in_node_test.mjs", "--test-reporter-destination=stdout"),
        ),
        Runner(
            "vitest", "vitest", "vitest", command=r"\bvitest\b", traced=False,
            config=(*_names("vitest.config", _ALL), *_names("vite.config", _ALL)),
        ),
        Runner(
            "jest", "jest", "jest", command=r"\bjest\b", own_key="jest", shares=False,
            config=_names("jest.config", f"{_ALL} json"),
        ),
        Runner("tape", "tap", "tape", describes=False, given="t.equal, t.deepEqual, t.throws", command=r"\btape\b"),
    )
}  # fmt: skip
DEFAULT = RUNNERS["mocha"]
_UNSUPPORTED = {"ava": r"\bava\b", "jasmine": r"\bjasmine\b", "karma": r"\bkarma\b", "tap": r"(?:^|[\s;&|/])tap\s"}


def runner_of(root: Path, stryker: str | None) -> Runner:
    """The runner of the project in `root`, by what its own files say. stryker: its Stryker configuration, a file.

    In this order: the `testRunner` of that, package.json's test scripts, its packages and configuration files. Raises
    EngineError where they name two, or one that is not supported, and nothing before them decides.
    """
    package = manifest(root)
    plugin = _plugin(root, stryker)
    by_plugin = [r for r in RUNNERS.values() if r.plugin == plugin] if plugin else list(RUNNERS.values())
    if plugin and plugin != "command" and not by_plugin:
        raise EngineError(f"{stryker}: testRunner {plugin} is not supported; {_SUPPORTED}")
    fitting = by_plugin or list(RUNNERS.values())
    if plugin and len(fitting) == 1:
        return fitting[0]
    scripts = package.get("scripts")
    script = _scripts(scripts) if isinstance(scripts, dict) else ""
    found = _told(root, package, fitting, script)
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(r.name for r in found)
        raise EngineError(
            f"two test runners are found in {root}: {names}; name one: by testRunner in Stryker's configuration, or by "
            "scripts.test in package.json"
        )
    packages = _packages(package)
    for name, pattern in _UNSUPPORTED.items():
        if re.search(pattern, script) or name in packages:
            raise EngineError(f"{root / 'package.json'}: tests in {name} are not supported; {_SUPPORTED}")
    if plugin == "tap":
        return RUNNERS["node:test"]  # it comes with Node.js: no package says so
    return DEFAULT


_SUPPORTED = f"supported are {', '.join(RUNNERS)}"


def _told(root: Path, package: Mapping[str, Any], fitting: Sequence[Runner], script: str) -> list[Runner]:
    """The runners that a project's files tell of, by the first kind of evidence that tells of any."""
    by_script = [r for r in fitting if re.search(r.command, script)]
    if by_script:
        return by_script
    packages = _packages(package)

    def configured(runner: Runner) -> bool:
        own = [n for n in runner.config if not n.startswith("vite.")]
        return runner.own_key in package or any((root / n).is_file() for n in own)

    return [r for r in fitting if r.package in packages or configured(r)]


def _scripts(scripts: Mapping[str, Any]) -> str:
    """scripts.test, with the scripts that it starts written out once."""
    test = str(scripts.get("test", ""))
    called = re.findall(r"\b(?:npm|yarn|pnpm)\s+(?:run\s+)?([\w:-]+)", test)
    return " ; ".join([test, *(str(scripts[name]) for name in called if name in scripts and name != "test")])


def _packages(package: Mapping[str, Any]) -> set[str]:
    kinds = (package.get(kind) for kind in ("dependencies", "devDependencies"))
    return {name for kind in kinds if isinstance(kind, dict) for name in kind}


def manifest(root: Path) -> Mapping[str, Any]:
    """package.json; {} where it cannot be read."""
    try:
        read = json.loads((root / "package.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def node_flags(root: Path) -> tuple[str, ...]:
    """Flags of node that the project's test script sets, and that its modules cannot be loaded without."""
    scripts = manifest(root).get("scripts")
    known = re.findall(r"--experimental-vm-modules\b", _scripts(scripts)) if isinstance(scripts, dict) else []
    return tuple(dict.fromkeys(known))


def _plugin(root: Path, stryker: str | None) -> str | None:
    """What the project's Stryker configuration says under testRunner. A program as configuration is read as text."""
    if stryker is None:
        return None
    try:
        text = (root / stryker).read_text()
    except OSError:
        return None
    said = re.search(r"""['"]?testRunner['"]?\s*:\s*['"]([\w-]+)['"]""", text)
    return said[1] if said else None
