"""A way out of a shared file: each of its writers leaves a share of its own, and one task at the end joins them.

Decides how tasks.yaml changes; edit.py changes the text. What `compose` says of the file comes first: a task that is
named there puts the shares together, and where the build system does (`include`) no task has to.
"""

from __future__ import annotations

import itertools
import os
import posixpath
import re
import shlex
import tempfile
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline import config, fragments, patterns, source
from pipeline.model import Plan, Task
from pipeline.reports.plan import edit
from pipeline.results import write_bytes
from pipeline.source import PlanErrors, nearest
from pipeline.worktree import git

BASE = "0-base"  # what the file held before: the first of its fragments


class Refused(Exception):
    """The plan is not changed; str() says why, a line for each reason, and what to do."""


@attrs.frozen
class Hoisted:
    """A changed tasks.yaml that loads."""

    path: Path
    before: str
    after: str
    diff: str  # unified
    plan: Plan

    def write(self) -> None:
        """In the place of the old one, whole or not at all. Raises Refused."""
        real = Path(os.path.realpath(self.path))  # the link stays one
        try:
            if not real.exists() and self.before.encode() == config.EMPTY:
                write_bytes(real, self.after.encode())
                real.chmod(0o644)
                return
            if real.read_bytes() != self.before.encode():
                raise Refused(f"{self.path} has changed meanwhile: nothing is written; try again")
            mode = real.stat().st_mode
            write_bytes(real, self.after.encode())
            real.chmod(mode)
        except OSError as error:
            raise Refused(f"{self.path} cannot be written: {error.strerror}") from None


