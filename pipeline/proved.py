"""The proved tests of a scope as a change that lands: which are there, which are to come, which come off, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from pipeline.branch import SCOPE, named, texts_of
from pipeline.landing import Change, Landing
from pipeline.model import Scope
from pipeline.proof import Bench, holds
from pipeline.results import Dropped, Landed, Outcome, Proved
from pipeline.sandbox import Sandbox
from pipeline.store import Stored
from pipeline.worktree import Worktree


@attrs.frozen
class _SortedOut:
    """The proved tests of a scope, by how they stand to the write file on the branch."""

    withdrawn: dict[str, str]  # titles of tests that come off, with the reason
    mine: list[Proved] = attrs.field(factory=list)  # there as we wrote them, or as a hook made them
    theirs: list[Proved] = attrs.field(factory=list)  # somebody else's test has the title
    removed: list[Proved] = attrs.field(factory=list)  # taken out by a person
    new: list[Proved] = attrs.field(factory=list)

    @property
    def ours(self) -> list[Proved]:
        return [*self.mine, *self.new]


@attrs.frozen
class ProvedTests:
    """What a scope has to land."""

    landing: Landing
    scope: Scope
    proved: Sequence[Proved]
    judged: Sequence[Dropped]  # candidates that this run did not prove
    inputs: Mapping[str, str]  # path -> content hash, of all that the proofs loaded
    text: str  # the write file that was judged
    described: Mapping[str, str]  # mutant key -> a line for the commit's message
    bench_at: Callable[[Worktree, str], Bench]  # where to judge tests at another tree, measuring if need be
    _refused: dict[str, str] = attrs.field(factory=dict)  # title -> why it must not be in the file

    def on(self, start: str, head: str) -> Change[Landed]:
        """The change that makes the write file, as it is at `start`, hold what is proved."""
        scope, on, repo, suite = self.scope, self.landing.on, self.landing.repository, self.landing.engine.suite
        before = repo.read(start, scope.write) or ""
        stood = on.off.get(scope.write) or repo.read(on.tip(head), scope.write) or before
        sorted_out = self._sort_out(before, stood, start)
        changed = self.landing.sameness.changed(self.inputs, repo.files(start), scope.mutate)
        differs = sorted(p for p in changed if p != scope.write)
        committed = repo.files(head)
        dirty = [p for p in differs if p in self.landing.uncommitted and committed.get(p) != self.inputs[p]]
        if dirty:
            return Change(lambda commit: self._held(sorted_out, commit, dirty))
        after = before
        for title in {s.test.title for s in on.ours_in(before, scope.write)} & sorted_out.withdrawn.keys():
            after = suite.remove(after, title)
        after = suite.add(after, [p.test for p in sorted_out.new])
        if sorted_out.withdrawn:
            after = on.without_husk(after, scope.write, head)
        here = {*suite.titles(after), *_titles(sorted_out.removed), *sorted_out.withdrawn}
        lost = (s.test.title for s in on.ours_in(stood, scope.write) if s.test.title not in here)
        sorted_out.withdrawn.update(dict.fromkeys(lost, "unproved on HEAD"))
        if after == before:
            return Change(lambda commit: self._landed(sorted_out, commit, head, ()))
        return Change(
            done=lambda commit: self._landed(sorted_out, commit, head, differs),
            paths=(scope.write,),
            message=_message(scope, sorted_out, self.described),
            marks={SCOPE: scope.name},
            stage=lambda worktree: on.put(worktree, scope.write, after),
            holds=lambda worktree, commit: self._holds(worktree, commit, sorted_out.ours, differs),
        )

    def _held(self, sorted_out: _SortedOut, commit: str, dirty: Sequence[str]) -> Landed:
        content = self.landing.repository.files(commit).get(self.scope.write)
        detail = f"commit {', '.join(dirty)}, run again: {len(sorted_out.ours)} tests land for nothing"
        return Landed(Outcome.OK, detail, True, content, _titles(sorted_out.mine), _titles(sorted_out.theirs))

    def _landed(self, sorted_out: _SortedOut, commit: str, head: str, differs: Sequence[str]) -> Landed:
        self.landing.on.off.pop(self.scope.write, None)
        self._remember(sorted_out, commit, head, differs)
        return Landed(
            Outcome.OK, "", False, self.landing.repository.files(commit).get(self.scope.write),
            _titles(sorted_out.ours), _titles(sorted_out.theirs), _titles(sorted_out.removed),
            tuple(f"{t}: {why}" for t, why in sorted(sorted_out.withdrawn.items())),
        )  # fmt: skip

    def _sort_out(self, text: str, stood: str, start: str) -> _SortedOut:
        """Which of the proved tests the write file has, which are to come, and which must not.

        text: of the file at `start`. stood: as it was on the branch before.
        """
        scope, on, suite = self.scope, self.landing.on, self.landing.engine.suite
        stored = self._stored()
        found = _SortedOut(withdrawn={})
        titles = suite.titles(text)
        for p in self.proved:
            there = suite.find(text, p.test.title)
            known = stored.get((p.test.title, p.test.code))
            if p.test.title in titles and there not in texts_of(p.test, known):
                found.theirs.append(p)
            elif p.test.title in self._refused:
                found.withdrawn[p.test.title] = self._refused[p.test.title]
            elif there is not None:
                found.mine.append(p)
            elif known and (known.rejected or on.taken_out(known, scope.write, start)):
                found.removed.append(p)
                self.landing.store.put(scope.write, attrs.evolve(known, rejected=True))
            else:
                found.new.append(p)
        for drop in self.judged:
            known = stored.get((drop.title, drop.code))
            texts = texts_of(known.test, known) if known and drop.failed else ()
            if suite.find(text, drop.title) in texts or suite.find(stood, drop.title) in texts:
                found.withdrawn[drop.title] = drop.reason
        return found

    def _stored(self) -> dict[tuple[str, str], Stored]:
        return {(s.test.title, s.test.code): s for s in self.landing.store.tests(self.scope.write)}

    def _remember(self, sorted_out: _SortedOut, commit: str, head: str, differs: Sequence[str]) -> None:
        """What has landed, since which HEAD, and as a hook made it.

        differs: inputs of which the branch has another state than it was first proved on, and was judged anew with.
        """
        repository, write, stored = self.landing.repository, self.scope.write, self._stored()
        states = repository.files(commit)
        text = repository.read(commit, write) or ""
        for p in sorted_out.ours:
            known = stored.get((p.test.title, p.test.code), Stored(p.test))
            there = self.landing.engine.suite.find(text, p.test.title)
            if differs and known.proofs:
                here = {path: states[path] for path in known.inputs if path in states}
                known = known.proved(attrs.evolve(known.proofs[0], inputs=here))
            landed = attrs.evolve(known, test=p.test, since=known.since or head, as_landed=there or "")
            self.landing.store.put(write, landed)

    def _holds(self, worktree: Worktree, commit: str, proved: Sequence[Proved], differs: Sequence[str]) -> bool:
        """Whether all of the tests hold on the tree that would land; which do not is known from then on."""
        failing = self._failing(worktree, commit, proved, differs)
        self._refused.update({d.title: d.reason for d in failing})
        return not failing

    def _failing(
        self, worktree: Worktree, commit: str, proved: Sequence[Proved], differs: Sequence[str]
    ) -> tuple[Dropped, ...]:
        landing, write = self.landing, self.scope.write
        landed = landing.repository.read(commit, write) or ""
        if differs or landed != self.text:
            return holds(self.bench_at(worktree, commit), landed, proved, landing.runs)
        worktree.reset(commit)
        run = landing.engine.test(worktree.root, [write], timeout=300, sandbox=Sandbox(()))
        bad = {t.title: t.message for t in run.failed}
        return tuple(
            Dropped(p.test.title, Outcome.REJECTED, bad.get(p.test.title) or run.detail or "it did not run")
            for p in proved
            if p.test.title not in run.passed
        )


def _titles(proved: Iterable[Proved]) -> tuple[str, ...]:
    return tuple(sorted(p.test.title for p in proved))


def _message(scope: Scope, sorted_out: _SortedOut, described: Mapping[str, str]) -> str:
    kills = {k for p in sorted_out.new for k in p.how}
    what = f"Kill {len(kills)} surviving mutants of {scope.name}" if kills else f"Withdraw tests of {scope.name}"
    lines = [what, ""]
    for p in sorted_out.new:
        lines += [f"- {named(p.test.title)}", *(f"  {described.get(key, key)}" for key in sorted(p.how))]
    for title, why in sorted(sorted_out.withdrawn.items()):
        lines.append(f"- withdrawn: {named(title)}: {named(why.splitlines()[0])}")
    return "\n".join(lines)
