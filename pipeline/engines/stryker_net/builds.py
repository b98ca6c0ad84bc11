"""One build a state of a worktree: what was built is built again when a file that takes part has another content."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path

import attrs

from pipeline.engines.stryker_net import dotnet
from pipeline.engines.stryker_net.dotnet import Built
from pipeline.engines.stryker_net.projects import Project
from pipeline.results import Outcome

TIME_LIMIT = 1800.0  # seconds for one build
_PROJECT_FILES = (".csproj", ".props", ".targets", ".config", "packages.lock.json", "global.json")


@attrs.define
class Builds:
    _done: dict[tuple[Path, str], tuple[str, Built]] = attrs.field(factory=dict)
    _restored: dict[tuple[Path, str], str] = attrs.field(factory=dict)
    _hashes: dict[Path, tuple[tuple[int, int, int], str]] = attrs.field(factory=dict)
    _lock: threading.RLock = attrs.field(factory=threading.RLock)
    _locks: dict[Path, threading.RLock] = attrs.field(factory=dict)

    def build(self, root: Path, project: Project, inputs: Sequence[str], log: Path | None) -> Built:
        """What the project builds to, as the files of `root` are now. Threads that want the same wait for one."""
        with self._lock:
            lock = self._locks.setdefault(root, threading.RLock())
        with lock:
            state = self._state(root, inputs)
            done = self._done.get((root, project.path))
            if done is not None and done[0] == state:
                return done[1]
            structure = self._state(root, [p for p in inputs if p.endswith(_PROJECT_FILES)])
            restored = self._restored.get((root, project.path)) == structure
            built = dotnet.build(root, project.path, restore=not restored, timeout=TIME_LIMIT, log=log)
            if built.outcome is Outcome.OK and project.assembly not in built.assemblies:
                made = ", ".join(built.assemblies) or "nothing"
                detail = f"{project.path} was built and made {made}, not {project.assembly}.dll"
                built = attrs.evolve(built, outcome=Outcome.BUILD_ERROR, detail=detail)
            if built.outcome is Outcome.OK:
                self._restored[root, project.path] = structure
            self._done[root, project.path] = state, built
            return built

    def assembly(self, root: Path, project: Project) -> Path:
        """Of what was built last."""
        return self._done[root, project.path][1].assemblies[project.assembly]

    def forget(self, root: Path) -> None:
        """Something else wrote into the outputs: believe none of them until it is built again."""
        for key in [key for key in self._done if key[0] == root]:
            del self._done[key]

    def _state(self, root: Path, paths: Sequence[str]) -> str:
        digest = hashlib.sha256()
        for path in paths:
            digest.update(f"{path}\0{self._hash(root / path)}\0".encode())
        return digest.hexdigest()

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
