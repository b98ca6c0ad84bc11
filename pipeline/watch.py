"""Which files did a declared task change that it had no right to? Asks git; changes nothing.

git is asked whenever a declared task starts and whenever one ends. What changed between two looks was changed by the
tasks that ran between them. A change is one task's fault unless one that ran then may write that file: where several
ran and none may, it is the fault of each, for nobody can tell.

Not seen: what git ignores; a task that writes what only another one, running at that time, may write.
"""

from __future__ import annotations

import os
import posixpath
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline.worktree import Repository

_Look = tuple[int, ...]  # of a file: what differs when it was written; () where it isn't there


@attrs.frozen
class _Status:
    """The checkout at one moment: HEAD, and every file that differs from it or is new."""

    head: str = ""
    files: Mapping[str, _Look] = attrs.field(factory=dict)  # relative to the top


@attrs.frozen
class _Watched:
    may_write: Callable[[str], bool]
    outside: set[str] = attrs.field(factory=set)


class Watch:
    """On the checkout of a repository, for the length of a run. Worker threads call it."""

    def __init__(self, repository: Repository, ours: Sequence[Path]) -> None:
        """ours: folders in which we ourselves write while tasks run."""
        self._repository, self._ours = repository, [f"{folder}/" for folder in ours]
        self._lock = threading.Lock()
        self._running: dict[str, _Watched] = {}
        self._last = _Status()

    def begin(self, task: str, may_write: Callable[[str], bool]) -> None:
        """may_write: of a path relative to the project. Raises GitError."""
        with self._lock:
            self._look()
            self._running[task] = _Watched(may_write)

    def end(self, task: str) -> tuple[str, ...]:
        """The paths, relative to the project, that changed and that it is to blame for. Raises GitError."""
        with self._lock:
            try:
                self._look()
            finally:
                watched = self._running.pop(task)
            return tuple(sorted(watched.outside))

    def _look(self) -> None:
        """Charge what has changed since the last look to those that have run since."""
        before, self._last = self._last, self._status()
        if not self._running:
            return  # nobody of ours did that
        paths = {posixpath.relpath(path, self._repository.prefix or ".") for path in self._changed(before, self._last)}
        mine = [path for path in paths if not any(w.may_write(path) for w in self._running.values())]
        for watched in self._running.values():
            watched.outside.update(mine)

    def _changed(self, before: _Status, now: _Status) -> set[str]:
        found = {path for path, look in now.files.items() if before.files.get(path) != look}
        # One that differs from HEAD no more was committed as it was, or changed back.
        found |= {path for path in before.files.keys() - now.files.keys() if before.files[path] != self._of(path)}
        if before.head and now.head and before.head != now.head:
            said = self._repository.git("diff", "--name-only", "--no-renames", "-z", before.head, now.head).out
            found |= {p for p in _texts(said) if p not in before.files and p not in now.files}
        return found

    def _status(self) -> _Status:
        said = self._repository.git(
            "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"
        ).out  # fmt: skip
        head, files = "", {}
        for entry in _texts(said):
            kind, _, rest = entry.partition(" ")
            if entry.startswith("# branch.oid "):
                head = "" if entry.endswith("(initial)") else entry.split(" ")[2]
            elif kind in _FIELDS:
                path = rest.split(" ", _FIELDS[kind])[-1]
                if not f"{self._repository.top}/{path}".startswith(tuple(self._ours)):
                    files[path] = self._of(path)
        return _Status(head, files)

    def _of(self, path: str) -> _Look:
        try:
            status = (self._repository.top / path).lstat()
        except OSError:
            return ()
        return status.st_mode, status.st_mtime_ns, status.st_size, status.st_ino


_FIELDS = {"1": 7, "u": 9, "?": 0}  # git-status(1), porcelain format version 2: fields between the kind and the path


def _texts(said: bytes) -> list[str]:
    return [os.fsdecode(each) for each in said.split(b"\0") if each]
