"""Make the landing branch hold HEAD plus a change: one lock, one commit by explicit path, one compare-and-swap.

The ref is the truth: what is on the branch is read from it every time. What lands is a Change, made for the commit that
it is to stand on, whoever it is from: a scope's proved tests (proved.py), a task's draft (drafts.py). The commit that
holds it is judged after it is made and before the ref moves: there is no other judgement that anything could land on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import attrs
import filelock

from pipeline.branch import BASE, Conflict, LandingBranch, checked_out, mark_of, marks, message_of
from pipeline.engines import Engine
from pipeline.model import Scope
from pipeline.results import Outcome
from pipeline.sameness import Sameness
from pipeline.store import ProofStore
from pipeline.worktree import GitError, GitTimeout, Repository, Worktree

TRIES = 5  # a person may move the branch between our look and our swap
T = TypeVar("T")


class Refused(Exception):
    """Nothing can land here. The text says why and what to do."""


class Unfit(Exception):
    """This change does not land: how that ended, and why in words."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome, self.detail = outcome, detail


@attrs.frozen
class Stand:
    """What a change is put on, as it was when it was looked at."""

    head: str
    old: str | None  # where the branch was
    start: str  # the commit: the branch, on HEAD


@attrs.frozen
class Change(Generic[T]):
    """What is to land on one commit, and made for that commit."""

    done: Callable[[str], T]  # once the branch stands there: the commit -> what came of it
    paths: tuple[str, ...] = ()  # all files of the project that it changes; none: there is nothing to commit
    message: str = ""
    marks: Mapping[str, str] = attrs.field(factory=dict)  # lines of the message that say whose it is
    stage: Callable[[Worktree], object] = lambda worktree: None  # put it into files and index of a worktree that stands
    # on the commit
    holds: Callable[[Worktree, str], bool] = lambda worktree, commit: True  # judge the commit that is to land. False:
    # propose it anew, without what did not hold. Raises Unfit


