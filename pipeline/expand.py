"""Patterns of tasks.yaml → the files that there are. Asks the checkout, changes nothing."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import attrs

from . import model, patterns
from .checkout import Checkout, NoFiles
from .document import ScopeDocument
from .source import Mistake, Where, listed, nearest, quoted

_PLACEHOLDER = re.compile(r"\{([^{},]*)\}")
_PLACEHOLDERS = ("stem", "name", "dir")
# doit refuses =, and takes a dependency with * for a pattern, which its own name may not match: such a scope was left
# out, and nobody told; no terminal or ledger takes the others.
_UNNAMEABLE = re.compile(r"[=*\x00-\x1f\x7f\ud800-\udfff]")


@attrs.frozen
class Expanded:
    """One scope, and which of the document's `scopes` it came from."""

    index: int
    scope: model.Scope


@attrs.frozen
class _Draft:
    """A scope before it's known what other scopes test and write."""

    index: int
    document: ScopeDocument
    name: str
    mutate: tuple[str, ...]
    tests: tuple[str, ...] | None
    write: str
    unmatched: Mapping[int, str]  # the `tests` patterns that match nothing, by position, placeholders filled in


def scopes(documents: Sequence[ScopeDocument], checkout: Checkout) -> tuple[list[Expanded], list[Mistake]]:
    """Every scope with its files, and all that is wrong with them."""
    mistakes: list[Mistake] = []
    drafts: list[_Draft] = []
    sound = []
    for index, document in enumerate(documents):
        wrong = list(_pattern_mistakes(index, document, checkout))
        mistakes += wrong
        if not wrong:
            sound.append(index)
            drafts += _drafts(index, document, checkout)
    taken: dict[str, Where] = {}  # what is a test isn't mutated
    for draft in drafts:
        for test in draft.tests or ():
            taken.setdefault(test, ("scopes", draft.index, "tests"))
        taken.setdefault(draft.write, ("scopes", draft.index, "write"))
    for index in sound:
        mistakes += _mutate_mistakes(index, documents[index], taken, checkout)
    drafts = [attrs.evolve(d, mutate=tuple(f for f in d.mutate if f not in taken)) for d in drafts]
    # One with a name and nothing to mutate has its mistake already; what else is wrong with it is to be found too.
    drafts = [draft for draft in drafts if draft.mutate or draft.document.name is not None]
    written = {draft.write for draft in drafts}
    reads = []
    for index, document in enumerate(documents):
        files, wrong = _existing(document.reads, ("scopes", index, "reads"), checkout)
        reads.append(files)
        mistakes += wrong
    expanded = [
        Expanded(
            d.index,
            model.Scope(
                d.name,
                d.mutate,
                _tests(d, written, checkout),
                d.write,
                reads[d.index],
                model.Wish(d.document.model, d.document.effort),
                d.document.confidence,
            ),
        )
        for d in drafts
    ]
    mistakes += _tests_mistakes(drafts, expanded, checkout)
    mistakes += _duplicates(expanded, documents)
    mistakes += _write_mistakes(expanded, documents, checkout)
    return expanded, mistakes


def _drafts(index: int, document: ScopeDocument, checkout: Checkout) -> Iterator[_Draft]:
    """One draft for each file, or one over all for a scope with a name."""
    chosen = tuple(patterns.combined(checkout.files, map(_normal, document.mutate)))
    if document.name is not None:
        yield _draft(index, document, document.name, chosen, {}, checkout)
        return
    for file in chosen:
        folder, name = posixpath.split(file)
        values = {"stem": posixpath.splitext(name)[0], "name": name, "dir": folder or "."}
        yield _draft(index, document, file, (file,), values, checkout)


def _draft(
    index: int,
    document: ScopeDocument,
    name: str,
    mutate: tuple[str, ...],
    values: Mapping[str, str],
    checkout: Checkout,
) -> _Draft:
    files = checkout.files
    escaped = {key: patterns.escape(value) for key, value in values.items()}
    tests = [_filled(text, escaped) for text in document.tests or ()]
    unmatched = {at: text for at, text in enumerate(tests) if not text.startswith("!") and not files.matching(text)}
    return _Draft(
        index,
        document,
        name,
        mutate,
        None if document.tests is None else tuple(patterns.combined(files, tests)),
        _filled(document.write, values),
        unmatched,
    )


