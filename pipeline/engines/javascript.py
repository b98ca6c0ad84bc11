"""What can be told of a piece of JavaScript without parsing it: where its strings end, and its statements. Pure.

It reads tokens, not grammar. Where it cannot be sure it says None, and the caller refuses the code.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<word>[\w$]+)"
    r"|(?P<space>\s+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_TEMPLATE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*(?P<end>`|\$\{)", re.DOTALL)
_REGEX = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/\w*")
_BEFORE_REGEX = frozenset("(,=:[!&|?{;+-*%<>~^")
_KEYWORDS_BEFORE_REGEX = frozenset(
    ("return", "typeof", "case", "delete", "void", "throw", "new", "else", "do", "in", "instanceof", "await", "yield")
)
_MAY_BE_EITHER = frozenset((")", "}", "of"))  # before a regular expression or a division: only grammar tells
_CLOSES = {")": "(", "]": "[", "}": "{"}
_TEST = re.compile(r"\s*(?:it|test)\s*\(\s*")
_ESCAPE = re.compile(
    r"\\(?:u\{(?P<code>[0-9a-fA-F]{1,6})\}|u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})|(?P<char>.))", re.S
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}


def blank(code: str) -> str | None:
    """`code` with the inside of strings, comments and regular expressions turned into spaces, and nothing moved; code
    in `${}` stays. None where something isn't closed, or a word is written with escapes."""
    out: list[str] = []
    open_: list[str] = []  # brackets waiting for their end; "`" is the `${` of a template
    before = last = ""  # the last two tokens that count
    at = 0
    while at < len(code):
        match = _TOKEN.match(code, at)
        assert match  # `other` is any character
        kind, text = match.lastgroup, match[0]
        regex = _REGEX.match(code, at) if text == "/" else None
        if regex and _regex_follows(before, last):
            kind, text = "string", regex[0]
        elif regex and last in _MAY_BE_EITHER and re.search(r"['\"`/]", regex[0].rpartition("/")[0][1:]):
            return None  # taken for a division, a quote in it would hide the code after it
        if text == "`" or (text == "}" and open_[-1:] == ["`"]):
            template = _TEMPLATE.match(code, at + 1)
            if not template:
                return None
            if text == "}":
                open_.pop()
            if template["end"] == "${":
                open_.append("`")
            end = template["end"]
            inside = template.end() - at - 1 - len(end)
            out.append(text + " " * inside + end)
            before, last = last, "{" if end == "${" else end
            at = template.end()
            continue
        if kind == "comment" or kind == "space":
            out.append(_spaces(text))
        elif kind == "string":
            out.append(text[0] + " " * (len(text) - 2) + text[-1])
            before, last = last, "''"
        else:
            if text in ("'", '"', "\\") or (text == "/" and code.startswith("/*", at)):
                return None
            if text in "([{":
                open_.append(text)
            elif text in _CLOSES and (not open_ or open_.pop() != _CLOSES[text]):
                return None
            out.append(text)
            before, last = last, text
        at += len(text)
    return None if open_ else "".join(out)


def _regex_follows(before: str, last: str) -> bool:
    """Whether `/` after these two tokens opens a regular expression, for certain."""
    if last in _BEFORE_REGEX:
        return last + before not in ("++", "--")
    return not last or (last in _KEYWORDS_BEFORE_REGEX and before != ".")


def _spaces(text: str) -> str:
    return "".join("\n" if char == "\n" else " " for char in text)


def tests(code: str) -> tuple[str, ...] | None:
    """The `it(...)` or `test(...)` statements that `code` is made of, without the comments between them. None where it
    is anything else or more."""
    text = blank(code)
    if text is None:
        return None
    found: list[str] = []
    at = 0
    while text[at:].strip():
        match = _TEST.match(text, at)
        if not match:
            return None
        end = close(text, text.index("(", at))
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        semicolon = re.compile(r"\s*;").match(text, end)
        at = semicolon.end() if semicolon else end
        found.append(code[start:at])
    return tuple(found) or None


def statement(code: str, blanked: str, at: int) -> str:
    """The call that begins at `at`, to its closing bracket and a semicolon after it. `blanked`: of the whole code."""
    end = close(blanked, blanked.index("(", at))
    return code[at : end + 1] if code[end : end + 1] == ";" else code[at:end]


def close(text: str, at: int) -> int:
    """The place after the bracket that closes the one at `at`, in blanked text whose brackets match."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if not depth:
            return place + 1
    return len(text)


def title(test: str) -> str | None:
    """The title of one test statement as it will be when it runs; None where that isn't a plain string."""
    start = _TEST.match(test)
    if not start:
        return None
    literal = re.compile(r"(?P<q>['\"`])(?P<text>(?:\\.|(?!(?P=q))[^\\])*)(?P=q)\s*,", re.DOTALL).match(
        test, start.end()
    )
    if not literal or (literal["q"] == "`" and "${" in literal["text"]):
        return None
    return _ESCAPE.sub(_unescape, literal["text"])


def _unescape(match: re.Match[str]) -> str:
    number = match["code"] or match["four"] or match["two"]
    if number:
        return chr(min(int(number, 16), 0x10FFFF))
    return _ESCAPED.get(match["char"], match["char"])
