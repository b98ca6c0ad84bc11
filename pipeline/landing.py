"""Make the landing branch hold HEAD plus every test now proved: one lock, one commit a scope, one compare-and-swap.

The ref is the truth: what is on the branch is read from it every time. Nothing lands on a judgement that was made
before the branch moved: what a commit's tree holds is judged after the commit is made and before the ref moves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
import filelock

from pipeline import process
from pipeline.engines import Engine
from pipeline.model import Scope
from pipeline.proof import Bench, holds
from pipeline.results import Dropped, Landed, Outcome, Proved, Test, write_bytes
from pipeline.store import ProofStore, Stored
from pipeline.worktree import GitError, Repository, Worktree

BASE = "Mutate-Base"
SCOPE = "Mutate-Scope"
TRIES = 5  # a person may move the branch between our look and our swap
NOBODY = ("-c", "user.name=doit-mutate", "-c", "user.email=doit-mutate@localhost.invalid")


class Refused(Exception):
    """Nothing can land here. The text says why and what to do."""


class _Conflict(Exception):
    """A commit of somebody's does not go onto HEAD."""


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


def landing_branch(repository: Repository, template: str) -> str:
    """The branch that tests land on. Raises Refused."""
    if repository.rev("HEAD") is None:
        raise Refused("the repository has no commit yet: commit something first")
    current = repository.branch()
    if current is None and "{branch}" in template:
        raise Refused(
            f"HEAD is detached, and land.branch is {template!r}: check out a branch, or give land.branch a fixed name"
        )
    name = template.replace("{branch}", current or "")
    if repository.git("check-ref-format", "--branch", name, ok=(0, 1, 128)).exit_code != 0:
        raise Refused(f"land.branch: {name!r} is not a valid branch name")
    ours = re.compile(re.escape(template).replace(re.escape("{branch}"), ".+"))
    if current == name or (current and ours.fullmatch(current) and _trailer(repository, "HEAD", BASE)):
        raise Refused(
            f"{current} is a landing branch, and it is checked out: switch to the branch that it was made from"
        )
    listed = repository.git("worktree", "list", "--porcelain", "-z").text.split("\0")
    for i, line in enumerate(listed):
        if line == f"branch refs/heads/{name}":
            place = next((w[9:] for w in reversed(listed[:i]) if w.startswith("worktree ")), "another worktree")
            raise Refused(
                f"the landing branch {name} is checked out in {place}: switch that worktree to another branch"
            )
    heads = repository.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").text.split("\n")
    for other in filter(None, heads):
        if name.startswith(f"{other}/") or other.startswith(f"{name}/"):
            raise Refused(f"the landing branch {name} cannot exist beside the branch {other}: set land.branch")
    return name


def _trailer(repository: Repository, commit: str, key: str) -> str | None:
    said = repository.git("log", "-1", f"--format=%(trailers:key={key},valueonly,separator=%x00)", commit).text
    return said.strip().split("\0")[-1] or None


