"""Watch a child until it has ended, and end it with all that it has started: its session."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import attrs

GRACE = 3.0  # seconds between SIGTERM and SIGKILL
_TICKS = os.sysconf("SC_CLK_TCK")


@attrs.define
class Ending:
    cpu: float | None = None
    peak: int | None = None
    timed_out: bool = False
    too_much: bool = False
    too_much_memory: bool = False
    halted: bool = False


def watch(
    pid: int, started: float, timeout: float | None, outputs: tuple[IO[bytes], IO[bytes]], max_output: int,
    memory: bool, max_memory: int | None, halt: Callable[[], bool] | None, cpu: bool,
) -> Ending:  # fmt: skip
    """Wait until the child has ended, without reaping it: a zombie still tells its CPU time, if that is asked for, and
    nobody else gets its id."""
    memory = memory or max_memory is not None
    ending = Ending(peak=0 if memory else None)
    fd: int | None = None
    try:
        if hasattr(os, "pidfd_open"):
            fd = os.pidfd_open(pid)
        poller = select.poll()
        if fd is not None:
            poller.register(fd, select.POLLIN)
        while True:
            left = None if timeout is None else timeout - (time.monotonic() - started)
            step = 0.01 if fd is None else 0.5 if max_memory is None else 0.1
            over = poller.poll(max(0.0, min(step, left if left is not None else step)) * 1000)
            if over or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                ending.cpu = _cpu_seconds(pid) if cpu else None
                return ending
            if memory:
                now = _session_memory(pid)
                ending.peak = max(ending.peak or 0, now)
                if max_memory is not None and now > max_memory:
                    ending.too_much_memory = True
                    end_session(pid)
                    max_memory = timeout = left = None
            if halt is not None and halt():
                ending.halted = True
                end_session(pid)
                halt = timeout = left = None
            too_much = any(size(file) > max_output for file in outputs)
            if too_much or (left is not None and left <= 0):
                ending.too_much, ending.timed_out = too_much, not too_much
                end_session(pid)
                timeout = None
    except (ChildProcessError, ProcessLookupError):
        # sh's own thread looks once at the start and once a second, and reaps: that CPU time is not measured.
        return ending
    finally:
        if fd is not None:
            os.close(fd)


def _cpu_seconds(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(int(f) for f in fields[11:15]) / _TICKS  # proc(5): utime, stime, cutime, cstime


def _session_memory(sid: int) -> int:
    import psutil

    total = 0
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(pid) == sid:  # asked first: it costs nothing, where machines run hundreds
                total += psutil.Process(pid).memory_info().rss
    return total


def kill_session(sid: int, sign: int) -> bool:
    """Signal the group that the session's leader made; True where somebody was there to receive it."""
    try:
        os.killpg(sid, sign)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def outlived(sid: int) -> bool:
    """Whether anything of a session is left whose leader has ended. What was ended with it may take a moment."""
    deadline = time.monotonic() + 0.2
    while kill_session(sid, 0):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.01)
    return False


def end_session(sid: int, grace: float = GRACE) -> None:
    """SIGTERM, then SIGKILL after `grace` seconds for what is still there."""
    if not kill_session(sid, signal.SIGTERM):
        return
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, sid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                break
        if not kill_session(sid, 0):
            return
        time.sleep(0.02)
    kill_session(sid, signal.SIGKILL)


def size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size
