"""Nothing to do, or little, recognised before anything is loaded: what has changed of all that a run looked at?

What is looked at: the selection; the checkout, its branches and where they are checked out, as git tells; the files of
the plan, of this package, of the engine and of every target, by times, size and inode; the variables that move things.
Where a plan has nothing but declared tasks, and those name files, git has nothing to tell; and where only such files
have changed, the tasks that they reach are all that there is to load (reached.py). Any doubt, and any option but -n,
leaves it to the full check. What `doit list` says is kept likewise.

A note says: each task of the selection is up to date, unless a file that it names is not as it is here, or it is owed.
So it holds the files as they were before the first task was judged: what was edited meanwhile is another by then.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

RUN, LIST = "unchanged.json", "listed.json"
VARIABLES = ("PATH", "HOME", "DOIT_MUTATE_HOME", "DOIT_MUTATE_MAX_SLOTS", "XDG_DATA_HOME", "XDG_CACHE_HOME")
GIT = (
    ("for-each-ref", "--format=%(refname) %(objectname) %(HEAD) %(worktreepath)", "refs/heads"),
    ("status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--no-renames"),
)
_OURS = ["from pipeline import plan", "DOIT_CONFIG, task_plan = plan(__file__)"]
State = list[int] | None  # of a file; None: it is not there


class Look(NamedTuple):
    """All that was looked at, as it was at one moment."""

    fixed: dict[str, State]  # where one of these has changed, anything may have to be done
    files: dict[str, State]  # what the tasks name, and what is in the directories and patterns that they name
    rest: list[Any]  # variables, and what git says
    named: list[str]  # of the files, those that are named
    wide: list[str]  # directories and patterns, as they are declared


class Changed(NamedTuple):
    """What has changed, where it is files of tasks alone, or nothing."""

    look: Look  # as it is now
    files: list[str]
    note: dict[str, Any]


def only_ours(dodo: Path) -> bool:
    """Has the dodo file no tasks but the plan's? What others look at is not known. Raises OSError."""
    lines = (line.partition("#")[0].strip() for line in dodo.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line] == _OURS


def look(home: Path, root: Path, fixed: Iterable[str], named: list[str], wide: list[str], name: str, git: bool) -> Look:
    """home: the folder of the cache; root: of the project; name: of the note. git: does anything depend on what git
    tells? Raises OSError."""
    files = [*named]
    if wide:
        from pipeline.contents import Place

        files += (f"{root}/{path}" for path in Place(root, home.resolve()).seen(wide))
    state = _kind if name == LIST else _state
    always = states({*fixed, *_always(home, name)})
    rest: list[Any] = [os.environ.get(variable) for variable in VARIABLES]
    return Look(always, {path: state(path) for path in files}, [*rest, *(_git(root) if git else ())], named, wide)


def keep(home: Path, name: str, seen: Look, root: Path, words: Sequence[str] | None, git: bool, **more: Any) -> None:
    """Write a note. words: the selection. more: what `find` is to give beside it. Raises OSError."""
    seen = seen if seen.wide else seen._replace(named=[])  # they are the files, and many
    note = {"root": str(root), "words": words, "git": git, **seen._asdict(), **more}
    beside = home / f".{name}"
    beside.write_bytes(orjson.dumps(note))
    beside.replace(home / name)


def find(home: Path, words: Sequence[str] | None, name: str = RUN) -> Changed | None:
    """The note of the last such run, and what has changed since; None where more has than files of its tasks."""
    try:
        note = orjson.loads((home / name).read_bytes())
        if note["words"] != words:
            return None
        fixed, files = note["fixed"], note["files"]
        named = note["named"] if note["wide"] else [*files]
        now = look(home, Path(note["root"]), fixed, named, note["wide"], name, note["git"])
        if now.fixed != fixed or now.rest != note["rest"]:
            return None
        paths = () if now.files == files else dict.fromkeys([*files, *now.files])
        return Changed(now, [path for path in paths if now.files.get(path) != files.get(path)], note)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def database(home: Path) -> list[str]:
    """doit's, which a run writes. A run that was killed leaves the second one."""
    return [f"{home}/doit.db", f"{home}/doit.db-wal"]


def _always(home: Path, name: str) -> list[str]:
    """The plan and this package, and for a run the targets and the database: files that are new count too."""
    beside = home.parent
    package = os.path.dirname(__file__)  # noqa: PTH120 - and so on: each Path would cost more than the look at its file
    code = [path for path in _below(package) if path.endswith((".py", ".mjs"))]
    plan = [f"{beside}/tasks.yaml", f"{beside}/dodo.py", *code]
    if name == LIST:
        return plan
    targets = [path for path in _below(f"{home}/scopes") if path.endswith(".json")]
    return [*plan, *database(home), *targets]


def _below(folder: str) -> list[str]:
    return [f"{here}/{name}" for here, _, names in os.walk(folder) for name in names]


def states(paths: Iterable[str]) -> dict[str, State]:
    return {path: _state(path) for path in paths}


def _state(path: str) -> State:
    try:
        found = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None
    # The time of the last change cannot be set: an edit that keeps the time and the size has another.
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino]


def _kind(path: str) -> State:
    """`doit list` needs no output of a task, and says the same whatever is in a file that is there."""
    try:
        return [stat.S_IFMT(os.stat(path).st_mode)]  # noqa: PTH116
    except FileNotFoundError:
        return None


def _git(root: Path) -> list[str]:
    from pipeline import process

    said = []
    for args in GIT:
        try:
            ran = process.run(["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *args], cwd=root, brief=True)
        except process.NotFound as error:
            raise OSError(str(error)) from None
        if not ran.ok:
            raise OSError(ran.tail(2))
        said.append(ran.text)
    return said
