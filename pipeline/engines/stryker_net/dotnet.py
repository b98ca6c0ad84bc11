"""The .NET command line: found, asked for its version, started with nothing that outlives it, its build errors read."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import process, scratch
from pipeline.engines import EngineError
from pipeline.results import Outcome

OLDEST_SDK = 8
# An MSBuild node and a compiler server would stay, in sessions of their own, with 370 MB.
ALONE = {
    "MSBUILDDISABLENODEREUSE": "1", "UseSharedCompilation": "false", "DOTNET_CLI_USE_MSBUILD_SERVER": "0",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1", "DOTNET_CLI_UI_LANGUAGE": "en", "NO_COLOR": "1",
    "DOTNET_GENERATE_ASPNET_CERTIFICATE": "false", "DOTNET_CLI_WORKLOAD_UPDATE_NOTIFY_DISABLE": "true",
}  # fmt: skip
_BRIEFLY = {  # for seconds of a compiler: without collections in between they are a tenth fewer, or a third
    "DOTNET_GCgen0size": "4000000", "DOTNET_gcConcurrent": "0", "DOTNET_TieredPGO": "0",
}  # fmt: skip
INSTALL = "install the .NET SDK (https://dotnet.microsoft.com/download) and put `dotnet` on PATH"
_ERROR = re.compile(
    r"^(?P<file>[^\n(]+?)(?:\((?P<line>\d+),\d+[^)]*\))?\s*: error (?P<code>\w+): (?P<text>[^\n]*)", re.M
)
_UNREACHED = ("NU1301", "NU1101", "NU1102", "NU1103")  # a package, or where packages come from, is out of reach


def environment(temp: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a .NET program: temporary files in a folder of ours, for each leaves megabytes there.

    NuGet keeps its locks among temporary files: two that unpack one package at once have to find the same ones.
    """
    packages = Path(os.environ.get("NUGET_PACKAGES") or Path.home() / ".nuget" / "packages")
    locks = os.environ.get("NUGET_SCRATCH") or str(packages.with_name(f"{packages.name}.locks"))
    # A global tool that was installed a minute ago: PATH names its folder only after the next login.
    path = os.pathsep.join([process.environment()["PATH"], str(_tools())])
    return process.environment({**ALONE, "TMPDIR": str(temp), "NUGET_SCRATCH": locks, "PATH": path, **(extra or {})})


def _tools() -> Path:
    """Where global tools are installed."""
    return Path(os.environ.get("DOTNET_CLI_HOME") or Path.home()) / ".dotnet" / "tools"


def find() -> str:
    """Path of `dotnet`. Raises EngineError."""
    found = process.find("dotnet")
    if found is None:
        raise EngineError(f"dotnet not found: {INSTALL}")
    return found


@functools.cache
def sdk(root: Path) -> str:
    """Version of the SDK that builds at `root`; a global.json decides it. Raises EngineError."""
    with scratch.folder() as temp:
        done = process.run([find(), "--version"], cwd=root, env=environment(temp))
    version = done.text.strip()
    if not done.ok or not re.match(r"\d+\.", version):
        raise EngineError(f"no .NET SDK fits {root}: {' '.join(done.tail(8).split())}; {INSTALL}")
    if int(version.partition(".")[0]) < OLDEST_SDK:
        raise EngineError(f".NET SDK {version} is too old: {OLDEST_SDK}.0 or newer is needed; {INSTALL}")
    return version


@functools.cache
def sdk_folder(root: Path) -> Path:
    """Where that SDK lies; `dotnet` on PATH may be a script or a link elsewhere. Raises EngineError."""
    with scratch.folder() as temp:
        said = process.run([find(), "--list-sdks"], cwd=root, env=environment(temp)).text
    for line in said.splitlines():
        version, _, place = line.strip().rstrip("]").partition(" [")
        if version == sdk(root):
            return Path(place) / version
    raise EngineError(f"`dotnet --list-sdks` does not name the SDK {sdk(root)} that builds here; {INSTALL}")


@functools.cache
def stryker(root: Path) -> str:
    """Version of Stryker.NET. Raises EngineError where there is none."""
    for folder in (root, *root.parents):
        manifest = folder / ".config" / "dotnet-tools.json"
        if manifest.is_file():
            tools = json.loads(manifest.read_text(encoding="utf-8-sig")).get("tools", {})
            if "dotnet-stryker" in tools:
                return str(tools["dotnet-stryker"]["version"])
    return _stryker_of_all(find())


@functools.cache
def _stryker_of_all(program: str) -> str:
    """Version of the one that no manifest names. Raises EngineError."""
    store = _tools() / ".store" / "dotnet-stryker"
    if store.is_dir() and (versions := sorted(p.name for p in store.iterdir())):
        return versions[-1]
    with scratch.folder() as empty:  # it says its version, and that there is nothing to mutate
        words = [program, "stryker", "--skip-version-check"]
        said = process.run(words, cwd=empty, env=environment(empty)).text
    if found := re.search(r"Version: (\S+)", said):
        return found[1]
    raise EngineError("Stryker.NET is not installed: `dotnet tool install --global dotnet-stryker`, or with a manifest")


