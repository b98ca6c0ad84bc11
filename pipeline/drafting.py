"""One draft: an agent edits files in a worktree of its own, and what git says afterwards is the change.

What it was asked, on what, decides the name of its reply. The change is kept beside that before anybody judges it, so
that a crash pays for nothing twice: a draft still alive after kill -9 is waited for, and its worktree is as it left it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pipeline import apart, drafts, filescopes, fragments, model, patterns, process, scratch
from pipeline import slot as client
from pipeline.agents import AGENTS, Agent
from pipeline.agents.base import MAX_STREAM, total
from pipeline.calls import Call, read_note
from pipeline.choice import Choice, Patience, of_task
from pipeline.drafts import Draft, FileChange
from pipeline.generators import NOT_MEASURED, Reply
from pipeline.generators.command import environment
from pipeline.host import Slot
from pipeline.model import Task
from pipeline.results import Outcome, converter, write_bytes
from pipeline.session import Session
from pipeline.store import digest, file_name
from pipeline.worktree import Worktree

WORDING = "1"  # of what is put around a brief: under another one, it is another question
NICE = 10  # what an agent runs itself is in no lane: the lanes go first
_COULD_NOT_START = 127
# With its exit status in a file, whoever is there to see it end. No command of ours may stand between it and its group.
_SHELL = 'out=$1; shift; "$@"; code=$?; echo $code > "$out"; exit $code'


@attrs.frozen
class Asked:
    """One question to an agent, and where it is put."""

    kind: str  # draft | repair
    prompt: str
    identity: Mapping[str, str]  # what decides the reply: also of a prompt that holds what is never the same twice
    base: str  # the commit that the change is counted from
    lay: str  # the tree that the agent finds: of a repair, with what is to be mended


@attrs.frozen
class Drafting:
    session: Session
    task: Task
    slot: Slot
    agent: Agent
    patience: Patience

    @classmethod
    def of(cls, session: Session, task: Task, slot: Slot, lane: str = "draft") -> Drafting:
        choice, models = choice_of(session, task, lane), session.plan.models
        patience = Patience(choice, models.tries, models.backoff, slot.wait)
        return cls(session, task, slot, agent_of(task, choice), patience)

    def _asking(self, choice: Choice) -> Drafting:
        """The same of one model alone."""
        return attrs.evolve(self, agent=agent_of(self.task, choice))

    @property
    def who(self) -> str:
        return who_of(self.agent.config)

    # -- what is asked

    @property
    def asked(self) -> str:
        return asked_of(self.task)

    def first(self, base: str) -> Asked:
        """The task's brief, on a commit."""
        states = states_of(self.task, self.session.repository.files(base))
        identity = {"asked": self.asked, "wording": WORDING, "base": digest(states)}
        return Asked("draft", self._prompt(()), identity, base, base)

    def repair(self, base: str, tree: str, failure: drafts.Failure) -> Asked:
        """What does not hold of a draft, with that draft, on a commit."""
        said = [
            "You have done this already, and your change is in the files. It cannot land yet:",
            "", failure.detail, "",
            "Mend that in the files, and keep what is right. This is the only attempt.",
        ]  # fmt: skip
        states = states_of(self.task, self.session.repository.files(base))
        identity = {
            "asked": self.asked, "wording": WORDING, "base": digest(states),
            "draft": failure.draft, "failure": f"{failure.outcome}: {failure.name}",
        }  # fmt: skip
        return Asked("repair", self._prompt(said), identity, base, tree)

    def _prompt(self, more: Sequence[str]) -> str:
        task = self.task
        shown = [f"- {each.told}" for each in task.check if not each.hidden]
        shares = fragments.of(task, self.session.plan.compose)
        rules = [
            "You are in a git worktree made for this task alone, in the project's root.",
            f"You may change these, and nothing else: {', '.join(task.writes)}",
            *(f"Your share of {path} goes into {share}, not into {path}." for path, share in shares.items()),
            *([f"Read these first: {', '.join(task.reads)}"] if task.reads else []),
            "Leave the change in the files. Do not commit, and do not switch branches.",
            "Run what builds or tests through `slot`, which waits until the machine has room: `slot make`, say.",
            *(["This must hold of the change:", *shown] if shown else []),
        ]
        return "\n".join([self.agent.config.brief.rstrip(), "", "---", "", *more, *([""] if more else []), *rules, ""])

    # -- the call

    def draft(self, asked: Asked) -> Draft:
        """The change that answers: the kept one where there is one, else that of a call; of the model that is wanted,
        or where the gateway goes on failing of the one below it."""
        below = self.patience.choice.below
        if below is not None:  # a run that was killed may have come down to that one
            lower = self._asking(below)
            if (kept := lower.kept(lower._name(asked))) is not None and kept.asked == self.asked:
                return attrs.evolve(kept, who=self.who)
        draft, given_up = self.patience.insist(lambda choice: self._asking(choice)._drafted_by_call(asked))
        if given_up:
            draft = attrs.evolve(draft, outcome=Outcome.EXHAUSTED, detail=given_up)
        return attrs.evolve(draft, who=self.who)

    def begun(self, asked: Asked) -> bool:
        """Whether a call has been made, by whichever model, whose reply is still there or still comes."""
        below = self.patience.choice.below
        asking = [self, *([self._asking(below)] if below is not None else [])]
        return any(self.session.replies.raw(each._name(asked)).exists() for each in asking)

    def _name(self, asked: Asked) -> str:
        """Of the reply."""
        return digest({"prompt": "agent", "who": self.who, **asked.identity})[:32]

    def _drafted_by_call(self, asked: Asked) -> Draft:
        session, name = self.session, self._name(asked)
        found = _Found()

        def noted() -> Mapping[str, object]:
            made = found.made or session.find_draft(name)
            if made is None:
                return {}
            found.made = None
            worktree, base = made
            apart.end_strays(worktree.top)  # nothing writes there any more
            files, patch = drafts.collected(worktree, base)
            drafts.keep(session.repository, files, lambda oid: session.replies.blob(name, oid))
            write_bytes(session.replies.blob(name, "patch"), patch)
            states = states_of(self.task, session.repository.files(base))
            found.noted = {"asked": self.asked, "who": self.who, "base": states}
            found.noted = {**found.noted, "files": converter.unstructure(files)}
            return found.noted

        def make(out_file: Path) -> process.Finished:
            worktree = session.draft_worktree(name, asked.base)
            found.made = worktree, asked.base
            if asked.lay != asked.base:
                worktree.reset(asked.lay)
            with scratch.folder() as folder, self.slot.door(folder) as door:
                finished = self._call(asked, worktree, out_file, door, name)
            found.halted = finished.halted
            return finished

        config = self.agent.config
        about = {"scope": self.task.name, "round": None, "generator": config.use, "kind": asked.kind}
        call = Call(
            session, name, " ".join((config.use, *config.run)), _Budgeted(self.agent, found), about, noted,
            lambda: _exit_status(session.replies.exit(name)), lambda: session.find_draft(name) is not None,
            lambda: session.remove_draft(name),
        )  # fmt: skip
        reply = call.reply(make)
        return self._drafted(name, reply, read_note(session.replies.note(name)) or found.noted)

    def kept(self, name: str) -> Draft | None:
        """The draft of a reply that is kept here."""
        note = read_note(self.session.replies.note(name))
        return self._drafted(name, Reply(Outcome.OK), note) if note.get("files") else None

    def _drafted(self, name: str, reply: Reply, note: Mapping[str, Any]) -> Draft:
        files = converter.structure(note.get("files", {}), dict[str, FileChange])
        asked, who, base = note.get("asked", ""), note.get("who", ""), note.get("base", {})
        draft = Draft(reply.outcome, reply.detail, asked, who, reply.model or "", name, base, files)
        if reply.outcome is not Outcome.OK:
            return draft
        budget, spent = self.agent.config.budget, self._spent(name)
        if budget is not None and spent > budget:  # one that says so at its end; a larger budget lets it through
            return attrs.evolve(draft, outcome=Outcome.OVER_BUDGET, detail=_too_much(spent, budget))
        outside = sorted(path for path in files if not filescopes.may_write(self.task, path))
        if outside:
            shown = ", ".join(path if path.isprintable() else ascii(path) for path in outside[:10])
            more = f" and {len(outside) - 10} more" if len(outside) > 10 else ""
            detail = f"it changed {shown}{more}, outside its `writes`; nothing of it lands, and the change is kept"
            return attrs.evolve(draft, outcome=Outcome.OUTSIDE_SCOPE, detail=detail)
        if not files:
            return attrs.evolve(draft, outcome=Outcome.EMPTY_REPLY, detail="the agent ended well and changed no file")
        return draft

    def _spent(self, name: str) -> int:
        """Tokens that a whole reply accounts for."""
        try:
            raw = self.session.replies.raw(name).read_bytes()
        except OSError:
            return 0
        tokens = self.agent.classify(0, raw).tokens
        return max(self.agent.spent(raw), total(tokens) if tokens else 0)

    def patch(self, draft: Draft) -> bytes:
        """The change for people to read, and for `git apply`."""
        place = self.session.replies.blob(draft.reply, "patch")
        return place.read_bytes() if place.exists() else b""

    def _call(self, asked: Asked, worktree: Worktree, out_file: Path, door: str, name: str) -> process.Finished:
        config, halt = self.agent.config, None
        if config.budget is not None:
            budget = config.budget

            def halt() -> bool:
                return self.agent.spent(out_file.read_bytes()) > budget

        exit_file = self.session.replies.exit(name)
        exit_file.unlink(missing_ok=True)
        try:
            if process.find(self.agent.argv[0], self._environment(worktree, door)) is None:
                raise process.NotFound(f"{self.agent.argv[0]}: not found on PATH")
            finished = process.run(
                ["sh", "-c", _SHELL, "sh", exit_file, *self.agent.argv], cwd=worktree.root, stdin=asked.prompt.encode(),
                env=self._environment(worktree, door), timeout=config.time_limit, out_file=out_file,
                max_output=MAX_STREAM, nice=NICE, keep=True, halt=halt,
            )  # fmt: skip
        except process.NotFound as error:
            return process.Finished(self.agent.argv, _COULD_NOT_START, b"", str(error).encode(), 0.0, None, None)
        self._log(asked.kind, finished)
        return finished

    def _environment(self, worktree: Worktree, door: str) -> dict[str, str]:
        tools = worktree.top.parent / "bin"
        tools.mkdir(exist_ok=True)
        script = tools / "slot"
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(client.__file__)} "$@"\n')
        script.chmod(0o755)
        config = self.agent.config
        env = environment(config.model, config.effort, self.task.env)
        # Without our excludes, its `git add --all` would take the links to node_modules in.
        settings = {"core.excludesFile": str(worktree.excludes), "gc.auto": "0"}
        named = {"GIT_CONFIG_COUNT": str(len(settings))}
        for index, (key, value) in enumerate(settings.items()):
            named |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
        own = {client.DOOR: door, apart.MARK: str(worktree.top)}
        return {**env, **named, **own, "PATH": f"{tools}:{env.get('PATH', '')}"}

    def _log(self, kind: str, finished: process.Finished) -> None:
        """All that it said, where people look for it."""
        place = self.session.log(self.slot)
        name = f"{place.stem}-{kind}-{file_name(self.task.name)}.log"
        write_bytes(place.with_name(name), finished.out + finished.err)


