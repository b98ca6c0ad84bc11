"""Which tasks do changed files reach? They alone are loaded, judged and run: of all others the note of the last run
says that they are up to date (unchanged.py).

A plan of declared tasks that name files is kept as it was loaded, task by task, so that a few of them can be had again
without the rest. What a task does to those that come after it is not guessed: they are loaded with it, and doit judges
each of them when it has ended.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import orjson

from pipeline import contents, filescopes, model, patterns
from pipeline.unchanged import Changed, Look

TABLE = "selected.json"
Tasks = Mapping[str, Mapping[str, Any]]  # by name: what is not a default of model.Task


class Narrowed(NamedTuple):
    """A plan of the tasks that are reached, and what is known of the others."""

    plan: model.Plan
    needs: Mapping[str, Sequence[str]]  # task -> those of the others that it waits for where all are loaded
    others: Sequence[str]  # their names: they are up to date
    notes: Sequence[str]  # what people are told before such a run
    look: Look  # as all files were before
    words: Sequence[str] | None  # the selection
    table: str  # what is kept of the whole plan


def keep(home: Path, plan: model.Plan, selected: Iterable[str], notes: Sequence[str]) -> str:
    """Keep a plan that was loaded whole; a name for it, "" where it holds more than can be had again from here. Raises
    OSError."""
    names = set(selected)
    tasks = {task.name: _brief(task) for task in plan.tasks if task.name in names}
    about = {key: getattr(plan, key) for key in _OF_PLAN} | {"engine": attrs.asdict(plan.engine)}
    if _plan(about, {}) != attrs.evolve(plan, tasks=()) or any(_task(t.name, _brief(t)) != t for t in plan.tasks):
        return ""
    content = orjson.dumps({"plan": about, "notes": list(notes), "tasks": tasks, "naming": naming(tasks).known})
    beside = home / f".{TABLE}"
    beside.write_bytes(content)
    beside.replace(home / TABLE)
    return hashlib.sha256(content).hexdigest()


def narrowed(home: Path, changed: Changed) -> Narrowed | None:
    """What is to be loaded where only that has changed; None where all of it must be."""
    try:
        content = (home / TABLE).read_bytes()
        if hashlib.sha256(content).hexdigest() != changed.note["table"]:
            return None
        table = orjson.loads(content)
        tasks, inside = table["tasks"], f"{table['plan']['root']}/"
        naming = Naming(**table["naming"])
        found = reach(tasks, naming, (path.removeprefix(inside) for path in changed.files), changed.note["owed"])
        if found is None or not all(_as_declared(inside, home, tasks, naming, found)):
            return None
        loaded = {}
        for name in (name for name in tasks if name in found):
            loaded[name] = {**tasks[name], "needs": [need for need in tasks[name].get("needs", ()) if need in found]}
        plan = _plan(table["plan"], loaded)
        others, note = [name for name in tasks if name not in found], changed.note
        needs = waits(tasks, naming, found)
        return Narrowed(plan, needs, others, table["notes"], changed.look, note["words"], note["table"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def reach(tasks: Tasks, naming: Naming, files: Iterable[str], owed: Iterable[str]) -> set[str] | None:
    """The tasks that read or write one of the files, those that are owed, and all that come after any of them, by need
    or by what they read; None where a file is nobody's. With a task go all that may write where it does: whose work is
    in there is known of all of them together (contents.Holdings)."""
    waiting = list(owed)
    for path in files:
        met = list(naming.meeting(path))
        if not met:
            return None
        waiting += met
    found: set[str] = set()
    written: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += naming.waiting_for.get(name, ())
        for each in tasks[name].get("writes", ()):
            if each not in written:  # a folder that all of them write is looked up once
                written.add(each)
                path, is_file = _spelled(each)
                waiting += naming.meeting(path, not is_file)
    return found


def waits(tasks: Tasks, naming: Naming, loaded: Collection[str]) -> dict[str, list[str]]:
    """Of the tasks that are loaded, those of the others that each would wait for: what it needs, and the makers of what
    it reads, as doit finds them."""
    found = {}
    for name in loaded:
        made = [_makers(tasks, naming, each) for each in tasks[name].get("reads", ()) if _spelled(each)[1]]
        before = dict.fromkeys([*tasks[name].get("needs", ()), *(names[0] for names in made if len(names) == 1)])
        if others := [each for each in before if each not in loaded]:
            found[name] = others
    return found


def _makers(tasks: Tasks, naming: Naming, file: str) -> list[str]:
    """The tasks that write a file, under that name."""
    named = naming.files.get(_spelled(file)[0], ())
    return [name for name in dict.fromkeys(named) if file in tasks[name].get("writes", ())]


@attrs.define
class Naming:
    """Which tasks name a path, or a folder that it is in, and who needs whom. A pattern is the folder that its
    wildcards begin in."""

    files: dict[str, list[str]]
    folders: dict[str, list[str]]
    waiting_for: dict[str, list[str]]
    _in_order: list[tuple[str, list[str]]] | None = attrs.field(default=None, init=False)

    @property
    def known(self) -> dict[str, dict[str, list[str]]]:
        """What it is made of."""
        return {"files": self.files, "folders": self.folders, "waiting_for": self.waiting_for}

    def meeting(self, path: str, all_under_it: bool = False) -> Iterator[str]:
        yield from self.files.get(path, ())
        if self.folders:
            for folder in (".", *contents.above(path), path):
                yield from self.folders.get(folder, ())
        if all_under_it:
            first, last = ("", "\U0010ffff") if path == "." else (f"{path}/", f"{path}0")  # which comes after a slash
            if self._in_order is None:
                self._in_order = sorted([*self.files.items(), *self.folders.items()])
            start, end = (bisect_left(self._in_order, (bound,)) for bound in (first, last))
            for _, names in self._in_order[start:end]:
                yield from names


def naming(tasks: Tasks) -> Naming:
    found = Naming({}, {}, {})
    for name, task in tasks.items():
        for each in (*task.get("reads", ()), *task.get("writes", ())):
            path, is_file = _spelled(each)
            (found.files if is_file else found.folders).setdefault(path, []).append(name)
        for need in task.get("needs", ()):
            found.waiting_for.setdefault(need, []).append(name)
    return found


_PLAIN = re.compile(r"[^*?\[\]{}\\,!]*[^*?\[\]{}\\,!/]").fullmatch


def _spelled(declared: str) -> tuple[str, bool]:
    """The path, or the folder that a pattern's wildcards begin in; is it a file? A large plan names fifty thousand."""
    if _PLAIN(declared):
        return declared, True
    return patterns.lock(declared.removeprefix("!")), filescopes.is_file(declared)


