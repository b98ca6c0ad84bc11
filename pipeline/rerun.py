"""Landed tests run again, as their proofs say: in other orders, alone elsewhere, and on each mutant applied by hand.

Acts in worktrees that stand at one tree; what is seen there is a value, and what it means is asked of that.
"""

from __future__ import annotations

import functools
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from pipeline import process
from pipeline.engines import Engine, TestRun
from pipeline.mutants import described, with_kill
from pipeline.results import Kill, Outcome
from pipeline.sandbox import Sandbox
from pipeline.store import Proof, Stored
from pipeline.worktree import Worktree

VISIBLE = ("assertion", "exception")  # how a test fails that has killed a mutant
FIRST_SEED = 1000  # other orders than those that the test was proved in
T = TypeVar("T")


@attrs.frozen
class Landed:
    """A stored test that the tip's write file has, with the proof that is about the tip."""

    stored: Stored
    proof: Proof

    @property
    def title(self) -> str:
        return self.stored.test.title


@attrs.frozen
class Seen:
    """What came of all the runs. The keys of `mutated` are kills without how the test failed."""

    shuffled: tuple[TestRun, ...]
    alone: Mapping[str, TestRun]  # title -> that test alone, elsewhere
    mutated: Mapping[Kill, TestRun]
    wrote: tuple[str, ...]  # files that the tests left behind

    def passed(self, landed: Landed) -> int:
        """In how many of the shuffled runs it passed."""
        return sum(run.outcome is Outcome.OK and landed.title in run.passed for run in self.shuffled)

    def killed(self, landed: Landed) -> frozenset[Kill]:
        """The mutants that it kills, of all that any of the tests is said to kill."""
        return frozenset(kill for kill, run in self.mutated.items() if not _alive(run, landed.title))

    def lost(self, landed: Landed) -> dict[Kill, str]:
        """Of the mutants that its proof names, those that it does not kill, and why not."""
        found = {kill: _alive(self.mutated[_bare(kill)], landed.title) for kill in landed.proof.kills}
        return {kill: why for kill, why in found.items() if why}

    def wrong(self, landed: Landed) -> Iterator[tuple[str, str]]:
        """What does not hold of one test: the check, and how it failed."""
        passed, k = self.passed(landed), len(self.shuffled)
        if passed < k:
            yield "runs", f"it passes in {passed} of {k} fresh, shuffled runs"
        run = self.alone[landed.title]
        if not {"TZ", "LC_ALL"} <= landed.proof.elsewhere.keys():
            yield "alone", "its proof names no other time zone and locale"
        elif run.outcome is not Outcome.OK or landed.title not in run.passed:
            where = " ".join(f"{key}={value}" for key, value in sorted(landed.proof.elsewhere.items()))
            yield "alone", f"alone, with {where}: {said(run)}"
        if not landed.proof.kills:
            yield "kills", "its proof names no mutant"
        for kill, why in self.lost(landed).items():
            yield "kills", f"{described(kill)}: {why}"


def rerun(
    engine: Engine, worktrees: Sequence[Worktree], tree: str, write: str, landed: Sequence[Landed], runs: int,
    limit: float,
) -> Seen:  # fmt: skip
    """Run the tests of one write file at a tree, in as many processes side by side as there are worktrees.

    runs: how often at least, in other orders. limit: seconds for one process.
    """
    free: queue.SimpleQueue[Worktree] = queue.SimpleQueue()
    for worktree in worktrees:
        worktree.reset(tree)
        free.put(worktree)

    def spread(run: Callable[[Path, T], TestRun], items: Iterable[T]) -> list[TestRun]:
        def borrowed(item: T) -> TestRun:
            worktree = free.get()
            try:
                return run(worktree.root, item)
            finally:
                free.put(worktree)

        return process.side_by_side(borrowed, items, len(worktrees))

    test = functools.partial(engine.test, files=[write], timeout=limit, sandbox=Sandbox(()))
    orders = range(FIRST_SEED, FIRST_SEED + max(runs, *(each.proof.runs for each in landed)))
    shuffled = spread(lambda root, seed: test(root, shuffle=seed), orders)
    alone = spread(lambda root, each: test(root, only=[each.title], env=each.proof.elsewhere), landed)
    kills = list(dict.fromkeys(_bare(kill) for each in landed for kill in each.proof.kills))
    by = {kill: [each.title for each in landed if kill in map(_bare, each.proof.kills)] for kill in kills}
    mutated = spread(lambda root, kill: _with_mutant(root, kill, by[kill], test), kills)
    return Seen(
        tuple(shuffled), dict(zip((each.title for each in landed), alone, strict=True)),
        dict(zip(kills, mutated, strict=True)),
        tuple(sorted({path for worktree in worktrees for path in worktree.changed()})),
    )  # fmt: skip


def _with_mutant(root: Path, kill: Kill, by: Sequence[str], test: Callable[..., TestRun]) -> TestRun:
    """The tests on the source with this mutant in it, by an edit of its text that is taken back. Where another test
    than those that kill it (`by`: their titles) ends the process, those alone."""
    path = root / kill.file
    if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
        return TestRun(Outcome.UNVERIFIED, f"{kill.file} is no file of the project")
    content = path.read_bytes()
    run = TestRun(Outcome.UNVERIFIED, "the source does not hold it any more")
    try:
        texts = (with_kill(kill, content.decode(errors="surrogateescape"), plain) for plain in (False, True))
        for mutated in dict.fromkeys(filter(None, texts)):
            path.write_bytes(mutated.encode(errors="surrogateescape"))
            run = test(root)
            if run.running and run.running not in by:
                run = test(root, only=by)
            if run.outcome is not Outcome.BUILD_ERROR:  # there, parentheses may have no place
                break
        return run
    finally:
        path.write_bytes(content)


def _alive(run: TestRun, title: str) -> str:
    """Why this run is no kill of the test of this title; "" where it is one."""
    if run.outcome is not Outcome.OK:
        return said(run)
    mine = [t for t in run.failed if t.title == title]
    if any(t.kind in VISIBLE for t in mine):
        return ""
    if mine:
        return one_line(f"it fails otherwise than by an assertion: {mine[0].message}")
    return "it passes with this mutant"


def _bare(kill: Kill) -> Kill:
    return attrs.evolve(kill, how="")


def said(run: TestRun) -> str:
    """How a run went that should have passed, in one line."""
    if run.failed:
        return one_line(f"it fails: {run.failed[0].message}")
    return one_line(f"{run.outcome}: {run.detail}") if run.outcome is not Outcome.OK else "it does not run"


def one_line(text: str) -> str:
    return text.strip().splitlines()[0]
