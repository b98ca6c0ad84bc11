"""How tests stand in a mocha test file: marked blocks at its end, imports at its top; nobody else's bytes change."""

from __future__ import annotations

import hashlib
import posixpath
import re
import textwrap
from collections.abc import Sequence

import attrs

from pipeline.generators import javascript
from pipeline.results import Test

_IMPORT = re.compile(r"^import\b[^;]*?['\"][^'\"]+['\"];?[ \t]*$", re.MULTILINE)
_NAMED = re.compile(r"^import\s*\{(?P<names>[^}]*)\}\s*from\s*(?P<quote>['\"])(?P<module>[^'\"]+)(?P=quote);?\s*$")
_TITLE = re.compile(
    r"\b(?:it|test|specify)(?:\.\w+)?\(\s*(?P<quote>['\"`])(?P<title>(?:\\.|(?!(?P=quote)).)*)(?P=quote)", re.S
)
_TEST_START = re.compile(r"(?<![\w.$])(?:it|test)\s*\(")
MARK = "// Pins what the code does today, to detect mutants"


@attrs.frozen
class MochaSuite:
    framework: str = "mocha (describe/it), node:assert/strict, ES modules"

    def add(self, text: str, tests: Sequence[Test]) -> str:
        bom, body = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
        newline = "\r\n" if "\r\n" in body else "\n"
        body = body.replace("\r\n", "\n") if newline == "\r\n" else body
        body = _with_imports(body, [i for test in tests for i in test.imports])
        for test in tests:
            gap = "" if not body else "\n" if body.endswith("\n") else "\n\n"
            body = f"{body}{gap}{_block(test)}\n"
        return bom + (body.replace("\n", newline) if newline == "\r\n" else body)

    def remove(self, text: str, title: str) -> str:
        span = self._span(text, title)
        if span is None:
            return text
        start, end = span
        marked = re.compile(rf"(?:\r?\n)?{re.escape(MARK)}[^\n]*\n\Z").search(text, 0, start)
        start = marked.start() if marked else start
        line_end = re.compile(r"[ \t]*\r?\n").match(text, end)
        return text[:start] + text[line_end.end() if line_end else end :]

    def titles(self, text: str) -> tuple[str, ...]:
        spans = _spans(text)
        if not spans:  # none, or a file whose statements cannot be told apart without parsing it
            return tuple(_unescape(m["title"]) for m in _TITLE.finditer(text))
        return tuple(title for a, b in spans if (title := javascript.title(text[a:b])) is not None)

    def find(self, text: str, title: str) -> str | None:
        span = self._span(text, title)
        return None if span is None else text[slice(*span)].replace("\r\n", "\n")

    def bodies(self, text: str) -> tuple[str, ...]:
        return tuple(textwrap.dedent(text[start:end]) for start, end in _spans(text))

    def _span(self, text: str, title: str) -> tuple[int, int] | None:
        return next(((a, b) for a, b in _spans(text) if javascript.title(text[a:b]) == title), None)

    def imports(self, text: str, file: str, write: str) -> tuple[str, ...]:
        def moved(module: re.Match[str]) -> str:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(file), module[2]))
            there = posixpath.relpath(path, posixpath.dirname(write) or ".")
            return f"{module[1]}{there if there.startswith('.') else f'./{there}'}{module[3]}"

        statements = (m.group().strip() for m in _IMPORT.finditer(text))
        return tuple(re.sub(r"(['\"])(\.\.?/[^'\"]+)(['\"])", moved, s) for s in statements)


def _spans(text: str) -> list[tuple[int, int]]:
    """Where each `it(...)` and `test(...)` statement begins and ends."""
    blanked = javascript.blank(text)
    starts = [m.start() for m in _TEST_START.finditer(blanked)] if blanked else []
    return [(at, at + len(javascript.statement(text, blanked or "", at))) for at in starts]


def _block(test: Test) -> str:
    return f"{MARK} ({hashlib.sha256(test.code.encode()).hexdigest()[:8]}).\n{test.code}"


def _with_imports(body: str, imports: Sequence[str]) -> str:
    """The text with what these statements import, after its last import; a name that it has is not imported twice."""
    present = list(_IMPORT.finditer(body))
    had = {m.group().strip().rstrip(";") for m in present}
    named: dict[str, tuple[str, list[str]]] = {}  # module -> its quote, names
    for statement in had:
        if match := _NAMED.match(statement):
            named.setdefault(match["module"], (match["quote"], []))[1].extend(_names(match["names"]))
    new: dict[str, list[str]] = {}
    whole: list[str] = []
    for statement in imports:
        if match := _NAMED.match(statement.strip()):
            quote, names = named.setdefault(match["module"], (match["quote"], []))
            missing = [n for n in _names(match["names"]) if n not in names]
            names.extend(missing)
            new.setdefault(f"{quote}{match['module']}{quote}", []).extend(missing)
        elif statement.strip().rstrip(";") not in had:
            had.add(statement.strip().rstrip(";"))
            whole.append(statement.strip())
    lines = whole + [f"import {{ {', '.join(names)} }} from {module};" for module, names in new.items() if names]
    if not lines:
        return body
    added = "\n".join(lines)
    if present:
        end = present[-1].end()
        return f"{body[:end]}\n{added}{body[end:]}"
    return f"{added}\n\n{body}" if body else f"{added}\n"


def _names(listed: str) -> list[str]:
    return [n.strip() for n in listed.split(",") if n.strip()]


def _unescape(title: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), title)
