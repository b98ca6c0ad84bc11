"""What people are told: at the end of a run, and by tasks of their own. A new report is one file and one line here."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from doit.exceptions import TaskFailed

from pipeline import clock
from pipeline.action import Step
from pipeline.host import Attempt, Performer, Slot
from pipeline.model import VALIDATION
from pipeline.reports.past import Past, no_collection
from pipeline.session import Session
from pipeline.signals import INTERRUPTED


def tasks(session: Session) -> Iterator[dict[str, Any]]:
    """The reports as doit tasks. They read targets and ledger, and take no slot and no lock; `prove` takes both."""
    from pipeline.reports import asked, plan

    linters = [each.name for each in session.plan.lints]

    def report(
        check: bool, json: bool, markdown: bool, junit: bool, elements: bool, since: str, what_if: bool
    ) -> TaskFailed | None:
        from pipeline.reports.answer import answer

        return _ended(answer(session, asked.Asked(check, json, markdown, junit, elements, since, what_if)))

    def show_plan(
        scope: str,
        n: int,
        hoist: list[str],
        write: bool,
        strict: bool,
        json: bool,
        dot: bool,
        svg: str,
        from_: str,
        check: str,
        cost: bool,
    ) -> TaskFailed | None:
        from pipeline.reports.plan.answer import answer

        return _ended(answer(session, plan.Asked(scope, n, hoist, write, strict, json, dot, svg, from_, check, cost)))

    yield {
        "basename": "plan",
        "doc": "what a run goes through, what makes it slow, and the ways out",
        "actions": [(show_plan,)],
        "params": [dict(param) for param in plan.PARAMS],
        "verbosity": 2,
        "meta": {"report": True},
    }
    yield {
        "basename": "report",
        "doc": "how every scope stands, and where the last run's time and tokens went; --json, --markdown, --junit",
        "actions": [report],
        "params": [dict(param) for param in asked.PARAMS],
        "verbosity": 2,
        "meta": {"report": True},
    }
    yield {
        "basename": "prove",
        "doc": "check every landed test again from its stored proof; SCOPE...: of these scopes only",
        "actions": [Step(session, "prove", _performer(session, "proofs"), words=session.scopes)],
        "pos_arg": "scopes",
        "verbosity": 2,
        "meta": {"pool": VALIDATION, "kind": "prove"},
    }
    yield {
        "basename": "lint",
        "doc": "hold what linters find against their baselines; NAME...: of these alone; --accept: all of it is known",
        "actions": [Step(session, "lint", _performer(session, "lints"), linters, [asked.ACCEPT])],
        "pos_arg": "linters",
        "params": [
            {
                "name": asked.ACCEPT,
                "long": asked.ACCEPT,
                "type": bool,
                "default": False,
                "help": "write the baselines anew: what is found now is known from now on",
            }
        ],
        "verbosity": 2,
        # What a linter reads is not known: nothing of the project may change meanwhile.
        "meta": {"pool": VALIDATION, "kind": "lint", "reads": [session.plan.root]},
    }


def _ended(status: int) -> TaskFailed | None:
    """What there is to say is said: a status of 1 is an answer, not a failure to be explained. Of others doit knows
    none that a task could end with."""
    if status > 1:
        raise SystemExit(status)
    return TaskFailed("", report=False) if status else None


def _performer(session: Session, module: str) -> Performer:
    """That of a module, which is loaded when there is work for it."""

    def perform(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        found = importlib.import_module(f"pipeline.reports.{module}")
        made: Performer = found.performer(session)
        return made(keys, slot)

    return perform


def notes(session: Session) -> list[str]:
    """What people are told before a run starts."""
    from pipeline.reports.plan.answer import notes

    return [*notes(session), *session.engine.notes(Path(session.plan.root), session.plan.scopes)]


def close(session: Session, result: int, interrupted: bool) -> tuple[int, str]:
    """The end of a run: the exit status, folded from the outcomes of all scopes selected, and the summary."""
    status, told = result, None
    wrong: Sequence[str] = ()
    if session.plan.scopes or session.plan.changes:
        from pipeline.reports import closing

        status, told, wrong = closing.outcomes(session, result, interrupted)
    run = session.info.run if session.info else ""
    status = INTERRUPTED if interrupted else status
    ended = {"event": "run-ended", "run": run, "at": clock.now(), "status": status, "interrupted": interrupted}
    past = Past(session, ended)
    with no_collection():
        said = told(past) if told else []
        if session.info and any(e["event"] == "attempt" and e["lane"] is not None for e in session.events):
            from pipeline.reports import page

            said.append(page.write(session, past)[0])
    return status, "\n".join([*said, *(f"internal error: {line}; please report it" for line in wrong)])
