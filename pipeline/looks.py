"""A look at what has landed: by a person, who has the terminal as long as it takes, or by a tool that makes pictures.

It comes after the landing, so that no night's work waits for anybody's eyes: the branch is merged by a person anyway.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Hashable, Sequence
from pathlib import Path

import attrs

from pipeline import clock, process
from pipeline.conditions import TAIL, Judged
from pipeline.drafts import Looked, TaskLanded, hash_of
from pipeline.ended import unfinished
from pipeline.freshness import Freshness
from pipeline.host import Attempt, Slot
from pipeline.landing import Refused
from pipeline.model import Look, Task
from pipeline.owning import filled
from pipeline.results import Outcome, dump, find
from pipeline.session import Session
from pipeline.worktree import GitError

_TOOL, _PERSON = 3600.0, 31 * 24 * 3600.0  # seconds, where nobody says how long it may take


@attrs.frozen
class Looks:
    """The performer of looks, on one session."""

    session: Session

    def look(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        (key,) = keys
        task = self.session.tasks[str(key)]
        try:
            looked = self._missing(task) or self._looked(task, slot)
        except (GitError, Refused) as error:
            looked = Looked(Outcome.UNVERIFIED, str(error))
        dump(self.session.task_target(task.name, "looked.json"), looked)
        line = f"{looked.outcome}: {looked.detail.splitlines()[0]}" if looked.detail else "seen"
        return {key: Attempt(looked.outcome, line=line, fields={"detail": looked.detail})}

    def _missing(self, task: Task) -> Looked | None:
        """What it takes to look, and is not there."""
        landed = find(self.session.task_target(task.name, "landed.json"), TaskLanded)
        if landed is None or landed.outcome is not Outcome.OK:
            return Looked(Outcome.BLOCKED, "it has not landed")
        if not Freshness(self.session).task_landed(task):
            return Looked(Outcome.BLOCKED, "the landing branch has it no more as it landed: `doit build` first")
        if _by_person(task) and terminal() is None:
            return Looked(Outcome.UNVERIFIED, "a person is to look, and there is no terminal: `doit look` at one")
        return None

    def _looked(self, task: Task, slot: Slot) -> Looked:
        look = task.look
        assert look is not None
        landed = find(self.session.task_target(task.name, "landed.json"), TaskLanded)
        tip, _ = self.session.landing.standing()
        worktree = self.session.worktree(slot)
        worktree.reset(tip)
        out = self.session.task_target(task.name, "look")
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        began = clock.now()
        judged = _judge(task, look, filled(look.run, str(out.absolute())), worktree.root)
        self.session.condition(task.name, "look", judged, began, clock.now())
        return Looked(judged.outcome, judged.detail, hash_of([look, landed.files if landed else {}]))


def terminal() -> str | None:
    """The terminal at which somebody has started this run, if one has."""
    try:
        return os.ttyname(0)
    except OSError:
        return None


def _by_person(task: Task) -> bool:
    return task.look is not None and task.look.by == "person"


def _judge(task: Task, look: Look, commands: Sequence[str], place: Path) -> Judged:
    person = _by_person(task)
    limit = look.timeout or (_PERSON if person else _TOOL)
    # By its name: what leads a session of its own cannot inherit the terminal, but may read what is typed there.
    streams = 'exec < "$0" > "$0" 2>&1' if person else "exec 2>&1"
    deadline = time.monotonic() + limit
    for command in commands:
        done = process.run(
            ["sh", "-c", f"{streams}\n{command}", terminal() or "sh"], cwd=place, env=process.environment(task.env),
            timeout=max(0.0, deadline - time.monotonic()),
        )  # fmt: skip
        if cut_short := unfinished(done, limit):
            why = f"{command}: {cut_short.why}\n{done.tail(TAIL)}".rstrip()
            return Judged("look", Outcome.UNVERIFIED, why, crash=cut_short.crash)
        if not done.ok:
            why = f"{command}: exit status {done.exit_code}\n{done.tail(TAIL)}".rstrip()
            return Judged("look", Outcome.CHECK_FAILED, why)
    return Judged("look", Outcome.OK)
