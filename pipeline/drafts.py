"""A task's draft: what it changes, as content, so that it can be put on any commit; and what became of it.

What is kept of a file is its state before and after. On a commit that has it as before, it becomes as after; else git
merges the three, and what does not merge is a conflict.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

import attrs

from pipeline import process
from pipeline.conditions import Judged
from pipeline.results import Outcome, converter, write_bytes
from pipeline.store import digest
from pipeline.worktree import LARGEST, Repository, Worktree

FOLDER = "a folder"  # in the place of a state
GONE = f"0 {'0' * 40}"  # to git update-index
FILES = ("100644", "100755")  # git's modes of files that have lines


Blob = Callable[[str], Path]  # a content hash -> where that content is kept


@attrs.frozen
class FileChange:
    """A file's state before and after: git's mode and content hash, with a space between; "" where it isn't there."""

    before: str
    after: str


@attrs.frozen
class Draft:
    """draft.json and repaired.json: a change, and how drafting it ended."""

    outcome: Outcome
    detail: str = ""
    asked: str = ""  # hash of what the agent was asked
    who: str = ""  # hash of which agent
    model: str = ""  # and who answered
    reply: str = ""  # name of the kept reply, beside which the contents are
    base: Mapping[str, str] = attrs.field(
        factory=dict
    )  # what it reads and writes, as drafted from: path -> content hash
    files: Mapping[str, FileChange] = attrs.field(factory=dict)  # path relative to the project
    repairs: str = ""  # repaired.json: hash of the draft that this stands in for


@attrs.frozen
class Checked:
    """checked.json: the draft on HEAD and what had landed then."""

    outcome: Outcome
    detail: str = ""
    draft: str = ""  # hash of the draft
    conditions: str = ""  # hash of the conditions
    tree: str = ""  # git's hash of the whole tree that was judged
    judged: tuple[Judged, ...] = ()


@attrs.frozen
class TaskLanded:
    """landed.json: a task's change as it stands on the landing branch. Any outcome but ok parks the task."""

    outcome: Outcome
    detail: str = ""
    draft: str = ""  # hash of the draft, whether it landed as it was or repaired
    conditions: str = ""  # hash of the conditions
    files: Mapping[str, str] = attrs.field(factory=dict)  # path -> content hash where it landed; "": it isn't there
    repaired: bool = False


@attrs.frozen
class Looked:
    """looked.json: a look at a change that has landed. Any outcome but ok: it is owed still."""

    outcome: Outcome
    detail: str = ""
    of: str = ""  # hash of the look, and of the files as they landed


@attrs.frozen
class Failure:
    """failure.json: what a repair is to mend."""

    draft: str  # hash of the draft
    outcome: Outcome  # conflict or check-failed
    name: str  # the paths in conflict, or the condition; by this a repair is known
    detail: str  # what the agent is told
    why: str = ""  # whom the gate blames beside it, which may be another one in the next run

    @property
    def said(self) -> str:
        """For people."""
        return ", ".join(filter(None, (f"{self.outcome}: {self.name}", self.why)))


def hash_of(value: object) -> str:
    """Of a draft, or of conditions: what a later target was made of."""
    return digest(converter.unstructure(value))


# -- out of a worktree


def collected(worktree: Worktree, base: str) -> tuple[dict[str, FileChange], bytes]:
    """What differs in a worktree from the tree or commit that it was made from, whatever was done to its index or HEAD
    meanwhile; and that as a patch."""
    worktree.top.mkdir(exist_ok=True)  # all of it may be gone
    if worktree.index is not None:
        worktree.index.with_name(f"{worktree.index.name}.lock").unlink(missing_ok=True)  # of a run that was killed here
    worktree.git("read-tree", base)
    _take_in(worktree)
    tree = worktree.git("write-tree").text.strip()
    patch = worktree.git("diff", "--binary", "--no-ext-diff", base, tree, most=LARGEST).out
    return dict(_between(worktree.repository, base, tree)), patch


def _take_in(worktree: Worktree) -> None:
    """Put all files into the index; those of a repository that the agent made in there as well, of which git would take
    a name alone."""
    before = _repositories(worktree)
    for repository in _nested(worktree.top, before):
        git = worktree.top / repository / ".git"
        git.unlink() if git.is_symlink() or git.is_file() else shutil.rmtree(git)
    worktree.git("add", "--all", "--", ":/")


def _repositories(worktree: Worktree) -> set[str]:
    """Those that git knows of in there: its submodules."""
    listed = worktree.git("ls-files", "--stage", "-z", most=LARGEST).out.decode(errors="surrogateescape").split("\0")
    return {entry.partition("\t")[2] for entry in listed if entry.startswith("160000 ")}


def _nested(top: Path, known: Collection[str]) -> list[str]:
    found = []
    for folder, names, files in os.walk(top):
        if ".git" in (*names, *files):
            where = Path(folder).relative_to(top).as_posix()
            if where != "." and where not in known:
                found.append(where)
        names[:] = [name for name in names if name != ".git"]
    return found


def _between(repository: Repository, base: str, tree: str) -> Iterator[tuple[str, FileChange]]:
    said = repository.git("diff-tree", "-r", "-z", "--no-renames", base, tree).out.decode(errors="surrogateescape")
    parts = iter(said.split("\0"))
    for described in parts:
        if described:
            before, after, old, new, _ = described[1:].split(" ")
            path = relative(next(parts), repository.prefix)
            yield path, FileChange(_state(before, old), _state(after, new))


