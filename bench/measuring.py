"""Run a command and measure it; a row of the table."""

from __future__ import annotations

import os
import pty
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).parent.parent


@attrs.frozen
class Ran:
    seconds: float
    peak_mib: float  # of the process itself, without its children
    cpu_seconds: float = 0.0  # with its children


@attrs.frozen
class Row:
    what: str
    ours: Sequence[float]  # seconds
    peer: Sequence[float]
    asked: str

    def __str__(self) -> str:
        ratios = [a / b for a, b in zip(self.ours, self.peer, strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        ours, peer = statistics.median(self.ours), statistics.median(self.peer)
        return (
            f"| {self.what} | {ours:.2f} s | {peer:.2f} s | {statistics.median(ratios):.2f} | {spread} | {self.asked} |"
        )


def run(command: Sequence[str | Path], cwd: Path, home: Path) -> Ran:
    """Run to the end; raises for an exit status other than 0."""
    env = {
        **os.environ,
        "DOIT_MUTATE_HOME": str(home),
        "PATH": f"{os.environ['PATH']}{os.pathsep}{Path(sys.prefix) / 'bin'}",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as output:
        before, started = cpu_seconds_of_children(), time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=output, stderr=subprocess.STDOUT)
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, peak_mib(process.pid))
            time.sleep(0.005)
        seconds = time.monotonic() - started
        if process.returncode != 0:
            output.seek(0)
            raise SystemExit(
                f"{' '.join(map(str, command))}: exit status {process.returncode}\n{output.read().decode()}"
            )
    return Ran(seconds, peak, cpu_seconds_of_children() - before)


def cpu_seconds_of_children() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak_mib(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0.0


def in_audit(attempt: Mapping[str, Any]) -> float:
    """Seconds that an attempt of the ledger spent in audits."""
    return sum((end - start for _, name, start, end in attempt.get("spans", ()) if name == "audit"), 0.0)


def doit(*args: str) -> list[str | Path]:
    return [sys.executable, "-m", "doit", *args]


def at_a_terminal(command: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> tuple[str, int]:
    """All that a terminal of 100 columns is sent by a program, and its exit status."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": "100", "LINES": "30"}
    run = subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env={**env, **size}
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # so Linux says that nobody has the other end any more
            more = b""
        if not more:
            break
        said += more
    os.close(ours)
    return said.decode(errors="replace"), run.wait()
