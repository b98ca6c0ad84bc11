"""What a run looks at, noted for the next one (unchanged.py), and what of it that one may have to load (reached.py)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pipeline
from pipeline import filescopes, patterns, reached, unchanged
from pipeline.action import Refusal
from pipeline.results import Outcome
from pipeline.unchanged import Look

if TYPE_CHECKING:
    from pipeline.session import Session

_TICK = 20_000_000  # ns by which a file system's clock may be behind


class Noting:
    """Of one session. narrowed: what was loaded, where that is not all of the plan."""

    def __init__(self, session: Session, narrowed: reached.Narrowed | None) -> None:
        self._session, self._narrowed = session, narrowed
        self._first: Look | None = None
        self._notes: Sequence[str] = ()

    @property
    def others(self) -> Sequence[str]:
        """The tasks of the selection that were not loaded: they are up to date."""
        return self._narrowed.others if self._narrowed else ()

    @property
    def _only_files(self) -> bool:
        """Does nothing depend on what git tells?"""
        plan = self._session.plan
        return not (plan.scopes or plan.changes or plan.lints or plan.compose or plan.engine.config)

    def begin(self) -> None:
        """Nothing has been judged yet."""
        info, ages = self._session.info, self._session.plan.engine.max_age is not None
        if self._narrowed:
            self._first = self._narrowed.look
        elif info and info.plain and not ages and not self._session.plan.changes:
            self._first = self._look(unchanged.RUN)

    def told(self, notes: Callable[[], Sequence[str]]) -> Sequence[str]:
        """What people are told before the run. notes: on the plan, where all of it was loaded."""
        self._notes = self._narrowed.notes if self._narrowed else notes()
        if not self.others:
            return self._notes
        return [*self._notes, f"{len(self.others):,} tasks are up to date: nothing that they look at has changed"]

    def end(self, text: str, well: bool, alone: bool) -> None:
        """The run is over, and `text` is what people are told. alone: nobody else has written in doit's database."""
        info, first = self._session.info, self._first
        if info is None or first is None or not alone:
            return
        attempts = {e["task"]: e["outcome"] for e in self._session.events if e["event"] == "attempt"}
        declared = {task.name for task in self._session.plan.tasks}
        asked = [name for name in info.selected if name in declared or name in attempts]
        owed = [name for name in asked if attempts.get(name) != Outcome.CACHED]
        said = (
            f"{len(asked) + len(self.others)} tasks are up to date: nothing has changed since they were last looked at"
        )
        with contextlib.suppress(OSError):  # then the next run looks at everything again
            if not self._only_files:
                if well and not owed and (seen := self._as_it_was(first)) is not None:
                    self._keep(unchanged.RUN, seen, info.words, said=f"{said}\n{text}", owed=(), table="")
                return
            words: Sequence[str] | None = info.words
            table = ""
            if self._narrowed:
                words, table = self._narrowed.words, self._narrowed.table
            elif declared.issuperset(asked):
                table = reached.keep(self._session.home, self._session.plan, asked, self._notes)
            if table or not owed:
                written = unchanged.states(unchanged.database(self._session.home))
                seen = first._replace(fixed={**first.fixed, **written})
                self._keep(unchanged.RUN, seen, words, said=f"{said}\n", owed=owed, table=table)

    def _as_it_was(self, first: Look) -> Look | None:
        """A second look, where it shows what the first did."""
        seen, ours = self._look(unchanged.RUN), unchanged.database(self._session.home)
        if seen is None or not self._committed or (seen.files, seen.rest) != (first.files, first.rest):
            return None
        fixed = [{path: state for path, state in each.fixed.items() if path not in ours} for each in (first, seen)]
        return seen if fixed[0] == fixed[1] else None

    def listed(self, said: str) -> None:
        """`doit list` has said that, of this plan as it is."""
        with contextlib.suppress(OSError):
            if (seen := self._look(unchanged.LIST)) is not None and (self._only_files or self._committed):
                self._keep(unchanged.LIST, seen, None, said=said)

    @property
    def _committed(self) -> bool:
        """git's status of a file that is edited, or of a folder that is new, does not tell one edit from the next."""
        try:
            return self._session.snapshot.tree == self._session.snapshot.head
        except Refusal:
            return False

    def _keep(self, name: str, seen: Look, words: Sequence[str] | None, **more: object) -> None:
        """Raises OSError."""
        session = self._session
        unchanged.keep(session.home, name, seen, Path(session.plan.root), words, not self._only_files, **more)

    def _look(self, name: str) -> Look | None:
        """At all that a run, or `doit list`, depends on; None where that is not known, or moves under our eyes."""
        session, plan, root = self._session, self._session.plan, Path(self._session.plan.root)
        if plan.since:
            return None
        paths = {each for task in plan.tasks for each in (*task.reads, *task.writes)}
        wide = sorted(each for each in paths if not filescopes.is_file(each))
        named = [f"{root}/{patterns.lock(each)}" for each in paths.difference(wide)]
        fixed: list[str] = []
        from pipeline.engines import EngineError
        from pipeline.worktree import GitError

        try:
            if not unchanged.only_ours(Path(plan.path).with_name("dodo.py")):
                return None
            if self._only_files:  # and the branch that is checked out, which no plan may land on
                fixed = [f"{session.repository.index.parent}/HEAD"]
            else:
                fixed = [*map(str, session.engine.installed(root))]
            seen = unchanged.look(session.home, root, fixed, named, wide, name, not self._only_files)
        except (OSError, EngineError, GitError):
            return None
        plan_files = (state for path, state in seen.fixed.items() if path not in unchanged.database(session.home))
        moving = any(state is not None and state[1] >= pipeline.BEGAN - _TICK for state in plan_files)
        return None if moving else seen
