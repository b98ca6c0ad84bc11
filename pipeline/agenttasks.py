"""The tasks of agents: what is wrong with them, and in what order they go. Asks the checkout; changes nothing.

Tasks that write one file are a collision group: serial, from draft to landing. Their order is that of the plan's waves,
so that it keeps all needs, and no chain is longer than the plan has waves.
"""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from pipeline import analysis, filescopes, lintplan, model, spelled
from pipeline.checkout import Checkout, NoFiles
from pipeline.document import TaskDocument
from pipeline.patterns import unescape
from pipeline.source import Mistake, Where, quoted

EACH = "each"  # the condition that the gate has in every check


def tasks(
    documents: Sequence[TaskDocument], declared: Sequence[model.Task], checkout: Checkout
) -> tuple[tuple[model.Task, ...], list[Mistake]]:
    """The declared tasks, briefs read, and all that is wrong with what agents are to do."""
    mistakes: list[Mistake] = []
    found = []
    changes = {task.name for task in declared if task.agent}
    for index, (document, task) in enumerate(zip(documents, declared, strict=True)):
        where: Where = ("tasks", index)
        if task.agent is not None:
            mistakes += _mistakes(document, where)
            mistakes += _never_committed(task, where, checkout)
            mistakes += _lint_mistakes(document, task, where, checkout)
            try:
                task = attrs.evolve(task, agent=attrs.evolve(task.agent, brief=_brief(task.agent.brief, checkout)))
            except _NoBrief as error:
                mistakes.append(Mistake((*where, "agent", "brief"), str(error), error.remedy))
        elif task.look is not None:
            what = "`look` is for the change of an agent, once it has landed"
            mistakes.append(Mistake((*where, "look"), what, "look at what `run` does in a task of its own"))
        elif not task.run:
            more = "; `check` goes with `run` or `agent`" if task.check else ""
            what = f"`run` is missing: shell commands, one after another{more}"
            mistakes.append(Mistake((*where, "run"), what, unless=(*where, "agent")))
        else:
            for position, need in enumerate(task.needs):
                if need in changes:
                    what = f"{quoted(need)} lands on a branch, and `run` works in the checkout, which lacks that"
                    remedy = "let it be an agent's task too, or take the need out"
                    mistakes.append(Mistake((*where, "needs", position), what, remedy))
        found.append(task)
    return tuple(found), mistakes


def gated(tasks: Sequence[model.Task], gate: model.GateConfig | None) -> tuple[model.Task, ...]:
    """The tasks, with what the gate asks of each draft at the head of its check."""
    if gate is None or not gate.each:
        return tuple(tasks)
    each = model.Condition(EACH, gate.each, timeout=gate.timeout)
    return tuple(attrs.evolve(task, check=(each, *task.check)) if task.agent else task for task in tasks)


def _mistakes(document: TaskDocument, where: Where) -> Iterator[Mistake]:
    agent = document.agent
    assert agent is not None
    if document.run:
        yield Mistake((*where, "agent"), "`agent` stands in the place of `run`", "take one of the two out")
    if not document.check:
        what = "`check` is missing: what must hold of the change"
        yield Mistake((*where, "check"), what, "without it nothing lands")
    if not document.writes:
        what = "`writes` is missing: files, directories and patterns that the agent may change"
        yield Mistake((*where, "writes"), what)
    if agent.use == "command" and not agent.run:
        remedy = "`use: command` runs the program that `run` names"
        yield Mistake((*where, "agent", "run"), "`run` is missing", remedy)
    if agent.use != "command" and agent.run:
        what = f"{agent.use} runs no program of yours"
        yield Mistake((*where, "agent", "run"), what, "`run` goes with `use: command`")
    if document.timeout is not None:
        what = "`timeout` is for `run`"
        yield Mistake((*where, "timeout"), what, "an agent has `time_limit`, and each condition of `check` a `timeout`")
    if document.owns is not None:
        what = "`owns` is for `run`"
        yield Mistake((*where, "owns"), what, "each condition of `check` may have its own")
    for index, each in enumerate(document.check.values()):
        if each.owns and (said := spelled.unresumed(each.owns)):
            yield Mistake((*where, "check", list(document.check)[index], "owns"), *said)
    for key, is_set in (("pool", document.pool != model.VALIDATION), ("memory", document.memory is not None)):
        if is_set:
            yield Mistake((*where, key), f"`{key}` is for `run`", "leave it out")


def _lint_mistakes(document: TaskDocument, task: model.Task, where: Where, checkout: Checkout) -> Iterator[Mistake]:
    for made in task.check:
        place = (*where, "check", made.name)
        may_write = functools.partial(filescopes.may_write, task)
        yield from lintplan.condition_mistakes(place, document.check[made.name], made, may_write, checkout)


