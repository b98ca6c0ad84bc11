"""Changes to a YAML text in which every other character stays as it is: comments, quotes, layout.

Works on the marks of PyYAML's nodes. ruamel.yaml's round trip keeps comments, but spells lists in brackets and
indentation its own way, also where nothing was changed.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import yaml

from pipeline.source import Where

_MERGE = "<<"


class Unwritten(Exception):
    """What is to be changed doesn't stand at its place in the text: an alias or a merge key puts it there."""

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self.where = where


@attrs.frozen
class Block:
    """Lines in the place of others, with their ends. `first` counts from 0."""

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.first + len(self.old)


@attrs.define(slots=False)
class Text:
    """A YAML document, and changes to it. They do not see each other: each is of the text as it was."""

    text: str
    root: yaml.Node
    # From, to, what stands there instead; and how deep it lies: of lines at one place, the deepest go first.
    _changes: list[tuple[int, int, str, int]] = attrs.field(factory=list)
    _found: dict[int, dict[str | int, tuple[yaml.Node, bool]]] = attrs.field(factory=dict)

    def result(self) -> str:
        """The text with all changes."""
        pieces, at, lines = [], 0, self._lines
        for block in self.blocks():
            pieces += [*lines[at : block.first], *block.new]
            at = block.end
        return "".join([*pieces, *lines[at:]])

    def blocks(self) -> list[Block]:
        """The changes by whole lines, from first to last."""
        starts = list(itertools.accumulate(map(len, self._lines), initial=0))
        found: list[Block] = []
        changes = sorted(self._changes, key=lambda change: (change[0], -change[3]))
        for (first, end), group in itertools.groupby(changes, key=lambda change: self._touched(starts, *change[:3])):
            pieces, at = [], starts[first]
            for start, stop, new, _ in group:
                pieces += [self.text[at:start], new]
                at = stop
            text = "".join([*pieces, self.text[at : starts[end]]])
            found.append(Block(first, tuple(self._lines[first:end]), tuple(_split(text))))
        return found

    @functools.cached_property
    def _lines(self) -> list[str]:
        return _split(self.text)

    @staticmethod
    def _touched(starts: Sequence[int], start: int, stop: int, new: str) -> tuple[int, int]:
        """The lines that a change touches, from and to; none where whole lines come between two."""
        first = min(bisect.bisect_right(starts, start), len(starts) - 1) - 1
        if start == stop and start in (starts[first], starts[-1]) and new.endswith("\n"):
            return bisect.bisect_left(starts, start), bisect.bisect_left(starts, start)
        return first, max(first + 1, bisect.bisect_left(starts, stop))

    def node(self, *where: str | int) -> Any:
        """The node at a place, None where there is none. Raises Unwritten where an alias or a merge key put it."""
        node = self.root
        for depth, step in enumerate(where):
            children = self._children(node)
            if step not in children:
                if _MERGE in children:
                    raise Unwritten(where[: depth + 1])
                return None
            node, written = children[step]
            if not written:
                raise Unwritten(where[: depth + 1])
        return node

    def replace(self, value: str, *where: str | int) -> None:
        """Another text in the place of a scalar."""
        node = self.node(*where)
        self._changes.append((node.start_mark.index, node.end_mark.index, spelled(value, flow=True), 0))

    def extend(self, values: Sequence[str], *where: str | int) -> None:
        """More items at the end of a list of texts that is the value of a key; the key too, where it is missing."""
        node = self.node(*where)
        if node is None:
            self._add_key(str(where[-1]), list(values), where[:-1])
        elif node.flow_style:
            self._add_to_flow(", ".join(spelled(value, flow=True) for value in values), where)
        else:
            dash = " " * self._dash(node)
            self._insert(self._end(node), [f"{dash}- {spelled(value)}" for value in values])

    def add_entries(self, entries: Mapping[str, str], *where: str | int) -> None:
        """Texts under keys of a mapping that is the value of a key; that key too, where it is missing."""
        node = self.node(*where)
        if node is None:
            self._add_key(str(where[-1]), entries, where[:-1])
        elif node.flow_style:
            each = (f"{spelled(key, flow=True)}: {spelled(value, flow=True)}" for key, value in entries.items())
            self._add_to_flow(", ".join(each), where)
        else:
            self._insert(self._end(node), _block(entries, node.start_mark.column))

    def append(self, item: Mapping[str, Any], *where: str | int) -> None:
        """A mapping as the last item of a list of mappings that isn't empty."""
        node = self.node(*where)
        if node.flow_style:
            self._add_to_flow(json.dumps(item, ensure_ascii=False), where)
            return
        dash = self._dash(node)
        lines = _block(item, dash + 2)
        lines[0] = f"{' ' * dash}- {lines[0].lstrip()}"
        if len(node.value) > 1 and self._stand_apart(*node.value[-2:]):
            lines.insert(0, "")
        self._insert(self._end(node, dash), lines)

    def _children(self, node: yaml.Node) -> dict[str | int, tuple[yaml.Node, bool]]:
        """What is directly in a node, by key or index, and whether it is written there: an alias stands for something
        that begins further up."""
        if id(node) not in self._found:
            found: dict[str | int, tuple[yaml.Node, bool]] = {}
            last = node.start_mark.index - 1
            for step, each in _items(node):
                found[step] = each, each.start_mark.index > last
                last = max(last, each.start_mark.index)
            self._found[id(node)] = found
        return self._found[id(node)]

    def _add_key(self, key: str, value: Any, where: Where) -> None:
        node = self.node(*where)
        if node.flow_style:
            self._add_to_flow(f"{spelled(key, flow=True)}: {json.dumps(value, ensure_ascii=False)}", where)
        else:
            column = node.start_mark.column
            lines = _block({key: value}, column)
            if len(node.value) > 1 and self._stand_apart(node.value[-2][1], node.value[-1][1]):
                lines.insert(0, "")
            self._insert(self._end(node, column - 1), lines)

    def _add_to_flow(self, new: str, where: Where) -> None:
        """Behind what is there."""
        node = self.node(*where)
        children = list(self._children(node).values())
        if not children:
            at, comma = node.end_mark.index - 1, ""
        elif children[-1][1]:
            at, comma = children[-1][0].end_mark.index, ", "
        else:
            raise Unwritten(where)
        self._changes.append((at, at, comma + new, 0))

    def _insert(self, at: int, lines: Sequence[str]) -> None:
        """Whole lines, at the beginning of a line or the end of the text."""
        first = next(line for line in lines if line)
        bare = first.lstrip()
        # An item may stand as far out as the key of its list.
        depth = 2 * (len(first) - len(bare)) + bare.startswith("- ")
        ending = "\r\n" if "\r\n" in self.text else "\n"
        new = "".join(f"{line}{ending}" for line in lines)
        if at == len(self.text) and not self.text.endswith("\n"):
            new = ending + new.removesuffix(ending)
        self._changes.append((at, at, new, depth))

    def _end(self, node: Any, column: int | None = None) -> int:
        """The beginning of the line after a node. Comments that follow, further in than `column`, are the node's."""
        leaf = node
        while not isinstance(leaf, yaml.ScalarNode) and not leaf.flow_style:
            leaf = max((each for _, each in _items(leaf)), key=lambda each: each.end_mark.index)
        end = leaf.end_mark.index
        while self.text[end - 1].isspace():  # a literal scalar's mark lies behind empty lines
            end -= 1
        at = begin = self._next_line(end)
        # A block's mark lies where the next thing begins. Before that come comments; and an alias, which is no leaf.
        for line in re.finditer(r"[^\n]*\n?", self.text[begin : node.end_mark.index]):
            if line[0].strip() and not line[0].lstrip().startswith("#"):
                at = begin + line.end()
        if column is not None:
            while (comment := _COMMENT.match(self.text, at)) and len(comment[1]) > column:
                at = comment.end()
        return at

    def _next_line(self, at: int) -> int:
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1

    def _dash(self, node: Any) -> int:
        """The column of a block list's dashes."""
        return int(node.start_mark.column) if self.text[node.start_mark.index] == "-" else self._first_dash(node)

    def _first_dash(self, node: Any) -> int:
        found = re.compile(r"^[ ]*-", re.M).search(self.text, node.start_mark.index)  # an anchor stands before it
        return len(found[0]) - 1 if found else 0

    def _stand_apart(self, one: Any, other: Any) -> bool:
        between = self.text[self._end(one) : other.start_mark.index].splitlines()
        return any(not line.strip() for line in between[:-1])


