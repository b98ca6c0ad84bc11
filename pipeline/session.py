"""One run of the plan: its snapshot, worktrees, engine, stores and ledger. What the runner asks of a host.

Everything is made when it is first asked for, so that `list` and `info` need neither git, Node nor a store.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from pipeline import clock, heartbeat, ledger, process, sandbox
from pipeline.action import Refusal
from pipeline.contents import Holdings, Place
from pipeline.filescopes import targets
from pipeline.host import RunInfo, Slot
from pipeline.learned import Learned
from pipeline.model import Plan, Scope, Task
from pipeline.noting import Noting
from pipeline.owning import Owning
from pipeline.purse import Purse
from pipeline.results import BESIDE, Dropped, Outcome, find
from pipeline.store import ActionCache, Places, ProofStore, Replies, digest, file_name
from pipeline.watch import Watch
from pipeline.worktree import GitError, Repository, Worktree, Worktrees, find_repository

if TYPE_CHECKING:  # what a run of declared tasks alone has no use for is loaded where it is used
    from pipeline.agenttasks import Order
    from pipeline.conditions import Judged
    from pipeline.engines import Engine
    from pipeline.landing import Landing
    from pipeline.measuring import Measuring
    from pipeline.reached import Narrowed

LANDING = "landing"  # the worktree that commits are made in
INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".git")  # what a program that calls a model looks for


@attrs.frozen
class Snapshot:
    """The checkout as one tree, and the HEAD it was taken on."""

    tree: str
    states: Mapping[str, str]  # project file -> content hash
    head: str
    uncommitted: frozenset[str]  # paths whose state is not HEAD's


@attrs.frozen
class Branch:
    """The landing branch at one moment."""

    on_head: bool  # it is HEAD plus ours, not an older HEAD plus ours
    states: Mapping[str, str]  # project file at its tip -> content hash
    tasks: Sequence[Collection[str]]  # for each commit that brings changes of agents' tasks, newest first: of which


class Session:
    """Made when tasks.yaml is loaded; opened and closed by the runner."""

    def __init__(
        self, plan: Plan, notes: Callable[[Session], list[str]], close: Callable[[Session, int, bool], tuple[int, str]],
        narrowed: Narrowed | None = None,
    ) -> None:  # fmt: skip
        """narrowed: `plan` has those tasks alone that changed files reach."""
        self.plan = plan
        self.home = Path(plan.path).parent / "cache"
        self.pools = plan.pools
        self.info: RunInfo | None = None
        self.events: list[Mapping[str, Any]] = []  # of this run
        self.stopped: dict[str, tuple[Outcome, str]] = {}  # program -> why no call of it does any more in this run
        self._notes, self._close = notes, close
        self.noting = Noting(self, narrowed)
        self._stack = contextlib.ExitStack()
        self._lock = threading.RLock()
        self._worktrees: Worktrees | None = None  # while it is open
        self._branch: Branch | None = None
        self.purse = Purse(plan.generate.budget)  # of this run

    # -- what the plan stands on

    @functools.cached_property
    def scopes(self) -> Mapping[str, Scope]:
        return {scope.name: scope for scope in self.plan.scopes}

    @functools.cached_property
    def engine(self) -> Engine:
        from pipeline.engines import get_engine

        return get_engine(self.plan.engine)

    @functools.cached_property
    def places(self) -> Places:
        return Places.of(self.plan.store)

    @functools.cached_property
    def repository(self) -> Repository:
        return find_repository(Path(self.plan.root))

    @functools.cached_property
    def measuring(self) -> Measuring:
        from pipeline.measuring import Measuring
        from pipeline.sameness import Sameness

        since = 0.0 if self.plan.engine.max_age is None else time.time() - self.plan.engine.max_age
        cache, sameness = ActionCache(self.places.cache / "actions"), Sameness(self.repository, self.engine)
        return Measuring(self.engine, cache, sameness, since)

    @functools.cached_property
    def proofs(self) -> ProofStore:
        return ProofStore(self.places.data / "projects", self.repository.identity)

    @functools.cached_property
    def replies(self) -> Replies:
        return Replies(self.places.data / "replies")

    @functools.cached_property
    def engine_version(self) -> str | None:
        """The engine's name and version; None where it is not installed."""
        from pipeline.engines import EngineError

        try:
            return f"{self.engine.name} {self.engine.version(Path(self.plan.root))}"
        except EngineError:
            return None

    @property
    def snapshot(self) -> Snapshot:
        """Taken at the start of a run, or after all that `engine.needs` names. Raises Refusal where git cannot."""
        with self._lock:
            try:
                return self._snapshot
            except GitError as error:
                raise Refusal(f"the checkout cannot be taken as it is: {error}") from None

    @functools.cached_property
    def _snapshot(self) -> Snapshot:
        head = self.repository.rev("HEAD") or ""
        scratch = self._worktrees.scratch if self._worktrees else None
        tree = self.repository.snapshot(head, (*self.engine.links, *self.engine.outputs), scratch)
        states = self.repository.files(tree)
        committed = states if tree == head else self.repository.files(head) if head else {}
        changed = {p for p in states.keys() | committed.keys() if states.get(p) != committed.get(p)}
        return Snapshot(tree, states, head, frozenset(changed))

    @property
    def landing(self) -> Landing:
        with self._lock:
            return self._landing

    @property
    def landing_notes(self) -> list[str]:
        """What landing has to say once a run."""
        return self._landing.notes if "_landing" in self.__dict__ else []

    @property
    def landing_name(self) -> str:
        """The landing branch. Raises Refused."""
        return self._landing_branch[0]

    @functools.cached_property
    def _landing_branch(self) -> tuple[str, str]:
        """Raises Refused."""
        from pipeline.landing import landing_branch

        return landing_branch(self.repository, self.plan.land.branch)

    @functools.cached_property
    def _landing(self) -> Landing:
        from pipeline.landing import Landing

        return Landing(
            self.repository, *self._landing_branch, self.proofs, self.engine, lambda: self.worktree(LANDING),
            self.plan.scopes, self.plan.land.proof_runs, self.plan.land.time_limit, self.snapshot.uncommitted,
            self.measuring.sameness, self.has_draft,
        )  # fmt: skip

    def has_draft(self, task: str, draft: str) -> bool:
        """Whether a task of the plan has this draft here, to land again."""
        return task in self.tasks and self.replies.note(draft).exists()

    @property
    def branch(self) -> Branch:
        """The landing branch as it was when it was last looked at; `moved` makes us look again."""
        with self._lock:
            if self._branch is None:
                tip, on_head = self.landing.standing()
                self._branch = Branch(on_head, self.repository.files(tip), self.landing.on.tasks(tip))
            return self._branch

    def moved(self) -> None:
        """Something may have landed."""
        self._branch = None

    # -- declared tasks, in the checkout

    @functools.cached_property
    def tasks(self) -> Mapping[str, Task]:
        return {task.name: task for task in self.plan.tasks}

    @functools.cached_property
    def order(self) -> Order:
        """The tasks of agents, and what each of them waits for."""
        from pipeline.agenttasks import Order

        return Order(self.plan.changes)

    @functools.cached_property
    def place(self) -> Place:
        return Place(Path(self.plan.root), self.home.resolve())

    @functools.cached_property
    def holdings(self) -> Holdings:
        made = targets(self.plan.commands)
        kept = ((t.name, [each for each in t.writes if each not in made[t.name]]) for t in self.plan.commands)
        return Holdings(self.home / "held.json", self.place, {task: paths for task, paths in kept if paths})

    @functools.cached_property
    def environment(self) -> Mapping[str, str]:
        """Of declared tasks."""
        return process.environment()

    @property
    def watch(self) -> Watch:
        with self._lock:
            return self._watch

    @functools.cached_property
    def _watch(self) -> Watch:
        watch = Watch(self.repository, [p.resolve() for p in (self.home, self.places.cache, self.places.data)])
        self._stack.callback(watch.close)
        return watch

    @functools.cached_property
    def owning(self) -> Owning:
        return Owning(self.home / "paused", self.places.state / "locks", Path(self.plan.root), lambda: self.scratch)

    # -- places of this checkout

    def target(self, scope: str, name: str) -> Path:
        return self.home / "scopes" / file_name(scope) / name

    def task_target(self, task: str, name: str) -> Path:
        return self.home / "tasks" / file_name(task) / name

    @property
    def ledger_path(self) -> Path:
        return self.home / "ledger.jsonl"

    @functools.cached_property
    def ledger(self) -> ledger.Ledger:
        return ledger.Ledger(self.ledger_path, self.info.run if self.info else "")

    def draft_worktree(self, name: str, commit: str) -> Worktree:
        """A worktree for one draft. Who asks for that draft removes it, once its change is kept."""
        assert self._worktrees is not None
        with self._lock:
            return self._worktrees.draft(name, commit)

    def find_draft(self, name: str) -> tuple[Worktree, str] | None:
        """The worktree that a killed run has left of a draft, and the commit that it was made from."""
        assert self._worktrees is not None
        with self._lock:
            return self._worktrees.find_draft(name)

    def remove_draft(self, name: str) -> None:
        assert self._worktrees is not None
        with self._lock:
            self._worktrees.remove_draft(name)

    @property
    def scratch(self) -> Path:
        """A folder for temporary files of this run."""
        assert self._worktrees is not None
        return self._worktrees.scratch

    def log(self, slot: Slot) -> Path:
        run = self.info.run if self.info else "none"
        return self.home / "logs" / f"{run}-{slot.lane}-{slot.index}.log"

    def worktree(self, slot: Slot | str) -> Worktree:
        """The worktree of a slot of this run."""
        with self._lock:
            assert self._worktrees is not None
            return self._worktrees.get(slot if isinstance(slot, str) else f"{slot.lane}-{slot.index}")

    def empty_folder(self) -> tempfile.TemporaryDirectory[str]:
        """For a program that takes instructions from the files of the folders above it: none of those holds any."""
        scratch = self.scratch
        instructed = any((above / name).exists() for above in scratch.parents for name in INSTRUCTIONS)
        return tempfile.TemporaryDirectory(prefix="doit-mutate-", dir=None if instructed else scratch)

    # -- the runner's host

    @property
    def engine_workers(self) -> int | None:
        said = self.plan.engine.concurrency
        return None if said == "auto" else said

    @property
    def engine_peak_bytes(self) -> int | None:
        return self._learned.engine_peak_bytes

    def open(self, info: RunInfo) -> None:
        """Take the cache, settle what a killed run left, and refuse what could not end well. Raises Refusal."""
        self.info = info
        try:
            dead = self._stack.enter_context(heartbeat.alone(self.home, info.run, info.started))
            for unfinished in self.home.glob(f"*/**/{BESIDE}*") if dead else ():
                unfinished.unlink()  # a target that kill -9 kept from its name
            ended, waited = self._stack.enter_context(process.journal(self.home / "processes"))
            self.owning.settle()
            if any(name.startswith(("land:", "draft:", "look:")) or name == "prove" for name in info.selected):
                _ = self._landing_branch
            self._find_agents(info.selected)
            # Whatever this run does: what dead runs left is removed here.
            home = self.places.cache / "worktrees" / digest(str(self.repository.common))[:16]  # MSBuild reads %2F as /
            judged = self.plan.scopes or self.plan.changes  # in worktrees
            names = (self.engine.links, self.engine.outputs) if judged else ((), ())
            worktrees = Worktrees(self.repository, home, info.run, *names)
            self._worktrees = self._stack.enter_context(worktrees.opened())
            if info.scopes:
                self.engine.check(Path(self.plan.root), bool(self.plan.engine.needs))
            if judged and not self.plan.engine.needs:
                _ = self.snapshot  # what git cannot take is said before anything runs
            self.tell(
                "run-started", at=info.started, lanes=dict(info.lanes.capacity), serial=info.lanes.serial,
                selected=len(info.selected) + len(self.noting.others), scopes=info.scopes,
                orphans_ended=ended, calls_waited_for=waited, took_over=dead and dead.get("run"),
                sandbox=sandbox.missing() or "enforced", since=self.plan.since,
            )  # fmt: skip
            if self.noting.others:
                self.tell("carried", tasks=self.noting.others)
            self.noting.begin()
        except BaseException as error:  # Ctrl-C too
            self._stack.close()
            if isinstance(error, OSError):
                place = error.filename or self.home
                raise Refusal(f"{place}: {error.strerror or error}") from None
            from pipeline.engines import EngineError
            from pipeline.landing import Refused

            if isinstance(error, GitError | Refused | EngineError):
                raise Refusal(str(error)) from None
            raise

    def _find_agents(self, selected: Iterable[str]) -> None:
        """Raises Refusal where a draft is due and its agent is not installed."""
        if not self.plan.changes:
            return
        from pipeline.drafts import Draft

        for task in self.plan.changes if not {"draft"}.isdisjoint(s.partition(":")[0] for s in selected) else ():
            drafted = find(self.task_target(task.name, "draft.json"), Draft)
            if f"draft:{task.name}" not in selected or (drafted and drafted.outcome is Outcome.OK) or not task.agent:
                continue
            program = task.agent.run[0] if task.agent.run else task.agent.use
            if not ((Path(self.plan.root) / program).exists() if "/" in program else process.find(program)):
                raise Refusal(f"{self.plan.path}: task {task.name}: agent: {program} is not installed: put it on PATH")

    def notes(self) -> Sequence[str]:
        return self.noting.told(lambda: self._notes(self))

    def peak(self, task: str) -> int | None:
        return self._learned.peak(task)

    def estimate(self, task: str) -> float | None:
        return self._learned.estimate(task)

    @functools.cached_property
    def _learned(self) -> Learned:
        return Learned(self.home)

    def listed(self, said: str) -> None:
        """`doit list` has said that, of this plan as it is."""
        self.noting.listed(said)

    def tell(self, event: str, **fields: Any) -> None:
        """An event: to those who ask how this run went, and to the ledger."""
        self.events.append({"event": event, **fields})
        self.ledger.write(event, **fields)

    def progress(self) -> Sequence[str]:
        return self.purse.told(bool(self.plan.scopes))

    def began(self, event: Mapping[str, object]) -> None:
        self.tell("started", **event)

    def record(self, event: Mapping[str, object]) -> None:
        self.tell("attempt", **event)
        self.purse.bought(event.get("killed"))
        if event.get("kind") != "task":
            self._learned.engine_took(event.get("peak_bytes"))

    def call(self, **fields: Any) -> None:
        """One call to a model, as the provider's envelope accounts for it."""
        self.tell("call", **fields)
        if "round" in fields and not fields.get("recovered"):  # else not for tests, or paid by another run
            self.purse.pay(fields.get("tokens"))

    def tokens_of(self, scope: str, round_: int) -> int:
        """What the calls of a scope's round cost, in the last run that made any of them."""
        events = self.events
        if not any(_is_call(e, scope, round_) for e in events):
            earlier = [e for e in ledger.events(self.ledger_path) if _is_call(e, scope, round_)]
            events = [e for e in earlier if e["run"] == earlier[-1]["run"]]
        calls = [e["tokens"] for e in events if _is_call(e, scope, round_) and e.get("tokens")]
        return sum(t["fresh_input"] + t["cache_write"] + t["output"] for t in calls)

    def condition(self, task: str, phase: str, judged: Judged, started: float, ended: float) -> None:
        """One condition of a check, judged."""
        said = {"name": judged.name, "outcome": str(judged.outcome), "said": judged.detail.split("\n")[0]}
        self.tell("condition", scope=task, phase=phase, **said, started=started, ended=ended)

    def build(self, **fields: Any) -> None:
        """One build of the gate, or what was known of one."""
        self.tell("build", **fields)

    def accounted(self, reply: str, since: float) -> bool:
        """Whether the ledger has the call that brought this reply, whole at that time, in seconds since the epoch."""
        calls = (e for e in ledger.events(self.ledger_path) if e["event"] == "call")
        return any(e.get("reply") == reply and e["ended"] >= since for e in calls)

    def drop(self, scope: str, round_: int, dropped: Iterable[Dropped]) -> None:
        """Candidates that did not become tests, each with its outcome."""
        for d in dropped:
            self.tell(
                "candidate-dropped", scope=scope, round=round_, title=d.title, outcome=d.outcome,
                reason=d.reason.split("\n")[0],
            )  # fmt: skip

    def close(self, result: int, interrupted: bool, alone: bool) -> tuple[int, str]:
        try:
            self._learned.add([e for e in self.events if e["event"] == "attempt"])
            status, text = self._close(self, result, interrupted)
            self.noting.end(text, status == 0 and not interrupted, alone)
            self.tell("run-ended", at=clock.now(), status=status, interrupted=interrupted)
            if "measuring" in self.__dict__:
                self.measuring.cache.shrink()
            return status, text
        finally:
            self.owning.settle()
            self._stack.close()
            self.ledger.close()


def _is_call(event: Mapping[str, Any], scope: str, round_: int) -> bool:
    return event["event"] == "call" and event.get("scope") == scope and event.get("round") == round_
