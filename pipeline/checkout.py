"""The project's files in the user's checkout, as git lists them. Reads, never writes."""

from __future__ import annotations

import functools
import os
import posixpath
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import attrs

from . import patterns, process
from .patterns import Files


class NoFiles(Exception):
    """git lists no files here; str() says why, and what a person must do."""


@attrs.frozen
class Checkout:
    """The project's root (a real path), its files, and what declared tasks write, in one spelling each."""

    root: Path
    files: Files
    made: frozenset[str] = frozenset()
    folds: bool = False  # the file system takes two cases of a name for one
    _above: dict[str, str | None] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    _real: dict[str, str] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    _names: dict[str, str] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    # A search takes milliseconds, and a wrong `project` makes a thousand mistakes: only the first get a hint.
    _searches: Iterator[int] = attrs.field(factory=lambda: iter(range(50)), init=False, eq=False, repr=False)

    def has(self, path: str) -> bool:
        """Is the file there, or will a declared task make it or a directory that it's in?"""
        if path in self.files or os.path.isfile(self._absolute(path)):  # noqa: PTH113
            return True
        if not self._made.isdisjoint([path, *map(str, PurePosixPath(path).parents)]):
            return True
        return any(patterns.takes_in(each, path) for each in self.made if patterns.unescape(each) is None)

    @functools.cached_property
    def _made(self) -> frozenset[str]:
        """The paths and directories that tasks write, without slash; no patterns."""
        return frozenset(patterns.lock(each) for each in self.made if patterns.unescape(each) is not None)

    def may_be_made(self, pattern: str) -> bool:
        """May a declared task make something that `pattern` matches?"""
        anchor = PurePosixPath(patterns.anchor(pattern))
        for each in self.made:
            path = patterns.unescape(each)
            if path is not None and not path.endswith("/"):
                if patterns.takes_in(pattern, path):
                    return True
            else:
                other = PurePosixPath(patterns.lock(each))
                if anchor.is_relative_to(other) or other.is_relative_to(anchor):
                    return True
        return False

    def file_above(self, path: str) -> str | None:
        """The file that stands where a directory above `path` would have to be."""
        folder = posixpath.dirname(path)
        if folder not in self._above:
            is_file = folder != "" and os.path.isfile(self._absolute(folder))  # noqa: PTH113
            self._above[folder] = folder if is_file else self.file_above(folder) if folder else None
        return self._above[folder]

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(self._absolute(path)) or f"{patterns.escape(path)}/" in self.made  # noqa: PTH112

    def spelled(self, path: str) -> str:
        """The one spelling of a path, relative to the root: no `.`, `..` or link among its directories, and the case
        that the file system has. Of a file that is a link itself, the link; of what lies behind a link out of the
        project, the way through the link. Outside the project it begins with `..`.
        """
        folder, name = posixpath.split(path.rstrip("/"))
        if name in ("", ".", ".."):
            found = self._real_path(path)
        else:
            found = f"{self._real_path(folder)}/{name}"
            if os.path.isdir(found):  # noqa: PTH112
                found = self._real_path(path)
        relative = self._relative(found)
        if relative.split("/")[0] == "..":
            relative = posixpath.normpath(path)
        return self._cased(relative) if self.folds else relative

    def link(self, path: str) -> str | None:
        """Where symbolic links on the way to a path lead, relative to the root; None where there are none."""
        folder, name = posixpath.split(path)
        found = posixpath.join(self._real_path(folder), name)
        if os.path.islink(found):  # noqa: PTH114
            found = os.path.realpath(found)
        relative = self._relative(found)
        return None if relative == path else relative

    def _real_path(self, path: str) -> str:
        if path not in self._real:
            self._real[path] = os.path.realpath(f"{self.root}/{path}")
        return self._real[path]

    def _relative(self, absolute: str) -> str:
        # relpath takes 10 µs, and a large plan names fifty thousand paths.
        inside = f"{self.root}/".replace("//", "/")
        return absolute[len(inside) :] if absolute.startswith(inside) else os.path.relpath(absolute, self.root)

    def _cased(self, path: str) -> str:
        """Each name as its directory lists it; one that isn't there yet as it was written first."""
        done = ""
        for name in path.split("/"):
            place = posixpath.join(done, name)
            if _folded(place) not in self._names:
                folder = self._absolute(done)
                readable = os.path.isdir(folder) and os.access(folder, os.R_OK)  # noqa: PTH112
                listed = os.listdir(folder) if readable else []  # noqa: PTH208
                same = next((each for each in listed if _folded(each) == _folded(name)), name)
                self._names[_folded(place)] = posixpath.join(done, same)
            done = self._names[_folded(place)]
        return done

    def hint(self, path: str) -> str:
        """What somebody who wrote `path`, or a pattern, may have meant; '' if nothing is like it."""
        if self.files.under(path):
            return f"{path} is a directory: did you mean '{path}/**'?"
        if os.path.isfile(self._absolute(path)):  # noqa: PTH113
            return "git ignores it"
        near = None if next(self._searches, None) is None else self.files.nearest(path)
        return f"did you mean '{near}'?" if near else ""

    def ignored(self, paths: Iterable[str]) -> list[str]:
        """Which of `paths` git would not commit. Raises NoFiles with git's reason not to say."""
        return _git(self.root, "check-ignore", "-z", "--stdin", stdin=b"\0".join(map(os.fsencode, paths)))

    def unwritable(self, path: str) -> str | None:
        """Why `path` can't be that of a test file, or None. What it says follows the path in a sentence."""
        parts = path.split("/")
        if parts[0] == "..":
            return "lies outside the project"
        for never in (".git", "node_modules"):
            if never in parts:
                return f"lies in {never}"
        absolute = self._absolute(path)
        if os.path.isdir(absolute):  # noqa: PTH112
            return "is a directory"
        real = os.path.realpath(absolute)
        if real != absolute:
            return f"is reached through a symbolic link, to {real}"
        # lstat of a path below a file says ENOTDIR, as of one that isn't there: look at what there is.
        parent = os.path.dirname(absolute)  # noqa: PTH120
        while not os.path.lexists(parent):
            parent = os.path.dirname(parent)  # noqa: PTH120
        return None if os.path.isdir(parent) else f"lies below {os.path.relpath(parent, self.root)}, which is a file"  # noqa: PTH112

    def _absolute(self, path: str) -> str:
        # Path's own is_file() raises for a name that is too long; os.path's says no.
        return os.path.normpath(f"{self.root}/{path}")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def folds_case(folder: Path) -> bool:
    """Does its file system take two cases of a name for one?"""
    for each in (folder, *folder.parents):
        if each.name != each.name.swapcase():
            try:
                return os.path.samestat(each.lstat(), each.with_name(each.name.swapcase()).lstat())
            except OSError:
                return False
    return False


