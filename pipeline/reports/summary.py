"""How every scope ended, what it took, and whether two lanes were worth having. Reads targets and the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from pipeline import sandbox
from pipeline.equivalent import possibly_equivalent
from pipeline.ledger import Event
from pipeline.measuring import Baseline, Confirmed
from pipeline.model import Scope
from pipeline.mutants import Score, Status, is_survivor, score
from pipeline.reports import figures, times
from pipeline.reports.past import Past
from pipeline.reports.tables import many, table
from pipeline.results import Candidates, Landed, Outcome, Proofs, Survivors, converter, find
from pipeline.session import Session
from pipeline.store import digest

FAILED, PARKED, NOT_REACHED, HELD = "failed", "parked", "not reached", "held"
LANDED, EXHAUSTED, CONVERGED, MEASURED = "landed", "exhausted", "converged", "measured"
NEEDS_A_PERSON = (FAILED, PARKED, NOT_REACHED)


@attrs.frozen
class ScopeOutcome:
    """Where one scope stands: exactly one ending, the first that fits."""

    scope: str
    ending: str
    why: str = ""  # for people, where there is something to say
    before: Score | None = None  # audited, at the snapshot
    engine_before: Score | None = None  # as the engine said; None where tests came since (`added`)
    after: Score | None = None
    confirmed: bool = False  # `after` is the engine's own word on the landed state
    false_survivors: int = 0
    added: tuple[str, ...] = ()  # tests that the engine has not run: what survived it has met them
    tests: int = 0  # ours on the landing branch
    left: int = 0  # survivors after all rounds
    equivalent: int = 0  # of those, what no input seems to tell apart
    disagreements: tuple[str, ...] = ()
    dropped: Mapping[str, int] = attrs.field(factory=dict)  # outcome -> candidates of models that came to that

    @property
    def needs_a_person(self) -> bool:
        return self.ending in NEEDS_A_PERSON


def all_outcomes(session: Session) -> tuple[ScopeOutcome, ...]:
    """Where all scopes stand, whoever brought them there."""
    return tuple(outcome(session, scope, whole=True) for scope in session.plan.scopes)


def outcomes_of_run(session: Session, interrupted: bool) -> tuple[ScopeOutcome, ...]:
    """The endings of the scopes that this run selected, those that were up to date included."""
    selected = session.info.selected if session.info else ()
    attempts = {event["task"]: event for event in session.events if event["event"] == "attempt"}
    found = []
    for scope in session.plan.scopes:
        wanted = [t for t in selected if _of_scope(t, scope.name)]
        if not wanted:
            continue
        seen = [attempts[t] for t in wanted if t in attempts and attempts[t]["outcome"] != Outcome.INTERRUPTED]
        missed = [t for t in wanted if t not in {e["task"] for e in seen}]
        if missed or any(e.get("failure") for e in seen):
            why = "the run was stopped" if interrupted else blocker(session) or "a task failed"
            found.append(_cut_short(scope.name, seen, f"{why}, before {missed[0]}" if missed else why))
        else:
            found.append(outcome(session, scope, whole=f"land:{scope.name}" in wanted))
    return tuple(found)


def _cut_short(scope: str, seen: Iterable[Mapping[str, Any]], why: str) -> ScopeOutcome:
    """Where a scope stands that did not go all the way in this run, by what was seen of it. why: for `not reached`."""
    well = (Outcome.OK, Outcome.CACHED, Outcome.NO_MUTANTS, Outcome.OVER_BUDGET)
    bad = [e for e in seen if e["outcome"] not in well]
    parked = [e for e in bad if e["kind"] == "land" and not e.get("failure")]
    failed = [e for e in bad if e not in parked]
    for e in [*failed, *parked]:
        said = e.get("failure") or e.get("detail") or ""
        return ScopeOutcome(scope, FAILED if failed else PARKED, f"{e['task']}: {e['outcome']}: {said}")
    return ScopeOutcome(scope, NOT_REACHED, why)


def blocker(session: Session) -> str | None:
    """The declared task whose failure ended the run, and whether every scope needs it; None where no one failed."""
    failures = {e["task"]: e["failure"] for e in session.events if e["event"] == "attempt" and e.get("failure")}
    needs = {task.name: task.needs for task in session.plan.tasks}
    due, needed = [*session.plan.engine.needs], set[str]()
    while due:
        name = due.pop()
        needed.add(name)
        due += [each for each in needs.get(name, ()) if each not in needed]
    if not failures:
        return None
    name = min(failures, key=lambda name: name not in needed)
    return f"{'blocker ' if name in needed else ''}{name} failed: {failures[name].splitlines()[0]}"


_KINDS = ("baseline", "search", "validate", "generate", "land", "confirm")


def _of_scope(task: str, scope: str) -> bool:
    kind, _, rest = task.partition(":")
    name, _, _ = rest.rpartition(":") if kind in ("validate", "generate") else (rest, "", "")
    return kind in _KINDS and name == scope


def outcome(session: Session, scope: Scope, whole: bool) -> ScopeOutcome:
    """Where a scope's targets say that it stands; not `whole`: only its measurement was asked for."""

    def read(name: str, type_: type[Any]) -> Any:
        return find(session.target(scope.name, name), type_)

    baseline: Baseline | None = read("baseline.json", Baseline)
    if baseline is None:
        return ScopeOutcome(scope.name, NOT_REACHED, "it was not measured yet")
    if baseline.outcome not in (Outcome.OK, Outcome.NO_MUTANTS):
        return ScopeOutcome(scope.name, FAILED, f"{baseline.outcome}: {baseline.detail}")
    engine_before = score(m.status for m in baseline.mutants)
    before = score(m.final for m in baseline.mutants)
    known = ScopeOutcome(
        scope.name, MEASURED, "", before, None if baseline.added else engine_before, before,
        false_survivors=sum(m.audited is not None for m in baseline.mutants), added=baseline.added,
    )  # fmt: skip
    if not whole:
        return known
    rounds = range(session.plan.generate.last_round + 1)
    landed: Landed | None = read("landed.json", Landed)
    candidates: list[Candidates | None] = [read(f"candidates.{r}.json", Candidates) for r in rounds]
    proofs: list[Proofs | None] = [read(f"proofs.{r}.json", Proofs) for r in rounds]
    left: Survivors | None = read(f"survivors.{rounds[-1]}.json", Survivors)
    if landed is None or left is None or None in candidates or None in proofs:
        return attrs.evolve(known, ending=NOT_REACHED, why="it has not gone all the way yet")
    if landed.outcome is Outcome.OK and landed.proofs != digest(converter.unstructure(proofs)):
        return attrs.evolve(known, ending=NOT_REACHED, why="what has landed is not of these proofs")
    confirmed: Confirmed | None = read("confirmed.json", Confirmed)
    after, said = _after(baseline, landed, proofs, confirmed)
    # What was proved and is not on the branch kills nothing there; what is held lands with a commit of the user's.
    gone = set() if landed.held else _killed(proofs) - _killed(proofs, landed.titles)
    alive = {*gone, *(s.key for s in left.survivors)}
    equivalent = possibly_equivalent([c for c in candidates if c], [p for p in proofs if p])
    known = attrs.evolve(
        known, after=after, confirmed=said, tests=len(landed.titles), left=len(alive),
        equivalent=len(equivalent & alive),
        disagreements=confirmed.disagreements if confirmed else (),
        dropped=Counter(str(d.outcome) for work in (*candidates[1:], *proofs[1:]) if work for d in work.dropped),
    )  # fmt: skip
    worked = [work for work in (*candidates, *proofs) if work]
    ending, why = _ending(baseline, worked, landed, bool(alive), confirmed)
    return attrs.evolve(known, ending=ending, why=why)


