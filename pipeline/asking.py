"""One round of one scope's generation: which survivors are asked about, the calls, what the replies hold.

A question is a survivor, the source around it, the prompt's wording and the model; each attempt at it has one answer,
for ever. What was answered is read again from the kept reply; only what was not is asked. So a crash, a merge or a
forgotten target asks nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs

from pipeline import process
from pipeline.calls import Call, Make, read_note
from pipeline.choice import Choice, Patience, of_scope
from pipeline.generators import GENERATORS, LIMIT, Ask, Generator, Question, Reply, Tokens, prompt, reply
from pipeline.host import Slot
from pipeline.model import GeneratorConfig, Scope
from pipeline.mutants import Mutant, Status, mutate
from pipeline.results import Candidates, Dropped, Outcome, Survivor, Test
from pipeline.session import Session


@attrs.frozen
class Known:
    """What a prompt may say of a scope."""

    mutants: Mapping[str, Mutant]
    sources: Mapping[str, str]  # mutated file -> text
    tests: Mapping[str, str]  # existing test file -> text
    proved: tuple[Test, ...] = ()  # in the rounds before
    dropped: tuple[Dropped, ...] = ()
    unreached: Mapping[str, str] = attrs.field(factory=dict)  # what search found out: mutant key -> reason
    equivalent: frozenset[str] = frozenset()  # keys of mutants that no input seems to tell apart


@attrs.frozen
class Round:
    session: Session
    scope: Scope
    round: int
    survivors: Sequence[Survivor]
    known: Known
    spent: list[Tokens] = attrs.field(factory=list)  # by the calls made

    def run(self, slot: Slot) -> tuple[Candidates, dict[str, object]]:
        """Candidates of this round, and what the ledger says of it."""
        models = self.session.plan.models
        config, attempt = self.session.plan.generate.of_round(self.round)
        choice = of_scope(models, self.scope, config)
        patience = Patience(choice, models.tries, models.backoff, slot.wait)
        # Of the model that is wanted, whichever answers: what one lower down has answered is not asked again.
        generator = _generator(config, choice)
        identity = {**generator.key(), "template": generator.template_version}
        kept: list[str] = []
        due: list[Survivor] = []
        for survivor in sorted(self.survivors, key=self._rank):
            answers = self.session.proofs.asked(_question_key(survivor.key, survivor.around, identity))
            if len(answers) > attempt:
                kept.append(answers[attempt])
            else:
                due.append(survivor)
        batches = [due[i : i + LIMIT] for i in range(0, len(due), LIMIT)]
        asks = [self._ask([self._question(s) for s in batch]) for batch in batches]
        replies = self._answer_all(patience, asks, slot)
        tests: list[Test] = []
        dropped: list[Dropped] = []
        outcome, detail = Outcome.OK, ""
        for ask, (name, got) in zip(asks, replies, strict=True):
            if got.outcome is not Outcome.OK:
                outcome, detail = got.outcome, got.detail
                continue
            self._answered(name, identity)
            parsed = reply.parse(got.text, ask, config.name)
            tests += parsed.tests
            dropped += [Dropped(r.title, r.outcome, r.reason) for r in parsed.refused]
            if parsed.outcome is not Outcome.OK:
                dropped.append(Dropped("", parsed.outcome, parsed.detail))
        for name in dict.fromkeys(kept):
            self._answered(name, identity)  # a run that was killed may have come to some of its questions only
            tests += self._kept(generator, name, config.name)
        unique = {t.title: t for t in reversed(tests)}
        fields: dict[str, object] = {
            "calls": len(self.spent), "tokens": _summed(self.spent), "kept_replies": len(set(kept)),
            **patience.event,
        }  # fmt: skip
        return Candidates(outcome, detail, tuple(reversed(unique.values())), tuple(dropped)), fields

    # -- what is asked

    def _rank(self, survivor: Survivor) -> tuple[bool, bool, str]:
        """Best first: what no input seems to tell apart comes last, for it may be equivalent; and what never ends."""
        mutant = self.known.mutants.get(survivor.key)
        endless = self.known.unreached.get(survivor.key, "").startswith("endless")
        hopeless = endless or survivor.key in self.known.equivalent
        return hopeless, mutant is not None and mutant.final is Status.NO_COVERAGE, survivor.key

    def _question(self, survivor: Survivor) -> Question:
        mutant = self.known.mutants[survivor.key]
        source = self.known.sources[mutant.file]
        lines = source.split("\n")
        suite = self.session.engine.suite
        start, end = suite.excerpt(source, mutant.line)
        after = mutate(source, mutant).split("\n")
        tried = [d for d in self.known.dropped if survivor.key in d.kills]
        earlier = [f"{d.title}: {d.reason.splitlines()[0]}" for d in tried[-4:]]
        if not earlier and self.session.plan.generate.of_round(self.round)[1]:
            earlier = ["asked before: no test was offered for it"]
        return Question(
            survivor=survivor,
            line=mutant.line,
            column=mutant.column,
            end_line=mutant.end_line,
            end_column=mutant.end_column,
            block="\n".join(lines[start:end]),
            block_line=start + 1,
            mutated="\n".join(after[start : end + len(after) - len(lines)]),
            status="NoCoverage" if mutant.final is Status.NO_COVERAGE else "Survived",
            earlier=tuple(earlier),
            hint=self.known.unreached.get(survivor.key, ""),
            outline=suite.outline(source, mutant.line),
        )

    def _ask(self, questions: Sequence[Question]) -> Ask:
        suite = self.session.engine.suite
        bodies = [body for text in self.known.tests.values() for body in suite.bodies(text)]
        titles = [t for text in self.known.tests.values() for t in suite.titles(text)]
        imports = [i for file, text in self.known.tests.items() for i in suite.imports(text, file, self.scope.write)]
        return Ask(
            scope=self.scope.name,
            files=self.scope.mutate,
            write=self.scope.write,
            framework=suite.framework(Path(self.session.plan.root), self.scope.write),
            language=self.session.engine.language,
            module_imports=tuple(dict.fromkeys(imports)),
            style=tuple(bodies[:2]),
            titles_taken=tuple(dict.fromkeys([*titles, *(t.title for t in self.known.proved)])),
            questions=tuple(questions),
        )

    # -- the calls

    def _answer_all(self, patience: Patience, asks: Sequence[Ask], slot: Slot) -> list[tuple[str, Reply]]:
        """One call after another, or side by side where slots of the pool are free right now."""
        with ExitStack() as stack:
            width = 1
            while width < len(asks) and stack.enter_context(slot.try_extra()):
                width += 1
            return process.side_by_side(lambda ask: self._answer(patience, ask), asks, width)

    def _answer(self, patience: Patience, ask: Ask) -> tuple[str, Reply]:
        """The reply to one prompt: the kept one where there is one that is of use, else a call, kept as it comes."""
        text = prompt.build(ask)
        choice = patience.choice
        if choice.below is not None:  # a run that was killed may have come down to that one
            name, call, _ = self._call(choice.below, text, ask)
            if (kept := call.kept()) is not None:
                return name, kept
        name = ""

        def made(asked: Choice) -> Reply:
            nonlocal name
            name, call, make = self._call(asked, text, ask)
            got = call.reply(make)
            if got.tokens is not None:
                self.spent.append(got.tokens)
            return got

        got, given_up = patience.insist(made)
        return name, attrs.evolve(got, outcome=Outcome.EXHAUSTED, detail=given_up) if given_up else got

    def _call(self, asked: Choice, text: str, ask: Ask) -> tuple[str, Call, Make]:
        """The call of one model: the name of its reply, and what makes it."""
        config = self.session.plan.generate.of_round(self.round)[0]
        generator = _generator(config, asked)
        name = self.session.replies.name(text, dict(generator.key()))
        about = {"scope": self.scope.name, "round": self.round, "generator": generator.name}

        def make(out_file: Path) -> process.Finished:
            with self.session.empty_folder() as empty:
                return generator.call(text, cwd=Path(empty), out_file=out_file, timeout=config.time_limit)

        program = " ".join((config.use, *config.run))
        call = Call(
            self.session,
            name,
            program,
            generator,
            about,
            lambda: {"ask": _reread(ask)},
            barred=self.session.purse.spent_out,
        )  # fmt: skip
        return name, call, make

    def _answered(self, name: str, identity: Mapping[str, str]) -> None:
        """Remember for each question of a reply that this answered it: one attempt, whichever round it was made in."""
        proofs = self.session.proofs
        for key, around in read_note(self.session.replies.note(name)).get("ask", {}).get("about", ()):
            question = _question_key(key, around, identity)
            answers = proofs.asked(question)
            if name not in answers:
                proofs.answered(question, len(answers), name)

    def _kept(self, generator: Generator, name: str, origin: str) -> tuple[Test, ...]:
        """The tests of a reply that answered these questions before, read as they were then."""
        note = read_note(self.session.replies.note(name))
        try:
            raw = self.session.replies.raw(name).read_bytes()
            keys, taken = [key for key, _ in note["ask"]["about"]], note["ask"]["titles"]
        except (OSError, KeyError, TypeError, ValueError):
            return ()
        got = generator.classify(note.get("exit_code"), raw)
        if got.outcome is not Outcome.OK:
            return ()
        blank = Question(Survivor("", "", "", "", "", ""), 0, 0, 0, 0, "", 0, "", "Survived")
        questions = tuple(
            attrs.evolve(blank, survivor=attrs.evolve(blank.survivor, key=key), line=i) for i, key in enumerate(keys)
        )
        ask = attrs.evolve(self._ask(questions), titles_taken=tuple(taken))
        return reply.parse(got.text, ask, origin).tests


def _generator(config: GeneratorConfig, choice: Choice) -> Generator:
    return GENERATORS[config.use](choice.of(config))


def _reread(ask: Ask) -> dict[str, object]:
    """What it takes to read the reply again: which mutant each number stood for, and the titles taken then."""
    return {"about": [(q.survivor.key, q.survivor.around) for q in ask.numbered], "titles": list(ask.titles_taken)}


def _question_key(key: str, around: str, identity: Mapping[str, str]) -> dict[str, object]:
    return {"mutant": key, "around": around, **identity}


def _summed(tokens: Sequence[Tokens]) -> dict[str, float]:
    counts = {k: sum(getattr(t, k) for t in tokens) for k in ("fresh_input", "cache_write", "cache_read", "output")}
    costs = [t.cost for t in tokens if t.cost is not None]
    return {**counts, **({"cost": round(sum(costs), 6)} if costs else {})}