def unified(name: str, before: str, blocks: Sequence[Block], context: int = 3) -> str:
    """The changes as a unified diff. difflib's would search all of a long text again for each change in it."""
    lines = _split(before)
    out = [f"--- a/{name}\n", f"+++ b/{name}\n"]
    shift = 0  # by how many lines the text has grown so far
    for hunk in _hunks(blocks, 2 * context):
        begin, end = max(0, hunk[0].first - context), min(len(lines), hunk[-1].end + context)
        body, at = [], begin
        for block in hunk:
            body += [f" {line}" for line in lines[at : block.first]]
            body += [*(f"-{line}" for line in block.old), *(f"+{line}" for line in block.new)]
            at = block.end
        body += [f" {line}" for line in lines[at:end]]
        grown = sum(len(block.new) - len(block.old) for block in hunk)
        out.append(f"@@ -{begin + 1},{end - begin} +{begin + 1 + shift},{end - begin + grown} @@\n")
        out += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body]
        shift += grown
    return "".join(out)


def _hunks(blocks: Sequence[Block], gap: int) -> list[list[Block]]:
    hunks: list[list[Block]] = []
    for block in blocks:
        if hunks and block.first - hunks[-1][-1].end <= gap:
            hunks[-1].append(block)
        else:
            hunks.append([block])
    return hunks


