"""Any program as a generator: the prompt on its standard input, the model's text on its standard output.

What such a program spends is not measured: it has no envelope that says so, and a guess is not a measurement.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import attrs

from .. import process
from ..model import GeneratorConfig
from ..results import Outcome
from .base import MAX_REPLY, NOT_MEASURED, Reply, one_line
from .prompt import TEMPLATE_VERSION

MODEL_VARIABLE, EFFORT_VARIABLE = "DOIT_MUTATE_MODEL", "DOIT_MUTATE_EFFORT"
_COULD_NOT_START = (126, 127)  # what a shell says of a program that it cannot run, or cannot find


@attrs.frozen
class Command:
    """`use: command`, with the program and its arguments in `run`. Two variables tell it of model and effort."""

    config: GeneratorConfig

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def template_version(self) -> str:
        return TEMPLATE_VERSION

    @property
    def argv(self) -> tuple[str, ...]:
        return self.config.run

    def key(self) -> Mapping[str, str]:
        key = {"use": self.config.use, "model": self.config.model or "", "argv": shlex.join(self.argv)}
        return {**key, "effort": self.config.effort} if self.config.effort else key

    def call(self, prompt: str, *, cwd: Path, out_file: Path, timeout: float | None) -> process.Finished:
        try:
            return process.run(
                self.argv,
                cwd=cwd,
                env=environment(self.config.model, self.config.effort),
                stdin=prompt.encode(errors="replace"),
                timeout=timeout,
                out_file=out_file,
                max_output=MAX_REPLY,
                keep=True,  # a call outlives a run that is killed: its reply is paid for
            )
        except process.NotFound as error:
            return process.Finished(self.argv, _COULD_NOT_START[1], b"", str(error).encode(), 0.0, None, None)

    def classify(
        self,
        exit_code: int | None,
        raw: bytes,
        err: bytes = b"",
        *,
        timed_out: bool = False,
        too_much_output: bool = False,
    ) -> Reply:
        text = raw.decode(errors="replace")
        ended = failure(self.argv[0], exit_code, err or raw, timed_out, too_much_output)
        if ended is None and not text.strip():
            ended = silence(self.argv[0], exit_code)
        reply = ended or Reply(Outcome.OK, text, tokens=NOT_MEASURED)
        return attrs.evolve(reply, model=self.config.model)


def environment(
    model: str | None, effort: str | None, more: Mapping[str, str] | None = None
) -> dict[str, str]:  # fmt: skip
    """A child's environment, which tells a program of the user's own of the model that is wanted, where one is. What a
    run around this one has said is not for it. more: variables of the plan's."""
    said = {MODEL_VARIABLE: model, EFFORT_VARIABLE: effort}
    outer = {variable: value for variable, value in process.environment().items() if variable not in said}
    return {**outer, **(more or {}), **{variable: value for variable, value in said.items() if value}}


def failure(program: str, exit_code: int | None, said: bytes, timed_out: bool, too_much_output: bool) -> Reply | None:
    """What went wrong with the program itself, whichever it is; None where it came to an end that may be read.

    said: what it wrote last, for the message.
    """
    last = one_line(said.decode(errors="replace").strip().splitlines()[-3:])
    if timed_out:
        detail = f"{program} did not reply in time; raise the generator's time_limit"
        return Reply(Outcome.TIME_LIMIT, detail=detail, tokens=NOT_MEASURED)
    if too_much_output:
        detail = f"{program} said more than {MAX_REPLY >> 20} MB and was ended: no reply is that long"
        return Reply(Outcome.UNPARSABLE, detail=detail, tokens=NOT_MEASURED)
    if exit_code in _COULD_NOT_START:
        return Reply(Outcome.BAD_CONFIG, detail=f"{program} cannot be started: install it and put it on PATH ({last})")
    if exit_code is not None and exit_code < 0:
        return Reply(Outcome.SIGNAL, detail=f"{program} was ended by signal {-exit_code}", tokens=NOT_MEASURED)
    if exit_code:
        detail = f"{program} ended with exit code {exit_code}: {last or 'it said nothing'}"
        return Reply(Outcome.CRASHED, detail=detail, tokens=NOT_MEASURED)
    return None


def silence(program: str, exit_code: int | None) -> Reply:
    """A program that said nothing: its call died with an earlier run where nobody saw it end."""
    if exit_code is None:
        return Reply(Outcome.LOST, detail=f"the call of {program} died with the run that made it", tokens=NOT_MEASURED)
    return Reply(Outcome.EMPTY_REPLY, detail=f"{program} ended without saying anything", tokens=NOT_MEASURED)
