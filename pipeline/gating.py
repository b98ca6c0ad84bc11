"""Changes land through the gate: stacked on the landing branch, built together, put there by landing.py.

gate.py decides; here it is done. A build takes a slot of validation; the landing lock is held while commits are made or
the branch moves, never during a build. What was green or red is remembered by tree and command, across runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import attrs

from pipeline import clock, conditions, ledger, process
from pipeline.account import MERGE_LOCK
from pipeline.branch import Conflict
from pipeline.changes import Changes, Due, Proposal
from pipeline.drafts import Draft, Failure, TaskLanded, hash_of
from pipeline.gate import Build, Gate, Land, Park, Stack, Stuck, Verdict, observed
from pipeline.host import Attempt, Slot
from pipeline.landing import Change, Refused, Stand, Unfit
from pipeline.model import LARGEST, VALIDATION, Condition, GateConfig
from pipeline.results import Outcome, find
from pipeline.session import Session
from pipeline.store import ActionCache
from pipeline.worktree import GitError, Worktree

MOVES = 5  # a person may move the branch while this goes on
REMEMBERED = 200  # of the drafts judged last, by whose rate of guilty ones stacks are made
BUILD = "build"


@attrs.frozen
class Built:
    """What a build said of a tree."""

    verdict: Verdict
    detail: str = ""
    crash: bool = False


@attrs.define
class _Stacked:
    """A stack as a commit, on what stands now."""

    commit: str
    changes: tuple[Change[TaskLanded], ...] = ()


@attrs.define
class Gating:
    """The gate of one run. look: judge, and land nothing. again: build what was built in earlier runs, too."""

    session: Session
    config: GateConfig
    look: bool = False
    again: bool = False
    _stand: Stand | None = None
    _stood: tuple[str, str | None] | None = None  # HEAD and the branch, when that was looked at
    _due: dict[str, Due] = attrs.field(factory=dict)
    _stacks: dict[Stack, _Stacked] = attrs.field(factory=dict)  # on `stand`
    _built: dict[str, list[Built]] = attrs.field(factory=lambda: defaultdict(list))  # by tree, in this run
    _said: dict[Stack, str] = attrs.field(factory=dict)  # why a stack was not green, for people
    _told: dict[Stack, Failure] = attrs.field(factory=dict)  # and for the agent, where a condition did not hold
    _green: set[str] = attrs.field(factory=set)  # trees that were green, with all conditions of what they hold
    _owed: dict[str, str] = attrs.field(factory=dict)  # task -> tree of a build with it that could not be finished
    _held: list[str] = attrs.field(factory=list)  # what goes with nothing that waits before it
    _judged: list[bool] = attrs.field(init=False)  # of the last drafts: was it guilty?
    _moves: int = 0
    gate: Gate = attrs.field(init=False)

    @_judged.default
    def _remembered(self) -> list[bool]:
        events = ledger.events(self.session.ledger_path)
        return [bool(e["guilty"]) for e in events if e["event"] == "gated"][-REMEMBERED:]

    @gate.default
    def _new(self) -> Gate:
        most = LARGEST if self.config.batch == "auto" else self.config.batch
        return Gate(most, observed(sum(self._judged), len(self._judged)))

    # -- the performers

    def land(self, keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        """Those of a batch: as far as one stack leads. Who is left waits for the next, with those that come by then."""
        ended: dict[Hashable, Attempt] = {}
        changes = Changes(self.session, self.land)
        for name in map(str, keys):
            due = changes.due(self.session.tasks[name], slot)
            if isinstance(due, Attempt):
                ended[name] = due
            else:
                self._wait(due)
        try:
            self._drive(changes, slot, ended)
        except BaseException:  # for doit they have all failed
            self.gate.waiting, self._held = [], []
            raise
        left = {str(key) for key in keys} - ended.keys()
        for name in left:
            leg = changes.at_the_gate(self.session.tasks[name], self.land)
            ended[name] = Attempt(Outcome.OK, line="waits for the next build", then=leg)
        return ended

    def all(self, keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        """All that is drafted and checked and has not landed; as a task of its own."""
        (key,) = keys
        ended: dict[Hashable, Attempt] = {}
        changes = Changes(self.session)
        for task in self.session.plan.changes:
            draft = find(self.session.task_target(task.name, "draft.json"), Draft)
            landed = find(self.session.task_target(task.name, "landed.json"), TaskLanded)
            there = draft and landed and landed.outcome is Outcome.OK and landed.draft == hash_of(draft)
            if not there and (due := changes.waiting(task)):
                self._wait(due)
        waiting = list(self.gate.waiting)
        while self.gate.waiting:
            self._drive(changes, slot, ended)
        lines = [f"{name}: {ended[name].line}" for name in waiting] or ["nothing waits at the gate"]
        bad = sum(ended[name].outcome is not Outcome.OK for name in waiting)
        failure = f"{bad} of {len(waiting)} {'would' if self.look else 'did'} not land" if bad else None
        return {key: Attempt(Outcome.OK, failure, output="\n".join(lines))}

    def _wait(self, due: Due) -> None:
        name, before = due.task.name, self._due.get(due.task.name)
        if before is not None and before.change != due.change:  # mended: no verdict on its draft is one on it
            self.gate.renewed(name)
            self._stacks = {stack: made for stack, made in self._stacks.items() if name not in stack}
        self._due[name] = due
        if name not in (*self.gate.waiting, *self._held):
            self.gate.waiting.append(name)

    # -- what is decided, done

    def _drive(self, changes: Changes, slot: Slot, ended: dict[Hashable, Attempt]) -> None:
        """Until a stack has led to something, and the next would be another."""
        begun = len(ended)
        try:
            while (what := self.gate.next()) is not None:
                if isinstance(what, Build):
                    if what.fresh and len(ended) > begun:
                        break
                    self._build(changes, what.stack, slot, ended)
                elif isinstance(what, Land):
                    self._land(changes, what.stack, ended)
                elif isinstance(what, Park):
                    self._park(changes, what, ended)
                else:
                    self._stuck(changes, what, ended)
                if not self.gate.waiting:
                    self.gate.waiting, self._held = self._held, []
        except (GitError, Refused, Conflict) as error:
            outcome = Outcome.CONFLICT if isinstance(error, Conflict) else Outcome.UNVERIFIED
            for name in [*self.gate.waiting, *self._held]:
                self._end(changes, name, TaskLanded(outcome, str(error)), ended)
            self._held = []

    def _build(self, changes: Changes, stack: Stack, slot: Slot, ended: dict[Hashable, Attempt]) -> None:
        with slot.beside(VALIDATION):
            with process.holding(self.session.landing.lock(), MERGE_LOCK):
                stacked = self._stacked(changes, stack, ended)
            if stacked is not None:
                self.gate.built(stack, self._judge(changes, stack, stacked.commit, slot))

    def _land(self, changes: Changes, stack: Stack, ended: dict[Hashable, Attempt]) -> None:
        with process.holding(self.session.landing.lock(), MERGE_LOCK):
            stacked = self._stacked(changes, stack, ended)
            if stacked is None or self._stand is None:
                return
            try:
                if not self.look and not self.session.landing.put(self._stand, stacked.commit, self._holds):
                    self._forget()
                    return
            except Unfit as unfit:
                for name in stack:
                    self._end(changes, name, TaskLanded(unfit.outcome, unfit.detail), ended)
                return
            self.session.moved()
            for name, change in zip(stack, stacked.changes, strict=True):
                self._end(changes, name, change.done(stacked.commit), ended)
                self._gated(name, False)
            self.gate.landed(stack)
            if not self.look:
                self._stood = (self._stand.head, stacked.commit)
            self._stand, self._stacks = attrs.evolve(self._stand, old=stacked.commit, start=stacked.commit), {}

    def _holds(self, worktree: Worktree, commit: str) -> bool:
        """Was this very tree built, and green, with all that is asked of what it holds?"""
        return self._tree(commit) in self._green

    def _park(self, changes: Changes, park: Park, ended: dict[Hashable, Attempt]) -> None:
        due, stack = self._due[park.draft], (*park.together, park.draft)
        said, told = self._said.get(stack, ""), self._told.get(stack)
        detail = f"{park.reason}\n{said}".rstrip()
        if park.verdict is Verdict.UNVERIFIED:
            self._end(changes, park.draft, TaskLanded(Outcome.UNVERIFIED, detail), ended)
        else:
            failure = told or Failure(hash_of(due.draft), Outcome.CHECK_FAILED, BUILD, said)
            failure = attrs.evolve(failure, why=park.reason, detail=f"{park.reason}\n{failure.detail}")
            self._mend(changes, due, failure, TaskLanded(Outcome.CHECK_FAILED, detail), ended)
            self._gated(park.draft, True)

    def _mend(
        self, changes: Changes, due: Due, failure: Failure, landed: TaskLanded, ended: dict[Hashable, Attempt]
    ) -> None:
        """One repair, where it has not had one; else the end."""
        name = due.task.name
        if due.checked is None or changes.gate is None:
            self._end(changes, name, landed, ended)
        else:
            ended[name] = changes.to_be_mended(due.task, attrs.evolve(failure, draft=hash_of(due.draft)))
            self.gate.gone(name)

    def _stuck(self, changes: Changes, stuck: Stuck, ended: dict[Hashable, Attempt]) -> None:
        outcome = Outcome.UNVERIFIED if stuck.verdict is Verdict.UNVERIFIED else Outcome.BLOCKED
        what = "cannot be built" if stuck.verdict is Verdict.UNVERIFIED else "is red without it"
        detail = f"the branch {what}: {self._said.get((), '')}".rstrip(": ")
        for name in [*self.gate.waiting, *self._held]:
            self._end(changes, name, TaskLanded(outcome, detail), ended)
        self._held = []

    def _end(self, changes: Changes, name: str, landed: TaskLanded, ended: dict[Hashable, Attempt]) -> None:
        good = landed.outcome is Outcome.OK
        line = "green: it would land" if good else f"{landed.outcome}: {landed.detail.splitlines()[0]}"
        if self.look:
            ended[name] = Attempt(landed.outcome, line=line)
        else:
            ended[name] = changes.parked(self.session.tasks[name], landed)
        if name in self.gate.waiting and not good:
            self.gate.gone(name)

    def _gated(self, name: str, guilty: bool) -> None:
        if not self.look:
            self.session.tell("gated", task=name, guilty=guilty, at=clock.now())
        self._judged = [*self._judged, guilty][-REMEMBERED:]
        self.gate.rate = observed(sum(self._judged), len(self._judged))

    # -- stacks

    def _forget(self) -> None:
        """Somebody has moved the branch."""
        self._stand, self._stacks, self._moves = None, {}, self._moves + 1
        if self._moves > MOVES:
            raise Refused(f"{self.session.landing.branch} moved {MOVES} times while this landed: run again")
        self.gate.moved()

    def _stacked(self, changes: Changes, stack: Stack, ended: dict[Hashable, Attempt]) -> _Stacked | None:
        """The stack as a commit; None where something else is to be decided first. Call it with the lock held."""
        landing = self.session.landing
        if self._stand is None or (landing.head(), landing.repository.rev(landing.on.ref)) != self._stood:
            if self._stand is not None:
                self._forget()
            if not self.look:
                landing.rebased()
            self._stand = landing.stand()
            self._stood = (self._stand.head, self._stand.old)
        stacked = _Stacked(self._stand.start)
        for n, name in enumerate(stack, start=1):
            if known := self._stacks.get(stack[:n]):
                stacked = known
                continue
            try:
                change = Proposal(changes, landing, self._due[name]).on(stacked.commit, self._stand.head)
                if not change.paths and n == 1:  # it is there already
                    self._end(changes, name, change.done(stacked.commit), ended)
                    self.gate.gone(name)
                    return None
                commit = landing.commit(change, stacked.commit, self._stand.head) if change.paths else stacked.commit
            except Unfit as unfit:
                self._unfit(changes, self._due[name], unfit, ended, alone=n == 1)
                return None
            stacked = self._stacks[stack[:n]] = _Stacked(commit, (*stacked.changes, change))
        return stacked

    def _unfit(self, changes: Changes, due: Due, unfit: Unfit, ended: dict[Hashable, Attempt], alone: bool) -> None:
        """It does not go onto the branch; or only not with those that wait before it, so that it waits for these."""
        failures, name = [*due.failures], due.task.name
        due.failures.clear()
        if not alone:
            self.gate.gone(name)
            self._held.append(name)
        elif failures:
            self._mend(changes, due, failures[-1], TaskLanded(unfit.outcome, unfit.detail), ended)
        else:
            self._end(changes, name, TaskLanded(unfit.outcome, unfit.detail), ended)

    def _tree(self, commit: str) -> str:
        return self.session.repository.git("rev-parse", f"{commit}^{{tree}}").text.strip()

    # -- builds

    def _judge(self, changes: Changes, stack: Stack, commit: str, slot: Slot) -> Verdict:
        """By the build, and by the check of each change in the stack."""
        tree, worktree = self._tree(commit), self.session.worktree(f"gate-{slot.index}")
        self._told.pop(stack, None)
        verdict, said = self._build_of(stack, tree, worktree, commit)
        if verdict is Verdict.GREEN:
            for name in stack:
                due = self._due[name]
                try:
                    Proposal(changes, self.session.landing, due).holds(worktree, commit)
                except Unfit as unfit:
                    failed = unfit.outcome is Outcome.CHECK_FAILED
                    verdict, said = Verdict.RED if failed else Verdict.UNVERIFIED, f"{name}: {unfit.detail}"
                    if due.failures:
                        self._told[stack] = due.failures.pop()
                    break
            else:
                self._green.add(tree)
        self._said[stack] = said
        self._cover(stack, tree, verdict)
        return verdict

    def _build_of(self, stack: Stack, tree: str, worktree: Worktree, commit: str) -> tuple[Verdict, str]:
        cache = ActionCache(self.session.places.cache / "actions")
        known = {"gate": list(self.config.build), "project": self.session.repository.prefix, "tree": tree}
        info, began = self.session.info, clock.now()
        since = info.started if info and (info.always or self.again) else 0.0
        attempts = self._built[tree]
        built = next((each for each in attempts if each.verdict is not Verdict.UNVERIFIED), None)
        built = built or cache.find(known, lambda _: True, Built, since)
        cached = built is not None
        if built is None:
            worktree.reset(commit)
            command = Condition(BUILD, self.config.build, timeout=self.config.timeout, owns=self.config.owns)
            judged = conditions.Command(command, self.session.owning).run(worktree.root)
            judged = conditions.untouched(judged, lambda: worktree.altered(commit))
            built = Built(_VERDICTS[judged.outcome], judged.detail, judged.crash)
            if built.crash and any(each.crash for each in attempts):  # it fell over again: no accident of the machine
                built = attrs.evolve(built, verdict=Verdict.RED)
            if built.verdict is not Verdict.UNVERIFIED:
                cache.keep(known, {}, built)
        attempts.append(built)
        self.session.build(
            stack=list(stack), tree=tree, verdict=str(built.verdict), cached=cached, detail=built.detail.split("\n")[0],
            started=began, ended=clock.now(),
        )  # fmt: skip
        return built.verdict, built.detail

    def _cover(self, stack: Stack, tree: str, verdict: Verdict) -> None:
        """What a build that could not be finished owes its changes: a later one that holds them and was."""
        for name in stack:
            if verdict is Verdict.UNVERIFIED:
                self._owed.setdefault(name, tree)
            elif owed := self._owed.pop(name, None):
                self.session.tell("covered", task=name, unverified=owed, by=tree, verdict=str(verdict))


_VERDICTS = {
    Outcome.OK: Verdict.GREEN, Outcome.CHECK_FAILED: Verdict.RED, Outcome.UNVERIFIED: Verdict.UNVERIFIED
}  # fmt: skip
