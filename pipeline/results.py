"""What passes between tasks, as files: frozen values, written sorted, whole or not at all, and not when equal.

No target holds a time, a path of this machine or a random id, so that equal work gives equal bytes (early cutoff).
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import attrs
import cattrs

T = TypeVar("T")
BESIDE = ".new-"  # how the names of files begin that are being written


class Outcome(enum.StrEnum):
    """How an attempt ended. The list is closed; each has one meaning."""

    OK = "ok"  # it did what it was for
    CACHED = "cached"  # the same result was there already
    TESTS_FAIL_FIRST = "tests-fail-first"  # a test fails on the original, before any mutant
    NO_TESTS = "no-tests"  # no test ran
    NO_MUTANTS = "no-mutants"  # the files hold nothing to mutate
    NO_REPORT = "no-report"  # the engine ended without a report
    HOLLOW_REPORT = "hollow-report"  # a report that cannot be true: nothing in it was measured
    ALL_FILTERED = "all-filtered"  # the mutants that were asked for were all left out by a filter
    NO_KILLS = "no-kills"  # mutants were tested and none was killed: the tests do not see them
    COVERAGE_FAILED = "coverage-failed"  # the engine could not tell which tests run a mutant: its report means nothing
    BUILD_ERROR = "build-error"  # the code or a test does not compile or load
    BAD_CONFIG = "bad-config"  # the engine or generator refused its configuration
    CRASHED = "crashed"  # a program ended in a way it never should
    TIME_LIMIT = "time-limit"
    MEMORY = "memory"  # out of memory
    SIGNAL = "signal"  # killed by a signal that wasn't ours
    RATE_LIMITED = "rate-limited"
    OVERLOADED = "overloaded"  # the provider's gateway: bad gateway, 502, 503, 504, 529
    EXHAUSTED = "exhausted"  # the gateway went on failing, and a model lower down met with the same
    SESSION_LIMIT = "session-limit"  # what the account may use is used up for now: no more calls of that program
    NOT_LOGGED_IN = "not-logged-in"  # likewise
    EMPTY_REPLY = "empty-reply"
    UNPARSABLE = "unparsable"  # a reply without one candidate that can be read
    REJECTED = "rejected"  # every candidate of it was refused, or a person took the test out
    OUTSIDE_SCOPE = "outside-scope"  # a file changed that it had no right to
    NEW_FINDINGS = "new-findings"  # a linter found what its baseline does not have
    CONFLICT = "conflict"  # somebody's commit and ours do not go together
    BLOCKED = "blocked"  # what it needs did not land
    CHECK_FAILED = "check-failed"  # a condition of its check does not hold
    OVER_BUDGET = "over-budget"  # more tokens than it may take
    UNVERIFIED = "unverified"  # could not be judged
    LOST = "lost"  # a call that died in flight
    INTERRUPTED = "interrupted"  # the run was stopped


@attrs.frozen
class Survivor:
    """A mutant no test detects, without its line, column or engine's id: those change with edits elsewhere."""

    key: str  # the mutant's identity
    file: str
    mutator: str
    original: str
    replacement: str
    around: str  # hash of the source around it: the enclosing block
    static: bool = False


@attrs.frozen
class Test:
    """One test, as text in the project's language, to be added to a scope's `write` file."""

    __test__ = False  # not a pytest class

    title: Annotated[str, "Unique in its file; with the write path, the test's identity"]
    code: Annotated[str, "One whole test statement: no marker lines, no indentation in front, no newline at the end"]
    imports: Annotated[tuple[str, ...], "Import statements that the code needs"] = ()
    kills: Annotated[tuple[str, ...], "Mutants' identities: claimed in a candidate, proved in a proof"] = ()
    origin: Annotated[str, "The generator's name"] = ""


@attrs.frozen
class Kill:
    """A mutant that a test was seen to kill, with all it takes to apply it by hand to any state of its file."""

    key: Annotated[str, "The mutant's identity"]
    file: Annotated[str, "The mutated file, relative to the project's root"]
    mutator: Annotated[str, "The engine's name for the kind of change"]
    original: Annotated[str, "The text that is replaced"]
    replacement: Annotated[str, "What stands in its stead"]
    place: Annotated[
        tuple[str, ...], "The lines that enclose it by indentation, outermost first, and its own, without indentation"
    ]
    nth: Annotated[int, "Which of the lines that have this place in the file it is on, from 1"]
    column: Annotated[int, "Where in its own line the original begins, the indentation not counted, from 1"]
    how: Annotated[
        str,
        "How the test failed: by an assertion, by an exception out of the code under test, or as only the engine saw",
    ]