def _filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with its placeholders replaced, in one spelling."""
    return _normal(_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text))


def _normal(pattern: str) -> str:
    """One spelling for one pattern, so that two of one file are seen to be the same."""
    if pattern.startswith("!"):
        return "!" + posixpath.normpath(pattern[1:])
    return posixpath.normpath(pattern)


def _tests(draft: _Draft, written: set[str], checkout: Checkout) -> tuple[str, ...] | None:
    """The tests of a scope: never what other scopes write, always what it has written itself."""
    if draft.tests is None:
        return None
    own = {draft.write} if draft.write in checkout.files else set()
    return tuple(sorted((set(draft.tests) - written) | own))


def _pattern_mistakes(index: int, document: ScopeDocument, checkout: Checkout) -> Iterator[Mistake]:
    """What can be said of a scope's patterns before any is matched."""
    for key, texts in (("mutate", document.mutate), ("tests", document.tests or ()), ("write", (document.write,))):
        for position, text in enumerate(texts):
            where = ("scopes", index, key, position)
            if text in checkout.files:
                continue  # whatever it looks like, it's a path
            for name in _PLACEHOLDER.findall(text):
                if name not in _PLACEHOLDERS:
                    yield Mistake(where, f"no placeholder {{{name}}}", nearest(name, _PLACEHOLDERS))
                elif key == "mutate":
                    yield Mistake(where, f"{{{name}}} is a part of a mutated file's path: not for `mutate`", "use *")
                elif document.name is not None:
                    what = f"{{{name}}} stands for nothing in a scope with `name`, which has many files"
                    yield Mistake(where, what, "leave out `name`, or write the path")
            if key != "write":
                yield from _bad_pattern(where, text)
            elif "*" in text or "?" in text:
                yield Mistake(where, f"{quoted(text)} is a pattern, and a scope writes one file", "name it")
    if all(text.startswith("!") for text in document.mutate):
        yield Mistake(("scopes", index, "mutate"), "takes files out of nothing", "begin with a pattern without !")


def _bad_pattern(where: Where, text: str) -> Iterator[Mistake]:
    try:
        patterns.compiled(_normal(text).removeprefix("!"))
    except patterns.BadPattern as error:
        yield Mistake(where, f"{quoted(text)} is no pattern: {error}")


def _mutate_mistakes(
    index: int, document: ScopeDocument, taken: Mapping[str, Where], checkout: Checkout
) -> Iterator[Mistake]:
    """Each `mutate` pattern that matches nothing, or nothing but tests; files that can't be worked on."""
    found: set[str] = set()
    for position, text in enumerate(document.mutate):
        if text.startswith("!"):
            continue
        where, pattern = ("scopes", index, "mutate", position), _normal(text)
        files = checkout.files.matching(pattern)
        found.update(files)
        if not files:
            yield Mistake(where, f"{quoted(text)} matches no file of the project", checkout.hint(pattern))
        elif all(file in taken for file in files):
            what = f"{quoted(text)} matches only what `tests` or `write` name, which is never mutated: {listed(files)}"
            yield Mistake(where, what, "correct the one or the other", also=taken[files[0]])
    chosen = patterns.combined(checkout.files, map(_normal, document.mutate))
    if found and not chosen:
        yield Mistake(("scopes", index, "mutate"), "its ! patterns take out every file that the others match")
    if unnameable := [ascii(file) for file in chosen if _UNNAMEABLE.search(file)]:
        what = f"a path with =, * or a control character can name no task: {listed(unnameable)}"
        yield Mistake(("scopes", index, "mutate"), what, "rename the file, or take it out with a ! pattern")


def _tests_mistakes(drafts: Sequence[_Draft], expanded: Sequence[Expanded], checkout: Checkout) -> Iterator[Mistake]:
    unmatched: dict[tuple[int, int], list[_Draft]] = defaultdict(list)
    left_without: dict[int, list[_Draft]] = defaultdict(list)
    for draft, each in zip(drafts, expanded, strict=True):
        for position in draft.unmatched:
            unmatched[draft.index, position].append(draft)
        if each.scope.tests == () and not draft.unmatched:
            left_without[draft.index].append(draft)
    remedy = "write a first test, or leave out `tests` to run the whole suite"
    for (index, position), some in unmatched.items():
        text = (some[0].document.tests or ())[position]
        what = f"{quoted(text)} matches no file{_for(some)}"
        hint = checkout.hint(some[0].unmatched[position]) if len(some) == 1 else ""
        yield Mistake(("scopes", index, "tests", position), what, f"{hint} Or {remedy}" if hint else remedy)
    for index, some in left_without.items():
        what = f"nothing is left{_for(some)} without the files that other scopes write"
        yield Mistake(("scopes", index, "tests"), what, remedy)


