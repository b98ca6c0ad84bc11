"""The door: what a dodo.py needs.

from pipeline import plan
DOIT_CONFIG, task_plan = plan(__file__)
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.reached import Narrowed

BEGAN = time.time_ns()  # nothing of any plan had been read then
CACHE_FILES = {
    ".gitignore": "*\n!.gitignore\n!CACHEDIR.TAG\n",
    "CACHEDIR.TAG": (
        "Signature: 8a477f597d28d172789f06886806bc55\n"
        "# This directory holds what can be computed again. See https://bford.info/cachedir/\n"
    ),
}


def plan(dodo: str) -> tuple[dict[str, Any], Callable[[], Iterator[dict[str, Any]]]]:
    """doit's configuration and task creator for the tasks.yaml beside the dodo file.

    Raises doit's InvalidDodoFile with every mistake in tasks.yaml: doit says them without a traceback and exits with 3.
    """
    import filelock
    from doit import get_var
    from doit.exceptions import InvalidDodoFile

    from pipeline import config, declared, reports, session, state
    from pipeline.worktree import GitError, find_repository

    path = Path(dodo).absolute().parent / "tasks.yaml"
    try:
        # What makes a tasks.yaml of another plan may begin without one.
        loaded = config.load(path, may_be_empty={"plan", "--write"} <= set(sys.argv[1:]))
    except config.PlanErrors as errors:
        raise InvalidDodoFile(str(errors)) from None
    cache, database = path.parent / "cache", _DATABASE
    try:
        _make_cache(cache)
        state.heal(cache / "doit.db", cache / "run.lock")
    except filelock.Timeout:
        raise InvalidDodoFile(f"{cache / 'doit.db'} is damaged, and a run is alive: wait for it, or end it") from None
    except OSError as error:
        if sys.argv[1:2] != ["report"]:
            raise InvalidDodoFile(f"{cache} cannot be written: {error.strerror}") from None
        database = ":memory:"  # a report reads what is there; doit wants a database, and one that it can write
    except sqlite3.OperationalError as error:
        raise InvalidDodoFile(f"{cache / 'doit.db'} cannot be opened: {error} (is the disk full?)") from None
    since = get_var("since", loaded.since)
    if get_var("since") == "":  # as it comes of `since=$BASE` where nothing is in BASE
        sys.stderr.write("since= names no commit: this is the whole plan\n")
    if since:
        from pipeline import narrow

        try:
            loaded = narrow.narrowed(loaded, since, find_repository(Path(loaded.root)))
        except (GitError, narrow.NoSuchRef) as error:
            raise InvalidDodoFile(str(error)) from None
        if not loaded.scopes:
            sys.stderr.write(f"since={since}: no line of any scope has changed\n")
    host = session.Session(loaded, reports.notes, reports.close)
    # Where nothing is to be mutated, `mutate` would be done at once, and look like all that was declared.
    default = [
        *(["mutate"] if loaded.scopes else [task.name for task in loaded.commands]),
        *(["build"] if loaded.changes else []),
    ]
    if not (loaded.scopes or loaded.changes):
        return _settings(default, database), lambda: declared.alone(host)
    from pipeline import tasks

    return _settings(default, database), lambda: tasks.tasks(host)


def few(narrowed: Narrowed) -> Any:
    """doit's loader of those tasks alone that changed files reach, in the place of the dodo file."""
    from doit.cmd_base import ModuleTaskLoader

    from pipeline import declared, reports, session

    host = session.Session(narrowed.plan, reports.notes, reports.close, narrowed)
    settings = _settings([task.name for task in narrowed.plan.tasks])
    return ModuleTaskLoader({"DOIT_CONFIG": settings, "task_plan": lambda: declared.tasks(host, narrowed.needs)})


_DATABASE = "cache/doit.db"


def _settings(default: list[str], database: str = _DATABASE) -> dict[str, Any]:
    return {"backend": "sqlite3", "dep_file": database, "default_tasks": default, "verbosity": 1}


def _make_cache(folder: Path) -> None:
    """doit opens its database there before any task runs. Raises OSError."""
    for name, text in CACHE_FILES.items():
        place = folder / name
        if not place.exists():
            folder.mkdir(exist_ok=True)
            place.write_text(text)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