@attrs.define
class _Found:
    """What a call left, until it is noted."""

    made: tuple[Worktree, str] | None = None  # where, and from which commit
    noted: Mapping[str, object] = attrs.field(factory=dict)
    halted: bool = False


@attrs.frozen
class _Budgeted:
    """Reads a reply as its agent does, and knows whether we have ended it."""

    agent: Agent
    found: _Found

    def classify(
        self,
        exit_code: int | None,
        raw: bytes,
        err: bytes = b"",
        *,
        timed_out: bool = False,
        too_much_output: bool = False,
    ) -> Reply:
        reply = self.agent.classify(exit_code, raw, err, timed_out=timed_out, too_much_output=too_much_output)
        if not self.found.halted:
            return reply
        detail = _too_much(self.agent.spent(raw), self.agent.config.budget or 0)
        return attrs.evolve(reply, outcome=Outcome.OVER_BUDGET, detail=detail, tokens=reply.tokens or NOT_MEASURED)


def _too_much(spent: int, budget: int) -> str:
    return f"{spent:,} tokens, and its budget is {budget:,}: raise the agent's `budget`, or ask for less"


def asked_of(task: Task) -> str:
    """Hash of what the plan asks: the brief, and what may be changed."""
    brief = task.agent.brief if task.agent else ""
    return digest({"brief": brief, "reads": list(task.reads), "writes": list(task.writes)})


