"""Gemini CLI as an agent: headless, its stream as JSON lines, edits approved by themselves.

Source: geminicli.com/docs/cli/headless. In a folder that it was not told to trust it falls back to asking, and so to
changing nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..generators import NOT_MEASURED, Reply, Tokens
from ..generators.base import one_line
from ..generators.claude import outcome_of
from ..results import Outcome
from .base import Streaming, lines, mapping, total, whole


@attrs.frozen
class Gemini(Streaming):
    """`use: gemini`"""

    @property
    def argv(self) -> tuple[str, ...]:
        model = ("--model", self.config.model) if self.config.model else ()
        allowed = ("--approval-mode", "auto_edit", "--allowed-tools", "run_shell_command(slot)")
        return ("gemini", "--output-format", "stream-json", *allowed, *model)

    def spent(self, raw: bytes) -> int:
        ended = [line for line in lines(raw) if line.get("type") == "result"]
        return total(_tokens(ended[-1]) or Tokens()) if ended else 0

    def told(self, lines: list[Mapping[str, Any]]) -> Reply | None:
        for line in reversed(lines):
            if line.get("type") == "result" or "stats" in line:
                tokens = _tokens(line) or NOT_MEASURED
                error = mapping(line.get("error"))
                if error or line.get("status") == "error":
                    said = str(error.get("message") or "an error without a text")
                    return Reply(outcome_of(said), detail=f"gemini: {one_line([said])}", tokens=tokens)
                return Reply(Outcome.OK, tokens=tokens)
        return None


def _tokens(line: Mapping[str, Any]) -> Tokens | None:
    """Of the stream's last event, or of the one object that its other format is: there by model, and more exactly."""
    stats = mapping(line.get("stats"))
    models = [mapping(mapping(each).get("tokens")) for each in mapping(stats.get("models")).values()]
    if any(models):
        cached = sum(whole(m.get("cached")) for m in models)
        given = sum(whole(m.get("prompt")) + whole(m.get("tool")) for m in models)
        written = sum(whole(m.get("candidates")) + whole(m.get("thoughts")) for m in models)
        return Tokens(max(0, given - cached), 0, cached, written)
    if not whole(stats.get("total_tokens")):
        return None
    cached = whole(stats.get("cached"))
    return Tokens(max(0, whole(stats.get("input_tokens")) - cached), 0, cached, whole(stats.get("output_tokens")))
