"""Which model is asked and how hard it is to think, and for how long a failing gateway is put up with. Pure.

What is said nearest to the work goes first: the work itself (a task, a scope), the generator's entry, how sure the plan
is of the work, the lane. Model and effort are looked for one by one; a model that the plan names may bring its effort.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from .model import INHERIT, Agent, Confidence, GeneratorConfig, ModelsConfig, Scope, Task, Wish
from .results import Outcome

GATEWAY = frozenset((Outcome.RATE_LIMITED, Outcome.OVERLOADED))  # the same call may do in a moment
LANE = frozenset((Outcome.SESSION_LIMIT, Outcome.NOT_LOGGED_IN))  # no call of this program does until somebody acts
LONGEST = 300.0  # seconds of one back-off
C = TypeVar("C", GeneratorConfig, Agent)
_SURENESS: Mapping[Confidence | None, int] = {"low": 0, "medium": 1, None: 1, "high": 2}


@attrs.frozen
class Choice:
    """A model and an effort as the program is told them, None for no flag; and who has said so."""

    model: str | None
    effort: str | None
    why: str
    name: str = INHERIT  # what the plan calls the model
    below: Choice | None = None  # one step down the ladder, where there is one

    def of(self, config: C) -> C:
        """The generator, or agent, that asks it."""
        return attrs.evolve(config, model=self.model, effort=self.effort)

    @property
    def event(self) -> dict[str, Any]:
        """What the ledger says of it."""
        return {"model": self.model, "effort": self.effort, "chosen_by": self.why}


def choose(
    models: ModelsConfig, lane: str, said: Sequence[tuple[str, Wish]], confidence: Confidence | None = None
) -> Choice:
    """The choice for one piece of work in a lane. said: what is said of it alone, and where, the nearest first."""
    levels = [*said]
    if confidence is not None and confidence in models.by_confidence:
        levels.append((f"confidence {confidence}", models.by_confidence[confidence]))
    levels.append((f"lane {lane}", models.lanes.get(lane, Wish())))
    at = next((i for i, (_, wish) in enumerate(levels) if wish.model is not None), None)
    if at is None:
        return _choice(models, levels, None, INHERIT)
    name = str(levels[at][1].model)
    chosen = _choice(models, levels, at, name)
    lower = dict(zip(models.ladder, models.ladder[1:], strict=False)).get(name)
    if lower is None:
        return chosen
    below = _choice(models, levels, at, lower)
    return attrs.evolve(chosen, below=attrs.evolve(below, why=f"one step down from {name}"))


def _choice(models: ModelsConfig, levels: Sequence[tuple[str, Wish]], at: int | None, name: str) -> Choice:
    """name: the model that the level `at` names; its own effort counts as said there."""
    known = models.names.get(name, Wish(name))
    found = None
    for i, (who, wish) in enumerate(levels):
        effort = wish.effort or (known.effort if i == at else None)
        if effort is not None:
            found = (i, who, effort)
            break
    why = "nobody names a model" if at is None else levels[at][0]
    if found is not None and found[0] != at:
        why += f"; effort: {found[1]}"
    effort = None if found is None or found[2] == INHERIT else found[2]
    return Choice(None if known.model == INHERIT else known.model, effort, why, name)


def of_scope(models: ModelsConfig, scope: Scope, generator: GeneratorConfig) -> Choice:
    """The choice for the tests of a scope, asked of one generator."""
    entry = Wish(generator.model, generator.effort)
    said = ((f"scope {scope.name}", scope.wish), (f"generator {generator.name}", entry))
    return choose(models, "generate", said, scope.confidence)


@attrs.frozen
class Member:
    """One of several pieces of work that one agent does together."""

    name: str
    said: Sequence[tuple[str, Wish]] = ()
    confidence: Confidence | None = None


def of_group(models: ModelsConfig, lane: str, members: Sequence[Member]) -> Choice:
    """The choice of the least confident member, the first of several; who says nothing counts as medium."""
    least = min(members, key=lambda member: _SURENESS[member.confidence])
    chosen = choose(models, lane, least.said, least.confidence)
    if len(members) == 1:
        return chosen
    return attrs.evolve(chosen, why=f"{chosen.why}; least confident of {len(members)}: {least.name}")


def of_task(models: ModelsConfig, lane: str, task: Task, group: Sequence[Task] = ()) -> Choice:
    """The choice for an agent's task. group: the tasks that write a file of its in common, itself among them."""
    agent = task.agent
    assert agent is not None

    def member(each: Task) -> Member:
        wish = Wish(each.agent.model, each.agent.effort) if each.agent else Wish()
        return Member(each.name, ((f"task {each.name}", wish),), each.confidence)

    same = [each for each in group if each.agent and (each.agent.use, each.agent.run) == (agent.use, agent.run)]
    return of_group(models, lane, [member(task)] if agent.model or not same else list(map(member, same)))


def stepped(fields: Mapping[str, Any]) -> str:
    """For people, where by an event another model answered than the one that was wanted."""
    lower = fields.get("stepped_down")
    return f" ({lower['model']}, {lower['chosen_by']})" if lower else ""


class Answer(Protocol):
    """What a call came to."""

    @property
    def outcome(self) -> Outcome: ...
    @property
    def detail(self) -> str: ...


A = TypeVar("A", bound=Answer)


@attrs.define
class Patience:
    """The calls of one piece of work, which may be several, side by side: all of them step down once, together.

    pause: waits so many seconds. jitter: a number from 0 to 1, another one each time.
    """

    choice: Choice  # who is asked now
    tries: int
    backoff: float
    pause: Callable[[float], None]
    jitter: Callable[[], float] = random.random
    waited: float = 0.0  # seconds, of all calls together
    failures: int = 0  # of the gateway
    _wanted: Choice = attrs.field(init=False, default=attrs.Factory(lambda self: self.choice, takes_self=True))
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    @property
    def event(self) -> dict[str, Any]:
        """What the ledger says of it: who was wanted and why, and what the gateway cost."""
        lower = {} if self.choice is self._wanted else {"stepped_down": self.choice.event}
        return {**self._wanted.event, "waited": round(self.waited, 3), "gateway_failures": self.failures, **lower}

    def insist(self, call: Callable[[Choice], A]) -> tuple[A, str]:
        """What `call` comes to at last: on the same model again while the gateway fails, then on the one below it. With
        it, why it was given up (then it is Outcome.EXHAUSTED); "" where it was not.

        Half of each wait is drawn by lot, so that those who failed together do not come back together ("equal
        jitter": AWS Architecture Blog, Exponential Backoff And Jitter).
        """
        failed: list[str] = []
        while True:
            asked = self.choice
            for again in range(self.tries):
                if again:
                    self._wait(again)
                answer = call(asked)
                if answer.outcome not in GATEWAY:
                    return answer, ""
                with self._lock:
                    self.failures += 1
            at = "" if asked.name == INHERIT else f" at {asked.name}"
            failed.append(f"{answer.outcome} {self.tries} times{at}")
            with self._lock:
                if asked.below is None:
                    return answer, f"{', then '.join(failed)}: {answer.detail}"
                self.choice = asked.below

    def _wait(self, again: int) -> None:
        seconds = min(LONGEST, self.backoff * 2 ** (again - 1)) * (0.5 + 0.5 * self.jitter())
        self.pause(seconds)
        with self._lock:
            self.waited += seconds
