"""One build a state of a worktree: it is built again where a file that takes part has a content for which it has not
been built yet. What the last few states were built to is kept beside the output folder, and nothing runs in it."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from pipeline.engines.stryker_net import dotnet, settings
from pipeline.engines.stryker_net.dotnet import Built
from pipeline.engines.stryker_net.projects import Project
from pipeline.results import Outcome

TIME_LIMIT = 1800.0  # seconds for one build
KEPT = 4  # outputs of one project: tests come, some go, the file without any is built in between
_PROJECT_FILES = (".csproj", ".props", ".targets", ".config", "packages.lock.json", "global.json")


@attrs.define
class _Known:
    """Of one project in one worktree."""

    built: dict[str, Built] = attrs.field(factory=dict)  # state -> what came of it, the last used at the end
    folder: Path | None = None  # the output folder
    restored: Mapping[str, str] | None = None  # project file -> hash: packages are there for these
    references: Mapping[str, str] | None = None  # file of another project -> hash: built from these, and not touched


@attrs.define
class Builds:
    config: str | None = None  # engine.config: the stryker-config, where it is not found by itself
    _known: dict[tuple[Path, str], _Known] = attrs.field(factory=dict)
    _hashes: dict[Path, tuple[tuple[int, int, int], str]] = attrs.field(factory=dict)
    _lock: threading.RLock = attrs.field(factory=threading.RLock)
    _locks: dict[Path, threading.RLock] = attrs.field(factory=dict)

    def build(self, root: Path, project: Project, inputs: Sequence[str], log: Path | None) -> Built:
        """What the project builds to, as the files of `root` are now. Threads that want the same wait for one."""
        with self._lock:
            lock = self._locks.setdefault(root, threading.RLock())
            known = self._known.setdefault((root, project.path), _Known())
        with lock:
            files = {path: self._hash(root / path) for path in inputs}
            state = self.state(root, inputs)
            built = known.built.pop(state, None)
            if built is None:
                built = self._built(root, project, files, known, log)
                if built.outcome is Outcome.OK:
                    known.folder = output = built.assemblies[project.assembly].parent
                    kept = output.with_name(f"{output.name}-{state}")
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(output, kept, symlinks=True)
                    built = attrs.evolve(built, output=kept)
            known.built[state] = built
            outputs = [old for old, made in known.built.items() if made.output is not None]
            for old in outputs[:-KEPT]:
                shutil.rmtree(known.built.pop(old).output or "", ignore_errors=True)
            return built

    def _built(self, root: Path, project: Project, files: Mapping[str, str], known: _Known, log: Path | None) -> Built:
        inside = f"{project.folder}/" if project.folder else ""
        # What Stryker is told to build: the assembly with the mutants lies in no other output folder.
        theirs = settings.find(root, project.folder, self.config).theirs
        configuration, framework = (str(theirs.get(key) or "") for key in ("configuration", "target-framework"))
        structure = {path: content for path, content in files.items() if path.endswith(_PROJECT_FILES)}
        structure["configuration"] = configuration
        others = {path: content for path, content in files.items() if not path.startswith(inside)}
        restored = known.restored == structure
        alone = restored and bool(inside) and known.references == others
        built = dotnet.build(
            root, project.path, restore=not restored, alone=alone, timeout=TIME_LIMIT, log=log,
            configuration=configuration, framework=framework,
        )  # fmt: skip
        reached = built.outcome is Outcome.OK or (
            built.errors
            and built.outcome is Outcome.BUILD_ERROR
            and all(e.line and e.file.startswith(inside) for e in built.errors)
        )  # the compiler has come to this project: what it references is built
        known.restored = structure if reached else None
        known.references = others if reached else None
        if built.outcome is Outcome.OK and project.assembly not in built.assemblies:
            made = ", ".join(built.assemblies) or "nothing"
            detail = f"{project.path} was built and made {made}, not {project.assembly}.dll"
            return attrs.evolve(built, outcome=Outcome.BUILD_ERROR, detail=detail)
        return built

    def state(self, root: Path, inputs: Sequence[str]) -> str:
        """Of these files as they are now."""
        return hashlib.sha256(repr([(p, self._hash(root / p)) for p in sorted(inputs)]).encode()).hexdigest()[:16]

    def folder(self, root: Path, project: Project) -> Path:
        """Where a project that has been built was built to."""
        folder = self._known[root, project.path].folder
        assert folder is not None
        return folder

    def forget(self, root: Path) -> None:
        """Something else wrote into the output folders: believe none of them until it is built again."""
        for place, known in self._known.items():
            if place[0] == root:
                known.references = None

    def _hash(self, path: Path) -> str:
        try:
            stat = path.stat()
            version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            known = self._hashes.get(path)
            if known is None or known[0] != version:
                known = self._hashes[path] = version, hashlib.sha256(path.read_bytes()).hexdigest()
            return known[1]
        except OSError:
            return ""