def choice_of(session: Session, task: Task, lane: str = "draft") -> Choice:
    """Whom the plan asks: tasks that write one file in common share their agent's model."""
    group = next((names for names in session.order.groups if task.name in names), ())
    return of_task(session.plan.models, lane, task, [session.tasks[name] for name in group])


def agent_of(task: Task, choice: Choice) -> Agent:
    assert task.agent is not None
    return AGENTS[task.agent.use](choice.of(task.agent))


def who_of(agent: model.Agent) -> str:
    """Hash of whom the plan asks."""
    return digest([agent.use, agent.model, agent.effort, list(agent.run)])


def states_of(task: Task, states: Mapping[str, str]) -> dict[str, str]:
    """Of the project's files with their content hashes, what the task reads and writes."""
    takes = matcher((*task.reads, *task.writes))
    return {path: state for path, state in states.items() if takes(path)}


def matcher(declared: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path is one of those declared: files, directories, patterns, those with ! taken out."""
    plain = {lock for each in declared if filescopes.is_file(each) for lock in [patterns.lock(each)]}
    rest = [each for each in declared if not filescopes.is_file(each)]

    def takes(path: str) -> bool:
        found = path in plain
        for each in rest:
            if each.startswith("!"):
                found = found and not patterns.takes_in(each[1:], path)
            else:
                found = found or patterns.takes_in(each, path)
        return found

    return takes


def _exit_status(place: Path) -> int | None:
    try:
        return int(place.read_text())
    except (OSError, ValueError):
        return None
