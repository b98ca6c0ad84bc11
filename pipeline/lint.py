"""Findings against a baseline: which are new, which are known, which have gone. Pure, and the baseline's format.

A finding is known by its file, its rule and the text of its line, not by the line's number. Of several that agree in
all of that as many are known as the baseline has, those first that stand between the same lines as then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import attrs

from .ended import unfinished
from .findings import Finding
from .model import Lint
from .process import Finished

HEADER = """\
# Findings that are known. One a line: path, rule, text of its line, hash of the lines beside it; between tabs, sorted.
# `doit lint --accept` writes it; what is mended goes by itself. Keep all lines of both sides in a merge.
"""
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


@attrs.frozen(order=True)
class Entry:
    """One finding of a baseline."""

    path: str
    what: str
    text: str
    around: str = ""

    @property
    def same(self) -> tuple[str, str, str]:
        """What two of one and the same finding agree in, wherever it has moved to in its file."""
        return self.path, self.what, self.text


@attrs.frozen
class Judged:
    """Every finding is new or known, and every entry of the baseline is known or gone."""

    new: tuple[Finding, ...]
    known: tuple[tuple[Finding, Entry], ...]
    gone: tuple[Entry, ...]

    @property
    def kept(self) -> tuple[Entry, ...]:
        """The baseline without what has gone; what stands in a renamed file, by its new name."""
        return tuple(attrs.evolve(entry, path=finding.path) for finding, entry in self.known)


def as_entry(finding: Finding) -> Entry:
    return Entry(finding.path, finding.what, finding.text, finding.around)


def judge(found: Sequence[Finding], baseline: Iterable[Entry], renamed: Mapping[str, str] | None = None) -> Judged:
    """renamed: what a file was called -> what it is called now."""
    left: dict[tuple[str, str, str], list[Entry]] = defaultdict(list)
    for entry in sorted(baseline):
        left[entry.same].append(entry)
    for before, now in (renamed or {}).items():
        for path, what, text in [key for key in left if key[0] == before]:
            left[now, what, text] += left.pop((path, what, text))
    known: dict[int, Entry] = {}
    for exactly in (True, False):
        for index, finding in enumerate(found):
            same = left.get(as_entry(finding).same)
            if index not in known and same:
                at = next((i for i, entry in enumerate(same) if entry.around == finding.around), None)
                if at is not None or not exactly:
                    known[index] = same.pop(at or 0)
    return Judged(
        tuple(finding for index, finding in enumerate(found) if index not in known),
        tuple((finding, known[index]) for index, finding in enumerate(found) if index in known),
        tuple(sorted(entry for entries in left.values() for entry in entries)),
    )


# --- the baseline as a file


class BadBaseline(Exception):
    """A line that is no entry: `line` counts from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def dump(entries: Iterable[Entry]) -> str:
    lines = sorted("\t".join(map(_escaped, (e.path, e.what, e.text, e.around))) for e in entries)
    return HEADER + "".join(f"{line}\n" for line in lines)


def load(text: str) -> tuple[Entry, ...]:
    """The entries that `dump` wrote, in any order. Raises BadBaseline."""
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if re.match(r"(<{7}|={7}|>{7}|\|{7})( |$)", line):
            raise BadBaseline(number, "a merge was left unfinished")
        if line.startswith("# ") or ("\t" not in line and not line.strip()):
            continue
        fields = line.split("\t")
        if len(fields) != 4:
            raise BadBaseline(number, f"{len(fields)} fields between tabs, where a finding has 4")
        entries.append(Entry(*map(_unescaped, fields)))
    return tuple(entries)


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in text)


def _unescaped(text: str) -> str:
    back = {escape: c for c, escape in _ESCAPES.items()}
    return re.sub(r"\\.", lambda found: back.get(found[0], found[0]), text)


# --- did the tool come to its end?


def unverified(lint: Lint, done: Finished, findings: int) -> str:
    """Why nothing can be said of what a tool found, "" where it can: two facts, how it ended and what it said."""
    # A finding may quote code that speaks of what else would be a sign.
    told = attrs.evolve(done, out=b"", err=b"") if findings else done
    if done.exit_code not in (126, 127) and (cut_short := unfinished(told, lint.timeout)):
        return cut_short.why
    if done.exit_code not in lint.exit:
        said = ", ".join(map(str, lint.exit))
        remedy = "" if done.exit_code in (126, 127) else f"; if that is how it says findings, add it to `exit` ({said})"
        return f"exit code {done.exit_code}{remedy}"
    if done.exit_code and not findings and lint.format != "sarif":
        return f"exit code {done.exit_code}, and no finding can be read in what it said"
    return ""
