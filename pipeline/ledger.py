"""The append-only record of what ran: JSON lines, one an event, flushed as they happen, folded when read."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson

Event = Mapping[str, Any]
ByEvent = Mapping[str, Sequence[Event]]  # one run's, by what they tell of, each sort oldest first


@attrs.define
class Ledger:
    path: Path
    run: str
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def write(self, event: str, **fields: Any) -> None:
        """Append one event. Times are seconds since the epoch."""
        line = json.dumps({"event": event, "run": self.run, **fields}, sort_keys=True, ensure_ascii=False) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)  # somebody may delete the cache while we run
        with self._lock, self.path.open("ab+") as file:
            if file.tell() and not _ends_line(file):
                line = "\n" + line  # a run that was killed left half a line: it stays one line, and ours another
            file.write(line.encode())


def _ends_line(file: Any) -> bool:
    file.seek(-1, 2)
    return bool(file.read(1) == b"\n")


def events(path: Path) -> Iterator[Event]:
    """The events of a ledger, oldest first. A line that is not one (torn by a kill), or of no run, is passed over."""
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    event = orjson.loads(line)
                except ValueError:
                    continue
                if type(event) is dict and "event" in event and "run" in event:
                    yield event
    except (FileNotFoundError, IsADirectoryError):  # the next run says what is wrong with a folder
        return


def by_event(events: Iterable[Event]) -> ByEvent:
    found: dict[str, list[Event]] = defaultdict(list)
    for e in events:
        found[e["event"]].append(e)
    return found


def runs(events: Iterable[Event]) -> dict[str, ByEvent]:
    """By run, the oldest first."""
    found: dict[str, defaultdict[str, list[Event]]] = {}
    for e in events:
        of_run = found.get(e["run"])
        if of_run is None:
            of_run = found[e["run"]] = defaultdict(list)
        of_run[e["event"]].append(e)
    return dict[str, ByEvent](found)


_TIMES = ("at", "ready", "started", "ended")
_LISTS = ("spans", "needs", "reads", "writes", "tasks", "scopes")


def strange(path: Path) -> int | None:
    """The number of the first line whose event has a value of another type than is ever written; None: of no line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                e = orjson.loads(line)
            except ValueError:
                continue
            if isinstance(e, dict) and not (
                all(isinstance(e.get(name, 0.0), float | int) for name in _TIMES)
                and all(isinstance(e.get(name) or [], list) for name in _LISTS)
                and isinstance(e.get("tokens") or {}, dict)
                and isinstance(e.get("lanes") or {}, dict)
            ):
                return number
    return None
