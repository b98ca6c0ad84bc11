"""What a build has for itself: watchers that pause and are always resumed, a lock over the machine, an output folder;
and whether the machine let it come to its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline import process
from pipeline.ended import unfinished
from pipeline.model import Owns
from pipeline.owning import NotOwned, Owning, machine_lock

WATCHER = Owns(pause=("echo pause >> log",), resume=("echo resume >> log",))
HOLDER = """\
import sys, time
from pathlib import Path
from pipeline import process
from pipeline.model import Owns
from pipeline.owning import Owning
here = Path(sys.argv[1])
owning = Owning(here / "paused", here / "locks", here, lambda: here)
owns = Owns("build", ("echo pause >> log",), ("echo resume >> log",))
with process.journal(here / "processes"), owning.of(owns):
    process.run(["sh", "-c", "echo built >> log; echo $$ > build.pid; exec sleep 60"], cwd=here)
"""


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def owning(tmp_path: Path, said: list[str]) -> Owning:
    return Owning(tmp_path / "paused", tmp_path / "locks", tmp_path, lambda: tmp_path / "scratch", said.append)


@pytest.fixture
def stopping() -> Iterator[None]:
    """As after a signal."""
    process.stop_all()
    yield
    with process.tidying():
        pass


def log(place: Path) -> list[str]:
    return (place / "log").read_text().split() if (place / "log").exists() else []


def until(what: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Where a run was killed with kill -9 while it built; its build goes on."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)])
    until(lambda: (tmp_path / "build.pid").exists() and (tmp_path / "build.pid").read_text().endswith("\n"))
    holder.kill()
    holder.wait()
    return tmp_path


# -- watchers


def test_a_watcher_is_paused_before_and_resumed_after_whatever_happens(owning: Owning, tmp_path: Path) -> None:
    with owning.of(WATCHER):
        assert log(tmp_path) == ["pause"]
    with pytest.raises(RuntimeError), owning.of(WATCHER):
        raise RuntimeError("the build broke")
    assert log(tmp_path) == ["pause", "resume"] * 2
    assert list((tmp_path / "paused").glob("*.json")) == []


def test_a_watcher_that_two_builds_share_is_paused_once_and_resumed_by_the_last(owning: Owning, tmp_path: Path) -> None:
    inside = threading.Barrier(2)

    def build() -> None:
        with owning.of(WATCHER):
            inside.wait(20)
            assert log(tmp_path) == ["pause"]
            inside.wait(20)

    other = threading.Thread(target=build)
    other.start()
    build()
    other.join()
    assert log(tmp_path) == ["pause", "resume"]


def test_a_watcher_that_cannot_be_paused_is_no_build_and_is_resumed(owning: Owning, tmp_path: Path) -> None:
    owns = Owns(pause=("echo no such watcher; exit 3",), resume=WATCHER.resume)
    with pytest.raises(NotOwned) as caught, owning.of(owns):
        raise AssertionError
    assert str(caught.value).splitlines() == [
        "the watcher could not be paused: echo no such watcher; exit 3: exit status 3", "no such watcher",
    ]  # fmt: skip
    assert log(tmp_path) == ["resume"]


def test_a_watcher_that_cannot_be_resumed_is_said_and_tried_again(
    owning: Owning, tmp_path: Path, said: list[str]
) -> None:
    with owning.of(Owns(resume=("test -e there && echo resume >> log",))):
        pass
    assert len(said) == 1 and said[0].startswith("the watcher could not be resumed, and is tried again by the next run")
    (tmp_path / "there").touch()
    assert owning.settle() and log(tmp_path) == ["resume"]
    assert owning.settle() and log(tmp_path) == ["resume"]


def test_a_resumed_watcher_stays_though_the_command_that_started_it_has_ended(owning: Owning, tmp_path: Path) -> None:
    with owning.of(Owns(resume=("sleep 60 & echo $! > pid",))):
        pass
    pid = int((tmp_path / "pid").read_text())
    time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)  # raises where there is none


@pytest.mark.usefixtures("stopping")
def test_what_a_signal_kept_from_resuming_is_resumed_when_all_has_ended(owning: Owning, tmp_path: Path) -> None:
    with process.tidying():  # the pause came before the signal
        stack = owning.of(WATCHER)
        stack.__enter__()
    process.stop_all()
    stack.__exit__(None, None, None)
    assert log(tmp_path) == ["pause"]
    with process.tidying():
        assert owning.settle()
    assert log(tmp_path) == ["pause", "resume"]


def test_the_next_run_resumes_what_a_killed_one_had_paused(killed: Path) -> None:
    owning = Owning(killed / "paused", killed / "locks", killed, lambda: killed)
    assert log(killed) == ["pause", "built"]
    with process.journal(killed / "processes") as (ended, _):
        assert ended == 1 and owning.settle()
    assert log(killed) == ["pause", "built", "resume"]
    with machine_lock(killed / "locks", "build", "here"):
        pass  # free: the kernel has seen to it


# -- the lock


def test_who_takes_the_lock_of_a_killed_holder_ends_its_build_first(killed: Path) -> None:
    build = int((killed / "build.pid").read_text())
    os.kill(build, 0)
    with machine_lock(killed / "locks", "build", "elsewhere"):
        assert not Path(f"/proc/{build}").exists() or "Z" in Path(f"/proc/{build}/stat").read_text().rpartition(")")[2]
    with process.journal(killed / "processes"):
        pass


def test_who_waits_for_a_lock_is_told_who_holds_it(tmp_path: Path, said: list[str]) -> None:
    taken: list[str] = []

    def take() -> None:
        with machine_lock(tmp_path, "mx build/1", "/elsewhere", said.append):
            taken.append("other")

    with machine_lock(tmp_path, "mx build/1", "/home/tess/shop", said.append):
        other = threading.Thread(target=take)
        other.start()
        until(lambda: said)
        assert taken == []
    other.join()
    assert taken == ["other"]
    (line,) = said
    assert line.startswith(
        f"waiting for the lock mx build/1: pid {os.getpid()} on {os.uname().nodename} holds it since"
    )
    assert line.endswith(", in /home/tess/shop")


def test_a_wait_for_a_lock_ends_at_a_signal(tmp_path: Path, said: list[str]) -> None:
    ended: list[str] = []

    def take() -> None:
        try:
            with machine_lock(tmp_path, "build", "/elsewhere", said.append):
                ended.append("taken")
        except process.Stopped:
            ended.append("stopped")

    with machine_lock(tmp_path, "build", "/here"):
        other = threading.Thread(target=take)
        other.start()
        until(lambda: said)
        process.stop_all()
        other.join()
    with process.tidying():
        pass
    assert ended == ["stopped"]


# -- the output folder


def test_out_is_an_empty_folder_of_its_own_that_goes_when_the_build_is_done(owning: Owning, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    with owning.of(Owns(), ["make OUT={out}", "echo ${out} $(ls {out})"]) as (first, second):
        folder = Path(first.removeprefix("make OUT="))
        assert second == f"echo ${{out}} $(ls {folder})"
        assert folder.is_dir() and not list(folder.iterdir()) and folder.parent == tmp_path / "scratch"
    assert list((tmp_path / "scratch").iterdir()) == []
    with owning.of(None, ["echo {out}"]) as commands:
        assert commands == ("echo {out}",)


# -- did the machine let it come to its end?


@pytest.mark.parametrize(
    ("command", "why", "crash"),
    [
        ("true", None, False),
        ("echo 2 tests failed; exit 1", None, False),
        ("exit 255", None, False),
        ("kill -KILL $$", "killed by SIGKILL", False),
        ("sh -c 'kill -TERM $$'; exit $?", "killed by SIGTERM", False),
        ("sh -c 'kill -SEGV $$'; exit $?", "crashed with SIGSEGV", True),
        ("echo \"make: *** [Makefile:2: all] Killed\"; exit 2", "make: *** [Makefile:2: all] Killed", False),
        ("echo 'cc: fatal error: No space left on device'; exit 1", "cc: fatal error: No space left on device", False),
        ("echo 'x.c:3: internal compiler error: in y'; exit 1", "x.c:3: internal compiler error: in y", True),
        ("echo 'No space left on device'", None, False),  # it succeeded
        ("sleep 30", "no end within 1 s", False),
        ("no-such-program-anywhere", "a program of it could not be started", True),
    ],
)  # fmt: skip
def test_a_build_that_the_machine_could_not_finish_is_neither_pass_nor_fail(
    tmp_path: Path, command: str, why: str | None, crash: bool
) -> None:
    done = process.run(["sh", "-c", command], cwd=tmp_path, timeout=1.0 if "sleep" in command else 30.0)
    found = unfinished(done, 1.0)
    if why is None:
        assert found is None
    else:
        assert found is not None and found.why.startswith(why) and found.crash is crash


def test_what_took_too_much_memory_says_nothing_of_the_code(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import time; x = b'x' * (200 << 20); time.sleep(30)"]
    found = unfinished(process.run(words, cwd=tmp_path, max_memory=100 << 20), 60.0)
    assert found is not None and (found.why, found.crash) == ("more memory than it may take", False)


def test_the_note_of_a_holder_can_be_read_by_others(tmp_path: Path) -> None:
    with machine_lock(tmp_path, "build", "/here"):
        said = json.loads((tmp_path / "build.json").read_text())
    assert (said["pid"], said["what"]) == (os.getpid(), "/here")
    assert not (tmp_path / "build.json").exists()
