"""The user's stryker-config, as far as it is the user's: what is mutated and how long a test may take. What a run is
for, where it writes and how many processes it has is ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from pipeline.engines import EngineError

NAMES = ("stryker-config.json", "stryker-config.yaml", "stryker-config.yml")
THEIRS = frozenset(
    (
        "additional-timeout", "configuration", "ignore-methods", "ignore-mutations", "language-version",
        "mutation-level", "target-framework", "test-case-filter",
    )
)  # fmt: skip


@attrs.frozen
class Settings:
    theirs: Mapping[str, Any] = attrs.field(factory=dict)
    overridden: tuple[str, ...] = ()  # keys that are there and not respected
    name: str = ""  # of the file, as the user knows it

    @property
    def note(self) -> str:
        """What is to be said of it, or ""."""
        if not self.overridden:
            return ""
        return f"{self.name}: {', '.join(self.overridden)}: set by doit-mutate, the rest is respected"


def find(root: Path, folder: str, said: str | None) -> Settings:
    """The configuration of the test project in `folder`. said: engine.config. Raises EngineError."""
    if said and not (root / said).is_file():
        raise EngineError(f"engine.config: {said} is not a file of the project")
    names = (said,) if said else tuple(f"{folder}/{name}" if folder else name for name in NAMES)
    path = next((name for name in names if (root / name).is_file()), None)
    if path is None:
        return Settings()
    text = (root / path).read_text(encoding="utf-8-sig")
    try:
        data = json.loads(text) if path.endswith(".json") else yaml.safe_load(text)
        keys = data["stryker-config"]
        keys = {str(k): v for k, v in keys.items()}
    except (ValueError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise EngineError(f"{path}: not a stryker-config: {str(error).splitlines()[0]}") from None
    return Settings(
        {k: v for k, v in keys.items() if k in THEIRS}, tuple(sorted(k for k in keys if k not in THEIRS)), path
    )


def both(ours: str, theirs: str) -> str:
    """Two test filters, either of which may be ""."""
    return f"({ours})&({theirs})" if ours and theirs else ours or theirs
