"""tasks.yaml as it's written: frozen classes that mirror it, data → those classes.

Knows the shape of the document, not what its parts have to do with one another: that is config.py's.
"""

import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import attrs
import cattrs

from . import hooks, model
from .kinds import (
    ARGUMENT,
    BATCH,
    BOOLEAN,
    BYTES,
    CONDITION,
    COUNT,
    EXIT_CODE,
    LINES,
    NAME,
    ONE_OR_MANY,
    PATTERN,
    POOL_NAME,
    SECONDS,
    TASK_NAME,
    TEXT,
    TOKENS,
    VARIABLE,
    VERSION,
    WORKERS,
    Argv,
    Commands,
    Name,
    Pattern,
    Patterns,
    Short,
    Single,
    Unexpected,
)
from .lintplan import EXIT_OF_LINT, PATTERN_OF_LINT, Format, LintDocument
from .source import Mistake, Where, nearest, quoted
from .wishes import GenerateDocument, ModelsDocument

# --- the document -----------------------------------------------------------------------------------------------------


@attrs.frozen
class EngineDocument:
    """The program that mutates and tests."""

    use: Annotated[
        Literal["stryker-js", "stryker-net"],
        "Which engine",
    ] = "stryker-js"
    concurrency: Annotated[
        int | Literal["auto"], WORKERS, "Worker processes of one engine run; auto: cores // n, at least 1"
    ] = "auto"
    needs: Annotated[tuple[Name, ...], "Declared tasks that must have run before any baseline"] = ()
    command: Annotated[Argv, "Another engine program, with leading arguments; left out: the project's own"] = ()
    config: Annotated[str | None, PATTERN, "The engine's configuration file, where it isn't found by itself"] = None
    time_limit: Annotated[float, SECONDS, "For one engine run"] = 3600.0
    max_age: Annotated[float | None, SECONDS, "What was measured longer ago is measured anew; left out: never"] = None
    project: Annotated[
        str | None, PATTERN, "stryker-net: the project file that is mutated; left out: the one that the files lie in"
    ] = None
    tests: Annotated[
        str | None, PATTERN, "stryker-net: the test project's file; left out: the one that `write` lies in"
    ] = None


@attrs.frozen
class LandDocument:
    """Where proved tests become commits."""

    branch: Annotated[str, TEXT, "The landing branch; {branch}: the branch that is checked out"] = "mutate/{branch}"
    proof_runs: Annotated[int, COUNT, "Fresh runs on the original that every test must pass"] = 5
    time_limit: Annotated[float, SECONDS, "For one commit with your hooks"] = 600.0


@attrs.frozen
class ScopeDocument:
    """Files to mutate, the tests that cover them, and the one test file that may be written.

    Without `name`: one scope for each file that `mutate` matches.
    """

    mutate: Annotated[Patterns, "Files to mutate; a pattern with ! takes files out"]
    write: Annotated[
        str, PATTERN, "The one test file that may be written; {stem}, {name} and {dir} are the mutated file's"
    ]
    tests: Annotated[
        Patterns | None,
        ONE_OR_MANY,
        "Tests that cover them, {stem}, {name} and {dir} as in `write`; left out: the whole suite",
    ] = None
    name: Annotated[str | None, NAME, "With a name: one scope over all that `mutate` matches"] = None
    reads: Annotated[tuple[Pattern, ...], "Files that the tests open beside the modules they load"] = ()
    model: Annotated[str | None, TEXT, "The model that is asked for its tests, before all that `models` says"] = None
    effort: Annotated[str | None, TEXT, "How hard it is to think, likewise"] = None
    confidence: Annotated[Literal["high", "medium", "low"] | None, "For `models: by_confidence`"] = None


OWNS = "What it has for itself while it runs: a lock over the machine, watchers that pause, {out}"


@attrs.frozen
class OwnsDocument:
    """What commands have for themselves while they run. With it, {out} in them is an empty folder of their own."""

    lock: Annotated[str | None, NAME, "A name: no other run on this machine has it at the same time"] = None
    pause: Annotated[Commands, "Shell commands that stop a watcher, in the project's root, before the first"] = ()
    resume: Annotated[Commands, "Shell commands that start it again, whatever came of them; twice does no harm"] = ()


