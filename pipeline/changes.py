"""What each step of an agent's task does: draft, check, land, and one repair between two landings.

As for scopes, a bad end is data in the targets, never a failure of doit's: it stops no other task.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import attrs

from pipeline import conditions, drafts, process
from pipeline.account import MERGE_LOCK
from pipeline.branch import DRAFT, TASK, mark_of
from pipeline.choice import stepped
from pipeline.drafting import Drafting, states_of
from pipeline.drafts import Applied, Checked, Draft, Failure, TaskLanded, hash_of
from pipeline.host import Attempt, CannotGoOn, Leg, Performer, Slot
from pipeline.landing import Change, Landing, Refused, Unfit
from pipeline.model import GATE, GENERATION, VALIDATION, Task
from pipeline.results import Outcome, dump, find, write_bytes
from pipeline.session import Session
from pipeline.worktree import GitError, Worktree

T = TypeVar("T")


@attrs.frozen
class Changes:
    """The performers, on one session."""

    session: Session
    gate: Performer | None = None  # what lands changes, where a gate does

    # -- draft

    def draft(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        (key,) = keys
        task = self.session.tasks[str(key)]
        drafting = Drafting.of(self.session, task, slot)
        try:
            draft = self._blocked(task) or self._again(task, drafting)
            if draft is None:
                tip = self._tip()
                lost = self.came_off(task, tip)
                draft = Draft(Outcome.BLOCKED, lost) if lost else drafting.draft(drafting.first(tip))
                landed = self.session.landing.on.tasks(tip)
                if draft.outcome is Outcome.EMPTY_REPLY and task.name in frozenset().union(*landed):
                    draft = attrs.evolve(draft, outcome=Outcome.OK, detail="it has landed, and nothing was left to do")
        except (GitError, Refused) as error:
            draft = Draft(Outcome.UNVERIFIED, str(error))
        return {key: self._drafted(task, drafting, draft, "draft.json", "change.patch")}

    def _blocked(self, task: Task) -> Draft | None:
        for name in self.session.order.blockers[task.name]:
            landed = find(self.session.task_target(name, "landed.json"), TaskLanded)
            if landed is None or landed.outcome is not Outcome.OK:
                return Draft(Outcome.BLOCKED, f"blocker {name} did not land")
        return None

    def came_off(self, task: Task, commit: str) -> str:
        """Which blocker a commit lacks though it has landed, for people; "" where none."""
        names = self.session.order.blockers[task.name]
        lost = next((name for name in names if self.session.landing.on.lacks(name, commit)), None)
        return f"blocker {lost} did not land: HEAD moved, and it came off" if lost else ""

    def _again(self, task: Task, drafting: Drafting) -> Draft | None:
        """The draft that has landed already, where the cache of this checkout was lost: by what the branch says."""
        if find(self.session.task_target(task.name, "draft.json"), Draft) is not None:
            return None
        repository, tip = self.session.repository, self._tip()
        mark = f"--grep={TASK}: {task.name}"  # those of tasks whose names begin so, too
        found = repository.git("log", "--format=%x01%B", "--fixed-strings", mark, tip).text.split("\x01")
        name = next((mark_of(message, DRAFT) for message in found if mark_of(message, TASK) == task.name), None)
        draft = drafting.kept(name) if name else None
        if draft is None or draft.asked != drafting.asked:
            return None
        now = states_of(task, repository.files(tip))
        if any(now.get(path) != state for path, state in draft.base.items() if path not in draft.files):
            return None  # what it read is otherwise by now
        there = drafts.applied(repository, tip, draft.files, self._blob(draft), self.session.scratch)
        return draft if not there.paths and not there.conflicts else None

    def _drafted(self, task: Task, drafting: Drafting, draft: Draft, name: str, patch: str) -> Attempt:
        self._write(task, name, draft)
        if draft.reply:
            write_bytes(self.session.task_target(task.name, patch), drafting.patch(draft))
        line = f"{draft.outcome}: {draft.detail.splitlines()[0] if draft.detail else ''}"
        if draft.outcome is Outcome.OK:
            line = f"{len(draft.files)} files changed" + (f" by {draft.model}" if draft.model else "")
        asked = {"agent": drafting.agent.config.use, **drafting.patience.event, "confidence": task.confidence}
        fields = {**asked, "files": len(draft.files), "detail": draft.detail}
        return Attempt(draft.outcome, line=f"{line}{stepped(fields)}", fields=fields)

    # -- check

    def check(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        """The draft on HEAD and what has landed by now."""
        (key,) = keys
        task = self.session.tasks[str(key)]
        draft = self._read(task, "draft.json", Draft)
        checked = Checked(draft.outcome, draft.detail)
        if draft.outcome is Outcome.OK:
            try:
                checked = self._checked(task, draft, slot)
            except (GitError, Refused) as error:
                checked = Checked(Outcome.UNVERIFIED, str(error))
        checked = attrs.evolve(checked, draft=hash_of(draft), conditions=hash_of(task.check))
        self._write(task, "checked.json", checked)
        held = ", ".join(each.name for each in checked.judged if each.outcome is Outcome.OK)
        line = f"{checked.outcome}: {checked.detail.splitlines()[0] if checked.detail else ''}"
        line = f"{held} hold" if checked.outcome is Outcome.OK else line
        return {key: Attempt(checked.outcome, line=line, fields={"detail": checked.detail})}

    def _checked(self, task: Task, draft: Draft, slot: Slot) -> Checked:
        there = self._applied(draft, self._tip())
        if there.conflicts:
            return Checked(Outcome.CONFLICT, _in_conflict(there))
        worktree = self.session.worktree(slot)
        worktree.reset(there.tree)
        judged = self._judge(task, worktree, there.tree)
        failing = next((each for each in judged if each.outcome is not Outcome.OK), None)
        outcome, detail = (failing.outcome, f"{failing.name}: {failing.detail}") if failing else (Outcome.OK, "")
        return Checked(outcome, detail, tree=there.tree, judged=judged)

    def _judge(self, task: Task, worktree: Worktree, tree: str, again: bool = False) -> tuple[conditions.Judged, ...]:
        """tree: what the worktree was reset to. again: the same change was judged on another tree before."""

        def told(judged: conditions.Judged, phase: str, began: float, ended: float) -> None:
            self.session.condition(task.name, conditions.RERUN if again else phase, judged, began, ended)

        found = conditions.of(task, self.session.owning)
        return conditions.judge(found, worktree.root, told, lambda: worktree.altered(tree))

    # -- land, and repair

    def land(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        (key,) = keys
        due = self.due(self.session.tasks[str(key)], slot)
        return {key: due if isinstance(due, Attempt) else self._landed(due)}

    def due(self, task: Task, slot: Slot) -> Attempt | Due:
        """What is to land of a task now; else how it ends, or what comes before it lands."""
        found = self.waiting(task)
        if found and found.checked and (failure := self._begun(task, found.draft, slot)):
            return self.to_be_mended(task, failure)
        if found:
            return found
        draft, checked = self._read(task, "draft.json", Draft), self._read(task, "checked.json", Checked)
        mendable = checked.outcome in (Outcome.CONFLICT, Outcome.CHECK_FAILED)
        if draft.outcome is Outcome.OK and mendable:
            return self.to_be_mended(task, _failure(draft, checked))
        return self.parked(task, TaskLanded(checked.outcome, checked.detail))

    def _begun(self, task: Task, draft: Draft, slot: Slot) -> Failure | None:
        """Of a run that ended then: what a repair that has been paid for is to mend. The gate might blame another
        draft now, and that one would be mended as well."""
        failure = find(self.session.task_target(task.name, "failure.json"), Failure)
        if failure is None or failure.draft != hash_of(draft):
            return None
        try:
            tip = self._tip()
        except (GitError, Refused):  # the landing will say so
            return None
        drafting = Drafting.of(self.session, task, slot, "repair")
        return failure if drafting.begun(drafting.repair(tip, tip, failure)) else None

    def waiting(self, task: Task) -> Due | None:
        """The change of a task that is drafted, or mended, and held when it was judged."""
        target = self.session.task_target
        draft, checked = find(target(task.name, "draft.json"), Draft), find(target(task.name, "checked.json"), Checked)
        repaired = find(target(task.name, "repaired.json"), Draft)
        if draft is None or checked is None or checked.draft != hash_of(draft):
            return None
        if repaired and repaired.outcome is Outcome.OK and repaired.repairs == hash_of(draft):
            return Due(task, repaired, draft, None)
        held = draft.outcome is Outcome.OK and checked.outcome is Outcome.OK
        return Due(task, draft, draft, checked) if held else None

    def _landed(self, due: Due) -> Attempt:
        task, checked, failures = due.task, due.checked, due.failures
        try:
            landing = self.session.landing
            proposal = Proposal(self, landing, due)
            with process.holding(landing.lock(), MERGE_LOCK):
                landed = landing.land(proposal.on, TaskLanded)
        except (GitError, Refused) as error:
            landed = TaskLanded(Outcome.UNVERIFIED, str(error))
        self.session.moved()
        if failures and checked is not None:
            return attrs.evolve(self.to_be_mended(task, failures[-1]), fields={"detail": landed.detail})
        return self.parked(task, landed)

    def parked(self, task: Task, landed: TaskLanded) -> Attempt:
        """How the task ends, parked or landed."""
        self._write(task, "landed.json", landed)
        line = f"{landed.outcome}: {landed.detail.splitlines()[0] if landed.detail else ''}"
        if landed.outcome is Outcome.OK:
            line = f"{len(landed.files)} files on {self.session.landing.branch}"
        return Attempt(landed.outcome, line=line, fields={"detail": landed.detail, "repaired": landed.repaired})

    def to_be_mended(self, task: Task, failure: Failure) -> Attempt:
        self._write(task, "failure.json", failure)
        cut_short = "it was to be mended, and the run ended before that"
        self._write(task, "landed.json", TaskLanded(failure.outcome, cut_short))
        leg = Leg(f"repair:{task.name}", "repair", GENERATION, self.repair)
        return Attempt(failure.outcome, line=f"{failure.said}: one repair", then=leg)

    def repair(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        """One more draft, with what does not hold; then the landing again, and no repair after that."""
        (key,) = keys
        task = self.session.tasks[str(key)]
        draft, failure = self._read(task, "draft.json", Draft), self._read(task, "failure.json", Failure)
        drafting = Drafting.of(self.session, task, slot, "repair")
        try:
            tip = self._tip()
            repaired = drafting.draft(drafting.repair(tip, self._applied(draft, tip).tree, failure))
        except (GitError, Refused) as error:
            repaired = Draft(Outcome.UNVERIFIED, str(error))
        repaired = attrs.evolve(repaired, repairs=hash_of(draft))
        attempt = self._drafted(task, drafting, repaired, "repaired.json", "repaired.patch")
        if self.gate and repaired.outcome is Outcome.OK:
            return {key: attrs.evolve(attempt, then=self.at_the_gate(task, self.gate))}
        leg = Leg(f"land:{task.name}", "land", VALIDATION, self.land_repaired)
        return {key: attrs.evolve(attempt, then=leg)}

    def at_the_gate(self, task: Task, gate: Performer) -> Leg:
        return Leg(f"land:{task.name}", "land", GATE, gate, GATE)

    def land_repaired(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        (key,) = keys
        task = self.session.tasks[str(key)]
        draft, repaired = self._read(task, "draft.json", Draft), self._read(task, "repaired.json", Draft)
        if repaired.outcome is not Outcome.OK:
            failure = self._read(task, "failure.json", Failure)
            said = f"{failure.said}; its repair: {repaired.outcome}: {repaired.detail}"
            return {key: self.parked(task, TaskLanded(repaired.outcome, said))}
        return {key: self._landed(Due(task, repaired, draft, None))}

    # -- shared

    def _tip(self) -> str:
        """HEAD with all that has landed on top."""
        landing = self.session.landing
        tip, on_head = landing.standing()
        if on_head:
            return tip
        with process.holding(landing.lock(), MERGE_LOCK):
            tip = landing.rebased()
        self.session.moved()
        return tip

    def _applied(self, draft: Draft, commit: str) -> Applied:
        return drafts.applied(self.session.repository, commit, draft.files, self._blob(draft), self.session.scratch)

    def _blob(self, draft: Draft) -> drafts.Blob:
        return lambda oid: self.session.replies.blob(draft.reply, oid)

    def _read(self, task: Task, name: str, type_: type[T]) -> T:
        value = find(self.session.task_target(task.name, name), type_)
        if value is None:
            raise CannotGoOn(f"{self.session.task_target(task.name, name)} is missing or damaged: run again")
        return value

    def _write(self, task: Task, name: str, value: object) -> None:
        dump(self.session.task_target(task.name, name), value)


@attrs.frozen
class Due:
    """A change that is to land: the draft, or what repairs it."""

    task: Task
    change: Draft
    draft: Draft  # that it stands in for, or itself
    checked: Checked | None  # of the draft, where it has not been mended yet
    failures: list[Failure] = attrs.field(factory=list)  # what a repair could mend comes in here


@attrs.frozen
class Proposal:
    """What is due of a task, as something that lands."""

    changes: Changes
    landing: Landing
    due: Due

    @property
    def task(self) -> Task:
        return self.due.task

    @property
    def change(self) -> Draft:
        return self.due.change

    def on(self, start: str, head: str) -> Change[TaskLanded]:
        if lost := self.changes.came_off(self.task, start):
            raise Unfit(Outcome.BLOCKED, lost)
        there = self.changes._applied(self.change, start)
        if self._was_there(start):
            if there.as_before:
                why = f"somebody took {', '.join(there.as_before)} back: to have it drafted anew, say in its brief why"
                raise Unfit(Outcome.REJECTED, why)
            return Change(self._done)  # there, as a hook made it, or built upon since
        if there.conflicts:
            detail = _in_conflict(there)
            self._fails(Outcome.CONFLICT, ", ".join(there.conflicts), detail)
            raise Unfit(Outcome.CONFLICT, detail)
        return Change(
            self._done, there.paths, self._message(), {TASK: self.task.name, DRAFT: self.change.reply},
            lambda worktree: worktree.git("read-tree", "--reset", "-u", there.tree), self.holds,
        )  # fmt: skip

    def _was_there(self, start: str) -> bool:
        """Whether a commit on the way to `start` brought this very change."""
        mark = f"--grep={DRAFT}: {self.change.reply}"
        found = self.landing.repository.git("log", "-1", "--format=%B", "--fixed-strings", mark, start).text
        return mark_of(found, DRAFT) == self.change.reply

    def holds(self, worktree: Worktree, commit: str) -> bool:
        """Judge the commit that is to land, unless this very tree was judged before. Raises Unfit."""
        tree = self.landing.repository.git("rev-parse", f"{commit}^{{tree}}").text.strip()
        before = self.due.checked
        if before and (before.outcome, before.tree, before.conditions) == (Outcome.OK, tree, hash_of(self.task.check)):
            return True
        worktree.reset(commit)
        for judged in self.changes._judge(self.task, worktree, commit, again=True):
            if judged.outcome is Outcome.CHECK_FAILED:
                self._fails(judged.outcome, judged.name, _told(judged))
            if judged.outcome is not Outcome.OK:
                raise Unfit(judged.outcome, f"{judged.name}, on HEAD and what has landed: {judged.detail}")
        return True

    def _fails(self, outcome: Outcome, name: str, detail: str) -> None:
        self.due.failures.append(Failure(hash_of(self.due.draft), outcome, name, detail))

    def _done(self, commit: str) -> TaskLanded:
        states = self.landing.repository.files(commit)
        files = {path: states.get(path, "") for path in self.change.files}
        repaired = self.change is not self.due.draft
        return TaskLanded(Outcome.OK, "", hash_of(self.due.draft), hash_of(self.task.check), files, repaired)

    def _message(self) -> str:
        said = next(filter(None, (line.strip(" #") for line in self._about().splitlines())), "")
        subject = f"{self.task.name}: {said}"
        subject = subject if len(subject) <= 100 else f"{subject[:99]}…"
        by = f"{self.task.agent.use if self.task.agent else ''} {self.change.model}".strip()
        held = ", ".join(each.name for each in self.task.check)
        return f"{subject}\n\nDrafted by {by}. Holds: {held}."

    def _about(self) -> str:
        return self.task.doc or (self.task.agent.brief if self.task.agent else "")


def _failure(draft: Draft, checked: Checked) -> Failure:
    failing = next((each for each in checked.judged if each.outcome is not Outcome.OK), None)
    if failing is None:
        return Failure(hash_of(draft), checked.outcome, checked.detail, checked.detail)
    return Failure(hash_of(draft), checked.outcome, failing.name, _told(failing))


def _told(judged: conditions.Judged) -> str:
    """What an agent may know of a condition that does not hold."""
    return "A condition that you cannot see does not hold." if judged.hidden else f"{judged.name}: {judged.detail}"


def _in_conflict(there: Applied) -> str:
    return f"{', '.join(there.conflicts)}: what has landed meanwhile and this change do not go together"
