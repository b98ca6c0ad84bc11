"""Which of the project's files does a pattern match? Pure: the files are given.

`*` and `?` stay inside one name, `**` crosses folders, `{a,b}` is either, `[a-z]` and `[!a-z]` are one character, `\\`
takes the next character as it is. Patterns and files are relative to the project's root; case counts. A pattern that
is, to the letter, the path of a file means that file.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import attrs

_SPECIAL = re.compile(r"[*?\[\]{}\\,]")
_LAST = "\U0010ffff"  # sorts after every character that a path has


class BadPattern(ValueError):
    """The text is no pattern; str() says why."""


def _in_order(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(paths)))


@attrs.frozen
class Files:
    """The project's files: sorted paths with forward slashes."""

    paths: tuple[str, ...] = attrs.field(converter=_in_order)
    _matched: dict[str, tuple[str, ...]] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    @functools.cached_property
    def _reversed(self) -> list[str]:
        return sorted(path[::-1] for path in self.paths)

    @functools.cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.paths)

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def under(self, folder: str) -> Sequence[str]:
        """Every file in `folder` or deeper."""
        return self.paths[_beginning(self.paths, f"{folder}/")]

    def matching(self, pattern: str) -> tuple[str, ...]:
        """The files that `pattern` matches, sorted. Raises BadPattern."""
        if pattern not in self._matched:
            self._matched[pattern] = self._match(pattern)
        return self._matched[pattern]

    def _match(self, pattern: str) -> tuple[str, ...]:
        plain = pattern if pattern in self else unescape(pattern)
        if plain is not None:
            return (plain,) if plain in self else ()
        matches = compiled(pattern).fullmatch
        # What a pattern begins or ends with in plain letters narrows the search to a slice of the sorted paths.
        prefix = re.split(r"[*?\[{\\]", pattern, maxsplit=1)[0]
        suffix = _SPECIAL.split(pattern)[-1].removeprefix("/")
        forward, backward = _beginning(self.paths, prefix), _beginning(self._reversed, suffix[::-1])
        if forward.stop - forward.start <= backward.stop - backward.start:
            return tuple(path for path in self.paths[forward] if matches(path))
        return tuple(sorted(path for path in (p[::-1] for p in self._reversed[backward]) if matches(path)))

    def nearest(self, path: str) -> str | None:
        """The file whose path is most like `path`: in its folder, or of its name, or anywhere."""
        folder, name = posixpath.split(path)
        named = [found[::-1] for found in self._reversed[_beginning(self._reversed, f"/{name}"[::-1])]]
        for candidates in (self.under(folder), named, self.paths):
            # difflib takes about 10 µs a path: not over a hundred thousand of them.
            near = difflib.get_close_matches(path, itertools.islice(candidates, 3000), 1, 0.6)
            if near:
                return near[0]
        return named[0] if named else None


def _beginning(ordered: Sequence[str], prefix: str) -> slice:
    """Where in sorted texts those are that begin with `prefix`."""
    return slice(bisect_left(ordered, prefix), bisect_left(ordered, prefix + _LAST))


def escape(text: str) -> str:
    """The pattern that matches `text` alone."""
    return _SPECIAL.sub(r"\\\g<0>", text) if _SPECIAL.search(text) else text


def unescape(pattern: str) -> str | None:
    """The one path that a pattern without wildcards means, else None."""
    if not _SPECIAL.search(pattern):
        return pattern  # nearly all are: a large plan asks of fifty thousand
    bare = re.sub(r"\\.", "", pattern, flags=re.DOTALL)
    return None if re.search(r"[*?\[{\\]", bare) else re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def anchor(pattern: str) -> str:
    """The directory that the wildcards of a pattern begin in: "gen/**/*.c" → "gen", "*.c" → "."."""
    literal: list[str] = []
    for segment in pattern.split("/")[:-1]:
        plain = unescape(segment)
        if plain is None:
            break
        literal.append(plain)
    return "/".join(literal) or "."


def lock(declared: str) -> str:
    """What is held for a declared path, directory or pattern, with all that is under it.

    For a pattern it's the directory that its wildcards begin in: two patterns that may meet then always do.
    """
    plain = unescape(declared)
    return anchor(declared) if plain is None else plain.rstrip("/")


def takes_in(declared: str, path: str) -> bool:
    """Is `path` the declared path, in the declared directory, or matched by the declared pattern?"""
    plain = unescape(declared)
    if plain is None:
        return compiled(declared).fullmatch(path) is not None
    if not plain.endswith("/"):
        return path == plain
    return plain == "./" or path == plain[:-1] or path.startswith(plain)


@functools.lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """What a path must match in full. Raises BadPattern."""
    return re.compile(_translated(pattern), re.DOTALL)


def _translated(pattern: str) -> str:
    out: list[str] = []
    position = depth = 0
    closing = _braces(pattern)
    while position < len(pattern):
        char, rest = pattern[position], pattern[position:]
        taken = 1
        if rest.startswith("**") and _whole_segment(pattern, position):
            at_end = position + 2 == len(pattern)
            taken = 2 if at_end else 3
            out.append(".+" if at_end else "(?:[^/]+/)*")
        elif char == "*":
            taken = len(rest) - len(rest.lstrip("*"))
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (found := re.match(r"\[(!|\^)?(\]?[^\]]*)\]", rest)):
            taken = found.end()
            out.append(_one_of(found[1], found[2]))
        elif char == "{" and position in closing:
            depth += 1
            out.append("(?:")
        elif char == "}" and position in closing.values():
            depth -= 1
            out.append(")")
        elif char == "," and depth:
            out.append("|")
        elif char == "\\":
            taken = 2
            out.append(re.escape(rest[1:2] or "\\"))
        else:
            out.append(re.escape(char))
        position += taken
    return "".join(out)


def _whole_segment(pattern: str, position: int) -> bool:
    before, after = pattern[position - 1 : position], pattern[position + 2 : position + 3]
    return before in ("", "/") and after in ("", "/")


def _one_of(negated: str | None, members: str) -> str:
    inner = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", members)
    regex = f"(?!/)[{'^' if negated else ''}{inner}]"
    try:
        re.compile(regex)
    except re.error:
        raise BadPattern(f"[{negated or ''}{members}] is no set of characters") from None
    return regex


def _braces(pattern: str) -> dict[int, int]:
    """Where each brace that has a partner opens and closes."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    escaped = False
    for position, char in enumerate(pattern):
        if char == "{" and not escaped:
            opened.append(position)
        elif char == "}" and not escaped and opened:
            pairs[opened.pop()] = position
        escaped = char == "\\" and not escaped
    return pairs


def combined(files: Files, patterns: Iterable[str]) -> list[str]:
    """What a list of patterns leaves, each acting on what those before it left: `!` takes files out."""
    chosen: set[str] = set()
    for pattern in patterns:
        if pattern.startswith("!"):
            chosen.difference_update(files.matching(pattern[1:]))
        else:
            chosen.update(files.matching(pattern))
    return sorted(chosen)
