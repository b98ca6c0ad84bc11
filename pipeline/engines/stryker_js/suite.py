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

    def remove(self, text: str, test: Test) -> str:
        newline = "\r\n" if "\r\n" in text else "\n"
        block = (_block(test) + "\n").replace("\n", newline)
        for gap in (newline, ""):
            if gap + block in text:
                return text.replace(gap + block, "", 1)
        return text

    def titles(self, text: str) -> tuple[str, ...]:
        return tuple(_unescape(m["title"]) for m in _TITLE.finditer(text))

    def bodies(self, text: str) -> tuple[str, ...]:
        blanked = javascript.blank(text)
        starts = _TEST_START.finditer(blanked) if blanked else ()
        found = (javascript.statement(text, blanked or "", m.start()) for m in starts)
        return tuple(textwrap.dedent(body) for body in found)

    def imports(self, text: str, file: str, write: str) -> tuple[str, ...]:
        def moved(module: re.Match[str]) -> str:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(file), module[2]))
            there = posixpath.relpath(path, posixpath.dirname(write) or ".")
            return f"{module[1]}{there if there.startswith('.') else f'./{there}'}{module[3]}"

        statements = (m.group().strip() for m in _IMPORT.finditer(text))
        return tuple(re.sub(r"(['\"])(\.\.?/[^'\"]+)(['\"])", moved, s) for s in statements)

    def holds(self, text: str, test: Test) -> bool:
        return _block(test) in text.replace("\r\n", "\n")


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
