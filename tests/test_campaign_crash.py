"""The short form of the crash campaign: `python -m tests.campaigns.crash` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaigns.crash import ALONE, INT, TERM, TREE, campaign, make_base, ways_of

pytestmark = pytest.mark.campaign


def test_a_drive_that_is_stopped_again_and_again_ends_as_one_that_nothing_disturbs(
    tmp_path: Path, node_modules: Path
) -> None:
    base = make_base(tmp_path / "replayed", node_modules, real=False)
    figures = campaign(base, tmp_path / "replayed", ways_of(kills=10, signals=5), seed=1)
    assert figures.stops == {TREE: 5, ALONE: 5, INT: 3, TERM: 2}
    assert figures.seen["replies that arrived"] >= 5 * figures.seen["drives"]
    assert figures.seen["landings"] == 4 * figures.seen["drives"]
    assert figures.good, figures.table()
