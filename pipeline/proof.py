"""Candidates -> proofs. Every proof is made on the exact text of the test file that would land, in fresh processes.

A test is proved when it passes on the original in every run, and each mutant it is credited with makes it fail by an
assertion, or by an exception out of the code under test. It stays only if without it a kill is lost.
"""

from __future__ import annotations

import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

import attrs

from pipeline import account, process
from pipeline.company import dropping, meeting, runnable
from pipeline.engines import Engine, Switch, TestRun
from pipeline.model import Scope
from pipeline.results import KILLS_NOTHING, Dropped, Outcome, Proved, Survivor, Test, write_bytes
from pipeline.sandbox import Sandbox
from pipeline.worktree import Worktree

KILLS = ("assertion", "exception", "engine")  # the last where no fresh process can meet a mutant: how is not known


@attrs.frozen
class Bench:
    """Where tests of one scope are judged: a worktree that stands at one tree, and the means to switch mutants on."""

    engine: Engine
    worktree: Worktree
    tree: str
    scope: Scope
    switch: Switch
    tests: tuple[str, ...]  # the covering test files, without the write file unless the tree has it
    seconds: float  # of the covering tests on the original
    workers: int  # processes side by side

    @property
    def limit(self) -> float:
        """Seconds for one process. A mutant that makes things this slow is not killed by an assertion."""
        return max(10.0, 10 * self.seconds)

    def write(self, text: str) -> None:
        """Put the write file's text there, on the original code."""
        self.worktree.reset(self.tree)
        path = self.worktree.root / self.scope.write
        if text or path.exists():  # without text, what has no such file stays as it was built
            write_bytes(path, text.encode(errors="surrogateescape"))

    def lay_switch(self) -> None:
        self.switch.lay(self.worktree.root)

    def run(
        self, mutant: str | None = None, *, record: bool = False, shuffle: int | None = None,
        only: Sequence[str] | None = None, env: Mapping[str, str] | None = None,
    ) -> TestRun:  # fmt: skip
        """The write file, once: where nothing can be written, and each test says what it leaves behind."""
        return self.engine.test(
            self.worktree.root, [self.scope.write], mutant=mutant, timeout=self.limit, record=record, shuffle=shuffle,
            only=only, env=env, sandbox=Sandbox(()), watch=True,
        )  # fmt: skip

    def meet(self, ids: Sequence[str], titles: Sequence[str], only: Sequence[str] | None) -> dict[str, TestRun]:
        runs = process.side_by_side(lambda i: meeting(self, i, titles, only), ids, self.workers)
        return dict(zip(ids, runs, strict=True))


