"""What a model replies and what an engine reports may be anything: nothing lands that should not, and nothing stops."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from campaigns import broken_engine, hostile

pytestmark = pytest.mark.campaign


@pytest.mark.skipif(not hostile.enforced(), reason="this system enforces no sandbox: see docs/trust.md")
def test_no_hostile_reply_lands_or_stops_the_run_and_a_good_test_beside_them_does(
    tmp_path: Path, node_modules: Path
) -> None:
    wrong = [line for line in hostile.run(hostile.make(tmp_path, node_modules)) if not line.good]
    assert wrong == []


def test_no_broken_report_passes_for_a_measurement_or_costs_a_token(tmp_path: Path, node_modules: Path) -> None:
    wrong = [line for line in broken_engine.run(broken_engine.make(tmp_path, node_modules)) if not line.good]
    assert wrong == []


def test_the_tables_in_the_docs_have_each_reply_and_each_report_with_its_outcome() -> None:
    text = (Path(__file__).parents[1] / "docs/trust.md").read_text()

    def rows(section: str, columns: int) -> list[list[str]]:
        found = re.findall(r"^\| (.*) \|$", text.split(f"\n## {section}\n")[1].split("\n## ")[0], re.MULTILINE)
        split = [row.split(" | ") for row in found[1:]]
        assert {len(row) for row in split} == {columns}
        return split

    told = [(title, outcome) for titles, outcome, _ in rows("Hostile replies", 3) for title in titles.split("; ")]
    cases = [(case.title, case.outcome) for batch in hostile.BATCHES.values() for case in batch]
    assert sorted(told) == sorted([*cases, *((reply, outcome) for reply, _, outcome, _ in hostile.REPLIES.values())])
    assert rows("Broken reports", 2) == [[case.what, case.outcome] for case in broken_engine.CASES.values()]
