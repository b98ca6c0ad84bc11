"""How tests stand in a C# test file: marked methods at the end of a class, the directives they need at its top; all
else to the byte. Adding tests one after another gives the text that adding them together does.

What a new file needs beside its tests goes the way imports go: `namespace Shop.Tests;` (or without the semicolon, where
the house writes braces) and `public class PricingMutantTests` are among a test's imports, and used only where there is
no class yet.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

import attrs

from pipeline.engines import EngineError, csharp
from pipeline.engines.stryker_net import projects
from pipeline.mutants import block
from pipeline.results import Test

TEST_ATTRIBUTES = frozenset(
    ("Fact", "Theory", "Test", "TestCase", "TestCaseSource", "TestMethod", "DataTestMethod", "SkippableFact")
)
_FRAMEWORKS = {  # package, in lower case -> what a prompt says of it
    "nunit": "NUnit ([Test], Assert.That)",
    "mstest": "MSTest ([TestMethod], Assert.AreEqual)",
    "mstest.testframework": "MSTest ([TestMethod], Assert.AreEqual)",
    "xunit.v3": "xunit v3 ([Fact], Assert.Equal)",
    "xunit": "xunit ([Fact], Assert.Equal)",
}
MARK = "// Pins what the code does today, to detect mutants"
_BOM = "\ufeff"
_USING = re.compile(r"^[ \t]*using\s+(?!var\b)[^;()\n]+;", re.MULTILINE)
_STEP = "    "


@attrs.frozen
class CSharpSuite:
    ordered: bool = False

    def framework(self, root: Path, write: str) -> str:
        try:
            project = projects.read(root).owner(write)
        except EngineError:  # said by what measures
            project = None
        packages = project.packages if project else frozenset[str]()
        name = next((said for package, said in _FRAMEWORKS.items() if package in packages), "the test framework")
        return f"C#, {name}, in the style of the existing tests below; one test is one method"

    def add(self, text: str, tests: Sequence[Test]) -> str:
        if not tests:
            return text
        bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
        newline = "\r\n" if re.match(r"[^\n]*\r\n", body) else "\n"
        body = body.replace("\r\n", "\n")
        statements = list(dict.fromkeys(i.strip() for test in tests for i in test.imports))
        if not body.strip():
            body = _new_file(statements)
        else:
            body = _using(body, [s for s in statements if _USING.fullmatch(s)])
        for test in tests:
            body = _insert(body, test)
        return bom + body.replace("\n", newline)

    def remove(self, text: str, title: str) -> str:
        found = _find(text, title)
        if found is None:
            return text
        start = text.rfind("\n", 0, found.start) + 1
        marked = re.compile(rf"[ \t]*{re.escape(MARK)}[^\n]*\n\Z").search(text, 0, start)
        start = marked.start() if marked else start
        line_end = re.compile(r"[ \t]*\r?\n").match(text, found.end)
        end = line_end.end() if line_end else found.end
        before = re.compile(r"(?<=\n)[ \t]*\r?\n\Z").search(text, 0, start)
        if before:
            start = before.start()
        elif after := re.compile(r"[ \t]*\r?\n").match(text, end):
            end = after.end()
        return text[:start] + text[end:]

    def titles(self, text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(member.name for member in tests_of(text)))

    def find(self, text: str, title: str) -> str | None:
        found = _find(text, title)
        return None if found is None else _outdented(text, found)

    def bodies(self, text: str) -> tuple[str, ...]:
        return tuple(_outdented(text, member) for member in tests_of(text))

    def imports(self, text: str, file: str, write: str) -> tuple[str, ...]:
        text = text.removeprefix(_BOM).replace("\r\n", "\n")
        members = csharp.members(text) or ()
        blanked = csharp.blank(text) or ""
        top = [m.group().strip() for m in _USING.finditer(text) if blanked[m.start() : m.end()].strip()]
        space = next((m for m in members if m.kind == "namespace"), None)
        named = [] if space is None else [f"namespace {space.name}" + (";" if space.body is None else "")]
        marked = any("TestMethod" in csharp.attributes(m) for m in tests_of(text))
        return (*top, *named, f"{'[TestClass] ' if marked else ''}public class {class_of(write)}")

    def added(self, before: str, after: str) -> tuple[str, ...] | None:
        return None  # one file changed is another assembly, in which every mutant has another id

    def excerpt(self, source: str, line: int) -> tuple[int, int]:
        """The member alone, with the comments right above it."""
        around = _member_at(source, line)
        if around is None:
            return block(source.split("\n"), line - 1)
        first, last = source.count("\n", 0, around.start), source.count("\n", 0, around.end)
        lines = source.split("\n")
        while first and lines[first - 1].lstrip().startswith("//"):
            first -= 1
        return first, last + 1

    def outline(self, source: str, line: int) -> str:
        """The type's own signature, and those of its members."""
        around = _member_at(source, line)
        found = csharp.members(source) or ()
        type_ = next((m for m in found if around and m.kind == "type" and m.name == around.inside), None)
        if type_ is None:
            return ""
        inside = [m for m in found if m.kind == "member" and m.inside == type_.name]
        space = [f"namespace {type_.inside};"] if type_.inside else []
        return "\n".join([*space, _signature(source, type_), *(f"{_STEP}{_signature(source, m)}" for m in inside)])


