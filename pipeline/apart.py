"""A git repository for one agent: it sees the history, and whatever it does there is done to nobody else.

In a worktree of the user's own repository refs, stash, configuration and hooks are everybody's: two agents that stash
pop each other's, and the user's, and the name that one configures is under all later commits.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.worktree import Repository, Worktree

STASH = "refs/stash"
MARK = "DOIT_MUTATE_DRAFT"  # in the environment of an agent, and of what it starts: its worktree


def made(repository: Repository, worktree: Worktree, place: Path, commit: str) -> None:
    """Make the worktree's own repository at `place`: objects of the user's, refs as they are but for the stash, HEAD
    at a commit, the user's configuration below its own."""
    form = repository.git("rev-parse", "--show-object-format").text.strip()
    words = ("--quiet", "--template=", f"--object-format={form}", f"--separate-git-dir={place}")
    repository.git("init", *words, cwd=worktree.top)
    for folder in ("objects/info", "info", "hooks"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    (place / "objects/info/alternates").write_text(f"{repository.common / 'objects'}\n")
    for name in ("shallow", "info/exclude", "info/attributes"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(repository.common / name, place / name)
    # What comes last counts: what the format of this one is, and where its files are, is not the other one's to say.
    own = (place / "config").read_text()
    theirs, top = (str(path).replace("\\", "\\\\").replace('"', '\\"') for path in (repository.common, worktree.top))
    (place / "config").write_text(f'[include]\n\tpath = "{theirs}/config"\n{own}[core]\n\tworktree = "{top}"\n')
    listed = repository.git("for-each-ref", "--format=%(objectname) %(refname)").out.splitlines(keepends=True)
    refs = b"".join(line for line in listed if line.rstrip().rpartition(b" ")[2] != STASH.encode())
    (place / "packed-refs").write_bytes(b"# pack-refs with: sorted \n" + refs)
    (place / "HEAD").write_text(f"{commit}\n")
    if worktree.index is not None:
        shutil.copyfile(worktree.index, place / "index")  # its `git status` need not read every file


def end_strays(top: Path) -> None:
    """End what the agent of a worktree has left behind in sessions of their own, where the system tells what is whose.
    By the worktree, which is one on this machine: drafts in two stores may have one name."""
    mark = os.fsencode(f"{MARK}={top}")
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in place.read_bytes().split(b"\0"):
                os.kill(int(place.parent.name), signal.SIGKILL)
