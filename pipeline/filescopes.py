"""The file scopes of declared tasks: what they lock, what doit can make of them, who waits for whom. Pure.

What a task did is held against its scope elsewhere (commands.py, watch.py); how scopes are read is in spelled.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

from . import model, patterns


@attrs.frozen
class Locks:
    """The paths that a task holds while it runs, relative to the root; each with all that is under it."""

    reads: frozenset[str]
    writes: frozenset[str]


def locks(task: model.Task) -> Locks:
    """Of a link, the link and what it leads to: two spellings of one file never pass for two files."""

    def held(declared: Iterable[str]) -> frozenset[str]:
        paths = {patterns.lock(each) for each in declared if not each.startswith("!")}
        return frozenset(paths | {task.links[path] for path in paths if path in task.links})

    return Locks(held(task.reads), held(task.writes))


def targets(tasks: Iterable[model.Task]) -> dict[str, tuple[str, ...]]:
    """Task -> those of its `writes` that can be doit's targets: files, each written by that task alone."""
    tasks = tuple(tasks)
    writers = Counter(each for task in tasks for each in task.writes)
    return {
        task.name: tuple(each for each in task.writes if writers[each] == 1 and is_file(each)) for task in tasks
    }  # fmt: skip


def waits(tasks: Iterable[model.Task]) -> dict[str, tuple[str, ...]]:
    """Task -> all that it waits for: what it needs, and the makers of what it reads, as doit finds them.

    Of several writers of a file none comes first: they and its readers are kept apart by their locks alone.
    """
    tasks = tuple(tasks)
    maker = {patterns.lock(each): name for name, made in targets(tasks).items() for each in made}
    found = {}
    for task in tasks:
        read = (patterns.lock(each) for each in task.reads if is_file(each))
        makers = [maker[path] for path in read if maker.get(path, task.name) != task.name]
        found[task.name] = tuple(dict.fromkeys([*task.needs, *makers]))
    return found


def is_file(declared: str) -> bool:
    """Neither a directory nor a pattern, nor what takes something out of those."""
    plain = patterns.unescape(declared)
    return plain is not None and not plain.endswith("/") and not declared.startswith("!")


def may_write(task: model.Task, path: str) -> bool:
    """May the task change `path`, relative to the root?"""
    if any(patterns.takes_in(each, path) for each in task.writes):
        return True
    return any(path == task.links.get(patterns.lock(each)) for each in task.writes)
