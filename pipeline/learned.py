"""What runs have taught about tasks: how long each takes, and how much memory."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson

from pipeline.results import dump, find, write_bytes

WORTH_A_WAIT = 64 << 20  # bytes; what takes less asks for no memory


@attrs.frozen
class Learned:
    """home: the folder that it is kept in."""

    home: Path

    @functools.cached_property
    def _durations(self) -> dict[str, list[float]]:
        """Task -> seconds of its last few attempts."""
        with contextlib.suppress(OSError, ValueError):  # as many as there are tasks: not through cattrs
            known = orjson.loads((self.home / "durations.json").read_bytes())
            if isinstance(known, dict) and all(isinstance(seconds, list) for seconds in known.values()):
                return known
        return {}

    @functools.cached_property
    def _peaks(self) -> dict[str, int]:
        """Declared task -> bytes of memory that it took when it ran last, where that is worth a wait."""
        return find(self.home / "peaks.json", dict[str, int]) or {}

    def peak(self, task: str) -> int | None:
        return self._peaks.get(task)

    def estimate(self, task: str) -> float | None:
        """Seconds."""
        seen = self._durations.get(task)
        return sum(seen) / len(seen) if seen else None

    @property
    def engine_peak_bytes(self) -> int | None:
        """The most memory that an engine run of this checkout was seen to take."""
        try:
            return int(self._engine_peak.read_text())
        except (OSError, ValueError):
            return None

    @property
    def _engine_peak(self) -> Path:
        return self.home / "engine-peak-bytes"

    def engine_took(self, peak: object) -> None:
        if isinstance(peak, int) and peak > (self.engine_peak_bytes or 0):
            write_bytes(self._engine_peak, str(peak).encode())

    def add(self, attempts: Sequence[Mapping[str, Any]]) -> None:
        """What the attempts of a run that ends tell."""
        # How soon a task failed says nothing of how long it takes.
        ran = [e for e in attempts if e["lane"] is not None and "failure" not in e]
        for e in ran:
            seconds = max(0.0, (e["ended"] - e["started"]) * e["share"] - e.get("waited", 0.0))
            self._durations[e["task"]] = [*self._durations.get(e["task"], ())[-4:], round(seconds, 3)]
        if ran:
            write_bytes(self.home / "durations.json", orjson.dumps(self._durations, option=orjson.OPT_SORT_KEYS))
        took = {e["task"]: e["peak_bytes"] for e in attempts if e["kind"] == "task" and e.get("peak_bytes")}
        large = {task: peak for task, peak in {**self._peaks, **took}.items() if peak >= WORTH_A_WAIT}
        if large != self._peaks:
            dump(self.home / "peaks.json", large)
