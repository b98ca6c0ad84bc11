"""A model's text → candidate tests, or why not. Pure, strict, and never raises for any text.

This is a first net only: it keeps accidents and the plain ways to cheat from costing a proof. What it lets through is
still run apart from the checkout, proved against every mutant it claims, and checked by git for any other change.
"""

from __future__ import annotations

import json
import posixpath
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import attrs

from ..engines import javascript
from ..results import Outcome, Test
from . import csharp
from .base import Ask, one_line

_LONGEST = 1 << 20  # characters: 40 tests are a tenth of it
_FENCE = re.compile(r"[ \t]*(`{3,})([^`]*)")
_OBJECT = re.compile(r'\{\s*"')
_IMPORT = re.compile(r"import\s+(?:(?P<names>[\w$*{}\s,]+?)\s*from\s*)?(?P<q>['\"])(?P<of>[^'\"\n\\]+)(?P=q)\s*;?")
_REQUIRE = re.compile(
    r"(?:const|let|var)\s+(?P<names>[\w$]+|\{[\w$\s,:]*\})\s*=\s*"
    r"require\(\s*(?P<q>['\"])(?P<of>[^'\"\n\\]+)(?P=q)\s*\)(?:\.strict)?\s*;?"
)
_FUNCTION = re.compile(
    r"(?:it|test)\s*\(\s*(['\"`])\s*\1\s*,\s*(?:async\b\s*)?(?:function\b|\([^()]*\)\s*=>|[\w$]+\s*=>)"
)
_TEST_FILE = re.compile(r"[._-](?:test|spec)\.[cm]?[jt]sx?$")
_BY_NAME = re.compile(r"\[\s*(['\"`])(?:constructor|__proto__|only|skip)\1\s*\]")
_ASSERT = re.compile(r"(node:)?assert(/strict)?")
_RUNNER = re.compile(r"node:test|vitest|@jest/globals|mocha|tape")
_LIBRARY = re.compile(r"chai|expect|vitest|@jest/globals")
_FROM_RUNNER = frozenset(("it", "test", "expect", "assert"))  # of what tests run in: no hooks, no mocks
# Characters that a reviewer does not see, or sees elsewhere: controls, lone surrogates, line separators, bidi marks.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FREE = r"(?<![\w$.])"  # a name of its own, not a property

# What a test has no business with, in code without its strings and comments. The name is the reason that is recorded.
_FORBIDDEN: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (reason, re.compile(pattern))
    for reason, pattern in (
        (
            "only or skip",
            r"\b(it|test|describe|context|specify|suite|this)\s*(\?\.|\.|\[)\s*(only|skip|todo|each|['\"`])",
        ),
        ("only or skip", r"\b(it|test|describe|context|specify|suite|this)\s*(\?\.|\.)\s*(only|skip)\b"),
        ("only or skip", r"\b(it|describe)\s*\[|" + _FREE + r"(x|f)(it|test|describe|context|specify)\b"),
        ("a test in the test", r"(?<=[^\w$.])(it|test|describe|context|specify|suite)\s*\("),
        ("a hook in the test", r"(?<=[^\w$.])(before|after)(Each|All)?\s*\("),
        ("process", _FREE + r"process\b(?!\s*:)"),
        ("another process", _FREE + r"(child_process|worker_threads|cluster)\b"),
        ("eval", _FREE + r"eval\b"),
        ("Function constructor", _FREE + r"Function\b|\.\s*constructor\s*([(\[`]|\.\s*constructor\b)"),
        ("import or require in the code", _FREE + r"(import|require|createRequire)\b(?!\s*:)"),
        ("global object", _FREE + r"(globalThis|global)\b(?!\s*:)"),
        ("network", _FREE + r"(fetch|WebSocket|XMLHttpRequest|EventSource)\b(?!\s*[:=])"),
    )
)


# Keys by which a reply means files. Where tests go is not for it to say, and it may do nothing else.
_FILE_KEYS = frozenset(
    (
        "file",
        "files",
        "filename",
        "path",
        "write",
        "edit",
        "edits",
        "patch",
        "diff",
        "delete",
        "remove",
        "rename",
        "move",
    )
)


@attrs.frozen
class Refused:
    """One test of a reply that is not tried, and why."""

    title: str
    outcome: Outcome
    reason: str


@attrs.frozen
class Parsed:
    """What a reply holds. A reply that says, well-formed, that there is no test is OK and holds none."""

    tests: tuple[Test, ...]
    refused: tuple[Refused, ...]
    outcome: Outcome
    detail: str = ""  # one line where outcome is not OK


class _Refusal(Exception):
    """Why one test is not tried."""

    def __init__(self, reason: str, outcome: Outcome = Outcome.REJECTED) -> None:
        super().__init__(reason)
        self.outcome = outcome


