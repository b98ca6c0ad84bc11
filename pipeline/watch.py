"""Which files did a declared task change that it had no right to? Asks git; changes nothing.

We look whenever a declared task starts and whenever one ends. What changed between two looks was changed by the
tasks that ran between them. A change is one task's fault unless one that ran then may write that file: where several
ran and none may, it is the fault of each, for nobody can tell.

git is asked, unless the kernel says that nothing was touched but what may be (touched.py): its answer takes the longer
the more files there are, and a task may be over in a millisecond.

Not seen: what git ignores; a task that writes what only another one, running at that time, may write; what is written
through a hard link from elsewhere.
"""

from __future__ import annotations

import os
import posixpath
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import attrs

from pipeline.touched import Touched, Unwatchable, folders_of
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
        self._inside = f"{repository.top}/"
        self._lock = threading.Lock()
        self._running: dict[str, _Watched] = {}
        self._last: _Status | None = None  # git's last answer
        self._excused: set[str] = set()  # what was touched since then, and was nobody's fault
        self._touched = Touched(self._folders)

    def close(self) -> None:
        self._touched.close()

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
        touched = self._since()
        moved = touched is None or any(path.startswith(".git/") for path in touched)
        if touched is not None and self._last is not None and not moved and not self._to_blame(touched):
            self._excused |= touched
            return
        before, self._last = self._last or _Status(), self._status()
        excused, self._excused = self._excused - (touched or frozenset()), set()
        mine = self._to_blame(self._changed(before, self._last) - excused)
        for watched in self._running.values():
            watched.outside.update(mine)

    def _to_blame(self, paths: Iterable[str]) -> list[str]:
        """Those that no running task may write, relative to the project; none where nobody of ours runs. `paths` are
        relative to the top."""
        if not self._running:
            return []
        prefix = self._repository.prefix
        there = [posixpath.relpath(path, prefix) for path in paths] if prefix else list(paths)
        return [path for path in there if not any(w.may_write(path) for w in self._running.values())]

    def _since(self) -> frozenset[str] | None:
        """What was touched, relative to the top; None where git must be asked."""
        touched = self._touched.since()
        if touched is None:
            return None
        inside = self._inside
        if any(not path.startswith(inside) or path.endswith(_JUDGES) for path in touched):
            self._touched.close()
            return None  # a branch may have moved, or other folders be ignored
        return frozenset(path[len(inside) :] for path in touched)

    def _folders(self) -> Iterator[Path]:
        """All in which git would see a change, and those in which it keeps branches."""
        repository = self._repository
        if (repository.top / ".gitmodules").exists():
            raise Unwatchable  # each of them is a repository with branches of its own
        said = repository.git("status", "--porcelain=v2", "-z", "--ignored=matching", "--untracked-files=all").out
        listed = repository.git("ls-files", "-z").out  # what was added by force is seen in a folder that is ignored
        tracked = {str(above) for path in _texts(listed) for above in PurePosixPath(path).parents}
        ignored = {repository.top / entry[2:].rstrip("/") for entry in _texts(said) if entry.startswith("! ")}

        def unseen(path: Path) -> bool:
            if path in ignored:
                return path.relative_to(repository.top).as_posix() not in tracked
            return path.name == ".git" or f"{path}/" in self._ours

        yield from folders_of(repository.top, unseen)
        for place in dict.fromkeys([repository.common, repository.index.parent]):
            yield place
            yield place / "info"
            yield from folders_of(place / "refs", lambda _: False)

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


_JUDGES = ("/.gitignore", "/.gitattributes", "/.gitmodules")
_FIELDS = {"1": 7, "u": 9, "?": 0}  # git-status(1), porcelain format version 2: fields between the kind and the path


def _texts(said: bytes) -> list[str]:
    return [os.fsdecode(each) for each in said.split(b"\0") if each]