def _ending(
    baseline: Baseline, worked: Sequence[Candidates | Proofs], landed: Landed, alive: bool, confirmed: Confirmed | None
) -> tuple[str, str]:
    """The first ending that fits, and what there is to say about it. alive: survivors are left."""
    for work in worked:
        if work.outcome not in (Outcome.OK, Outcome.NO_MUTANTS, Outcome.OVER_BUDGET):
            return FAILED, f"{work.outcome}: {work.detail}"
    if confirmed and confirmed.outcome is not Outcome.OK:
        return FAILED, f"confirm: {confirmed.outcome}: {confirmed.detail}"
    if landed.outcome is not Outcome.OK:
        return PARKED, f"{landed.outcome}: {landed.detail}"
    if spent := next((work for work in worked if work.outcome is Outcome.OVER_BUDGET), None):
        return NOT_REACHED, ", ".join(
            filter(None, [spent.detail, f"{len(landed.titles)} tests landed", _beside(landed)])
        )
    if landed.held:
        return HELD, landed.detail
    if landed.titles:
        return LANDED, _beside(landed)
    if alive:
        dropped = [d for work in worked for d in work.dropped]
        why = f"{len(dropped)} candidates were dropped; {dropped[0].title}: {dropped[0].reason}" if dropped else ""
        return EXHAUSTED, ", ".join(filter(None, [_beside(landed), why]))
    return CONVERGED, "no mutants" if baseline.outcome is Outcome.NO_MUTANTS else _beside(landed)


