"""What of a plan is over, by task, kind and scope: what `after: K` waits for, whose end made a task ready, how far a
run has come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.action import meta

End = tuple[int, str]  # which end of the run that was, and whose


class Over:
    def __init__(self, plan: Sequence[Any]) -> None:
        self._ends: dict[str, End] = {}  # by task, or `kind K`
        self._unfinished: dict[str, set[str]] = defaultdict(set)  # by kind
        for task in plan:
            if kind := meta(task, "kind"):
                self._unfinished[kind].add(task.name)
        pooled = [task for task in plan if meta(task, "pool")]
        self._needed = {name for task in pooled for name in task.task_dep}
        self._of_scope = Counter(scope for task in pooled if (scope := meta(task, "scope")))
        self._pooled, self._pooled_over = len(pooled), 0

    def unfinished(self, kind: str) -> set[str]:
        """Tasks of a kind that have not ended."""
        return self._unfinished[kind]

    def never(self, kind: str) -> None:
        """What is unfinished of a kind will not run."""
        self._unfinished[kind].clear()

    def ended(self, task: Any, up_to_date: bool) -> None:
        self._ends[task.name] = (len(self._ends), task.name)
        if not task.actions or up_to_date:
            # A group ends when the last of it does; what was up to date is waited for as what it needs is.
            self._ends[task.name] = max(self._waited_for(task), default=self._ends[task.name])
        if meta(task, "pool"):
            self._pooled_over += 1
            if scope := meta(task, "scope"):
                self._of_scope[scope] -= 1
        if kind := meta(task, "kind"):
            self._unfinished[kind].discard(task.name)
            self._ends[f"kind {kind}"] = self._ends[task.name]

    def last(self, task: Any) -> str | None:
        """Of the tasks that a task waited for, the one that ended last."""
        return max(self._waited_for(task), default=(0, None))[1]

    def _waited_for(self, task: Any) -> Iterator[End]:
        return (self._ends[name] for name in needs(task) if name in self._ends)

    def joins(self, task: Any) -> bool:
        """Is it a group that a task with a pool waits for?"""
        return not task.actions and task.name in self._needed

    @property
    def told(self) -> list[str]:
        """How far it has come, for people. A scope is done when its last task is, and for most of a drive none is."""
        scopes = sum(left == 0 for left in self._of_scope.values())
        of_scopes = [f"{scopes} of {len(self._of_scope)} scopes"] if self._of_scope else []
        return [f"{self._pooled_over} of {self._pooled} tasks", *of_scopes]


def needs(task: Any) -> list[str]:
    """The tasks, groups, and `kind K` for all of a kind, that end before it starts."""
    kind = meta(task, "after")
    others = meta(task, "others") or ()  # that were not loaded
    return [*task.task_dep, *others, *task.setup_tasks, *([f"kind {kind}"] if kind else ())]
