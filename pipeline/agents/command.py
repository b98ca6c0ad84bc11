"""Any program as an agent: the brief on its standard input, its edits where it is started. What it spends is not
measured, unless it ends by saying the envelope of Claude Code."""

from __future__ import annotations

import attrs

from ..generators import NOT_MEASURED, Reply
from ..generators.claude import find_envelope, judged
from ..generators.command import failure
from ..model import Agent as Config
from ..results import Outcome
from .claude import spent


@attrs.frozen
class Program:
    """`use: command`, with the program and its arguments in `run`."""

    config: Config

    @property
    def argv(self) -> tuple[str, ...]:
        return self.config.run

    def spent(self, raw: bytes) -> int:
        return spent(raw)

    def classify(
        self,
        exit_code: int | None,
        raw: bytes,
        err: bytes = b"",
        *,
        timed_out: bool = False,
        too_much_output: bool = False,
    ) -> Reply:
        envelope = find_envelope(raw.decode(errors="replace"))
        program = self.argv[0]
        reply = judged(envelope, program) if envelope is not None else None
        reply = reply or failure(program, exit_code, err or raw, timed_out, too_much_output)
        if reply is None and exit_code is None:  # its edits are its reply, and nobody saw them end
            reply = Reply(Outcome.LOST, detail=f"the call of {program} died with the run that made it")
        reply = reply or Reply(Outcome.OK, tokens=NOT_MEASURED)
        return attrs.evolve(reply, model=reply.model or self.config.model)