def list_files(root: Path) -> Files:
    """The files of the project at `root` that git tracks or could; never node_modules. Raises NoFiles."""
    # What is listed may have been deleted, be a submodule, or a link to a directory such as node_modules.
    return Files(
        path
        for path in _git(root, "ls-files", "-co", "--exclude-standard", "-z")
        if "node_modules" not in path.split("/") and os.path.isfile(f"{root}/{path}")  # noqa: PTH113
    )


def current_branch(root: Path) -> str | None:
    """The branch that is checked out, one without a commit too; None where HEAD is detached."""
    done = process.run(["git", "symbolic-ref", "--quiet", "--short", "HEAD"], cwd=root, brief=True)
    return done.text.strip() if done.exit_code == 0 else None


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> list[str]:
    """The paths that a git command lists."""
    # In another language, nobody would find "not a git repository" in what git says.
    env = process.environment({"LC_ALL": "C"})
    try:
        done = process.run(["git", *arguments], cwd=root, stdin=stdin, env=env, brief=True)
    except process.NotFound:
        raise NoFiles("git is not installed, and the project must lie in a git repository; install git") from None
    if "not a git repository" in done.tail():
        raise NoFiles(f"{root} lies in no git repository; run `git init` there and commit")
    if done.exit_code not in (0, 1):  # 1: check-ignore found none
        raise NoFiles(f"git says: {' '.join(done.tail().split())}")
    return [os.fsdecode(path) for path in done.out.split(b"\0") if path]