@attrs.frozen
class AgentDocument:
    """A program that calls a model and edits files: it drafts the task's change in a worktree of its own."""

    brief: Annotated[str, LINES, "What it is to do: a file of the project (one word), or the text itself"]
    use: Annotated[Literal["claude", "codex", "gemini", "command"], "Which program; command: one of your own"] = (
        "claude"
    )
    run: Annotated[Argv, "For `use: command`: the program and its arguments; the brief is on its standard input"] = ()
    model: Annotated[str | None, TEXT, "The model that is asked; left out: the program's own default"] = None
    effort: Annotated[str | None, TEXT, "How hard it is to think; left out: the program's own default"] = None
    time_limit: Annotated[float, SECONDS, "For one draft"] = 3600.0
    budget: Annotated[int | None, TOKENS, "Tokens of one draft: fresh input, cache writes and output together"] = None


@attrs.frozen
class ConditionDocument:
    """One condition of a check; its command alone will do where it needs nothing else."""

    run: Annotated[Commands, "Shell commands, one after another"]
    hidden: Annotated[bool, BOOLEAN, "The agent is told neither of it nor of what it says; such come last"] = False
    timeout: Annotated[float, SECONDS, "Then it is ended, and the change is not verified"] = 3600.0
    owns: Annotated[OwnsDocument | None, OWNS] = None
    format: Annotated[Format | None, "Of a linter: how it says findings, of which only new ones fail"] = None
    baseline: Annotated[str | None, PATTERN, "Of a linter: the file of known findings, as the change has it"] = None
    pattern: Annotated[str | None, LINES, PATTERN_OF_LINT] = None
    exit: Annotated[tuple[Annotated[int, EXIT_CODE], ...] | None, EXIT_OF_LINT] = None


@attrs.frozen
class LookDocument:
    """A look at what has landed; its command alone will do where a person ends it."""

    run: Annotated[Commands, "Shell commands on the landing branch; {out}: a folder that stays, cache/tasks/NAME/look"]
    by: Annotated[
        Literal["person", "tool"], "Who ends it: a person, at a terminal, by `doit look`; a tool, with `doit build`"
    ] = "person"
    timeout: Annotated[float | None, SECONDS, "Then it is ended; left out: an hour for a tool, none for a person"] = (
        None
    )


@attrs.frozen
class TaskDocument:
    """An ordinary task: shell commands with file scopes, run in the project's root; or a change by an agent."""

    RULES: typing.ClassVar[Mapping[str, Any]] = {"oneOf": [{"required": ["run"]}, {"required": ["agent", "check"]}]}

    name: Annotated[str, TASK_NAME, "What `doit` and other tasks call it"]
    run: Annotated[Commands, "Shell commands, one after another"] = ()
    reads: Annotated[
        tuple[Pattern, ...], "Files, directories and patterns that it depends on; without any it runs every time"
    ] = ()
    writes: Annotated[
        tuple[Pattern, ...],
        "Files, directories and patterns that it may change, and all that it may; tasks that write one file never run "
        "together",
    ] = ()
    needs: Annotated[tuple[Name, ...], "Declared tasks that must have run before"] = ()
    pool: Annotated[str, NAME, "The pool whose slot it takes: validation or one of `pools`"] = model.VALIDATION
    doc: Annotated[str, LINES, "What `doit list` says of it"] = ""
    env: Annotated[
        Mapping[Annotated[str, VARIABLE], Annotated[str, ARGUMENT]], "Environment variables, added to your own"
    ] = attrs.field(factory=dict)
    timeout: Annotated[float | None, SECONDS, "For all its commands together; then it's ended and has failed"] = None
    memory: Annotated[
        int | None,
        BYTES,
        "Kept free for it while it runs; where its processes together take more, it's ended and has failed",
    ] = None
    agent: Annotated[
        AgentDocument | None, Short("brief"), "Who drafts the change, in the place of `run`; its brief alone will do"
    ] = None
    check: Annotated[
        Mapping[Annotated[str, CONDITION], Annotated[ConditionDocument, Short("run")]],
        "What must hold of the change, by name and in this order: commands in the project's root",
    ] = attrs.field(factory=dict)
    confidence: Annotated[
        Literal["high", "medium", "low"] | None, "How sure you are that it will go well, for `models: by_confidence`"
    ] = None
    owns: Annotated[OwnsDocument | None, OWNS] = None
    look: Annotated[
        LookDocument | None, Short("run"), "How what has landed is looked at: ending with 0, it has been seen"
    ] = None


