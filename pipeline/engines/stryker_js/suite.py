"""How tests stand in a JavaScript test file: marked blocks at its end, what they need imported at its top; all else to
the byte. Adding tests one after another gives the text that adding them together does."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import posixpath
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from pipeline.engines import growth, javascript
from pipeline.engines.stryker_js.runners import Runner, manifest, runner_of
from pipeline.mutants import block
from pipeline.results import Test

_IMPORT = re.compile(
    r"^import\b(?P<what>[\w$*{}\s,]*?)(?:\bfrom\s*)?(?P<quote>['\"])(?P<module>[^'\"\n]+)(?P=quote)"
    r"(?:\s*with\s*\{[^{}]*\})?(?:[ \t]*;)?",
    re.MULTILINE,
)
_REQUIRE = re.compile(
    r"^(?:const|let|var)\s+(?P<what>[\w$]+|\{[\w$\s,:]*\})\s*=\s*require\(\s*(?P<quote>['\"])(?P<module>[^'\"\n]+)(?P=quote)\s*\)"
    r"(?P<member>(?:\.[\w$]+)*)(?:[ \t]*;)?",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"""(?:\s|//[^\n]*\n|/\*.*?\*/)*(['"])use strict\1[ \t]*;?""", re.DOTALL)
_TEST_START = re.compile(r"(?<![\w.$])(?:it|test)\s*\(")
_TITLE = re.compile(
    r"(?<![\w.$])(?:it|test|specify)(?:\.\w+)?\s*\(\s*(?P<literal>(?P<q>['\"`])(?:\\.|(?!(?P=q))[^\\])*(?P=q))", re.S
)
_BOM = "\ufeff"
_MOST_NEIGHBOURS = 20  # files that are read to see how tests are written in a folder
MARK = "// Pins what the code does today, to detect mutants"


@attrs.frozen
class JavaScriptSuite:
    ordered: bool = True
    runner: Callable[[Path], Runner] = attrs.field(default=lambda root: runner_of(root, None), eq=False)

    def framework(self, root: Path, write: str) -> str:
        runner, near = self.runner(root), _neighbour(root / write)
        return ", ".join((_form(near, runner), _assertions(near, runner), _modules(root, write, near)))

    def add(self, text: str, tests: Sequence[Test]) -> str:
        bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
        newline = "\r\n" if re.match(r"[^\n]*\r\n", body) else "\n"
        for statement in dict.fromkeys(i.strip() for test in tests for i in test.imports):
            body = _importing(body, statement, newline)
        for test in tests:
            gap = "" if not body else newline if body.endswith("\n") else 2 * newline
            body += gap + (_block(test) + "\n").replace("\n", newline)
        return bom + body

    def remove(self, text: str, title: str) -> str:
        span = self._span(text, title)
        if span is None:
            return text
        start, end = span
        marked = re.compile(rf"(?:(?<=\n)\r?\n)?{re.escape(MARK)}[^\n]*\n\Z").search(text, 0, start)
        start = marked.start() if marked else start
        first = text[:start] in ("", _BOM)  # then the blank line is the one after it
        line_end = re.compile(r"[ \t]*\r?\n(?:\r?\n)?" if first else r"[ \t]*\r?\n").match(text, end)
        return text[:start] + text[line_end.end() if line_end else end :]

    def titles(self, text: str) -> tuple[str, ...]:
        blanked = _blank(text)
        # In a file that cannot be told apart without parsing it, a title in a comment or a string counts too.
        found = (m for m in _TITLE.finditer(text) if blanked is None or blanked[m.start()] == text[m.start()])
        read = (javascript.title(f"it({m['literal']},") for m in found)
        return tuple(dict.fromkeys(title for title in read if title is not None))

    def find(self, text: str, title: str) -> str | None:
        span = self._span(text, title)
        return None if span is None else text[slice(*span)].replace("\r\n", "\n")

    def bodies(self, text: str) -> tuple[str, ...]:
        return tuple(textwrap.dedent(text[start:end]) for start, end in _spans(text))

    def added(self, before: str, after: str) -> tuple[str, ...] | None:
        return growth.added(before, after)

    def excerpt(self, source: str, line: int) -> tuple[int, int]:
        return block(source.split("\n"), line - 1)

    def outline(self, source: str, line: int) -> str:
        return ""

    def _span(self, text: str, title: str) -> tuple[int, int] | None:
        return next(((a, b) for a, b in _spans(text) if javascript.title(text[a:b]) == title), None)

    def imports(self, text: str, file: str, write: str) -> tuple[str, ...]:
        def moved(module: re.Match[str]) -> str:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(file), module[2]))
            there = posixpath.relpath(path, posixpath.dirname(write) or ".")
            return f"{module[1]}{there if there.startswith('.') else f'./{there}'}{module[3]}"

        statements = (m.group().strip() for m in _imports(text.removeprefix(_BOM)))
        return tuple(re.sub(r"(['\"])(\.\.?(?:/[^'\"]*)?)(['\"])", moved, s) for s in statements)


def _neighbour(write: Path) -> str:
    """The text of a test file in the same folder; "" where there is none that can be read."""
    for path in sorted(write.parent.glob(f"*{write.suffix}"))[:_MOST_NEIGHBOURS]:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = path.read_text()
            if _TITLE.search(text):
                return text
    return ""


def _form(near: str, runner: Runner) -> str:
    made = Counter(re.findall(r"^\s*(it|test)\s*\(", near, re.MULTILINE)).most_common(1)
    call = made[0][0] if made else "it" if runner.describes else "test"
    flat = not runner.describes or (near and not re.search(r"^\s*describe\b", near, re.MULTILINE))
    return f"{runner.name} ({f'{call}(), without describe' if flat else f'describe/{call}'})"


