"""Does every landed test still have its proof? Judged from what is stored with it, on the tip of the landing branch.

Independent of what proved it and landed it: each mutant is applied by hand, as an edit of the source's text; what each
commit did is read from git. Imports nothing of proof.py, landing.py or asking.py.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from pipeline.branch import SCOPE
from pipeline.engines import Engine, TestRun
from pipeline.model import Scope
from pipeline.rerun import Landed, one_line, rerun, said
from pipeline.results import Kill, Outcome
from pipeline.store import Proof, ProofStore, Stored
from pipeline.worktree import Repository, Worktree

UNPROVED = ("text", "proof")  # checks of a landed test that there is no proof of: it is not run


@attrs.frozen
class Finding:
    """One thing that does not hold. `test`: its title; "" where it is the scope's file or a commit."""

    test: str
    check: str  # text | proof | inputs | runs | alone | kills | needed | kept | files
    why: str


@attrs.frozen
class Rechecked:
    """What was seen of one scope's landed tests."""

    scope: str
    kills: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)  # landed test -> kills seen again, of how many
    runs: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)  # landed test -> runs passed, of how many
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()  # for people; nothing is wrong


@attrs.frozen
class _Commit:
    """A commit of ours on the branch: whom its trailer names, what it touched."""

    id: str
    scope: str
    touched: tuple[str, ...]


