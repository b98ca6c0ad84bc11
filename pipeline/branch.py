"""The landing branch in git: whose each commit on it is, and how it is put on top of another HEAD.

A commit of ours says in its message the scope it is for, the HEAD that it stands on, and what its one file holds. All
others are somebody's, one of ours that a person has changed among them: they are kept, whatever becomes of ours.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline.engines import Engine
from pipeline.results import Test, write_bytes
from pipeline.store import ProofStore, Stored
from pipeline.worktree import Repository, Worktree

BASE = "Mutate-Base"
SCOPE = "Mutate-Scope"
TASK, DRAFT = "Mutate-Task", "Mutate-Draft"  # in the place of the scope: whose change, and the name of its kept reply
CONTENT = "Mutate-Content"  # content hash of the one file that it changes, or NOTHING; of several, a hash of theirs
NOTHING = "none"
RECENT = 2000  # commits that are looked at for whose changes have landed
NOBODY = ("-c", "user.name=doit-mutate", "-c", "user.email=doit-mutate@localhost.invalid")


class Conflict(Exception):
    """A commit of somebody's does not go onto HEAD."""


def marks(whose: Mapping[str, str], head: str, content: str) -> list[str]:
    """The lines of a message that make the commit ours."""
    return [f"{key}: {value}" for key, value in {**whose, BASE: head, CONTENT: content}.items()]


def mark_of(message: str, key: str) -> str | None:
    """The value that a commit's message gives a key, or None."""
    # Any line: what a commit-msg hook puts below them makes git see no trailers at all.
    found = re.findall(rf"^{key}: (\S.*)$", message, re.MULTILINE)
    return found[-1].strip() if found else None


def message_of(repository: Repository, commit: str) -> str:
    return repository.git("log", "-1", "--format=%B", commit).text


def named(title: str) -> str:
    """A test's title as a commit's message has it: in one line."""
    return " ".join(title.split())


def checked_out(repository: Repository, ref: str) -> str | None:
    """The checkout that a branch is checked out in, or being rebased in; None where it may be moved."""
    place = repository.git("for-each-ref", "--format=%(worktreepath)", ref).text.strip()
    if place:
        return place
    for folder in (repository.common, *repository.common.glob("worktrees/*")):
        for name in folder.glob("rebase-*/head-name"):  # HEAD is detached for as long as that takes
            if name.read_text().strip() == ref:
                linked = folder / "gitdir"
                return str(Path(linked.read_text().strip()).parent if linked.exists() else repository.top)
    return None


def texts_of(test: Test, stored: Stored | None) -> tuple[str, ...]:
    """The texts that are this test: what was computed, and what a hook made of it."""
    return (test.code, stored.as_landed) if stored and stored.as_landed else (test.code,)


