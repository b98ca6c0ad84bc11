"""Declared tasks -> doit's task dicts. As tasks.py, and light: a run that loads a few of many tasks loads this alone.

What they do is in commands.py.
"""

from __future__ import annotations

import contextlib
import inspect
import posixpath
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from doit.tools import config_changed

from pipeline import filescopes, patterns, reports
from pipeline.action import Step
from pipeline.contents import Contents
from pipeline.host import Attempt, CannotGoOn, Performer, Slot
from pipeline.model import Task
from pipeline.results import converter
from pipeline.session import Session


def tasks(session: Session, others: Mapping[str, Sequence[str]] | None = None) -> Iterator[dict[str, Any]]:
    """In the order in which doit lists and, without -n, runs them. others: task -> those that it waits for and that are
    not loaded, for they are up to date."""

    def perform(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        from pipeline.commands import Commands

        with told_of_loss(session):
            return Commands(session).perform(keys, slot)

    made = filescopes.targets(session.plan.commands)
    for task in session.plan.commands:
        found = _declared(session, task, made[task.name], perform)
        if others and task.name in others:
            found["meta"]["others"] = others[task.name]
        yield found


@contextlib.contextmanager
def told_of_loss(session: Session) -> Iterator[None]:
    """A file of ours that somebody removes while it is needed is nobody's fault in the code."""
    try:
        yield
    except FileNotFoundError as error:
        gone = Path(str(error.filename))
        if not any(gone.is_relative_to(place) for place in (session.home, session.places.cache, session.places.data)):
            raise
        raise CannotGoOn(f"{gone} is gone: something removed it while the run needed it; run again") from None


def alone(session: Session) -> Iterator[dict[str, Any]]:
    """All tasks of a plan that has no others: as tasks.tasks, without what makes those."""
    yield from tasks(session)
    yield from groups()
    yield from reports.tasks(session)


def groups() -> Iterator[dict[str, Any]]:
    """Of the tasks of scopes: they are there where there is none."""
    for kind, doc in _GROUPS:
        yield {"basename": kind, "name": None, "doc": doc}


_GROUPS = (
    ("mutate", "measure, search, generate, prove and land every scope"),
    ("baseline", "measure every scope, and audit its survivors"),
    ("search", "look for tests without a model: those proved earlier, then the embedded generators'"),
    ("generate", "ask the models for tests that kill what is left"),
    ("validate", "prove candidates"),
    ("land", "put proved tests on the landing branch"),
    ("confirm", "let the engine measure what has landed"),
)


def _declared(session: Session, task: Task, made: Sequence[str], performer: Performer) -> dict[str, Any]:
    plan, locks = session.plan, filescopes.locks(task)
    files = [each for each in task.reads if filescopes.is_file(each)]
    more = [each for each in task.reads if not filescopes.is_file(each)]
    uptodate: list[Any] = []
    if task.reads:  # without any, it runs every time
        uptodate = [Said(task), Left(session, task.name)]
    if more:
        uptodate.append(Read(session, more))
    return {
        "basename": task.name,
        "doc": task.doc or f"run {task.run[0]}",
        "actions": [Step(session, task.name, performer)],
        "file_dep": [_path(plan.root, plan.path, patterns.lock(each)) for each in files],
        "targets": [_path(plan.root, plan.path, patterns.lock(each)) for each in made],
        "task_dep": list(task.needs),
        "uptodate": uptodate,
        "meta": {
            "pool": task.pool, "kind": "task", "scope": None, "run": list(task.run),
            "reads": sorted(_under(plan.root, each) for each in locks.reads),
            # Who waits for a lock that another task of this run holds takes no slot meanwhile.
            "writes": sorted([*(_under(plan.root, each) for each in locks.writes), *_locks(task)]),
            **({"memory": task.memory} if task.memory else {}),
        },
    }  # fmt: skip


def _path(root: str, plan: str, path: str) -> str:
    """A project file as doit sees it: from the folder of tasks.yaml."""
    absolute = _under(root, path)
    home = f"{posixpath.dirname(plan)}/"
    return absolute[len(home) :] if absolute.startswith(home) else absolute


def _under(root: str, path: str) -> str:
    """As Path spells it, for a plan that names fifty thousand."""
    plain = path and not path.startswith(("/", "./")) and "//" not in path and "/./" not in path
    if plain and not path.endswith(("/", "/.")) and path != ".":
        return f"{root.rstrip('/')}/{path}"
    return str(Path(root) / path)


def _locks(task: Task) -> list[str]:
    """The lock over the machine, by a name that no path has: all of those are absolute."""
    return [f"lock:{task.owns.lock}"] if task.owns and task.owns.lock else []


# doit looks up what each of these takes, for every task: said here, it costs 3 µs in the place of 30.
_PLACE = inspect.Parameter.POSITIONAL_ONLY
_OF_TASK = inspect.Signature([inspect.Parameter("task", _PLACE), inspect.Parameter("values", _PLACE)])


class Said(config_changed):  # type: ignore[misc]
    """Does the plan say what it said of a task when that last ran? Of ten thousand, it is spelled out one at a time."""

    __signature__ = _OF_TASK
    encoder = None

    def __init__(self, task: Task) -> None:
        self._task = task
        self.config_digest: str | None = None

    @property
    def config(self) -> Mapping[str, Any]:
        task = self._task
        said = {"run": list(task.run), "env": dict(task.env), "reads": list(task.reads)}
        return {**said, "check": converter.unstructure(task.check)} if task.check else said


class Read:
    """Do the directories and patterns that a declared task reads hold what they held when it last ran?

    Asked when its locks are held, so that what is remembered is what the run that follows begins with.
    """

    __signature__ = _OF_TASK

    def __init__(self, session: Session, reads: Sequence[str]) -> None:
        self._session, self._reads = session, reads
        self._now: Contents | None = None

    def configure_task(self, task: Any) -> None:
        task.value_savers.append(lambda: {"_reads": converter.unstructure(self._now)})

    def __call__(self, task: Any, values: Mapping[str, Any]) -> bool:
        said = values.get("_reads")
        known = converter.structure(said, Contents) if said else None
        self._now = self._session.place.contents(self._reads, known)
        return known is not None and self._now.content == known.content

    def __repr__(self) -> str:
        return f"what is in {', '.join(self._reads)} is as it was"


class Left:
    """Are the directories, patterns and shared files that a declared task writes as the last of their writers left
    them, with its own work in them?"""

    __slots__ = ("_session", "_task")
    __signature__ = inspect.Signature()

    def __init__(self, session: Session, task: str) -> None:
        self._session, self._task = session, task

    def __call__(self) -> bool:
        return self._session.holdings.intact(self._task)

    def __repr__(self) -> str:
        return "what it writes together with others, or by directory or pattern, is as it was left"
