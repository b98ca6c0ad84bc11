"""A change of a YAML text's data, made in the text: comments and layout stay.

ruamel.yaml keeps comments, but spells brackets, columns and indentation its own way, also where nothing was changed.
So its text of the data as it is becomes the base of a three-way merge. The sides are its text of the changed data, and
the file: only what the change is about comes from ruamel.yaml.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.emitter import RoundTripEmitter
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.util import load_yaml_guess_indent as _load

from pipeline import source
from pipeline.source import PlanErrors, Where, spelled
from pipeline.worktree import git

_RESOLVER: Any = yaml.resolver.Resolver()
_TEXT = "tag:yaml.org,2002:str"
# How far keys stand in; items, and the dash within that; those of lists in lists. None: as the text's first list.
# New lines find their place where they stand in as their neighbours do; words always do.
_INDENTS: Sequence[tuple[int, tuple[int, int] | None, tuple[int, int] | None]] = (
    (2, None, None), (4, None, (4, 2)), (2, None, (2, 0)),
    (2, (4, 2), (2, 0)), (4, (2, 0), (4, 2)), (4, (4, 2), (4, 2)), (2, (2, 0), (2, 0)),
)  # fmt: skip
# What is merged: words, blanks, and as a whole, in the group, a line without a word.
_PIECES = re.compile(r"(?m:(^[ \t]*(?:#[^\n]*|\r)?\n))|[^\s\[\]{},]+|[ \t]+|[\s\S]")
_INDENTED = re.compile(r'\["[ \\t]+#.*, true\]\n')
_CONFLICT = re.compile(r"<{7} .*?\n(.*?)\|{7} .*?\n(.*?)={7}\n(.*?)>{7} .*?\n", re.S)

Change = Callable[[Any], None]  # of dicts and lists, in place


class Unwritten(Exception):
    """No edit of the text is found that means the change and nothing else; str() says why, and what to do."""


class _Emitter(RoundTripEmitter):
    """Indents the lists in a list otherwise than those around them, and writes no comment: all come back from the file
    by the merge. To ruamel.yaml, a heading is a comment on the list above: a new item would come behind it."""

    def expect_block_sequence_item(self, first: bool = False) -> None:
        depth = sum(is_list for _, is_list in self.indents.values)
        self.best_sequence_indent, self.sequence_dash_offset = self.dumper.lists[min(depth, 2) - 1]
        super().expect_block_sequence_item(first)

    def write_comment(self, comment: Any, pre: bool = False) -> None: ...


class _Quoting(RoundTripRepresenter):
    """Puts a text in quotes that PyYAML, to which YAML is 1.1, would not read as text: yes, 010, 1_0."""

    def represent_str(self, data: str) -> Any:
        plain = _RESOLVER.resolve(yaml.ScalarNode, data, (True, False)) == _TEXT
        return self.represent_scalar(_TEXT, data, style=None if plain else '"')


_Quoting.add_representer(str, _Quoting.represent_str)


def edited(text: str, changes: Sequence[Change]) -> str:
    """The text, without a byte order mark, after all changes. Raises Unwritten.

    A change puts values in the place of others, or adds some. One that did both would have old words found again in
    the new, and the comments on them with them.
    """
    ended = text if text.endswith("\n") else f"{text}\n"
    for change in changes:
        ended = _edited(ended, change)
    return ended if text.endswith("\n") else ended.removesuffix("\n")


def _edited(text: str, change: Change) -> str:
    wanted = json.loads(json.dumps(source.parse("", text.encode()).data))  # what aliases share is apart in it
    change(wanted)
    for indents in _INDENTS:
        base, theirs = _round_trips(text, change, *indents)
        merged = _merged(text, base, theirs)
        if _difference(merged, wanted) is None and _comments(merged) == _comments(text):
            return merged
        if where := _difference(theirs, wanted):
            raise Unwritten(f"{spelled(where)} shares what is to be changed, by an alias or a merge key; write it out")
    raise Unwritten("new lines find no place in this layout; indent all lists alike, and give each item a line")


def _round_trips(text: str, change: Change, keys: int, *lists: tuple[int, int] | None) -> tuple[str, str]:
    """ruamel.yaml's text of the data, unchanged and changed. keys, lists: see _INDENTS."""
    ruamel: Any = YAML()
    ruamel.Emitter, ruamel.Representer = _Emitter, _Quoting
    ruamel.preserve_quotes, ruamel.width = True, sys.maxsize
    try:
        data, item, dash = _load(text.replace("\r\n", "\n"), yaml=ruamel)
    except (MarkedYAMLError, ValueError) as error:  # a tab between words, the 30th of February
        mark, what = getattr(error, "problem_mark", None), getattr(error, "problem", error)
        at = f"line {mark.line + 1}: " if mark else ""
        raise Unwritten(f"{at}ruamel.yaml, which edits it, cannot read it: {what}; spell it another way") from None
    ruamel.map_indent, ruamel.lists = keys, [each or (item or 2, dash or 0) for each in lists]
    before, after = io.StringIO(), io.StringIO()
    ruamel.dump(data, before)
    change(data)
    ruamel.dump(data, after)
    ending = "\r\n" if "\r\n" in text else "\n"
    return before.getvalue().replace("\n", ending), after.getvalue().replace("\n", ending)


def _merged(ours: str, base: str, theirs: str) -> str:
    """What leads from base to theirs, done to ours."""
    with tempfile.TemporaryDirectory(prefix="doit-mutate-") as scratch:
        for name, text in (("ours", ours), ("base", base), ("theirs", theirs)):
            lines = [f"{json.dumps([found[0], bool(found[1])])}\n" for found in _PIECES.finditer(text)]
            Path(scratch, name).write_text("".join(lines))
        merged = git(Path(scratch), "merge-file", "-p", "--diff3", "theirs", "base", "ours", ok=range(128)).out.decode()
    return "".join(json.loads(line)[0] for line in _CONFLICT.sub(_resolved, merged).splitlines())


def _resolved(conflict: re.Match[str]) -> str:
    """What the file has around the changed pieces stays around them. New ones come behind comments that are indented,
    which are on what is before them, and before all others: those are a heading."""
    theirs, base, ours = (side.splitlines(keepends=True) for side in conflict.groups())
    if not base:
        at = len([*itertools.takewhile(_INDENTED.match, ours)])
        return "".join([*ours[:at], *theirs, *ours[at:]])
    start = _alike(base, theirs)
    end = _alike(base[start:][::-1], theirs[start:][::-1])
    old, new = "".join(base[start : len(base) - end]), "".join(theirs[start : len(theirs) - end])
    before, found, after = conflict[3].partition(old) if old else ("", "", "")
    return before + new + after if found else conflict[1]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many pieces two sequences begin with alike."""
    return len([*itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))])


def _comments(text: str) -> list[str]:
    """All comments, in their order: they stand between tokens."""
    found, at = [], 0
    for token in yaml.scan(text, Loader=source.Loader):
        found += re.findall(r"#[^\r\n]*", text[at : token.start_mark.index])
        at = token.end_mark.index
    return found


def _difference(text: str, wanted: Any) -> Where | None:
    """The first place at which a text means something else; () where it is no YAML."""
    try:
        return _first(source.parse("", text.encode()).data, wanted, ())
    except PlanErrors:
        return ()


def _first(one: Any, other: Any, where: Where) -> Where | None:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        steps: Iterable[str | int] = one
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        steps = range(len(one))
    else:
        return None if one == other else where
    found = (_first(one[step], other[step], (*where, step)) for step in steps)
    return next((place for place in found if place is not None), None)
