"""The repository as a run sees it: its snapshot, the states of its files, and worktrees that are ours alone.

The checkout, its index and its branches are only read here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import filelock

from pipeline import apart, process
from pipeline.host import CannotGoOn

OURS = (".doit-mutate", "reports/mutation", ".stryker-tmp")  # what our own runs leave in a worktree
SUBMODULE = "commit:"  # in front of what stands for one among content hashes
_KINDS = {"120000": "link:", "160000": SUBMODULE}
DRAFTS = "drafts"  # folder of the worktrees that one draft each is made in
DRAFTS_STAY = 7 * 24 * 3600.0  # seconds for which the worktree of a draft that a killed run made is kept
MOST_SAID = 64 << 20  # bytes that git may say to us,
LARGEST = 1 << 30  # and of a file, or of a change
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
QUIET = (
    "--no-optional-locks",  # `git status` would write the user's index
    "-c",
    "gc.auto=0",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.safecrlf=false",  # where git converts line ends, it would refuse files of ours that the person never sees
)


class GitError(CannotGoOn):
    """git said no. The text is git's own, with the command in front."""


class GitTimeout(GitError):
    """git, or a hook of the user's, did not end in time."""


@attrs.frozen
class Repository:
    top: Path  # root of the checkout
    common: Path  # git common directory: one for all worktrees of a repository
    prefix: str  # the project inside the checkout: "" or "examples/shop/"
    index: Path  # of the checkout; read, never written
    raw: tuple[str, ...] = ()  # filters that are configured and not installed

    @property
    def project(self) -> Path:
        return self.top / self.prefix

    def git(
        self, *args: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b"",
        hooks: bool = False, ok: Sequence[int] = (0,), most: int = MOST_SAID,
    ) -> process.Finished:  # fmt: skip
        """Run git, without hooks unless asked. most: bytes that it may say. Raises GitError where it says more, and for
        an exit code that is not in `ok`."""
        return git(cwd or self.top, *self.settings, *args, env=env, stdin=stdin, hooks=hooks, ok=ok, most=most)

    @property
    def settings(self) -> list[str]:
        """Options for every git command: files whose filter is not installed are taken as git keeps them."""
        # git lets nobody check a file out, or look at it, whose filter is `required` and missing: Git LFS's is.
        off = ("clean=", "smudge=", "process=", "required=false")
        return [word for name in self.raw for value in off for word in ("-c", f"filter.{name}.{value}")]

    @property
    def raw_here(self) -> list[str]:
        """Of the filters that are not installed, those that the repository names."""
        try:
            attributes = (self.top / ".gitattributes").read_text(errors="replace")
        except OSError:
            return []
        return [name for name in self.raw if f"filter={name}" in attributes]

    def rev(self, name: str) -> str | None:
        """The commit that a name stands for, or None."""
        found = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", ok=(0, 1, 128))
        return found.text.strip() if found.exit_code == 0 else None

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self.git("merge-base", "--is-ancestor", older, newer, ok=(0, 1, 128)).exit_code == 0

    def identity(self) -> str:
        """The same for every checkout and clone of this project: its first commit and its place in the repository.

        A shallow clone does not know the first commit: for all of those that come from one place, that place.
        """
        shallow = self.git("rev-parse", "--is-shallow-repository").text.strip() == "true"
        origin = self.git("config", "remote.origin.url", ok=(0, 1)).text.strip() if shallow else ""
        first = origin or min(self.git("rev-list", "--max-parents=0", "HEAD").text.split())
        return hashlib.sha256(f"{first}\0{self.prefix}".encode()).hexdigest()[:16]

    def snapshot(self, head: str | None, exclude: Iterable[str], scratch: Path | None = None) -> str:
        """The checkout, uncommitted edits included, as a tree; `head`, which is HEAD, where there are none.

        exclude: folders of these names are never in it. scratch: a folder for temporary files; None: the system's.
        """
        unwanted = [f":(top,exclude,glob)**/{name}/**" for name in exclude]
        status = ("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames")
        if head and not self.git(*status, "--", ":/", *unwanted).out:
            return head
        with tempfile.TemporaryDirectory(prefix="doit-mutate-", dir=scratch) as folder:
            index = Path(folder) / "index"
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(self.index, index)
            env = process.environment({"GIT_INDEX_FILE": str(index)})
            self.git("add", "--all", "--", ":/", *unwanted, env=env)
            return self.git("write-tree", env=env).text.strip()

    def files(self, treeish: str) -> dict[str, str]:
        """Path relative to the project -> content hash (git's blob id, with the mode), of the project's files.

        A submodule is one path, and its commit.
        """
        listed = self.git("ls-tree", "-r", "-z", f"{treeish}:{self.prefix}" if self.prefix else treeish).out
        found = {}
        for entry in listed.decode(errors="surrogateescape").split("\0"):
            if entry:
                described, _, path = entry.partition("\t")
                mode, _, oid = described.split(" ")
                found[path] = f"{_KINDS.get(mode, '')}{oid}"
        return found

    def submodules(self, treeish: str) -> dict[str, str]:
        """Path relative to the top -> commit."""
        listed = self.git("ls-tree", "-r", "-z", treeish).out.decode(errors="surrogateescape").split("\0")
        entries = (entry.partition("\t") for entry in listed if entry.startswith("160000 "))
        return {path: described.split(" ")[2] for described, _, path in entries}

    def read(self, treeish: str, path: str) -> str | None:
        """A project file's text in a tree, to the byte; None where it isn't there."""
        found = self.git("cat-file", "blob", f"{treeish}:{self.prefix}{path}", ok=(0, 128))
        return found.out.decode(errors="surrogateescape") if found.exit_code == 0 else None


