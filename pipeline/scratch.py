"""Temporary folders that name the process they are for, so that a later run removes what a killed one left.

They lie right in the system's temporary folder: a socket's path may have 107 bytes, and .NET makes sockets there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "doit-mutate-"


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A new, empty folder, removed at the end."""
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of processes that are no more."""
    if not start_time(os.getpid()):
        return  # no /proc: nothing says who lives
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*-*"):
        pid, _, start = path.name.removeprefix(PREFIX).rpartition("-")[0].partition("-")
        if pid.isdigit() and start.isdigit() and start_time(int(pid)) != start:
            shutil.rmtree(path, ignore_errors=True)


def start_time(pid: int) -> str:
    """When a live process started, in ticks since the machine did; "" where there is none, or none that tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]  # one that nobody has reaped is none
