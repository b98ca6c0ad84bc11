"""The baselines of all scopes of one source and one test project: built once, their tests run once on the original, one
Stryker process, and of its report what a run of each scope alone would say."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import attrs

from pipeline import account, clock, process, scratch
from pipeline.engines import Measured, Switch
from pipeline.engines.stryker_net import by_engine, projects, running, stryker
from pipeline.engines.stryker_net.builds import Builds
from pipeline.engines.stryker_net.dotnet import Built
from pipeline.engines.stryker_net.host import Hosts, Only
from pipeline.engines.stryker_net.outcomes import first_failure
from pipeline.engines.stryker_net.projects import Pair
from pipeline.engines.stryker_net.report import scope_result, unsettled
from pipeline.engines.stryker_net.testfiles import TestFiles
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import ReportError, Status
from pipeline.results import Outcome

PLAIN_TIME_LIMIT = 900.0  # seconds for all tests of a project on the original
SWITCH = ".doit-mutate/switch"  # the folder in a worktree where a switch is laid
CONTROLS = 3  # kills of a report that are tried on the picture before it counts as none


@attrs.frozen
class Group:
    """Scopes of one pair in one worktree, and what measuring them takes."""

    config: EngineConfig
    builds: Builds
    hosts: Hosts
    root: Path
    pair: Pair
    workers: int
    log: Path
    inputs: tuple[str, ...]
    built: Built  # OK
    tests: TestFiles
    mine: Mapping[str, tuple[str, ...]]  # scope's name -> its own test files

    def measure(self, scopes: Sequence[Scope]) -> dict[str, Measured]:
        with ThreadPoolExecutor(1) as pool:
            ran = pool.submit(account.carried(self._plainly), scopes)

            @functools.cache
            def failures() -> dict[str, Measured]:
                return self._failures(ran.result(), scopes)

            def fails() -> bool:
                return ran.done() and (ran.exception() is not None or bool(failures()))

            if self.workers == 1:  # tests that may not meet themselves: Stryker runs them too
                wait([ran])
            # It builds before it runs any: in that time they are through. Where one fails it is ended, and starts anew
            # without that scope.
            found_of = {} if fails() else self._run_all(scopes, scopes, halt=fails)
            plain = ran.result()
        due = [s for s in scopes if s.name not in failures()]
        if len(due) < len(scopes):
            found_of = self._run_all(due, due)
        measured, again = self._judged(due, found_of, plain)
        if again:
            measured |= self._judged(again, self._run_all(again, due, killers=True), plain)[0]
        files = {s.name: tuple(sorted(self.mine[s.name])) for s in scopes}
        told = {name: attrs.evolve(m, tests=files[name], inputs=self.inputs) for name, m in measured.items()}
        return {**failures(), **told}

    def _plainly(self, scopes: Sequence[Scope]) -> running.Ran:
        return self._ran(self._only(scopes))

    def _only(self, scopes: Sequence[Scope]) -> Only | None:
        """The tests of some scopes; None where they are all that there are."""
        every = {file for scope in scopes for file in self.mine[scope.name]}
        return None if every >= set(self.tests.files) else Only(self.tests.classes(every))

    def _failures(self, plain: running.Ran, scopes: Sequence[Scope]) -> dict[str, Measured]:
        """How the scopes' tests fail on the original, where they do."""
        found = (
            (s.name, first_failure(plain, self.tests.classes(self.mine[s.name]), s, self.mine[s.name])) for s in scopes
        )
        return {name: failure for name, failure in found if failure is not None}

    def _run_all(
        self, scopes: Sequence[Scope], with_tests_of: Sequence[Scope], *, killers: bool = False,
        halt: stryker.Halt | None = None,
    ) -> dict[str, stryker.Run | Measured]:  # fmt: skip
        """One Stryker process; if it breaks, halves, so that a scope that breaks it costs the others no result."""
        if not scopes:
            return {}
        only = self._only(with_tests_of)
        files = [file for scope in scopes for file in scope.mutate]
        filter_ = "" if only is None else running.filter_of(only.types)
        asked = stryker.Question(self.pair, files, filter_, killers, self.workers, self.log)
        began = clock.now()
        found = stryker.run(self.config, self.builds, self.root, asked, halt)
        breaks = isinstance(found, Measured) and found.outcome in (Outcome.CRASHED, Outcome.NO_REPORT)
        if len(scopes) == 1 or not breaks:
            return {s.name: found for s in scopes}
        account.told("phase", account.BISECT, began)
        middle = len(scopes) // 2
        halves = [
            self._run_all(some, with_tests_of, killers=killers, halt=halt)
            for some in (scopes[:middle], scopes[middle:])
        ]
        return halves[0] | halves[1]

    def _judged(
        self, scopes: Sequence[Scope], found_of: Mapping[str, stryker.Run | Measured], plain: running.Ran
    ) -> tuple[dict[str, Measured], list[Scope]]:
        """What is said of each scope, and those of which only a run that names every killer can say it."""
        true = {id(run): run for run in found_of.values() if isinstance(run, stryker.Run)}
        true = {key: run for key, run in true.items() if self._is_true(run)}
        measured: dict[str, Measured] = {}
        again: list[Scope] = []
        for scope in scopes:
            found = found_of[scope.name]
            if not isinstance(found, stryker.Run):
                measured[scope.name] = _contradicted(found)
            elif id(found) not in true:
                detail = "the assembly that was tested does not do what the report says"
                measured[scope.name] = Measured(Outcome.UNVERIFIED, detail)
            else:
                seconds = plain.seconds_of(self.tests.classes(self.mine[scope.name]))
                settled = self._settled(scope, found, max(10.0, 10 * seconds))
                if settled is None:
                    again.append(scope)
                else:
                    measured[scope.name] = self.of_scope(scope, found, seconds, settled)
        return measured, again

    def _is_true(self, run: stryker.Run) -> bool:
        """Whether the picture is one of this run: a kill of its report is a kill there."""
        kills = run.report.killed_by()[:CONTROLS]
        if not run.mutated or not kills:
            return True
        tries = (self._ran(Only((), (test.name,)), run, id_) for id_, test in kills)
        return any(c.outcome == "Failed" for ran in tries for c in ran.cases)

    def _settled(self, scope: Scope, run: stryker.Run, limit: float) -> dict[str, Status] | None:
        """What a scope's own tests say of mutants that others' killed before they came to it, each in a fresh process;
        None where that does not tell. One process that names every killer would run all tests to their end, those too
        that never come to one."""
        try:
            due = {} if run.killers else unsettled(scope, run.report, self.mine[scope.name])
        except ReportError:
            return {}  # said where the report is read
        if due and not run.mutated:
            return None

        def asked(id_: str) -> running.Ran:
            return self._ran(self.tests.chosen(due[id_]), run, id_, limit)

        settled = {}
        for id_, ran in zip(due, process.side_by_side(asked, due, self.workers), strict=True):
            if ran.outcome is Outcome.TIME_LIMIT:
                settled[id_] = Status.TIMEOUT
            elif ran.outcome is Outcome.OK:
                failed = any(c.outcome == "Failed" for c in ran.cases)
                settled[id_] = Status.KILLED if failed else Status.SURVIVED
            else:
                return None
        return settled

    def _ran(
        self, only: Only | None, run: stryker.Run | None = None, mutant: str | None = None,
        timeout: float = PLAIN_TIME_LIMIT,
    ) -> running.Ran:  # fmt: skip
        """Tests in a fresh process: on the original, or on a mutant in the picture of a run."""
        assert self.built.output is not None
        with scratch.folder() as place:
            (place / "mutated").write_bytes(run.mutated if run else b"")
            over = {f"{self.pair.source.assembly}.dll": place / "mutated"} if run else {}
            return running.run(
                self.root, self.built.output, self.pair.tests.assembly, self.hosts, over=over, only=only,
                mutant=mutant, timeout=timeout,
            )  # fmt: skip

    def of_scope(
        self, scope: Scope, run: stryker.Run, seconds: float, settled: Mapping[str, Status] | None = None
    ) -> Measured:
        try:
            sources = {f: (self.root / f).read_bytes().decode("utf-8-sig").replace("\r\n", "\n") for f in scope.mutate}
            measured, ids = scope_result(scope, run.report, sources, self.mine[scope.name], settled)
        except (ReportError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
            return Measured(Outcome.HOLLOW_REPORT, f"the report cannot be read: {error}")
        if measured.outcome is not Outcome.OK:
            return measured
        files = {f"{SWITCH}/{self.pair.source.assembly}.dll": run.mutated}
        if not run.mutated:
            files = {f"{SWITCH}/{by_engine.NAME}": by_engine.request(self.pair, scope.mutate)}
        return attrs.evolve(
            measured,
            switch=Switch(files, ids),
            seconds=seconds,
            peak_bytes=run.peak_bytes,
            doubtful=self.pair.tests.runner == "mtp",
            fresh=bool(run.mutated),
        )


def _contradicted(found: Measured) -> Measured:
    """What Stryker says of tests that have just passed in a copy of their own."""
    if found.outcome is not Outcome.TESTS_FAIL_FIRST:
        return found
    why = "they pass by themselves: does something else work in this folder, or do they get in each other's way there?"
    return attrs.evolve(found, outcome=Outcome.UNVERIFIED, detail=f"{found.detail}\n{why}")


def measured(
    config: EngineConfig, builds: Builds, hosts: Hosts, root: Path, known: projects.Projects, pair: Pair,
    scopes: Sequence[Scope], workers: int, log: Path,
) -> dict[str, Measured]:  # fmt: skip
    """All scopes of one pair. Raises EngineError."""
    inputs = projects.files(root, known.reached(pair.tests), known.by_path.values())
    built = builds.build(root, pair.tests, inputs, log)
    if built.outcome is not Outcome.OK:
        return {s.name: Measured(built.outcome, built.detail) for s in scopes}
    tests = TestFiles.of(root, pair.tests, known)
    mine = {s.name: tests.files if s.tests is None else s.tests for s in scopes}
    return Group(config, builds, hosts, root, pair, workers, log, inputs, built, tests, mine).measure(scopes)
