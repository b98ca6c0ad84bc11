"""Who drafts changes: programs that call a model and edit files. A new one is one class here and one line in the dict.

What each is started with is in its own documentation; what it says is read as its envelope, never as a self-report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..model import Agent as Config
from .base import Agent
from .claude import ClaudeCode
from .codex import Codex
from .command import Program
from .gemini import Gemini

AGENTS: Mapping[str, Callable[[Config], Agent]] = {
    "claude": ClaudeCode, "codex": Codex, "gemini": Gemini, "command": Program,
}  # fmt: skip

__all__ = ["AGENTS", "Agent"]
