"""Which tasks does a command line stand for? Asked before doit is: changes no task."""

from __future__ import annotations

import fnmatch
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from doit.cmdparse import CmdOption, CmdParseError, TaskParse


def closure(task_list: Sequence[Any], selection: Sequence[str] | None, single: bool) -> list[Any]:
    """The tasks that a selection stands for and all that they need, in the dodo's order; nothing is changed.

    As doit's TaskControl finds them, which can't be asked: it changes the tasks, so that building a second one for
    doit's own command would change what that does. What is no task is left for doit to refuse.
    """
    tasks = {task.name: task for task in task_list}
    owners = {target: task.name for task in task_list for target in task.targets}
    roots = list(tasks) if selection is None else _named(tasks, owners, selection)
    subtasks = [dep for name in roots if tasks[name].has_subtask for dep in tasks[name].task_dep]
    alone = {name for name in (*roots, *subtasks) if single and not tasks[name].has_subtask}
    found: set[str] = set()
    waiting = roots
    while waiting:
        name = waiting.pop()
        if name in found or name not in tasks:
            continue
        found.add(name)
        task = tasks[name]
        waiting += [*task.setup_tasks, *task.calc_dep]
        if name not in alone:
            waiting += task.task_dep
            waiting += [owners[path] for path in task.file_dep if path in owners]
            waiting += [match for pattern in task.wild_dep for match in fnmatch.filter(tasks, pattern)]
    return [task for task in task_list if task.name in found]


def _named(tasks: Mapping[str, Any], owners: Mapping[str, str], selection: Sequence[str]) -> list[str]:
    """Task names among command-line words: what belongs to a task's own options and arguments is none."""
    words, found = deque(selection), []
    while words:
        word = words.popleft()
        if "*" in word:
            found += fnmatch.filter(tasks, word)
        elif word in tasks:
            task = tasks[word]
            found.append(word)
            options = [*task.params, *task.creator_params]
            if options or (words and words[0].startswith("-")):  # else each of 10,000 names would copy all after it
                try:
                    words = deque(TaskParse([CmdOption(opt) for opt in options]).parse(list(words))[1])
                except CmdParseError:
                    break
            if task.pos_arg is not None:
                break
        else:
            found += [name for name in (owners.get(word, ""), word.partition(":")[0]) if name in tasks][:1]
    return found
