"""Reports for scopes at a tree: from the action cache, or from the engine and then audited. No doit, no targets."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline import account, process
from pipeline.engines import Engine, Measured, TestRun, first_failure, layers, switch_of
from pipeline.extending import Extending, Growth, can_grow, growth
from pipeline.model import Scope
from pipeline.mutants import Mutant, Status, score
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

    @property
    def line(self) -> str:
        """For people, who watch a run."""
        m = self.measured
        if m.outcome is not Outcome.OK:
            return f"{m.outcome}: {m.detail.splitlines()[0] if m.detail else ''}"
        total = score(x.final for x in m.mutants)
        said = [f"{total.total} mutants", f"{total.survivors} survivors"]
        if false := sum(x.audited is not None for x in m.mutants):
            said.append(f"{false} false survivors")
        if m.alone and not self.cached:
            said.append(f"{len(m.alone)} act at load ({sum(m.alone.values()):.1f} s)")
        if not m.fresh:
            said.append("proofs take engine runs: no picture of the mutated code could be had")
        if m.added:
            tests = "1 test" if len(m.added) == 1 else f"{len(m.added)} tests"
            said.append(f"{tests} added since the engine ran, and met by what survived it")
        return ", ".join(said) + (" (cached)" if self.cached else "")


# The targets that tell of measurements.


@attrs.frozen
class Baseline:
    """baseline.json: the audited report of a scope at the snapshot."""

    outcome: Outcome
    detail: str = ""
    mutants: tuple[Mutant, ...] = ()
    tests: tuple[str, ...] = ()  # the test files that were used
    added: tuple[str, ...] = ()  # tests that the engine has not run: what survived its run alone has met them


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
        self, worktree: Worktree, tree: str, scopes: Sequence[Scope], workers: int, log: Path, by_engine: bool = False
    ) -> dict[str, Measurement]:
        """Every scope's report at `tree`. Only what nobody has measured before runs, in one go, in `worktree`.

        by_engine: the engine itself has run all that it is about; else what tests were added since may be known
        without it (extending.py).
        """
        states = worktree.repository.files(tree)
        known = {s.name: self.known(s, states, worktree.repository.project) for s in scopes}
        extends = not by_engine and not self.since  # what is too old is no ground either
        done = self._find_all(scopes, known, states, extends)
        due = [s for s in scopes if s.name not in done]
        if not due:
            return done
        with self.cache.measuring([known[s.name] for s in due]):
            # Another run may have measured it while we waited.
            done |= self._find_all(due, known, states, extends)
            due = [s for s in due if s.name not in done]
            # What is loaded from a submodule has no state of its own: the submodule's commit is.
            whole = [path for path, state in states.items() if state.startswith(SUBMODULE)]

            def kept(scope: Scope, m: Measured, spent: float | None) -> None:
                paths = {*m.inputs, *self.engine.config_files(), *scope.reads, *whole}
                result = Measurement(m, {p: states[p] for p in sorted(paths) if p in states})
                if m.outcome in (Outcome.OK, Outcome.NO_MUTANTS):
                    key = _extended(known[scope.name]) if m.added else known[scope.name]
                    self.cache.keep(key, result.inputs, result)
                done[scope.name] = attrs.evolve(result, audit_cpu_seconds=spent)

            if due and extends:
                for name, m in self._extend(worktree, tree, due, known, states, workers).items():
                    kept(next(s for s in due if s.name == name), m, None)
                due = [s for s in due if s.name not in done]
            if due:
                worktree.reset(tree)
                by_name = {s.name: s for s in due}
                said = self.engine.measure(worktree.root, due, workers=workers, log=log)
                measured = {name: _narrowed(m, by_name[name]) for name, m in said.items()}

                def keep(name: str, m: Measured, spent: float) -> None:
                    """As soon as it is audited: a run that is killed in the audit of others has it."""
                    kept(by_name[name], m, spent)

                with account.span("phase", "audit"):
                    self._audit(worktree, tree, measured, workers, keep)
        return done

    def _find_all(
        self, scopes: Sequence[Scope], known: Mapping[str, Any], states: Mapping[str, str], extended: bool
    ) -> dict[str, Measurement]:
        """extended: what was told without the engine counts too, behind what it has told."""
        found = {s.name: self._find(s, known[s.name], states) for s in scopes}
        for scope in scopes if extended else ():
            found[scope.name] = found[scope.name] or self._find(scope, _extended(known[scope.name]), states)
        return {name: attrs.evolve(m, cached=True) for name, m in found.items() if m is not None}

    def _extend(
        self, worktree: Worktree, tree: str, scopes: Sequence[Scope], known: Mapping[str, Any],
        states: Mapping[str, str], workers: int,
    ) -> dict[str, Measured]:  # fmt: skip
        """Reports of those scopes that it takes no engine run for."""
        earlier: dict[str, Measured] = {}
        grown: dict[str, Growth] = {}
        for scope in scopes:
            of = functools.partial(growth, self.sameness, scope, states=states)
            for key in (known[scope.name], _extended(known[scope.name])):
                found = self.cache.find(key, of, Measurement)
                more = of(found.inputs) if found else None
                if found and more and can_grow(found.measured, more):
                    earlier[scope.name], grown[scope.name] = found.measured, more
                    break
        if not earlier:
            return {}
        due = [s for s in scopes if s.name in earlier]
        return Extending(self.engine, worktree, tree, workers).extended(due, earlier, grown)

    def _audit(
        self, worktree: Worktree, tree: str, measured: Mapping[str, Measured], workers: int,
        done: Callable[[str, Measured, float], None],
    ) -> None:  # fmt: skip
        """Run the existing covering tests against each survivor in a fresh process; where kills are doubtful, against
        each killed one too.

        One that a test fails on there is a false survivor: state that the engine's process had kept hid the kill. Kept
        state can make a test fail, too, on a mutant that it does not see. All scopes go side by side. done: told of
        each scope, its audited report, and the CPU seconds that the audit took, one at a time.
        """
        due = {name: _to_audit(m) for name, m in measured.items()}
        said: dict[str, dict[str, Status | None]] = {name: {} for name in measured}
        spent = dict.fromkeys(measured, 0.0)
        # Test files that have passed in a process of their own; with a mutant on, but all the same.
        passed: dict[str, set[str]] = {name: set() for name in measured}
        lock = threading.Lock()

        def audited(name: str) -> None:
            m = measured[name]
            mutants = tuple(_told(m, x, said[name].get(x.key)) for x in m.mutants)
            if m.beside and not passed[name].issuperset(m.tests):
                run = self._by_itself(worktree.root, m)
                spent[name] += run.cpu_seconds or 0.0
                if failure := first_failure(run):
                    said_more = (
                        f"{failure.detail}\nBeside the tests of other scopes they pass, by themselves they do not"
                    )
                    m, mutants = attrs.evolve(failure, detail=said_more), ()
            with lock:
                done(name, attrs.evolve(m, mutants=mutants), spent[name])

        def fresh(item: tuple[str, Mutant]) -> None:
            name, mutant = item
            status, run = self._fresh(worktree.root, measured[name], mutant)
            with lock:
                said[name][mutant.key] = status
                spent[name] += run.cpu_seconds or 0.0
                if run.green:
                    passed[name].update(run.files)
                last = len(said[name]) == len(due[name])
            if last:
                audited(name)

        process.side_by_side(audited, [name for name in measured if not due[name]], workers)
        for names in layers({name: m for name, m in measured.items() if due[name]}):
            worktree.reset(tree)
            for name in names:
                switch_of(measured[name]).lay(worktree.root)
            process.side_by_side(fresh, [(name, mutant) for name in names for mutant in due[name]], workers)
        if any(due.values()):
            worktree.reset(tree)

    def _by_itself(self, root: Path, measured: Measured) -> TestRun:
        return self.engine.test(root, measured.tests, mutant="", timeout=_limit(measured))

    def _fresh(self, root: Path, measured: Measured, mutant: Mutant) -> tuple[Status | None, TestRun]:
        """What a fresh process says of a mutant, None where that is what the engine said; and the process."""
        id_ = switch_of(measured).ids[mutant.key]
        run = self.engine.test(root, measured.reached[mutant.key], mutant=id_, timeout=_limit(measured))
        status = None
        if mutant.key in measured.late:
            status = _in_the_engines_words(run)
        elif run.outcome is Outcome.TIME_LIMIT:
            status = Status.TIMEOUT
        elif run.outcome is Outcome.OK and mutant.status is Status.KILLED:
            status = None if run.failed else Status.SURVIVED
        elif run.outcome is Outcome.OK and any(t.kind in KILLS for t in run.failed):
            status = Status.KILLED
        return status, run


def _extended(known: Any) -> Any:
    """Where a report is kept that the engine has not told all of: who wants its word does not find that."""
    return {**known, "extended": True}


def _limit(measured: Measured) -> float:
    return max(10.0, 10 * measured.seconds)


def _told(measured: Measured, mutant: Mutant, status: Status | None) -> Mutant:
    """status: what a fresh process said that the engine did not, or had no time to say."""
    if mutant.key in measured.late and status:
        return attrs.evolve(mutant, status=status, reason="")
    return attrs.evolve(mutant, audited=status)


def _in_the_engines_words(run: TestRun) -> Status:
    if run.outcome is Outcome.TIME_LIMIT:
        return Status.TIMEOUT
    if run.outcome in (Outcome.BUILD_ERROR, Outcome.CRASHED, Outcome.MEMORY):
        return Status.RUNTIME_ERROR
    return Status.KILLED if run.failed else Status.SURVIVED


def _to_audit(measured: Measured) -> list[Mutant]:
    """The mutants whose status wants the word of a fresh process."""
    if measured.outcome is not Outcome.OK or not measured.fresh:
        return []
    wanted = (Status.SURVIVED, Status.KILLED) if measured.doubtful else (Status.SURVIVED,)
    due = [
        m for m in measured.mutants if (m.status in wanted and m.key not in measured.alone) or m.key in measured.late
    ]
    return [m for m in due if measured.reached.get(m.key)]


def _narrowed(measured: Measured, scope: Scope) -> Measured:
    """Only the mutants on the lines that the scope is about: an engine may know no lines, or no such lines."""
    mutants = tuple(m for m in measured.mutants if scope.takes_in(m.file, m.line, m.end_line))
    if measured.outcome is not Outcome.OK or len(mutants) == len(measured.mutants):
        return measured
    if not mutants:
        said = f"nothing to mutate on the lines that have changed in {', '.join(scope.mutate)}"
        return attrs.evolve(measured, outcome=Outcome.NO_MUTANTS, detail=said, mutants=(), switch=None)
    return attrs.evolve(measured, mutants=mutants)
