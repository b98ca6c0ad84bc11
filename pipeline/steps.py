"""What each task of a scope does: reads the targets before it, does its work, writes its own. One performer a kind.

A scope's bad end is data in its targets, never a failure of doit's: it stops no other scope. Every performer gets the
keys of the tasks that share its slot and gives an attempt for each.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar, cast

import attrs

from pipeline import asking, process
from pipeline.account import MERGE_LOCK
from pipeline.choice import stepped
from pipeline.engines import EngineError, Measured
from pipeline.equivalent import possibly_equivalent
from pipeline.generators.differential import SearchMutant, SearchReply
from pipeline.generators.differential import search as differential
from pipeline.host import Attempt, CannotGoOn, Slot
from pipeline.landing import Refused
from pipeline.measuring import Baseline, Confirmed, Inputs, Measurement
from pipeline.model import Scope
from pipeline.mutants import Mutant, Status, as_kill, is_survivor, score
from pipeline.proof import Bench, elsewhere, prove
from pipeline.proved import ProvedTests
from pipeline.results import Candidates, Landed, Outcome, Proofs, Survivor, Survivors, Test, converter, dump, find
from pipeline.session import Session
from pipeline.store import Proof, Stored, digest
from pipeline.worktree import GitError, Worktree

T = TypeVar("T")


@attrs.frozen
class Steps:
    """The performers, on one session."""

    session: Session

    # -- baseline

    def baseline(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        scopes = [self.session.scopes[str(k)] for k in keys]
        snapshot = self.session.snapshot
        measured = self._measure(self.session.worktree(slot), snapshot.tree, scopes, slot)
        attempts: dict[Hashable, Attempt] = {}
        for scope in scopes:
            done = measured[scope.name]
            m = done.measured
            self._write(scope, "baseline.json", Baseline(m.outcome, m.detail, m.mutants, m.tests, m.added))
            left = tuple(x.as_survivor() for x in m.mutants if is_survivor(x.final))
            self._write(scope, "survivors.json", Survivors(tuple(sorted(left, key=lambda s: s.key))))
            known = ""
            if m.outcome in (Outcome.OK, Outcome.NO_MUTANTS):
                known = digest(self.session.measuring.known(scope, snapshot.states, self.session.repository.project))
            self._write(scope, "inputs.json", Inputs(known, done.inputs))
            attempts[scope.name] = Attempt(
                Outcome.CACHED if done.cached else m.outcome, line=done.line,
                fields={
                    "peak_bytes": m.peak_bytes, "engine_run": not done.cached and not m.added, "detail": m.detail,
                    "audit_cpu_seconds": done.audit_cpu_seconds,
                },
            )  # fmt: skip
        return attempts

    def _measure(
        self, worktree: Worktree, tree: str, scopes: Sequence[Scope], slot: Slot, by_engine: bool = False
    ) -> dict[str, Measurement]:
        try:
            with slot.all_free() as workers:
                log = self.session.log(slot)
                return self.session.measuring.measure(worktree, tree, scopes, workers, log, by_engine)
        except EngineError as error:
            return {s.name: Measurement(Measured(error.outcome, str(error))) for s in scopes}

    # -- search and validate

    def search(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        """Tests proved earlier, then what the embedded generators find for the rest. No token is spent."""
        (key,) = keys
        scope = self.session.scopes[str(key)]
        survivors = self._read(scope, "survivors.json", Survivors).survivors
        if not survivors:
            return {key: self._candidates(scope, 0, Candidates(self._baseline(scope).outcome))}
        base = self.session.repository.read(self.session.snapshot.tree, scope.write) or ""
        taken = set(self.session.engine.suite.titles(base))
        stored = [s for s in self.session.proofs.tests(scope.write) if not s.rejected and s.test.title not in taken]
        offered = tuple(sorted((s.test for s in stored), key=lambda t: t.title))
        if scope.lines is not None:  # the others are about mutants that this scope knows nothing of
            here = {s.key for s in survivors}
            offered = tuple(test for test in offered if not here.isdisjoint(test.kills))
        claimed = {k for test in offered for k in test.kills}
        rest = [s for s in survivors if s.key not in claimed]
        embedded = [g for g in self.session.plan.generate.generators if g.embedded]
        served = self.session.engine.language == "javascript"
        if not rest or not embedded or not served:
            detail = "" if served or not embedded else f"{embedded[0].name} is for JavaScript so far, and is skipped"
            return {key: self._candidates(scope, 0, Candidates(Outcome.OK, detail, offered))}
        try:
            reply = self._searched(scope, rest, slot)
        except EngineError as error:
            reply = SearchReply(error.outcome, str(error))
        again = {(t.title, t.code) for t in offered}
        found = (t for t in reply.tests if t.title not in taken and (t.title, t.code) not in again)
        tests = (*offered, *(attrs.evolve(t, origin=embedded[0].name) for t in found))
        tests = tuple(sorted(tests, key=lambda t: t.title))  # found now or proved before: equal work, equal bytes
        unreached = {m.key: f"{m.reason}: {m.detail}" if m.detail else m.reason for m in reply.missed}
        return {key: self._candidates(scope, 0, Candidates(reply.outcome, reply.detail, tests, (), unreached))}

    def _searched(self, scope: Scope, survivors: Sequence[Survivor], slot: Slot) -> SearchReply:
        """What the embedded generator finds. Raises EngineError."""
        bench = self._bench(scope, self.session.worktree(slot), self.session.snapshot.tree, slot)
        bench.worktree.reset(bench.tree)
        bench.lay_switch()
        at = {m.key: m for m in self._baseline(scope).mutants}
        ids, engine, root = bench.switch.ids, self.session.engine, bench.worktree.root
        return differential(
            root, scope, [_search_mutant(at[s.key], ids[s.key]) for s in survivors], bench.tests,
            sources={f: self._source(bench.tree, f) for f in scope.mutate}, workers=slot.workers,
            parser=engine.tool("@babel/parser", root), node=str(engine.tool("node", root)),
        )  # fmt: skip

    def _candidates(self, scope: Scope, round_: int, candidates: Candidates) -> Attempt:
        self._write(scope, f"candidates.{round_}.json", candidates)
        self.session.drop(scope.name, round_, candidates.dropped)
        line = candidates.detail
        if candidates.outcome is Outcome.OK:
            line = f"{len(candidates.tests)} candidates{f': {line}' if line else ''}"
        fields = {"candidates": len(candidates.tests), "detail": candidates.detail}
        return Attempt(candidates.outcome, line=line.split("\n")[0], fields=fields)

    def validate(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        (key,) = keys
        name, round_ = cast(tuple[str, int], key)
        scope = self.session.scopes[name]
        candidates = self._read(scope, f"candidates.{round_}.json", Candidates)
        survivors = self._survivors_before(scope, round_)
        inputs = self._read(scope, "inputs.json", Inputs).inputs
        proofs = Proofs(Outcome.OK, inputs=inputs)
        if candidates.tests and survivors:
            try:
                proofs = self._judged(scope, round_, candidates.tests, survivors, inputs, slot)
                self._keep(scope, proofs)
            except EngineError as error:
                proofs = Proofs(error.outcome, str(error), inputs=inputs)
        killed = {k for p in proofs.proved for k in p.how}
        self._write(scope, f"proofs.{round_}.json", proofs)
        self.session.drop(name, round_, proofs.dropped)
        left = tuple(s for s in survivors if s.key not in killed)
        self._write(scope, f"survivors.{round_}.json", Survivors(left))
        line = f"{len(proofs.proved)} tests proved, {len(killed)} mutants killed, {len(left)} left"
        line = line if proofs.outcome is Outcome.OK else f"{proofs.outcome}: {proofs.detail.splitlines()[0]}"
        counts = {"proved": len(proofs.proved), "dropped": len(proofs.dropped), "killed": len(killed)}
        return {key: Attempt(proofs.outcome, line=line, fields={**counts, "detail": proofs.detail})}

    def _judged(
        self, scope: Scope, round_: int, candidates: Sequence[Test], survivors: Sequence[Survivor],
        inputs: Mapping[str, str], slot: Slot,
    ) -> Proofs:  # fmt: skip
        """Raises EngineError where the engine's part of the judgement cannot be had."""
        snapshot = self.session.snapshot
        bench = self._bench(scope, self.session.worktree(slot), snapshot.tree, slot)
        base = self.session.repository.read(snapshot.tree, scope.write) or ""
        prior = [p.test for r in range(round_) for p in self._read(scope, f"proofs.{r}.json", Proofs).proved]
        runs = self.session.plan.land.proof_runs
        bench.worktree.reset(bench.tree)
        tidied = self.session.engine.tidy(bench.worktree.root, scope.write, candidates)
        verdict = prove(bench, base, prior, tidied, survivors, runs, self._standing(scope))
        loaded = {p: snapshot.states[p] for p in verdict.inputs if p in snapshot.states and p != scope.write}
        return Proofs(
            Outcome.OK, "", verdict.proved, verdict.dropped, {**inputs, **loaded}, runs,
            self.session.engine_version or "", elsewhere(),
        )  # fmt: skip

    def _standing(self, scope: Scope) -> tuple[str, ...]:
        """Titles of the tests that the landing branch has in the scope's write file."""
        try:
            landing = self.session.landing
        except Refused:
            return ()
        tip = landing.tip(self.session.snapshot.head)
        return self.session.engine.suite.titles(self.session.repository.read(tip, scope.write) or "")

    def _keep(self, scope: Scope, proofs: Proofs) -> None:
        known = {(s.test.title, s.test.code): s for s in self.session.proofs.tests(scope.write)}
        at = {m.key: m for m in self._baseline(scope).mutants}
        sources = {file: self._source(self.session.snapshot.tree, file) for file in scope.mutate}
        for p in proofs.proved:
            kills = tuple(as_kill(at[key], sources[at[key].file], how) for key, how in sorted(p.how.items()))
            proof = Proof(proofs.inputs, kills, proofs.engine, proofs.runs, proofs.elsewhere)
            stored = known.get((p.test.title, p.test.code), Stored(p.test))
            self.session.proofs.put(scope.write, attrs.evolve(stored.proved(proof), test=p.test))

    # -- generate

    def generate(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        (key,) = keys
        name, round_ = cast(tuple[str, int], key)
        scope = self.session.scopes[name]
        survivors = self._survivors_before(scope, round_)
        if not survivors:
            return {key: self._candidates(scope, round_, Candidates(Outcome.OK))}
        if why := self._not_worth_it(scope, round_):
            return {key: self._candidates(scope, round_, Candidates(Outcome.OK, why))}
        asked = asking.Round(self.session, scope, round_, survivors, self._known_of(scope, round_))
        candidates, fields = asked.run(slot)
        attempt = self._candidates(scope, round_, candidates)
        line = f"{attempt.line}{stepped(fields)}"
        return {key: attrs.evolve(attempt, line=line, fields={**attempt.fields, **fields})}

    def _not_worth_it(self, scope: Scope, round_: int) -> str:
        """Why this scope is asked about no more: what its last round paid for each mutant that it killed."""
        most = self.session.plan.generate.budget.tokens_per_kill
        if most is None or round_ == 1:
            return ""
        spent = self.session.tokens_of(scope.name, round_ - 1)
        kills = sum(len(p.how) for p in self._read(scope, f"proofs.{round_ - 1}.json", Proofs).proved)
        if spent <= most * kills or (not kills and spent <= most):
            return ""
        paid = f"{spent:,} tokens and killed nothing" if not kills else f"{spent / kills:,.0f} tokens a kill"
        return f"not asked: round {round_ - 1} paid {paid}, and tokens_per_kill is {most:,}"

    def _known_of(self, scope: Scope, round_: int) -> asking.Known:
        """What a prompt says beside the survivors, from the targets before it."""
        baseline = self._baseline(scope)
        tree = self.session.snapshot.tree
        earlier = [self._read(scope, f"proofs.{r}.json", Proofs) for r in range(round_)]
        candidates = [self._read(scope, f"candidates.{r}.json", Candidates) for r in range(round_)]
        return asking.Known(
            mutants={m.key: m for m in baseline.mutants},
            sources={f: self._source(tree, f) for f in scope.mutate},
            tests={f: self.session.repository.read(tree, f) or "" for f in baseline.tests},
            proved=tuple(p.test for proofs in earlier for p in proofs.proved),
            dropped=tuple(d for proofs in earlier for d in proofs.dropped),
            unreached=candidates[0].unreached,
            equivalent=possibly_equivalent(candidates, earlier),
        )

    # -- land and confirm

    def land(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        (key,) = keys
        scope = self.session.scopes[str(key)]
        rounds = range(self.session.plan.generate.last_round + 1)
        all_proofs = [self._read(scope, f"proofs.{r}.json", Proofs) for r in rounds]
        proved = [p for proofs in all_proofs for p in proofs.proved]
        base = self.session.repository.read(self.session.snapshot.tree, scope.write) or ""
        text = self.session.engine.suite.add(base, [p.test for p in proved])  # as it was judged
        inputs = {p: state for proofs in all_proofs for p, state in proofs.inputs.items()}
        described = {m.key: m.described for m in self._baseline(scope).mutants}
        judged = [d for proofs in all_proofs for d in proofs.dropped]
        try:
            landing = self.session.landing
            tests = ProvedTests(
                landing, scope, proved, judged, inputs, text, described,
                lambda worktree, tree: self._bench(scope, worktree, tree, slot),
            )  # fmt: skip
            with process.holding(landing.lock(), MERGE_LOCK):
                landed = landing.land(tests.on, Landed)
        except (GitError, EngineError, Refused) as error:
            landed = Landed(Outcome.UNVERIFIED, str(error))
        self.session.moved()
        self._write(scope, "landed.json", attrs.evolve(landed, proofs=digest(converter.unstructure(all_proofs))))
        line = landed.detail.split("\n")[0] or f"{len(landed.titles)} tests on {self.session.landing.branch}"
        fields = {"held": landed.held, "titles": len(landed.titles)}
        return {key: Attempt(landed.outcome, line=line, fields={**fields, "detail": landed.detail})}

    def confirm(self, keys: Sequence[Hashable], slot: Slot) -> dict[Hashable, Attempt]:
        """The engine measures what has landed: the report that a run on the branch will give, many scopes a run."""
        scopes = [self.session.scopes[str(k)] for k in keys]
        repository = self.session.repository
        try:
            tip = self.session.landing.tip(self.session.landing.head())
        except Refused:  # said by the landing, after which nothing of it counts as landed
            tip = self.session.snapshot.tree
        states = repository.files(tip)
        with_file = [
            attrs.evolve(s, tests=None if s.tests is None else tuple(sorted({*s.tests, s.write})))
            for s in scopes
            if self._read(s, "landed.json", Landed).titles and s.write in states
        ]
        measured: dict[str, Measurement] = {}
        if with_file:
            measured = self._measure(self.session.worktree(slot), tip, with_file, slot, by_engine=True)
        attempts: dict[Hashable, Attempt] = {}
        for scope in scopes:
            done = measured.get(scope.name)
            if done is None:
                confirmed = Confirmed(Outcome.OK, "nothing of this scope is on the branch")
                attempts[scope.name] = Attempt(Outcome.OK)
            else:
                confirmed = self._confirmed(scope, done, states)
                outcome = Outcome.CACHED if done.cached else confirmed.outcome
                fields = {"engine_run": not done.cached, "peak_bytes": done.measured.peak_bytes}
                attempts[scope.name] = Attempt(outcome, line=confirmed.detail.split("\n")[0], fields=fields)
            self._write(scope, "confirmed.json", confirmed)
        return attempts

    def _confirmed(self, scope: Scope, done: Measurement, states: Mapping[str, str]) -> Confirmed:
        m = done.measured
        if m.outcome is not Outcome.OK:
            return Confirmed(m.outcome, m.detail, states.get(scope.write), done.inputs)
        landed = set(self._read(scope, "landed.json", Landed).titles)
        rounds = range(self.session.plan.generate.last_round + 1)
        all_proofs = (self._read(scope, f"proofs.{r}.json", Proofs) for r in rounds)
        claimed = {k for proofs in all_proofs for p in proofs.proved if p.test.title in landed for k in p.how}
        # The engine's own word counts: what audits it runs tests the way the proofs did.
        lives = [x for x in m.mutants if x.key in claimed and x.status is not Status.KILLED]
        statuses = [x.final for x in m.mutants]
        disagreements = tuple(f"{x.file}:{x.line}: {x.mutator} -> {x.replacement!r}: {_judged(x)}" for x in lives)
        counts = {str(status): statuses.count(status) for status in sorted(set(statuses))}
        total = score(statuses)
        detail = f"{total.survivors} survivors of {total.total}" + (f", {len(lives)} disagree" if lives else "")
        return Confirmed(Outcome.OK, detail, states.get(scope.write), done.inputs, counts, disagreements)

    # -- shared

    def _bench(self, scope: Scope, worktree: Worktree, tree: str, slot: Slot) -> Bench:
        """Where this scope's tests are judged at `tree`. Raises EngineError where it cannot be measured there."""
        done = self._measure(worktree, tree, [scope], slot)[scope.name].measured
        if done.outcome is not Outcome.OK or done.switch is None:
            raise EngineError(f"{scope.name} cannot be measured at {tree[:10]}: {done.detail}", done.outcome)
        return Bench(
            self.session.engine, worktree, tree, scope, done.switch, done.tests, done.seconds, slot.workers
        )  # fmt: skip

    def _source(self, tree: str, file: str) -> str:
        return (self.session.repository.read(tree, file) or "").replace("\r\n", "\n")

    def _baseline(self, scope: Scope) -> Baseline:
        return self._read(scope, "baseline.json", Baseline)

    def _survivors_before(self, scope: Scope, round_: int) -> tuple[Survivor, ...]:
        name = f"survivors.{round_ - 1}.json" if round_ else "survivors.json"
        return self._read(scope, name, Survivors).survivors

    def _read(self, scope: Scope, name: str, type_: type[T]) -> T:
        value = find(self.session.target(scope.name, name), type_)
        if value is None:
            raise CannotGoOn(f"{self.session.target(scope.name, name)} is missing or damaged: run again")
        return value

    def _write(self, scope: Scope, name: str, value: object) -> None:
        dump(self.session.target(scope.name, name), value)


def _search_mutant(mutant: Mutant, id_: str) -> SearchMutant:
    return SearchMutant(
        id_, mutant.key, mutant.file, mutant.mutator, mutant.original, mutant.replacement,
        mutant.line, mutant.column, mutant.end_line, mutant.end_column, mutant.static,
    )  # fmt: skip


def _judged(mutant: Mutant) -> str:
    by_itself = f", {mutant.audited} in a fresh process" if mutant.audited else ""
    return f"{mutant.status}{by_itself}"
