"""What a linter says → findings, each with its place. Pure: nothing is started here, files are read by who asks.

SARIF is that of OASIS, version 2.1.0 (docs.oasis-open.org/sarif/sarif/v2.1.0); section numbers are its own.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs

from .model import Lint

_LONGEST = 160  # characters of a line's text that are kept: a file on one line would else stand whole in the baseline
_PLACE = re.compile(r"(?P<path>[^\s:][^:]*):(?P<line>\d+)(?::\d+)*:?\s*(?P<message>.*)")
_ESCAPES = re.compile("\x1b\\[[0-9;]*[A-Za-z]")  # colours


class Unreadable(Exception):
    """What the tool said is not what its `format` says it would be."""


@attrs.frozen
class Finding:
    """One thing that a linter has to say, with what it is known by when lines shift."""

    path: str  # relative to the project's root; "" where it names none
    line: int | None
    message: str
    what: str  # the rule; where there is none, the message without its numbers
    text: str  # of the line, blanks made equal; where there is none, as `what`; or what the tool itself knows it by
    around: str = ""  # hash of the lines beside it: tells equal ones apart

    def __str__(self) -> str:
        place = self.path + (f":{self.line}" if self.line is not None else "")
        rule = f"{self.what}: " if self.what != plain(self.message) else ""
        return f"{place}: {rule}{self.message}" if place else f"{rule}{self.message}"


Lines = Callable[[str], Sequence[str] | None]  # path, relative to the root -> the lines of that file


def read(lint: Lint, out: str, err: str, root: str, lines: Lines) -> tuple[Finding, ...]:
    """All findings in what a tool said, in its order. root: the folder that it ran in. Raises Unreadable."""
    found = {"sarif": _sarif, "regex": _regex, "lines": _lines}[lint.format](lint, out, err, root)
    return tuple(_placed(_sound(each), lines) for each in found)


def plain(message: str) -> str:
    """A message by which a finding may be known: `longer than 120 (153)` is the same one at 152."""
    return _short(re.sub(r"\d+", "#", " ".join(message.split())))


@attrs.frozen
class _Said:
    """A finding as the tool says it."""

    path: str
    line: int | None
    message: str
    rule: str = ""
    known_by: str = ""  # the tool's own fingerprint
    snippet: str = ""


def _sound(said: _Said) -> _Said:
    """With what could not be written to a file made visible: JSON may hold half a character."""
    path, message, rule, known_by, snippet = (
        text.encode(errors="replace").decode()
        for text in (said.path, said.message, said.rule, said.known_by, said.snippet)
    )
    return _Said(path, said.line, message, rule, known_by, snippet)


def _placed(said: _Said, lines: Lines) -> Finding:
    what = said.rule or plain(said.message)
    beside = lines(said.path) if said.path and said.line is not None else None
    at = (said.line or 0) - 1
    text, around = said.snippet, ""
    if beside is not None and 0 <= at < len(beside):
        text = beside[at]
        before = next((line for line in reversed(beside[:at]) if line.strip()), "")
        after = next((line for line in beside[at + 1 :] if line.strip()), "")
        around = _hash(f"{' '.join(before.split())}\0{' '.join(after.split())}")
    known_by = said.known_by or _short(" ".join(text.split())) or plain(said.message)
    return Finding(said.path, said.line, said.message, what, known_by, around)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 20]}… {_hash(text)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]


# --- text


def _regex(lint: Lint, out: str, err: str, root: str) -> Iterator[_Said]:
    """A finding for each line, of both outputs, in which the pattern is found."""
    pattern = re.compile(lint.pattern)
    for line in _ESCAPES.sub("", f"{out}\n{err}").splitlines():
        if match := pattern.search(line):
            groups = {name: text or "" for name, text in match.groupdict().items()}
            path, number = _relative(groups.get("path", ""), root), groups.get("line", "")
            at = int(number) if number.isdecimal() else None
            yield _Said(path, at, groups.get("message") or line.strip(), groups.get("rule", ""))


def _lines(_: Lint, out: str, err: str, root: str) -> Iterator[_Said]:
    """A finding for each line of standard output that is not blank; PATH:LINE: before it is its place."""
    for line in _ESCAPES.sub("", out).splitlines():
        if match := _PLACE.fullmatch(line.strip()):
            yield _Said(_relative(match["path"], root), int(match["line"]), match["message"])
        elif line.strip():
            yield _Said("", None, line.strip())


def _relative(path: str, root: str) -> str:
    """A path as the tool says it, in the one spelling that is relative to the root where it lies in there."""
    path = path.strip().replace("\\", "/")
    if not path:
        return ""
    path = posixpath.normpath(path)
    return posixpath.relpath(path, root) if path == root or path.startswith(f"{root}/") else path


# --- SARIF


def _sarif(_: Lint, out: str, err: str, root: str) -> Iterator[_Said]:
    """The results of all runs that are failures (3.27.9) and not suppressed (3.27.23, 3.35)."""
    try:
        log = json.loads(out)
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON") from None
    if not isinstance(log, dict) or not isinstance(log.get("runs"), list):
        raise Unreadable("it has no list of `runs`")
    said = []
    for run in map(_mapping, log["runs"]):
        for invocation in map(_mapping, _list(run.get("invocations"))):
            if invocation.get("executionSuccessful") is False:  # 3.20.14
                raise Unreadable("the tool says that it did not come to its end (executionSuccessful: false)")
        if not isinstance(run.get("results"), list):  # 3.14.23: null where it failed to start
            raise Unreadable("it has a run without `results`")
        rules = _list(_mapping(_mapping(run.get("tool")).get("driver")).get("rules"))
        for result in map(_mapping, run["results"]):
            if result.get("kind", "fail") == "fail" and not _suppressed(result):
                said.append(_result(result, rules, _mapping(run.get("originalUriBaseIds")), root))
    return iter(said)


def _result(result: Mapping[str, Any], rules: Sequence[Any], bases: Mapping[str, Any], root: str) -> _Said:
    rule = result.get("ruleId") or _mapping(result.get("rule")).get("id")
    index = result.get("ruleIndex")
    if not rule and isinstance(index, int) and 0 <= index < len(rules):
        rule = _mapping(rules[index]).get("id")
    place = _mapping(_mapping(next(iter(_list(result.get("locations"))), None)).get("physicalLocation"))
    artifact, region = _mapping(place.get("artifactLocation")), _mapping(place.get("region"))
    line = region.get("startLine")
    message = _mapping(result.get("message"))
    uri, base = artifact.get("uri"), bases.get(str(artifact.get("uriBaseId")))
    prints = _mapping(result.get("fingerprints")) or _mapping(result.get("partialFingerprints"))  # 3.27.16, 3.27.17
    return _Said(
        _path(str(uri or ""), str(_mapping(base).get("uri") or ""), root),
        line if isinstance(line, int) and line > 0 else None,
        " ".join(str(message.get("text") or message.get("id") or "no message").split()),
        str(rule or ""),
        ",".join(f"{name}={prints[name]}" for name in sorted(prints)),
        str(_mapping(region.get("snippet")).get("text") or ""),
    )  # fmt: skip


def _path(uri: str, base: str, root: str) -> str:
    parts = urlsplit(uri if urlsplit(uri).scheme or not base else posixpath.join(base, uri))
    return _relative(unquote(parts.path if parts.scheme in ("", "file") else uri), root)


def _suppressed(result: Mapping[str, Any]) -> bool:
    states = [_mapping(each).get("status", "accepted") for each in _list(result.get("suppressions"))]
    return bool(states) and all(state == "accepted" for state in states)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
