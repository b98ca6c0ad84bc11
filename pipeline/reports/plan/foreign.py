"""Plans of agent orchestrators -> jobs, and every mistake at once. Reads one JSON file.

Two formats. A plan index gives each task's wave and files, and no dependencies:
`{"tasks": [{"id": 1, "wave": 0, "files": [...], ...}], ...}`. Fragments give dependencies and no waves:
`{"key": ..., "tasks": [{"key": ..., "deps": [...], "files": [...], ...}]}`, or `{"subsystems": [such, ...]}`; the keys
of tasks are unique over all of them. In both a directory ends with a slash, and what a task names it writes.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline.analysis import Job
from pipeline.config import shortest_cycle
from pipeline.source import Where, nearest, quoted, spelled

INDEX, FRAGMENTS = "plan index", "fragments"

# Of each object: the fields that the checks need, and those that the format has beside them.
_PLAN = (("tasks",), ("schema_version", "meta", "plan_hash", "generated_at"))
_TASK = (("id", "wave", "files"), ("description", "verify_commands", "codex", "goals"))
_FRAGMENT = (("tasks",), ("key",))
_PART = (("key", "deps", "files"), ("description",))
_SUBSYSTEMS = (("subsystems",), ())


@attrs.frozen
class Foreign:
    """A plan from elsewhere, as far as it could be read."""

    format: str
    jobs: tuple[Job, ...] = ()
    given: Mapping[str, int] | None = None  # job → its wave, where the format has waves
    missing: tuple[str, ...] = ()  # places of fields that the format has and this file lacks, and no check needs
    unknown: Mapping[str, Any] = attrs.field(factory=dict)  # place → what stands there, of fields that no format has
    problems: tuple[str, ...] = ()  # each with its place


def read(path: str) -> Foreign:
    """What the file holds. Nothing is judged of a plan with problems: only its jobs may be incomplete."""
    reader = _Reader(path)
    data = reader.load()
    if reader.problems:
        return reader.foreign("", ())
    if isinstance(data, dict) and "subsystems" in data:
        fragments = reader.items(reader.object(data, (), _SUBSYSTEMS), (), "subsystems")
        return reader.of_fragments([(("subsystems", index), each) for index, each in fragments])
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(tasks, list):
        either = '{"key": ..., "tasks": [...]} or {"subsystems": [...]}'
        reader.problem((), f'is neither a plan index ({{"tasks": [...]}}) nor fragments ({either})')
        return reader.foreign("", ())
    if "key" in data or any(isinstance(task, dict) and "key" in task and "id" not in task for task in tasks):
        return reader.of_fragments([((), data)])
    return reader.of_index(data)


def overlaps(jobs: Iterable[Job], wave: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """Jobs of one wave that write one path: the path, who comes first, the other. A directory is all that is in it."""
    held: dict[tuple[int, str], str] = {}  # wave and path → who writes it
    below: dict[tuple[int, str], tuple[str, str]] = {}  # wave and directory → who writes something under it, and what
    for job in jobs:
        at = wave[job.name]
        for path in job.writes:
            itself, *above = _upwards(path)
            other = next((held[at, each] for each in (itself, *above) if (at, each) in held), None)
            if other is not None:
                yield path, other, job.name
            elif (at, itself) in below:
                other, under = below[at, itself]
                yield under, other, job.name
        for path in job.writes:
            itself, *above = _upwards(path)
            held.setdefault((at, itself), job.name)
            for each in above:
                below.setdefault((at, each), (job.name, path))


def _upwards(path: str) -> list[str]:
    """The path, then every directory above it; that of the project is ''."""
    steps = ["" if path in (".", "./") else path.rstrip("/")]
    while steps[-1]:
        steps.append(posixpath.dirname(steps[-1]))
    return steps


@attrs.define
class _Reader:
    path: str
    problems: list[str] = attrs.field(factory=list)
    missing: list[str] = attrs.field(factory=list)
    unknown: dict[str, Any] = attrs.field(factory=dict)

    def problem(self, where: Where, what: str, remedy: str = "") -> None:
        at = f"{self.path}: {spelled(where)}: " if where else f"{self.path}: "
        self.problems.append(f"{at}{what}" + (f"; {remedy}" if remedy else ""))

    def foreign(self, format_: str, jobs: Sequence[Job], given: Mapping[str, int] | None = None) -> Foreign:
        return Foreign(format_, tuple(jobs), given, tuple(self.missing), self.unknown, tuple(self.problems))

    # -- JSON

    def load(self) -> Any:
        try:
            text = Path(self.path).read_bytes().decode("utf-8-sig")
            data = json.loads(text, object_pairs_hook=self._pairs)
            json.dumps(data, ensure_ascii=False).encode()  # all of it may be shown
            return data
        except OSError as error:
            self.problem((), f"cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            self.problem((), f"byte 0x{error.object[error.start]:02x} is not UTF-8")
        except UnicodeEncodeError as error:
            self.problem((), f"{error.object[error.start]!a} is half a character", "write the whole of it")
        except json.JSONDecodeError as error:
            self.problem((), f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}")
        except RecursionError:
            self.problem((), "nested too deeply")
        except ValueError as error:  # a number of thousands of digits
            self.problem((), f"not JSON that can be read: {error}")
        return None

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            twice = sorted({quoted(name) for name in names if names.count(name) > 1})
            self.problem((), f"an object has {', '.join(twice)} twice", "keep one")
        return found

    # -- the formats

    def of_index(self, data: dict[str, Any]) -> Foreign:
        self.object(data, (), _PLAN)
        jobs: list[Job] = []
        given: dict[str, int] = {}
        places: dict[str, Where] = {}
        for index, item in self.items(data, (), "tasks"):
            where: Where = ("tasks", index)
            task = self.object(item, where, _TASK)
            id_ = self.value(task, where, "id", lambda v: type(v) is int or _is_text(v), "a number or text")
            wave = self.value(task, where, "wave", lambda v: type(v) is int and v >= 0, "a whole number from 0")
            files = self.files(task, where)
            if id_ is not None and self.once(str(id_), (*where, "id"), places):
                jobs.append(Job(str(id_), writes=files))
                given[str(id_)] = wave if wave is not None else 0
        return self.foreign(INDEX, jobs, given)

    def of_fragments(self, fragments: Sequence[tuple[Where, Any]]) -> Foreign:
        jobs: list[Job] = []
        places: dict[str, Where] = {}
        asked: list[tuple[Where, str]] = []
        for at, data in fragments:
            fragment = self.object(data, at, _FRAGMENT)
            self.value(fragment, at, "key", _is_text, "text")
            for index, item in self.items(fragment, at, "tasks"):
                where = (*at, "tasks", index)
                task = self.object(item, where, _PART)
                key = self.value(task, where, "key", _is_text, "text")
                deps = self.texts(task, where, "deps")
                files = self.files(task, where)
                asked += [((*where, "deps", position), dep) for position, dep in deps]
                if key is not None and self.once(key, (*where, "key"), places):
                    jobs.append(Job(key, tuple(dict.fromkeys(dep for _, dep in deps)), writes=files))
        for where, dep in asked:
            if dep not in places:
                self.problem(where, f"no task has the key {quoted(dep)}", nearest(dep, places))
        if cycle := shortest_cycle({job.name: job.needs for job in jobs}):
            what = "no task of a cycle can ever start: " + " → ".join([*cycle, cycle[0]])
            self.problem((*places[cycle[0]][:-1], "deps"), what, "take one of these `deps` out")
        return self.foreign(FRAGMENTS, jobs)

    # -- values

    def object(self, value: Any, where: Where, fields: tuple[tuple[str, ...], tuple[str, ...]]) -> dict[str, Any]:
        """`value` if it is an object, else {}; its fields that are missing, and those that are unknown, are noted."""
        needed, known = fields
        if not isinstance(value, dict):
            self.problem(where, f"expected an object with {', '.join(needed)}, got {_shown(value)}")
            return {}
        for name in needed:
            if name not in value:
                self.problem(where, f"`{name}` is missing")
        self.missing += [spelled((*where, name)) for name in known if name not in value]
        self.unknown |= {spelled((*where, name)): value[name] for name in value if name not in (*needed, *known)}
        return value

    def value(self, of: dict[str, Any], where: Where, name: str, fits: Callable[[Any], bool], what: str) -> Any:
        value = of.get(name)
        if name in of and not fits(value):
            self.problem((*where, name), f"expected {what}, got {_shown(value)}")
            return None
        return value

    def items(self, of: dict[str, Any], where: Where, name: str) -> Iterator[tuple[int, Any]]:
        return enumerate(self.value(of, where, name, lambda v: isinstance(v, list), "a list") or ())

    def texts(self, of: dict[str, Any], where: Where, name: str) -> list[tuple[int, str]]:
        found = []
        for position, text in self.items(of, where, name):
            if _is_text(text):
                found.append((position, text))
            else:
                self.problem((*where, name, position), f"expected text, got {_shown(text)}")
        return found

    def files(self, task: dict[str, Any], where: Where) -> tuple[str, ...]:
        """Each path in one spelling; a directory keeps its slash."""
        found = []
        for position, text in self.texts(task, where, "files"):
            path = posixpath.normpath(text)
            if path == ".." or path.startswith(("../", "/")):
                self.problem((*where, "files", position), f"{quoted(text)} lies outside the project")
            else:
                found.append(path + "/" if text.endswith("/") else path)
        return tuple(dict.fromkeys(found))

    def once(self, name: str, where: Where, places: dict[str, Where]) -> bool:
        if name in places:
            what = f"two tasks are called {quoted(name)} (also {spelled(places[name])})"
            self.problem(where, what, "a name is given once")
            return False
        places[name] = where
        return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return quoted(value) if isinstance(value, str) else json.dumps(value)