@attrs.define
class Recheck:
    repository: Repository
    engine: Engine
    store: ProofStore
    version: str  # the engine's, as proofs have it
    ref: str  # of the landing branch
    scopes: Sequence[Scope]  # of the plan
    runs: int  # that the plan asks of a proof
    worktrees: Sequence[Worktree]  # one for each process side by side
    head: str = attrs.field(init=False)
    tip: str = attrs.field(init=False)  # HEAD where there is no branch, or one that HEAD holds already
    base: str = attrs.field(init=False)  # the newest commit that both have

    def __attrs_post_init__(self) -> None:
        self.head = self.repository.rev("HEAD") or ""
        tip = self.repository.rev(self.ref)
        self.tip = self.head if tip is None or self.repository.is_ancestor(tip, self.head) else tip
        self.base = (self.repository.git("merge-base", self.head, self.tip, ok=(0, 1)).text.split() or [self.head])[0]

    def of(self, scope: Scope) -> Rechecked:
        """Check one scope's file, and every landed test in it."""
        text, before = self._read(self.tip, scope.write), self._read(self.base, scope.write)
        stored = [s for s in self.store.tests(scope.write) if not s.rejected]
        standing = [s for s in stored if self._has(text, s)]
        landed = [Landed(s, self._proof_of(s)) for s in standing if s.proofs]
        findings = [
            *(Finding(s.test.title, "proof", "none is stored with it: take it out") for s in standing if not s.proofs),
            *self._changed(scope, text, before, stored),
            *self._lost(text, before, stored),
            *self._stray(scope),
            *(f for each in landed for f in (*self._moved(each), *_unsaid(scope, each))),
        ]
        if not landed:
            return Rechecked(scope.name, findings=tuple(findings))
        return self._run(scope, landed, stored, findings)

    def stray(self) -> Rechecked | None:
        """Files beside the write files that commits of ours touch whose scope the plan has not."""
        known = {name for s in self.scopes for name in (s.name, s.write)}
        writes = {s.write for s in self.scopes}
        findings = [
            Finding("", "files", f"commit {c.id[:10]} of {c.scope} changes {path}")
            for c in self._ours
            for path in c.touched
            if c.scope not in known and path not in writes
        ]
        return Rechecked("scopes that the plan has not", findings=tuple(findings)) if findings else None

    # -- what git and the store say

    def _read(self, treeish: str, write: str) -> str:
        return self.repository.read(treeish, write) or ""

    def _has(self, text: str, stored: Stored) -> bool:
        return self.engine.suite.find(text, stored.test.title) in {stored.test.code, stored.as_landed or None} - {None}

    @functools.cached_property
    def _states(self) -> Mapping[str, str]:
        return self.repository.files(self.tip)

    def _others(self, proof: Proof) -> list[str]:
        """Inputs that are not on the tip as they were when it was proved. Our own files differ by what lands."""
        writes = {scope.write for scope in self.scopes}
        return sorted(p for p, state in proof.inputs.items() if p not in writes and self._states.get(p) != state)

    def _proof_of(self, stored: Stored) -> Proof:
        """The proof that is about the tip, else the newest."""
        return next((p for p in stored.proofs if not self._others(p)), stored.proofs[0])

    def _moved(self, landed: Landed) -> list[Finding]:
        others = self._others(landed.proof)
        said = f"it was proved on another {', '.join(others)} than {self.tip[:10]} has: run doit mutate"
        return [Finding(landed.title, "inputs", said)] if others else []

    @functools.cached_property
    def _ours(self) -> Sequence[_Commit]:
        """The commits of ours that the branch has over HEAD, newest first."""
        form = f"--format=%H %(trailers:key={SCOPE},valueonly,separator=%x01)"
        listed = self.repository.git("log", "--topo-order", "-z", form, self.tip, f"^{self.base}").out
        found = []
        for line in listed.decode(errors="surrogateescape").split("\0"):
            id_, _, scope = line.strip().partition(" ")
            if not scope:
                continue  # somebody's
            names = self.repository.git("diff-tree", "--root", "--no-commit-id", "-r", "-m", "--name-only", "-z", id_)
            paths = {p for p in names.out.decode(errors="surrogateescape").split("\0") if p}
            prefix = self.repository.prefix
            touched = sorted(p[len(prefix) :] if p.startswith(prefix) else f"/{p}" for p in paths)
            found.append(_Commit(id_, scope.split("\x01")[-1], tuple(touched)))
        return found

    def _stray(self, scope: Scope) -> list[Finding]:
        return [
            Finding("", "files", f"commit {c.id[:10]} of ours changes {path}: take it off the branch")
            for c in self._ours
            for path in c.touched
            if c.scope in (scope.name, scope.write) and path != scope.write
        ]

    def _changed(self, scope: Scope, text: str, before: str, stored: Sequence[Stored]) -> list[Finding]:
        """Tests that commits of ours have put there and that are not, or not any more, what was proved."""
        suite = self.engine.suite
        put: set[str] = set()
        for commit in self._ours:
            if scope.write in commit.touched:
                was = suite.titles(self._read(f"{commit.id}~", scope.write))
                put |= set(suite.titles(self._read(commit.id, scope.write))) - set(was)
        proved = {s.test.title for s in stored}
        right = {s.test.title for s in stored if self._has(text, s)}
        return [
            Finding(
                title, "text",
                f"its text in {scope.write} is not the one that was proved: nothing is proved of it"
                if title in proved else "no proof of it is stored",
            )
            for title in suite.titles(text)
            if title in put - right and suite.find(text, title) != suite.find(before, title)
        ]  # fmt: skip

    def _lost(self, text: str, before: str, stored: Sequence[Stored]) -> list[Finding]:
        """Tests that HEAD's file had and the branch's has not, or not as they were. Ours may have been withdrawn."""
        suite = self.engine.suite
        ours = {s.test.title for s in stored if self._has(before, s)}
        return [
            Finding(title, "kept", "HEAD has it, and on the branch it is changed, skipped or gone")
            for title in suite.titles(before)
            if title not in ours and suite.find(text, title) != suite.find(before, title)
        ]

    def _order(self, scope: Scope, landed: Sequence[Landed]) -> list[list[str]]:
        """The landed tests by the commit that put them there, oldest first."""
        path = f":(top,literal){self.repository.prefix}{scope.write}"
        groups: list[list[str]] = [[each.title for each in landed]]
        for commit in self.repository.git("rev-list", "--topo-order", self.tip, "--", path).text.split():
            text = self._read(commit, scope.write)
            older = [each.title for each in landed if each.title in groups[0] and self._has(text, each.stored)]
            newer = [title for title in groups[0] if title not in older]
            groups[:1] = [older, newer]
        return [group for group in groups if group]

    # -- what runs say

    def _run(
        self, scope: Scope, landed: Sequence[Landed], stored: Sequence[Stored], findings: Sequence[Finding]
    ) -> Rechecked:
        standing, now = self._covering(scope, self.base), self._covering(scope, self.tip)
        limit = max(10.0, 10 * now.seconds)
        seen = rerun(self.engine, self.worktrees, self.tip, scope.write, landed, self.runs, limit)
        # The cause, not what follows from it.
        known = {f.test for f in findings if f.check == "kept"}
        known |= {each.title for each in landed if seen.passed(each) < len(seen.shuffled)}
        kept = _not_kept(standing, now, scope.write, {s.test.title for s in stored})
        found = [*findings, *(f for f in kept if f.test not in known)]
        if seen.wrote:
            found.append(Finding("", "files", f"its tests wrote {', '.join(seen.wrote)}"))
        found += [Finding(each.title, check, why) for each in landed for check, why in seen.wrong(each)]
        lost = {f.test for f in found if f.check == "kills"}
        found += [
            Finding(title, "needed", "without it no kill is lost: others that landed before it, or with it, have them")
            for title in unneeded({each.title: seen.killed(each) for each in landed}, self._order(scope, landed))
            if title not in lost
        ]
        kills = {each.title: (len(each.proof.kills) - len(seen.lost(each)), len(each.proof.kills)) for each in landed}
        runs = {each.title: (seen.passed(each), len(seen.shuffled)) for each in landed}
        others = sorted({each.proof.engine for each in landed} - {self.version})
        notes = tuple(f"proved with {name}, checked with {self.version}" for name in others)
        return Rechecked(scope.name, kills, runs, tuple(found), notes)

    def _covering(self, scope: Scope, tree: str) -> TestRun:
        """The scope's covering tests, its write file among them, once at a tree."""
        worktree = self.worktrees[0]
        worktree.reset(tree)
        files = None if scope.tests is None else sorted({*scope.tests, scope.write})
        there = None if files is None else [f for f in files if (worktree.root / f).is_file()]
        return self.engine.test(worktree.root, there, timeout=300)


