"""Is a task up to date? Reads its targets, the snapshot, the landing branch, what was declared; runs nothing.

The callables return True (as it was) or False (run it), as doit's `uptodate` takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pipeline.drafting import agent_of, asked_of, choice_of, states_of, who_of
from pipeline.drafts import Checked, Draft, Looked, TaskLanded, hash_of
from pipeline.engines import EngineError
from pipeline.landing import Refused
from pipeline.measuring import Baseline, Confirmed, Inputs
from pipeline.model import Scope, Task
from pipeline.results import Candidates, Landed, Outcome, Proofs, Survivors, converter, find
from pipeline.session import Branch, Session
from pipeline.store import digest

T = TypeVar("T")


class Freshness:
    def __init__(self, session: Session) -> None:
        self.session = session

    def _find(self, scope: Scope, name: str, type_: type[T]) -> T | None:
        return find(self.session.target(scope.name, name), type_)

    def baseline(self, scope: Scope) -> bool:
        """As measured: the plan's values, the engine, and the content of every input that was recorded."""
        found = self._find(scope, "inputs.json", Inputs)
        baseline = self._find(scope, "baseline.json", Baseline)
        if found is None or baseline is None or baseline.outcome not in (Outcome.OK, Outcome.NO_MUTANTS):
            return False
        if self._find(scope, "survivors.json", Survivors) is None:
            return False
        states = self.session.snapshot.states
        if self.session.measuring.sameness.changed(found.inputs, states, scope.mutate):
            return False
        try:
            known = self.session.measuring.known(scope, states, Path(self.session.plan.root))
        except EngineError:
            return True  # the engine is not installed here: nothing says that its report would be another
        return digest(known) == found.known and self.session.measuring.is_recent(scope, known, states)

    def measured_on(self, scope: Scope) -> str:
        """What a baseline that is up to date was measured on, and what is not so."""
        found = self._find(scope, "inputs.json", Inputs)
        states = self.session.snapshot.states
        changed = sorted(self.session.measuring.sameness.changed(found.inputs, states, scope.mutate)) if found else []
        but = ", ".join(changed[:5]) or "the engine, what it runs on, or the plan" if found else "it was not measured"
        return f"its files, its engine and what the plan says are as it was measured (not so: {but})"

    def ended_well(self, scope: Scope, name: str, type_: type[Candidates]) -> bool:
        """A call that failed, or a search that broke, is tried again."""
        found = self._find(scope, name, type_)
        return found is not None and found.outcome in (Outcome.OK, Outcome.NO_MUTANTS)

    def validated(self, scope: Scope, round_: int) -> bool:
        """What the validation loaded is as it was."""
        found = self._find(scope, f"proofs.{round_}.json", Proofs)
        if found is None or found.outcome is not Outcome.OK:
            return False
        if self._find(scope, f"survivors.{round_}.json", Survivors) is None:
            return False
        return not self.session.measuring.sameness.changed(found.inputs, self.session.snapshot.states, scope.mutate)

    def landed(self, scope: Scope) -> bool:
        """The landing branch, as it is now, stands on HEAD and holds the file that was landed of these proofs."""
        found = self._find(scope, "landed.json", Landed)
        if found is None or found.outcome is not Outcome.OK or found.held:
            return False
        rounds = range(self.session.plan.generate.last_round + 1)
        proofs = [self._find(scope, f"proofs.{r}.json", Proofs) for r in rounds]
        if found.proofs != digest(converter.unstructure(proofs)):
            return False
        try:
            branch = self.session.branch
        except Refused:
            return False
        # What was proved on an edit that is not committed is to be held; the write file lands as HEAD has it.
        uncommitted = self.session.snapshot.uncommitted - {scope.write}
        to_be_held = any(p and p.proved and not uncommitted.isdisjoint(p.inputs) for p in proofs)
        return branch.on_head and branch.states.get(scope.write) == found.content and not to_be_held

    def confirmed(self, scope: Scope) -> bool:
        """What was measured on the branch is what is on it."""
        found = self._find(scope, "confirmed.json", Confirmed)
        landed = self._find(scope, "landed.json", Landed)
        if found is None or landed is None or found.outcome is not Outcome.OK:
            return False
        if not landed.titles:
            return found.content is None
        try:
            states = self.session.branch.states
        except Refused:
            return False
        same = found.content == states.get(scope.write)
        return same and not self.session.measuring.sameness.changed(found.inputs, states, scope.mutate)

    # -- the tasks of agents

    def drafted(self, task: Task) -> bool:
        """Its brief is the same, and on HEAD and what has landed, what it reads and writes is as it was drafted from,
        as it landed, or as later tasks have left it. What has landed is good, whichever agent wrote it."""
        found, landed = self._find_of(task, "draft.json", Draft), self._find_of(task, "landed.json", TaskLanded)
        if found is None or found.outcome is not Outcome.OK or found.asked != asked_of(task):
            return False
        good = landed is not None and landed.outcome is Outcome.OK and landed.draft == hash_of(found)
        if not good and found.who != who_of(agent_of(task, choice_of(self.session, task)).config):
            return False
        try:
            branch = self._on_head()
        except Refused:
            return False
        return self._as_left(task, branch, states_of(task, branch.states), found.base)

    def checked(self, task: Task) -> bool:
        draft, found = self._find_of(task, "draft.json", Draft), self._find_of(task, "checked.json", Checked)
        if draft is None or found is None:
            return False
        asked, landed = (hash_of(draft), hash_of(task.check)), self._find_of(task, "landed.json", TaskLanded)
        mended = landed and landed.outcome is Outcome.OK and (landed.draft, landed.conditions) == asked
        return (found.outcome is Outcome.OK or bool(mended)) and (found.draft, found.conditions) == asked

    def task_landed(self, task: Task) -> bool:
        """The landing branch stands on HEAD now, and has the change as it landed, or as later tasks left it."""
        draft, found = self._find_of(task, "draft.json", Draft), self._find_of(task, "landed.json", TaskLanded)
        if draft is None or found is None or found.outcome is not Outcome.OK:
            return False
        if (found.draft, found.conditions) != (hash_of(draft), hash_of(task.check)):
            return False
        try:
            branch = self.session.branch
        except Refused:
            return False
        now = {path: branch.states.get(path, "") for path in found.files}
        return branch.on_head and self._as_left(task, branch, now)

    def looked(self, task: Task) -> bool:
        """This change was looked at as it landed, in this way."""
        landed, found = self._find_of(task, "landed.json", TaskLanded), self._find_of(task, "looked.json", Looked)
        if landed is None or landed.outcome is not Outcome.OK or found is None:
            return False
        return found.outcome is Outcome.OK and found.of == hash_of([task.look, landed.files])

    def look_owed(self, task: Task) -> bool:
        """Its change has landed, and nobody has looked at it yet, or not found it right."""
        landed = self._find_of(task, "landed.json", TaskLanded)
        has_landed = landed is not None and landed.outcome is Outcome.OK
        return task.look is not None and has_landed and not self.looked(task)

    def _as_left(
        self, task: Task, branch: Branch, now: Mapping[str, str], drafted: Mapping[str, str] | None = None
    ) -> bool:
        """Whether files are as the task, or those that have landed on top of it, left them; or, where `drafted` is
        given, as they were then."""
        place = next((index for index, names in enumerate(branch.tasks) if task.name in names), -1)
        names = {task.name}.union(*branch.tasks[: place + 1])
        tasks = (self.session.tasks[name] for name in names if name in self.session.tasks)
        landed = [each.files for each in (self._find_of(t, "landed.json", TaskLanded) for t in tasks) if each]
        for path in {*(drafted or ()), *now}:
            known = [files[path] for files in landed if path in files]
            known += [] if drafted is None else [drafted.get(path, "")]
            if now.get(path, "") not in known:
                return False
        return True

    def _on_head(self) -> Branch:
        """HEAD and what has landed. What landed on another HEAD comes off, to land again. Raises Refused."""
        branch = self.session.branch
        if branch.on_head:
            return branch
        landing = self.session.landing
        head = landing.head()
        return Branch(True, self.session.repository.files(head), landing.on.tasks(head))

    def _find_of(self, task: Task, name: str, type_: type[T]) -> T | None:
        return find(self.session.task_target(task.name, name), type_)

    def search_values(self) -> dict[str, Any]:
        """The plan's values that search reads, with the version of what it runs."""
        from pipeline.generators import differential

        embedded = [g.name for g in self.session.plan.generate.generators if g.embedded]
        return {"embedded": embedded, "version": differential.VERSION if embedded else ""}


class Asked:
    """A question about a scope, or a task of an agent, as doit shows it. said: what is so where the answer is yes, or
    what makes that text."""

    def __init__(self, judge: Callable[..., bool], *about: object, said: str | Callable[[], str]) -> None:
        self._judge, self._about, self._said = judge, about, said

    def __call__(self) -> bool:
        return self._judge(*self._about)

    def __repr__(self) -> str:
        return self._said if isinstance(self._said, str) else self._said()
