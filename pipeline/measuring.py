"""Reports for scopes at a tree: from the action cache, or from the engine and then audited. No doit, no targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline import account, process
from pipeline.engines import Engine, Measured
from pipeline.model import Scope
from pipeline.mutants import Mutant, Status
from pipeline.proof import KILLS
from pipeline.results import Outcome
from pipeline.sameness import Sameness
from pipeline.store import ActionCache
from pipeline.worktree import SUBMODULE, Worktree


@attrs.frozen
class Measurement:
    """A scope's report at one state of its inputs, audited."""

    measured: Measured
    inputs: Mapping[str, str] = attrs.field(factory=dict)  # path -> content hash: all that it depends on
    cached: bool = False
    audit_cpu_seconds: float | None = None  # None where it was cached


# The targets that tell of measurements.


@attrs.frozen
class Baseline:
    """baseline.json: the audited report of a scope at the snapshot."""

    outcome: Outcome
    detail: str = ""
    mutants: tuple[Mutant, ...] = ()
    tests: tuple[str, ...] = ()  # the test files that were used


@attrs.frozen
class Inputs:
    """inputs.json: what a baseline depends on. `known`: digest of all that is known before it runs."""

    known: str = ""
    inputs: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Confirmed:
    """confirmed.json: the engine's own word on the landed state."""

    outcome: Outcome
    detail: str = ""
    content: str | None = None  # of the write file that was measured
    inputs: Mapping[str, str] = attrs.field(factory=dict)
    statuses: Mapping[str, int] = attrs.field(factory=dict)  # status -> number of mutants
    disagreements: tuple[str, ...] = ()  # mutants that a proof says are killed and the report says are not


@attrs.frozen
class Measuring:
    engine: Engine
    cache: ActionCache
    sameness: Sameness
    since: float = 0.0  # time.time(); what was measured before is measured anew

    def known(self, scope: Scope, states: Mapping[str, str], root: Path) -> Any:
        """All that a scope's report depends on and that is known before anything runs. Raises EngineError."""
        return {
            "engine": f"{self.engine.name} {self.engine.version(root)}",
            "mutate": scope.mutate,
            # Without `tests`, what is run depends on which files there are.
            "tests": sorted(states) if scope.tests is None else scope.tests,
            "config": {p: states[p] for p in self.engine.config_files() if p in states},
            "reads": scope.reads,
            **({"lines": scope.lines} if scope.lines is not None else {}),
        }

    def is_recent(self, scope: Scope, known: Any, states: Mapping[str, str]) -> bool:
        """Whether what was measured for `known` may still be used. Without a limit nothing is too old."""
        return not self.since or self._find(scope, known, states) is not None

    def _find(self, scope: Scope, known: Any, states: Mapping[str, str]) -> Measurement | None:
        def holds(inputs: Mapping[str, str]) -> bool:
            return not self.sameness.changed(inputs, states, scope.mutate)

        return self.cache.find(known, holds, Measurement, self.since)

    def measure(
        self, worktree: Worktree, tree: str, scopes: Sequence[Scope], workers: int, log: Path
    ) -> dict[str, Measurement]:
        """Every scope's report at `tree`. Only what nobody has measured before runs, in one go, in `worktree`."""
        states = worktree.repository.files(tree)
        known = {s.name: self.known(s, states, worktree.repository.project) for s in scopes}
        done = self._find_all(scopes, known, states)
        due = [s for s in scopes if s.name not in done]
        if not due:
            return done
        with self.cache.measuring([known[s.name] for s in due]):
            done |= self._find_all(due, known, states)  # another run may have measured it while we waited
            due = [s for s in due if s.name not in done]
            if due:
                worktree.reset(tree)
                for name, measured in self.engine.measure(worktree.root, due, workers=workers, log=log).items():
                    scope = next(s for s in due if s.name == name)
                    measured = _narrowed(measured, scope)
                    spent = _spent()
                    if measured.outcome is Outcome.OK:
                        with account.span("phase", "audit"):
                            measured = self._audited(worktree, tree, measured, workers)
                    # What is loaded from a submodule has no state of its own: the submodule's commit is.
                    whole = (path for path, state in states.items() if state.startswith(SUBMODULE))
                    paths = {*measured.inputs, *self.engine.config_files(), *scope.reads, *whole}
                    result = Measurement(measured, {p: states[p] for p in sorted(paths) if p in states})
                    if measured.outcome in (Outcome.OK, Outcome.NO_MUTANTS):
                        self.cache.keep(known[name], result.inputs, result)
                    done[name] = attrs.evolve(result, audit_cpu_seconds=_spent() - spent)
        return done

    def _find_all(
        self, scopes: Sequence[Scope], known: Mapping[str, Any], states: Mapping[str, str]
    ) -> dict[str, Measurement]:
        found = {s.name: self._find(s, known[s.name], states) for s in scopes}
        return {name: attrs.evolve(m, cached=True) for name, m in found.items() if m is not None}

    def _audited(self, worktree: Worktree, tree: str, measured: Measured, workers: int) -> Measured:
        """Run the existing covering tests against each survivor in a fresh process; where kills are doubtful, against
        each killed one too.

        One that a test fails on there is a false survivor: state that the engine's process had kept hid the kill. Kept
        state can make a test fail, too, on a mutant that it does not see.
        """
        assert measured.switch is not None
        ids = measured.switch.ids
        wanted = (Status.SURVIVED, Status.KILLED) if measured.doubtful else (Status.SURVIVED,)
        due = [m for m in measured.mutants if m.status in wanted and measured.reached.get(m.key)]
        if not due or not measured.fresh:
            return measured
        worktree.reset(tree)
        measured.switch.lay(worktree.root)
        limit = max(10.0, 10 * measured.seconds)

        def fresh(mutant: Mutant) -> Status | None:
            run = self.engine.test(worktree.root, measured.reached[mutant.key], mutant=ids[mutant.key], timeout=limit)
            if run.outcome is Outcome.TIME_LIMIT:
                return Status.TIMEOUT
            if run.outcome is not Outcome.OK:
                return None
            if mutant.status is Status.KILLED:
                return None if run.failed else Status.SURVIVED
            return Status.KILLED if any(t.kind in KILLS for t in run.failed) else None

        said = dict(zip((m.key for m in due), process.side_by_side(fresh, due, workers), strict=True))
        worktree.reset(tree)
        mutants = tuple(attrs.evolve(m, audited=said[m.key]) if said.get(m.key) else m for m in measured.mutants)
        return attrs.evolve(measured, mutants=mutants)


def _narrowed(measured: Measured, scope: Scope) -> Measured:
    """Only the mutants on the lines that the scope is about: an engine may know no lines, or no such lines."""
    mutants = tuple(m for m in measured.mutants if scope.takes_in(m.file, m.line, m.end_line))
    if measured.outcome is not Outcome.OK or len(mutants) == len(measured.mutants):
        return measured
    if not mutants:
        said = f"nothing to mutate on the lines that have changed in {', '.join(scope.mutate)}"
        return attrs.evolve(measured, outcome=Outcome.NO_MUTANTS, detail=said, mutants=(), switch=None)
    return attrs.evolve(measured, mutants=mutants)


def _spent() -> float:
    """CPU seconds of the programs that this task has run so far."""
    mine = account.current()
    return 0.0 if mine is None else mine.cpu_seconds
