"""Plan -> doit's task dicts. The only module that spells doit's keys; what tasks do is in steps.py.

The graph's unit is the scope; its shape is known before anything runs and never depends on a result. Paths of targets
are relative to the folder of tasks.yaml, where doit runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doit.tools import config_changed

from pipeline import declared, freshness, reports
from pipeline.action import Step
from pipeline.choice import of_scope
from pipeline.declared import told_of_loss
from pipeline.freshness import Asked
from pipeline.host import Attempt, Performer, Slot
from pipeline.model import GATE, GENERATION, LOOK, VALIDATION, Scope, Task
from pipeline.results import Candidates
from pipeline.session import Session

if TYPE_CHECKING:
    from pipeline.gating import Gating

Dict = dict[str, Any]


def tasks(session: Session) -> Iterator[Dict]:
    """All tasks of the plan, in the order in which doit lists and, without -n, runs them."""
    make = _Maker(session)
    yield from declared.tasks(session)
    yield from declared.groups()
    for scope in session.plan.scopes:
        yield from make.of_scope(scope)
    if session.plan.changes:
        yield from make.changes()
    yield from reports.tasks(session)


_CHANGE_GROUPS = (
    ("build", "draft, check and land the change of every task that an agent has"),
    ("draft", "let agents draft changes, each in a worktree of its own"),
    ("check", "judge the drafts on HEAD and what has landed"),
)


class _Maker:
    def __init__(self, session: Session) -> None:
        self.session, self.plan = session, session.plan
        self.fresh = freshness.Freshness(session)
        self._performers: dict[str, Performer] = {}
        self._gate: Gating | None = None

    def _performer(self, kind: str) -> Performer:
        """The step of a kind, one for all its tasks. What it takes to work is imported when there is work."""

        def perform(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
            from pipeline.steps import Steps

            with told_of_loss(self.session):
                return getattr(Steps(self.session), kind)(keys, slot)  # type: ignore[no-any-return]

        return self._performers.setdefault(kind, perform)

    def changes(self) -> Iterator[Dict]:
        def performer(kind: str) -> Performer:
            def perform(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
                from pipeline.changes import Changes

                with told_of_loss(self.session):
                    return getattr(Changes(self.session), kind)(keys, slot)  # type: ignore[no-any-return]

            return perform

        def at_the_gate(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
            with told_of_loss(self.session):
                return self._gating().land(keys, slot)

        def gate(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
            with told_of_loss(self.session):
                said: Any = keys[0]
                return self._gating("--check" in said, "--again" in said).all(keys, slot)

        for kind, doc in _CHANGE_GROUPS:
            yield {"basename": kind, "name": None, "doc": doc}
        performers = {kind: performer(kind) for kind in ("draft", "check", "land")}
        if self.plan.gate:
            performers["land"] = at_the_gate
            yield {
                "basename": "gate",
                "doc": "land what is drafted and checked; --check: judge it, land nothing; --again: build all anew",
                "actions": [Step(self.session, "gate", gate, words=(), flags=("check", "again"))],
                "params": [
                    {"name": name, "long": name, "type": bool, "default": False, "help": help_}
                    for name, help_ in (
                        ("check", "land nothing; exit 1 where something would not land"),
                        ("again", "build what was built before, too"),
                    )
                ],
                "verbosity": 2,
                "meta": {"pool": GATE, "kind": "gate"},
            }  # fmt: skip
        if any(task.look for task in self.plan.changes):
            yield {"basename": "look", "name": None, "doc": "look at what has landed; asks no agent, and lands nothing"}
        for task in self.plan.changes:
            yield from self._change(task, performers)

    def _gating(self, look: bool = False, again: bool = False) -> Gating:
        """The gate of this run, one for all that lands through it."""
        from pipeline.gating import Gating

        assert self.plan.gate is not None
        if self._gate is None:
            self._gate = Gating(self.session, self.plan.gate, look, again)
        return self._gate

    def _change(self, task: Task, performers: Mapping[str, Performer]) -> Iterator[Dict]:
        name, changed = task.name, {other.name for other in self.plan.changes}
        said = task.doc or (task.agent.brief.strip().splitlines()[0].strip("# ") if task.agent else "")
        first = [f"land:{other}" for other in self.session.order.after[name]]
        first += [need for need in task.needs if need not in changed]
        pools = {"draft": GENERATION, "check": VALIDATION, "land": GATE if self.plan.gate else VALIDATION}
        batch = {"land": {"batch": GATE}} if self.plan.gate else {}
        for kind, target, needs, doc, judge, fresh in (
            (
                "draft", "draft.json", first, f"let {task.agent.use if task.agent else ''} draft: {said}",
                self.fresh.drafted, "its brief is the same, and what it reads and writes on HEAD and what has landed",
            ), (
                "check", "checked.json", [f"draft:{name}"],
                f"judge what was drafted: {', '.join(each.name for each in task.check)}",
                self.fresh.checked, "this draft was judged, and held",
            ), (
                "land", "landed.json", [f"check:{name}"],
                f"put the change on the landing branch, in {', '.join(task.writes)}",
                self.fresh.task_landed, "the landing branch stands on HEAD, and has the change",
            ),
        ):  # fmt: skip
            yield {
                "basename": kind, "name": name, "doc": doc,
                "actions": [Step(self.session, name, performers[kind])],
                "task_dep": needs, "targets": [self._task_target(task, target)],
                "uptodate": [Asked(judge, task, said=fresh)], "clean": True,
                "meta": {"pool": pools[kind], "kind": kind, "scope": name, **batch.get(kind, {})},
            }  # fmt: skip
        looks = [f"look:{name}"] if task.look and task.look.by == "tool" else []
        if task.look:
            yield self._look(task)
        yield {"basename": "build", "name": name, "actions": None, "task_dep": [f"land:{name}", *looks], "doc": said}

    def _look(self, task: Task) -> Dict:
        """It comes after all landings of the run, and needs none: a person who looks asks no agent."""

        def perform(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
            from pipeline.looks import Looks

            with told_of_loss(self.session):
                return Looks(self.session).look(keys, slot)

        assert task.look is not None
        by, same = task.look.by, "what has landed was looked at, as it landed"
        return {
            "basename": "look", "name": task.name, "doc": f"let a {by} look at what has landed: {task.look.run[0]}",
            "actions": [Step(self.session, task.name, perform)],
            "targets": [self._task_target(task, "looked.json")], "clean": True,
            "uptodate": [Asked(self.fresh.looked, task, said=same)],
            "meta": {"pool": VALIDATION if by == "tool" else LOOK, "kind": "look", "after": "land"},
        }  # fmt: skip

    def of_scope(self, scope: Scope) -> Iterator[Dict]:
        name, last = scope.name, self.plan.generate.last_round
        files = ", ".join(scope.mutate) if len(scope.mutate) <= 3 else f"{len(scope.mutate)} files"
        inputs = self._target(scope, "inputs.json")
        yield self._task(
            "baseline", name, self._performer("baseline"), name, f"measure {files} and audit the survivors",
            targets=["baseline.json", "survivors.json", "inputs.json"], scope=scope,
            task_dep=list(self.plan.engine.needs), batch="baseline",
            uptodate=[Asked(self.fresh.baseline, scope, said=lambda: self.fresh.measured_on(scope))],
        )  # fmt: skip
        yield self._task(
            "search", name, self._performer("search"), name, f"tests for {files} without a model",
            targets=["candidates.0.json"], scope=scope, round_=0,
            file_dep=[self._target(scope, "survivors.json"), inputs],
            uptodate=[
                config_changed(self.fresh.search_values()),
                Asked(self.fresh.ended_well, scope, "candidates.0.json", Candidates, said="the search came to its end"),
            ],
        )  # fmt: skip
        yield self._validate(scope, 0)
        if last:
            from pipeline.generators import GENERATORS
        for r in range(1, last + 1):
            config, attempt = self.plan.generate.of_round(r)
            floor = {"tokens_per_kill": most} if (most := self.plan.generate.budget.tokens_per_kill) else {}
            generator = GENERATORS[config.use](of_scope(self.plan.models, scope, config).of(config))
            yield self._task(
                "generate", f"{name}:{r}", self._performer("generate"), (name, r),
                f"ask {config.name} about what is left of {files}, {attempt + 1} of {self.plan.generate.rounds} times",
                targets=[f"candidates.{r}.json"], scope=scope, round_=r, pool=GENERATION,
                file_dep=[self._target(scope, f"survivors.{r - 1}.json")],
                uptodate=[
                    config_changed({**generator.key(), "template": generator.template_version, **floor}),
                    Asked(self.fresh.ended_well, scope, f"candidates.{r}.json", Candidates, said="the calls went well"),
                ],
            )  # fmt: skip
            yield self._validate(scope, r)
        yield self._task(
            "land", name, self._performer("land"), name, f"put proved tests on the landing branch, in {scope.write}",
            targets=["landed.json"], scope=scope, task_dep=[f"validate:{name}:{last}"],
            uptodate=[Asked(self.fresh.landed, scope, said="the branch stands on HEAD, and holds what was proved")],
        )  # fmt: skip
        yield self._task(
            "confirm", name, self._performer("confirm"), name, f"let the engine measure {files} on the landing branch",
            targets=["confirmed.json"], scope=scope, task_dep=[f"land:{name}"],
            batch="confirm", after="land",
            uptodate=[Asked(self.fresh.confirmed, scope, said="what was measured on the branch is what is on it")],
        )  # fmt: skip
        yield {
            "basename": "mutate", "name": name, "actions": None, "task_dep": [f"confirm:{name}"],
            "doc": f"the whole way for {files}",
        }  # fmt: skip

    def _validate(self, scope: Scope, r: int) -> Dict:
        before = f"survivors.{r - 1}.json" if r else "survivors.json"
        needed = [f"candidates.{r}.json", before, "inputs.json", *(f"proofs.{i}.json" for i in range(r))]
        return self._task(
            "validate", f"{scope.name}:{r}", self._performer("validate"), (scope.name, r),
            f"prove the candidates of {'search' if r == 0 else f'round {r}'} for {scope.name}",
            targets=[f"proofs.{r}.json", f"survivors.{r}.json"], scope=scope, round_=r,
            file_dep=[self._target(scope, n) for n in needed],
            uptodate=[
                config_changed({"runs": self.plan.land.proof_runs}),
                Asked(self.fresh.validated, scope, r, said="what the validation loaded is as it was"),
            ],
        )  # fmt: skip

    def _task(
        self, kind: str, name: str, performer: Any, key: Any, doc: str, *, targets: Sequence[str], scope: Scope,
        uptodate: Sequence[Any], file_dep: Sequence[str] = (), task_dep: Sequence[str] = (), pool: str = VALIDATION,
        round_: int | None = None, batch: str | None = None, after: str | None = None,
    ) -> Dict:  # fmt: skip
        meta = {"pool": pool, "kind": kind, "scope": scope.name, "round": round_, "batch": batch, "after": after}
        return {
            "basename": kind,
            "name": name,
            "doc": doc,
            "actions": [Step(self.session, key, performer)],
            "file_dep": list(file_dep),
            "task_dep": list(task_dep),
            "targets": [self._target(scope, t) for t in targets],
            "uptodate": list(uptodate),
            "clean": True,
            "meta": {k: v for k, v in meta.items() if v is not None},
        }

    def _target(self, scope: Scope, name: str) -> str:
        return str(self.session.target(scope.name, name).relative_to(Path(self.plan.path).parent))

    def _task_target(self, task: Task, name: str) -> str:
        return str(self.session.task_target(task.name, name).relative_to(Path(self.plan.path).parent))