Propose = Callable[[str, str], Change[T]]  # the commit to stand on, HEAD -> the change. Raises Unfit


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
    if other := same_as(repository, f"refs/heads/{name}"):
        raise Refused(
            f"the branch {name} and {other} are one (a symbolic ref): both would move; set land.branch, or delete the "
            "name with git symbolic-ref --delete"
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


def same_as(repository: Repository, ref: str) -> str | None:
    """A ref that moves when this branch does, for one of them is but a name of the other; None where there is none."""
    for line in repository.git("for-each-ref", "--format=%(refname)%00%(symref)", "refs/heads").text.splitlines():
        name, _, of = line.partition("\0")
        if of and ref in (name, of):
            return (of if ref == name else name).removeprefix("refs/heads/")
    return None


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
    kept: Callable[[str, str], bool] = lambda task, draft: False  # whether a task's draft is here to land again
    on: LandingBranch = attrs.field(init=False)

    @on.default
    def _on(self) -> LandingBranch:
        writes = frozenset(scope.write for scope in self.scopes)
        return LandingBranch(self.branch, self.repository, self.store, self.engine, self.worktree, writes, self.kept)

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

    def land(self, propose: Propose[T], stopped: Callable[[Outcome, str], T]) -> T:
        """Put a change on the branch. Call it with the lock held.

        stopped: what comes of it where it does not land. What git refuses raises GitError.
        """
        for _ in range(TRIES):
            try:
                landed = self._try(propose)
            except Conflict as conflict:
                return stopped(Outcome.CONFLICT, str(conflict))
            except Unfit as unfit:
                return stopped(unfit.outcome, unfit.detail)
            if landed is not None:
                return landed[0]
        return stopped(Outcome.CONFLICT, f"{self.branch} moved {TRIES} times while this landed: run again")

    def rebased(self) -> str:
        """HEAD with all on top that has landed: the branch, put there if it is not. Call it with the lock held. Raises
        Refused."""

        def stopped(outcome: Outcome, detail: str) -> str:
            raise Refused(detail)

        return self.land(lambda start, head: Change(lambda commit: commit), stopped)

    def _try(self, propose: Propose[T]) -> tuple[T] | None:
        """One try: None where the branch moved meanwhile, or something is to be proposed anew."""
        stand = self.stand()
        change = propose(stand.start, stand.head)
        commit = self.commit(change, stand.start, stand.head) if change.paths else stand.start
        return (change.done(commit),) if self.put(stand, commit, change.holds) else None

    def stand(self) -> Stand:
        """What a change would stand on now. Raises Refused and Conflict."""
        head = self.head()
        old = self.repository.rev(self.on.ref)
        return Stand(head, old, self.on.start(head, old))

    def put(self, stand: Stand, commit: str, holds: Callable[[Worktree, str], bool]) -> bool:
        """Make the branch a commit, of one change or of several. False where it does not hold, or the branch has moved.

        Nothing else moves the branch. Raises Unfit.
        """
        if commit != stand.start and not holds(self.worktree(), commit):
            return False
        if commit == self.on.tip(stand.head):
            return True
        if other := same_as(self.repository, self.on.ref):
            raise Unfit(Outcome.CONFLICT, f"{self.branch} and {other} became one meanwhile (a symbolic ref)")
        if place := checked_out(self.repository, self.on.ref):
            why = f"{self.branch} was checked out in {place} meanwhile: switch to another branch there, run again"
            raise Unfit(Outcome.CONFLICT, why)
        return self._swap(commit, stand.old)

    def commit(self, change: Change[T], start: str, head: str) -> str:
        """The change as a commit on `start`, as the user's hooks leave it. Raises Unfit."""
        worktree = self.worktree()
        worktree.git("checkout", "--detach", "--force", "--quiet", start)
        worktree.reset(start)
        change.stage(worktree)
        lines = marks(change.marks, head, self.on.content(worktree, "", change.paths))
        names = [self.on.literal(path) for path in change.paths]
        words = ["commit", "--quiet", "-m", "\n".join([change.message, "", *lines]), "--", *names]
        try:
            worktree.git(*self.on.as_somebody(), *words, hooks=True, timeout=self.time_limit)
        except GitTimeout:
            # A killed git leaves its lock behind, and the next one commits in the same worktree.
            (worktree.top / worktree.git("rev-parse", "--git-path", "index.lock").text.strip()).unlink(missing_ok=True)
            detail = f"the commit did not end within {self.time_limit:g} s (land.time_limit): look at its hooks"
            raise Unfit(Outcome.TIME_LIMIT, detail) from None
        except GitError as error:
            raise Unfit(Outcome.REJECTED, f"the commit was refused: {error}") from None
        commit = self.on.restate(worktree, head, change.paths)
        if not self.repository.is_ancestor(start, commit):
            raise Unfit(Outcome.OUTSIDE_SCOPE, f"a hook left HEAD on {commit[:10]}, which is not on the branch")
        names_of = self.repository.git("diff", "--name-only", "--no-renames", "-z", start, commit).out
        allowed = {f"{self.repository.prefix}{path}" for path in change.paths}
        strayed = [n for n in names_of.decode(errors="surrogateescape").split("\0") if n and n not in allowed]
        if strayed:
            raise Unfit(Outcome.OUTSIDE_SCOPE, f"a hook put {', '.join(strayed)} into the commit")
        return commit

    def _swap(self, commit: str, old: str | None) -> bool:
        """Move the branch if it still is what we looked at."""
        expected = old or "0" * len(commit)
        moved = self.repository.git(
            "update-ref", "--no-deref", "-m", "doit-mutate: land", self.on.ref, commit, expected, ok=(0, 1, 128)
        )
        if moved.exit_code and self.repository.rev(self.on.ref) == old:
            raise GitError(f"git update-ref: {moved.tail()}")  # it did not move: git will not have it
        return moved.exit_code == 0
