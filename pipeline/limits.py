"""What this process and its children may use of the machine: cores and memory, with the limits of control groups.

Light: `doit list` loads it.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

MEMORY = "DOIT_MUTATE_MEMORY"
_GROUPS = Path("/sys/fs/cgroup")
_BYTES = re.compile(r"([0-9]+(?:\.[0-9]+)?)(kB|MB|GB|TB|KiB|MiB|GiB|TiB|)")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def cores() -> int:
    """How many this process may use."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for group in _own_groups("cpu"):
        with contextlib.suppress(OSError, ValueError):  # ValueError: "max"
            quota, period = (group / "cpu.max").read_text().split()
            found = min(found, max(1, math.ceil(int(quota) / int(period))))
    return found


def slots(text: str) -> int | None:
    """What `cpu`, or a share of the cores such as 75%, comes to; None for all else."""
    if text == "cpu":
        return cores()
    if text.endswith("%") and text[:-1].isdecimal():
        return max(1, cores() * int(text[:-1]) // 100)
    return None


def counted(words: Sequence[str]) -> list[str]:
    """A command line with -n cpu and -n 75% as doit takes them: as numbers."""
    found = list(words)
    for index, word in enumerate(found):
        option = next((each for each in ("--process=", "-n") if word.startswith(each)), "")
        if option and (number := slots(word[len(option) :])) is not None:
            found[index] = f"{option}{number}"
        elif word in ("-n", "--process") and index + 1 < len(found):
            number = slots(found[index + 1])
            found[index + 1] = found[index + 1] if number is None else str(number)
    return found


def memory() -> tuple[int, str]:
    """Bytes that all that runs here may take together, and what says so. Raises ValueError, worded for people."""
    found = [(_machine("MemTotal"), "this machine"), *((limit, "control group") for limit, _ in _groups())]
    said = os.environ.get(MEMORY)
    if said is not None:
        asked = _BYTES.fullmatch(said)
        if not asked:
            raise ValueError(f"{MEMORY}={said}: say bytes, or 500MB, or 2GiB, or unset it")
        found.append((int(float(asked[1]) * (1024 if "i" in asked[2] else 1000) ** _POWERS[asked[2][:1]]), MEMORY))
    return min(found)


def free_memory() -> int:
    """Bytes that may be taken now without anything else being put out."""
    return min([_machine("MemAvailable"), *(limit - used for limit, used in _groups())])


def _machine(key: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
    import psutil

    memory = psutil.virtual_memory()
    return int(memory.total if key == "MemTotal" else memory.available)


def _groups() -> Iterator[tuple[int, int]]:
    """The limit of each control group that this process is in, and what is in use there that cannot be given back."""
    for group in _own_groups("memory"):
        for most, now, cached in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            with contextlib.suppress(OSError, ValueError, KeyError):  # ValueError: "max"
                limit, used = int((group / most).read_text()), int((group / now).read_text())
                stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
                yield limit, used - int(stat[cached])


def _own_groups(controller: str) -> Iterator[Path]:
    """The control groups of this process and all above them, of version 2 and 1: cgroups(7). In a container its own is
    often the topmost that is to be seen, whatever it is called outside."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" or controller in controllers.split(","):
            top = _GROUPS if number == "0" else _GROUPS / controllers
            own = top / path.lstrip("/")
            yield from (each for each in (own, *own.parents) if each.is_relative_to(top) and each.is_dir())
