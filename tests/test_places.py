"""What is kept, for how long it counts, and what is cleared away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import attrs
import pytest

from pipeline import scratch
from pipeline.engines import Engine, Measured, Switch, csharp
from pipeline.measuring import Measurement
from pipeline.results import Outcome
from pipeline.sameness import Sameness
from pipeline.store import ActionCache
from pipeline.worktree import Worktrees, find_repository

KNOWN = {"mutate": ["a"]}


def keep(cache: ActionCache, *scopes: str, content: bytes = b"\x00\xff assembly") -> None:
    for name in scopes:
        measured = Measured(Outcome.OK, switch=Switch({"x.dll": content}, {"key": name}))
        cache.keep({"scope": name}, {"a": "1"}, Measurement(measured))


def find(cache: ActionCache, name: str, since: float = 0.0) -> Measurement | None:
    return cache.find({"scope": name}, lambda inputs: inputs == {"a": "1"}, Measurement, since)


def test_bytes_that_many_results_share_are_kept_once_and_come_back_to_the_byte(tmp_path: Path) -> None:
    cache = ActionCache(tmp_path)
    keep(cache, "one", "two")
    assert len(list((tmp_path / "blobs").iterdir())) == 3
    for name in ("one", "two"):
        found = find(cache, name)
        assert found is not None and found.measured.switch == Switch({"x.dll": b"\x00\xff assembly"}, {"key": name})


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_result_whose_bytes_are_gone_or_damaged_is_measured_again(tmp_path: Path, damage: str) -> None:
    cache = ActionCache(tmp_path)
    keep(cache, "one")
    blob = min((tmp_path / "blobs").iterdir(), key=lambda p: p.stat().st_size)
    assert blob.read_bytes() == b"\x00\xff assembly"
    blob.unlink() if damage == "gone" else blob.write_bytes(b"\x00")
    assert find(cache, "one") is None
    keep(cache, "one")
    assert find(cache, "one") is not None


def test_what_was_kept_too_long_ago_counts_as_not_there_until_it_is_kept_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ActionCache(tmp_path)
    monkeypatch.setattr("pipeline.store.time.time", lambda: 1000.0)
    keep(cache, "one")
    assert find(cache, "one", since=1000.0) is not None
    assert find(cache, "one", since=1001.0) is None
    monkeypatch.setattr("pipeline.store.time.time", lambda: 2000.0)
    keep(cache, "one")
    assert find(cache, "one", since=1001.0) is not None


def test_temporary_folders_of_the_dead_are_removed_and_those_of_the_living_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = (
        "import os, signal\nfrom pipeline import scratch\nwith scratch.folder(): os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    (dead,) = tmp_path.iterdir()
    other = tmp_path / "doit-mutate-of-somebody"
    other.mkdir()
    with scratch.folder() as mine:
        scratch.sweep()
        assert set(tmp_path.iterdir()) == {mine, other} and dead != mine
    assert set(tmp_path.iterdir()) == {other}


@attrs.frozen
class Compiler:
    """The part of an engine that tells what counts."""

    compiled: tuple[str, ...] = (".cs",)

    def essence(self, text: str) -> str | None:
        return csharp.essence(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for words in ("init -q -b main", "config user.name Tess", "config user.email t@example.invalid"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    return tmp_path


def commit(root: Path, **files: str) -> str:
    for name, text in files.items():
        (root / name.replace("_", ".")).write_text(text)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", "x", "--allow-empty"], cwd=root, check=True)
    return (
        subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True).stdout.decode().strip()
    )


def test_a_comment_in_a_file_that_is_only_compiled_with_the_scopes_changes_nothing(repository: Path) -> None:
    found = find_repository(repository)
    sameness = Sameness(found, cast(Engine, Compiler()))
    before = found.files(commit(repository, a_cs="class A { }\n", b_cs="class B { }\n", c_txt="c\n"))
    after = found.files(commit(repository, a_cs="class A { } // a\n", b_cs="class B { } // b\n", c_txt="c // c\n"))
    assert sameness.changed(before, after, ("a.cs",)) == ["a.cs", "c.txt"]
    assert sameness.changed(before, before, ("a.cs",)) == []
    code = found.files(commit(repository, b_cs="class B { int n; }\n"))
    assert sameness.changed(after, code, ("a.cs",)) == ["b.cs"]
    assert sameness.changed({"b.cs": "0" * 40}, code, ()) == ["b.cs"]  # git does not have the older one any more


def test_what_builds_have_made_outlives_a_reset_and_is_in_no_snapshot(repository: Path, tmp_path: Path) -> None:
    head = commit(repository, a_cs="class A { }\n")
    found = find_repository(repository)
    with Worktrees(found, tmp_path / "home", "run", (), ("bin", "obj")).opened() as worktrees:
        worktree = worktrees.get("slot")
        worktree.reset(head)
        for name in ("bin/a.dll", "src/obj/a.txt", "src/left.txt"):
            (worktree.root / name).parent.mkdir(parents=True, exist_ok=True)
            (worktree.root / name).write_text("x")
        assert worktree.changed() == ("src/left.txt",)
        worktree.reset(head)
        assert sorted(p.name for p in worktree.root.rglob("*") if p.is_file() and p.name != ".git") == [
            "a.cs", "a.dll", "a.txt",
        ]  # fmt: skip
    (repository / "bin").mkdir()
    (repository / "bin/a.dll").write_text("x")
    (repository / "b.cs").write_text("class B { }")
    assert set(found.files(found.snapshot(head, ("bin", "obj")))) >= {"a.cs", "b.cs"}
    assert "bin/a.dll" not in found.files(found.snapshot(head, ("bin", "obj")))
