"""Test programs: what starts the tests of a built project in one process, and what it answers. That is TestHost.cs,
compiled once a run with what calls xunit 2, or a framework's adapter of the test platform; xunit.v3 makes its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
import xml.etree.ElementTree as xml
from collections.abc import Collection, Sequence
from pathlib import Path

import attrs

from pipeline import process, scratch
from pipeline.engines import EngineError
from pipeline.engines.stryker_net import dotnet
from pipeline.results import Outcome

SOURCE = Path(__file__).with_name("TestHost.cs")
NAME = "TestHost.dll"
_PLATFORM = ("Microsoft.VisualStudio.TestPlatform.ObjectModel.dll",)  # what adapters are written against
_XUNIT = ("xunit.abstractions.dll", "xunit.core.dll", "xunit.execution.dotnet.dll")
_OWN = "xunit.v3.core.dll"
CONTROL = "STRYKER_MUTANT_ID_CONTROL_VAR"  # names the variable that holds the id of the mutant that is on
ACTIVE = "DOIT_MUTATE_ACTIVE"
_XML = "{http://microsoft.com/schemas/VisualStudio/TeamTest/2010}"
_ESCAPED = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}


@attrs.frozen
class Case:
    """One test that ran, or one case of a theory."""

    type: str  # full name of the class
    method: str
    outcome: str  # Passed | Failed | Skipped | ...
    message: str = ""
    stack: str = ""
    seconds: float = 0.0


@attrs.frozen
class Only:
    """What is run, by full names. ordered: the tests one after another, as they stand here."""

    types: Collection[str] = ()
    tests: Sequence[str] = ()
    ordered: bool = False


@attrs.frozen
class On:
    """Which mutant is on, of those in some assemblies; "": none."""

    mutant: str
    assemblies: tuple[str, ...]  # file names


@attrs.frozen
class Answer:
    cases: tuple[Case, ...] = ()
    whole: bool = False  # it came to its end
    running: str = ""  # the method that had begun and not ended
    errors: tuple[str, ...] = ()


class _NotCompiled(EngineError):
    """What stands in the output folder is not what a host was written for."""


@attrs.define
class Hosts:
    """Compiled hosts, each for a framework and a test platform."""

    _made: dict[tuple[str, ...], bytes | _NotCompiled] = attrs.field(factory=dict)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def prepare(
        self, root: Path, stage: Path, assembly: str, place: Path, only: Only | None, seed: int | None,
        on: On | None = None,
    ) -> tuple[list[str], dict[str, str]]:  # fmt: skip
        """The words that run the tests of `assembly`, which lies in `stage`, and the variables they want; what they
        need is put there and into `place`. seed: of the tests' order; None: the framework's own. Raises EngineError."""
        if (stage / _OWN).is_file():  # by its own command line nobody comes before the tests
            return _own(stage / f"{assembly}.dll", only, place), _variables(on)
        adapters = _adapters(stage)
        if not adapters or not _are_there(stage, _PLATFORM):
            raise EngineError(
                f"{assembly}: to run its tests one by one takes xunit.v3, or Microsoft.NET.Test.Sdk and a framework's "
                "adapter (xunit.runner.visualstudio, NUnit3TestAdapter, MSTest.TestAdapter); it has neither"
            )
        program, by_itself = self._host(root, stage, assembly, len(adapters))
        (stage / NAME).unlink(missing_ok=True)
        (stage / NAME).write_bytes(program)
        lines = [*([f"shuffle {seed}"] if seed is not None else ())]
        if only is not None:
            lines += [f"type {t}" for t in sorted(only.types)] + [f"test {t}" for t in only.tests]
            lines += ["ordered 1"] if only.ordered else []
        if on is not None and on.mutant and by_itself:
            lines += [f"on {on.mutant} {name}" for name in on.assemblies]
            on = attrs.evolve(on, mutant="")
        (place / "request").write_text("".join(f"{line}\n" for line in lines))
        words = [dotnet.find(), "exec", "--runtimeconfig", str(stage / f"{assembly}.runtimeconfig.json")]
        if (deps := stage / f"{assembly}.deps.json").is_file():
            words += ["--depsfile", str(deps)]
        words += [str(stage / NAME), f"{assembly}.dll", str(place / "request"), str(place / "answer")]
        return words, _variables(on)

    def _host(self, root: Path, stage: Path, assembly: str, frameworks: int) -> tuple[bytes, bool]:
        """The host, and whether its tests run what it has loaded: adapters load all anew, in contexts of their own."""
        if frameworks == 1 and _are_there(stage, _XUNIT):
            with contextlib.suppress(_NotCompiled):  # of another xunit: its adapter will do
                return self._compiled(root, stage, assembly, "TestHostXunit.cs", _XUNIT), True
        return self._compiled(root, stage, assembly, "TestHostAdapters.cs", _PLATFORM), False

    def _compiled(self, root: Path, stage: Path, assembly: str, runner: str, libraries: Sequence[str]) -> bytes:
        framework = _framework(root, stage / f"{assembly}.runtimeconfig.json")
        contents = (hashlib.sha256((stage / name).read_bytes()).hexdigest() for name in libraries)
        key = runner, str(framework), *contents
        with self._lock:
            if key not in self._made:
                sources = (SOURCE, SOURCE.with_name(runner))
                try:
                    self._made[key] = _compiled(root, framework, sources, [stage / name for name in libraries])
                except _NotCompiled as error:
                    self._made[key] = error
            made = self._made[key]
        if isinstance(made, _NotCompiled):
            raise made
        return made


def _variables(on: On | None) -> dict[str, str]:
    return {} if on is None else {CONTROL: ACTIVE, ACTIVE: on.mutant}


def _are_there(stage: Path, names: Sequence[str]) -> bool:
    return all((stage / name).is_file() for name in names)


def _adapters(stage: Path) -> Sequence[Path]:
    return [path for path in stage.iterdir() if path.name.lower().endswith(".testadapter.dll")]


def _framework(root: Path, config: Path) -> Path:
    """The folder of the oldest installed runtime that the tests may run on. Raises EngineError."""
    try:
        options = json.loads(config.read_text(encoding="utf-8-sig"))["runtimeOptions"]
        named = [options["framework"]] if "framework" in options else options["frameworks"]
        wanted = min(int(f["version"].partition(".")[0]) for f in named)
    except (OSError, ValueError, LookupError, TypeError) as error:  # something else writes in this folder
        raise EngineError(f"{config.name}, as it was built, cannot be read: {error}", Outcome.CRASHED) from None
    there = (dotnet.sdk_folder(root).parent.parent / "shared/Microsoft.NETCore.App").iterdir()
    versions = sorted((tuple(map(int, re.findall(r"\d+", p.name)[:3])), p) for p in there if p.name[:1].isdigit())
    fitting = [path for version, path in versions if version[0] >= wanted]
    if not fitting:
        raise EngineError(f"no .NET runtime {wanted} is installed, which {config.name} asks for; {dotnet.INSTALL}")
    return fitting[0]


def _compiled(root: Path, framework: Path, sources: Sequence[Path], more: Sequence[Path]) -> bytes:
    """The assembly that sources make. Raises EngineError."""
    libraries = [*sorted(framework.glob("System*.dll")), framework / "netstandard.dll", *more]
    with scratch.folder() as place:
        options = [
            "target:exe",
            f"out:{place / NAME}",
            "optimize+",
            "debug-",
            "nullable:enable",
            "nologo",
            "nowarn:1701",
        ]
        lines = [*(f"/{o}" for o in options), *(f'/reference:"{p}"' for p in libraries), *(f'"{p}"' for p in sources)]
        (place / "words.rsp").write_text("\n".join(lines))
        compiler = dotnet.sdk_folder(root) / "Roslyn/bincore/csc.dll"
        words = [dotnet.find(), "exec", str(compiler), "/noconfig", f"@{place / 'words.rsp'}"]
        done = process.run(words, cwd=place, env=dotnet.environment(place), timeout=300)
        if not done.ok:
            raise _NotCompiled(f"the test host cannot be compiled: {done.tail(4)}", Outcome.BUILD_ERROR)
        return (place / NAME).read_bytes()


def _own(assembly: Path, only: Only | None, place: Path) -> list[str]:
    """xunit.v3's command line."""
    words = [dotnet.find(), "exec", str(assembly), "-trx", str(place / "answer"), "-noColor"]
    for type_ in sorted(only.types) if only else ():  # with -class and -method both would have to hold
        words += ["-method", f"{type_}.*"]
    for test in only.tests if only else ():
        words += ["-method", test]
    return words


