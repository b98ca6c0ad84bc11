"""Who is alive, written down, so that the next run can end what one that was killed has left behind."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pipeline import scratch
from pipeline.lifetime import end_session, kill_session

# A script writes itself into the journals before it does anything: `begin` would cost a fork of all our memory. Its
# arguments are the record without its end, and the journals. On one line: what is wrong in line 1 is told of line 1.
NOTING = (
    "_record=$1; shift; "
    f"{{ read -r {'_x ' * 21}_start _x </proc/$$/stat; }} 2>/dev/null; "
    'for _journal do printf \'%s, "pid": %s, "start": "%s"}\' "$_record" $$ "$_start" >"$_journal/$$.json"; '
    "done 2>/dev/null; unset _record _start _journal _x; set --; "
)


@functools.cache
def boot_id() -> str:
    """The same for all processes of this machine until it is started again; "" where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _entry(journal: Path, pid: int) -> Path:
    return journal / f"{pid}.json"


def begin(nice: int, journals: Sequence[Path], about: Mapping[str, object], enforce: Callable[[], None] | None) -> None:
    """In the child, before it becomes the program. Written by us afterwards, the journal would miss what was started
    in the moment before kill -9."""
    if nice:
        os.nice(nice)
    note(journals, os.getpid(), about)
    if enforce:
        enforce()


def note(journals: Sequence[Path], pid: int, about: Mapping[str, object]) -> None:
    record = {**about, "pid": pid, "start": scratch.start_time(pid)}
    for journal in journals:
        with contextlib.suppress(OSError):  # a full disk, a cache that was deleted: no reason to start nothing
            journal.mkdir(parents=True, exist_ok=True)
            _entry(journal, pid).write_text(json.dumps(record))


def settle(folder: Path) -> tuple[int, int]:
    """End what dead runs have left of those in a journal, or wait for what was to be kept. Gives both counts."""
    ended = waited = 0
    for entry in folder.glob("*.json"):
        try:
            record = json.loads(entry.read_bytes())
            pid = int(record["pid"])
            # A process id is used again: only the same start time in the same boot is the same process. A leader that
            # has ended may have left its group behind, which no new process can have taken as its own.
            start = scratch.start_time(pid)
            ours = record["boot"] == boot_id() and start in (record["start"], "")
            if ours and record.get("keep") and start:
                waited += 1
                until = record["until"] or float("inf")
                while scratch.start_time(pid) == record["start"] and time.time() < until:
                    time.sleep(0.1)
            if ours and kill_session(pid, 0):
                ended += 1
                end_session(pid)
        except (ValueError, KeyError, OSError):
            pass  # a torn entry names nobody
        entry.unlink(missing_ok=True)
    return ended, waited
