"""How a run ended for each scope and each task of an agent that it took on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from doit import runner

from pipeline.reports import changes, endings, summary
from pipeline.reports.past import Past
from pipeline.session import Session


def outcomes(
    session: Session, result: int, interrupted: bool
) -> tuple[int, Callable[[Past], list[str]], Sequence[str]]:
    """Into the ledger; the exit status, what people are told, and what is wrong with the endings."""
    scopes = summary.outcomes_of_run(session, interrupted)
    tasks = changes.outcomes_of_run(session, interrupted)
    found = [*scopes, *tasks]
    for o in found:
        after = attrs.asdict(o.after) if o.after else None
        session.tell("ending", scope=o.scope, ending=o.ending, why=o.why, after=after)
    selected, taken_on = (session.info.selected, session.info.scopes) if session.info else ((), ())
    wrong = endings.unended(taken_on, [o.scope for o in found])
    looks, owed = changes.looks(session, selected)
    someone = owed or any(o.needs_a_person for o in found)
    status = max(result, 1 if someone else 0, runner.ERROR if wrong else 0)

    def told(past: Past) -> list[str]:
        said = [changes.text_of_all(session, past, scopes, tasks)] if found else []
        return said + (looks if not tasks and any(name.startswith("look:") for name in selected) else [])

    return status, told, wrong