def _never_committed(task: model.Task, where: Where, checkout: Checkout) -> Iterator[Mistake]:
    """`writes` that git ignores could not land."""
    plain = [path for each in task.writes if (path := unescape(each)) is not None and filescopes.is_file(each)]
    with contextlib.suppress(NoFiles):
        for path in checkout.ignored(plain) if plain else ():
            if path not in checkout.files:
                what = f"{quoted(path)} is ignored by git, so it could never be committed"
                yield Mistake((*where, "writes"), what, "name a file that git would keep")


class _NoBrief(Exception):
    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


def _brief(said: str, checkout: Checkout) -> str:
    """The brief's text: of the file that a single word names, else the words themselves. Raises _NoBrief."""
    if len(said.split()) != 1:
        return said
    name = said.strip()
    path = checkout.root / name
    try:
        text = path.read_text()
    except OSError as error:
        there = path.exists()
        hint = "" if there else checkout.hint(name)
        what = f"{quoted(name)} cannot be read: {error.strerror}" if there else f"no file {quoted(name)}"
        raise _NoBrief(what, hint or "name a file of the project, or say in words what is to be done") from None
    except UnicodeDecodeError:
        raise _NoBrief(f"{quoted(name)} is not UTF-8 text", "name a text file") from None
    if not text.strip():
        raise _NoBrief(f"{quoted(name)} is empty", "say in it what is to be done")
    return text


# -- the order


@attrs.frozen(slots=False)
class Order:
    """The order of the tasks of agents."""

    tasks: Sequence[model.Task]

    @functools.cached_property
    def blockers(self) -> dict[str, tuple[str, ...]]:
        """Task -> those that must have landed before it is drafted: what it needs, and the makers of what it reads."""
        names = {task.name for task in self.tasks}
        return {
            name: tuple(n for n in needs if n in names) for name, needs in filescopes.waits(self.tasks).items()
        }  # fmt: skip

    @functools.cached_property
    def _wave(self) -> dict[str, tuple[int, int]]:
        jobs = []
        for task in self.tasks:
            held = filescopes.locks(task)
            jobs.append(
                analysis.Job(task.name, self.blockers[task.name], tuple(sorted(held.reads)), tuple(sorted(held.writes)))
            )
        of = analysis.waves(jobs).of
        return {task.name: (of[task.name], index) for index, task in enumerate(self.tasks)}

    @functools.cached_property
    def _meetings(self) -> dict[str, dict[str, bool]]:
        """Task -> the tasks that write what it reads or writes -> whether both write it."""
        written: dict[str, set[str]] = defaultdict(set)  # path, and every directory above it -> who writes there
        exactly: dict[str, set[str]] = defaultdict(set)
        scopes = {task.name: filescopes.locks(task) for task in self.tasks}
        for name, held in scopes.items():
            for path in held.writes:
                exactly[path].add(name)
                for above in _upwards(path):
                    written[above].add(name)
        found: dict[str, dict[str, bool]] = {}
        for name, held in scopes.items():
            mine: dict[str, bool] = {}
            for paths, both in ((held.reads, False), (held.writes, True)):
                for path in paths:
                    others = set(written[path]).union(*(exactly[above] for above in _upwards(path)))
                    mine.update({other: both or mine.get(other, False) for other in others - {name}})
            found[name] = mine
        return found

    @functools.cached_property
    def after(self) -> dict[str, tuple[str, ...]]:
        """Task -> those that land before it is drafted, or have failed to: its blockers, and all earlier ones that
        write what it reads or writes."""
        return {
            name: tuple(dict.fromkeys([*self.blockers[name], *sorted(self._earlier(name), key=self._wave.__getitem__)]))
            for name in self._meetings
        }

    def _earlier(self, name: str) -> list[str]:
        return [other for other in self._meetings[name] if self._wave[other] < self._wave[name]]

    @functools.cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The collision groups: tasks that write a file in common, directly or through others; in their order."""
        group: dict[str, set[str]] = {}
        for name, meets in self._meetings.items():
            mine = group.setdefault(name, {name})
            for other in (other for other, both in meets.items() if both):
                mine |= group.get(other, {other})
            group.update(dict.fromkeys(mine, mine))
        unique = {id(each): each for each in group.values() if len(each) > 1}
        return tuple(tuple(sorted(each, key=self._wave.__getitem__)) for each in unique.values())


def _upwards(path: str) -> list[str]:
    """The path, then every directory above it; that of the project is '.'."""
    return [path, *(str(above) for above in Path(path).parents)] if path != "." else ["."]
