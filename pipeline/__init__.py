"""The door: what a dodo.py needs.

from pipeline import plan
DOIT_CONFIG, task_plan = plan(__file__)
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
    from doit.exceptions import InvalidDodoFile

    from pipeline import config, reports, session, tasks

    path = Path(dodo).absolute().parent / "tasks.yaml"
    try:
        loaded = config.load(path)
    except config.PlanErrors as errors:
        raise InvalidDodoFile(str(errors)) from None
    try:
        _make_cache(path.parent / "cache")
    except OSError as error:
        raise InvalidDodoFile(f"{path.parent / 'cache'} cannot be written: {error.strerror}") from None
    host = session.Session(loaded, reports.notes, reports.close)
    settings = {
        "backend": "sqlite3",
        "dep_file": "cache/doit.db",
        "default_tasks": ["mutate"],
        "verbosity": 1,
    }
    return settings, lambda: tasks.tasks(host)


def _make_cache(folder: Path) -> None:
    """doit opens its database there before any task runs. Raises OSError."""
    for name, text in CACHE_FILES.items():
        place = folder / name
        if not place.exists():
            folder.mkdir(exist_ok=True)
            place.write_text(text)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
