"""Who is to blame for a file that changed while tasks ran; and how seldom git is asked."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline import worktree
from pipeline.watch import Watch
from pipeline.worktree import find_repository


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "src").mkdir(parents=True)
    (root / "out").mkdir()
    (root / "src/a").write_text("a\n")
    (root / "src/b").write_text("b\n")
    (root / ".gitignore").write_text("out/\n*.log\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "begin")
    return root


@pytest.fixture
def watch(checkout: Path) -> Iterator[Watch]:
    watch = Watch(find_repository(checkout), [checkout / "cache"])
    yield watch
    watch.close()


def git(root: Path, *words: str) -> None:
    name = ("-c", "user.name=n", "-c", "user.email=n@n.invalid")
    subprocess.run(["git", *name, *words], cwd=root, check=True)


def blamed(watch: Watch, act: Callable[[], object], *may: str) -> tuple[str, ...]:
    """What a task is to blame for that does that, and may write those."""
    watch.begin("task", lambda path: path in may)
    act()
    return watch.end("task")


CHANGES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "written": (lambda root: (root / "src/a").write_text("x"), ("src/a",)),
    "of the same size and time": (lambda root: same_size(root / "src/a"), ("src/a",)),
    "made": (lambda root: (root / "src/new").touch(), ("src/new",)),
    "removed": (lambda root: (root / "src/a").unlink(), ("src/a",)),
    "renamed": (lambda root: (root / "src/a").rename(root / "src/c"), ("src/a", "src/c")),
    "made executable": (lambda root: (root / "src/a").chmod(0o755), ("src/a",)),
    "in a folder that is new": (lambda root: in_new_folder(root), ("src/deep/er/file",)),
    "in a folder that has come from elsewhere": (lambda root: moved_folder(root), ("src/moved/file",)),
    "ignored no more": (lambda root: (root / ".gitignore").write_text(""), (".gitignore", "out/kept")),
    "committed": (lambda root: commit(root), ("src/a",)),
    "of a branch that was moved": (lambda root: git(root, "reset", "-q", "--soft", "HEAD~1"), ("src/b",)),
    "ignored": (lambda root: (root / "out/x").touch(), ()),
    "made and removed": (lambda root: made_and_removed(root / "src/t"), ()),
}


def same_size(path: Path) -> None:
    import os

    was = path.stat()
    path.write_text("x\n")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    path.rename(path.with_name("beside"))  # another inode tells git, whose index has the time and the size
    path.with_name("beside").rename(path)
    path.with_name("b2").write_text("x\n")
    os.utime(path.with_name("b2"), ns=(was.st_atime_ns, was.st_mtime_ns))
    path.with_name("b2").rename(path)


def made_and_removed(path: Path) -> None:
    path.touch()
    path.unlink()


def in_new_folder(root: Path) -> None:
    (root / "src/deep/er").mkdir(parents=True)
    (root / "src/deep/er/file").touch()


def moved_folder(root: Path) -> None:
    (root / "out/moved").mkdir()
    (root / "out/moved/file").touch()
    (root / "out/moved").rename(root / "src/moved")


def commit(root: Path) -> None:
    (root / "src/a").write_text("x")
    git(root, "commit", "-qam", "more")


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_outside_its_scope_is_a_tasks_fault(checkout: Path, watch: Watch, change: str) -> None:
    (checkout / "out/kept").touch()
    (checkout / "src/b").write_text("more\n")
    git(checkout, "commit", "-qam", "second")
    assert blamed(watch, lambda: None) == ()
    act, paths = CHANGES[change]
    assert blamed(watch, lambda: act(checkout)) == paths
    assert blamed(watch, lambda: None) == (), "it is told once"
    assert blamed(watch, lambda: (checkout / "src/later").touch()) == ("src/later",), "what comes then is told too"


def test_what_was_allowed_or_nobodys_is_not_charged_to_those_that_come_later(checkout: Path, watch: Watch) -> None:
    assert blamed(watch, lambda: (checkout / "src/a").write_text("mine"), "src/a") == ()
    (checkout / "src/nobodys").touch()
    git(checkout, "commit", "-q", "--allow-empty", "-m", "nobody's")
    assert blamed(watch, lambda: (checkout / "src/b").write_text("x")) == ("src/b",)
    assert blamed(watch, lambda: (checkout / "src/a").write_text("not mine")) == ("src/a",), "touched again"


def test_git_is_asked_once_where_tasks_do_what_they_may(
    checkout: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = worktree.git

    def counted(*args: Any, **named: Any) -> Any:
        asked.append(str(args[1]))
        return ask(*args, **named)

    monkeypatch.setattr(worktree, "git", counted)
    assert blamed(watch, lambda: None) == ()
    first = len(asked)
    for _ in range(20):
        assert blamed(watch, lambda: (checkout / "src/a").write_text("mine"), "src/a") == ()
        assert blamed(watch, (checkout / "out/more").touch) == ()
    assert first
    assert len(asked) == first


def test_where_nothing_can_be_watched_git_is_asked_each_time(
    checkout: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.touched._MOST", 1)
    assert blamed(watch, lambda: (checkout / "src/a").write_text("mine"), "src/a") == ()
    assert blamed(watch, lambda: (checkout / "src/b").write_text("x")) == ("src/b",)
    assert blamed(watch, lambda: in_new_folder(checkout)) == ("src/deep/er/file",)
