"""Shares of a file that many tasks would write: where each leaves its own, and how its command is told. Pure.

`compose` in tasks.yaml names such a file, PATH, and who makes it of the files in the folder PATH.d: a declared task, or
the build system itself, by an include. A task's fragment of PATH is what it writes in that folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pipeline import patterns
from pipeline.model import Task

INCLUDE = "include"  # in the place of a task's name: the build system reads the folder
_PLACEHOLDER = re.compile(r"\{fragment(?::([^{}]+))?\}")


class Unfilled(ValueError):
    """A command's {fragment} stands for no file; str() says why, and what to write."""


def folder(path: str) -> str:
    """Where the fragments of `path` are."""
    return f"{path}.d"


def of(task: Task, composed: Iterable[str]) -> dict[str, str]:
    """Composed path → the task's fragment of it. Paths as they are, not as patterns."""
    written = [plain for plain in map(patterns.unescape, task.writes) if plain is not None]
    return {
        path: each
        for path in composed
        if path not in written
        for each in reversed(written)
        if each.startswith(f"{folder(path)}/")
    }


def placeholders(command: str) -> set[str]:
    """The paths whose fragments a command asks for; '' where it names none."""
    return {name or "" for name in _PLACEHOLDER.findall(command)}


def filled(command: str, task: Task, composed: Iterable[str]) -> str:
    """The command with its placeholders filled in. Raises Unfilled.

    {fragment} is the one fragment of its task, {fragment:PATH} that of PATH: while PATH is not hoisted, PATH itself.
    """
    mine = of(task, composed)

    def fill(found: re.Match[str]) -> str:
        path = found[1]
        if path is not None:
            if path not in mine and patterns.escape(path) not in task.writes:
                raise Unfilled(f"{found[0]} stands for nothing: {task.name} writes neither {path} nor a fragment of it")
            return mine.get(path, path)
        if len(mine) > 1:
            each = " or ".join(f"{{fragment:{path}}}" for path in mine)
            raise Unfilled(f"{found[0]} could be any of {', '.join(mine.values())}: write {each}")
        if not mine:
            raise Unfilled(
                f"{found[0]} stands for nothing: {task.name} writes no fragment; `doit plan --hoist PATH` has it leave "
                "its share of PATH as one"
            )
        return next(iter(mine.values()))

    return _PLACEHOLDER.sub(fill, command)


def used(task: Task, composed: Mapping[str, str]) -> tuple[str, ...]:
    """The task's fragments that its commands are told of: they are its own, and begin empty."""
    mine, asked = of(task, composed), {name for command in task.run for name in placeholders(command)}
    return tuple(fragment for path, fragment in mine.items() if asked & {path, ""})