def parse(text: str, ask: Ask, origin: str = "") -> Parsed:
    """The candidate tests in a model's reply to `ask`; their kills are mutant keys. `origin`: the generator's name."""
    if not text.strip():
        return Parsed((), (), Outcome.EMPTY_REPLY, "the reply is empty")
    try:
        found = _object(text)
    except _Refusal as refusal:
        return Parsed((), (), Outcome.UNPARSABLE, str(refusal))
    units = _from_code_block(text, ask) if found is None else found["tests"]
    if units is None:
        return Parsed((), (), Outcome.UNPARSABLE, "neither the JSON object nor a block of whole tests is in the reply")
    tests: list[Test] = []
    refused: list[Refused] = []
    if found is not None and (beside := _names_a_file(found, ask)):
        refused.append(Refused("", Outcome.OUTSIDE_SCOPE, beside))
    taken = set(ask.titles_taken)
    for unit in units:
        try:
            test = _test(unit, ask, taken, origin)
        except _Refusal as refusal:
            refused.append(Refused(_title(unit), refusal.outcome, str(refusal)))
        else:
            taken.add(test.title)
            tests.append(test)
    if refused and not tests:
        return Parsed(
            (), tuple(refused), Outcome.REJECTED, f"every test was refused, the first for: {refused[0].reason}"
        )
    return Parsed(tuple(tests), tuple(refused), Outcome.OK)


def _object(text: str) -> dict[str, Any] | None:
    """The one JSON object that is asked for, which has a list of tests; None where the reply has no such object."""
    if len(text) > _LONGEST:
        raise _Refusal(f"a reply of {len(text)} characters")
    decoder = json.JSONDecoder(strict=False)  # models write line breaks into strings
    found: list[dict[str, Any]] = []
    at = 0
    while start := _OBJECT.search(text, at):
        at = start.start() + 1
        try:
            value, at = decoder.raw_decode(text, start.start())
        except RecursionError:
            raise _Refusal("the JSON is nested too deeply") from None
        except ValueError:
            continue
        if "tests" in value:
            if not isinstance(value["tests"], list):
                raise _Refusal('"tests" is not a list')
            found.append(value)
    if len(found) > 1:
        raise _Refusal(f"{len(found)} JSON objects with tests, where one was asked for")
    return found[0] if found else None


def _from_code_block(text: str, ask: Ask) -> Sequence[object] | None:
    """The tests of the one block of code in a reply that has no JSON: they claim everything that was asked. A block
    that holds more than tests is a whole file, and those lose tests."""
    blocks = _blocks(text.replace("\r\n", "\n"))
    tests = csharp.tests if ask.language == "csharp" else javascript.tests
    statements = tests(blocks[0]) if len(blocks) == 1 else None
    if statements is None:
        return None
    imports = [line for line in ask.module_imports if _why_not_import(line, ask) is None]
    kills = list(range(1, len(ask.numbered) + 1))
    return [{"kills": kills, "imports": imports, "code": statement} for statement in statements]


def _blocks(text: str) -> list[str]:
    """What stands in the closed fences of a text."""
    found: list[str] = []
    ticks, inside = "", list[str]()
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        if not ticks and fence:
            ticks, inside = fence[1], []
        elif ticks and fence and len(fence[1]) >= len(ticks) and not fence[2].strip():
            found.append("\n".join(inside))
            ticks = ""
        else:
            inside.append(line)
    return found


def _title(unit: object) -> str:
    title = unit.get("title") if isinstance(unit, dict) else None
    return _UNSEEN.sub("?", title[:200]) if isinstance(title, str) else ""


def _names_a_file(value: Mapping[str, object], ask: Ask) -> str:
    """What is said of files in an object of the reply; "" where it is nothing but where the tests will stand anyway."""
    named = next((key for key in sorted(value.keys() & _FILE_KEYS) if value[key] not in (ask.write, None, "")), None)
    return f"it names files ({named}: {one_line([str(value[named])], 60)}): tests go to {ask.write}" if named else ""


def _test(unit: object, ask: Ask, taken: Collection[str], origin: str) -> Test:
    if not isinstance(unit, dict) or not isinstance(unit.get("code"), str):
        raise _Refusal("malformed: a test is an object with kills, title, imports and code")
    if named := _names_a_file(unit, ask):
        raise _Refusal(named, Outcome.OUTSIDE_SCOPE)
    imports = unit.get("imports") or []
    if not isinstance(imports, list) or not all(isinstance(line, str) for line in imports):
        raise _Refusal("malformed: imports is a list of import statements")
    statements = tuple(" ".join(line.split()) for line in imports)
    for statement in statements:
        if reason := _why_not_import(statement, ask):
            raise _Refusal(reason)
    code = _statement(unit["code"], ask.language)
    title = csharp.title(code) if ask.language == "csharp" else javascript.title(code)
    # The title in the code is the one that runs, whatever stands beside it.
    if not title or not title.strip() or _UNSEEN.search(title):
        raise _Refusal("the title is not a plain string")
    if ask.language == "javascript" and not _FUNCTION.match(javascript.blank(code) or ""):
        raise _Refusal("after its title comes something else than a function")
    if title in taken:
        raise _Refusal("the title is taken")
    if reason := csharp.why_not(code) if ask.language == "csharp" else _why_not_code(code, statements):
        raise _Refusal(reason)
    if ask.language == "csharp":  # what a file of its own is made of
        statements = tuple(dict.fromkeys((*ask.module_imports, *statements)))
    return Test(title, code, statements, _kills(unit.get("kills"), ask), origin)


