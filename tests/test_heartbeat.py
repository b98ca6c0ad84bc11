"""One run a cache: a live one is named or waited for, a dead one is taken over, here and on another machine."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from pathlib import Path

import pytest

from pipeline import heartbeat
from pipeline.action import Refusal
from pipeline.heartbeat import DEAD, NAME, WAIT, alone
from pipeline.journals import boot_id

STARTED = 1_700_000_000.0
ELSEWHERE = {"run": "r", "pid": 7, "host": "other", "boot": "another machine's", "since": "2026-01-01 00:00:00"}


def leave(home: Path, seconds_ago: float, **about: object) -> None:
    """A heartbeat whose run is gone, or on another machine."""
    place = home / NAME
    place.write_text(json.dumps({**ELSEWHERE, **about}))
    when = time.time() - seconds_ago
    os.utime(place, (when, when))


def test_a_live_run_is_named_to_the_second_which_is_refused(tmp_path: Path) -> None:
    with alone(tmp_path, "first", STARTED):
        said = json.loads((tmp_path / NAME).read_text())
        with pytest.raises(Refusal) as refused, alone(tmp_path, "second", STARTED):
            pass
        assert json.loads((tmp_path / NAME).read_text())["run"] == "first"
    for word in (str(tmp_path), f"pid {os.getpid()}", said["host"], said["since"], WAIT):
        assert word in str(refused.value)
    assert not (tmp_path / NAME).exists()


def test_a_live_run_is_waited_for_as_long_as_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = contextlib.ExitStack()
    first.enter_context(alone(tmp_path, "first", STARTED))
    monkeypatch.setenv(WAIT, "0.3")
    with pytest.raises(Refusal), alone(tmp_path, "second", STARTED):
        pass
    monkeypatch.setenv(WAIT, "60")
    ender = threading.Timer(0.3, first.close)
    ender.start()
    with alone(tmp_path, "third", STARTED) as before:
        assert before is None
    ender.join()
    assert capsys.readouterr().err.count(f"waiting for another run's end: pid {os.getpid()}") == 2


@pytest.mark.parametrize("said", ["soon", "-1", "nan", ""])
def test_a_time_to_wait_that_is_none_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(WAIT, said)
    with pytest.raises(Refusal, match=f"{WAIT}={said}: say how many seconds"), alone(tmp_path, "r", STARTED):
        pass


def test_a_run_found_dead_is_taken_over_and_told(tmp_path: Path) -> None:
    leave(tmp_path, 0, boot=boot_id(), host=os.uname().nodename)
    with alone(tmp_path, "next", STARTED) as before:
        assert before is not None and before["run"] == "r"


def test_a_run_on_another_machine_is_alive_while_its_heartbeat_is_young(tmp_path: Path) -> None:
    leave(tmp_path, DEAD - 5)
    with pytest.raises(Refusal, match="pid 7 on other since 2026"), alone(tmp_path, "next", STARTED):
        pass
    assert {p.name for p in tmp_path.iterdir()} <= {NAME, "run.lock"}
    leave(tmp_path, DEAD + 5)
    with alone(tmp_path, "next", STARTED) as before:
        assert before is not None and before["host"] == "other"


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_heartbeat_that_is_none_of_ours_stops_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with alone(tmp_path, "next", STARTED) as before:
        assert not before


def test_it_beats_and_goes_on_where_the_cache_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
    home = tmp_path / "cache"
    home.mkdir()
    with alone(home, "run", STARTED):
        opened = (home / NAME).open()  # a reader that is in the middle of it
        first = json.loads((home / NAME).read_text())["at"]
        until = time.monotonic() + 30
        while json.loads((home / NAME).read_text())["at"] == first:
            assert time.monotonic() < until
            time.sleep(0.01)
        with opened:
            assert json.load(opened)["at"] == first
        home.rename(tmp_path / "gone")
        time.sleep(0.1)
        assert any(thread.name == "heartbeat" for thread in threading.enumerate())
    assert not any(thread.name == "heartbeat" for thread in threading.enumerate())
