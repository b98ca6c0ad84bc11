"""Report -> mutants: statuses, identity, scores. Knows the mutation-testing-elements schema and no engine.

Schema: https://github.com/stryker-mutator/mutation-testing-elements, report-schema (versions 1 and 2). Columns and
lines are 1-based there, the end exclusive; columns count UTF-16 code units, as the engines' languages do.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from pipeline.results import Kill, Survivor

_LOOSE = re.compile(r"&&|\|\||\?\?| \? ")  # operators that most others bind tighter than

BLOCK_LINES = 80  # an enclosing block longer than this says too little about the mutant in it


class Status(enum.StrEnum):
    KILLED = "Killed"
    SURVIVED = "Survived"
    NO_COVERAGE = "NoCoverage"
    TIMEOUT = "Timeout"
    COMPILE_ERROR = "CompileError"
    RUNTIME_ERROR = "RuntimeError"
    IGNORED = "Ignored"
    PENDING = "Pending"


class ReportError(Exception):
    """A report that is not one, or not about these sources. The text says what is wrong."""


@attrs.frozen
class Mutant:
    """One small change to the source. Lines and columns are the report's: 1-based, the end exclusive, in UTF-16."""

    key: str
    file: str  # relative to the project's root, forward slashes
    mutator: str
    original: str
    replacement: str
    status: Status
    line: int
    column: int
    end_line: int
    end_column: int
    around: str
    static: bool = False
    audited: Status | None = None  # what a fresh process said, where it disagrees with the engine
    reason: str = ""

    @property
    def final(self) -> Status:
        return self.audited or self.status

    @property
    def described(self) -> str:
        """In one line: where it is, and what it changes."""
        change = " ".join(f"{self.original} -> {self.replacement or 'nothing'}".split())
        short = change if len(change) <= 90 else f"{change[:89]}…"
        return f"{self.file}:{self.line} {self.mutator}: {short}"

    def as_survivor(self) -> Survivor:
        return Survivor(self.key, self.file, self.mutator, self.original, self.replacement, self.around, self.static)


@attrs.frozen
class Raw:
    """A mutant as the report has it, with the engine's id, before it is known by its identity."""

    id: str
    mutator: str
    replacement: str
    status: Status
    line: int
    column: int
    end_line: int
    end_column: int
    static: bool
    covered_by: tuple[str, ...]
    tests_completed: int | None
    reason: str


@attrs.frozen
class Score:
    """Counts by status, and the two scores (percent; None where there is nothing to score)."""

    killed: int = 0
    survived: int = 0
    no_coverage: int = 0
    timeout: int = 0
    errors: int = 0
    ignored: int = 0

    @property
    def total(self) -> int:
        return self.killed + self.survived + self.no_coverage + self.timeout + self.errors + self.ignored

    @property
    def survivors(self) -> int:
        return self.survived + self.no_coverage

    @property
    def mutation(self) -> float | None:
        """The schema's own: detected / valid, where a timeout counts as detected."""
        detected, valid = self.killed + self.timeout, self.killed + self.timeout + self.survivors
        return 100 * detected / valid if valid else None

    @property
    def honest(self) -> float | None:
        """Killed / (Killed + Survived + NoCoverage): no credit for a timeout."""
        judged = self.killed + self.survivors
        return 100 * self.killed / judged if judged else None


def score(statuses: Iterable[Status]) -> Score:
    count = Counter(statuses)
    return Score(
        killed=count[Status.KILLED],
        survived=count[Status.SURVIVED],
        no_coverage=count[Status.NO_COVERAGE],
        timeout=count[Status.TIMEOUT],
        errors=count[Status.COMPILE_ERROR] + count[Status.RUNTIME_ERROR],
        ignored=count[Status.IGNORED] + count[Status.PENDING],
    )


def is_survivor(status: Status) -> bool:
    return status in (Status.SURVIVED, Status.NO_COVERAGE)