def _statement(code: str, language: str) -> str:
    code = code.replace("\r\n", "\n")
    if _UNSEEN.search(code):
        raise _Refusal("characters that nobody sees")
    if language == "csharp":
        methods = csharp.tests(code)
        if methods is None or len(methods) != 1:
            raise _Refusal("not one whole test method")
        return methods[0]
    # Only where all of it is indented: dedent also empties the blank lines, which may stand in a template string.
    statements = javascript.tests(textwrap.dedent(code) if code[:1].isspace() else code)
    if statements is None or len(statements) != 1:
        raise _Refusal("not one whole test statement")
    return statements[0]


def _kills(claimed: object, ask: Ask) -> tuple[str, ...]:
    """Numbers, or keys, of what was asked about → keys."""
    keys = [question.survivor.key for question in ask.numbered]
    known = {str(number): key for number, key in enumerate(keys, start=1)} | {key: key for key in keys}
    if not isinstance(claimed, list) or not claimed:
        raise _Refusal("it claims no mutant")
    claims = [str(claim) if isinstance(claim, int | str) else "" for claim in claimed]
    unknown = [claim for claim in claims if claim not in known]
    if unknown:
        raise _Refusal(f"it claims a mutant that was not asked about: {unknown[0][:40]}")
    return tuple(sorted({known[claim] for claim in claims}))


def _why_not_import(statement: str, ask: Ask) -> str | None:
    """Only the assertion library, and modules of the project itself."""
    if ask.language == "csharp":
        return csharp.why_not_import(statement)
    pattern = _REQUIRE if "CommonJS" in ask.framework else _IMPORT
    match = pattern.fullmatch(statement) if len(statement) < 1000 else None
    if not match:
        return "not one import statement"
    module = match["of"]
    if _ASSERT.fullmatch(module):
        return None
    if not module.startswith(("./", "../")):
        testing = _RUNNER.fullmatch(module) or _LIBRARY.fullmatch(module)
        if not testing or all(found["of"] != module for found in map(_imported, ask.module_imports) if found):
            return f"import of {module[:60]}: neither relative nor node:assert, nor what the tests there use"
        whole = re.fullmatch(r"[\w$]+", (match["names"] or "").strip())
        names = {
            re.split(r"\s|:", part.strip())[0] for part in re.split(r"[{},]", match["names"] or "") if part.strip()
        }
        if not whole and not names <= _FROM_RUNNER:
            return f"import of {', '.join(sorted(names - _FROM_RUNNER))[:60]} from {module}: not what a test is made of"
        return None
    # It is a URL: %2e is a dot, and might leave the project; after ? or # comes no part of the path.
    path = unquote(re.split(r"[?#]", module)[0])
    path = posixpath.normpath(posixpath.join(posixpath.dirname(ask.write), path))
    if path.split("/")[0] == "..":
        return f"import of {module[:60]}: outside of the project"
    if "node_modules" in path.split("/"):
        return f"import of {module[:60]}: a package by its path"
    # Loaded, it would make its tests a second time, or in this file's place.
    if _TEST_FILE.search(path) or path == ask.write:
        return f"import of {module[:60]}: a file of tests"
    return None


def _imported(statement: str) -> re.Match[str] | None:
    return _IMPORT.fullmatch(statement) or _REQUIRE.fullmatch(statement)


def _why_not_code(code: str, imports: Collection[str]) -> str | None:
    if "__stryker" in code.lower():
        return "it looks at the switch that chooses the mutant"
    text = javascript.blank(code) or ""
    for reason, pattern in _FORBIDDEN:
        if pattern.search(text):
            return reason
    if by_name := _BY_NAME.search(code):
        return f"{by_name[0]}: what it must not reach, by its name"
    names = "|".join(re.escape(name) for name in sorted(_assertion_names(imports)))
    library = rf"{_FREE}(?:{names})"
    assigned = rf"{library}\s*(?:\.\s*[\w$]+\s*)*(?:=(?![=>])|[-+*/|&?]+=(?!=))|{library}\s*\["
    handed_over = rf"\b(?:Object|Reflect)\s*\.\s*\w+\s*\(\s*(?:{names})\b"
    if re.search(assigned, text) or re.search(handed_over, text):
        return "it changes the assertion library"
    if not re.search(rf"{library}\s*[.(]", text):
        return "no assertion"
    return None


def _assertion_names(imports: Collection[str]) -> set[str]:
    """What the assertions are called in a test: the usual names, and those that its imports give them."""
    names = {"assert", "expect"}
    for match in filter(None, map(_imported, imports)):
        if match["of"] == "tape":
            names.add("t")  # what such a test is given, as everybody calls it
        elif match["names"] and (_ASSERT.fullmatch(match["of"]) or _LIBRARY.fullmatch(match["of"])):
            for part in re.split(r"[{},]", match["names"]):
                words = re.split(r"[\s:]+", part.strip())
                names.update(words[-1:])
    return names - {"*", "", "it", "test"}
