"""What can be told of a C# file without parsing it: where its strings end, its types, and their members. Pure.

It reads tokens and braces, not grammar. Where it cannot be sure it says None, and the caller refuses the code.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal

import attrs

_OPENING = re.compile(r"//|/\*|'|(?P<dollars>\$*)(?P<at>@?)(?P<more>\$*)(?P<quotes>\"+)")
_CHAR = re.compile(r"'(?:\\[^\n][^'\n]*|[^'\\\n])'")
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_VERBATIM = re.compile(r'"(?:""|[^"])*"')
_CLOSES = {")": "(", "]": "[", "}": "{"}
_NAMESPACE = re.compile(r"\bnamespace\s+([\w.]+)\s*$")
_TYPE = re.compile(r"\b(?:class|struct|interface|record(?:\s+(?:class|struct))?|enum)\s+(@?\w+)")
_ATTRIBUTES = re.compile(r"\s*\[")
_NAME = re.compile(r"(@?\w+)\s*(?:<[^<>()]*>)?\s*\(")
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)


@attrs.frozen
class Member:
    """A piece of a file. `start` to `end`: all of it, attributes included, comments before it not."""

    kind: Literal["namespace", "type", "member"]
    name: str  # of a type or namespace: in full, as a test's name has it (Shop.Tests.Outer+Inner)
    start: int
    end: int
    head: str  # blanked: up to its body
    body: tuple[int, int] | None = None  # between its braces
    inside: str = ""  # the full name of the type, or namespace, around it


@functools.lru_cache(maxsize=32)
def blank(code: str) -> str | None:
    """`code` with strings, characters, comments and # lines turned into spaces (quotes stay), and nothing moved. None
    where something isn't closed."""
    out: list[str] = []
    at = 0
    while match := _OPENING.search(code, at):
        out.append(code[at : match.start()])
        end, keep = _closed(code, match)
        if end < 0:
            return None
        text = code[match.start() : end]
        out.append(f'"{_spaces(text[1:-1])}"' if keep else _spaces(text))
        at = end
    out.append(code[at:])
    blanked = _DIRECTIVE.sub(lambda m: " " * len(m[0]), "".join(out))
    open_: list[str] = []
    for bracket in re.findall(r"[()\[\]{}]", blanked):
        if bracket in "([{":
            open_.append(bracket)
        elif not open_ or open_.pop() != _CLOSES[bracket]:
            return None
    return None if open_ else blanked


def essence(code: str) -> str | None:
    """`code` without comments, and with one blank where there is space between its tokens; strings to the byte, and all
    of it where there are # lines. None where something isn't closed."""
    if blank(code) is None:
        return None
    if _DIRECTIVE.search(code):
        return code
    out: list[str] = []
    plain = ""  # since the last string
    at = 0
    while match := _OPENING.search(code, at):
        end, keep = _closed(code, match)
        plain += code[at : match.start()]
        if keep:
            out += [" ".join(re.split(r"\s+", plain)), code[match.start() : end]]
        plain = "" if keep else f"{plain} "
        at = end
    return "".join([*out, " ".join(re.split(r"\s+", plain + code[at:]))]).strip()


def _closed(code: str, opening: re.Match[str]) -> tuple[int, bool]:
    """Where what opens here ends (-1: it doesn't), and whether it is a value, not a comment."""
    at, text = opening.start(), opening[0]
    if text == "//":
        end = code.find("\n", at)
        return (len(code) if end < 0 else end), False
    if text == "/*":
        end = code.find("*/", at + 2)
        return (end + 2 if end >= 0 else -1), False
    if text == "'":
        found = _CHAR.match(code, at)
        return (found.end() if found else -1), True
    quotes, first = len(opening["quotes"]), opening.start("quotes")
    interpolated = bool(opening["dollars"] or opening["more"])
    if quotes >= 3 and not opening["at"]:  # a raw string: as many quotes end it
        closing = re.compile(rf'(?<!")"{{{quotes}}}(?!")').search(code, opening.end())
        return (closing.end() if closing else -1), True
    if interpolated:
        return _interpolated(code, first + 1, verbatim=bool(opening["at"])), True
    text_end = (_VERBATIM if opening["at"] else _STRING).match(code, first)
    return (text_end.end() if text_end else -1), True


def _interpolated(code: str, at: int, *, verbatim: bool) -> int:
    """Where the $-string whose text begins at `at` ends, or -1."""
    while at < len(code):
        char = code[at]
        if code.startswith(("{{", "}}"), at) or (verbatim and code.startswith('""', at)):
            at += 2
        elif char == '"':
            return at + 1
        elif char == "\\" and not verbatim:
            at += 2
        elif char == "{":
            at = _hole(code, at + 1)
            if at < 0:
                return -1
        elif char == "\n" and not verbatim:
            return -1
        else:
            at += 1
    return -1


