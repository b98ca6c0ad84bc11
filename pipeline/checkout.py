"""The project's files in the user's checkout, as git lists them. Reads, never writes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import attrs

from . import process
from .patterns import Files


class NoFiles(Exception):
    """git lists no files here; str() says why, and what a person must do."""


@attrs.frozen
class Checkout:
    """The project's root (a real path), its files, and the paths that declared tasks write."""

    root: Path
    files: Files
    made: frozenset[str] = frozenset()
    # A search takes milliseconds, and a wrong `project` makes a thousand mistakes: only the first get a hint.
    _searches: Iterator[int] = attrs.field(factory=lambda: iter(range(50)), init=False, eq=False, repr=False)

    def has(self, path: str) -> bool:
        """Is the file there, or will a declared task make it or a directory that it's in?"""
        if path in self.files or os.path.isfile(self._absolute(path)):  # noqa: PTH113
            return True
        return not self.made.isdisjoint([path, *map(str, PurePosixPath(path).parents)])

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


def list_files(root: Path) -> Files:
    """The files of the project at `root` that git tracks or could; never node_modules. Raises NoFiles."""
    # What is listed may have been deleted, be a submodule, or a link to a directory such as node_modules.
    return Files(
        path
        for path in _git(root, "ls-files", "-co", "--exclude-standard", "-z")
        if "node_modules" not in path.split("/") and os.path.isfile(f"{root}/{path}")  # noqa: PTH113
    )


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> list[str]:
    """The paths that a git command lists."""
    # In another language, nobody would find "not a git repository" in what git says.
    env = process.environment({"LC_ALL": "C"})
    try:
        done = process.run(["git", *arguments], cwd=root, stdin=stdin, env=env)
    except process.NotFound:
        raise NoFiles("git is not installed, and the project must lie in a git repository; install git") from None
    if "not a git repository" in done.tail():
        raise NoFiles(f"{root} lies in no git repository; run `git init` there and commit")
    if done.exit_code not in (0, 1):  # 1: check-ignore found none
        raise NoFiles(f"git says: {' '.join(done.tail().split())}")
    return [os.fsdecode(path) for path in done.out.split(b"\0") if path]
