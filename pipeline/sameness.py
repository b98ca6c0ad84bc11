"""Have the inputs of a scope changed? By content; and where the engine says so, by what a compiler sees of it.

A project's every file is an input of all its scopes where one assembly is made of them. There, a comment edited in one
file must not make all the others' measurements stale.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from pipeline.engines import Engine
from pipeline.worktree import GitError, Repository


@attrs.frozen
class Sameness:
    repository: Repository
    engine: Engine
    _same: dict[tuple[str, str], bool] = attrs.field(factory=dict)  # two blobs -> their answer

    def changed(self, inputs: Mapping[str, str], states: Mapping[str, str], exact: Collection[str]) -> list[str]:
        """The inputs (path -> content hash) that `states` has otherwise. exact: where every byte counts."""
        differing = (path for path, state in inputs.items() if states.get(path) != state)
        return [p for p in differing if p in exact or not self._alike(p, inputs[p], states.get(p))]

    def _alike(self, path: str, before: str, now: str | None) -> bool:
        if now is None or not path.endswith(self.engine.compiled):
            return False
        if (before, now) not in self._same:
            try:
                old, new = (self.repository.git("cat-file", "blob", oid).text for oid in (before, now))
                essence = self.engine.essence(old)
                self._same[before, now] = essence is not None and essence == self.engine.essence(new)
            except GitError:
                return False  # the older one is gone, or a link
        return self._same[before, now]
