"""What a model replies and what an engine reports may be anything: nothing lands that should not, and nothing stops."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaigns import broken_engine, hostile


@pytest.mark.skipif(not hostile.enforced(), reason="this system enforces no sandbox: see docs/trust.md")
def test_no_hostile_reply_lands_or_stops_the_run_and_a_good_test_beside_them_does(
    tmp_path: Path, node_modules: Path
) -> None:
    wrong = [line for line in hostile.run(hostile.make(tmp_path, node_modules)) if not line.good]
    assert wrong == []


def test_no_broken_report_passes_for_a_measurement_or_costs_a_token(tmp_path: Path, node_modules: Path) -> None:
    wrong = [line for line in broken_engine.run(broken_engine.make(tmp_path, node_modules)) if not line.good]
    assert wrong == []