@attrs.frozen
class GateDocument:
    """A build that judges agents' changes before they land: several at once, and those to blame are found."""

    build: Annotated[Commands, "Shell commands in the project's root of a worktree: all end with 0, or nothing lands"]
    each: Annotated[Commands, "A cheap condition, the first of every check: shell commands, run as drafts come"] = ()
    batch: Annotated[int | Literal["auto"], BATCH, "The most changes of one build; auto: by how many are to blame"] = (
        "auto"
    )
    timeout: Annotated[float, SECONDS, "For one build; then it is ended, and nothing is known of its changes"] = 3600.0
    owns: Annotated[OwnsDocument | None, OWNS] = None


@attrs.frozen
class Document:
    """The plan of a mutation drive: what to mutate, what covers it, who may write tests."""

    # A default only so that a document without it is read to its end.
    version: Annotated[int, VERSION, "The version of this format"] = attrs.field(default=1, metadata={"required": True})
    project: Annotated[str, TEXT, "The code under test: a directory inside a git repository, relative to this file"] = (
        "."
    )
    store: Annotated[
        str | None,
        TEXT,
        "Where proofs, kept replies, measurements and worktrees are, relative to this file; left out: the user's own "
        "data and cache directories. DOIT_MUTATE_HOME goes before it",
    ] = None
    pools: Annotated[
        Mapping[Annotated[str, POOL_NAME], Annotated[int, COUNT]],
        "Slots by pool; generation: calls to a model in flight, 1 if left out",
    ] = attrs.field(factory=dict)
    since: Annotated[
        str | None,
        TEXT,
        "Mutate only lines that have changed since this ref; `since=REF` on the command line goes first",
    ] = None
    engine: Annotated[EngineDocument, "The program that mutates and tests"] = EngineDocument()
    generate: Annotated[GenerateDocument, "Who writes tests, and how often a model is asked"] = attrs.field(
        factory=GenerateDocument
    )
    models: Annotated[ModelsDocument, "Which model is asked, and how hard it is to think"] = attrs.field(
        factory=ModelsDocument
    )
    land: Annotated[LandDocument, "Where proved tests become commits"] = LandDocument()
    scopes: Annotated[tuple[ScopeDocument, ...], "What to mutate"] = ()
    tasks: Annotated[tuple[TaskDocument, ...], "Anything else that the plan needs"] = ()
    lint: Annotated[
        Mapping[Annotated[str, NAME], LintDocument],
        Single("run", "lint"),
        "Linters by name, for `doit lint`; one alone may stand here without a name",
    ] = attrs.field(factory=dict)
    gate: Annotated[GateDocument | None, "What agents' changes land through"] = None
    compose: Annotated[
        Mapping[Annotated[str, PATTERN], Annotated[str, NAME]],
        "Files that many tasks have a share in, each as a file of its own in the folder PATH.d; and who makes PATH of "
        "them: a declared task, or `include` where the build system reads the folder itself",
    ] = attrs.field(factory=dict)


# --- plain data → Document --------------------------------------------------------------------------------------------


_converter = hooks.converter()