@attrs.define
class LandingBranch:
    name: str
    repository: Repository
    store: ProofStore
    engine: Engine
    worktree: Callable[[], Worktree]
    writes: Collection[str]  # the write files of all scopes
    kept: Callable[[str, str], bool] = lambda task, draft: False  # whether a task's draft is here to land again
    said: list[str] = attrs.field(factory=list)
    off: dict[str, str] = attrs.field(factory=dict)  # write file of which ours came off in a rebuild -> its text
    came_off: set[str] = attrs.field(factory=set)  # tasks whose changes a rebuild left out, to land again

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.name}"

    def tip(self, head: str) -> str:
        """What counts as the branch: HEAD where there is none, or one that HEAD holds already."""
        tip = self.repository.rev(self.ref)
        return head if tip is None or self.repository.is_ancestor(tip, head) else tip

    def standing(self, head: str) -> tuple[str, bool]:
        """What counts as the branch, and whether it is HEAD plus ours, and not another HEAD plus ours."""
        tip = self.repository.rev(self.ref)
        bases = self._bases(head, tip) if tip else []
        if not tip or not bases:  # none, or HEAD holds all of it
            return head, True
        return tip, next(filter(None, bases), None) == head or (not any(bases) and self._fork(head, tip) == head)

    def start(self, head: str, tip: str | None) -> str:
        """The commit to land on: the branch as it is, or rebuilt on HEAD where HEAD is no longer what it stands on."""
        if tip is None or self.repository.is_ancestor(tip, head):
            return head
        if self._base(head, tip) == head:
            return tip
        return self._rebuilt(head, tip)

    def _base(self, head: str, tip: str) -> str | None:
        """The commit that the branch stands on: what the newest commit of ours names; else the fork from HEAD."""
        return next(filter(None, self._bases(head, tip)), None) or self._fork(head, tip)

    def _bases(self, head: str, tip: str) -> list[str]:
        """For each commit of the branch that HEAD does not hold, newest first: the HEAD that it names, or ""."""
        messages = self.repository.git("log", "--topo-order", "--format=%x01%B", tip, f"^{head}").text
        return [mark_of(message, BASE) or "" for message in messages.split("\x01")[1:]]

    def _fork(self, head: str, tip: str) -> str | None:
        forks = self.repository.git("merge-base", head, tip, ok=(0, 1)).text.split()
        return forks[0] if forks else None

    def _commits(self, tip: str, *without: str) -> list[str]:
        """Commits of the branch that none of `without` holds, newest first."""
        return self.repository.git("rev-list", "--topo-order", tip, *(f"^{w}" for w in without)).text.split()

    def _rebuilt(self, head: str, tip: str) -> str:
        """The branch's commits on top of `head`: somebody's all, ours where what they were proved on is the same."""
        repo = self.repository
        base = self._base(head, tip) or head
        commits = self._without_drafts(list(reversed(self._commits(tip, base, head))))
        ours = {c: write for c in commits if (write := self._written(c)) is not None}
        touched = {path for c in commits if c not in ours for path in self._changed(c)}
        # A test of ours is that in a commit of somebody's as well.
        writes = {*ours.values(), *touched.intersection(self.writes)}
        kept = self._standing(writes, base, head, tip)
        worktree = self.worktree()
        while True:
            worktree.git("checkout", "--detach", "--force", "--quiet", head)
            worktree.reset(head)
            # What somebody changed of a file of ours only goes onto that file: our tests come off it afterwards.
            due = [c for c in commits if c not in ours or ours[c] in kept | touched]
            lost = self._replay(worktree, head, due, ours)
            if lost & kept:
                kept -= lost
                continue
            for write in sorted((writes - kept) & touched):
                self._strip(worktree, write, head)
            red = self._red(worktree, sorted(kept))
            if not red:
                break
            kept -= set(red)
        start = worktree.git("rev-parse", "HEAD").text.strip()
        for write in writes - kept:
            text = repo.read(tip, write) or ""
            left = self.engine.suite.titles(repo.read(start, write) or "")
            if any(s.test.title not in left for s in self.ours_in(text, write)):
                self.off[write] = text
        return start

    def tasks(self, commit: str) -> tuple[frozenset[str], ...]:
        """For each of the newest commits there that bring changes of tasks, the newest first: the names of those tasks.
        One that a person squashed brings several."""
        log = self.repository.git("log", f"-{RECENT}", "--topo-order", "--format=%x01%B", commit).text
        found = (re.findall(rf"^{TASK}: (\S.*)$", message, re.MULTILINE) for message in log.split("\x01"))
        return tuple(frozenset(name.strip() for name in names) for names in found if names)

    def lacks(self, task: str, commit: str) -> bool:
        """Whether a task's change came off in this run, and has not landed again on the way to a commit."""
        return task in self.came_off and not any(task in names for names in self.tasks(commit))

    def _without_drafts(self, commits: Sequence[str]) -> list[str]:
        """Commits, oldest first, without the changes of tasks: each was checked as a whole tree, which is another now,
        and lands again with its check. One on which somebody has built stays."""
        kept: list[str] = []
        theirs: set[str] = set()
        for commit in reversed(commits):
            message, changed = message_of(self.repository, commit), self._changed(commit)
            task, draft = mark_of(message, TASK), mark_of(message, DRAFT)
            ours = task and draft and mark_of(message, CONTENT) == self.content(self.repository, commit, changed)
            if ours and theirs.isdisjoint(changed) and self.kept(task or "", draft or ""):
                self.came_off.add(task or "")
                continue
            if not mark_of(message, SCOPE):
                theirs.update(changed)
            kept.append(commit)
        return kept[::-1]

    def _replay(self, worktree: Worktree, head: str, commits: Sequence[str], ours: Mapping[str, str]) -> set[str]:
        """Put commits on top. Gives the write files of which a commit of ours did not go. Raises Conflict for theirs.

        ours: commit -> write file.
        """
        lost = set()
        for commit in commits:
            if not self._pick(worktree, commit, ours.get(commit), head):
                if commit not in ours:
                    raise Conflict(
                        f"commit {commit[:10]} on {self.name} does not go onto HEAD: rebase {self.name} by hand, "
                        "or delete it: what was proved lands again"
                    )
                lost.add(ours[commit])
        return lost

    def _changed(self, commit: str) -> list[str]:
        """The project's files that a commit changes; of a merge, those that it changes against all parents."""
        said = self.repository.git("diff-tree", "--root", "--no-commit-id", "-r", "-c", "--name-only", "-z", commit)
        paths = said.out.decode(errors="surrogateescape").split("\0")
        return [p.removeprefix(self.repository.prefix) for p in paths if p]

    def _written(self, commit: str) -> str | None:
        """The write file that a commit of ours is about; None for somebody's commit."""
        message, changed = message_of(self.repository, commit), self._changed(commit)
        if not mark_of(message, SCOPE) or len(changed) != 1:
            return None
        if not self.store.tests(changed[0]):
            return None  # another machine's, or the store was lost: what nobody here can prove anew is not ours to drop
        return changed[0] if mark_of(message, CONTENT) == self.content(self.repository, commit, changed) else None

    def content(self, place: Repository | Worktree, commit: str, paths: Sequence[str]) -> str:
        """Content hash of files at a commit, "" for the index; NOTHING for one that is not there."""
        found = []
        for path in sorted(paths):
            name = f"{commit}:{self.repository.prefix}{path}"
            said = place.git("rev-parse", "--verify", "--quiet", name, ok=(0, 1, 128))
            found.append(said.text.strip() if said.exit_code == 0 else NOTHING)
        return found[0] if len(found) == 1 else hashlib.sha256("\n".join(found).encode()).hexdigest()

    def restate(self, worktree: Worktree, base: str, paths: Sequence[str]) -> str:
        """Let the marks of the commit on top, if it has any, say what is so now. Gives the commit.

        paths: the files of one of ours; none for one that a person has changed, which is not to pass for ours again.
        """
        commit = worktree.git("rev-parse", "HEAD").text.strip()
        message = told = message_of(self.repository, commit)
        now = {BASE: base, CONTENT: self.content(worktree, commit, paths)} if paths else {BASE: base}
        for key, value in now.items():
            told = re.sub(rf"^{key}: .*$", f"{key}: {value}", told, flags=re.MULTILINE)
        if told == message:
            return commit
        # --only: a hook's changes are in the commit, and not in the index.
        worktree.git(*self.as_somebody(), "commit", "--quiet", "--no-verify", "--amend", "--only", "-m", told)
        return worktree.git("rev-parse", "HEAD").text.strip()

    def _standing(self, writes: Iterable[str], base: str, head: str, tip: str) -> set[str]:
        """Of these write files, those whose tests of ours, as the branch has them, are proved on `head` as well: some
        scope writes the file, HEAD has not changed it, and what each test was proved on is there or has not changed."""
        before, now = self.repository.files(base), self.repository.files(head)

        def same(stored: Stored, write: str) -> bool:
            inputs = {path: state for path, state in stored.inputs.items() if path != write}
            return bool(inputs) and (
                all(now.get(path) == state for path, state in inputs.items())
                or all(now.get(path) == before.get(path) for path in inputs)
            )

        found = set()
        for write in set(self.writes).intersection(writes):
            ours = self.ours_in(self.repository.read(tip, write) or "", write)
            if before.get(write) == now.get(write) and ours and all(same(s, write) for s in ours):
                found.add(write)
        return found

    def _strip(self, worktree: Worktree, write: str, head: str) -> None:
        """Take our tests out of a write file, in a commit on top."""
        text = self.repository.read(worktree.git("rev-parse", "HEAD").text.strip(), write) or ""
        ours = [s.test.title for s in self.ours_in(text, write)]
        for title in ours:
            text = self.engine.suite.remove(text, title)
        if ours:
            why = [f"- withdrawn: {named(title)}: unproved on HEAD" for title in ours]
            self.put(worktree, write, self.without_husk(text, write, head))
            lines = marks({SCOPE: write}, head, self.content(worktree, "", [write]))
            message = "\n".join([f"Withdraw tests from {write}", "", *why, "", *lines])
            worktree.git(*self.as_somebody(), "commit", "--quiet", "--no-verify", "-m", message)

    def ours_in(self, text: str, write: str) -> list[Stored]:
        """The stored tests that a write file's text has."""
        stored = self.store.tests(write)
        return [s for s in stored if self.engine.suite.find(text, s.test.title) in texts_of(s.test, s)]

    def _pick(self, worktree: Worktree, commit: str, write: str | None, head: str) -> bool:
        """Put a commit on top; False where it does not go. write: the file of one of ours, which now stands on head."""
        parents = self.repository.git("rev-list", "--parents", "-n", "1", commit).text.split()[1:]
        if len(parents) != 1:
            return not self._changed(commit)  # a merge is left out, as git's own rebase does, unless it says something
        if worktree.git("cherry-pick", "--no-commit", commit, ok=(0, 1, 128)).exit_code != 0:
            worktree.git("reset", "--hard", "--quiet", "HEAD")
            return False
        if worktree.git("diff", "--cached", "--quiet", ok=(0, 1)).exit_code == 0:
            return True  # HEAD has it already
        worktree.git(*self.as_somebody(), "commit", "--quiet", "--no-verify", "-C", commit)
        self.restate(worktree, head, [write] if write else ())
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

    def taken_out(self, stored: Stored, write: str, start: str) -> bool:
        """Whether somebody took the test out of the write file, in its history since the HEAD that it first landed on:
        a commit has it and a later one does not, or a commit says that it brings it and does not; and none says that
        we took it off."""
        if not stored.since:
            return False
        title = re.escape(named(stored.test.title))
        since = [f"^{stored.since}"] if self.repository.rev(stored.since) else []
        dropped = False
        for commit in self.repository.git(
            "rev-list", "--topo-order", start, *since, "--", self.literal(write)
        ).text.split():
            there = self.engine.suite.find(self.repository.read(commit, write) or "", stored.test.title)
            if there in texts_of(stored.test, stored):
                return dropped
            message = message_of(self.repository, commit)
            if re.search(rf"^\s*- withdrawn: {title}: ", message, re.MULTILINE):
                return False
            # Of a commit of ours that was amended, or squashed, its message is what is left.
            if there is None and re.search(rf"^\s*- {title}$", message, re.MULTILINE):
                return True
            dropped = True
        return False

    def without_husk(self, text: str, write: str, head: str) -> str:
        """The text; "" where nothing is left in it but imports, and what stands around tests of ours: a helper that a
        person put there stays."""
        suite = self.engine.suite
        if suite.titles(text) or self.repository.read(head, write) is not None:
            return text
        left = functools.reduce(lambda rest, said: rest.replace(said, ""), suite.imports(text, write, write), text)
        made = suite.add("", [s.test for s in self.store.tests(write)])
        around = {line.strip() for line in made.splitlines()}
        return text if any(line.strip() and line.strip() not in around for line in left.splitlines()) else ""

    def literal(self, path: str) -> str:
        """A project file's name as git takes for no pattern."""
        return f":(top,literal){self.repository.prefix}{path}"

    def put(self, worktree: Worktree, write: str, text: str) -> None:
        """Stage a write file's text, "" for none."""
        if text:
            write_bytes(worktree.root / write, text.encode(errors="surrogateescape"))
        else:
            (worktree.root / write).unlink(missing_ok=True)
        worktree.git("add", "--force", "--", self.literal(write))

    def as_somebody(self) -> tuple[str, ...]:
        """Options for a commit: nothing where git knows who commits, else a named fallback."""
        strict = ("-c", "user.useConfigOnly=true", "var")  # without it git makes an address up from the host's name
        asked = [self.repository.git(*strict, f"GIT_{who}_IDENT", ok=(0, 128)) for who in ("AUTHOR", "COMMITTER")]
        if all(said.exit_code == 0 for said in asked):
            return ()
        note = "no git identity is configured: commits are by doit-mutate@localhost.invalid"
        if note not in self.said:
            self.said.append(note)
        return NOBODY
