"""Nothing to do, recognised before anything is loaded: all that a run looked at that found nothing to do is as it was.

What is looked at: the selection; the checkout, its branches and where they are checked out, as git tells; the files of
the plan, of this package, of the engine and of every target, by times, size and inode; the variables that move things.
Where a plan has nothing but declared tasks, and those name files, git has nothing to tell. Any doubt, and any option
but -n, leaves it to the full check. What `doit list` says is kept likewise.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline import process

RUN, LIST = "unchanged.json", "listed.json"
VARIABLES = ("PATH", "HOME", "DOIT_MUTATE_HOME", "DOIT_MUTATE_MAX_SLOTS", "XDG_DATA_HOME", "XDG_CACHE_HOME")
GIT = (
    ("for-each-ref", "--format=%(refname) %(objectname) %(HEAD) %(worktreepath)", "refs/heads"),
    ("status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--no-renames"),
)


_OURS = ["from pipeline import plan", "DOIT_CONFIG, task_plan = plan(__file__)"]


def only_ours(dodo: Path) -> bool:
    """Has the dodo file no tasks but the plan's? What others look at is not known. Raises OSError."""
    lines = (line.partition("#")[0].strip() for line in dodo.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line] == _OURS


def remember(
    home: Path, root: Path, words: Sequence[str] | None, files: Iterable[Path | str], said: str, *, name: str = RUN,
    git: bool = True,
) -> None:  # fmt: skip
    """Keep what this run looked at, and what it said. home: the folder of the cache; root: of the project. git: does
    anything depend on what git tells?"""
    looked = sorted({str(path) for path in files}.union(_always(home, name)))
    note = {"root": str(root), "git": git, "files": looked, "said": said, "state": _state(root, words, looked, git)}
    beside = home / f".{name}"
    beside.write_text(json.dumps(note))
    beside.replace(home / name)


def find(home: Path, words: Sequence[str] | None, name: str = RUN) -> str | None:
    """What the last run said that had nothing to do, if nothing has changed since; else None."""
    try:
        note = json.loads((home / name).read_text())
        same = note["state"] == _state(Path(note["root"]), words, note["files"], note["git"])
        return str(note["said"]) if same and set(_always(home, name)) <= set(note["files"]) else None
    except (OSError, ValueError, KeyError, TypeError, process.NotFound):
        return None


def _always(home: Path, name: str) -> list[str]:
    """The plan and this package, and for a run the targets and the database: files that are new count too."""
    beside = home.parent
    package = os.path.dirname(__file__)  # noqa: PTH120 - and so on: each Path would cost more than the look at its file
    code = [path for path in _below(package) if path.endswith((".py", ".mjs"))]
    plan = [f"{beside}/tasks.yaml", f"{beside}/dodo.py", *code]
    if name == LIST:
        return plan
    targets = [path for path in _below(f"{home}/scopes") if path.endswith(".json")]
    return [*plan, f"{home}/doit.db", *targets]


def _below(folder: str) -> list[str]:
    return [f"{here}/{name}" for here, _, names in os.walk(folder) for name in names]


def _state(root: Path, words: Sequence[str] | None, files: Sequence[str], git: bool) -> str:
    parts: list[object] = [words, [os.environ.get(name) for name in VARIABLES]]
    for path in files:
        try:
            stat = os.stat(path)  # noqa: PTH116
        except FileNotFoundError:  # `doit list` needs no output of a task
            parts.append((path, None))
            continue
        # The time of the last change cannot be set: an edit that keeps the time and the size has another.
        parts.append((path, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino))
    for args in GIT if git else ():
        ran = process.run(["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *args], cwd=root, brief=True)
        if not ran.ok:
            raise OSError(ran.tail(2))
        parts.append(ran.text)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
