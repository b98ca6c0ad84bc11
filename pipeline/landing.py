"""Make the landing branch hold HEAD plus every test now proved: one lock, one commit a scope, one compare-and-swap.

The ref is the truth: what is on the branch is read from it every time. Nothing lands on a judgement that was made
before the branch moved: what a commit's tree holds is judged after the commit is made and before the ref moves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
import filelock

from pipeline.branch import BASE, Conflict, LandingBranch, checked_out, mark_of, marks, message_of, named, texts_of
from pipeline.engines import Engine
from pipeline.model import Scope
from pipeline.proof import Bench, holds
from pipeline.results import Dropped, Landed, Outcome, Proved
from pipeline.sameness import Sameness
from pipeline.sandbox import Sandbox
from pipeline.store import ProofStore, Stored
from pipeline.worktree import GitError, GitTimeout, Repository, Worktree

TRIES = 5  # a person may move the branch between our look and our swap


class Refused(Exception):
    """Nothing can land here. The text says why and what to do."""


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


def landing_branch(repository: Repository, template: str) -> tuple[str, str]:
    """The branch that tests land on, and the ref of what it is to stand on. Raises Refused."""
    form = "--format=%(refname:lstrip=2)%00%(HEAD)"
    heads = [line.split("\0") for line in repository.git("for-each-ref", form, "refs/heads").text.splitlines()]
    current = next((name for name, mark in heads if mark == "*"), None)
    if current is None and repository.rev("HEAD") is None:
        raise Refused("the repository has no commit yet: commit something first")
    if current is None and "{branch}" in template:
        raise Refused(
            f"HEAD is detached, and land.branch is {template!r}: check out a branch, or give land.branch a fixed name"
        )
    name = template.replace("{branch}", current or "")
    ours = re.compile(re.escape(template).replace(re.escape("{branch}"), ".+"))
    if current == name or (current and ours.fullmatch(current) and mark_of(message_of(repository, "HEAD"), BASE)):
        raise Refused(
            f"{current} is a landing branch, and it is checked out: switch to the branch that it was made from"
        )
    if place := checked_out(repository, f"refs/heads/{name}"):
        raise Refused(f"the landing branch {name} is checked out in {place}: switch that worktree to another branch")
    for other, _ in heads:
        if name.startswith(f"{other}/") or other.startswith(f"{name}/"):
            raise Refused(f"the landing branch {name} cannot exist beside the branch {other}: set land.branch")
    if "{branch}" not in template and not _may_be_moved(repository, f"refs/heads/{name}"):
        raise Refused(
            f"the branch {name}, which land.branch names, is there, and none of its commits that HEAD lacks is from "
            "here: set land.branch to another name (mutate/{branch} will do), or delete that branch"
        )
    return name, f"refs/heads/{current}" if current else "HEAD"


def _may_be_moved(repository: Repository, ref: str) -> bool:
    """Whether a branch whose name says nothing of us is one that we have made, as its commits tell; or is not there."""
    if repository.rev(ref) is None:
        return True
    newer = repository.git("log", "--format=%B", ref, "^HEAD").text
    return mark_of(newer or message_of(repository, ref), BASE) is not None


@attrs.define
class Landing:
    repository: Repository
    branch: str
    base: str  # ref of what the branch stands on: by name, so that a person may switch branches in mid-run
    store: ProofStore
    engine: Engine
    worktree: Callable[[], Worktree]  # ours alone while the lock is held
    scopes: Sequence[Scope]
    runs: int  # proof runs on the original
    time_limit: float  # seconds for one commit with its hooks
    uncommitted: frozenset[str]  # paths that differ between the snapshot and the HEAD it was taken on
    sameness: Sameness
    on: LandingBranch = attrs.field(init=False)

    @on.default
    def _on(self) -> LandingBranch:
        writes = frozenset(scope.write for scope in self.scopes)
        return LandingBranch(self.branch, self.repository, self.store, self.engine, self.worktree, writes)

    @property
    def notes(self) -> list[str]:
        """What is to be said once a run."""
        off = (f"{write}: came off {self.branch}: unproved on HEAD, offered again" for write in sorted(self.on.off))
        raw = [
            f"the git filter {f} is not installed: its files are as git keeps them" for f in self.repository.raw_here
        ]
        return [*self.on.said, *raw, *off]

    def lock(self) -> filelock.FileLock:
        """One landing at a time in a repository, whatever process and checkout it comes from."""
        return filelock.FileLock(self.repository.common / "doit-mutate-landing.lock")

    def head(self) -> str:
        """The commit to land on top of: HEAD, as long as nobody has switched to another branch. Raises Refused."""
        head = self.repository.rev(self.base)
        if head is None:
            raise Refused(f"{self.base.removeprefix('refs/heads/')} is gone: what was proved lands in the next run")
        return head

    def tip(self, head: str) -> str:
        """What counts as the branch: HEAD where there is none, or one that HEAD holds already."""
        return self.on.tip(head)

    def standing(self) -> tuple[str, bool]:
        """What counts as the branch, and whether it is HEAD plus ours, and not another HEAD plus ours."""
        return self.on.standing(self.head())

    def land(
        self, scope: Scope, proved: Sequence[Proved], judged: Sequence[Dropped], inputs: Mapping[str, str],
        text: str, described: Mapping[str, str], bench_at: Callable[[Worktree, str], Bench],
    ) -> Landed:  # fmt: skip
        """Put a scope's proved tests on the branch. Call it with the lock held.

        judged: candidates that this run did not prove. inputs: path -> content hash, of all that the proofs loaded.
        text: the write file that was judged. described: mutant key -> a line for the commit's message. bench_at: where
        to judge tests at another tree, measuring if need be.
        """
        refused: dict[str, str] = {}  # title -> why it must not be in the file
        for _ in range(TRIES):
            try:
                landed = self._try(scope, proved, judged, inputs, text, described, bench_at, refused)
            except Conflict as conflict:
                return Landed(Outcome.CONFLICT, str(conflict))
            if landed is not None:
                return landed
        return Landed(Outcome.CONFLICT, f"{self.branch} moved {TRIES} times while this landed: run again")

    def _try(
        self, scope: Scope, proved: Sequence[Proved], judged: Sequence[Dropped], inputs: Mapping[str, str],
        text: str, described: Mapping[str, str], bench_at: Callable[[Worktree, str], Bench], refused: dict[str, str],
    ) -> Landed | None:  # fmt: skip
        """One try: None where the branch moved meanwhile, or a test did not hold and is in `refused` now."""
        repo, suite = self.repository, self.engine.suite
        head = self.head()
        old = repo.rev(self.on.ref)
        start = self.on.start(head, old)
        before = repo.read(start, scope.write) or ""
        stood = self.on.off.get(scope.write) or repo.read(self.on.tip(head), scope.write) or before
        sorted_out = self._sort_out(scope, proved, judged, before, stood, start, refused)
        changed = self.sameness.changed(inputs, repo.files(start), scope.mutate)
        differs = sorted(p for p in changed if p != scope.write)
        committed = repo.files(head)
        dirty = [p for p in differs if p in self.uncommitted and committed.get(p) != inputs[p]]
        after, commit = before, start
        if not dirty:
            for title in {s.test.title for s in self.on.ours_in(before, scope.write)} & sorted_out.withdrawn.keys():
                after = suite.remove(after, title)
            after = suite.add(after, [p.test for p in sorted_out.new])
            if sorted_out.withdrawn:
                after = self.on.without_husk(after, scope.write, head)
            here = {*suite.titles(after), *_titles(sorted_out.removed), *sorted_out.withdrawn}
            lost = (s.test.title for s in self.on.ours_in(stood, scope.write) if s.test.title not in here)
            sorted_out.withdrawn.update(dict.fromkeys(lost, "unproved on HEAD"))
        if after != before:
            made = self._commit(scope, start, after, _message(scope, sorted_out, described), head)
            if isinstance(made, Landed):
                return made
            commit = made
            failing = self._failing(scope, commit, sorted_out.ours, differs, text, bench_at)
            if failing:
                refused.update({d.title: d.reason for d in failing})
                return None
        if commit != self.on.tip(head):
            if place := checked_out(repo, self.on.ref):
                why = f"{self.branch} was checked out in {place} meanwhile: switch to another branch there, run again"
                return Landed(Outcome.CONFLICT, why)
            if not self._swap(commit, old):
                return None
        content = repo.files(commit).get(scope.write)
        if dirty:
            waiting = len(sorted_out.ours)
            detail = f"commit {', '.join(dirty)}, run again: {waiting} tests land for nothing"
            return Landed(Outcome.OK, detail, True, content, _titles(sorted_out.mine), _titles(sorted_out.theirs))
        self.on.off.pop(scope.write, None)
        self._remember(scope, sorted_out, commit, head, differs if after != before else ())
        return Landed(
            Outcome.OK, "", False, content, _titles(sorted_out.ours), _titles(sorted_out.theirs),
            _titles(sorted_out.removed), tuple(f"{t}: {why}" for t, why in sorted(sorted_out.withdrawn.items())),
        )  # fmt: skip

    def _sort_out(
        self, scope: Scope, proved: Sequence[Proved], judged: Sequence[Dropped], text: str, stood: str, start: str,
        refused: Mapping[str, str],
    ) -> _SortedOut:  # fmt: skip
        """Which of the proved tests the write file has, which are to come, and which must not.

        text: of the file at `start`. stood: as it was on the branch before.
        """
        stored = self._stored(scope)
        suite = self.engine.suite
        found = _SortedOut(withdrawn={})
        titles = suite.titles(text)
        for p in proved:
            there = suite.find(text, p.test.title)
            known = stored.get((p.test.title, p.test.code))
            if p.test.title in titles and there not in texts_of(p.test, known):
                found.theirs.append(p)
            elif p.test.title in refused:
                found.withdrawn[p.test.title] = refused[p.test.title]
            elif there is not None:
                found.mine.append(p)
            elif known and (known.rejected or self.on.taken_out(known, scope.write, start)):
                found.removed.append(p)
                self.store.put(scope.write, attrs.evolve(known, rejected=True))
            else:
                found.new.append(p)
        for drop in judged:
            known = stored.get((drop.title, drop.code))
            texts = texts_of(known.test, known) if known and drop.failed else ()
            if suite.find(text, drop.title) in texts or suite.find(stood, drop.title) in texts:
                found.withdrawn[drop.title] = drop.reason
        return found

    def _stored(self, scope: Scope) -> dict[tuple[str, str], Stored]:
        return {(s.test.title, s.test.code): s for s in self.store.tests(scope.write)}

    def _remember(self, scope: Scope, sorted_out: _SortedOut, commit: str, head: str, differs: Sequence[str]) -> None:
        """What has landed, since which HEAD, and as a hook made it.

        differs: inputs of which the branch has another state than it was first proved on, and was judged anew with.
        """
        stored = self._stored(scope)
        states = self.repository.files(commit)
        text = self.repository.read(commit, scope.write) or ""
        for p in sorted_out.ours:
            known = stored.get((p.test.title, p.test.code), Stored(p.test))
            there = self.engine.suite.find(text, p.test.title)
            if differs and known.proofs:
                here = {path: states[path] for path in known.inputs if path in states}
                known = known.proved(attrs.evolve(known.proofs[0], inputs=here))
            landed = attrs.evolve(known, test=p.test, since=known.since or head, as_landed=there or "")
            self.store.put(scope.write, landed)

    # -- commit, judge, swap

    def _commit(self, scope: Scope, start: str, text: str, message: str, head: str) -> str | Landed:
        worktree = self.worktree()
        worktree.git("checkout", "--detach", "--force", "--quiet", start)
        worktree.reset(start)
        literal = self.on.put(worktree, scope.write, text)
        lines = marks(scope.name, head, self.on.content(worktree, "", scope.write))
        words = ["commit", "--quiet", "-m", "\n".join([message, "", *lines]), "--", literal]
        try:
            worktree.git(*self.on.as_somebody(), *words, hooks=True, timeout=self.time_limit)
        except GitTimeout:
            # A killed git leaves its lock behind, and the next scope commits in the same worktree.
            (worktree.top / worktree.git("rev-parse", "--git-path", "index.lock").text.strip()).unlink(missing_ok=True)
            detail = f"the commit did not end within {self.time_limit:g} s (land.time_limit): look at its hooks"
            return Landed(Outcome.TIME_LIMIT, detail)
        except GitError as error:
            return Landed(Outcome.REJECTED, f"the commit was refused: {error}")
        commit = self.on.restate(worktree, head, scope.write)
        if not self.repository.is_ancestor(start, commit):
            return Landed(Outcome.OUTSIDE_SCOPE, f"a hook left HEAD on {commit[:10]}, which is not on the branch")
        names = self.repository.git("diff", "--name-only", "-z", start, commit).out.decode(errors="surrogateescape")
        strayed = [n for n in names.split("\0") if n and n != f"{self.repository.prefix}{scope.write}"]
        if strayed:
            return Landed(Outcome.OUTSIDE_SCOPE, f"a hook put {', '.join(strayed)} into the commit")
        return commit

    def _failing(
        self, scope: Scope, commit: str, proved: Sequence[Proved], differs: Sequence[str], text: str,
        bench_at: Callable[[Worktree, str], Bench],
    ) -> tuple[Dropped, ...]:  # fmt: skip
        """Tests that do not hold on the tree that would land."""
        worktree = self.worktree()
        landed = self.repository.read(commit, scope.write) or ""
        if differs or landed != text:
            return holds(bench_at(worktree, commit), landed, proved, self.runs)
        worktree.reset(commit)
        run = self.engine.test(worktree.root, [scope.write], timeout=300, sandbox=Sandbox(()))
        bad = {t.title: t.message for t in run.failed}
        return tuple(
            Dropped(p.test.title, Outcome.REJECTED, bad.get(p.test.title) or run.detail or "it did not run")
            for p in proved
            if p.test.title not in run.passed
        )

    def _swap(self, commit: str, old: str | None) -> bool:
        """Move the branch if it still is what we looked at."""
        expected = old or "0" * len(commit)
        moved = self.repository.git(
            "update-ref", "-m", "doit-mutate: land", self.on.ref, commit, expected, ok=(0, 1, 128)
        )
        if moved.exit_code and self.repository.rev(self.on.ref) == old:
            raise GitError(f"git update-ref: {moved.tail()}")  # it did not move: git will not have it
        return moved.exit_code == 0


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