def git(
    cwd: Path, *args: str | Path, env: Mapping[str, str] | None = None, stdin: bytes = b"", hooks: bool = False,
    ok: Sequence[int] = (0,), timeout: float | None = None, most: int = MOST_SAID,
) -> process.Finished:  # fmt: skip
    words = ["git", *QUIET, *(() if hooks else NO_HOOKS), *args]
    finished = process.run(
        words, cwd=cwd, env=env, stdin=stdin, timeout=timeout, brief=not hooks, max_output=most
    )  # fmt: skip
    if finished.timed_out or finished.too_much_output or finished.exit_code not in ok:
        verb = next(word for word in args[::2] if word != "-c")  # each -c has a word of its own after it
        if finished.timed_out:
            raise GitTimeout(f"git {verb}: no end within {timeout:g} s")
        if finished.too_much_output:  # what there is of it, if only the beginning, is nothing to go on with
            raise GitError(f"git {verb}: more than {most >> 20} MiB of output")
        raise GitError(f"git {verb}: {finished.tail(12)}")
    return finished


def find_repository(project: Path) -> Repository:
    """The repository that holds a project's root. Raises GitError with the remedy."""
    project = project.resolve()
    try:
        said = git(project, "rev-parse", "--show-toplevel", "--git-common-dir", "--git-path", "index").text.split("\n")
    except GitError as error:
        if "must be run in a work tree" in str(error):
            raise GitError(f"{project} is in a bare repository: clone it, and run in the clone") from None
        raise GitError(f"{project} is not in a git repository: run `git init` and commit") from None
    top = Path(said[0]).resolve()
    prefix = project.relative_to(top).as_posix()
    prefix = "" if prefix == "." else f"{prefix}/"
    return Repository(top, (project / said[1]).resolve(), prefix, project / said[2], _missing_filters(project))