def _member_at(source: str, line: int) -> csharp.Member | None:
    """The innermost member of a type that a line (from 1) lies in."""
    at = sum(len(text) + 1 for text in source.split("\n")[: line - 1])
    at += len(source[at:]) - len(source[at:].lstrip(" \t"))
    found = [m for m in csharp.members(source) or () if m.kind == "member" and m.start <= at < m.end]
    return found[-1] if found else None


def _signature(source: str, member: csharp.Member) -> str:
    """A member up to its body, on one line."""
    text = source[member.start : member.start + len(member.head)]
    head = re.split(r"=>|(?<![=!<>])=(?!=)", text)[0] if member.kind == "member" and "(" not in text else text
    head = re.split(r"\)\s*=>", head)[0] + (")" if re.search(r"\)\s*=>", head) else "")
    return " ".join(head.split())


def class_of(write: str) -> str:
    """The class that a new write file is made with."""
    stem = re.sub(r"\W", "_", posixpath.basename(write).partition(".")[0])
    return stem if not stem[:1].isdigit() else f"_{stem}"


def tests_of(text: str) -> tuple[csharp.Member, ...]:
    """The test methods of a file."""
    found = csharp.members(text) or ()
    return tuple(m for m in found if m.kind == "member" and not TEST_ATTRIBUTES.isdisjoint(csharp.attributes(m)))


def classes_of(text: str) -> tuple[str, ...]:
    """Full names of the types of a file that hold tests of their own, or inherit what may be some."""
    found = csharp.members(text) or ()
    holders = {m.inside for m in tests_of(text)}
    return tuple(m.name for m in found if m.kind == "type" and (m.name in holders or _inherits(m)))


def _inherits(type_: csharp.Member) -> bool:
    return bool(re.search(r"\bclass\b[^:]*:", type_.head)) and "Test" in type_.name


def _find(text: str, title: str) -> csharp.Member | None:
    return next((m for m in tests_of(text) if m.name == title), None)


def _outdented(text: str, member: csharp.Member) -> str:
    code = text[member.start : member.end]
    start = text.rfind("\n", 0, member.start) + 1
    margin = text[start : member.start]
    lines = code.replace("\r\n", "\n").split("\n")
    fixed = csharp.fixed_lines(code.replace("\r\n", "\n"))
    if margin.strip():
        return "\n".join(lines)
    return "\n".join(line if i in fixed else line.removeprefix(margin) for i, line in enumerate(lines))


def _indented(code: str, margin: str) -> str:
    fixed = csharp.fixed_lines(code)
    lines = enumerate(code.split("\n"))
    return "\n".join(line if i in fixed or not line else f"{margin}{line}" for i, line in lines)


def _new_file(statements: Sequence[str]) -> str:
    usings = [s for s in statements if _USING.fullmatch(s)]
    space = next((s for s in statements if s.startswith("namespace ")), "")
    type_ = next((s for s in statements if re.search(r"\bclass \w+$", s)), "public class MutantTests")
    type_ = type_.replace("] public", "]\npublic")
    head = "".join(f"{line}\n" for line in usings) + ("\n" if usings else "")
    if space and not space.endswith(";"):
        inner = "\n".join(f"{_STEP}{line}" for line in f"{type_}\n{{\n}}".split("\n"))
        return f"{head}{space}\n{{\n{inner}\n}}\n"
    return f"{head}{space}{chr(10) * 2 if space else ''}{type_}\n{{\n}}\n"


def _using(text: str, wanted: Sequence[str]) -> str:
    """The text with what its top does not use yet."""
    blanked = csharp.blank(text) or text
    present = list(_USING.finditer(blanked))
    have = {" ".join(m.group().split()) for m in present}
    missing = [s for s in wanted if " ".join(s.split()) not in have]
    if not missing:
        return text
    lines = "\n".join(missing)
    if present:
        end = present[-1].end()
        return f"{text[:end]}\n{lines}{text[end:]}"
    return f"{lines}\n\n{text}"


def _insert(text: str, test: Test) -> str:
    """The text with a test before the end of its last outermost class."""
    types = [m for m in csharp.members(text) or () if m.kind == "type" and m.body and "+" not in m.name]
    if not types:
        raise ValueError("no class to put the test into")  # the file is somebody's own, and cannot be read
    assert types[-1].body is not None
    start, end = types[-1].body
    line = text.rfind("\n", 0, end) + 1  # of the closing brace
    margin = text[line:end] if not text[line:end].strip() else ""
    empty = not text[start:end].strip()
    code = _indented(f"{MARK} ({hashlib.sha256(test.code.encode()).hexdigest()[:8]}).\n{test.code}", margin + _STEP)
    at = line if line > start else end
    gap = "" if empty else "\n"
    before = "\n" if line <= start else ""  # `{ }` on one line
    return f"{text[:at]}{before}{gap}{code}\n{text[at:]}"
