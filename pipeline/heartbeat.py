"""One run at a time in a cache, and a file there that says who it is and that it is alive.

The lock is the truth where it reaches: the kernel frees it when its holder dies. Locks on a shared file system may not
reach other machines, so there another machine's run is believed alive while its heartbeat is young.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock

from pipeline.action import Refusal
from pipeline.journals import boot_id

NAME = "run.json"
EVERY = 5.0  # seconds between two beats
DEAD = 30.0  # seconds without a beat, after which another machine's run counts as dead
WAIT = "DOIT_MUTATE_WAIT"  # seconds to wait for a live run instead of being refused


@contextlib.contextmanager
def alone(home: Path, run: str, started: float) -> Iterator[dict[str, Any] | None]:
    """Be the one run in the cache `home`, and beat while it lasts. Gives what a dead run left of its heartbeat, if any.

    started: seconds since the epoch. Raises Refusal where another run is alive.
    """
    lock = filelock.FileLock(home / "run.lock")
    before = _take(lock, home, _seconds_to_wait())
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started))
    me = {"run": run, "pid": os.getpid(), "host": socket.gethostname(), "boot": boot_id(), "since": since}
    stop = threading.Event()
    beating = threading.Thread(target=_beat, args=(home, me, stop), name="heartbeat", daemon=True)
    try:
        _write(home, me)
        beating.start()
        yield before
    finally:
        stop.set()
        if beating.ident:
            beating.join()
        (home / NAME).unlink(missing_ok=True)
        lock.release()


def _seconds_to_wait() -> float:
    said = os.environ.get(WAIT, "0")
    with contextlib.suppress(ValueError):
        if (seconds := float(said)) >= 0:
            return seconds
    raise Refusal(f"{WAIT}={said}: say how many seconds to wait for another run's end")


def _take(lock: filelock.BaseFileLock, home: Path, wait: float) -> dict[str, Any] | None:
    """Hold the lock; what the last holder left, where it died."""
    until = time.monotonic() + wait
    told = False
    while True:
        try:
            lock.acquire(timeout=0)
            left = _read(home)
            if not left or not _lives_elsewhere(home, left):
                return left
            lock.release()
        except filelock.Timeout:
            left = _read(home)
        who = "pid {pid} on {host} since {since}".format_map({"pid": "?", "host": "?", "since": "?"} | (left or {}))
        if time.monotonic() >= until:
            raise Refusal(
                f"another run holds {home}: {who}; wait for it ({WAIT}=600 waits ten minutes for its end), or end it"
            )
        if not told:
            sys.stderr.write(f"waiting for another run's end: {who}\n")
            told = True
        time.sleep(0.2)


def _lives_elsewhere(home: Path, left: dict[str, Any]) -> bool:
    """Is this the heartbeat of a live run on another machine? Told by the file system's clock: machines' own differ."""
    same = left.get("boot") == boot_id() if boot_id() else left.get("host") == socket.gethostname()
    if same:
        return False  # its lock would be held
    probe = home / f".{NAME}.probe"
    try:
        probe.write_text("")
        return probe.stat().st_mtime - (home / NAME).stat().st_mtime < DEAD
    except FileNotFoundError:
        return False
    finally:
        probe.unlink(missing_ok=True)


def _beat(home: Path, me: dict[str, Any], stop: threading.Event) -> None:
    while not stop.wait(EVERY):
        with contextlib.suppress(OSError):  # a full disk, a cache that was deleted: the run will say so
            _write(home, me)


def _write(home: Path, me: dict[str, Any]) -> None:
    beside = home / f".{NAME}"
    beside.write_text(json.dumps({**me, "at": time.time()}))
    beside.replace(home / NAME)


def _read(home: Path) -> dict[str, Any] | None:
    try:
        said = json.loads((home / NAME).read_bytes())
        return said if isinstance(said, dict) else None
    except (OSError, ValueError):
        return None