def _split(text: str) -> list[str]:
    """Lines with their ends. Only \\n ends one: str.splitlines knows more, and YAML may hold them in a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


_COMMENT = re.compile(r"([ \t]*)#[^\n]*(?:\n|$)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*")  # most names and paths, known without asking the parser
_WORDS = frozenset(["y", "yes", "n", "no", "on", "off", "true", "false", "null"])


def spelled(text: str, flow: bool = False) -> str:
    """A text as YAML, without quotes where it needs none."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if text.isprintable():
        try:
            if yaml.safe_load(f"[{text}]" if flow else f"k: {text}") == ([text] if flow else {"k": text}):
                return text
        except yaml.YAMLError:
            pass  # then with quotes
    return json.dumps(text, ensure_ascii=False)


def _block(value: Mapping[str, Any], column: int) -> list[str]:
    """Lines of a block mapping of texts, lists of texts and mappings of texts; short lists on one line."""
    lines, indent = [], " " * column
    for key, each in value.items():
        if isinstance(each, str):
            lines.append(f"{indent}{spelled(key)}: {spelled(each)}")
        elif isinstance(each, Mapping):
            lines += [f"{indent}{spelled(key)}:", *_block(each, column + 2)]
        else:
            short = f"{indent}{spelled(key)}: [{', '.join(spelled(v, flow=True) for v in each)}]"
            long = [f"{indent}{spelled(key)}:", *(f"{indent}  - {spelled(v)}" for v in each)]
            lines += [short] if len(short) <= 100 else long
    return lines


def _items(node: yaml.Node) -> Iterable[tuple[str | int, Any]]:
    if isinstance(node, yaml.MappingNode):
        return ((key.value, value) for key, value in node.value)
    return enumerate(node.value) if isinstance(node, yaml.SequenceNode) else ()
