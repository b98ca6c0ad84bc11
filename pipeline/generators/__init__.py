"""Who writes candidate tests. A new generator that calls a model is one file here and one line in the dict.

Embedded generators spend no token and run in `search`; they are packages of their own and are not imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..model import GeneratorConfig
from .base import LIMIT, NOT_MEASURED, Ask, Generator, Question, Reply, Tokens, read
from .claude import Claude
from .command import Command

GENERATORS: Mapping[str, Callable[[GeneratorConfig], Generator]] = {"claude": Claude, "command": Command}

__all__ = ["GENERATORS", "LIMIT", "NOT_MEASURED", "Ask", "Generator", "Question", "Reply", "Tokens", "read"]
