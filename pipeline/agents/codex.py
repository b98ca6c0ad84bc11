"""Codex CLI as an agent: `codex exec --json`, which may write in the folder where it is started.

Source: developers.openai.com/codex/noninteractive. It states no cost; cached input is part of its input tokens.
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
class Codex(Streaming):
    """`use: codex`"""

    @property
    def argv(self) -> tuple[str, ...]:
        model = ("--model", self.config.model) if self.config.model else ()
        effort = ("--config", f'model_reasoning_effort="{self.config.effort}"') if self.config.effort else ()
        sandbox = ("--sandbox", "workspace-write", "--skip-git-repo-check")
        return ("codex", "exec", "--json", *sandbox, *model, *effort, "-")

    def spent(self, raw: bytes) -> int:
        return total(_tokens(list(lines(raw))) or Tokens())

    def told(self, lines: list[Mapping[str, Any]]) -> Reply | None:
        tokens = _tokens(lines) or NOT_MEASURED
        for line in reversed(lines):
            if line.get("type") == "turn.completed":
                return Reply(Outcome.OK, tokens=tokens)
            if line.get("type") in ("turn.failed", "error"):
                said = mapping(line.get("error")).get("message") or line.get("message") or "an error without a text"
                return Reply(outcome_of(str(said)), detail=f"codex: {one_line([str(said)])}", tokens=tokens)
        return None


def _tokens(lines: list[Mapping[str, Any]]) -> Tokens | None:
    usages = [mapping(line.get("usage")) for line in lines if line.get("type") == "turn.completed"]
    if not any(usages):
        return None
    cached = sum(whole(u.get("cached_input_tokens")) for u in usages)
    given = sum(whole(u.get("input_tokens")) for u in usages)
    return Tokens(max(0, given - cached), 0, cached, sum(whole(u.get("output_tokens")) for u in usages))
