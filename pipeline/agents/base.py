"""What an agent is: one protocol, and what its classes share. Nothing is started here."""

from __future__ import annotations

import abc
import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import attrs

from ..generators import NOT_MEASURED, Reply, Tokens
from ..generators.base import Classifies
from ..generators.command import failure
from ..model import Agent as Config
from ..results import Outcome

MAX_STREAM = 256 << 20  # bytes of one draft's stream; what says more than this is out of order


class Agent(Classifies, Protocol):
    """A program that gets a brief on its standard input and edits the files where it is started."""

    @property
    def config(self) -> Config: ...

    @property
    def argv(self) -> tuple[str, ...]:
        """The program and its arguments, model and effort among them."""

    def spent(self, raw: bytes) -> int:
        """Tokens that its stream accounts for so far: fresh input, cache writes and output. 0 where it tells none."""


@attrs.frozen
class Streaming(abc.ABC):
    """An agent whose stream is JSON lines. `told`: what came of it, from all the lines."""

    config: Config

    @abc.abstractmethod
    def told(self, lines: list[Mapping[str, Any]]) -> Reply | None:
        """The reply, None where nothing in the stream says how it ended."""

    def classify(
        self,
        exit_code: int | None,
        raw: bytes,
        err: bytes = b"",
        *,
        timed_out: bool = False,
        too_much_output: bool = False,
    ) -> Reply:
        program = self.config.use
        reply = self.told(list(lines(raw)))
        reply = reply or failure(program, exit_code, err or raw, timed_out, too_much_output)
        if reply is None and exit_code is None:
            reply = Reply(Outcome.LOST, detail=f"the call of {program} died with the run that made it")
        if reply is None:
            detail = f"{program} ended without saying how it went"
            reply = Reply(Outcome.UNPARSABLE, detail=detail, tokens=NOT_MEASURED)
        return attrs.evolve(reply, model=reply.model or self.config.model)


def lines(raw: bytes) -> Iterator[Mapping[str, Any]]:
    """The objects of a stream of JSON lines; what is none is passed over."""
    for line in raw.splitlines():
        if line.lstrip().startswith(b"{"):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def total(tokens: Tokens) -> int:
    """What counts against a budget."""
    return tokens.fresh_input + tokens.cache_write + tokens.output
