"""Claude Code as an agent: `claude -p --output-format stream-json`, edits accepted, `slot` the one command allowed.

Source: its CLI reference (code.claude.com/docs/en/cli-reference). The last line of the stream is the envelope that
`--output-format json` gives alone.
"""

from __future__ import annotations

import attrs

from ..generators import Reply
from ..generators.claude import Claude, count
from ..model import Agent as Config
from ..model import GeneratorConfig
from .base import lines, mapping, total


@attrs.frozen
class ClaudeCode:
    """`use: claude`"""

    config: Config

    @property
    def argv(self) -> tuple[str, ...]:
        model = ("--model", self.config.model) if self.config.model else ()
        effort = ("--effort", self.config.effort) if self.config.effort else ()
        # The option that takes a list is followed by another one, which ends the list.
        allowed = ("--allowedTools", "Bash(slot:*)", "--permission-mode", "acceptEdits")
        # A stream in print mode is only given with --verbose.
        return ("claude", "-p", "--output-format", "stream-json", "--verbose", *allowed, *model, *effort)

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
        asked = Claude(GeneratorConfig("claude", "claude", model=self.config.model))  # its envelope is the same
        return asked.classify(exit_code, raw, err, timed_out=timed_out, too_much_output=too_much_output)


def spent(raw: bytes) -> int:
    """What the messages of the stream have taken. A message comes in several records, the last of which is whole."""
    messages = {}
    for index, line in enumerate(lines(raw)):
        message = mapping(line.get("message"))
        if line.get("type") == "assistant" and message.get("usage"):
            messages[message.get("id", index)] = total(count(message))
    return sum(messages.values())
