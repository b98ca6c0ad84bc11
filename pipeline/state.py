"""doit's record of what succeeded, kept so that kill -9 costs nothing that had finished."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import filelock
import orjson
from doit.dependency import JSONCodec, SqliteDB
from doit.exceptions import BaseFail, DependencyError, TaskError

_UNREADABLE = """
    select 1 from doit where case when json_valid(cast(task_data as text))
    then json_type(cast(task_data as text)) is not 'object' else 1 end limit 1
"""


def heal(database: Path, lock: Path) -> None:
    """Set a damaged database aside: doit would end with a traceback, whatever is asked of it.

    lock: what a run holds. Costs a read of the database. Raises filelock.Timeout while a run is alive, and
    sqlite3.OperationalError where nothing can be read: a full disk, for one.
    """
    if not database.exists() or _sound(database):
        return
    with filelock.FileLock(lock).acquire(timeout=0):
        aside = database.with_name(f"{database.name}.damaged")
        database.replace(aside)
        for more in ("-wal", "-shm"):
            database.with_name(f"{database.name}{more}").unlink(missing_ok=True)
        sys.stderr.write(f"{database} is damaged: set aside as {aside.name}, all tasks are judged anew\n")


def _sound(database: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection:
            if connection.execute("pragma quick_check(1)").fetchone()[0] != "ok":
                return False
            begun = connection.execute("select 1 from sqlite_master where name = 'doit'").fetchone()
            return not (begun and connection.execute(_UNREADABLE).fetchone())
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        return False


_MOST = 500  # names in one question
_LONG = re.compile(r"\d{19}").search  # a whole number that may be more than 64 bits hold


class State:
    """With the backend sqlite3 each task is committed as it starts and as it ends; with others as doit does it."""

    def __init__(self, manager: Any, names: Iterable[str]) -> None:
        self._manager, self._backend = manager, manager.backend
        self._inputs: dict[str, dict[str, Any]] = {}
        self._durable = isinstance(self._backend, SqliteDB)
        if self._durable:
            # doit writes its database once, at the end: kill -9 lost every finished task. A commit costs 2 ms with
            # sqlite's defaults and 40 µs so; a power cut may take the last ones, never the database.
            self._backend._conn.execute("PRAGMA journal_mode=WAL")
            self._backend._conn.execute("PRAGMA synchronous=NORMAL")
            self._version = self._data_version()
            self._read_ahead(list(names))

    def _read_ahead(self, names: Sequence[str]) -> None:
        """doit asks for one row a task: a third of the time of a run with nothing to do."""
        for start in range(0, len(names), _MOST):
            some = names[start : start + _MOST]
            self._backend._cache.update((name, {}) for name in some)  # else doit asks for each that has no row
            these = ",".join("?" * len(some))
            asked = f"select task_id, cast(task_data as text) as text from doit where task_id in ({these})"
            for row in self._backend._conn.execute(asked, some):
                self._backend._cache[row["task_id"]] = self._decoded(row["text"])

    def _decoded(self, text: str) -> Any:
        """As doit would; with one text for what all rows say, where JSON is doit's own."""
        if type(self._backend.codec) is JSONCodec and not _LONG(text):
            with contextlib.suppress(orjson.JSONDecodeError):
                return orjson.loads(text)
        return self._backend.codec.decode(text)

    def alone(self) -> bool:
        """Has nobody else written in the database since it was read? A `doit forget`, for one. Before it is closed."""
        return self._durable and self._version == self._data_version()

    def _data_version(self) -> object:
        return self._backend._conn.execute("pragma data_version").fetchone()["data_version"]

    def begin(self, task: Any) -> None:
        """The task starts: remember its inputs as they are now, and forget, durably, that it ever succeeded.

        Taken at the end, the state of an input that was edited meanwhile would pass for the one it had been made from.
        Left in place, the record of an earlier success would vouch for a target cut short by kill -9.
        """
        known = self._manager._get(task.name, "checker:") == type(self._manager.checker).__name__
        self._inputs[task.name] = inputs = {}
        for path in task.file_dep:
            with contextlib.suppress(OSError):
                before = self._manager._get(task.name, path) if known else None
                state = self._manager.checker.get_state(path, before)  # None: as before
                inputs[path] = before if state is None else state
        if not self._durable or self._backend._cache.get(task.name) != {}:
            self._manager.remove_success(task)
            self.commit()

    def save(self, task: Any) -> BaseFail | None:
        """The task succeeded, unless this says otherwise."""
        task.save_extra_values()
        try:
            # What can't be written is found out when doit writes it all, at the end: every task's state was lost.
            self._backend.codec.encode({"values": task.values, "result": task.result})
        except (TypeError, ValueError, RecursionError) as error:
            return TaskError(f"{task.name}: what it returned can't be saved: {error}")
        inputs = self._inputs.pop(task.name, {})
        try:
            self._set_inputs(task, inputs)  # spares doit hashing again what has not changed
            self._manager.save_success(task)
            self._set_inputs(task, inputs)
        except FileNotFoundError as error:
            return DependencyError(
                f"ERROR: Task '{task.name}' saving success: Dependent file '{error.filename}' does not exist."
            )
        self.commit()
        return None

    def _set_inputs(self, task: Any, inputs: Mapping[str, Any]) -> None:
        for path, state in inputs.items():
            self._manager._set(task.name, path, state)

    def forget(self) -> None:
        """Nothing is asked of doit's database any more."""
        if self._durable:
            self._backend._cache.clear()

    def commit(self) -> None:
        if self._durable:
            for name in self._backend._dirty:
                text = self._backend.codec.encode(self._backend._cache[name])
                self._backend._conn.execute("insert or replace into doit values (?,?)", (name, text))
            self._backend._dirty.clear()
            self._backend._conn.commit()