def _for(drafts: Sequence[_Draft]) -> str:
    return "" if drafts[0].document.name is not None else f" for {listed([draft.name for draft in drafts])}"


def _duplicates(expanded: Sequence[Expanded], documents: Sequence[ScopeDocument]) -> Iterator[Mistake]:
    """Scopes with one name, scopes with one `write`."""
    named: dict[str, Expanded] = {}
    written: dict[str, Expanded] = {}
    same_name: dict[tuple[int, int], list[str]] = defaultdict(list)
    same_write: dict[tuple[int, int], list[tuple[str, str, str]]] = defaultdict(list)
    for each in expanded:
        other = named.setdefault(each.scope.name, each)
        if other is not each:
            same_name[each.index, other.index].append(quoted(each.scope.name))
            continue  # that they write one file follows from it
        other = written.setdefault(each.scope.write, each)
        if other is not each:
            same_write[each.index, other.index].append((each.scope.write, other.scope.name, each.scope.name))
    for (index, first), names in same_name.items():
        key = "mutate" if documents[index].name is None else "name"
        what = f"two scopes are called {listed(names)}"
        yield Mistake(("scopes", index, key), what, "one file, or one name, is one scope", ("scopes", first))
    for (index, first), found in same_write.items():
        what = f"two scopes write {listed(list(dict.fromkeys(quoted(write) for write, _, _ in found)))}"
        if index == first:
            what += f", {found[0][1]} and {found[0][2]}"
            yield Mistake(("scopes", index, "write"), what, "give each a file of its own, by {stem} and {dir}")
        else:
            yield Mistake(("scopes", index, "write"), what, "give each a file of its own", ("scopes", first))


def _write_mistakes(
    expanded: Sequence[Expanded], documents: Sequence[ScopeDocument], checkout: Checkout
) -> Iterator[Mistake]:
    wrong: dict[tuple[int, str], list[str]] = defaultdict(list)
    new: dict[str, int] = {}
    for each in expanded:
        write = each.scope.write
        directory = documents[each.index].write.endswith("/")
        reason = "is a directory" if directory else checkout.unwritable(write)
        if reason:
            wrong[each.index, reason].append(quoted(write))
        elif write not in checkout.files:
            new[write] = each.index
    try:
        for write in checkout.ignored(new) if new else ():
            wrong[new[write], "is ignored by git, so it could never be committed"].append(quoted(write))
    except NoFiles as error:
        yield Mistake(("scopes",), f"whether a `write` file is ignored can't be told: {error}")
    for (index, reason), paths in wrong.items():
        what = f"{listed(paths)} {reason}"
        yield Mistake(("scopes", index, "write"), what, "name a test file of the project")


def config_file(path: str | None, checkout: Checkout) -> tuple[str | None, list[Mistake]]:
    """`engine.config` in one spelling, and whether it's there."""
    if path is None:
        return None, []
    return _normal(path), _existing([patterns.escape(path)], ("engine", "config"), checkout)[1]


def _existing(texts: Sequence[str], where: Where, checkout: Checkout) -> tuple[tuple[str, ...], list[Mistake]]:
    """The files that patterns mean. A path without wildcards may be ignored by git, or yet to be made by a task."""
    chosen: set[str] = set()
    mistakes: list[Mistake] = []
    for position, text in enumerate(texts):
        at, pattern = (*where, position), _normal(text)
        wrong = list(_bad_pattern(at, text))
        mistakes += wrong
        path = pattern if checkout.has(pattern) else patterns.unescape(pattern)
        if wrong:
            pass
        elif pattern.startswith("!"):
            chosen.difference_update(checkout.files.matching(pattern[1:]))
        elif path is None:
            chosen.update(checkout.files.matching(pattern))
            if not checkout.files.matching(pattern):
                mistakes.append(Mistake(at, f"{quoted(text)} matches no file of the project", checkout.hint(pattern)))
        elif checkout.has(path):
            chosen.add(path)
        else:
            mistakes.append(Mistake(at, f"no file {quoted(path)}, and no task writes it", checkout.hint(path)))
    return tuple(sorted(chosen)), mistakes