def core(root: Path) -> Path:
    """Stryker.NET's own assembly, of a tool with a manifest or of everybody's. Raises EngineError."""
    version = stryker(root)
    packages = Path(os.environ.get("NUGET_PACKAGES") or Path.home() / ".nuget" / "packages")
    home = Path(os.environ.get("DOTNET_CLI_HOME") or Path.home())
    tool = shutil.which("dotnet-stryker", path=process.environment()["PATH"])
    places: list[Path] = [
        packages / "dotnet-stryker" / version,
        home / ".dotnet" / "tools" / ".store" / "dotnet-stryker" / version,
        *([Path(tool).resolve().parent, Path(tool).resolve().parent.parent / "stryker"] if tool else ()),
    ]
    for place in places:
        if found := sorted(place.glob("**/Stryker.Core.dll")):
            return found[-1]
    raise EngineError(f"Stryker.Core.dll of Stryker.NET {version} is not where tools are installed")


def installed() -> tuple[Path, ...]:
    """Files whose change means another version. Raises EngineError."""
    program = Path(find()).resolve()
    tool = shutil.which("dotnet-stryker", path=environment(Path())["PATH"])
    return (program, *([Path(tool)] if tool else ()))


@attrs.frozen
class BuildError:
    file: str  # relative to the root where it lies there
    line: int | None
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''}: {self.code}: {self.text}"


@attrs.frozen
class Built:
    """What a build made, or why it didn't."""

    assemblies: Mapping[str, Path] = attrs.field(factory=dict)  # project's name -> its assembly
    output: Path | None = None  # a copy of the folder that the project's own assembly was built to
    errors: tuple[BuildError, ...] = ()
    outcome: Outcome = Outcome.OK
    detail: str = ""


def build(
    root: Path, project: str, *, restore: bool, alone: bool, timeout: float, log: Path | None = None,
    configuration: str = "", framework: str = "",
) -> Built:  # fmt: skip
    """`dotnet build` of a project with all that it references; alone: those are as they were built.

    configuration: "" for the project's own. framework: of several the one whose output counts; "" for the newest.
    """
    words = ["build", str(root / project), "--nologo", "-v:minimal", "-tl:off"]
    words += ["--configuration", configuration] if configuration else []
    words += [*(() if restore else ("--no-restore",)), *(("--no-dependencies",) if alone else ())]
    with scratch.folder() as temp:
        done = process.run([find(), *words], cwd=root, env=environment(temp, _BRIEFLY), timeout=timeout)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            file.write(done.out + done.err)
    if done.ok:
        made = re.findall(r"^\s*(\S.*?) -> (.+\.(?:dll|exe))\s*$", done.text, re.M)
        made.sort(key=lambda made: _rank(Path(made[1]).parent.name, framework))
        return Built({name: Path(path) for name, path in made})  # the last of a name stays
    errors = errors_of(done.text, root)
    if done.timed_out:
        return Built({}, None, errors, Outcome.TIME_LIMIT, f"dotnet build did not end within {timeout:.0f} s")
    return _failed(errors, done)


def _rank(made: str, framework: str) -> tuple[bool, int, int]:
    """Of an output folder's name, as net10.0: what is wanted, then what is newer, comes last."""
    version = re.match(r"net(\d+)\.(\d+)", made)
    return made == framework, *(map(int, version.groups()) if version else (0, 0))  # net48 does not run everywhere


def _failed(errors: Sequence[BuildError], done: process.Finished) -> Built:
    first = "\n".join(str(e) for e in errors[:5]) or done.tail(6)
    codes = {e.code for e in errors}
    if not codes.isdisjoint(_UNREACHED):
        first += "\na package source is out of reach, or does not have it: see `dotnet nuget list source`"
        return Built({}, None, tuple(errors), Outcome.BAD_CONFIG, first)
    if "NETSDK1045" in codes:
        return Built(
            {}, None, tuple(errors), Outcome.BAD_CONFIG, f"the .NET SDK is too old for the project: {first}\n{INSTALL}"
        )
    if done.exit_code < 0:
        return Built({}, None, (), Outcome.SIGNAL, f"dotnet build was ended by signal {-done.exit_code}")
    return Built({}, None, tuple(errors), Outcome.BUILD_ERROR, first)


def errors_of(said: str, root: Path) -> tuple[BuildError, ...]:
    """Each error once, in the order in which it was said."""
    prefix = f"{root.resolve()}{os.sep}"
    found = (
        BuildError(
            m["file"].strip().removeprefix(prefix), int(m["line"]) if m["line"] else None, m["code"],
            re.sub(r" \[[^\[\]]*proj(?:::[^\[\]]*)?\]$", "", m["text"].strip()),
        )
        for m in _ERROR.finditer(said)
    )  # fmt: skip
    return tuple(dict.fromkeys(found))


def names(errors: Iterable[BuildError]) -> str:
    return "\n".join(map(str, errors))