def _missing_filters(project: Path) -> tuple[str, ...]:
    said = git(project, "config", "-z", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$", ok=(0, 1)).text
    found = set()
    for entry in filter(None, said.split("\0")):
        key, _, command = entry.partition("\n")
        program = command.split(" ")[0]
        if program and process.find(program) is None:
            found.add(key.removeprefix("filter.").rpartition(".")[0])
    return tuple(sorted(found))


@attrs.frozen
class Worktree:
    """A checkout of ours. Everything in it may be thrown away."""

    repository: Repository
    top: Path
    excludes: Path
    links: Mapping[str, Path]  # path relative to the top -> what it points to
    outputs: tuple[str, ...] = ()  # names of folders that builds fill: what is in them is kept
    index: Path | None = None  # of an agent's, whose .git is the agent's to break: with the user's repository, unseen

    @property
    def root(self) -> Path:
        """The project's root in it."""
        return self.top / self.repository.prefix

    def git(
        self, *args: str | Path, hooks: bool = False, ok: Sequence[int] = (0,), timeout: float | None = None,
        most: int = MOST_SAID,
    ) -> process.Finished:  # fmt: skip
        """hooks: those of the user's checkout, as git would run them there."""
        settings = ["-c", f"core.excludesFile={self.excludes}"]
        if hooks:
            # core.hooksPath may be relative, and what it names ignored: git would find none here, and say nothing.
            folder = self.repository.git("rev-parse", "--git-path", "hooks", hooks=True).text.strip()
            settings += ["-c", f"core.hooksPath={self.repository.top / folder}"]
        env = None
        if self.index is not None:
            settings += ["-c", "core.splitIndex=false"]  # one file, for the agent's own repository to have too
            where = {"GIT_DIR": self.repository.common, "GIT_WORK_TREE": self.top, "GIT_INDEX_FILE": self.index}
            env = process.environment({name: str(path) for name, path in where.items()})
        words = (*self.repository.settings, *settings, *args)
        return git(self.top, *words, env=env, hooks=hooks, ok=ok, timeout=timeout, most=most)

    def reset(self, treeish: str) -> None:
        """Make its files those of a tree (index included; HEAD stays), with nothing beside them but the links and
        what builds have made."""
        self.git("read-tree", "--reset", "-u", treeish)
        keep = [word for name in (*(f"/{path}" for path in self.links), *self.outputs) for word in ("-e", name)]
        self.git("clean", "-ffdxq", *keep)
        if (self.top / ".gitmodules").exists():
            self._fill_submodules(treeish)
        self.link()

    def _fill_submodules(self, treeish: str) -> None:
        """Put the files of each submodule there that the user's checkout has: without a clone, and unseen by git."""
        for path, commit in self.repository.submodules(treeish).items():
            theirs, place = self.repository.top / path / ".git", self.top / path
            if theirs.exists():
                index = self.excludes.with_name(f"{self.top.name}-{hashlib.sha256(path.encode()).hexdigest()[:16]}")
                ours = {"GIT_DIR": str(theirs), "GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(index)}
                env = process.environment(ours)
                git(place, "read-tree", "--reset", "-u", commit, env=env, ok=(0, 128))  # 128: it lacks the commit
                git(place, "clean", "-ffdxq", env=env)

    def link(self) -> None:
        for name, target in self.links.items():
            place = self.top / name
            if not place.is_symlink() and not place.exists() and place.parent.is_dir():
                place.symlink_to(target)

    def altered(self, treeish: str) -> str:
        """Which files of a tree are otherwise here, for people; "" where none is. New files are none of them."""
        words = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all", treeish)
        paths = self.git(*words).out.decode(errors="surrogateescape").split("\0")[:-1]
        shown = ", ".join(path if path.isprintable() else ascii(path) for path in paths[:5])
        return f"{shown} and {len(paths) - 5} more" if len(paths) > 5 else shown

    def changed(self) -> tuple[str, ...]:
        """Paths, relative to the project, that differ from the tree it was reset to, new ones included."""
        said = self.git("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").out
        # The first letter compares index and HEAD, which differ by the user's own edits; the second is what ran here.
        paths = [e[3:] for e in said.decode(errors="surrogateescape").split("\0") if e and e[1] != " "]
        return tuple(sorted(_relative(p, self.repository.prefix) for p in paths))


def _relative(path: str, prefix: str) -> str:
    return path[len(prefix) :] if path.startswith(prefix) else f"/{path}"


@attrs.define
class Worktrees:
    """The worktrees of one run, in a folder that its lock marks as alive. Made when first asked for, one a slot."""

    repository: Repository
    home: Path  # the worktrees of this repository, of all runs
    run_id: str
    link_names: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    _made: dict[str, Worktree] = attrs.field(factory=dict)
    _links: dict[str, Path] | None = None
    _lock: filelock.FileLock | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[Worktrees]:
        """Remove what dead runs left, hold the lock of this one, remove its worktrees at the end."""
        self._sweep()
        folder = self.home / self.run_id
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / "lock")
        lock.acquire(timeout=60)  # another run may take the folder for a dead one's, until it is locked
        try:
            yield self
        finally:
            self._remove(folder)
            lock.release()

    @property
    def scratch(self) -> Path:
        """A folder for temporary files of this run: what kill -9 leaves there is swept with the worktrees."""
        folder = self.home / self.run_id / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def get(self, slot: str) -> Worktree:
        """The worktree of a slot, whatever state its last task left it in: reset it first."""
        if slot not in self._made:
            folder = self.home / self.run_id
            top = folder / slot
            self.repository.git("worktree", "add", "--detach", "--no-checkout", "--force", top, "HEAD")
            self._made[slot] = Worktree(self.repository, top, self._excludes(folder), self._find_links(), self.outputs)
        return self._made[slot]

    def draft(self, name: str, commit: str) -> Worktree:
        """A worktree for one draft, made from a commit. It outlives a run that is killed: the draft may, too."""
        folder = self.home / DRAFTS / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tree").mkdir(parents=True)
        made = self._draft(folder)
        made.reset(commit)
        apart.made(self.repository, made, folder / "git", commit)
        (folder / "base").write_text(commit)  # last: what has no base is no draft
        return made

    def find_draft(self, name: str) -> tuple[Worktree, str] | None:
        """The worktree of a draft whose run was killed, as it was left, and the commit that it was made from: by now
        others may have landed, and HEAD there is the agent's to move."""
        folder = self.home / DRAFTS / name
        return (self._draft(folder), (folder / "base").read_text()) if (folder / "base").exists() else None

    def remove_draft(self, name: str) -> None:
        apart.end_strays(self.home / DRAFTS / name / "tree")
        self._remove(self.home / DRAFTS / name)

    def _draft(self, folder: Path) -> Worktree:
        index = folder / "index"
        return Worktree(
            self.repository, folder / "tree", self._excludes(folder), self._find_links(), self.outputs, index
        )  # fmt: skip

    def _excludes(self, folder: Path) -> Path:
        path = folder / "excludes"
        if not path.exists():
            # A pattern with a trailing slash does not match a link; info/exclude is shared by all worktrees.
            theirs = self.repository.git("config", "--path", "core.excludesFile", ok=(0, 1)).text.strip()
            default = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git" / "ignore"
            text = ""
            with contextlib.suppress(OSError):
                text = Path(theirs or default).read_text()
            path.write_text("\n".join([text, *self.link_names, *self.outputs, *OURS, ""]))
        return path

    def _find_links(self) -> dict[str, Path]:
        if self._links is None:
            listed = self.repository.git(
                "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"
            ).out.decode(errors="surrogateescape")
            ignored = [p.rstrip("/") for p in listed.split("\0") if p]
            self._links = {p: self.repository.top / p for p in ignored if p.rpartition("/")[2] in self.link_names}
        return self._links

    def _sweep(self) -> None:
        for folder in self.home.iterdir() if self.home.is_dir() else ():
            if folder.name == DRAFTS:
                for draft in folder.iterdir():
                    if time.time() - draft.stat().st_mtime > DRAFTS_STAY:  # nobody has asked for it again
                        self._remove(draft)
            if not folder.is_dir() or folder.name in (self.run_id, DRAFTS):
                continue
            lock = filelock.FileLock(folder / "lock")
            try:
                lock.acquire(timeout=0)
            except (filelock.Timeout, OSError):
                continue  # a live run's
            self._remove(folder)
            lock.release()

    def _remove(self, folder: Path) -> None:
        """Call it with the folder's lock held: once it is free, the folder may be another's."""
        if not folder.is_dir():
            return
        registered = any((place / ".git").exists() for place in folder.iterdir())
        shutil.rmtree(folder, ignore_errors=True)  # links are removed, not followed
        if registered:
            with contextlib.suppress(GitError):
                self.repository.git("worktree", "prune")
