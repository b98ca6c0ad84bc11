"""YAML text → plain data, and the line on which each value stands. Knows nothing of what tasks.yaml means."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import yaml

Where = tuple[str | int, ...]  # a place in the document: keys and indices from its root

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_QUOTE = "put text in quotes if it begins with one of * & ! % @ or holds any of { } [ ] # or ': '"


@attrs.frozen(order=True)
class Problem:
    """One mistake, as a person reads it. `line` and `column` count from 1."""

    file: str
    line: int
    path: str
    message: str
    column: int | None = None

    def __str__(self) -> str:
        at = f"{self.file}:{self.line}" + (f":{self.column}" if self.column is not None else "")
        return f"{at}: {self.path}: {self.message}" if self.path else f"{at}: {self.message}"


class PlanErrors(Exception):
    """Every mistake found in one tasks.yaml, in the order of its lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


@attrs.frozen
class Mistake:
    """What is wrong at one place, before anybody has looked up its line."""

    where: Where
    what: str
    remedy: str = ""
    also: Where | None = None  # the other place of two that clash
    show: bool = False  # whether the value that stands there is part of the message
    unless: Where | None = None  # nothing is missing where this is there, though wrong: that has its own mistake


@attrs.frozen
class Source:
    """One document: `data` is made of dict, list, str, int, float, bool and None; keys are str."""

    file: str
    data: Any
    mistakes: tuple[Mistake, ...]  # what is wrong with it as YAML: keys given twice, tags
    garbled: frozenset[Where]  # places of which there is nothing more to say
    root: yaml.Node

    def problem(self, mistake: Mistake) -> Problem:
        where, line, node = self._look_up(mistake.where)
        message = mistake.what
        if mistake.show and where == mistake.where:
            message += f", got {_shown(node)}"
        if mistake.also is not None:
            message += f" (also {spelled(mistake.also)}, line {self._look_up(mistake.also)[1]})"
        if mistake.remedy:
            message += f"; {mistake.remedy}"
        return Problem(self.file, line, spelled(where), message)

    def _look_up(self, where: Where) -> tuple[Where, int, yaml.Node]:
        """The longest beginning of `where` that the document has, its line, and the node there."""
        node, line = self.root, self.root.start_mark.line
        for depth, step in enumerate(where):
            if isinstance(node, yaml.MappingNode):
                # A key's own line: the value of `needs:` may begin lines below it, or at an anchor far above.
                found = [(key.start_mark.line, value) for key, value in node.value if key.value == step]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                found = [(node.value[step].start_mark.line, node.value[step])]
            else:
                found = []
            if not found:
                return where[:depth], line + 1, node
            line, node = found[-1]
        return where, line + 1, node


def parse(file: str, raw: bytes) -> Source:
    """`raw` as data with lines. Raises PlanErrors for what is no YAML at all; `file` is what messages call it."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise PlanErrors([Problem(file, line, "", what)]) from None
    try:
        loader = Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise PlanErrors([Problem(file, 1, "", "the document is empty; begin with `version: 1`")])
        builder = _Builder(loader)
        data = builder.build(root, ())
    except yaml.reader.ReaderError as error:
        what = f"character U+{_code(error.character):04X} may not stand in YAML"
        line = text.count("\n", 0, error.position) + 1
        raise PlanErrors([Problem(file, line, "", what)]) from None
    except yaml.MarkedYAMLError as error:
        raise PlanErrors([_syntax_problem(file, text, error)]) from None
    except RecursionError:
        raise PlanErrors([Problem(file, 1, "", "nested too deeply, or an alias stands inside itself")]) from None
    return Source(file, data, tuple(builder.mistakes), frozenset(builder.garbled), root)


def plain(file: str, raw: bytes) -> Any | None:
    """The data alone; None where there is anything to say of it."""
    try:
        text = parse(file, raw)
    except PlanErrors:
        return None
    return None if text.mistakes or text.garbled else text.data


def spelled(where: Where) -> str:
    """('scopes', 1, 'write') → 'scopes[1].write'."""
    return "".join(_step(step) for step in where).removeprefix(".")


def quoted(text: str) -> str:
    """A text for a message: in quotes, cut short."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(wrong: str, right: Iterable[str]) -> str:
    """The remedy for a name that isn't one of `right`: the nearest of them, or the first few."""
    return _nearest(wrong, tuple(sorted(right)))


