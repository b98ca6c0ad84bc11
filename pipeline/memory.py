"""How much memory may the next task be given? What tasks ask for, or took when they ran last, against what is free."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import attrs

from pipeline import limits


@attrs.define
class Memory:
    """asks: task -> bytes, declared or learned; `there`: the most that all of them may have together."""

    asks: Mapping[str, int]
    there: int
    source: str  # what says so
    _at_rest: int = 0  # bytes that were free when nothing that asks was running

    def of(self, task: str) -> int:
        return self.asks.get(task, 0)

    def to_share(self, reserved: int, waiting: int) -> int:
        """Bytes for all that runs or starts now. reserved: of what is running; waiting: the most that one asks for.

        What is really free counts, not what others were promised: the rest of the machine takes memory too. Where
        nothing that asks is running, one may start all the same, however little is free: waiting would not end.
        """
        if not self.asks:
            return 0
        free = limits.free_memory()
        if not reserved:
            self._at_rest = free
            return min(self.there, max(free, waiting))
        return min(self.there, self._at_rest, reserved + free)

    def told(self, slots: int) -> str:
        """For the line of the lanes: nothing, where all that can run at once has what it asks for."""
        most = sum(heapq.nlargest(slots, self.asks.values()))
        if most <= self.there:
            return ""
        return (
            f", memory {self.there / 2**30:.2f} GiB ({self.source}): {slots} tasks at once may take "
            f"{most / 2**30:.2f} GiB, so some wait"
        )
