"""The append-only record of what ran: JSON lines, one an event, written as they happen, folded when read."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
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
    _file: int | None = None  # open for appending
    begun: int | None = None  # where in the file the events of this run begin

    def write(self, event: str, **fields: Any) -> None:
        """Append one event. Times are seconds since the epoch. Raises OSError."""
        line = line_of({"event": event, "run": self.run, **fields})
        with self._lock:
            try:
                file = self._opened()
                while line:
                    line = line[os.write(file, line) :]
            except BaseException:
                self._shut()  # it may have half a line now
                raise

    def close(self) -> None:
        """Until the next event."""
        with self._lock:
            self._shut()

    def _shut(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _opened(self) -> int:
        """The file of that name: somebody may delete the cache while we run."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                if os.path.samestat(os.stat(self.path), os.fstat(self._file)):  # noqa: PTH116
                    return self._file
            self._shut()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            size += os.write(file, b"\n")  # a run that was killed left half a line: it stays one, and ours another
        self.begun = size if self.begun is None else min(size, self.begun)
        return file


def line_of(event: Mapping[str, Any]) -> bytes:
    """Its fields in the order given: what it tells of and of which run come first, for who reads no more of it."""
    try:
        return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a path that is no UTF-8, a number of more than 64 bits
        return f"{json.dumps(event)}\n".encode()


def events(path: Path, start: int = 0, end: int | None = None) -> Iterator[Event]:
    """The events of a ledger, oldest first. A line that is not one (torn by a kill), or of no run, is passed over.
    start, end: where in the file lines begin."""
    for lines in _lines(path, start, end):
        yield from _parsed(lines)


_AT_ONCE = 1 << 16  # bytes: what is read is then still in the processor's cache when it is parsed


def _lines(path: Path, start: int, end: int | None) -> Iterator[list[bytes]]:
    """All lines, some hundred at once."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            while (end is None or start < end) and (lines := file.readlines(_AT_ONCE)):
                if end is not None:
                    lines = [line for line in lines if (start := start + len(line)) <= end]
                yield lines
    except (FileNotFoundError, IsADirectoryError):  # the next run says what is wrong with a folder
        return


def _parsed(lines: Sequence[bytes]) -> Iterator[Event]:
    """As one array, in two thirds of the time that a call for each takes; where one of them is torn, each by itself."""
    try:
        found = orjson.loads(b"[%b]" % b",".join(lines))
    except ValueError:
        found = ()
    for event in found if len(found) == len(lines) else itertools.chain.from_iterable(map(_alone, lines)):
        try:
            event["event"], event["run"]
        except (TypeError, LookupError):  # no object, no event
            continue
        yield event


def _alone(line: bytes) -> Sequence[Any]:
    try:
        return (orjson.loads(line),)
    except ValueError:
        return ()


def by_event(events: Iterable[Event]) -> ByEvent:
    found: dict[str, list[Event]] = defaultdict(list)
    for e in events:
        found[e["event"]].append(e)
    return found


_STARTED = b'{"event":"started","run":"'  # as we write it; a line that says it otherwise is read as any other


def runs(path: Path, start: int = 0, end: int | None = None) -> dict[str, ByEvent]:
    """By run, the oldest first. Of a run that ended without what began, for it tells the end of each: that is two
    lines in five, and they are not even parsed. start, end: where in the file lines begin."""
    found: defaultdict[str, defaultdict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    begun: list[bytes] = []
    for lines in _lines(path, start, end):
        begun += [line for line in lines if line.startswith(_STARTED)]
        for e in _parsed([line for line in lines if not line.startswith(_STARTED)]):
            found[e["run"]][e["event"]].append(e)
    over = {run.encode() for run, of_run in found.items() if "run-ended" in of_run}
    for e in _parsed([line for line in begun if line[len(_STARTED) : line.find(b'"', len(_STARTED))] not in over]):
        found[e["run"]]["started"].append(e)
    return dict[str, ByEvent](found)


_TIMES = ("at", "ready", "started", "ended")
_NUMBERS = ("slot", "memory", "round", "killed", "status", "share", "waited")
_TEXTS = ("task", "kind", "scope", "lane", "then", "outcome", "phase", "tree", "ending", "why", "model", "reply")
_LISTS = ("needs", "reads", "writes", "tasks", "scopes")
_SPENT = ("fresh_input", "cache_write", "cache_read", "output")
_NEEDED: Mapping[str, Sequence[str]] = {  # event -> what is never missing in it
    "run-started": ("at",),
    "started": ("tasks", "scopes", "kind", "lane", "slot", "ready", "started"),
    "attempt": ("task", "outcome"),
    "condition": ("scope", "phase", "started", "ended"),
    "build": ("cached",),
    "call": ("reply", "outcome", "ended"),
    "candidate-dropped": ("scope", "outcome"),
    "ending": ("scope", "ending", "why"),
    "run-ended": ("at", "status"),
}
_RAN = ("ready", "started", "ended")  # of an attempt in a lane too
_LAST = 1e11  # seconds since the epoch, 3,000 years from now: a time from then on is none
MOST_SLOTS = 100_000  # of a lane: the largest plan has so many tasks, and a report goes through all slots


def strange(path: Path) -> int | None:
    """The number of the first line whose event is none that is ever written: a value of another type, one that is
    missing, an end before its start; None: there is no such line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                e = orjson.loads(line)
            except ValueError:
                continue
            if isinstance(e, dict) and "event" in e and "run" in e and not _plain(e):
                return number
    return None


def _plain(e: Mapping[str, Any]) -> bool:
    if not (isinstance(e["event"], str) and isinstance(e["run"], str)):
        return False
    if (needed := _NEEDED.get(e["event"])) is None:
        return True
    if e["event"] == "attempt":
        needed = (*needed, *_RAN) if e.get("lane") is not None else needed
    said = {name: value for name, value in e.items() if value is not None}
    lists, spans, lanes, tokens = [said.get(name, []) for name in _LISTS], *map(said.get, ("spans", "lanes", "tokens"))
    return (
        all(name in said for name in needed)
        and (e["event"] != "attempt" or "lane" in e)
        and all(_is_time(said.get(name, 0.0)) for name in _TIMES)
        and said.get("ended", math.inf) >= said.get("started", 0.0)
        and all(isinstance(said.get(name, 0), float | int) for name in _NUMBERS)
        and all(isinstance(said.get(name, ""), str) for name in _TEXTS)
        and isinstance(said.get("after", ""), dict if e["event"] == "ending" and "after" in said else str)
        and all(isinstance(each, list) and all(isinstance(name, str) for name in each) for each in lists)
        and (spans is None or (isinstance(spans, list) and all(map(_is_span, spans))))
        and (lanes is None or (isinstance(lanes, dict) and all(map(is_capacity, lanes.values()))))
        and (tokens is None or (isinstance(tokens, dict) and _is_spent(tokens)))
    )


def _is_span(each: object) -> bool:
    return isinstance(each, list) and len(each) == 4 and isinstance(each[1], str) and all(map(_is_time, each[2:]))


def _is_spent(tokens: Mapping[str, object]) -> bool:
    told = tokens.get("source") != "envelope" or all(isinstance(tokens.get(name), float | int) for name in _SPENT)
    return told and isinstance(tokens.get("cost", 0.0), float | int | None)


def is_capacity(slots: object) -> bool:
    return isinstance(slots, int) and slots <= MOST_SLOTS


def _is_time(value: object) -> bool:
    return isinstance(value, float | int) and 0 <= value < _LAST
