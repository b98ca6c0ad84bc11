"""Nothing to do, recognised before anything is loaded: all that a run looked at that found nothing to do is as it was.

What is looked at: the selection; the checkout, its branches and where they are checked out, as git tells; the files of
the plan, of this package, of the engine and of every target, by time, size and inode; the variables that move things.
Any doubt, and any option but -n, leaves it to the full check.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline import process

NAME = "unchanged.json"
VARIABLES = ("PATH", "HOME", "DOIT_MUTATE_HOME", "DOIT_MUTATE_MAX_SLOTS", "XDG_DATA_HOME", "XDG_CACHE_HOME")
GIT = (
    ("for-each-ref", "--format=%(refname) %(objectname) %(HEAD) %(worktreepath)", "refs/heads"),
    ("status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--no-renames"),
)


def remember(home: Path, root: Path, words: Sequence[str] | None, files: Iterable[Path], said: str) -> None:
    """Keep what this run looked at, and what it said. home: the folder of the cache; root: of the project."""
    looked = sorted({str(path) for path in (*files, *_always(home))})
    note = {"root": str(root), "files": looked, "said": said, "state": _state(root, words, looked)}
    beside = home / f".{NAME}"
    beside.write_text(json.dumps(note))
    beside.replace(home / NAME)


def find(home: Path, words: Sequence[str] | None) -> str | None:
    """What the last run said that had nothing to do, if nothing has changed since; else None."""
    try:
        note = json.loads((home / NAME).read_text())
        same = note["state"] == _state(Path(note["root"]), words, [*note["files"]])
        return str(note["said"]) if same and set(map(str, _always(home))) <= set(note["files"]) else None
    except (OSError, ValueError, KeyError, TypeError, process.NotFound):
        return None


def _always(home: Path) -> list[Path]:
    """The targets and the database, the plan, and this package: files that are new count too."""
    beside = home.parent
    package = Path(__file__).parent
    code = (p for p in package.rglob("*") if p.suffix in (".py", ".mjs"))
    return [beside / "tasks.yaml", beside / "dodo.py", home / "doit.db", *(home / "scopes").rglob("*.json"), *code]


def _state(root: Path, words: Sequence[str] | None, files: Iterable[str]) -> str:
    parts: list[object] = [words, [os.environ.get(name) for name in VARIABLES]]
    for path in files:
        stat = Path(path).stat()
        parts.append((path, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    for args in GIT:
        ran = process.run(["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *args], cwd=root, brief=True)
        if not ran.ok:
            raise OSError(ran.tail(2))
        parts.append(ran.text)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
