"""The file scopes of declared tasks as they are written: every path in one spelling, and what is wrong with it.

Asks the checkout, changes nothing. What they mean is in filescopes.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import attrs

from . import model, patterns
from .checkout import Checkout
from .contents import Place
from .document import OwnsDocument, TaskDocument
from .filescopes import is_file
from .lintplan import of_condition
from .source import Mistake, Where, quoted


def made(documents: Sequence[TaskDocument], checkout: Checkout) -> frozenset[str]:
    """All that declared tasks write, in one spelling each; what is wrong with it is said by `tasks`."""
    found = set()
    for document in documents:
        for text in document.writes:
            with contextlib.suppress(_Wrong):
                found.add(_spelled(text, checkout))
    return frozenset(found)


def tasks(documents: Sequence[TaskDocument], checkout: Checkout) -> tuple[tuple[model.Task, ...], list[Mistake]]:
    """Every declared task with its file scopes, and all that is wrong with those."""
    mistakes: list[Mistake] = []
    found = []
    for index, document in enumerate(documents):
        scopes = {}
        for key, check in (("reads", _check_read), ("writes", _check_write)):
            spelled: dict[str, None] = {}
            for position, text in enumerate(getattr(document, key)):
                where = ("tasks", index, key, position)
                try:
                    each = _spelled(text, checkout)
                    check(text, each, checkout)
                    spelled[each] = None
                except _Wrong as wrong:
                    mistakes.append(wrong.mistake(where))
            scopes[key] = tuple(spelled)
        links = dict(_links((*scopes["reads"], *scopes["writes"]), checkout))
        agent = None if document.agent is None else model.Agent(**attrs.asdict(document.agent, recurse=False))
        conditions = [
            model.Condition(
                name, each.run, each.hidden, each.timeout, owned(each.owns), of_condition(name, each, checkout)
            )
            for name, each in document.check.items()
        ]
        ordered = tuple(sorted(conditions, key=lambda each: each.hidden))  # hidden ones last, else as declared
        look = None if document.look is None else model.Look(**attrs.asdict(document.look))
        made = {"agent": agent, "look": look, "check": ordered, "owns": owned(document.owns), "links": links, **scopes}
        found.append(model.Task(**{**attrs.asdict(document, recurse=False), **made}))
    return tuple(found), mistakes


def owned(document: OwnsDocument | None) -> model.Owns | None:
    """What a command owns, as the model has it."""
    return None if document is None else model.Owns(**attrs.asdict(document))


def unresumed(owns: OwnsDocument) -> tuple[str, str] | None:
    """What is wrong with what is paused for good, and what to do."""
    if owns.pause and not owns.resume:
        return "what is paused stays so: `resume` is missing", "say how the watcher is started again"
    return None


class _Wrong(Exception):
    """What is wrong with one path, and what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy

    def mistake(self, where: Where) -> Mistake:
        return Mistake(where, self.what, self.remedy)


def _spelled(text: str, checkout: Checkout) -> str:
    """The one spelling of what is declared. Raises _Wrong."""
    if text.startswith("!"):
        return f"!{_spelled(text[1:], checkout)}"
    plain = text if text in checkout.files else patterns.unescape(text)
    if plain is not None:
        path = _inside(text, checkout.spelled(plain))
        directory = plain.endswith("/") or checkout.is_directory(path)
        return patterns.escape(path) + ("/" if directory else "")
    try:
        patterns.compiled(text)
    except patterns.BadPattern as error:
        raise _Wrong(f"{quoted(text)} is no pattern: {error}") from None
    segments = text.split("/")
    literal = next(n for n, segment in enumerate(segments) if patterns.unescape(segment) is None)
    rest = [segment for segment in segments[literal:] if segment not in ("", ".")]
    if ".." in rest:
        raise _Wrong(f"{quoted(text)} goes up from what a wildcard matches", "name the directory that it's to go to")
    folder = _inside(text, checkout.spelled("/".join(patterns.unescape(s) or "" for s in segments[:literal]) or "."))
    begin = "" if folder == "." else f"{patterns.escape(folder)}/"
    return begin + "/".join([*rest, *(["**"] if text.endswith("/") else [])])


def _inside(text: str, path: str) -> str:
    if path == ".." or path.startswith("../"):
        raise _Wrong(f"{quoted(text)} lies outside the project", "a task's files are the project's")
    return path


def _check_read(text: str, spelled: str, checkout: Checkout) -> None:
    """Raises _Wrong for what isn't there, and never will be."""
    path = patterns.unescape(spelled)
    if spelled.startswith("!"):
        return
    if path is None:
        there = checkout.files.matching(spelled) or Place(checkout.root, checkout.root / ".git").holds(spelled)
        if not there and not checkout.may_be_made(spelled):
            raise _Wrong(f"{quoted(text)} matches no file of the project", checkout.hint(spelled))
    elif path.endswith("/"):
        _check_above(text, spelled, checkout)
        if not checkout.is_directory(path[:-1]) and not checkout.has(path[:-1]):
            raise _Wrong(f"no directory {quoted(text)}, and no task writes it", checkout.hint(path[:-1]))
    elif not checkout.has(path):
        raise _Wrong(f"no file {quoted(path)}, and no task writes it", checkout.hint(path))


def _check_write(text: str, spelled: str, checkout: Checkout) -> None:
    """Raises _Wrong for what git could not tell us of, or what can't be made."""
    if spelled.startswith("!"):
        raise _Wrong(f"{quoted(text)} takes something out of `writes`", "name what the task may change")
    path = patterns.lock(spelled)
    if ".git" in path.split("/"):
        raise _Wrong(f"{quoted(text)} lies in .git", "name files of the project")
    _check_above(text, spelled, checkout)


def _check_above(text: str, spelled: str, checkout: Checkout) -> None:
    """Raises _Wrong where a file stands in the place of a directory."""
    path = patterns.lock(spelled)
    file = checkout.file_above(path if is_file(spelled) else f"{path}/")
    if file is not None and file == path:
        raise _Wrong(f"{quoted(text)} is a file", "leave out the slash")
    if file is not None:
        raise _Wrong(f"{quoted(text)} lies below {file}, which is a file", "name a directory")


def _links(declared: Iterable[str], checkout: Checkout) -> Iterator[tuple[str, str]]:
    for path in map(patterns.lock, declared):
        link = checkout.link(path)
        if link is not None:
            yield path, link
