"""What runs in each lane right now, for people at a terminal: redrawn once a second below all other lines.

Not at a terminal, nothing of it: one line an event, as before. rich is loaded where it is used.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

MOST = 6  # tasks of a lane that are shown by name


@attrs.frozen
class Doing:
    """Tasks that share a slot."""

    lane: str
    names: tuple[str, ...]
    since: float  # time.time()


@attrs.frozen
class State:
    """Of a run, at one moment."""

    capacity: Mapping[str, int]
    doing: Sequence[Doing]
    line: str  # scopes done, kills, tokens, time left


def wanted(outfile: Any, console: bool, verbosity: int | None) -> bool:
    """Is there somebody to look? console: doit's own reporter for people is the one in use."""
    dumb = os.environ.get("TERM", "dumb") == "dumb" or bool(os.environ.get("CI"))
    return console and outfile is sys.stdout and sys.stdout.isatty() and not dumb and verbosity != 0


@contextlib.contextmanager
def view(state: Callable[[], State | None]) -> Iterator[Any]:
    """Show it while the run goes on. Gives the stream for all that is to stand above; sys.stdout and sys.stderr are it
    meanwhile."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stdout, highlight=False, markup=False)
    above = _Above(console)

    def drawn() -> Any:
        now = state()
        return _drawn(now, time.time()) if now else ""

    live = Live(console=console, get_renderable=drawn, refresh_per_second=1, transient=True,
                redirect_stdout=False, redirect_stderr=False, vertical_overflow="crop")  # fmt: skip
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(above))
        if sys.stderr.isatty():
            stack.enter_context(contextlib.redirect_stderr(above))
        with live:
            yield above
        above.flush()


class _Above(io.TextIOBase):
    """Lines, as they are, above what is redrawn."""

    def __init__(self, console: Any) -> None:
        self._console, self._rest = console, ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._console.out(line, highlight=False)
        return len(text)

    def flush(self) -> None:
        """What is not a whole line yet waits for its end: it would stand in the way of what is redrawn."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._console.file.fileno())

    def close(self) -> None:
        if self._rest:
            self.write("\n")


def _drawn(state: State, now: float) -> Any:
    from rich.table import Table
    from rich.text import Text

    def _one_line(text: str) -> Any:
        return Text(text, overflow="ellipsis", no_wrap=True)

    shown = Table.grid(padding=(0, 2))
    for lane, slots in state.capacity.items():
        doing = sorted((each for each in state.doing if each.lane == lane), key=lambda each: each.since)
        shown.add_row(Text(lane, style="bold"), Text(f"{len(doing)}/{slots}"), _one_line(_listed(doing, now)))
    shown.add_row("", "", _one_line(state.line))
    return shown


def _listed(doing: Sequence[Doing], now: float) -> str:
    named = [f"{_named(each.names)} {span(now - each.since)}" for each in doing[:MOST]]
    more = [f"{len(doing) - MOST} more"] if len(doing) > MOST else []
    return " · ".join([*named, *more]) or "idle"


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def span(seconds: float) -> str:
    """A stretch of time, short."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
