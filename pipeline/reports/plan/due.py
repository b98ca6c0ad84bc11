"""What the next run has to do, judged as a run judges it: steps of scopes, declared tasks, steps of agents' tasks.

What comes after something that is due may have to be done or not, by what comes of that: it counts, as at most.
"""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Iterator
from typing import Any

import attrs
from doit.globals import Globals
from doit.loader import generate_tasks

from pipeline import declared, filescopes, reached
from pipeline.drafting import Drafting
from pipeline.freshness import Freshness
from pipeline.host import Slot
from pipeline.landing import Refused
from pipeline.model import GENERATION, Plan, Scope, Task
from pipeline.results import Candidates, Survivors, find
from pipeline.session import Session


@attrs.frozen
class Step:
    """One task of doit's that is due."""

    kind: str
    asked: float = 0.0  # generate: how many survivors it asks about
    calls: int = 0  # draft: the calls that it makes
    surely: bool = True  # else only where what is before it leaves other files than there are


def of_scope(session: Session, scope: Scope, left: float, killed: float) -> Iterator[Step]:
    """In order. left: survivors that search leaves; killed: which part of those that a round asks about it kills."""
    fresh = Freshness(session)
    all_of_it = not fresh.baseline(scope)
    if all_of_it:
        yield Step("baseline")
    asking = left
    for r in range(session.plan.generate.last_round + 1):
        known = None if all_of_it else find(session.target(scope.name, f"survivors.{r}.json"), Survivors)
        if all_of_it or not fresh.ended_well(scope, f"candidates.{r}.json", Candidates):
            if r == 0:
                yield Step("search")
            elif asking >= 0.5:
                yield Step("generate", asking)
            all_of_it = True
        if all_of_it or not fresh.validated(scope, r):
            yield Step("validate")
            all_of_it = True
        asking = len(known.survivors) if known else asking * (1 - killed) if r else left
    if all_of_it or not fresh.landed(scope):
        yield Step("land")
        yield Step("confirm")


def commands(session: Session) -> dict[str, bool]:
    """The declared tasks that a run of the whole plan has to run -> surely? doit is asked, as it is for its list."""
    selected = _selected(session.plan)
    made = {task.name: task for task in generate_tasks("plan", declared.tasks(session))} if selected else {}
    manager: Any = Globals.dep_manager
    due = [
        name
        for name, task in made.items()
        if name in selected
        and not manager.status_is_ignore(task)
        and manager.get_status(task, made).status != "up-to-date"
    ]
    tasks = {name: {"reads": session.tasks[name].reads, "writes": session.tasks[name].writes} for name in selected}
    behind = reached.reach(tasks, reached.naming(tasks), (), due) or set()  # who reads, or writes, where these write
    return {name: name in due for name in selected if name in behind}


def _selected(plan: Plan) -> Collection[str]:
    """Those that a run of the whole plan comes to, in the plan's order: with scopes, what they and the agents need."""
    names = [task.name for task in plan.commands]
    if not plan.scopes:
        return names
    order, found = filescopes.waits(plan.tasks), set[str]()
    waiting = [*plan.engine.needs, *(need for task in plan.changes for need in task.needs)]
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += order[name]
    return [name for name in names if name in found]


def of_agents(session: Session) -> Iterator[tuple[Task, list[Step]]]:
    """Agents' tasks that have anything to do, each after those that land before it."""
    if not session.plan.changes:
        return
    fresh, landing = Freshness(session), set[str]()
    for name in graphlib.TopologicalSorter(session.order.after).static_order():
        task, first = session.tasks[name], landing.isdisjoint(session.order.after[name])
        steps = [*_of_agent(session, fresh, task, first)]
        if any(step.kind == "land" for step in steps):
            landing.add(name)
        if steps:
            yield task, steps


def _of_agent(session: Session, fresh: Freshness, task: Task, first: bool) -> Iterator[Step]:
    """first: nothing lands before it in this run."""
    drafts = not fresh.drafted(task)
    if drafts or not first:
        here = first and _is_answered(session, task)
        yield Step("draft", calls=0 if here else 1, surely=first)
    all_of_it, surely = drafts or not first, first or drafts
    if all_of_it or not fresh.checked(task):
        all_of_it = True
        yield Step("check", surely=surely)
    if all_of_it or not fresh.task_landed(task):
        all_of_it = True
        yield Step("land", surely=surely)
    if task.look and task.look.by == "tool" and (all_of_it or not fresh.looked(task)):
        yield Step("look", surely=surely)


def _is_answered(session: Session, task: Task) -> bool:
    """Has its agent been asked this already, and is the answer kept, or still on its way? No call is made then."""
    try:
        landing = session.landing
        tip, on_head = landing.standing()
        base = tip if on_head else landing.head()
    except Refused:
        return False
    drafting = Drafting.of(session, task, Slot(GENERATION, 0, 1))
    return drafting.begun(drafting.first(base))
