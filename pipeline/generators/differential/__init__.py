"""The embedded generator: finds, without any model, inputs on which the original and a mutant disagree.

What goes in: a worktree whose mutated files are the engine's instrumented ones, and the survivors. What comes out:
tests that assert what the original gives. `search.mjs` beside this file does the work; here it is only run.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs
import cattrs

from pipeline import process
from pipeline.model import Scope
from pipeline.process import Finished
from pipeline.results import Outcome, Test

NAME = "differential"
_FOLDER = Path(__file__).parent
_HEAP_MB = 512  # of the program that leads; its workers have their own, smaller limit
_ON_THE_CLOCK = 0.8  # of the time limit, for looking: what was found has to be confirmed and written
_MOST_OUTPUT = 32 << 20  # bytes


@attrs.frozen
class SearchMutant:
    """A survivor as the engine's report places it. Lines and columns count from 1; the end is exclusive."""

    id: str  # the engine's, of the run that made the instrumented files
    key: str
    file: str
    mutator: str
    original: str
    replacement: str
    line: int
    column: int
    endLine: int
    endColumn: int
    static: bool = False  # it acts while its module loads


@attrs.frozen
class Missed:
    """A mutant that no test was found for."""

    key: str
    reason: Literal["unreachable", "never-told-apart", "endless", "unstable", "unpinned", "budget", "unsupported"]
    detail: str = ""


@attrs.frozen
class SearchReply:
    outcome: Outcome
    detail: str = ""
    tests: tuple[Test, ...] = ()
    missed: tuple[Missed, ...] = ()
    stats: Mapping[str, Any] = attrs.field(factory=dict)
    seconds: float = 0.0  # wall clock
    cpu_seconds: float | None = None


@functools.cache
def version() -> str:
    """Hash of the program's text: what was found by another one is found anew."""
    digest = hashlib.sha256()
    for path in sorted(_FOLDER.glob("*.mjs")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def __getattr__(name: str) -> str:
    if name == "VERSION":
        return version()
    raise AttributeError(name)


def search(
    root: Path,
    scope: Scope,
    mutants: Sequence[SearchMutant],
    tests: Sequence[str],
    *,
    sources: Mapping[str, str],
    parser: Path,
    node: str = "node",
    seed: int = 1,
    budget: float = 60.0,
    workers: int = 1,
    timeout: float = 600.0,
) -> SearchReply:
    """Tests that tell mutants apart from the original, the fewest that keep all kills.

    root: the project's root in a worktree in which `scope.mutate` are the instrumented files. sources: file → original
    text. tests: the existing test files, whose calls are where the search starts. parser: the entry of @babel/parser.
    budget: most seconds of CPU for one file, fewer where few survive; timeout: for all. Whatever the program does
    is an outcome, never an exception.
    """
    if not mutants:
        return SearchReply(Outcome.OK)
    request = {
        "root": str(root),
        "files": [{"file": file, "source": sources[file]} for file in scope.mutate if file in sources],
        "mutants": [attrs.asdict(mutant) for mutant in mutants],
        "tests": list(tests),
        "write": scope.write,
        "seed": seed,
        "budgetMs": round(budget * 1000),
        "clockMs": round(_ON_THE_CLOCK * timeout * 1000),
        "workers": workers,
        "parser": str(parser),
    }
    env = process.environment()
    env.pop("NODE_OPTIONS", None)  # a loader or a heap size of the user's would change what is found
    try:
        finished = process.run(
            [node, f"--max-old-space-size={_HEAP_MB}", "--single-threaded-gc", "--no-warnings", _FOLDER / "search.mjs"],
            cwd=root, env=env, stdin=json.dumps(request).encode(), timeout=timeout, max_output=_MOST_OUTPUT,
        )  # fmt: skip
    except process.NotFound as error:
        return SearchReply(Outcome.BAD_CONFIG, str(error))
    return attrs.evolve(_reply(finished), seconds=finished.seconds, cpu_seconds=finished.cpu_seconds)


def _reply(finished: Finished) -> SearchReply:
    outcome = _outcome(finished)
    if outcome is not Outcome.OK:
        return SearchReply(outcome, finished.tail(5))
    try:
        answer = json.loads(finished.out)
        return SearchReply(
            Outcome.OK,
            tests=tuple(_converter.structure(t | {"origin": NAME}, Test) for t in answer["tests"]),
            missed=_converter.structure(answer["missed"], tuple[Missed, ...]),
            stats=answer["stats"],
        )
    except (ValueError, KeyError, TypeError, cattrs.errors.BaseValidationError) as error:
        return SearchReply(Outcome.UNPARSABLE, f"{type(error).__name__}: {error}")


def _outcome(finished: Finished) -> Outcome:
    if finished.timed_out:
        return Outcome.TIME_LIMIT
    if finished.too_much_output:
        return Outcome.CRASHED
    if finished.exit_code == 0:
        return Outcome.OK
    if b"heap out of memory" in finished.err:
        return Outcome.MEMORY
    return Outcome.SIGNAL if finished.exit_code < 0 else Outcome.CRASHED


_converter = cattrs.Converter()