def _after(
    baseline: Baseline, landed: Landed, proofs: Sequence[Proofs | None], confirmed: Confirmed | None
) -> tuple[Score, bool]:
    """The scope's score with what is on the branch, and whether the engine itself has said so."""
    if confirmed and confirmed.statuses and confirmed.content == landed.content:
        return score(Status(s) for s, n in confirmed.statuses.items() for _ in range(n)), True
    killed = _killed(proofs, landed.titles)
    return score(
        Status.KILLED if m.key in killed and is_survivor(m.final) else m.final for m in baseline.mutants
    ), False


def _killed(proofs: Sequence[Proofs | None], titles: Collection[str] | None = None) -> set[str]:
    """Keys of the mutants that the proved tests kill: those of these titles, or all of them."""
    tests = (t for p in proofs if p for t in p.proved)
    return {key for t in tests if titles is None or t.test.title in titles for key in t.how}


def _beside(landed: Landed) -> str:
    said = []
    if landed.theirs:
        said.append(f"{len(landed.theirs)} titles are somebody else's now")
    if landed.rejected:
        said.append(f"{len(landed.rejected)} tests were taken out by a person")
    if landed.withdrawn:
        said.append(f"{len(landed.withdrawn)} withdrawn: {'; '.join(landed.withdrawn)}")
    return ", ".join(said)


# -- as text


def text(session: Session, past: Past, outcomes: Sequence[ScopeOutcome]) -> str:
    """The table of scopes, and what needs a person."""
    tokens = tokens_of(past.last.get("call", ()))
    rows = [["scope", "mutants", "survivors", "score %", "honest %", "tests", "tokens", "ending"]]
    rows += [_row(o, shown(tokens, o.scope)) for o in outcomes]
    if len(outcomes) > 1:
        rows.append(_total(outcomes, tokens))
    said = [*table(rows), ""] if outcomes else []
    false = sum(o.false_survivors for o in outcomes)
    if false:
        said.append(
            f"{false} false survivors: a fresh process kills them with the existing tests; they cost nothing more"
        )
    if equivalent := sum(o.equivalent for o in outcomes):
        left = sum(o.left for o in outcomes)
        said.append(
            f"{equivalent} of the {left} survivors left are possibly equivalent: nothing that was tried told them apart"
        )
    for o in outcomes:
        if o.why:
            first, *rest = o.why.split("\n")
            said += [f"{o.scope}: {o.ending}: {first}", *(f"    {line}" for line in rest)]
        if o.dropped:
            counted = ", ".join(f"{n} {outcome}" for outcome, n in sorted(o.dropped.items()))
            said.append(f"{o.scope}: {sum(o.dropped.values())} of the models' candidates dropped: {counted}")
        if o.added:
            tests = many(len(o.added), "test")
            said.append(f"{o.scope}: {tests} added since the engine measured it, and met by what survived it alone")
        if o.before and o.before.timeout > o.before.killed:
            detected = o.before.killed + o.before.timeout
            said.append(
                f"{o.scope}: {o.before.timeout} of {detected} detected mutants only timed out: "
                "the score counts them as kills, the honest score does not"
            )
        said += [f"{o.scope}: the engine disagrees with a proof: {d}" for d in o.disagreements]
    said += dict.fromkeys(session.landing_notes)
    if (why := sandbox.missing()) and any(e.get("proved") for e in past.last.get("attempt", ())):
        said.append(
            f"no sandbox of the system's: {why}; Node.js alone kept generated tests from files and programs, "
            "and nothing kept them from the network"
        )
    return "\n".join(said)


