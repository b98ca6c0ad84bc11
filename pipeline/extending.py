"""A scope's report out of an earlier one, where a test file has got tests at its end and all else is as it was.

Tests that run after all others change nothing for those: what they killed is killed still. Only survivors are left to
meet the new ones, and of those only what these reach: each in a fresh process, on the kept code with all mutants in it,
as the audit does. No engine run. Wherever anything is other than expected there is no such report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from pipeline import process
from pipeline.engines import Engine, Measured, TestRun, layers, switch_of
from pipeline.model import Scope
from pipeline.mutants import Mutant, Status, is_survivor
from pipeline.results import Outcome
from pipeline.sameness import Sameness
from pipeline.worktree import GitError, Worktree

TIME_LIMIT = 300.0  # seconds for a scope's tests on the original
MOST_NEWLY_COVERED = 20  # mutants that a fresh process each takes as long for as an engine run of its own


@attrs.frozen
class Growth:
    """What a scope's tests have got since it was measured."""

    file: str
    tests: tuple[str, ...]  # as the runner names them, in their order


def growth(sameness: Sameness, scope: Scope, inputs: Mapping[str, str], states: Mapping[str, str]) -> Growth | None:
    """What became of the inputs of an earlier report (path -> content hash), where that is all."""
    changed = sameness.changed(inputs, states, scope.mutate)
    if len(changed) != 1 or changed[0] not in states or changed[0] in (*scope.mutate, *scope.reads):
        return None
    (file,) = changed
    if scope.tests is not None and file not in scope.tests:
        return None
    try:
        before, after = (
            sameness.repository.git("cat-file", "blob", oid).out.decode() for oid in (inputs[file], states[file])
        )
    except (GitError, UnicodeDecodeError):
        return None  # the older one is gone, or a link
    tests = sameness.engine.suite.added(before, after)
    return Growth(file, tests) if tests else None


def can_grow(measured: Measured, grown: Growth) -> bool:
    """Whether an earlier report has all that it takes: nobody's word was doubted, and the file is the last to run."""
    switch = measured.switch
    whole = measured.outcome is Outcome.OK and switch is not None and switch.whole
    sure = measured.fresh and not measured.doubtful and not measured.late
    return whole and sure and measured.tests[-1:] == (grown.file,) == (max(measured.tests, default=""),)


@attrs.frozen
class Extending:
    engine: Engine
    worktree: Worktree
    tree: str
    workers: int

    def extended(
        self, scopes: Sequence[Scope], earlier: Mapping[str, Measured], grown: Mapping[str, Growth]
    ) -> dict[str, Measured]:
        """scope -> its report at the tree; without those of which that is in doubt. Raises EngineError."""
        root = self.worktree.root
        self.worktree.reset(self.tree)

        def plainly(scope: Scope) -> TestRun:
            return self.engine.test(root, scope.tests, timeout=TIME_LIMIT, record=True)

        runs = zip(scopes, process.side_by_side(plainly, scopes, self.workers), strict=True)
        plain = {
            s.name: run
            for s, run in runs
            if run.files == earlier[s.name].tests
            and {*earlier[s.name].inputs} <= {*run.inputs, *s.mutate}  # a new file may be found in an old one's stead
            and _ends_with(run, grown[s.name].tests)
        }
        found: dict[str, Measured] = {}
        for names in layers({name: earlier[name] for name in plain}):
            self.worktree.reset(self.tree)
            for name in names:
                switch_of(earlier[name]).lay(root)
            found |= self._met({name: earlier[name] for name in names}, grown, plain)
        self.worktree.reset(self.tree)
        return found

    def _met(
        self, earlier: Mapping[str, Measured], grown: Mapping[str, Growth], plain: Mapping[str, TestRun]
    ) -> dict[str, Measured]:
        """As `extended`, of scopes whose switches have been laid."""
        root = self.worktree.root

        def due(name: str) -> list[Mutant] | None:
            survivors = [m for m in earlier[name].mutants if is_survivor(m.final)]
            if not survivors:
                return []
            run = self.engine.test(root, earlier[name].tests, mutant="", timeout=_limit(plain[name]))
            if run.reached is None or not _ends_with(run, grown[name].tests):
                return None
            new, ids = {*grown[name].tests}, switch_of(earlier[name]).ids
            found = [m for m in survivors if not new.isdisjoint(run.reached.get(ids[m.key], ()))]
            return found if _is_worth_it(found, survivors) else None

        all_due = dict(zip(earlier, process.side_by_side(due, earlier, self.workers), strict=True))
        worth = {name: some for name, some in all_due.items() if some is not None}

        def meet(item: tuple[str, Mutant]) -> Mutant | None:
            name, mutant = item
            files = sorted({*earlier[name].reached.get(mutant.key, ()), grown[name].file})
            id_ = switch_of(earlier[name]).ids[mutant.key]
            return _judged(mutant, self.engine.test(root, files, mutant=id_, timeout=_limit(plain[name])))

        asked = [(name, mutant) for name, mutants in worth.items() for mutant in mutants]
        said = dict(zip(asked, process.side_by_side(meet, asked, self.workers), strict=True))
        return {
            name: _extended(earlier[name], grown[name], plain[name], [m for m in told if m is not None])
            for name, mutants in worth.items()
            if None not in (told := [said[name, mutant] for mutant in mutants])
        }


def _ends_with(run: TestRun, tests: Sequence[str]) -> bool:
    """Whether all tests passed in a process, the new ones were the last of them, and no two have one name."""
    titles = [t.title for t in run.tests]
    new = run.tests[-len(tests) :]
    last = [t.title for t in new] == list(tests) and all(t.state == "passed" for t in new)
    return run.green and last and len({*titles}) == len(titles)


def _is_worth_it(due: Sequence[Mutant], survivors: Sequence[Mutant]) -> bool:
    """Of those that nothing covered, an engine judges many at once; those that are not due, its audit would take up."""
    newly = sum(m.final is Status.NO_COVERAGE for m in due)
    return newly <= MOST_NEWLY_COVERED + sum(m.final is Status.SURVIVED and m not in due for m in survivors)


def _limit(plain: TestRun) -> float:
    return max(10.0, 10 * plain.seconds)


def _judged(mutant: Mutant, run: TestRun) -> Mutant | None:
    """None where it is in doubt what the engine would say: of a process that did not end well, of a time limit."""
    if run.outcome is not Outcome.OK:
        return None
    if not run.failed:
        return attrs.evolve(mutant, status=Status.SURVIVED, audited=None, reason="")
    sure = [t for t in run.failed if not t.outside]
    return attrs.evolve(mutant, status=Status.KILLED, audited=None, reason=sure[0].message) if sure else None


def _extended(earlier: Measured, grown: Growth, plain: TestRun, met: Sequence[Mutant]) -> Measured:
    now = {m.key: m for m in met}
    reached = {key: tuple(sorted({*earlier.reached.get(key, ()), grown.file})) for key in now}
    return attrs.evolve(
        earlier, mutants=tuple(now.get(m.key, m) for m in earlier.mutants),
        inputs=tuple(sorted({*earlier.inputs, *plain.inputs})), reached={**earlier.reached, **reached},
        seconds=plain.seconds, peak_bytes=None, beside=False, alone={}, added=(*earlier.added, *grown.tests),
    )  # fmt: skip
