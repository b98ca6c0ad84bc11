"""Which project holds a file, which test project reaches it, and how its tests are run. Reads project files as XML and
evaluates nothing: what MSBuild would compute is said under engine.project and engine.tests."""

from __future__ import annotations

import os
import posixpath
import re
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline.engines import EngineError
from pipeline.model import EngineConfig, Scope

ABOVE = (  # in any folder above a project, they take part in its build
    "Directory.Build.props", "Directory.Build.targets", "Directory.Packages.props", "global.json", "nuget.config",
    "NuGet.config", "NuGet.Config", ".editorconfig", ".globalconfig",
)  # fmt: skip
FRAMEWORKS = ("microsoft.net.test.sdk", "xunit", "xunit.v3", "nunit", "mstest", "mstest.testframework", "tunit")
_SKIPPED = frozenset(("bin", "obj", "node_modules", "StrykerOutput", "TestResults"))
_READ = frozenset(("Compile", "EmbeddedResource", "Content", "None", "AdditionalFiles", "Import"))
_OWN_RUNNER = ("usemicrosofttestingplatformrunner", "enablemstestrunner", "enablenunitrunner")


@attrs.frozen
class Project:
    """One .csproj. Paths are relative to the root, with forward slashes."""

    path: str
    references: tuple[str, ...]
    packages: frozenset[str]  # in lower case
    linked: tuple[str, ...]  # patterns of what it takes from other folders, as in <Compile Include="../Shared/*.cs" />
    properties: Mapping[str, str] = attrs.field(
        eq=False
    )  # by name in lower case, those of the Directory.Build.props above it included

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)

    @property
    def assembly(self) -> str:
        stem = posixpath.splitext(posixpath.basename(self.path))[0]
        said = self.properties.get("assemblyname", "")
        return said if said and "$(" not in said else stem

    @property
    def is_test(self) -> bool:
        said = self.properties.get("istestproject", "").lower()
        return said == "true" or (said != "false" and not self.packages.isdisjoint(FRAMEWORKS))

    @property
    def runner(self) -> str:
        """The runner that its tests want: with the other one Stryker sees every mutant survive, and exits with 0."""
        own = any(self.properties.get(name, "").lower() == "true" for name in _OWN_RUNNER)
        executable = self.properties.get("outputtype", "").lower() == "exe"
        return "mtp" if own or (executable and "xunit" not in self.packages) else "vstest"


@attrs.frozen
class Pair:
    """The project that is mutated, and the one whose tests run."""

    source: Project
    tests: Project


@attrs.frozen
class Projects:
    by_path: Mapping[str, Project]

    def owner(self, file: str) -> Project | None:
        """The project in whose folder, or the nearest above, a file lies."""
        folder = posixpath.dirname(file)
        while True:
            found = sorted(p for p in self.by_path if posixpath.dirname(p) == folder)
            if found:
                return self.by_path[found[0]]
            if not folder:
                return None
            folder = posixpath.dirname(folder)

    def reached(self, project: Project) -> tuple[Project, ...]:
        """A project and all that its references lead to."""
        found: dict[str, Project] = {}
        due = [project.path]
        while due:
            path = due.pop()
            if path in self.by_path and path not in found:
                found[path] = self.by_path[path]
                due += self.by_path[path].references
        return tuple(found[p] for p in sorted(found))

    def pair(self, scope: Scope, config: EngineConfig) -> Pair:
        """Raises EngineError, which names both where it is in doubt."""
        source = self._source(scope, config)
        tests = self._tests(scope, source, config)
        if "tunit" in tests.packages:
            raise EngineError(
                f"{tests.path}: tests of TUnit cannot be run one by one here; those of xunit, NUnit and MSTest can"
            )
        if source.path not in {p.path for p in self.reached(tests)}:
            raise EngineError(
                f"{tests.path} does not reference {source.path}, whose {scope.mutate[0]} is to be mutated: correct "
                "`write`, or name the projects under engine.project and engine.tests"
            )
        return Pair(source, tests)

    def _source(self, scope: Scope, config: EngineConfig) -> Project:
        if config.project:
            return self._named(config.project, "engine.project")
        owners = {p.path: p for p in map(self.owner, scope.mutate) if p is not None}
        if not owners:
            raise EngineError(f"no .csproj in the folder of {scope.mutate[0]} or above: name it under engine.project")
        if len(owners) > 1:
            raise EngineError(
                f"{scope.name} is over two projects, {' and '.join(sorted(owners)[:2])}: make it a scope for each"
            )
        return next(iter(owners.values()))

    def _tests(self, scope: Scope, source: Project, config: EngineConfig) -> Project:
        if config.tests:
            return self._named(config.tests, "engine.tests")
        owners = {p.path: p for p in map(self.owner, (scope.write, *(scope.tests or ()))) if p is not None}
        tests = {path: p for path, p in owners.items() if p.is_test}
        if len(tests) > 1:
            raise EngineError(
                f"the tests of {scope.name} are in two projects, {' and '.join(sorted(tests)[:2])}: `tests` and "
                "`write` of a scope are of one"
            )
        if not tests:
            near = [p.path for p in self.by_path.values() if p.is_test and source in self.reached(p)]
            found = f"its tests are in {' or '.join(sorted(near))}; correct `write`"
            none = "no test project references it: make one (`dotnet new xunit`, `dotnet add reference`)"
            raise EngineError(f"{scope.write} is in no test project; {source.path}: {found if near else none}")
        return next(iter(tests.values()))

    def _named(self, path: str, key: str) -> Project:
        if found := self.by_path.get(posixpath.normpath(path)):
            return found
        there = f"there are {', '.join(sorted(self.by_path)[:6])}" if self.by_path else "there is none"
        raise EngineError(f"{key}: {path} is no project file; {there}")