def _as_declared(inside: str, home: Path, tasks: Tasks, naming: Naming, names: Iterable[str]) -> Iterator[bool]:
    """Are the files of these tasks what they were when all was loaded: no link, no folder, and there where nobody makes
    them? Raises OSError where a file stands above one."""
    place = contents.Place(Path(inside), home)
    real: dict[str, bool] = {}
    reads = {each for name in names for each in tasks[name].get("reads", ()) if not each.startswith("!")}
    for each in reads.union(*(tasks[name].get("writes", ()) for name in names)):
        named, is_file = _spelled(each)
        path = f"{inside}{named}"
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder not in real:
            real[folder] = os.path.realpath(folder) == folder
        try:
            kind = os.lstat(path).st_mode
        except FileNotFoundError:
            met = naming.meeting(named)
            yield real[folder] and any(each in tasks[name].get("writes", ()) for name in met)
            continue
        if is_file:
            yield real[folder] and stat.S_ISREG(kind)
        else:
            yield real[folder] and stat.S_ISDIR(kind) and (each not in reads or place.holds(each))


_OF_PLAN = ("path", "root", "store", "pools")
_OF_TASK = ("reads", "writes", "needs", "pool", "doc", "env", "timeout", "memory")


def _brief(task: model.Task) -> dict[str, Any]:
    """What is not left out in most plans."""
    more = {key: value for key in _OF_TASK if (value := getattr(task, key)) and value != model.VALIDATION}
    return {"run": task.run, **more}


def _plan(about: Mapping[str, Any], tasks: Tasks) -> model.Plan:
    engine = model.EngineConfig(**{key: _frozen(value) for key, value in about["engine"].items()})
    made = (_task(name, said) for name, said in tasks.items())
    rest: dict[str, Any] = {"generate": model.GenerateConfig(), "land": model.LandConfig(), "scopes": ()}
    return model.Plan(**{key: about[key] for key in _OF_PLAN}, **rest, engine=engine, tasks=tuple(made))


def _task(name: str, said: Mapping[str, Any]) -> model.Task:
    return model.Task(name, **{key: _frozen(value) for key, value in said.items()})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
