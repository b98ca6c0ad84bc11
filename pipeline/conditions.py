"""A check: named conditions, judged in order until one does not hold. Each is an object with a `run`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from pipeline import clock, linting, model, process
from pipeline.ended import unfinished
from pipeline.lint import BadBaseline
from pipeline.owning import NotOwned, Owning
from pipeline.results import Outcome

TAIL = 30  # lines of what a condition said that are kept
RERUN = "rerun"  # the phase of what is judged again
# A judgement, its phase, when it began and ended in seconds since the epoch.
Told = Callable[["Judged", str, float, float], object]


@attrs.frozen
class Judged:
    """What one condition came to. Outcome: ok, check-failed, or unverified, which is neither."""

    name: str
    outcome: Outcome
    detail: str = ""
    hidden: bool = False
    crash: bool = False  # a program of it fell over by itself

    @property
    def line(self) -> str:
        """For people: what does not hold, in one line."""
        return f"{self.name}: {self.detail.splitlines()[0] if self.detail else self.outcome}"


class Condition(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def hidden(self) -> bool:
        """The agent is told neither of it nor of what it says."""

    @property
    def phase(self) -> str:
        """What the ledger calls the work: check or lint."""

    def run(self, place: Path) -> Judged:
        """Judge the project whose root is at `place`. Raises process.Stopped."""


@attrs.frozen
class Command:
    """Shell commands that end with 0."""

    condition: model.Condition
    owning: Owning
    env: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        return self.condition.name

    @property
    def hidden(self) -> bool:
        return self.condition.hidden

    @property
    def phase(self) -> str:
        return "check"

    def run(self, place: Path) -> Judged:
        try:
            with self.owning.of(self.condition.owns, self.condition.run) as commands:
                return self._one_by_one(commands, place)
        except NotOwned as error:
            return Judged(self.name, Outcome.UNVERIFIED, str(error), self.hidden)

    def _one_by_one(self, commands: Sequence[str], place: Path) -> Judged:
        deadline = time.monotonic() + self.condition.timeout
        for command in commands:
            done = process.run(
                ["sh", "-c", f"exec 2>&1; {command}"], cwd=place, env=process.environment(self.env),
                timeout=max(0.0, deadline - time.monotonic()),
            )  # fmt: skip
            if not done.ok:
                outcome, why, crash = self._ended(done)
                return Judged(self.name, outcome, f"{command}: {why}\n{done.tail(TAIL)}".rstrip(), self.hidden, crash)
        return Judged(self.name, Outcome.OK, hidden=self.hidden)

    def _ended(self, done: process.Finished) -> tuple[Outcome, str, bool]:
        """A command that the machine did not let come to its end says nothing about the change."""
        if cut_short := unfinished(done, self.condition.timeout):
            return Outcome.UNVERIFIED, cut_short.why, cut_short.crash
        return Outcome.CHECK_FAILED, f"exit status {done.exit_code}", False


@attrs.frozen
class Linter:
    """A linter that finds nothing but what its baseline has, as the change has it; the baseline stays as it is."""

    condition: model.Condition
    lint: model.Lint
    owning: Owning
    env: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        return self.condition.name

    @property
    def hidden(self) -> bool:
        return self.condition.hidden

    @property
    def phase(self) -> str:
        return "lint"

    def run(self, place: Path) -> Judged:
        try:
            with self.owning.of(self.condition.owns, self.condition.run) as (command,):
                told = attrs.evolve(self.lint, run=command)
                renames = linting.renames_in(place, self.lint.baseline)
                linted = linting.run(told, place, renames, self.env)
        except NotOwned as error:
            return Judged(self.name, Outcome.UNVERIFIED, str(error), self.hidden)
        except (OSError, BadBaseline) as error:
            return Judged(self.name, Outcome.UNVERIFIED, f"{self.lint.baseline} cannot be read: {error}", self.hidden)
        outcome = Outcome.CHECK_FAILED if linted.outcome is Outcome.NEW_FINDINGS else linted.outcome
        said = linted.text.removeprefix(f"{self.lint.name}: ")  # the two facts, also where it holds
        return Judged(self.name, outcome, said, self.hidden)


def of(task: model.Task, owning: Owning) -> tuple[Condition, ...]:
    """The conditions of a task's check, hidden ones last."""
    return tuple(
        Linter(each, each.lint, owning, task.env) if each.lint else Command(each, owning, task.env)
        for each in task.check
    )


def untouched(judged: Judged, altered: Callable[[], str]) -> Judged:
    """What holds of files that it changed itself holds of nothing that could land. altered: which it changed."""
    if judged.outcome is not Outcome.OK or not (files := altered()):
        return judged
    detail = f"it changed {files}: what it judged is not what would land"
    return attrs.evolve(judged, outcome=Outcome.UNVERIFIED, detail=detail)


def judge(
    conditions: Sequence[Condition], place: Path, told: Told, altered: Callable[[], str] = lambda: ""
) -> tuple[Judged, ...]:
    """Judge one after another, until one does not hold; what comes after it is not known, and not in the result.

    What the machine kept from its end is judged once more. altered: which files are not as they would land.
    """
    found: list[Judged] = []
    for condition in conditions:
        began = clock.now()
        judged = untouched(condition.run(place), altered)
        told(judged, condition.phase, began, clock.now())
        if judged.outcome is Outcome.UNVERIFIED:
            began = clock.now()
            judged = untouched(condition.run(place), altered)
            told(judged, RERUN, began, clock.now())
        found.append(judged)
        if judged.outcome is not Outcome.OK:
            break
    return tuple(found)