def _state(mode: str, oid: str) -> str:
    return "" if mode == "000000" else f"{mode} {oid}"


def relative(path: str, prefix: str) -> str:
    """A path relative to the top as one relative to the project; what lies outside begins with a slash."""
    return path[len(prefix) :] if path.startswith(prefix) else f"/{path}"


def keep(repository: Repository, files: Mapping[str, FileChange], blob: Blob) -> None:
    """Keep all contents outside of git, which drops what no commit holds."""
    for oid in _contents(files):
        write_bytes(blob(oid), repository.git("cat-file", "blob", oid, most=LARGEST).out)


def _contents(files: Mapping[str, FileChange]) -> list[str]:
    states = (state for change in files.values() for state in (change.before, change.after))
    return sorted({state.split(" ")[1] for state in states if state and not state.startswith("160000 ")})


# -- onto a commit


@attrs.frozen
class Applied:
    """A change on a commit."""

    tree: str  # with conflict markers, where files are in conflict
    paths: tuple[str, ...]  # that differ from the commit
    conflicts: tuple[str, ...]
    as_before: tuple[str, ...] = ()  # that were as they were before the change, and so had nothing of it


def applied(repository: Repository, start: str, files: Mapping[str, FileChange], blob: Blob, scratch: Path) -> Applied:
    """The tree of a commit with a change. scratch: a folder for temporary files."""
    _restore(repository, files, blob)
    now = _states(repository, start, {*files, *(above for path in files for above in _above(path))})
    states: dict[str, str] = {}
    conflicts: list[str] = []
    with tempfile.TemporaryDirectory(prefix="doit-mutate-", dir=scratch) as folder:
        for path, change in files.items():
            if now[path] == change.after:
                continue
            state, merged = change.after, now[path] == change.before
            if not merged:
                state, merged = _merged(repository, now[path], change, Path(folder))
            if any(now[a] not in ("", FOLDER) and a not in files for a in _above(path)):
                state, merged = "", False  # a file stands in the place of its folder
            if not merged:
                conflicts.append(path)
            if state != now[path]:
                states[path] = state
        env = process.environment({"GIT_INDEX_FILE": str(Path(folder) / "index")})
        repository.git("read-tree", start, env=env)
        named = {f"{repository.prefix}{path}": state for path, state in states.items()}
        # Those that go first: a file may come in the place of a folder.
        lines = [
            f"{state or '0 ' + '0' * 40}\t{name}\0" for name, state in sorted(named.items(), key=lambda i: i[1] != "")
        ]
        text = "".join(lines).encode(errors="surrogateescape")
        repository.git("update-index", "-z", "--replace", "--index-info", env=env, stdin=text)
        tree = repository.git("write-tree", env=env).text.strip()
    as_before = tuple(path for path in states if now[path] == files[path].before)
    return Applied(tree, tuple(states), tuple(conflicts), as_before)


def _restore(repository: Repository, files: Mapping[str, FileChange], blob: Blob) -> None:
    """Let git have all contents again."""
    for oid in _contents(files):
        if repository.git("cat-file", "-e", oid, ok=(0, 1, 128)).exit_code and blob(oid).exists():
            repository.git("hash-object", "-w", "--no-filters", blob(oid))


def _above(path: str) -> list[str]:
    """The folders above a path, but for the project's root."""
    return [str(above) for above in PurePosixPath(path).parents][:-1]


def _states(repository: Repository, start: str, files: Collection[str]) -> dict[str, str]:
    names = [f"{repository.prefix}{path}" for path in files]
    listed = repository.git("ls-tree", "-z", "--full-tree", start, "--", *names).out if names else b""
    found = dict.fromkeys(files, "")
    for entry in listed.decode(errors="surrogateescape").split("\0"):
        described, _, name = entry.partition("\t")
        path = name[len(repository.prefix) :]
        if path in found:
            mode, kind, oid = described.split(" ")
            found[path] = f"{mode} {oid}" if kind != "tree" else FOLDER
    return found


def _merged(repository: Repository, now: str, change: FileChange, folder: Path) -> tuple[str, bool]:
    """A file's merged state, and whether it merged: else with conflict markers, or as it is now."""
    sides = (now, change.before, change.after)
    modes = [side.split(" ")[0] for side in sides if side]
    if not now or not change.after or not set(modes) <= set(FILES):
        return now, False
    places = [folder / name for name in ("landed", "base", "drafted")]
    for place, side in zip(places, sides, strict=True):
        place.write_bytes(repository.git("cat-file", "blob", side.split(" ")[1], most=LARGEST).out if side else b"")
    done = repository.git(
        "merge-file", "-p", "-L", "landed", "-L", "base", "-L", "this change", *places, ok=range(256)
    )  # fmt: skip
    if done.exit_code < 0 or done.exit_code > 127:  # binary, or unreadable
        return now, False
    oid = repository.git("hash-object", "-w", "--stdin", stdin=done.out).text.strip()
    mode = change.after.split(" ")[0] if now.split(" ")[0] in change.before else now.split(" ")[0]
    return f"{mode} {oid}", done.exit_code == 0
