"""The paths that tasks hold while they run. Pure."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Iterable, Mapping

Hindrance = tuple[str, object]  # what it is about and which: a path that is held ("read", "write"), bytes ("memory")


class Locks:
    """The paths held. A directory holds all that is under it: two paths meet if equal, or one lies above the other."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._above_read: dict[str, str] = {}  # every directory with a read path somewhere under it -> one of those
        self._above_written: dict[str, str] = {}

    def may(self, reads: Iterable[str], writes: Iterable[str]) -> bool:
        return self.against(reads, writes) is None

    def against(self, reads: Iterable[str], writes: Iterable[str]) -> Hindrance | None:
        """How the first that cannot be had would be used, and the path that is held against it."""
        for path in reads:
            if (met := self._met(path, self._written, self._above_written)) is not None:
                return "read", met
        for path in writes:
            met = self._met(path, self._written, self._above_written)
            met = self._met(path, self._read, self._above_read) if met is None else met
            if met is not None:
                return "write", met
        return None

    def add(self, reads: Iterable[str], writes: Iterable[str]) -> None:
        for paths, held, above in (
            (reads, self._read, self._above_read),
            (writes, self._written, self._above_written),
        ):
            for path in paths:
                itself, *over = _upwards(path)
                held.add(itself)
                above.update(dict.fromkeys(over, itself))

    @staticmethod
    def _met(path: str, held: set[str], above: Mapping[str, str]) -> str | None:
        if not held:
            return None
        itself, *over = _upwards(path)
        return itself if itself in held else above.get(itself) or next((each for each in over if each in held), None)


@functools.lru_cache(1 << 12)
def _upwards(path: str) -> tuple[str, ...]:
    """The path, then every directory above it: "a/b/" → ("a/b", "a", "")."""
    path = posixpath.normpath(path).rstrip("/")
    steps = [] if path in (".", "") else [path]
    while steps and "/" in steps[-1]:
        above = steps[-1].rpartition("/")[0]
        if not above:
            break
        steps.append(above)
    return (*steps, "")
