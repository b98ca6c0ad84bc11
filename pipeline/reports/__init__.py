"""What people are told: at the end of a run, and by tasks of their own. A new report is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.reports import plan, summary
from pipeline.session import Session


def tasks(session: Session) -> Iterator[dict[str, Any]]:
    """The reports as doit tasks. They read targets and ledger, and take no slot and no lock."""

    def report() -> None:
        print(summary.text(session, summary.all_outcomes(session)))

    def show_plan(scope: str | None) -> bool:
        print(plan.text(session, scope or None))
        return not scope or scope in session.scopes

    yield {
        "basename": "plan",
        "doc": "what a run goes through; --scope NAME: one scope with all its files",
        "actions": [(show_plan,)],
        "params": [{"name": "scope", "long": "scope", "default": "", "help": "only this scope"}],
        "verbosity": 2,
    }
    yield {
        "basename": "report",
        "doc": "how every scope stands, and where time and tokens went in the last run",
        "actions": [report],
        "verbosity": 2,
    }


def close(session: Session, result: int, interrupted: bool) -> tuple[int, str]:
    """The end of a run: the exit status, folded from the outcomes of all scopes selected, and the summary."""
    outcomes = summary.outcomes_of_run(session, interrupted)
    status = max(result, 1 if any(o.needs_a_person for o in outcomes) else 0)
    return status, summary.text(session, outcomes) if outcomes else ""