@functools.lru_cache  # one wrong name in each of a thousand tasks is looked for once
def _nearest(wrong: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(wrong.lower(), known, 1, 0.6)
    if near:
        return f"did you mean {quoted(near[0])}?"
    return f"choose from {listed(known, 20)}" if known else ""


def listed(things: Sequence[str], most: int = 3) -> str:
    """The first few of many, for a message."""
    return ", ".join(things[:most]) + (f" and {len(things) - most} more" if len(things) > most else "")


def _step(step: str | int) -> str:
    return f".{step}" if isinstance(step, str) and re.fullmatch(r"[\w-]+", step) else f"[{step!r}]"


def _code(character: Any) -> int:
    return character if isinstance(character, int) else ord(character)  # the C loader gives a number, the other text


def _syntax_problem(file: str, text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    lines = text.splitlines()
    what = ", ".join(part for part in (error.context, error.problem) if part)
    if line < len(lines) and lines[line][column : column + 1] == "\t":
        what, remedy = "a tab cannot indent YAML", "indent with spaces"
    elif isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError) or "undefined alias" in what:
        remedy = _QUOTE
    else:
        remedy = "see the YAML specification"
    return Problem(file, line + 1, "", f"not YAML: {what}; {remedy}", column + 1)


def _shown(node: yaml.Node) -> str:
    """A value as it's written, cut short; of a list or mapping only what it is."""
    if not isinstance(node, yaml.ScalarNode):
        return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
    if node.tag == _TAG + "null":
        return "nothing"
    return quoted(node.value) if node.tag == _TAG + "str" else _cut(node.value)


@attrs.define
class _Builder:
    """Nodes → data. A node that aliases share is built once, so that aliases of aliases cost nothing."""

    loader: Any
    mistakes: list[Mistake] = attrs.field(factory=list)
    garbled: set[Where] = attrs.field(factory=set)
    built: dict[int, Any] = attrs.field(factory=dict)
    open: set[int] = attrs.field(factory=set)

    def build(self, node: yaml.Node, where: Where) -> Any:
        if id(node) in self.open:
            raise yaml.MarkedYAMLError(None, None, "an alias stands inside what it names", node.start_mark)
        if id(node) not in self.built:
            self.open.add(id(node))
            self.built[id(node)] = self._make(node, where)
            self.open.remove(id(node))
        return self.built[id(node)]

    def _make(self, node: yaml.Node, where: Where) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return {key: self.build(value, (*where, key)) for key, value in self._pairs(node, where)}
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.build(item, (*where, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, where)

    def _pairs(self, node: yaml.MappingNode, where: Where) -> Iterator[tuple[str, yaml.Node]]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(None, None, f"a key must be text, not {_shown(key)}", key.start_mark)
            if key.tag == _TAG + "merge":
                continue
            place = (*where, key.value)
            if key.tag != _TAG + "str":
                self._garble(place, f"a key must be text, got {key.value}", f"put it in quotes: '{key.value}'")
            if key.value in first:
                self.mistakes.append(Mistake(place, f"given twice (first on line {first[key.value]})", "keep one"))
            first.setdefault(key.value, key.start_mark.line + 1)
        self.loader.flatten_mapping(node)
        return ((key.value, value) for key, value in node.value)

    def _scalar(self, node: yaml.Node, where: Where) -> Any:
        kind = node.tag.removeprefix(_TAG)
        text = node.value if isinstance(node, yaml.ScalarNode) else None
        if text is not None and re.search("[\ud800-\udfff]", text):  # the loader without C lets an escape make one
            self._garble(where, "half a surrogate pair is no character")
            return ""
        if text is not None and kind in ("str", "timestamp"):  # a date is text: no key of ours takes anything else
            return text
        if text is not None and kind in ("int", "float", "bool", "null"):
            try:
                return self.loader.construct_object(node)
            except (ValueError, KeyError, IndexError, OverflowError):
                self._garble(where, f"{_shown(node)} is no {kind} that can be read")
                return text
        self._garble(where, f"the tag {node.tag} means nothing here", "put text that begins with ! in quotes")
        return f"{node.tag} {text}".rstrip() if text is not None else None  # what `mutate: !src/*.js` was to say

    def _garble(self, where: Where, what: str, remedy: str = "") -> None:
        self.garbled.add(where)
        self.mistakes.append(Mistake(where, what, remedy))
