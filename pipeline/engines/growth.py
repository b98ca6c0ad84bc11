"""Which tests a JavaScript test file has got since, where that is all that has become of it. Pure.

Tests that are registered after all others change nothing for those: neither what runs before them nor what is loaded.
It reads tokens, as javascript.py does, and knows a handful of shapes; whatever it does not know is another change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.engines.javascript import blank, close, title

_TITLED = r"\s*\(\s*(?:'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\$])*`)\s*,\s*"
_TEST = re.compile(rf"(?:it|test){_TITLED}")
_BLOCK = re.compile(rf"(?:describe|context|suite){_TITLED}(?:function\s*[\w$]*\s*\(\s*\)|\(\s*\)\s*=>)\s*\{{")
_BLOCK_NAME = re.compile(r"(?<![\w.$])(?:describe|context|suite)\s*$")
_CLOSED = re.compile(r"(?:\s*\}\s*\)\s*;?)*\s*")
_END = re.compile(r"\s*(?:,\s*\d[\d_]*\s*)?,?\s*\)(?:[ \t]*;)?")  # a test's time limit may stand behind it
_FUNCTION = re.compile(r"(?:async\s+)?function\s*\*?\s*[\w$]*\s*(?=\()")
_PARAMETERS = re.compile(r"(?:async\s*)?(?=\()")
_PARAMETER = re.compile(r"(?:async\s+)?[\w$]+\s*(?==>)")
_ARROW = re.compile(r"\s*(?::\s*[\w.<>]+\s*)?=>\s*")  # TypeScript: with the type of what it returns
_BRACE = re.compile(r"\s*(?=\{)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_RUNNERS = r"['\"](?:node:test|vitest|mocha|@jest/globals|tape)['\"]"
_FROM_RUNNER = re.compile(
    rf"^(?:import\s[\w$\s{{}},*]*?\bfrom\s*{_RUNNERS}"
    rf"|(?:const|let|var)\s[\w$\s{{}},:]*?=\s*require\(\s*{_RUNNERS}\s*\)(?:\.\w+)?)",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![\w.$])(?:it|test|describe|context|suite)(?![\w$])(?P<used>\s*[.(])?")
_MAKES = re.compile(r"\b(?:function|class|const|let|var|new)\s*\*?\s*$")
# What acts on the whole file from wherever it stands: what transformers put at its top, what makes it a module, files
# of what was expected, hooks; and in comments, the environment.
_FAR = re.compile(
    r"\bimport\s*\.|\b\w*(?:[mM]ock|hoisted|Snapshot)\w*|\.\s*only\b"
    r"|(?<![\w.$])(?:before|after)(?:Each|All)?\s*\(|(?<![\w.$])(?:suite)?(?:[sS]etup|[tT]eardown)\s*\("
)
_ENVIRONMENT = re.compile(r"@(?:vitest|jest)-")


class _Other(Exception):
    """Something else than a test stands there."""


def added(before: str, after: str) -> tuple[str, ...] | None:
    """The tests that a file has got, whole, at its end or at that of its last block, all else as it was: how a runner
    names each, in their order. None where anything else differs, and where that cannot be told.

    That they are the last to run is for a run to show: a runner may put blocks behind what is in none.
    """
    if not before.endswith("\n") and after[len(before) :].startswith(("\n", "\r\n")):
        before = after[: after.index("\n", len(before)) + 1]
    head, tail = _around(before, after)
    was, now = blank(before), blank(after)
    if head is None or was is None or now is None or not _CLOSED.fullmatch(was[head:]):
        return None
    end = len(after) - tail
    if now[:head] != was[:head] or now[end:] != was[len(before) - tail :]:
        return None
    if not _names_are_a_runners(before, was):
        return None
    if _FAR.search(now[head:end]) or _ENVIRONMENT.search(after[head:end]):
        return None
    try:
        return tuple(_statements(after, now, head, end, _open_blocks(after, now[:head]))) or None
    except _Other:
        return None


def _around(before: str, after: str) -> tuple[int | None, int]:
    """How much of `after` stands before, and how much behind, what was put between two lines of `before`; None where
    more is changed."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    first = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    rest = old[first:]
    while rest and not rest[0].strip():
        rest.pop(0)  # an empty line that what was put there has in its own place
    if len(new) <= len(old) or new[len(new) - len(rest) :] != rest:
        return None, 0
    return len("".join(old[:first])), len("".join(rest))


def _names_are_a_runners(text: str, blanked: str) -> bool:
    """Whether the names of what makes tests are a runner's, everywhere in the file."""
    for told in _FROM_RUNNER.finditer(text):
        if not blanked[told.start() : told.end()].isspace():
            blanked = blanked[: told.start()] + " " * len(told[0]) + blanked[told.end() :]
    names = _NAME.finditer(blanked)
    return all(m["used"] and not _MAKES.search(blanked, max(0, m.start() - 20), m.start()) for m in names)


def _open_blocks(text: str, blanked: str) -> tuple[str, ...]:
    """Titles of the describe blocks that are open at the end of `blanked`, outermost first. Raises _Other where
    something else is open, or a block is not a statement of its own."""
    open_: list[int] = []
    for at, char in enumerate(blanked):
        if char in "([{":
            open_.append(at)
        elif char in ")]}":
            open_.pop()
    titles = []
    for call, brace in zip(open_[::2], open_[1::2], strict=False):
        name = _BLOCK_NAME.search(blanked, 0, call)
        block = _BLOCK.match(text, name.start()) if name else None
        if not name or not block or block.end() != brace + 1 or not _begins(blanked[: name.start()]):
            raise _Other
        titles.append(_title(block[0]))
    if len(open_) != 2 * len(titles):
        raise _Other
    return tuple(titles)


def _begins(blanked: str) -> bool:
    """Whether a statement begins after that. After `)`, one may depend on a condition."""
    return blanked.rstrip()[-1:] in tuple(";{}'\"") or not blanked.strip()


def _statements(text: str, blanked: str, at: int, end: int, blocks: tuple[str, ...]) -> Iterator[str]:
    """Names of the tests that stand between two places, with nothing else there but blocks of them. Raises _Other."""
    while blanked[at:end].strip():
        at += len(blanked[at:end]) - len(blanked[at:end].lstrip())
        if test := _TEST.match(text, at, end):
            at = _after(_END, blanked, _function(blanked, test.end()))
            yield " ".join((*blocks, _title(test[0])))
        elif block := _BLOCK.match(text, at, end):
            inside = close(blanked, block.end() - 1)
            yield from _statements(text, blanked, block.end(), inside - 1, (*blocks, _title(block[0])))
            at = _after(_END, blanked, inside)
        else:
            raise _Other


def _title(call: str) -> str:
    name = title(re.sub(r"^\w+", "it", call))
    if name is None:
        raise _Other
    return name


def _function(blanked: str, at: int) -> int:
    """The place after the function that is written out at `at`: one that is not called there. Raises _Other."""
    if function := _FUNCTION.match(blanked, at):
        return close(blanked, _after(_BRACE, blanked, close(blanked, function.end())))
    if parameters := _PARAMETERS.match(blanked, at):
        at = _after(_ARROW, blanked, close(blanked, parameters.end()))
    elif parameter := _PARAMETER.match(blanked, at):
        at = _after(_ARROW, blanked, parameter.end())
    else:
        raise _Other
    if blanked[at : at + 1] == "{":
        return close(blanked, at)
    while at < len(blanked) and blanked[at] not in ",)]}":
        at = close(blanked, at) if blanked[at] in "([{" else at + 1
    return at


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    if not match:
        raise _Other
    return match.end()