def hoist(path: Path, shared: Sequence[str]) -> Hoisted:
    """The tasks.yaml at `path` with these files hoisted. Raises Refused and PlanErrors."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None
    plan = config.of_text(path, raw)
    before = raw.decode()
    mark = "\ufeff" if before.startswith("\ufeff") else ""
    changes = _changes(source.parse(plan.path, raw).data, plan, tuple(dict.fromkeys(map(posixpath.normpath, shared))))
    try:
        after = mark + edit.edited(before.removeprefix(mark), changes)
    except edit.Unwritten as error:
        raise Refused(f"{plan.path}: {error}") from None
    try:
        changed = config.of_text(path, after.encode())
    except PlanErrors as errors:
        raise Refused(f"{', '.join(shared)}: the changed plan would not load:\n{errors}") from None
    return Hoisted(path, before, after, difference(path, before, after), changed)


def difference(path: Path, before: str, after: str) -> str:
    """Unified."""
    name = os.path.relpath(path)
    with tempfile.TemporaryDirectory(prefix="doit-mutate-") as scratch:
        for side, text in (("before", before), ("after", after)):
            Path(scratch, side).write_bytes(text.encode())
        options = ("--no-index", "--unified=3", "--no-color", "--no-ext-diff", "--no-textconv", "--text", "--")
        said = git(Path(scratch), "-c", "core.autocrlf=false", "diff", *options, "before", "after", ok=(0, 1)).text
    return f"--- a/{name}\n+++ b/{name}\n{said[said.index('@@ ') :]}"


def _changes(data: Any, plan: Plan, paths: Sequence[str]) -> list[edit.Change]:
    """What hoists each path in the data of a tasks.yaml: what replaces first. Raises Refused."""
    numbered = {task.name: index for index, task in enumerate(plan.tasks)}
    writers = {path: _writers(plan, path) for path in paths}
    _check(plan, writers)
    shares = {path: _shares(plan, path, writers[path]) for path in paths}
    places = [
        (at, shares[path][task.name])
        for path in paths
        for task in writers[path]
        for at in _places(data, numbered[task.name], path)
    ]
    taken, wired, added = {*numbered}, {}, []
    for path in paths:
        if (by := plan.compose.get(path)) is None:
            name = _free_name(re.sub(r"[\s:=*?]", "-", f"wire-{posixpath.basename(path)}"), taken)
            taken.add(name)
            wired[path] = name
        elif by != fragments.INCLUDE:
            composer = plan.tasks[numbered[by]]
            reads = map(patterns.escape, shares[path].values())
            for key, has, wanted in (("reads", composer.reads, reads), ("needs", composer.needs, iter(shares[path]))):
                if new := [each for each in wanted if each not in has]:
                    added.append((numbered[by], key, new))

    def hand_out(data: Any) -> None:
        for (task, at), share in places:
            data["tasks"][task]["writes"][at] = patterns.escape(share)

    def gather(data: Any) -> None:
        for task, key, new in added:
            data["tasks"][task].setdefault(key, []).extend(new)
        drafted = {task.name for task in plan.changes}
        for path, name in wired.items():
            wiring = _wiring(plan, path, name, shares[path])
            data["tasks"].append(wiring if drafted.isdisjoint(shares[path]) else _drafted(wiring, path))

    def note(data: Any) -> None:
        data.setdefault("compose", {}).update(wired)

    return [hand_out, gather, *([note] if wired else [])]


def _writers(plan: Plan, path: str) -> list[Task]:
    """Who writes the path, but for who makes it of its fragments."""
    by, written = plan.compose.get(path), patterns.escape(path)
    return [task for task in plan.tasks if written in task.writes and task.name != by]


def _check(plan: Plan, hoisted: Mapping[str, Sequence[Task]]) -> None:
    """Path → its writers. Raises Refused with everything that is in the way."""
    wrong = []
    for path, writers in hoisted.items():
        wrong += [
            f"{task.name} writes {each}, which takes in {path}; name the files that it writes"
            for task in plan.tasks
            for each in task.writes
            if each != patterns.escape(path) and patterns.takes_in(each, path)
        ]
        if len(writers) < (1 if path in plan.compose else 2):
            written = {patterns.lock(each) for task in plan.tasks for each in task.writes}
            if path in written:
                wrong.append(f"{path}: no two tasks write it: there is nothing to hoist")
            else:
                wrong.append(f"{path}: no task writes it; {nearest(path, written) or 'none writes anything'}")
            continue
        told = [_told(path, task, plan, hoisted) for task in writers]
        if any(told):
            wrong.append(
                f"{path} cannot be hoisted while commands go on writing it, whatever the plan declares. "
                "{fragment} stands for the file that takes a task's share:"
            )
            wrong += [f"  {each}" for each in told if each]
    if wrong:
        raise Refused("\n".join(wrong))


def _told(path: str, task: Task, plan: Plan, hoisted: Iterable[str]) -> str:
    """Why no command of the task would write its fragment of `path`; '' if one would. An agent is told of it."""
    if task.agent is not None:
        return ""
    now = (each for each in hoisted if patterns.escape(each) in task.writes)
    others = [each for each in dict.fromkeys([*fragments.of(task, plan.compose), *now]) if each != path]
    asked = {name for command in task.run for name in fragments.placeholders(command)}
    if path in asked or ("" in asked and not others):
        return ""
    mark = f"{{fragment:{path}}}" if others else "{fragment}"
    if "" in asked:
        each = " and ".join(f"{{fragment:{other}}}" for other in [*others, path])
        return f"{task.name}: it has a share in {len(others) + 1} files; write {each}, each in its place"
    command = next((command for command in task.run if path in command), None)
    if command is None:
        return f"{task.name}: write {mark} in the command that writes {path}"
    return f"{task.name}: write `{command.replace(path, mark)}` instead of `{command}`"


def _shares(plan: Plan, path: str, writers: Sequence[Task]) -> dict[str, str]:
    """Task → its fragment of `path`: those that there are, and a file named after the task for each of `writers`."""
    there = {task.name: each for task in plan.tasks for each in fragments.of(task, [path]).values()}
    taken = {BASE, *map(posixpath.basename, there.values())}
    for task in writers:
        name = task.name.replace("/", "-")  # `cat PATH.d/*` looks into no folder,
        # passes over a hidden file, and takes what sorts before the base before it.
        name = _free_name(name if name > BASE else f"task-{name}", taken)
        taken.add(name)
        there[task.name] = f"{fragments.folder(path)}/{name}"
    return {task.name: there[task.name] for task in plan.tasks if task.name in there}


def _places(data: Any, index: int, path: str) -> list[tuple[int, int]]:
    """The task, and where its `writes` names the path. Raises Refused where it does by another name only."""
    task = data["tasks"][index]
    plain = [patterns.unescape(text) or text for text in task["writes"]]  # a[1].c is itself where there is such a file
    found = [(index, at) for at, text in enumerate(plain) if posixpath.normpath(text) == path]
    if not found:
        raise Refused(f"{task['name']} writes {path} by another name: spell it so in tasks[{index}].writes")
    return found


def _wiring(plan: Plan, path: str, name: str, shares: Mapping[str, str]) -> dict[str, Any]:
    folder, base = fragments.folder(path), f"{fragments.folder(path)}/{BASE}"
    here = "./" if path.startswith("-") else ""  # or `cat` would take it for options
    target, kept = shlex.quote(here + path), shlex.quote(here + base)
    join = f"cat {shlex.quote(here + folder)}/* > {target}"
    exists = Path(plan.root, path).is_file()
    keep = f"test -e {kept} || cp {target} {kept}"
    return {
        "name": name,
        "doc": f"put together {path} from its fragments",
        "run": [keep, join] if exists else join,
        "reads": [patterns.escape(each) for each in shares.values()],
        "writes": [patterns.escape(each) for each in ([path, base] if exists else [path])],
        "needs": list(shares),
        "env": {"LC_ALL": "C"},
    }


def _drafted(wiring: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The same where the shares are on the landing branch: a program of ours in the place of an agent."""
    said = {key: value for key, value in wiring.items() if key not in ("run", "env")}
    run = wiring["run"] if isinstance(wiring["run"], list) else [wiring["run"]]
    here = shlex.quote("./" + path if path.startswith("-") else path)
    return {
        **said,
        "agent": {"use": "command", "run": ["sh", "-c", " && ".join(run)], "brief": wiring["doc"]},
        "check": {"joined": f"cat {here}.d/* | cmp - {here}"},
        "env": wiring["env"],
    }


def _free_name(wanted: str, taken: Container[str]) -> str:
    names = itertools.chain([wanted], (f"{wanted}-{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)
