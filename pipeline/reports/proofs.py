"""`prove`: which landed tests still have their proof, as a table and as sentences that a person can act on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import cast

from pipeline.engines import EngineError
from pipeline.host import Attempt, Performer, Slot
from pipeline.recheck import UNPROVED, Finding, Recheck, Rechecked
from pipeline.reports.tables import table
from pipeline.results import Outcome
from pipeline.session import Session
from pipeline.worktree import GitError


def performer(session: Session) -> Performer:
    """The step of `prove`: its one key are the names of the scopes to check, all where there is none."""

    def perform(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        (key,) = keys
        names = cast(tuple[str, ...], key)
        try:
            with slot.all_free() as workers:
                checked, at = _checked(session, names, slot, workers)
        except (EngineError, GitError) as error:
            return {key: Attempt(Outcome.UNVERIFIED, failure=f"the proofs cannot be checked: {error}")}
        tests = [title for each in checked for title in each.kills]
        wrong = sum(len(each.findings) for each in checked)
        said = text(checked, f"{session.landing_name} ({at[:10]})")
        fields = {"tests": len(tests), "findings": wrong}
        if wrong:
            failure = f"{wrong} {'thing does' if wrong == 1 else 'things do'} not hold: see above"
            return {key: Attempt(Outcome.UNVERIFIED, failure=failure, output=said, fields=fields)}
        return {key: Attempt(Outcome.OK, output=said, fields=fields)}

    return perform


def _checked(session: Session, names: Sequence[str], slot: Slot, workers: int) -> tuple[list[Rechecked], str]:
    worktrees = [session.worktree(f"{slot.lane}-{slot.index}-{i}") for i in range(workers)]
    recheck = Recheck(
        session.repository, session.engine, session.proofs, session.engine_version or "",
        f"refs/heads/{session.landing_name}", session.plan.scopes, session.plan.land.proof_runs,
        worktrees,
    )  # fmt: skip
    found = [recheck.of(scope) for scope in session.plan.scopes if not names or scope.name in names]
    stray = None if names else recheck.stray()
    return [*found, *([stray] if stray else [])], recheck.tip


def text(checked: Sequence[Rechecked], where: str) -> str:
    """A row for each landed test, then a line for each thing that does not hold. where: what was checked."""
    rows = [["scope", "kills", "runs", "holds", "test"]]
    for each in checked:
        wrong: dict[str, list[str]] = {}
        for finding in each.findings:
            checks = wrong.setdefault(finding.test, [])
            checks += [finding.check] if finding.check not in checks else []
        for title, (seen, claimed) in each.kills.items():
            passed, runs = each.runs[title]
            rows.append([each.scope, f"{seen}/{claimed}", f"{passed}/{runs}", _verdict(wrong.pop(title, [])), title])
        rows += [[each.scope, "", "", _verdict(checks), title] for title, checks in wrong.items()]
        if not each.kills and not each.findings:
            rows.append([each.scope, "", "", "", "nothing landed"])
    run = {(each.scope, title) for each in checked for title in each.kills}
    bad = {(e.scope, f.test) for e in checked for f in e.findings if f.check in UNPROVED or f.test in e.kills}
    tests, holding = len(run | bad), len(run - bad)
    return "\n".join([
        *table(rows), "",
        *(_sentence(each.scope, finding) for each in checked for finding in each.findings),
        *(f"{each.scope}: {note}" for each in checked for note in each.notes),
        f"{holding} of {tests} landed tests hold on {where}" if tests else f"nothing landed on {where}",
    ])  # fmt: skip


def _verdict(checks: Sequence[str]) -> str:
    return f"no: {', '.join(checks)}" if checks else "yes"


def _sentence(scope: str, finding: Finding) -> str:
    test = f"{finding.test}: " if finding.test else ""
    return f"{scope}: {test}{finding.check}: {finding.why}"