def raw_mutants(entry: Mapping[str, Any], file: str) -> tuple[Raw, ...]:
    """The mutants in the report's entry of one file, in the order of their place. Raises ReportError."""
    try:
        entries = entry["mutants"] if entry else ()
        raws = [_raw(entry) for entry in entries]
    except KeyError as error:
        raise ReportError(f"a mutant of {file} has no {error.args[0]}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ReportError(f"mutants of {file}: {error}") from error
    # Array order is the order in which they were done.
    return tuple(sorted(raws, key=lambda m: (m.line, m.column, m.end_line, m.end_column, m.mutator, m.replacement)))


def _raw(entry: Mapping[str, Any]) -> Raw:
    start, end = entry["location"]["start"], entry["location"]["end"]
    completed = entry.get("testsCompleted")
    return Raw(
        id=str(entry["id"]),
        mutator=str(entry["mutatorName"]),
        replacement=str(entry["replacement"]),
        status=Status(entry["status"]),
        line=int(start["line"]),
        column=int(start["column"]),
        end_line=int(end["line"]),
        end_column=int(end["column"]),
        static=bool(entry.get("static", False)),
        covered_by=tuple(str(t) for t in entry.get("coveredBy") or ()),
        tests_completed=None if completed is None else int(completed),
        reason=str(entry.get("statusReason") or ""),
    )


def identify(raws: Sequence[Raw], file: str, source: str) -> tuple[Mutant, ...]:
    """Give each mutant of one file its identity; the result is in the order of `raws`.

    The identity is (file, mutator, original text, replacement, place). The place is the mutant's own line and the
    lines that enclose it by indentation, as text, and an ordinal among mutants that agree in all of that. It needs no
    parser, holds for every language that is indented, and survives edits elsewhere in the file.
    """
    lines = source.split("\n")
    seen: Counter[tuple[str, ...]] = Counter()
    mutants = []
    for raw in raws:
        if not (1 <= raw.line <= raw.end_line <= len(lines)) or min(raw.column, raw.end_column) < 1:
            at = f"{raw.line}:{raw.column} to {raw.end_line}:{raw.end_column}"
            raise ReportError(f"{file}: mutant {raw.id} is at {at}, the file has {len(lines)} lines")
        original = text_between(lines, raw)
        described = (file, raw.mutator, original, raw.replacement, *place_of(lines, raw.line - 1))
        seen[described] += 1
        start, end = block(lines, raw.line - 1)
        mutants.append(
            Mutant(
                key=_hash(*described, str(seen[described])),
                file=file,
                mutator=raw.mutator,
                original=original,
                replacement=raw.replacement,
                status=raw.status,
                line=raw.line,
                column=raw.column,
                end_line=raw.end_line,
                end_column=raw.end_column,
                around=_hash(*(line.strip() for line in lines[start:end])),
                static=raw.static,
                reason=raw.reason,
            )
        )
    return tuple(mutants)


def text_between(lines: Sequence[str], place: Raw | Mutant) -> str:
    """The source text at a mutant's place."""
    covered = list(lines[place.line - 1 : place.end_line])
    covered[-1] = covered[-1][: _index(covered[-1], place.end_column)]
    covered[0] = covered[0][_index(covered[0], place.column) :]
    return "\n".join(covered)


def _index(line: str, column: int) -> int:
    """Where a column of the report is in a line: a character beyond the first 65,536 counts twice there."""
    if line.isascii():
        return column - 1
    before = line.encode("utf-16-le", "surrogatepass")[: 2 * (column - 1)]
    return len(before.decode("utf-16-le", "surrogatepass"))


def mutate(source: str, mutant: Mutant) -> str:
    """The whole source with one mutant applied at its place."""
    lines = source.split("\n")
    first, last = lines[mutant.line - 1], lines[mutant.end_line - 1]
    before = [*lines[: mutant.line - 1], first[: _index(first, mutant.column)]]
    after = [last[_index(last, mutant.end_column) :], *lines[mutant.end_line :]]
    return "\n".join(before) + mutant.replacement + "\n".join(after)


def as_kill(mutant: Mutant, source: str, how: str) -> Kill:
    """A mutant of this source as what a test kills: found again by `find_span`, whatever is edited elsewhere."""
    lines = source.split("\n")
    index = mutant.line - 1
    place = place_of(lines, index)
    return Kill(
        mutant.key, mutant.file, mutant.mutator, mutant.original, mutant.replacement, place,
        _with_place(lines, place).index(index) + 1, mutant.column - _indent(lines[index]), how,
    )  # fmt: skip


def find_span(kill: Kill, source: str) -> tuple[int, int] | None:
    """Where in the source the text is that this mutant replaces: half-open offsets; None where it isn't any more."""
    lines = source.split("\n")
    found = _with_place(lines, kill.place)[kill.nth - 1 : kill.nth]
    if not found:
        return None
    start = sum(len(line) + 1 for line in lines[: found[0]]) + _indent(lines[found[0]]) + kill.column - 1
    end = start + len(kill.original)
    return (start, end) if source[start:end] == kill.original else None


def with_kill(kill: Kill, source: str, plain: bool = False) -> str | None:
    """The whole source with this mutant in it, its line ends kept; None where it does not hold the mutant.

    plain: without the parentheses that may be needed for it to stay one operand of what is around it.
    """
    text = source.replace("\r\n", "\n")
    span = find_span(kill, text)
    if span is None:
        return None
    replacement = kill.replacement
    begins_line = not text[: span[0]].rpartition("\n")[2].strip()  # after a line without `;` it would be a call
    if not (plain or begins_line) and (kill.original[:1] in tuple("(!") or _LOOSE.search(replacement)):
        replacement = f"({replacement})"
    # Without blanks around it, a replacement `+` beside another would be one operator with it.
    mutated = f"{text[: span[0]]} {replacement} {text[span[1] :]}".replace("\r\n", "\n")
    return mutated if text == source else mutated.replace("\n", "\r\n")


def described(kill: Kill) -> str:
    """A mutant in one line."""
    change = " ".join(f"{kill.original} -> {kill.replacement or 'nothing'}".split())
    return f"{kill.file}: {kill.mutator}: {change if len(change) <= 90 else f'{change[:89]}…'}"


def place_of(lines: Sequence[str], index: int) -> tuple[str, ...]:
    """A line and those that enclose it, outermost first, as text without indentation."""
    return (*(lines[i].strip() for i in enclosing(lines, index)), lines[index].strip())


def _with_place(lines: Sequence[str], place: Sequence[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if line.strip() == place[-1] and place_of(lines, i) == tuple(place)]


def enclosing(lines: Sequence[str], index: int) -> tuple[int, ...]:
    """Indices of the lines that enclose line `index` by indentation, outermost first, without itself."""
    found: list[int] = []
    limit = _indent(lines[index])
    for i in range(index - 1, -1, -1):
        if limit == 0:
            break
        if lines[i].strip() and _indent(lines[i]) < limit and lines[i].strip()[0] not in ")]}":
            limit = _indent(lines[i])
            found.append(_head(lines, i))
    return tuple(reversed(found))


def _head(lines: Sequence[str], index: int) -> int:
    """The line that a brace on a line of its own belongs to: the nearest one above that is indented as it is."""
    if lines[index].strip() != "{":
        return index
    above = (i for i in range(index - 1, -1, -1) if lines[i].strip() and _indent(lines[i]) <= _indent(lines[index]))
    head = next(above, index)
    return head if _indent(lines[head]) == _indent(lines[index]) else index


def block(lines: Sequence[str], index: int) -> tuple[int, int]:
    """Half-open range of lines: the largest enclosing block of at most BLOCK_LINES lines, else the line itself."""
    for head in enclosing(lines, index):
        end = _block_end(lines, head)
        if end - head <= BLOCK_LINES:
            return head, end
    end = _block_end(lines, index)
    return (index, end) if end - index <= BLOCK_LINES else (index, index + 1)


def _block_end(lines: Sequence[str], head: int) -> int:
    """One past the last line of the block that begins at `head`: deeper lines, and the closing one."""
    depth = _indent(lines[head])
    end = head + 1
    for i in range(head + 1, len(lines)):
        text = lines[i].strip()
        if not text:
            continue
        if _indent(lines[i]) > depth:
            end = i + 1
        elif _indent(lines[i]) == depth and text[0] in "{)]}":
            end = i + 1  # `} else {` goes on, and so does a head whose brace has a line of its own
        else:
            break
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