def _unsaid(scope: Scope, landed: Landed) -> list[Finding]:
    """What a proof does not say and has to: a check of nothing holds always."""
    proof, stored = landed.proof, landed.stored
    mutated = {kill.file for kill in proof.kills}
    nameless = sorted(mutated - proof.inputs.keys())
    tests = sorted(mutated & {*(scope.tests or ()), scope.write})
    unproved = set(stored.test.kills) - {kill.key for each in stored.proofs for kill in each.kills}
    found = [
        ("inputs", f"{', '.join(nameless)} is not among what its proof says that it was proved on", nameless),
        ("kills", f"its proof names mutants of tests: {', '.join(tests)}", tests),
        ("kills", f"it is stored with {len(unproved)} kills that none of its proofs names", unproved),
    ]
    return [Finding(landed.title, check, why) for check, why, wrong in found if wrong]


def _not_kept(before: TestRun, now: TestRun, write: str, ours: Iterable[str]) -> list[Finding]:
    """Of the covering tests, those that passed without what landed and do not with it; of ours, those that fail."""
    if now.outcome is not Outcome.OK:
        return [Finding("", "kept", f"the covering tests cannot be run on the branch: {said(now)}")]
    failed = {(t.file, t.title): t.message for t in now.failed}
    mine = {(write, title) for title in ours}
    missing = _passed(before) - _passed(now)
    gone = {*(missing.keys() - mine), *(mine & failed.keys())}
    how = {each: one_line(f"fails: {failed[each]}") if each in failed else "is skipped" for each in gone}
    return [Finding(title, "kept", f"{file}: {how[file, title]}") for file, title in sorted(gone)]


def _passed(run: TestRun) -> Counter[tuple[str, str]]:
    return Counter((t.file, t.title) for t in run.tests if t.state == "passed")


def unneeded(killed: Mapping[str, frozenset[Kill]], order: Sequence[Sequence[str]]) -> list[str]:
    """Titles of tests that are not needed: all they kill, others kill that landed before them or with them.

    order: titles by landing, oldest first. A test that stood is not to go because a better one came later.
    """
    found: list[str] = []
    left = [title for group in order for title in group]
    for group in reversed(order):
        due = list(group)
        while due:
            others = {t: frozenset().union(*(killed[o] for o in left if o != t)) for t in due}
            needed = [t for t in due if killed[t] - others[t]]
            if not needed:
                break
            due.remove(needed[0])
            left.remove(needed[0])
        found += due
        left = [title for title in left if title not in group]
    return found
