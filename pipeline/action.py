"""What a task with a pool is to doit: one action, a Step. And how a run is refused."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

from doit.action import BaseAction
from doit.exceptions import BaseFail, InvalidDodoFile, InvalidTask, TaskError

from pipeline import schedule
from pipeline.host import Host, Performer


class Refusal(InvalidDodoFile):  # type: ignore[misc]
    """The run must not begin: said as an error, without a traceback; exit 3."""


class Step(BaseAction):  # type: ignore[misc]
    """The one action of a task with a pool. Never touches sys.stdout, which all threads share.

    performer(keys, slot) performs every task of a started set at once; tasks of one batch have the same one. words:
    what may stand behind the task's name on the command line; where it is given, what does stand there is the key,
    with a --FLAG for each of `flags`, which are params of the task, that does.
    """

    def __init__(
        self, host: Host, key: Hashable, performer: Performer, words: Collection[str] | None = None,
        flags: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.host, self.performer, self.words, self.flags = host, performer, words, flags
        self._key = key
        self.task: Any = None  # doit's, set by it
        self.out = self.err = ""
        self.result: str | None = None
        self.values: dict[str, object] = {}

    @property
    def key(self) -> Hashable:
        if self.words is None:
            return self._key
        given = [f"--{flag}" for flag in self.flags if (self.task.options or {}).get(flag)]
        # doit takes what stands behind the first word for a word.
        return tuple(dict.fromkeys((*(self.task.pos_arg_val or ()), *given)))

    def execute(self, out: object = None, err: object = None) -> BaseFail:
        """Only where doit's own runner comes to it: a pool's task that was created while doit ran."""
        return TaskError(f"{self}: a task with a pool must be there before the run starts")

    def __str__(self) -> str:
        return f"Step: {self.key}"


def compact(task: Any) -> None:
    """A doit task as it is, in less: of its attributes there are more than a class shares the names of, and the table
    that makes of each is twice what it takes."""
    task.__dict__ = {name: value for name, value in task.__dict__.items()}  # noqa: C416
    task.io = _IO.setdefault(task.io.capture, task.io)


_IO: dict[bool, Any] = {}  # doit's settings of a task's output, one for all that are alike


def meta(task: Any, key: str) -> Any:
    return (task.meta or {}).get(key)


def check_pool(task: Any, lanes: schedule.Lanes) -> None:
    """Raises InvalidTask where a task could never get what it needs."""
    pool = meta(task, "pool")
    if pool is None:
        return
    if pool not in lanes.capacity:
        raise InvalidTask(f"{task.name}: no pool is named {pool!r}; there are {', '.join(sorted(lanes.capacity))}")
    if len(task.actions) != 1 or not isinstance(task.actions[0], Step):
        raise InvalidTask(f"{task.name}: a task with a pool has one action, a Step")
    words = task.actions[0].words or ()
    for word in task.pos_arg_val or ():
        if word not in words and word not in [f"--{flag}" for flag in task.actions[0].flags]:
            raise InvalidTask(f"{task.name}: {word!r} is none of {', '.join(words)}")