@attrs.frozen
class Verdict:
    proved: tuple[Proved, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    inputs: tuple[str, ...] = ()  # project files that the judged tests loaded


class _Unjudged(Exception):
    """The tests could not be run in the code with the mutants."""


def prove(
    bench: Bench, base: str, prior: Sequence[Test], candidates: Sequence[Test], survivors: Sequence[Survivor],
    runs: int, standing: Collection[str] = (),
) -> Verdict:  # fmt: skip
    """Judge the candidates on top of `base` (the write file's text) and `prior` (tests proved before).

    survivors: the mutants that may be credited. runs: fresh runs on the original that each test must pass. standing:
    titles of candidates that are on the landing branch now: others are added to them, and replace none of them.
    """
    suite = bench.engine.suite
    dropped: list[Dropped] = []
    taken = {*suite.titles(base), *(t.title for t in prior)}

    def file_with(tests: Sequence[Test]) -> str:
        return suite.add(base, [*prior, *tests])

    alive: list[Test] = []
    built: list[Test] = []  # with these in it a file has been built; not all of them pass
    inputs, left = set[str](), list(candidates)
    while left:  # of two with one title the first is judged; the other only if that one does not hold
        due = list({t.title: t for t in reversed(left) if t.title not in taken}.values())[::-1]
        good, beside, loaded = runnable(bench, file_with, due, dropped)
        built = [] if alive else beside
        alive += good
        inputs |= loaded
        taken |= {t.title for t in good}
        left = [t for t in left if t not in due]
        if not due:
            dropped += [dropping(t, Outcome.REJECTED, "the file has a test of this title") for t in left]
            break
    try:
        proved = _provable(bench, file_with, alive, built, {s.key for s in survivors}, runs, standing, dropped)
    except _Unjudged as error:
        proved = ()
        dropped += [dropping(t, Outcome.UNVERIFIED, str(error)) for t in alive]
    return Verdict(proved, tuple(dropped), tuple(sorted(inputs)))


def _provable(
    bench: Bench, file_with: Callable[[Sequence[Test]], str], alive: Sequence[Test], built: Sequence[Test],
    wanted: set[str], runs: int, standing: Collection[str], dropped: list[Dropped],
) -> tuple[Proved, ...]:  # fmt: skip
    """Of tests that pass, those that are needed, steady, and harmless to the tests beside them. built: as `runnable`
    says; which are needed is tried there, so that no text is built with what is not."""
    spare: dict[str, Dropped] = {}  # of no use beside the others, as long as none of those turns out to be bad
    spared: list[Test] = []
    wider = [] if [t.title for t in built] == [t.title for t in alive] else list(built)
    while alive:
        text = file_with(wider or alive)
        try:
            matrix, told = _kills(bench, text, alive, wanted, [t.title for t in alive] if wider else None)
        except _Unjudged:
            if not wider:
                raise
            wider = []
            continue
        needed = cover(
            {t.title: matrix.get(t.title, {}) for t in alive}, {t.title: len(t.code) for t in alive}, standing
        )
        bad = {
            title: dropping(t, Outcome.REJECTED, told[title], failed=True) for t in alive if (title := t.title) in told
        }
        for test in alive:
            if test.title not in needed and test.title not in bad and not matrix.get(test.title):
                bad[test.title] = dropping(test, Outcome.REJECTED, KILLS_NOTHING, failed=True)
        idle = [t for t in alive if t.title not in needed and t.title not in bad]
        if idle:
            reason = "every mutant it kills is killed by another test"
            spare.update({t.title: dropping(t, Outcome.REJECTED, reason) for t in idle})
            spared += idle
        elif not bad and not wider:
            with account.span("phase", "prove"):
                bad = _unsteady(bench, text, alive, runs) or _leaning(bench, text, alive)
                bad = bad or _harmful(bench, file_with, alive)
            if not bad:
                dropped += spare.values()
                return tuple(
                    Proved(attrs.evolve(t, kills=tuple(sorted(matrix[t.title]))), dict(sorted(matrix[t.title].items())))
                    for t in alive
                )
            alive, spare, spared = [*alive, *spared], {}, []  # what the bad ones killed may be killed by these
        dropped += bad.values()
        alive = [t for t in alive if t.title not in bad and t.title not in spare]  # another text: judge that
        wider = []
    dropped += spare.values()
    return ()


def holds(bench: Bench, text: str, proved: Sequence[Proved], runs: int) -> tuple[Dropped, ...]:
    """Judge this very text again: which of these tests are not proved on it, and why. For a tree that moved, and for
    what a hook made of the file."""
    tests = [p.test for p in proved]
    bench.write(text)
    run = bench.run()
    if run.outcome is not Outcome.OK:
        return tuple(dropping(t, run.outcome, run.detail) for t in tests)
    try:
        return _failing(bench, text, proved, runs, {t.title: t.left for t in run.tests if t.left})
    except _Unjudged as error:
        return tuple(dropping(t, Outcome.UNVERIFIED, str(error)) for t in tests)


def _failing(
    bench: Bench, text: str, proved: Sequence[Proved], runs: int, left: Mapping[str, str]
) -> tuple[Dropped, ...]:
    """Of tests that can be run, those that do not hold. left: title -> what it left behind. Raises _Unjudged."""
    tests = [p.test for p in proved]
    failing: list[Dropped] = []
    matrix, told = _kills(bench, text, tests, {k for p in proved for k in p.how})
    told = {**left, **told}
    unsteady = _unsteady(bench, text, tests, runs) or _leaning(bench, text, tests)
    for p in proved:
        lost = [k for k in p.how if k not in matrix.get(p.test.title, {})]
        if p.test.title in unsteady:
            failing.append(unsteady[p.test.title])
        elif p.test.title in told:
            failing.append(dropping(p.test, Outcome.REJECTED, told[p.test.title]))
        elif lost:
            failing.append(dropping(p.test, Outcome.REJECTED, f"{len(lost)} of {len(p.how)} kills are lost"))
    if not failing:
        without = functools.reduce(bench.engine.suite.remove, (t.title for t in tests), text)
        if problem := _beside(bench, text, _standing(bench, without)):
            return tuple(dropping(t, *problem) for t in tests)
    return tuple(failing)


def cover(
    kills: Mapping[str, Mapping[str, str]], cost: Mapping[str, int], standing: Collection[str] = ()
) -> frozenset[str]:
    """A small set of tests that keeps every kill, in which each new test is needed: greedy set cover, then reverse
    delete. Johnson 1974, "Approximation algorithms for combinatorial problems".

    Those that stand already stay while they kill anything, so that equal work leaves them as they are. Ties go to the
    cheaper test, then to the title.
    """
    stay = {title for title in standing if kills.get(title)}
    left = {key for of in kills.values() for key in of} - {key for title in stay for key in kills[title]}
    chosen: list[str] = []
    while left:
        best = max(kills, key=lambda t: (len(left & kills[t].keys()), -cost[t], t))
        chosen.append(best)
        left -= kills[best].keys()
    for title in reversed(chosen.copy()):
        others = {key for t in stay.union(chosen) - {title} for key in kills[t]}
        if kills[title].keys() <= others:
            chosen.remove(title)
    return frozenset(stay.union(chosen))


def _kills(
    bench: Bench, text: str, tests: Sequence[Test], wanted: set[str], only: Sequence[str] | None = None
) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """title -> mutant key -> how it failed there, for this text: one fresh process a mutant tells it of every test (of
    `only` these). And title -> why not, of tests that fail in that code also with no mutant on: they would with any."""
    bench.write(text)
    bench.lay_switch()
    plain = bench.run("", only=only)
    if plain.outcome is not Outcome.OK:
        raise _Unjudged(f"{plain.outcome} in the code with the mutants, none of them on: {plain.detail}")
    told = {
        t.title: "it fails in the code with the mutants, none of them on: it looks at the code's text"
        for t in tests
        if t.title not in plain.passed
    }
    titles = [t.title for t in tests if t.title not in told]
    ids = {bench.switch.ids[k]: k for k in sorted(wanted) if k in bench.switch.ids}
    matrix: dict[str, dict[str, str]] = {}
    due = [i for i in ids if plain.reached is None or set(titles).intersection(plain.reached.get(i, ()))]
    for id_, run in bench.meet(due, titles, only).items():
        if run.outcome is not Outcome.OK:
            continue  # a time limit, a crash or a file that does not load is not a kill
        for result in run.failed:
            if result.title in titles and result.kind in KILLS:
                matrix.setdefault(result.title, {})[ids[id_]] = result.kind
    return matrix, told


def _unsteady(bench: Bench, text: str, tests: Sequence[Test], runs: int) -> dict[str, Dropped]:
    """Title -> why not, of tests that did not pass in every one of `runs` fresh, shuffled runs on the original."""
    bench.write(text)
    all_runs = process.side_by_side(lambda seed: bench.run(shuffle=seed), range(runs), bench.workers)
    reasons = {}
    for test in tests:
        passes = sum(run.outcome is Outcome.OK and test.title in run.passed for run in all_runs)
        if passes < runs:
            reason = f"it passes on the original in {passes} of {runs} runs"
            reasons[test.title] = dropping(test, Outcome.REJECTED, reason, failed=True)
    return reasons


def _harmful(bench: Bench, file_with: Callable[[Sequence[Test]], str], tests: Sequence[Test]) -> dict[str, Dropped]:
    """Title -> why not, of tests with which the covering suite does not stay as it is and green: who does it alone,
    else all."""
    standing = _standing(bench, file_with([]))
    together = _beside(bench, file_with(tests), standing)
    if together is None:
        return {}
    alone = {t.title: _beside(bench, file_with([t]), standing) for t in tests} if len(tests) > 1 else {}
    guilty = {title: problem for title, problem in alone.items() if problem} or {t.title: together for t in tests}
    return {t.title: dropping(t, *guilty[t.title], failed=True) for t in tests if t.title in guilty}


def elsewhere() -> dict[str, str]:
    """Environment variables of a time zone and a locale that are not those here."""
    chatham = -(12 * 60 + 45) * 60  # seconds: an offset that nothing is written for by chance
    zone = "America/St_Johns" if time.timezone == chatham else "Pacific/Chatham"
    here = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    locale = "de_DE.UTF-8" if here.startswith("tr") else "tr_TR.UTF-8"
    return {"TZ": zone, "LC_ALL": locale, "LANG": locale}


def _leaning(bench: Bench, text: str, tests: Sequence[Test]) -> dict[str, Dropped]:
    """Title -> why not, of tests that lean on a test beside them, on the time zone or on the locale: those that do not
    pass alone in a process that is elsewhere."""
    bench.write(text)
    there = elsewhere()
    runs = process.side_by_side(lambda test: bench.run(only=[test.title], env=there), tests, bench.workers)
    return {
        test.title: dropping(test, Outcome.REJECTED, f"alone and with TZ={there['TZ']} {_why(run)}", failed=True)
        for test, run in zip(tests, runs, strict=True)
        if run.outcome is not Outcome.OK or test.title not in run.passed
    }


def _why(run: TestRun) -> str:
    return f"it fails: {run.failed[0].message}" if run.failed else run.detail or "it does not run"


@attrs.frozen
class _Standing:
    """The covering tests that pass without what is judged, by file and title, and the sandbox that they do it in. None:
    they need what a sandbox refuses, and run as their authors run them."""

    passing: Counter[tuple[str, str]]
    sandbox: Sandbox | None


def _covering(bench: Bench, text: str, sandbox: Sandbox | None) -> TestRun:
    """The whole covering suite, once, with this text of the write file."""
    bench.write(text)
    files = sorted({*bench.tests, *([bench.scope.write] if text else [])})
    return bench.engine.test(bench.worktree.root, files, timeout=max(60.0, 10 * bench.seconds), sandbox=sandbox)


def _standing(bench: Bench, text: str) -> _Standing:
    """What stands with this text of the write file. Raises _Unjudged."""
    for sandbox in (Sandbox((bench.worktree.root,)), None):
        run = _covering(bench, text, sandbox)
        if run.green:
            return _Standing(Counter((t.file, t.title) for t in run.tests if t.state == "passed"), sandbox)
    raise _Unjudged(f"the covering tests are not green by themselves any more: {_why(run)}")


def _beside(bench: Bench, text: str, standing: _Standing) -> tuple[Outcome, str] | None:
    """Whether the whole covering suite is green with the file in it, with every test that stood still run, and git sees
    no other change."""
    run = _covering(bench, text, standing.sandbox)
    if run.outcome is not Outcome.OK:
        return run.outcome, run.detail
    if run.failed:
        first = run.failed[0]
        return Outcome.REJECTED, f"beside it, {first.file}: {first.title} fails: {first.message}"
    missing = standing.passing - Counter((t.file, t.title) for t in run.tests if t.state == "passed")
    if missing:
        file, title = min(missing)
        return Outcome.REJECTED, f"beside it, {file}: {title} is skipped, or not there any more"
    if strayed := [p for p in bench.worktree.changed() if p != bench.scope.write]:
        return Outcome.OUTSIDE_SCOPE, f"the tests wrote {', '.join(strayed)}"
    return None