def _row(o: ScopeOutcome, spent: str) -> list[str]:
    if o.before is None or o.after is None:
        return [o.scope, "", "", "", "", "", "", o.ending]
    return [o.scope, *_scores(o.before, o.after), str(o.tests), spent, o.ending]


def _total(outcomes: Sequence[ScopeOutcome], tokens: Mapping[str, int | None]) -> list[str]:
    before, after = total(o.before for o in outcomes) or Score(), total(o.after for o in outcomes) or Score()
    endings = [o.ending for o in outcomes]
    counted = ", ".join(f"{endings.count(e)} {e}" for e in dict.fromkeys(sorted(endings)))
    spent = all_shown(tokens)
    return ["all", *_scores(before, after), str(sum(o.tests for o in outcomes)), spent, counted]


def _scores(before: Score, after: Score) -> list[str]:
    return [
        str(before.total),
        f"{before.survivors} → {after.survivors}",
        _change(before.mutation, after.mutation),
        _change(before.honest, after.honest),
    ]


def total(scores: Iterable[Score | None]) -> Score | None:
    """All of them together; None where there is none."""
    known = [attrs.asdict(each) for each in scores if each is not None]
    return Score(**{name: sum(each[name] for each in known) for name in known[0]}) if known else None


def _change(before: float | None, after: float | None) -> str:
    return f"{_percent(before)} → {_percent(after)}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


NOT_TOLD = "not measured"


def tokens_of(calls: Iterable[Event]) -> dict[str, int | None]:
    """Scope -> tokens spent: fresh input, cache write and output, as the envelopes say; None where one did not."""
    spent: dict[str, int | None] = {}
    for e in calls:
        before, more = spent.get(e["scope"], 0), figures.paid(e)
        spent[e["scope"]] = None if before is None or more is None else before + more
    return spent


def all_shown(tokens: Mapping[str, int | None]) -> str:
    """Of all of them: a sum that leaves some out is none."""
    known = [each for each in tokens.values() if each is not None]
    return "" if not tokens else NOT_TOLD if len(known) < len(tokens) else f"{sum(known):,}"


def shown(tokens: Mapping[str, int | None], scope: str) -> str:
    """Of one scope, for a table."""
    spent = tokens.get(scope, 0)
    return NOT_TOLD if spent is None else f"{spent:,}" if scope in tokens else ""


def lanes(past: Past) -> list[str]:
    """What ran in each lane, f and the ceiling on what two lanes can gain."""
    events, share = past.last, past.shares
    if not events:
        return ["no run has done anything here yet"]
    if share is None:
        stopped = any(e["interrupted"] for e in events.get("run-ended", ()))
        return ["the run was stopped before any task began" if stopped else "nothing to do: 0 engine runs, 0 calls"]
    ran = [e for e in events.get("attempt", ()) if e["lane"] is not None]
    if not ran:
        return ["no task of the run has ended"]
    built = [e for e in events.get("build", ()) if not e["cached"]]
    calls = sum(bool(e.get("started")) for e in events.get("call", ()))
    wall = max(e["ended"] for e in ran) - min(e["started"] for e in ran)
    runs = sum(e.get("engine_runs") or 0 for e in ran)
    lanes = f"validation {share.v:.1f} s with {many(runs, 'engine run')}"
    lanes += f", generation {share.g:.1f} s with {many(calls, 'call')}"
    waited = sum(e.get("waited") or 0.0 for e in ran)
    lanes += f", waited {waited:.1f} s for the gateway" if waited else ""
    landed = sum(not e["guilty"] for e in events.get("gated", ()))
    lanes += f", {many(len(built), 'build')} at the gate for {many(landed, 'change')} that landed" if built else ""
    worth = times.shares(share) if calls else []
    return [f"{wall:.1f} s for {many(len(ran), 'task')}: {lanes}", *worth]