@attrs.frozen
class Proved:
    """A test with its proof: which mutants it was seen to kill, each in a fresh process, and how it failed there."""

    test: Test  # its `kills` are the proved ones
    how: Mapping[str, str]  # mutant key -> assertion | exception | engine


KILLS_NOTHING = "it kills nothing"  # the reason of a candidate that passes on the original and with every mutant


@attrs.frozen
class Dropped:
    """A candidate that did not become a test, and why."""

    title: str
    outcome: Outcome
    reason: str
    code: str = ""
    kills: tuple[str, ...] = ()  # mutant keys that it claimed
    failed: bool = False  # it ran and did not hold: where it has landed, it comes off


# The targets. One class a file; `outcome` says whether the work was done, never whether it was worth something.


@attrs.frozen
class Survivors:
    """survivors.json, survivors.r.json: what is left to kill."""

    survivors: tuple[Survivor, ...] = ()


@attrs.frozen
class Candidates:
    """candidates.r.json"""

    outcome: Outcome
    detail: str = ""
    tests: tuple[Test, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    unreached: Mapping[str, str] = attrs.field(factory=dict)  # mutant key -> why search found nothing for it


@attrs.frozen
class Proofs:
    """proofs.r.json"""

    outcome: Outcome
    detail: str = ""
    proved: tuple[Proved, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    inputs: Mapping[str, str] = attrs.field(factory=dict)  # what the validation loaded: path -> content hash
    runs: int = 0  # fresh runs on the original that each test passed
    engine: str = ""  # name and version
    elsewhere: Mapping[str, str] = attrs.field(factory=dict)  # variables under which each passed a run alone as well


@attrs.frozen
class Landed:
    """landed.json: the scope's write file as it stands on the landing branch."""

    outcome: Outcome  # ok, conflict, rejected, ...: anything but ok and held parks the scope
    detail: str = ""
    held: bool = False  # proved, and waiting for a commit of the edit it was proved on
    content: str | None = None  # content hash of the write file on the branch; None: not there
    titles: tuple[str, ...] = ()  # our tests that it holds
    theirs: tuple[str, ...] = ()  # titles that somebody else has put there with another text
    rejected: tuple[str, ...] = ()  # tests that a person took out
    withdrawn: tuple[str, ...] = ()  # tests of ours that came off, each with its reason
    proofs: str = ""  # digest of the proofs that it was made from


def dump(path: Path, value: Any) -> bool:
    """Write `value` as sorted JSON: beside, fsync, rename. False where the file held these bytes already."""
    text = json.dumps(converter.unstructure(value), sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    return write_bytes(path, text.encode())


os.umask(_UMASK := os.umask(0))  # as every file is made; mkstemp's are for their owner alone


def write_bytes(path: Path, content: bytes) -> bool:
    """Make `path` hold `content`, whole or not at all. False where it did already."""
    for _ in range(2):  # its folder may go away meanwhile
        with contextlib.suppress(FileNotFoundError):
            return _write_bytes(path, content)
    return _write_bytes(path, content)


def _write_bytes(path: Path, content: bytes) -> bool:
    try:
        if path.read_bytes() == content:
            return False
    except OSError:
        path.parent.mkdir(parents=True, exist_ok=True)
    fd, beside = tempfile.mkstemp(dir=path.parent, prefix=BESIDE)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_UMASK)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return True


def load(path: Path, type_: type[T]) -> T:
    """Read what `dump` wrote. Raises OSError, ValueError or cattrs' errors: half-written files do not exist."""
    return converter.structure(json.loads(path.read_bytes()), type_)


def find(path: Path, type_: type[T]) -> T | None:
    """As `load`; None where there is no such file or it isn't one of ours. A file that is as it was is read once."""
    try:
        stat = path.stat()
        version = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        known = _read.get(path)
        if known is None or known[:2] != (version, type_):
            known = _read[path] = version, type_, load(path, type_)
        return cast(T, known[2])
    except (OSError, ValueError, TypeError, AttributeError, KeyError, cattrs.errors.BaseValidationError):
        return None


_read: dict[Path, tuple[tuple[int, int, int], object, object]] = {}  # path -> its version, its type, what it says


converter = cattrs.Converter(omit_if_default=False)
converter.register_unstructure_hook(Mapping, lambda m: {key: converter.unstructure(value) for key, value in m.items()})