def _hole(code: str, at: int) -> int:
    depth = 1
    while at < len(code):
        opening = _OPENING.match(code, at)
        if opening and opening[0] != "//":
            at = _closed(code, opening)[0]
            if at < 0:
                return -1
            continue
        depth += (code[at] == "{") - (code[at] == "}")
        at += 1
        if not depth:
            return at
    return -1


def _spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


@functools.lru_cache(maxsize=32)
def members(code: str) -> tuple[Member, ...] | None:
    """Every namespace, type and member of a type, in order; None where braces or strings don't match."""
    text = blank(code)
    return None if text is None else tuple(_members(text, 0, len(text), "", "file"))


def _members(text: str, at: int, end: int, inside: str, where: str) -> Iterator[Member]:
    """What stands between two places. where: file or namespace | type."""
    start = at
    depth = 0
    while at < end:
        char = text[at]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif depth == 0 and char == ";":
            head = text[start:at]
            scoped = _NAMESPACE.search(head) if where == "file" else None
            if scoped:
                inside = f"{scoped[1]}"
                yield Member("namespace", inside, _begin(text, start), at + 1, head.strip())
            elif head.strip() and not head.strip().startswith(("using ", "global ", "extern ")):
                yield from _one(text, start, at + 1, head, None, inside, where)
            start = at + 1
        elif depth == 0 and char == "{":
            close = _close(text, at)
            head, body = text[start:at], (at + 1, close - 1)
            after = close
            if where == "type" and not _TYPE.search(_without_attributes(head)):
                # A property's initialiser, or a field's braces, go on to a semicolon.
                more = re.compile(r"\s*=(?![=>])[^;{}]*(?:\{[^{}]*\}[^;{}]*)*;|\s*;").match(text, close)
                if "=" in _declared(head)[1]:
                    semicolon = text.find(";", close)
                    after = semicolon + 1 if semicolon >= 0 else close
                elif more:
                    after = more.end()
            yield from _one(text, start, after, head, body, inside, where)
            at = start = after
            continue
        at += 1


def _one(
    text: str, start: int, end: int, head: str, body: tuple[int, int] | None, inside: str, where: str
) -> Iterator[Member]:
    first = _begin(text, start)
    plain = _without_attributes(head)
    if body and (space := _NAMESPACE.search(plain)):
        name = f"{inside}.{space[1]}" if inside else space[1]
        yield Member("namespace", name, first, end, head.strip(), body, inside)
        yield from _members(text, *body, name, "namespace")
        return
    if (type_ := _TYPE.search(plain)) and not re.search(r"[(=]", plain[: type_.start()]):
        joint = "+" if where == "type" else "."
        name = f"{inside}{joint}{type_[1]}" if inside else type_[1]
        yield Member("type", name, first, end, head.strip(), body, inside)
        if body and not re.search(r"\benum\s", plain[: type_.end()]):
            yield from _members(text, *body, name, "type")
        return
    declared = _declared(head)[0]
    name = _NAME.search(declared)
    words = re.findall(r"@?\w+", declared)
    yield Member("member", name[1] if name else (words or [""])[-1], first, end, head.strip(), body, inside)


def _declared(head: str) -> tuple[str, str]:
    """A member's declaration without attributes and the inside of brackets, and what is assigned to it, if anything."""
    plain = _without_attributes(head)
    while re.search(r"\([^()]+\)", plain):
        plain = re.sub(r"\([^()]+\)", "()", plain)
    found = re.search(r"(?<![!<>=])=", plain)
    return (plain[: found.start()], plain[found.start() :]) if found else (plain, "")


def _begin(text: str, start: int) -> int:
    return start + len(text[start:]) - len(text[start:].lstrip())


def _without_attributes(head: str) -> str:
    """A member's head from its first modifier on."""
    at = 0
    while match := _ATTRIBUTES.match(head, at):
        at = _close(head, match.end() - 1)
    return head[at:]


def attributes(member: Member) -> tuple[str, ...]:
    """Names of the attributes in front of a member, without `Attribute`."""
    plain = _without_attributes(member.head)
    ahead = member.head[: len(member.head) - len(plain)]
    names = re.findall(r"(?:\[|,)\s*(?:\w+\s*:\s*)?(?:[\w.]+\.)?(\w+)", _without_arguments(ahead))
    return tuple(name.removesuffix("Attribute") for name in names)


def _without_arguments(text: str) -> str:
    while re.search(r"\([^()]*\)", text):
        text = re.sub(r"\([^()]*\)", "", text)
    return text


def _close(text: str, at: int) -> int:
    """The place after the bracket that closes the one at `at`, in blanked text whose brackets match."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if not depth:
            return place + 1
    return len(text)


def fixed_lines(code: str) -> frozenset[int]:
    """Indices of lines that begin inside a string whose text would change with their indentation (`@"..."`)."""
    fixed: set[int] = set()
    at = 0
    while match := _OPENING.search(code, at):
        end, _ = _closed(code, match)
        if end < 0:
            break
        if match["at"]:
            first = code.count("\n", 0, match.start())
            fixed.update(range(first + 1, first + 1 + code.count("\n", match.start(), end)))
        at = end
    return frozenset(fixed)