def _assertions(near: str, runner: Runner) -> str:
    """What the tests there assert with, by what they call."""
    if re.search(r"""['"]chai['"]""", near):
        return "chai's expect" if re.search(r"\bexpect\s*\(", near) else "chai's assert"
    if runner.given:
        return f"assertions of the test's parameter ({runner.given})"
    if re.search(r"\bexpect\s*\(", near) or (not near and runner.name in ("vitest", "jest")):
        return f"{runner.name}'s expect" if runner.name in ("vitest", "jest") else "expect"
    strict = not near or re.search(r"assert/strict|\bstrict\b", near)
    return "node:assert/strict" if strict else "node:assert"


def _modules(root: Path, write: str, near: str) -> str:
    """The module system that a file of this name is read in."""
    required, imported = "CommonJS (require)", "ES modules"
    if write.endswith((".mjs", ".mts")):
        return imported
    if write.endswith((".cjs", ".cts")):
        return required
    if near:
        return imported if re.search(r"^import\b", near, re.MULTILINE) else required
    return imported if manifest(root).get("type") == "module" else required


@functools.lru_cache(maxsize=16)
def _blank(text: str) -> str | None:
    return javascript.blank(text)


def _spans(text: str) -> list[tuple[int, int]]:
    """Where each `it(...)` and `test(...)` statement begins and ends."""
    if _blank(text) is not None:
        return _statements(text)
    # What somebody wrote before or between our tests, and cannot be told apart, must not hide ours.
    cuts = [0, *(m.start() for m in re.finditer(rf"^{re.escape(MARK)}", text, re.MULTILINE)), len(text)]
    return [(a + start, a + end) for a, b in itertools.pairwise(cuts) for start, end in _statements(text[a:b])]


def _statements(text: str) -> list[tuple[int, int]]:
    blanked = _blank(text)
    starts = [m.start() for m in _TEST_START.finditer(blanked)] if blanked else []
    return [(at, at + len(javascript.statement(text, blanked or "", at))) for at in starts]


def _block(test: Test) -> str:
    return f"{MARK} ({hashlib.sha256(test.code.encode()).hexdigest()[:8]}).\n{test.code}"


def _imports(text: str) -> list[re.Match[str]]:
    """The statements that bring names in, of both module systems, in their order."""
    blanked = _blank(text)
    found = [*_IMPORT.finditer(text), *_REQUIRE.finditer(text)]
    real = (m for m in found if blanked is None or blanked.startswith(m.group().split(None, 1)[0][:3], m.start()))
    return sorted(real, key=lambda m: m.start())


def _importing(text: str, statement: str, newline: str) -> str:
    """The text with what an import statement imports; a name that it imports already, from wherever, it keeps."""
    present = _imports(text)
    taken = {name for m in present for name, _ in _names(m["what"])}
    if _DIRECTIVE.fullmatch(statement):  # of a file that is there, its authors have said how strict it is
        return text or statement + newline
    new = _IMPORT.fullmatch(statement) or _REQUIRE.fullmatch(statement)
    wanted = _names(new["what"]) if new else []
    missing = [part for name, part in wanted if name not in taken]
    if (new and not missing and (wanted or any(m["module"] == new["module"] for m in present))) or any(
        m.group() == statement for m in present
    ):
        return text
    if new and re.fullmatch(r"\s*\{[^{}]*\}\s*", new["what"]):
        for m in present:
            same = m["module"] == new["module"] and _kind(m) == _kind(new)
            if same and (listed := re.search(r"\{([^{}]*[\w$])[^{}]*\}", m["what"])):
                start, at = m.start("what") + listed.start(1), m.start("what") + listed.end(1)
                names = text[start:at].strip().split(", ")
                if names == sorted(names, key=str.casefold):  # as somebody, or a linter, keeps them
                    start = at - len(", ".join(names))
                    return f"{text[:start]}{', '.join(sorted([*names, *missing], key=str.casefold))}{text[at:]}"
                return f"{text[:at]}, {', '.join(missing)}{text[at:]}"
        before, after = statement[: new.start("what")], statement[new.end("what") :]
        spaces = re.fullmatch(r"(\s*).*?(\s*)", new["what"], re.DOTALL)
        assert spaces
        statement = f"{before}{spaces[1]}{{ {', '.join(missing)} }}{spaces[2]}{after}"
    if present:
        end = present[-1].end()
        comment = re.compile(r"[ \t]*(?://[^\r\n]*)?(?=\r?$)", re.MULTILINE).match(text, end)
        end = comment.end() if comment else end
        return f"{text[:end]}{newline}{statement}{text[end:]}"
    if directive := _DIRECTIVE.match(text):
        end = directive.end()
        return f"{text[:end]}{2 * newline}{statement}{text[end:]}"
    return f"{statement}{newline}{newline}{text}" if text else f"{statement}{newline}"


def _kind(statement: re.Match[str]) -> tuple[bool, str]:
    """What must be equal for two statements to be made one: the module system, and what of the module is taken."""
    return statement.re is _REQUIRE, statement.groupdict().get("member") or ""


def _names(what: str) -> list[tuple[str, str]]:
    """What an import clause brings in: each name as the file knows it, and how the clause says it."""
    return [(re.split(r"[\s:]+", part.strip())[-1], part.strip()) for part in re.split(r"[{},]", what) if part.strip()]
