"""What the machine refuses and what somebody takes away in mid-run: told plainly, nobody left behind, nothing lost."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import psutil
import pytest
from conftest import PLAN, World

from pipeline import config, process, reports
from pipeline.declared import told_of_loss
from pipeline.host import CannotGoOn, RunInfo
from pipeline.results import write_bytes
from pipeline.schedule import lanes
from pipeline.session import Session

SCOPES = ("src/cart.js", "src/label.js", "src/price.js")
DOIT = f"{sys.executable} -m doit"


def forget(world: World, *names: str) -> None:
    """Take targets of a scope away, so that a run has these to make again."""
    for name in names:
        (world.root / "cache" / "scopes" / "src%2Flabel.js" / f"{name}.json").unlink()


def in_a_namespace(world: World, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script where it may mount; what it mounts goes with it. Needs no root where the system lets users."""
    enter = ["unshare", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*enter, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a small disk here")
    return subprocess.run(
        [*enter, "sh", "-ec", script], cwd=world.root, env=world.environment, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("full", ["the cache", "the home"])
def test_a_full_disk_ends_a_run_plainly_and_the_next_goes_on(driven: World, tmp_path: Path, full: str) -> None:
    forget(driven, "proofs.0", "landed")
    place = driven.root / "cache" if full == "the cache" else driven.home
    place.rename(tmp_path / "saved")
    place.mkdir()
    ran = in_a_namespace(
        driven,
        f"mount -t tmpfs -o size=4m tmpfs {place}; cp -a {tmp_path}/saved/. {place}/;"
        f"dd if=/dev/zero of={place}/filler bs=4k status=none 2>/dev/null || true;"
        f"{DOIT} -n 2 mutate 2>&1 && exit 9 || echo status $?; rm {place}/filler; {DOIT} -n 2 mutate",
    )
    first, _, second = ran.stdout.partition("status ")
    assert "Traceback" not in ran.stdout + ran.stderr
    assert any(word in first for word in ("No space left on device", "disk is full", "is the disk full?")), first
    assert second[0] in "13"
    assert second.count("landed") == len(SCOPES) + 1


def test_a_limit_on_the_size_of_files_ends_a_run_plainly_too(driven: World) -> None:
    forget(driven, "landed")
    ran = subprocess.run(
        ["sh", "-c", f"ulimit -f 8; {DOIT} -n 2 mutate"], cwd=driven.root, env=driven.environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 3 and "Traceback" not in ran.stdout + ran.stderr
    assert "ERROR" in ran.stderr
    assert driven.doit("-n", "2", "mutate").ending("src/label.js") == "landed"


@pytest.mark.parametrize("what", ["cache", "home"])
def test_a_read_only_place_is_an_error_that_names_it(driven: World, what: str) -> None:
    forget(driven, "landed")
    place = driven.root / "cache" if what == "cache" else driven.home
    ran = in_a_namespace(
        driven,
        f"mount --bind {place} {place}; mount -o remount,ro,bind {place}; {DOIT} -n 2 mutate 2>&1 || echo status $?",
    )
    assert "status 3" in ran.stdout and str(place) in ran.stdout and "Traceback" not in ran.stdout
    assert "Read-only file system" in ran.stdout or "cannot be written" in ran.stdout


def test_a_report_of_a_read_only_cache_is_printed_and_says_that_there_is_no_page(driven: World) -> None:
    cache = driven.root / "cache"
    ran = in_a_namespace(
        driven, f"mount --bind {cache} {cache}; mount -o remount,ro,bind {cache}; {DOIT} report; echo status $?"
    )
    assert "Where the time went" in ran.stdout and "status 0" in ran.stdout
    assert re.fullmatch(r"page: not written: .*/index\.html: Read-only file system\n", ran.stderr)


def test_a_cache_deleted_in_mid_run_costs_work_and_no_reply(driven: World, tmp_path: Path) -> None:
    driven.use_claude()
    driven.script([{"match": "*", "text": '{"tests": []}', "delay": 3}])
    run = driven.start("-n", "2", "mutate")
    while not driven.calls():
        assert run.poll() is None, (driven.root.parent / "out").read_text()
        time.sleep(0.05)
    (driven.root / "cache").rename(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone")
    assert run.wait(120) in (1, 2, 3)
    said = (driven.root.parent / "out").read_text()
    assert "Traceback" not in said and "cache/scopes/src%2Flabel.js" in said
    done = driven.doit("-n", "2", "mutate")
    assert {s: done.ending(s) for s in SCOPES} == dict.fromkeys(SCOPES, "landed")
    assert len(driven.calls()) == 1


def test_a_target_whose_folder_goes_while_it_is_written_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, goes, sync = tmp_path / "scopes" / "a" / "landed.json", [True, True], os.fsync

    def lose_the_folder(fd: int) -> None:
        sync(fd)
        if goes and goes.pop():
            shutil.rmtree(tmp_path / "scopes")

    monkeypatch.setattr(os, "fsync", lose_the_folder)
    assert write_bytes(target, b"whole")
    assert target.read_bytes() == b"whole" and [p.name for p in target.parent.iterdir()] == ["landed.json"]
    goes[:] = [True, True, True]
    with pytest.raises(FileNotFoundError):
        write_bytes(target, b"another")


def test_a_file_whose_writing_fails_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "landed.json"
    write_bytes(target, b"whole")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(target, b"anew")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("landed.json", b"whole")]


@pytest.mark.parametrize("brief", [False, True])
def test_what_a_killed_run_left_is_ended_and_nobody_else(tmp_path: Path, brief: bool) -> None:
    leaves = """
import os, signal, sys, threading
from pathlib import Path
from pipeline import process

def sleep(n):
    process.run(["sleep", n], cwd=Path.cwd(), brief=sys.argv[2] == "True")

with process.journal(Path(sys.argv[1])):
    for n in ("7611", "7612"):
        threading.Thread(target=sleep, args=(n,), daemon=True).start()
    while len([p for p in Path(sys.argv[1]).glob("*.json") if p.stat().st_size]) < 2:
        pass
    os.kill(os.getpid(), signal.SIGKILL)
"""
    folder = tmp_path / "processes"
    subprocess.run([sys.executable, "-c", leaves, str(folder), str(brief)], check=False)
    entries = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    orphans = [psutil.Process(entry["pid"]) for entry in entries]
    assert [p.name() for p in orphans] == ["sleep", "sleep"]
    # The number of one of them is a stranger's by now, as far as the journal can tell.
    (folder / f"{orphans[0].pid}.json").write_text(json.dumps({**entries[0], "start": "1"}))
    try:
        with process.journal(folder) as (ended, waited):
            assert (ended, waited) == (1, 0) and not list(folder.iterdir())
        assert psutil.wait_procs(orphans, 5)[1] == orphans[:1]
    finally:
        orphans[0].kill()


def test_what_is_started_as_brief_ends_as_anything_does(tmp_path: Path) -> None:
    slow = process.run(["sh", "-c", "sleep 60 & echo begun; wait"], cwd=tmp_path, timeout=0.3, brief=True)
    assert slow.timed_out and slow.text == "begun\n" and slow.exit_code < 0
    told = process.run(["sh", "-c", "cat; echo no >&2; exit 3"], cwd=tmp_path, stdin=b"said", brief=True)
    assert (told.exit_code, told.out, told.err, told.ok) == (3, b"said", b"no\n", False)
    with pytest.raises(process.NotFound, match="nothing-of-the-kind"):
        process.run(["nothing-of-the-kind"], cwd=tmp_path, brief=True)
    with pytest.raises(FileNotFoundError, match="gone"):
        process.run(["true"], cwd=tmp_path / "gone", brief=True)


@pytest.mark.parametrize(("place", "told"), [("home", True), ("cache", True), ("elsewhere", False)])
def test_a_file_of_ours_that_is_gone_while_a_task_needs_it_is_said_without_a_traceback(
    driven: World, place: str, told: bool
) -> None:
    session = Session(config.load(driven.root / "tasks.yaml"), reports.notes, reports.close)
    gone = {"home": session.home, "cache": session.places.cache, "elsewhere": driven.root}[place] / "gone"
    with pytest.raises(CannotGoOn if told else FileNotFoundError, match=re.escape(str(gone))), told_of_loss(session):
        gone.read_bytes()


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "no database": lambda content: b"not one\n" * 500,
    "a row that cannot be read": lambda content: content.replace(b'"checker:"', b'"checker:x'),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_database_is_set_aside_and_said(driven: World, how: str) -> None:
    database = driven.root / "cache" / "doit.db"
    whole = database.read_bytes()
    database.write_bytes(DAMAGE[how](whole))
    assert database.read_bytes() != whole
    with filelock.FileLock(driven.root / "cache" / "run.lock"):
        assert "is damaged, and a run is alive" in driven.doit("list", code=3).err
    done = driven.doit("info", "baseline:src/cart.js", code=None)
    assert f"{database} is damaged: set aside as doit.db.damaged" in done.err
    assert "damaged" not in driven.doit("list").both
    if how == "cut short":
        done = driven.doit("-n", "2", "mutate")
        assert {s: done.ending(s) for s in SCOPES} == dict.fromkeys(SCOPES, "landed")
        assert driven.measured() == set()


def test_a_database_that_another_has_locked_is_an_error(driven: World) -> None:
    connection = sqlite3.connect(driven.root / "cache" / "doit.db", isolation_level=None)
    connection.execute("pragma locking_mode = exclusive")
    connection.execute("begin exclusive")
    try:
        assert "database is locked" in driven.doit("list", code=3).err
    finally:
        connection.close()


def test_what_git_cannot_take_after_a_task_of_ours_is_a_failure_in_its_words(world: World) -> None:
    world.write(
        "tasks.yaml",
        PLAN + "engine: {needs: [make]}\ntasks:\n  - {name: make, run: sh make.sh, writes: [src/inner/]}\n",
    )
    world.write("make.sh", "git init --quiet src/inner && touch src/inner/some\n")  # without a commit
    world.commit()
    done = world.doit("-n", "2", "mutate", code=None)
    assert done.code in (1, 3)
    assert "src/inner" in done.both and "does not have a commit checked out" in done.both


def test_a_signal_ends_a_wait_for_another_runs_landing(driven: World) -> None:
    forget(driven, "landed")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with filelock.FileLock(driven.root / ".git" / "doit-mutate-landing.lock"):
            run = driven.start("-n", "2", "mutate")
            out = driven.root.parent / "out"
            while b".  land:src/label.js" not in out.read_bytes():
                assert run.poll() is None, out.read_text()
                time.sleep(0.05)
            time.sleep(0.5)
            run.send_signal(signal.SIGINT)
            assert run.wait(20) == 130, out.read_text()
    finally:
        signal.signal(signal.SIGINT, before)
    assert driven.doit("-n", "2", "mutate").ending("src/label.js") == "landed"


def test_a_models_program_runs_in_an_empty_folder_below_no_instructions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOIT_MUTATE_HOME", str(world.home))
    session = Session(config.load(world.root / "tasks.yaml"), reports.notes, reports.close)
    session.home.mkdir()
    session.open(RunInfo("run", lanes(2, {}, {}, None, 2, None), (), (), False, 0.0))
    try:
        with session.empty_folder() as folder:
            assert Path(folder).is_relative_to(world.home) and not list(Path(folder).iterdir())
        (world.home.parent / "CLAUDE.md").write_text("Be brief.")
        with session.empty_folder() as folder:
            assert not Path(folder).is_relative_to(world.home.parent)
    finally:
        session.close(0, False, True)
