"""`doit report`: how everything stands, where the time and the tokens went, in the form that was asked for."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence

import attrs
from doit.doit_cmd import _CMDLINE_VARS

from pipeline.model import VALIDATION
from pipeline.reports import changes, endings, figures, machine, page, summary, times, whole
from pipeline.reports.asked import FORMS, Asked
from pipeline.reports.past import FAULTS, Past, fault, no_collection
from pipeline.reports.tables import table
from pipeline.session import Session
from pipeline.telling import visible


class Wrong(Exception):
    """What was asked for cannot be had: worded for people."""


def answer(session: Session, asked: Asked) -> int:
    """Print it; the exit status: 3 where what was asked for is wrong."""
    try:
        with no_collection():
            return _answer(session, asked)
    except Wrong as error:
        sys.stderr.write(f"doit report: {error}\n")
        return 3
    except FAULTS as error:
        if (said := fault(session, error)) is None:
            raise
        sys.stderr.write(f"{said}\n")
        return 3


def _answer(session: Session, asked: Asked) -> int:
    forms = [name.replace("_", "-") for name in (*FORMS, "what_if") if getattr(asked, name)]
    if len(forms) > 1:
        raise Wrong(f"--{forms[0]} and --{forms[1]} are two documents: ask for one of them")
    if asked.what_if and (beside := [name for name in ("since", "check") if getattr(asked, name)]):
        raise Wrong(f"--what-if replays the last run alone, and --{beside[0]} is about something else: leave it out")
    if asked.what_if:
        print(_what_if(session))
        return 0
    past = Past(session, replayed=asked.json or not forms)
    if asked.elements:
        print(json.dumps(machine.elements(session), ensure_ascii=False))
    elif not forms and asked.since:
        print("\n".join(_runs(_since(tuple(whole.runs(past.runs)), asked.since))))
    elif forms:
        report = whole.of(session, past)
        report = attrs.evolve(report, runs=_since(report.runs, asked.since))
        as_text = {"json": machine.as_json, "markdown": machine.as_markdown, "junit": machine.as_junit}[forms[0]]
        print(as_text(report).rstrip("\n"))
    else:
        _plain(session, past)
    if not asked.check:
        return 0
    said, good = endings.of_last_run(session, past)
    document = bool(forms or asked.since)  # which nothing else may stand in
    print(*([] if document else [""]), *map(visible, said), sep="\n", file=sys.stderr if document else sys.stdout)
    return 0 if good else 1


def _plain(session: Session, past: Past) -> None:
    text = changes.text_of_all(session, past, summary.all_outcomes(session), changes.all_outcomes(session))
    print(visible(text))
    if past.figures is not None:
        print("", *map(visible, times.text(past.figures)), sep="\n")
    said, written = page.write(session, past)
    if written:
        print("", said, sep="\n")
    else:
        sys.stderr.write(f"{said}\n")


def _what_if(session: Session) -> str:
    lanes = _caps({"n": VALIDATION, **{pool: pool for pool in session.pools}})
    taken = figures.what_if(Past(session).last, lanes)
    if taken is None:
        raise Wrong("no run of the ledger ran anything: there is nothing to replay")
    seconds, as_it_was = taken
    asked = ", ".join(f"{pool} {slots}" for pool, slots in lanes.items())
    return (
        f"{seconds:.1f} s with {asked}; {as_it_was:.1f} s with the caps that it had "
        f"(estimated: {figures.HOW}; more at once may slow each down)"
    )


def _caps(pools: Mapping[str, str]) -> dict[str, int]:
    """pools: what each is called on the command line -> its name. doit takes NAME=VALUE there for a variable."""
    said = [f"{name}={value}" for name, value in (_CMDLINE_VARS or {}).items()]
    # Of a name that is given twice doit keeps the last.
    given = [word for word in sys.argv[1:] if word.partition("=")[0] in (_CMDLINE_VARS or {}) and "=" in word]
    caps: dict[str, int] = {}
    for part in ",".join(given if len(given) > len(said) else said).split(","):
        name, _, value = (each.strip() for each in part.partition("="))
        if name not in pools or not _SLOTS.fullmatch(value):
            what = f"{part!r} is no such thing" if part else "nothing was said"
            raise Wrong(f"--what-if takes POOL=SLOTS,..., and {what}; pools: {', '.join(pools)}")
        if pools[name] in caps:
            raise Wrong(f"--what-if takes one number of slots for each pool, and {name} has two")
        caps[pools[name]] = int(value)
    return caps


_SLOTS = re.compile(r"0*[1-9][0-9]{0,4}")  # more of them than that no run has


def _since(runs: Sequence[whole.Run], since: str) -> tuple[whole.Run, ...]:
    if not since:
        return tuple(runs)
    at = next((i for i, run in enumerate(runs) if run.run.startswith(since)), None)
    if at is None:
        last = ", ".join(run.run for run in runs[-3:]) or "none"
        raise Wrong(f"--since {since}: no run of that name; the last ones: {last}")
    return tuple(runs[at:])


def _runs(runs: Sequence[whole.Run]) -> list[str]:
    rows = [["run", "minutes", "tasks", "tokens", "USD", "scopes and tasks landed", "survivors", "honest %", "exit"]]
    for run in runs:
        minutes = "not measured" if run.minutes is None else f"{run.minutes:.1f}"
        name = run.run + (f" since {run.since}" if run.since else "")
        rows.append(
            [
                name, minutes, str(run.tasks), _tokens(run.tokens), _cost(run.cost),
                "" if run.landed is None else str(run.landed),
                "" if run.survivors is None else str(run.survivors), "" if run.honest is None else f"{run.honest:.1f}",
                "killed, or running" if run.status is None else str(run.status),
            ]
        )  # fmt: skip
    minutes_of_all = _sum([run.minutes for run in runs])
    minutes = "not measured" if minutes_of_all is None else f"{minutes_of_all:.1f}"
    tokens, cost = _sum([run.tokens for run in runs]), _sum([run.cost for run in runs])
    rows.append(["all", minutes, str(sum(run.tasks for run in runs)), _tokens(tokens), _cost(cost), "", "", "", ""])
    return table(rows)


def _sum(values: Sequence[float | None]) -> float | None:
    """A sum that leaves some out is none."""
    known = [each for each in values if each is not None]
    return sum(known) if len(known) == len(values) else None


def _tokens(tokens: float | None) -> str:
    return "not measured" if tokens is None else f"{tokens:,.0f}"


def _cost(cost: float | None) -> str:
    return "not measured" if cost is None else f"{cost:.2f}"
