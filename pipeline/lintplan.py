"""`lint` of tasks.yaml: as it's written, what is wrong with it, what it means. Reads the baselines that there are."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal

import attrs

from . import lint, model
from .checkout import Checkout
from .kinds import EXIT_CODE, LINES, PATTERN, SECONDS
from .source import Mistake, Where, listed, quoted

if TYPE_CHECKING:
    from .document import ConditionDocument  # which is made of what is here

Format = Literal["sarif", "regex", "lines"]
PATTERN_OF_LINT = "For `format: regex`: groups of the names path, line, rule and message say what is what"
EXIT_OF_LINT = "Exit codes with which it has come to its end, 0 and 1 if left out; any other is a crash"
GROUPS = ("path", "line", "rule", "message")
REMEDY = "mend it, or delete it and run `doit lint --accept`"


@attrs.frozen
class LintDocument:
    """A linter whose findings are held against a baseline: only those that are not in it fail."""

    run: Annotated[str, LINES, "A shell command, run in the project's root"]
    format: Annotated[
        Format,
        "How it says findings: SARIF on standard output; lines that match `pattern`; every line of standard output",
    ]
    baseline: Annotated[str, PATTERN, "The file of known findings; `doit lint --accept` writes it"]
    pattern: Annotated[str | None, LINES, PATTERN_OF_LINT] = None
    exit: Annotated[tuple[Annotated[int, EXIT_CODE], ...], EXIT_OF_LINT] = (0, 1)
    timeout: Annotated[float, SECONDS, "Then it's ended, and nothing is verified"] = 600.0


def lints(
    documents: Mapping[str, LintDocument], checkout: Checkout, where: Where = ("lint",)
) -> tuple[tuple[model.Lint, ...], list[Mistake]]:
    """Every declared linter, and all that is wrong with it. where: the place of the mapping."""
    mistakes: list[Mistake] = []
    found: list[model.Lint] = []
    for name, doc in documents.items():
        path = checkout.spelled(doc.baseline)
        made = model.Lint(name, doc.run, doc.format, path, doc.pattern or "", doc.exit, doc.timeout)
        mistakes += _mistakes((*where, name), doc, made, checkout)
        if any(other.baseline == path for other in found):
            what = f"two linters have the baseline {quoted(path)}"
            mistakes.append(Mistake((*where, name, "baseline"), what, "give each a file of its own"))
        found.append(made)
    return tuple(found), mistakes


def of_condition(name: str, doc: "ConditionDocument", checkout: Checkout) -> model.Lint | None:
    """The linter that a condition is, None where it is none; what is wrong with it is told by `condition_mistakes`."""
    if doc.format is None or doc.baseline is None:
        return None
    path = checkout.spelled(doc.baseline)
    return model.Lint(name, doc.run[0], doc.format, path, doc.pattern or "", doc.exit or (0, 1), doc.timeout)


def condition_mistakes(
    where: Where, doc: "ConditionDocument", made: model.Condition, may_write: Callable[[str], bool], checkout: Checkout
) -> Iterator[Mistake]:
    """may_write: whether the agent whose change it judges may change a path."""
    missing = [key for key in ("format", "baseline") if getattr(doc, key) is None]
    if missing and (len(missing) == 1 or doc.pattern is not None or doc.exit is not None):
        yield Mistake((*where, missing[0]), f"`{missing[0]}` is missing", "a linter has a `format` and a `baseline`")
    if made.lint is None or doc.format is None or doc.baseline is None:
        return
    if len(doc.run) != 1:
        yield Mistake((*where, "run"), "a linter is one command", "join them, or make conditions of them")
    whole = LintDocument(doc.run[0], doc.format, doc.baseline, doc.pattern, (0, 1) if doc.exit is None else doc.exit)
    yield from _mistakes(where, whole, made.lint, checkout)
    if may_write(made.lint.baseline):
        what = f"the agent may change {quoted(made.lint.baseline)}, which its change is held against"
        yield Mistake((*where, "baseline"), what, "take it out of the task's `writes`")


def _mistakes(where: Where, doc: LintDocument, made: model.Lint, checkout: Checkout) -> Iterator[Mistake]:
    if (doc.format == "regex") != (doc.pattern is not None):
        what = "`pattern` is missing" if doc.pattern is None else f"`format: {doc.format}` takes no `pattern`"
        yield Mistake((*where, "pattern"), what, "`format: regex` and `pattern` go together")
    if not doc.exit:
        yield Mistake((*where, "exit"), "no exit code would be an end", "leave it out, or list them")
    try:
        groups = re.compile(doc.pattern or "(?P<path>)").groupindex
        if strange := sorted(groups.keys() - set(GROUPS)):
            yield Mistake((*where, "pattern"), f"no group {quoted(strange[0])} here", f"say one of {listed(GROUPS, 9)}")
        elif not groups.keys() & {"path", "message"}:
            remedy = "name what is where: (?P<path>...), (?P<line>...), (?P<rule>...), (?P<message>...)"
            yield Mistake((*where, "pattern"), "it has neither a group `path` nor a group `message`", remedy)
    except re.error as error:
        yield Mistake((*where, "pattern"), f"{quoted(doc.pattern or '')} is no regular expression: {error}")
    if made.baseline == ".." or made.baseline.startswith("../"):
        what = f"{quoted(doc.baseline)} lies outside the project"
        yield Mistake((*where, "baseline"), what, "name a file of the project")
    elif what := unreadable(checkout, made.baseline):
        yield Mistake((*where, "baseline"), what, REMEDY)


def unreadable(checkout: Checkout, path: str) -> str:
    """Why a baseline cannot be read; "" where it can, or is yet to be written."""
    try:
        lint.load((checkout.root / path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        return f"{quoted(path)} is no baseline: it is not UTF-8"
    except OSError as error:
        return f"{quoted(path)} cannot be read: {error.strerror}"
    except lint.BadBaseline as error:
        return f"{quoted(path)} is no baseline: line {error.line}: {error}"
    return ""