@attrs.frozen
class Reading:
    """What could be read of a document. What is wrong is left out, so that the rest can be judged too."""

    document: Document | None  # None: nothing could be
    mistakes: tuple[Mistake, ...]
    left_out: frozenset[Where] = frozenset()

    def originals(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Mistakes found in `document`, with their places in the document as it was written."""

        def moved_to(where: Where | None) -> Where | None:
            return None if where is None else self.original(where)

        moved = [
            attrs.evolve(m, where=self.original(m.where), also=moved_to(m.also), unless=moved_to(m.unless))
            for m in mistakes
        ]
        # What was there, but wrong, isn't missing as well.
        return [each for each in moved if each.where not in self.left_out and each.unless not in self.left_out]

    def original(self, where: Where) -> Where:
        """A place in `document`, whose lists may be shorter, as a place in the document as it was written."""
        found: Where = ()
        for step in where:
            for gone in sorted(out[-1] for out in self.left_out if out[:-1] == found and isinstance(out[-1], int)):
                if isinstance(step, int) and gone <= step:
                    step += 1
            found = (*found, step)
        return found


def read(data: Any) -> Reading:
    """Everything in `data` that has the shape of a plan, and every mistake in its shape."""
    reading = Reading(None, ())
    if isinstance(data, dict) and "version" not in data:
        reading = Reading(None, (Mistake((), "`version` is missing", "begin with `version: 1`"),))
    while True:
        rest = data
        # The last first: what is taken out of a list moves those after it.
        for where in sorted(reading.left_out, key=_order, reverse=True):
            rest = _without(rest, where)
        try:
            return attrs.evolve(reading, document=_converter.structure(rest, Document))
        except (cattrs.BaseValidationError, Unexpected) as error:
            found = [(mistake, reading.original(culprit)) for mistake, culprit in _mistakes(error, ())]
        new = reading.originals(mistake for mistake, _ in found)
        left_out = reading.left_out | {culprit for _, culprit in found}
        assert left_out != reading.left_out, f"nothing is left out for {new}"  # it would be read so for ever
        reading = Reading(None, (*reading.mistakes, *new), left_out)
        if () in left_out:
            return reading


def _mistakes(error: BaseException, where: Where) -> Iterator[tuple[Mistake, Where]]:
    """Each mistake in cattrs' tree of them, and the place that is taken out because of it."""
    if isinstance(error, cattrs.ClassValidationError):
        for inner, note in error.group_exceptions()[0]:
            name = note.name.rstrip("_")
            if isinstance(inner, KeyError):
                described = hooks.marker(note.type, str) or ""
                what = f"`{name}` is missing: {described[:1].lower()}{described[1:]}"
                yield Mistake((*where, name), what), where
            else:
                yield from _mistakes(inner, (*where, name))
        for inner in error.group_exceptions()[1]:
            yield from _mistakes(inner, where)
    elif isinstance(error, cattrs.IterableValidationError):
        for inner, place in error.group_exceptions()[0]:
            yield from _mistakes(inner, (*where, place.index))
    elif isinstance(error, cattrs.ForbiddenExtraKeysError):
        for key in sorted(error.extra_fields):
            what = f"no key {quoted(key)} here"
            yield Mistake((*where, key), what, nearest(key, hooks.keys(error.cl))), (*where, key)
    elif isinstance(error, Unexpected):
        yield Mistake(where, error.what, error.remedy, show=error.show), _culprit(where)
    else:
        raise error  # ours, not the document's


def _culprit(where: Where) -> Where:
    """What a wrong value at `where` takes with it: the rest of an item means something else under another name."""
    for depth in range(1, len(where)):
        if where[depth] in ("name", "mutate") and isinstance(where[depth - 1], int):
            return where[:depth]
    return where


def _order(where: Where) -> list[tuple[int, str]]:
    return [(step, "") if isinstance(step, int) else (0, step) for step in where]


def _without(data: Any, where: Where) -> Any:
    """A copy of `data` in which nothing stands at `where`."""
    step, rest = where[0], where[1:]
    if rest:
        if isinstance(data, dict):
            return {**data, step: _without(data[step], rest)}
        return [_without(item, rest) if index == step else item for index, item in enumerate(data)]
    if isinstance(data, dict):
        return {key: value for key, value in data.items() if key != step}
    return [item for index, item in enumerate(data) if index != step]
