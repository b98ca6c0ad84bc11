"""doit's options for `run`, and what -n says beside a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline import limits


def of_run(options: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """doit's own, with -n as `limits.slots` reads it."""
    return tuple({**each, "type": limits.slots} if each["name"] == "num_process" else dict(each) for each in options)
