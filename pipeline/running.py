"""Tasks on their way: those that wait for a slot and locks, and those that run in a worker thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from doit.exceptions import BaseFail, TaskError, TaskFailed

from pipeline import account, clock, process, schedule
from pipeline.account import Account
from pipeline.action import Refusal, meta
from pipeline.host import Attempt, Leg, Slot, in_the_way
from pipeline.results import Outcome


@attrs.define(eq=False)
class Waiting:
    """A node that doit has handed out and that is not running."""

    node: Any
    since: float  # when it became ready
    ready: schedule.Ready
    leg: Leg | None = None  # what is left of a task that has been running before
    short: float | None = None  # since when it would have started, were there the memory
    after: str | None = None  # the task whose end made it ready: of those that it waited for the last

    @property
    def name(self) -> str:
        return self.leg.name if self.leg else str(self.task.name)

    @property
    def task(self) -> Any:
        return self.node.task

    @property
    def locked(self) -> bool:
        return bool(self.ready.reads or self.ready.writes)


@attrs.define(eq=False)
class Running:
    """A set of tasks in a worker thread, which fills in how it went."""

    start: schedule.Start
    members: Sequence[Waiting]
    slot: Slot
    started: float = 0.0
    ended: float = 0.0
    spent: Account = attrs.field(factory=Account)
    attempts: Mapping[Hashable, Attempt] = attrs.field(factory=dict)
    error: BaseFail | None = None

    @property
    def shared(self) -> dict[str, object]:
        """The tasks of a set share one slot and one span of time: `slot` and `started` tell, `share` divides."""
        share = 1 / len(self.members)
        return {"slot": self.slot.index, "share": share, "cpu_seconds": self.spent.cpu_seconds * share}

    def told(self, member: Waiting) -> dict[str, object]:
        """What the span of time was made of, told once for a set."""
        return self.spent.fields if member is self.members[0] else {}

    def beginning(self) -> dict[str, object]:
        """What is known of it as it starts."""
        last = max(self.members, key=lambda each: each.since)
        scopes = [scope for each in self.members if (scope := meta(each.task, "scope"))]
        first = self.members[0]
        return {
            "tasks": [each.name for each in self.members],
            "kind": first.leg.kind if first.leg else meta(first.task, "kind"), "scopes": scopes,
            "lane": self.slot.lane, "slot": self.slot.index, "ready": last.since, "started": clock.now(),
            **({"after": last.after} if last.after else {}),
        }  # fmt: skip

    def verdict(self, task: Any, attempt: Attempt | None, ending: bool) -> BaseFail | None:
        """Why a task of it has failed. ending: the run is being ended."""
        if self.error is not None:
            # A step whose children we ended may fail in any way it can: no bug, and no traceback.
            return TaskFailed("interrupted", report=False) if ending else self.error
        if attempt is None:
            return TaskFailed(f"{task.name}: ended without a result")
        if attempt.outcome is Outcome.INTERRUPTED:
            return TaskFailed(attempt.failure or "interrupted", report=False)
        if attempt.failure is not None:
            return TaskFailed(attempt.failure)
        missing = [target for target in task.targets if not Path(target).exists()]
        return TaskFailed(f"{task.name}: ended without its target {', '.join(missing)}") if missing else None

    def work(self) -> None:
        steps = [each.task.actions[0] for each in self.members]
        leg = self.members[0].leg  # of a batch all have one performer
        performer = leg.performer if leg else steps[0].performer
        self.started = clock.now()
        with account.opened(self.spent):
            try:
                self.attempts = dict(performer([step.key for step in steps], self.slot))
            except process.Stopped:
                self.error = TaskFailed("interrupted", report=False)
            except BaseException as error:  # nothing else would tell the main thread
                names = ", ".join(self.start.names)
                self.error = TaskError(f"{names}: {type(error).__name__}", error)
                if isinstance(error, Refusal) or in_the_way(error):
                    self.error = TaskFailed(f"{names}: {error}")
        self.ended = clock.now()


class Crew:
    """The threads that work: as many as there was ever work for at once, each for one set of tasks after another."""

    def __init__(self, inbox: queue.SimpleQueue[Running | None]) -> None:
        self._inbox = inbox
        self._idle: list[queue.SimpleQueue[Running | None]] = []
        self._all: list[tuple[threading.Thread, queue.SimpleQueue[Running | None]]] = []

    def begin(self, running: Running) -> None:
        if not self._idle:
            todo: queue.SimpleQueue[Running | None] = queue.SimpleQueue()
            thread = threading.Thread(target=self._work, args=(todo,), name=f"worker {len(self._all) + 1}")
            thread.start()
            self._all.append((thread, todo))
            self._idle.append(todo)
        self._idle.pop().put(running)

    def _work(self, todo: queue.SimpleQueue[Running | None]) -> None:
        while (running := todo.get()) is not None:
            running.work()
            self._idle.append(todo)
            self._inbox.put(running)

    def dismiss(self) -> None:
        """Wait until nobody works any more."""
        for _, todo in self._all:
            todo.put(None)
        for thread, _ in self._all:
            thread.join()