def read(answer: Path) -> Answer:
    """What a test program has answered so far."""
    try:
        text = answer.read_bytes()
    except OSError:
        return Answer()
    if text.lstrip(b"\xef\xbb\xbf").startswith(b"<"):
        try:
            return Answer(cases_of(text), whole=True)
        except xml.ParseError:
            return Answer()
    cases, errors, begun, whole = [], [], dict[tuple[str, str], None](), False
    for line in text.decode(errors="replace").split("\n")[:-1]:
        kind, *fields = (re.sub(r"\\[\\tnr]", lambda m: _ESCAPED[m[0]], field) for field in line.split("\t"))
        if kind == "start":
            begun[fields[0], fields[1]] = None
        elif kind == "end":
            type_, method, outcome, seconds, message, stack = fields
            begun.pop((type_, method), None)
            cases.append(Case(type_, method, outcome, message, stack, float(seconds)))
        elif kind == "error":
            errors.append(fields[0])
        whole = kind == "done"
    running = next(iter(begun))[1] if len(begun) == 1 else ""
    return Answer(tuple(cases), whole, running, tuple(errors))


def cases_of(trx: bytes) -> tuple[Case, ...]:
    """The rows of a trx file. Raises ParseError for what is none."""
    tree = xml.fromstring(trx)
    methods = {}
    for test in tree.iter(f"{_XML}UnitTest"):
        method = test.find(f"{_XML}TestMethod")
        if method is not None:
            methods[test.get("id")] = (method.get("className") or "", method.get("name") or "")
    found = []
    for row in tree.iter(f"{_XML}UnitTestResult"):
        type_, name = methods.get(row.get("testId"), ("", row.get("testName") or ""))
        message = row.findtext(f".//{_XML}ErrorInfo/{_XML}Message") or ""
        stack = row.findtext(f".//{_XML}ErrorInfo/{_XML}StackTrace") or ""
        name = name.removeprefix(f"{type_}.").partition("(")[0]
        took = re.fullmatch(r"(\d+):(\d+):([\d.]+)", row.get("duration") or "")
        seconds = int(took[1]) * 3600 + int(took[2]) * 60 + float(took[3]) if took else 0.0
        found.append(Case(type_, name, row.get("outcome") or "", message, stack, seconds))
    return tuple(found)
