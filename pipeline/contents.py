"""What declared directories, patterns and shared paths hold, and whose work that is. Reads the checkout.

doit looks at files that one task makes. This is the up-to-date check for the rest.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import patterns
from pipeline.results import dump, find


@attrs.frozen
class Contents:
    """What a set of declared paths held at one moment."""

    looked: str  # digest of times, sizes and inodes: while it is the same, nothing is read
    content: str  # digest of paths and contents


@attrs.frozen
class Place:
    """The project's root, and the folder in it that is ours: it is no part of what anybody declared."""

    root: Path
    ours: Path

    def matched(self, declared: Iterable[str]) -> tuple[str, ...]:
        """The files that are there, ignored by git or not, each ! acting on what was before it. Sorted."""
        chosen: set[str] = set()
        for each in declared:
            if each.startswith("!"):
                chosen = {path for path in chosen if not patterns.takes_in(each[1:], path)}
            else:
                chosen.update(self._matched(each))
        return tuple(sorted(chosen))

    def holds(self, declared: str) -> bool:
        """Is there such a file, such a directory, or a file that matches?"""
        plain = patterns.unescape(declared)
        if plain is None:
            return next(self._matched(declared), None) is not None
        path = f"{self.root}/{plain}"
        return os.path.isdir(path) if plain.endswith("/") else os.path.lexists(path)  # noqa: PTH112

    def contents(self, declared: Sequence[str], known: Contents | None) -> Contents:
        """What `declared` holds; known: what it held when it was last looked at."""
        files = self.matched(declared)
        looked = hashlib.sha256()
        for path in files:
            looked.update(f"{path}\0{_looks(self.root / path)}\0".encode(errors="surrogateescape"))
        if known is not None and known.looked == looked.hexdigest():
            return known
        content = hashlib.sha256()
        for path in files:
            content.update(f"{path}\0".encode(errors="surrogateescape") + _digest(self.root / path))
        return Contents(looked.hexdigest(), content.hexdigest())

    def _matched(self, declared: str) -> Iterator[str]:
        start = patterns.lock(declared)
        if os.path.lexists(self.root / start) and not (self.root / start).is_dir():
            yield from [start] if patterns.takes_in(declared, start) else []
            return
        if patterns.unescape(declared) == start:
            return  # a file that isn't there
        for _, names in self._walk(start):
            yield from (path for path in names if patterns.takes_in(declared, path))

    def seen(self, declared: Iterable[str]) -> Iterator[str]:
        """All that would be otherwise if directories and patterns held something else: what is in them, and the folders
        themselves, which change when something comes or goes."""
        starts = {patterns.lock(each) for each in declared if not each.startswith("!")}
        for start in starts:
            if not any(each in starts for each in (".", *above(start)) if each != start):
                yield start
                for folder, names in self._walk(start):
                    yield folder
                    yield from names

    def _walk(self, start: str) -> Iterator[tuple[str, list[str]]]:
        """A folder and all below it, each with the files in it; links are files."""
        skipped = {".git", "node_modules"}.difference(start.split("/"))
        for folder, folders, names in os.walk(self.root / start):
            here = Path(folder)
            links = [name for name in folders if (here / name).is_symlink()]
            folders[:] = [n for n in folders if n not in skipped and n not in links and here / n != self.ours]
            relative = here.relative_to(self.root).as_posix()
            inside = "" if relative == "." else f"{relative}/"
            yield relative, [f"{inside}{name}" for name in (*names, *links)]


def above(path: str) -> list[str]:
    """The folders that a path is in, without the root: "a/b/c" → ["a", "a/b"]."""
    steps = path.split("/")
    return ["/".join(steps[:n]) for n in range(1, len(steps))]


def _looks(path: Path) -> tuple[int, ...] | None:
    """What tells, without reading it, that a file is another than it was; of a link, also of what it leads to."""
    try:
        own, there = path.lstat(), path.stat()
    except OSError:
        return None
    return tuple(n for s in (own, there) for n in (s.st_mode, s.st_mtime_ns, s.st_size, s.st_ino))


def _digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    try:
        if path.is_symlink():
            digest.update(os.fsencode(path.readlink()))
        status = path.stat()
        digest.update(b"x" if status.st_mode & stat.S_IXUSR else b"-")
        if stat.S_ISREG(status.st_mode):  # not a pipe, which would never end
            with path.open("rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    digest.update(block)
    except OSError as error:
        digest.update(f"errno {error.errno}".encode())  # a link to nowhere, a file that may not be read
    return digest.digest()


@attrs.frozen
class Held:
    """What a written path held when the last task that may change it had succeeded, and whose work was in it then."""

    contents: Contents
    tasks: tuple[str, ...]


class Holdings:
    """For every written path that is no doit target (directories, patterns, what several tasks write): whose work is in
    it. It's theirs while it is as the last of them left it; any other change to it, by whomever, makes all run again.

    Callers hold the locks of the paths that they ask about.
    """

    def __init__(self, path: Path, place: Place, kept: Mapping[str, Sequence[str]]) -> None:
        """path: where this is remembered. kept: task -> those of its `writes` that are no doit target, if any."""
        self._path, self._place, self._kept = path, place, kept
        paths = dict.fromkeys(path for kept in self._kept.values() for path in kept)
        self._locks = {path: patterns.lock(path) for path in paths}  # of all that is kept
        self._known = find(path, dict[str, Held]) or {}
        self._lock = threading.Lock()

    def intact(self, task: str) -> bool:
        """Is all that it wrote as it was left, and its own work in it?"""
        return all(task in self._of(each)[1] for each in self._kept.get(task, ()))

    def begin(self, writes: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Before a task runs that writes `writes`: whose work is in each path that it may change."""
        above = [patterns.lock(each) for each in writes]
        return {path: self._of(path)[1] for path, lock in self._locks.items() if any(_meet(lock, a) for a in above)}

    def end(self, task: str, before: Mapping[str, tuple[str, ...]]) -> None:
        """It succeeded: what was intact before still is, and its own work is in it too."""
        own = set(self._kept.get(task, ()))
        now = {}
        for path, tasks in before.items():
            now[path] = Held(self._of(path)[0], tuple(sorted({*tasks, task})) if path in own else tasks)
        if now:
            with self._lock:
                self._known = {**self._known, **now}
                dump(self._path, {path: attrs.asdict(held) for path, held in self._known.items()})

    def _of(self, path: str) -> tuple[Contents, tuple[str, ...]]:
        known = self._known.get(path)
        contents = self._place.contents([path], known.contents if known else None)
        same = known is not None and contents.content == known.contents.content
        return contents, known.tasks if known and same else ()


def _meet(one: str, other: str) -> bool:
    return one == other or "." in (one, other) or one.startswith(f"{other}/") or other.startswith(f"{one}/")