@attrs.define
class Landing:
    repository: Repository
    branch: str
    store: ProofStore
    engine: Engine
    worktree: Callable[[], Worktree]  # ours alone while the lock is held
    scopes: Sequence[Scope]
    runs: int  # proof runs on the original
    uncommitted: frozenset[str]  # paths that differ between the snapshot and the HEAD it was taken on
    notes: list[str] = attrs.field(factory=list)  # what is said once a run

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"

    def lock(self) -> filelock.FileLock:
        """One landing at a time in a repository, whatever process and checkout it comes from."""
        return filelock.FileLock(self.repository.common / "doit-mutate-landing.lock")

    def tip(self, head: str) -> str:
        """What counts as the branch: HEAD where there is none, or one that HEAD holds already."""
        tip = self.repository.rev(self.ref)
        return head if tip is None or self.repository.is_ancestor(tip, head) else tip

    def stands_on(self, head: str) -> bool:
        """Whether the branch is HEAD plus ours, and not another HEAD plus ours."""
        tip = self.tip(head)
        if tip == head:
            return True
        base = self._base(head, tip)
        return base == head

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
            except _Conflict as conflict:
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
        head = repo.rev("HEAD") or ""
        old = repo.rev(self.ref)
        start = self._start(head, old)
        before = repo.read(start, scope.write) or ""
        sorted_out = self._sort_out(scope, proved, judged, before, start, refused)
        differs = sorted(p for p, state in self._differing(inputs, start) if p != scope.write)
        committed = repo.files(head)
        dirty = [p for p in differs if p in self.uncommitted and committed.get(p) != inputs[p]]
        after, commit = before, start
        if not dirty:
            for title in sorted_out.withdrawn:
                after = suite.remove(after, title)
            after = suite.add(after, [p.test for p in sorted_out.new])
        if after != before:
            made = self._commit(scope, start, after, _message(scope, sorted_out, described, head))
            if isinstance(made, Landed):
                return made
            commit = made
            failing = self._failing(scope, commit, sorted_out.ours, differs, text, bench_at)
            if failing:
                refused.update({d.title: d.reason for d in failing})
                return None
        if commit != self.tip(head) and not self._swap(commit, old):
            return None
        content = repo.files(commit).get(scope.write)
        if dirty:
            waiting = len(sorted_out.new)
            detail = f"commit {', '.join(dirty)}, run again: {waiting} tests land for nothing"
            return Landed(Outcome.OK, detail, True, content, _titles(sorted_out.mine), _titles(sorted_out.theirs))
        self._remember(scope, sorted_out, commit, inputs)
        return Landed(
            Outcome.OK, "", False, content, _titles(sorted_out.ours), _titles(sorted_out.theirs),
            _titles(sorted_out.removed), tuple(f"{t}: {why}" for t, why in sorted(sorted_out.withdrawn.items())),
        )  # fmt: skip

    def _differing(self, inputs: Mapping[str, str], commit: str) -> list[tuple[str, str]]:
        states = self.repository.files(commit)
        return [(path, state) for path, state in inputs.items() if states.get(path) != state]

    def _sort_out(
        self, scope: Scope, proved: Sequence[Proved], judged: Sequence[Dropped], text: str, start: str,
        refused: Mapping[str, str],
    ) -> _SortedOut:  # fmt: skip
        """Which of the proved tests the write file has, which are to come, and which must not."""
        stored = self._stored(scope)
        found = _SortedOut(withdrawn={})
        titles = self.engine.suite.titles(text)
        for p in proved:
            there = self.engine.suite.find(text, p.test.title)
            known = stored.get((p.test.title, p.test.code))
            if p.test.title in titles and there not in _texts(p.test, known):
                found.theirs.append(p)
            elif p.test.title in refused:
                if there is not None:
                    found.withdrawn[p.test.title] = refused[p.test.title]
            elif there is not None:
                found.mine.append(p)
            elif known and (known.rejected or self._taken_out(known, start)):
                found.removed.append(p)
                self.store.put(scope.write, attrs.evolve(known, rejected=True))
            else:
                found.new.append(p)
        for drop in judged:
            known = stored.get((drop.title, drop.code))
            there = self.engine.suite.find(text, drop.title)
            if known and drop.failed and there in _texts(known.test, known):
                found.withdrawn[drop.title] = drop.reason
        return found

    def _stored(self, scope: Scope) -> dict[tuple[str, str], Stored]:
        return {(s.test.title, s.test.code): s for s in self.store.tests(scope.write)}

    def _remember(self, scope: Scope, sorted_out: _SortedOut, commit: str, inputs: Mapping[str, str]) -> None:
        """What the branch holds now, so that a test that is missing from it one day was taken out by somebody."""
        stored = self._stored(scope)
        text = self.repository.read(commit, scope.write) or ""
        for p in sorted_out.ours:
            known = stored.get((p.test.title, p.test.code), Stored(p.test))
            since = [c for c in known.held_by if not self.repository.is_ancestor(c, commit)]
            there = self.engine.suite.find(text, p.test.title)
            self.store.put(
                scope.write,
                attrs.evolve(
                    known, test=p.test, held_by=(*since[-3:], commit), inputs=dict(inputs), as_landed=there or ""
                ),
            )
        for (title, _), known in stored.items():
            if title in sorted_out.withdrawn:  # ours to take off: nobody removed it
                self.store.put(scope.write, attrs.evolve(known, held_by=()))

    # -- where to start

    def _start(self, head: str, tip: str | None) -> str:
        """The commit to land on: the branch as it is, or rebuilt on HEAD where HEAD is no longer what it stands on."""
        if tip is None or self.repository.is_ancestor(tip, head):
            return head
        if self._base(head, tip) == head:
            return tip
        return self._rebuilt(head, tip)

    def _base(self, head: str, tip: str) -> str | None:
        """The commit that the branch stands on: what the newest commit of ours names; else the fork from HEAD."""
        for commit in self._commits(head, tip):
            if base := _trailer(self.repository, commit, BASE):
                return base
        forks = self.repository.git("merge-base", head, tip, ok=(0, 1)).text.split()
        return forks[0] if forks else None

    def _commits(self, base: str, tip: str) -> list[str]:
        """Commits of the branch that `base` does not hold, newest first."""
        return self.repository.git("rev-list", "--topo-order", f"{base}..{tip}").text.split()

    def _rebuilt(self, head: str, tip: str) -> str:
        """The branch's commits on top of `head`: somebody's all, ours where their proofs' inputs are the same."""
        repo = self.repository
        base = self._base(head, tip) or head
        commits = list(reversed(self._commits(base if repo.is_ancestor(base, tip) else head, tip)))
        worktree = self.worktree()
        states = repo.files(head)
        skip: set[str] = set()
        while True:
            worktree.git("checkout", "--detach", "--force", "--quiet", head)
            worktree.reset(head)
            carried: dict[str, str] = {}  # write file -> the commit it came from
            for commit in commits:
                ours = _trailer(repo, commit, SCOPE)
                scope = next((s for s in self.scopes if s.name == ours), None)
                if ours and (scope is None or scope.write in skip or not self._as_proved(scope, commit, states)):
                    if scope is not None:
                        self.notes.append(f"{scope.write}: came off {self.branch}: unproved on HEAD, offered again")
                    continue
                if not self._pick(worktree, commit, head if ours else None):
                    if not ours:
                        raise _Conflict(
                            f"commit {commit[:10]} on {self.branch} does not go onto HEAD: rebase {self.branch} by "
                            "hand, or delete it: what was proved lands again"
                        )
                elif scope:
                    carried[scope.write] = commit
            red = self._red(worktree, sorted(carried))
            if not red:
                break
            skip.update(red)
        start = worktree.git("rev-parse", "HEAD").text.strip()
        for write in carried:
            text = repo.read(start, write) or ""
            for stored in self._in(text, write):
                self.store.put(write, attrs.evolve(stored, held_by=(*stored.held_by[-3:], start)))
        return start

    def _as_proved(self, scope: Scope, commit: str, states: Mapping[str, str]) -> bool:
        """Whether every test of ours in a commit's write file was proved on inputs that are the same now."""
        text = self.repository.read(commit, scope.write) or ""
        ours = self._in(text, scope.write)
        return bool(ours) and all(
            states.get(path) == state for s in ours for path, state in s.inputs.items() if path != scope.write
        )

    def _in(self, text: str, write: str) -> list[Stored]:
        """The stored tests that a write file's text has."""
        stored = self.store.tests(write)
        return [s for s in stored if self.engine.suite.find(text, s.test.title) in _texts(s.test, s)]

    def _pick(self, worktree: Worktree, commit: str, base: str | None) -> bool:
        """Put a commit on top; False where it does not go. base: for ours, what the trailer is to name now."""
        parents = self.repository.git("rev-list", "--parents", "-n", "1", commit).text.split()[1:]
        if len(parents) != 1:
            return False
        if worktree.git("cherry-pick", "--no-commit", commit, ok=(0, 1, 128)).exit_code != 0:
            worktree.git("reset", "--hard", "--quiet", "HEAD")
            return False
        if worktree.git("diff", "--cached", "--quiet", ok=(0, 1)).exit_code == 0:
            return True  # HEAD has it already
        words = ["commit", "--quiet", "--no-verify", "-C", commit]
        worktree.git(*self._as_somebody(), *words)
        if base:
            message = worktree.git("log", "-1", "--format=%B").text
            told = re.sub(rf"^{BASE}: .*$", f"{BASE}: {base}", message, flags=re.MULTILINE)
            worktree.git(*self._as_somebody(), "commit", "--quiet", "--no-verify", "--amend", "-m", told)
        return True

    def _red(self, worktree: Worktree, writes: Sequence[str]) -> list[str]:
        """Of these test files, those that are not green as they stand in the worktree."""
        if not writes:
            return []
        worktree.link()
        if self.engine.test(worktree.root, writes, timeout=300).green:
            return []
        if len(writes) == 1:
            return list(writes)
        return [w for w in writes if not self.engine.test(worktree.root, [w], timeout=300).green]

    def _taken_out(self, stored: Stored, start: str) -> bool:
        return any(self.repository.is_ancestor(commit, start) for commit in stored.held_by)

    # -- commit, judge, swap

    def _commit(self, scope: Scope, start: str, text: str, message: str) -> str | Landed:
        worktree = self.worktree()
        worktree.git("checkout", "--detach", "--force", "--quiet", start)
        worktree.reset(start)
        path = worktree.root / scope.write
        write_bytes(path, text.encode(errors="surrogateescape"))
        literal = f":(top,literal){self.repository.prefix}{scope.write}"
        worktree.git("add", "--force", "--", literal)
        try:
            worktree.git(*self._as_somebody(), "commit", "--quiet", "-m", message, "--", literal, hooks=True)
        except GitError as error:
            return Landed(Outcome.REJECTED, f"the commit was refused: {error}")
        commit = worktree.git("rev-parse", "HEAD").text.strip()
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
        run = self.engine.test(worktree.root, [scope.write], timeout=300)
        bad = {t.title: t.message for t in run.failed}
        return tuple(
            Dropped(p.test.title, Outcome.REJECTED, bad.get(p.test.title) or run.detail or "it did not run")
            for p in proved
            if p.test.title not in run.passed
        )

    def _swap(self, commit: str, old: str | None) -> bool:
        """Move the branch if it still is what we looked at."""
        expected = old or "0" * len(commit)
        moved = self.repository.git("update-ref", "-m", "doit-mutate: land", self.ref, commit, expected, ok=(0, 1, 128))
        return moved.exit_code == 0

    def _as_somebody(self) -> tuple[str, ...]:
        """Options for a commit: nothing where git knows who commits, else a named fallback."""
        env = process.environment()
        known = self.repository.git("config", "user.email", ok=(0, 1)).text.strip() or env.get("GIT_COMMITTER_EMAIL")
        if known:
            return ()
        note = "no git identity is configured: commits are by doit-mutate@localhost.invalid"
        if note not in self.notes:
            self.notes.append(note)
        return NOBODY


def _titles(proved: Iterable[Proved]) -> tuple[str, ...]:
    return tuple(sorted(p.test.title for p in proved))


def _texts(test: Test, stored: Stored | None) -> tuple[str, ...]:
    """The texts that are this test: what was computed, and what a hook made of it."""
    return (test.code, stored.as_landed) if stored and stored.as_landed else (test.code,)


def _message(scope: Scope, sorted_out: _SortedOut, described: Mapping[str, str], head: str) -> str:
    kills = {k for p in sorted_out.new for k in p.how}
    what = f"Kill {len(kills)} surviving mutants of {scope.name}" if kills else f"Withdraw tests of {scope.name}"
    lines = [what, ""]
    for p in sorted_out.new:
        lines += [f"- {p.test.title}", *(f"  {described.get(key, key)}" for key in sorted(p.how))]
    lines += [f"- withdrawn: {title}: {why.splitlines()[0]}" for title, why in sorted(sorted_out.withdrawn.items())]
    lines += ["", f"{SCOPE}: {scope.name}", f"{BASE}: {head}"]
    return "\n".join(lines)
