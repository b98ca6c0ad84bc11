"""What a generator is asked, what it replies, and what it is. Values and one protocol; nothing is started here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import attrs

from ..process import Finished
from ..results import Outcome, Survivor

LIMIT = 40  # questions in one call: replies to more of them lose tests
MAX_REPLY = 8 << 20  # bytes; what says more than this is no reply


@attrs.frozen
class Question:
    """What one survivor is about. Lines and columns are 1-based; the end is exclusive."""

    survivor: Survivor
    line: int
    column: int
    end_line: int
    end_column: int
    block: str  # original source text of the enclosing block
    block_line: int  # the line that `block` starts at
    mutated: str  # `block` with the mutant applied
    status: Literal["Survived", "NoCoverage"]
    covering: tuple[str, ...] = ()  # full titles of the tests that run it
    earlier: tuple[str, ...] = ()  # one line for each test that was tried before, and why it failed
    hint: str = ""  # what is known about inputs that reach it
    outline: str = ""  # signatures of what stands around `block`


@attrs.frozen
class Ask:
    """One call: survivors of one scope, and how its tests are written. Paths are relative to the project's root."""

    scope: str
    files: tuple[str, ...]  # the files mutated
    write: str  # where the tests will stand: imports are relative to it
    framework: str  # "mocha, node:assert/strict, ESM"
    language: str = "javascript"  # the engine's
    module_imports: tuple[str, ...] = ()  # import statements as existing tests write them, fit for `write`
    style: tuple[str, ...] = ()  # one or two whole existing tests
    titles_taken: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()  # best first; LIMIT of them are asked
    bodies: Mapping[str, str] = attrs.field(factory=dict)  # covering tests' text, by full title; those worth showing

    @property
    def numbered(self) -> tuple[Question, ...]:
        """The questions that are asked, those of one block together and in the order of its lines. A mutant's number
        in prompt and reply is its place here, from 1."""
        return tuple(sorted(self.questions[:LIMIT], key=_place))


def _place(question: Question) -> tuple[str, int, str, int, int, str]:
    q = question
    return q.survivor.file, q.block_line, q.block, q.line, q.column, q.survivor.key


@attrs.frozen
class Tokens:
    """What a call cost, as the provider's own envelope says; never a self-report, never a guess."""

    fresh_input: int = 0
    cache_write: int = 0
    cache_read: int = 0
    output: int = 0
    cost: float | None = None  # USD
    source: Literal["envelope", "not measured"] = "envelope"


NOT_MEASURED = Tokens(source="not measured")
MOST = 10**10  # tokens: no call has come near it


def believable(tokens: Tokens | None) -> Tokens | None:
    """The tokens; not measured where an envelope states what cannot be: it would be in every sum of the books."""
    if tokens is None or tokens == NOT_MEASURED:
        return tokens
    counts = (tokens.fresh_input, tokens.cache_write, tokens.cache_read, tokens.output)
    cost = 0.0 if tokens.cost is None else tokens.cost
    return tokens if all(0 <= n <= MOST for n in counts) and 0 <= cost <= MOST else NOT_MEASURED


@attrs.frozen
class Reply:
    """How one call ended."""

    outcome: Outcome
    text: str = ""  # what the model said, where outcome is OK
    detail: str = ""  # one line where it isn't: what is wrong and the remedy
    tokens: Tokens | None = None  # None: no call was made, nothing was spent
    model: str | None = None  # the one that answered, where that is known; else the one asked for
    seconds: float = 0.0  # wall clock
    cpu_seconds: float | None = None  # of the program here, not of the model


class Classifies(Protocol):
    """Who reads what a program that calls a model has said."""

    def classify(
        self,
        exit_code: int | None,
        raw: bytes,
        err: bytes = b"",
        *,
        timed_out: bool = False,
        too_much_output: bool = False,
    ) -> Reply:
        """Read what a call said. Pure, so that a kept reply is read again after a crash; `exit_code` is None where
        nobody was there to see it."""


class Generator(Classifies, Protocol):
    """A model behind a program: one prompt in, one text out. It writes no file and may use no tool."""

    @property
    def name(self) -> str:
        """As tasks.yaml calls it."""

    @property
    def template_version(self) -> str:
        """Changes when the wording of prompts does: an attempt under another wording is another attempt."""

    def key(self) -> Mapping[str, str]:
        """What, beside the prompt, decides a reply: use, model, argv."""

    def call(self, prompt: str, *, cwd: Path, out_file: Path, timeout: float | None) -> Finished:
        """Make the call. `out_file` gets what it says, as it came, before anybody reads it. `timeout` in seconds.

        `cwd`: an empty folder, for such programs take instructions from the files where they are started. Never raises
        for what the program does; one that isn't there ends with 127, as in a shell.
        """


def read(generator: Classifies, finished: Finished) -> Reply:
    """The reply of a call that has just ended, with what it took."""
    reply = generator.classify(
        finished.exit_code, finished.out, finished.err,
        timed_out=finished.timed_out, too_much_output=finished.too_much_output,
    )  # fmt: skip
    return attrs.evolve(reply, seconds=finished.seconds, cpu_seconds=finished.cpu_seconds)


def one_line(lines: Iterable[str], limit: int = 300) -> str:
    """What a program said, fit for a message of one line."""
    text = " ".join(" ".join(lines).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
