"""What a declared task does: its commands in the checkout, and what came of it held against its file scope."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import filescopes, fragments, patterns, process
from pipeline.host import Attempt, Slot
from pipeline.model import Task
from pipeline.owning import NotOwned
from pipeline.results import Outcome
from pipeline.session import Session
from pipeline.worktree import GitError


@attrs.frozen
class Commands:
    """The performer of declared tasks, on one session."""

    session: Session

    def perform(self, keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        (key,) = keys
        task = self.session.tasks[str(key)]
        try:
            self.session.watch.begin(task.name, lambda path: filescopes.may_write(task, path))
            try:
                held = self.session.holdings.begin(task.writes)
                attempt = self._checked(task, self._run(task))
            finally:
                outside = self.session.watch.end(task.name)
        except GitError as error:
            return {key: Attempt(Outcome.UNVERIFIED, failure=f"what it changed cannot be told: {error}")}
        if outside:
            attempt = _with_outside(attempt, outside)
        elif attempt.failure is None and (missing := self._missing(task)):
            attempt = attrs.evolve(attempt, outcome=Outcome.CRASHED, failure=f"{task.name}: {missing}")
        if attempt.failure is None:
            self.session.holdings.end(task.name, held)
        return {key: attempt}

    def _run(self, task: Task) -> Attempt:
        """Its commands, one after another, until one fails."""
        try:
            commands = self._told(task)
        except fragments.Unfilled as error:
            return Attempt(Outcome.CRASHED, failure=str(error))
        try:
            with self.session.owning.of(task.owns, commands) as filled:
                return self._one_by_one(task, filled)
        except NotOwned as error:
            return Attempt(Outcome.UNVERIFIED, failure=f"{task.name}: {error}")

    def _one_by_one(self, task: Task, commands: Sequence[str]) -> Attempt:
        output, peak = "", 0
        deadline = None if task.timeout is None else time.monotonic() + task.timeout
        for command in commands:
            done = process.run(
                # What it says on both streams is shown in the order in which it was said.
                [f"exec 2>&1; {command}"], cwd=Path(self.session.plan.root),
                env={**self.session.environment, **task.env}, max_memory=task.memory, script=True,
                measure_memory=True,
                timeout=None if deadline is None else max(0.0, deadline - time.monotonic()),
            )  # fmt: skip
            output += done.text
            peak = max(peak, done.peak_bytes or 0)
            if not done.ok:
                outcome, why = _ended(done, task)
                return Attempt(outcome, failure=f"{command}: {why}", output=output, fields={"peak_bytes": peak})
        return Attempt(Outcome.OK, output=output, fields={"peak_bytes": peak})

    def _checked(self, task: Task, attempt: Attempt) -> Attempt:
        """Where its commands ended well, what its `check` says of what they did."""
        if attempt.failure is not None or not task.check:
            return attempt
        from pipeline import conditions

        def told(judged: conditions.Judged, phase: str, began: float, ended: float) -> None:
            self.session.condition(task.name, phase, judged, began, ended)

        place = Path(self.session.plan.root)
        last = conditions.judge(conditions.of(task, self.session.owning), place, told)[-1]
        if last.outcome is Outcome.OK:
            return attempt
        return attrs.evolve(attempt, outcome=last.outcome, failure=f"{task.name}: check {last.name}: {last.detail}")

    def _told(self, task: Task) -> list[str]:
        """Its commands, told of the fragments that it writes, which begin empty. Raises fragments.Unfilled."""
        composed = self.session.plan.compose
        commands = [fragments.filled(command, task, composed) for command in task.run]
        for fragment in fragments.used(task, composed):
            path = Path(self.session.plan.root, fragment)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # a command that appends would, run again, leave its share twice
        return commands

    def _missing(self, task: Task) -> str:
        """What a task that succeeded did not make, in words; '' where all is there."""
        for each in task.writes:
            plain = patterns.unescape(each)
            if not self.session.place.holds(each):
                return f"ended without its target {each if plain is None else plain}"
            if plain is not None and filescopes.is_file(each) and os.path.isdir(f"{self.session.plan.root}/{plain}"):  # noqa: PTH112
                return f"{plain} is a directory: say {plain}/ in `writes`"
        return ""


def _ended(done: process.Finished, task: Task) -> tuple[Outcome, str]:
    """How a command failed, and that in words."""
    if done.timed_out:
        return Outcome.TIME_LIMIT, f"no end within {task.timeout:g} s"
    if done.too_much_memory:
        return Outcome.MEMORY, f"more than the {task.memory or 0:,} bytes of memory that it asked for"
    if done.too_much_output:
        return Outcome.CRASHED, "more output than can be kept"
    if done.exit_code < 0:
        return Outcome.SIGNAL, f"killed by {signal.Signals(-done.exit_code).name}"
    return Outcome.CRASHED, f"exit status {done.exit_code}"


def _with_outside(attempt: Attempt, outside: Sequence[str]) -> Attempt:
    names = (path if path.isprintable() else ascii(path) for path in outside)  # no terminal takes a broken one
    said = f"changed outside its `writes`: {', '.join(names)}"
    if attempt.failure is not None:
        return attrs.evolve(attempt, failure=f"{attempt.failure}\n{said}")
    return attrs.evolve(attempt, outcome=Outcome.OUTSIDE_SCOPE, failure=said)