def read(root: Path) -> Projects:
    """All C# projects below `root`. Raises EngineError for one that is no XML."""
    found = {}
    for path in sorted(_walk(root, (".csproj",))):
        tree = _tree(root / path)
        shared = [_tree(root / p) for p in above(root, posixpath.dirname(path)) if p.endswith("Build.props")]
        properties = {k: v for t in (*shared, tree) for k, v in _properties(t)}
        packages = {
            name.lower() for t in (*shared, tree) for e in t.iter() if _tag(e) == "PackageReference"
            for name in [e.get("Include") or ""]
        }  # fmt: skip
        if any(
            sdk.startswith("MSTest.Sdk") for sdk in (tree.get("Sdk") or "").split(";")
        ):  # its packages and its runner
            packages.add("mstest")
            properties = {"enablemstestrunner": "true", **properties}
        references = (e.get("Include") or "" for e in tree.iter() if _tag(e) == "ProjectReference")
        near = sorted(_from(path, r) for r in references)
        words = (
            w for e in tree.iter() if _tag(e) in _READ for w in (e.get("Include") or e.get("Project") or "").split(";")
        )
        inside = f"{posixpath.dirname(path)}/".removeprefix("/")
        linked = sorted({p for w in words if w.strip() and not (p := _from(path, w)).startswith(inside)})
        found[path] = Project(path, tuple(near), frozenset(packages), tuple(linked), properties)
    return Projects(found)


def _from(project: str, said: str) -> str:
    """A path, or pattern, in a project file → from the root."""
    plain = re.sub(r"\$\(MSBuild(?:ThisFile|Project)Directory\)", "", said.strip(), flags=re.IGNORECASE)
    return posixpath.normpath(posixpath.join(posixpath.dirname(project), plain.replace("\\", "/")))


def unseen(root: Path, projects: Iterable[Project]) -> tuple[str, ...]:
    """What these projects take from above the root, as far as it is there: nobody sees it change."""
    said = {p for project in projects for p in (*project.references, *project.linked) if p.startswith("../")}
    up = ["../" * (i + 1) for i in range(len(_repository(root)))]
    return tuple(sorted([*said, *(f"{u}{name}" for u in up for name in ABOVE if (root / u / name).is_file())]))


def _repository(root: Path) -> Sequence[Path]:
    """The folders above the root that are of its repository."""
    places = [root, *root.parents]
    top = next((i for i, place in enumerate(places) if (place / ".git").exists()), 0)
    return places[1 : top + 1]


def above(root: Path, folder: str) -> list[str]:
    """Files in a folder and above it, up to the root, that take part in a build; the uppermost first."""
    folders = [folder]
    while folders[-1]:
        folders.append(posixpath.dirname(folders[-1]))
    names = (posixpath.join(f, name) for f in reversed(folders) for name in ABOVE)
    return [name for name in names if (root / name).is_file()]


def files(root: Path, projects: Iterable[Project], others: Iterable[Project]) -> tuple[str, ...]:
    """Every file that a build of these projects may read. `others`: what lies in their folders is not looked at."""
    some = tuple(projects)
    foreign = {p.folder for p in others} - {p.folder for p in some}
    found = {name for p in some for name in above(root, p.folder)}
    for project in some:
        found.update(_walk(root, ("",), project.folder, foreign))
        for pattern in project.linked:
            found.update(_there(root, pattern))
    return tuple(sorted(found))


def _there(root: Path, pattern: str) -> Iterator[str]:
    """The files that MSBuild finds for a path or pattern, as far as they lie below the root."""
    if pattern.startswith(("../", "/")) or "$(" in pattern:
        return
    fixed = re.split(r"[*?]", pattern)[0]
    if fixed == pattern:
        yield from [pattern] if (root / pattern).is_file() else []
        return
    signs = {r"\*\*/": "(?:.*/)?", r"\*\*": ".*", r"\*": "[^/]*", r"\?": "[^/]"}
    wanted = re.compile(re.sub(r"\\\*\\\*/|\\\*\\\*|\\[*?]", lambda m: signs[m[0]], re.escape(pattern)))
    yield from (path for path in _walk(root, ("",), posixpath.dirname(fixed)) if wanted.fullmatch(path))


def _walk(root: Path, endings: tuple[str, ...], below: str = "", never: Iterable[str] = ()) -> Iterator[str]:
    for folder, folders, names in os.walk(root / below):
        here = Path(folder).relative_to(root).as_posix().removeprefix(".").removeprefix("/")
        inside = {name: posixpath.join(here, name) for name in folders}
        folders[:] = [n for n, p in inside.items() if n not in _SKIPPED and not n.startswith(".") and p not in never]
        yield from (posixpath.join(here, name) for name in names if name.endswith(endings))


def _tree(path: Path) -> xml.Element:
    try:
        return xml.fromstring(path.read_bytes())
    except (xml.ParseError, OSError) as error:
        raise EngineError(f"{path} cannot be read as a project file: {error}") from None


def _properties(tree: xml.Element) -> Iterator[tuple[str, str]]:
    for group in tree.iter():
        if _tag(group) == "PropertyGroup":
            yield from ((_tag(e).lower(), (e.text or "").strip()) for e in group)


def _tag(element: xml.Element) -> str:
    return element.tag.rpartition("}")[2]
