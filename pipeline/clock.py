"""The time of a run's events: seconds since the epoch when this program was loaded, and on from there at the pace of a
clock that nobody sets. What lies between two events is how long it took, whatever was done to the system's time."""

from __future__ import annotations

import time

_BEGAN = time.time() - time.monotonic()


def now() -> float:
    return _BEGAN + time.monotonic()
