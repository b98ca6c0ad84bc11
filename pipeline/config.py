"""tasks.yaml → model.Plan, every mistake at once. Reads the document, and asks git which files there are."""

from __future__ import annotations

import contextlib
import graphlib
import json
import os
import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from . import (
    agenttasks,
    document,
    expand,
    filescopes,
    fragments,
    legal,
    lintplan,
    model,
    patterns,
    source,
    spelled,
    wishes,
)
from .checkout import Checkout, NoFiles, current_branch, folds_case, list_files
from .kept import Kept
from .kinds import OURS
from .source import Mistake, PlanErrors, Problem, nearest, quoted

__all__ = ["OURS", "PlanErrors", "Problem", "load", "schema"]


EMPTY = b"version: 1\n"  # a plan that somebody begins with
LARGE = 1 << 16  # bytes of a tasks.yaml that take longer to parse than what came of it takes to read
_NOWHERE = yaml.ScalarNode("", "", yaml.Mark("", 0, 0, 0, None, 0))


def load(path: Path, may_be_empty: bool = False) -> model.Plan:
    """The plan that the tasks.yaml at `path` describes. Raises PlanErrors with all that is wrong in it.

    may_be_empty: for what is about to write one.
    """
    name = _name(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        if may_be_empty:
            return of_text(path, EMPTY, may_be_empty)
        what = "no such file; write one, beginning with `version: 1` and `scopes:`"
        raise PlanErrors([Problem(name, 1, "", what)]) from None
    except OSError as error:
        raise PlanErrors([Problem(name, 1, "", f"cannot be read: {error.strerror}")]) from None
    if len(raw) >= LARGE:
        kept = Kept(path.parent / "cache" / "parsed.json", raw)
        data = kept.find()
        if data is None:
            data = kept.made(lambda: source.plain(_name(path), raw))
        if data is not None:
            with contextlib.suppress(PlanErrors):  # said with their lines, below
                return _of(path, source.Source(_name(path), data, (), frozenset(), _NOWHERE), may_be_empty)
        text = source.parse(_name(path), raw)
        plan = _of(path, text, may_be_empty)
        kept.keep(text.data)
        return plan
    return of_text(path, raw, may_be_empty)


def of_text(path: Path, raw: bytes, may_be_empty: bool = False) -> model.Plan:
    """The plan that the tasks.yaml at `path` would describe if it held `raw`. Raises PlanErrors."""
    return _of(path, source.parse(_name(path), raw), may_be_empty)


def _of(path: Path, text: source.Source, may_be_empty: bool) -> model.Plan:
    reading = document.read(text.data)
    mistakes = [*reading.mistakes]
    plan = None
    if reading.document is not None:
        plan, more = _plan(path.absolute(), reading.document, _named(text.data))
        mistakes += reading.originals(more)
    # What YAML couldn't make sense of has one mistake, not also those that follow from it.
    mistakes = [m for m in mistakes if not any(m.where[:depth] in text.garbled for depth in range(len(m.where) + 1))]
    mistakes += text.mistakes
    empty = plan is not None and not plan.scopes and ("scopes" in text.data or not (plan.tasks or plan.lints))
    if empty and not mistakes and not may_be_empty:
        # It would look like one that is done.
        mistakes = [Mistake(("scopes",), "nothing is to be mutated", "add `- {mutate: ..., tests: ..., write: ...}`")]
    if mistakes or plan is None:
        raise PlanErrors(map(text.problem, mistakes))
    return plan


def _name(path: Path) -> str:
    """What messages call the file."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _named(data: Mapping[str, object]) -> tuple[set[str], set[str]]:
    """The names of all tasks and pools, those of broken ones too: what refers to one of them isn't wrong."""
    tasks, pools = data.get("tasks"), data.get("pools")
    names = [item.get("name") for item in tasks if isinstance(item, dict)] if isinstance(tasks, list) else []
    return {name for name in names if isinstance(name, str)}, set(pools if isinstance(pools, dict) else ())


def _plan(
    path: Path, doc: document.Document, named: tuple[set[str], set[str]]
) -> tuple[model.Plan | None, list[Mistake]]:
    declared, pools = named
    mistakes = [
        *_needs_mistakes(doc, declared),
        *_task_mistakes(doc, {model.VALIDATION, model.GENERATION, *pools}),
        *_generator_mistakes(doc.generate.with_),
        *_branch_mistakes(doc.land.branch),
        *legal.mistakes(doc),
        *_gate_mistakes(doc),
    ]
    root = Path(os.path.realpath(path.parent / doc.project))  # resolve() raises for a link to itself
    if not os.path.isdir(root):  # noqa: PTH112
        what = f"no directory {quoted(doc.project)} beside this file"
        return None, [*mistakes, Mistake(("project",), what, "name the directory that holds the code under test")]
    try:
        files = list_files(root)
    except NoFiles as error:
        return None, [*mistakes, Mistake(("project",), str(error))]
    if "{branch}" not in doc.land.branch and doc.land.branch == current_branch(root):
        what = f"{quoted(doc.land.branch)} is checked out, and what is checked out is never written"
        remedy = "mutate/{branch} will do; or switch to the branch that the tests are for"
        mistakes.append(Mistake(("land", "branch"), what, remedy))
    checkout = Checkout(root, files, folds=folds_case(root))
    checkout = attrs.evolve(checkout, made=spelled.made(doc.tasks, checkout))
    scopes, wrong_scopes = expand.scopes(doc.scopes, checkout)
    tasks, wrong_tasks = spelled.tasks(doc.tasks, checkout)
    tasks, wrong_agents = agenttasks.tasks(doc.tasks, tasks, checkout)
    lints, wrong_lints = lintplan.lints(doc.lint, checkout)
    gate = None
    if doc.gate:
        said = {**attrs.asdict(doc.gate, recurse=False), "owns": spelled.owned(doc.gate.owns)}
        gate = model.GateConfig(**said)
    tasks = agenttasks.gated(tasks, gate)
    config, wrong_config = expand.config_file(doc.engine.config, checkout)
    compose = {checkout.spelled(shared): by for shared, by in doc.compose.items()}
    mistakes += [*wrong_scopes, *wrong_tasks, *wrong_agents, *wrong_config, *wrong_lints]
    mistakes += _shared_writes(scopes, tasks)
    mistakes += [*_order_mistakes(tasks), *_compose_mistakes(doc.compose, tasks, declared, checkout)]
    plan = model.Plan(
        path=str(path),
        root=str(root),
        store=None if doc.store is None else str((path.parent / doc.store).absolute()),
        pools={model.GENERATION: 1, **doc.pools, **dict.fromkeys(_pools_of_one(doc), 1)},
        engine=model.EngineConfig(**{**attrs.asdict(doc.engine, recurse=False), "config": config}),
        generate=model.GenerateConfig(
            tuple(
                model.GeneratorConfig(**{**attrs.asdict(g, recurse=False), "name": g.name or g.use})
                for g in doc.generate.with_
            ),
            doc.generate.rounds,
            model.Budget(**attrs.asdict(doc.generate.budget)),
        ),
        land=model.LandConfig(**attrs.asdict(doc.land)),
        scopes=tuple(each.scope for each in scopes),
        tasks=tasks,
        models=legal.models(doc.models),
        lints=lints,
        compose=compose,
        gate=gate,
        since=doc.since or "",
    )
    if not mistakes:
        mistakes += legal.choice_mistakes(plan)
    return plan, mistakes


def _pools_of_one(doc: document.Document) -> list[str]:
    looked_at = any(task.look for task in doc.tasks)
    return [*([model.GATE] if doc.gate else []), *([model.LOOK] if looked_at else [])]


def _needs_mistakes(doc: document.Document, declared: set[str]) -> Iterator[Mistake]:
    """Names of tasks that aren't there, and the shortest cycle among those that are."""
    for position, name in enumerate(doc.engine.needs):
        if name not in declared:
            yield Mistake(("engine", "needs", position), f"no task is called {quoted(name)}", nearest(name, declared))
    for index, task in enumerate(doc.tasks):
        for position, name in enumerate(task.needs):
            if name not in declared:
                where = ("tasks", index, "needs", position)
                yield Mistake(where, f"no task is called {quoted(name)}", nearest(name, declared))
    needs: dict[str, tuple[str, ...]] = {}
    for task in doc.tasks:  # of which two may have one name
        needs[task.name] = needs.get(task.name, ()) + task.needs
    cycle = shortest_cycle(needs)
    if cycle:
        index = next(index for index, task in enumerate(doc.tasks) if task.name == cycle[0])
        what = "no task of a cycle can ever start: " + " → ".join([*cycle, cycle[0]])
        yield Mistake(("tasks", index, "needs"), what, "take one of these `needs` out")


def _order_mistakes(tasks: Sequence[model.Task]) -> Iterator[Mistake]:
    """A cycle that no one wrote: a task waits for the one that writes what it reads."""
    if shortest_cycle({task.name: task.needs for task in tasks}):
        return  # said already
    if cycle := shortest_cycle(filescopes.waits(tasks)):
        index = next(index for index, task in enumerate(tasks) if task.name == cycle[0])
        what = "each waits for the next, which it needs or which alone writes what it reads: "
        yield Mistake(("tasks", index, "reads"), what + " → ".join([*cycle, cycle[0]]), "take one of the two out")


def _compose_mistakes(
    compose: Mapping[str, str], tasks: Sequence[model.Task], declared: set[str], checkout: Checkout
) -> Iterator[Mistake]:
    writes = {task.name: task.writes for task in tasks}
    for text, by in compose.items():
        where, path = ("compose", text), checkout.spelled(text)
        if path == ".." or path.startswith("../"):
            yield Mistake(where, f"{quoted(text)} lies outside the project", "name a file of the project")
        elif by == fragments.INCLUDE:
            continue
        elif by not in declared:
            yield Mistake(where, f"no task is called {quoted(by)}", nearest(by, [*declared, fragments.INCLUDE]))
        elif by in writes and patterns.escape(path) not in writes[by]:
            what = f"{quoted(by)} does not write {quoted(path)}"
            yield Mistake(where, what, "name the task that makes it of its fragments")


def shortest_cycle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """The tasks of a shortest cycle, each needing the next; [] if there is none. Begins with the first one declared."""
    with contextlib.suppress(graphlib.CycleError):
        graphlib.TopologicalSorter(needs).prepare()
        return []  # in the time of one walk; the search below takes one for each task
    shortest: list[str] = []
    for start in needs:
        came_from: dict[str, str] = {}
        queue = deque([start])
        while queue and start not in came_from:
            task = queue.popleft()
            for need in needs.get(task, ()):
                if need not in came_from:
                    came_from[need] = task
                    queue.append(need)
        if start in came_from:
            cycle = [start]
            while (before := came_from[cycle[-1]]) != start:
                cycle.append(before)
            if not shortest or len(cycle) < len(shortest):
                shortest = [start, *cycle[:0:-1]]
    return shortest


def _task_mistakes(doc: document.Document, pools: set[str]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, task in enumerate(doc.tasks):
        if first.setdefault(task.name, index) != index:
            what = f"two tasks are called {quoted(task.name)}"
            yield Mistake(("tasks", index, "name"), what, "a name is given once", ("tasks", first[task.name]))
        if task.owns and (said := spelled.unresumed(task.owns)):
            yield Mistake(("tasks", index, "owns"), *said)
        if task.pool not in pools:
            yield Mistake(("tasks", index, "pool"), f"no pool is called {quoted(task.pool)}", nearest(task.pool, pools))


def _generator_mistakes(generators: Sequence[wishes.GeneratorDocument]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, generator in enumerate(generators):
        where = ("generate", "with", index)
        name = generator.name or generator.use
        if first.setdefault(name, index) != index:
            what = f"two generators are called {quoted(name)}"
            yield Mistake((*where, "name"), what, "give each a `name`", ("generate", "with", first[name]))
        if generator.use == "command" and not generator.run:
            yield Mistake((*where, "run"), "`run` is missing", "`use: command` runs the program that `run` names")
        if generator.use != "command" and generator.run:
            yield Mistake(
                (*where, "run"), f"{generator.use} runs no program of yours", "`run` goes with `use: command`"
            )
        for key in ("model", "effort"):
            if generator.use == "differential" and getattr(generator, key):
                yield Mistake((*where, key), "differential asks no model", f"leave `{key}` out")


def _gate_mistakes(doc: document.Document) -> Iterator[Mistake]:
    if doc.gate is None:
        return
    if doc.gate.owns and (said := spelled.unresumed(doc.gate.owns)):
        yield Mistake(("gate", "owns"), *said)
    for index, task in enumerate(doc.tasks):
        if doc.gate.each and agenttasks.EACH in task.check:
            where = ("tasks", index, "check", agenttasks.EACH)
            yield Mistake(where, "that is what `gate.each` is called in every check", "choose another name")


def _branch_mistakes(branch: str) -> Iterator[Mistake]:
    where = ("land", "branch")
    unknown = [name for name in re.findall(r"\{(.*?)\}", branch) if name != "branch"]
    filled = branch.replace("{branch}", "b")
    if branch == "{branch}":
        yield Mistake(
            where, "that is the branch that is checked out, which is never written", "mutate/{branch} will do"
        )
    elif unknown:
        yield Mistake(where, f"no placeholder {{{unknown[0]}}}", "{branch} is the only one")
    elif not _is_ref_name(filled):
        yield Mistake(where, f"git takes no branch of the name {quoted(branch)}", "mutate/{branch} will do")


def _is_ref_name(name: str) -> bool:
    """git check-ref-format's rules for a branch, without a process."""
    parts = name.split("/")
    return (
        not re.search(r"[\x00-\x20\x7f~^:?*\[\\{}]|\.\.|@\{", name)
        and all(part and not part.startswith(".") and not part.endswith(".lock") for part in parts)
        and not name.startswith("-")
        and not name.endswith(".")
        and name not in ("@", "HEAD")
    )


def _shared_writes(scopes: Sequence[expand.Expanded], tasks: Sequence[model.Task]) -> Iterator[Mistake]:
    written = {written: index for index, task in enumerate(tasks) for written in task.writes}
    for each in scopes:
        path = patterns.escape(each.scope.write)
        if path in written:
            what = f"a scope and a task write {quoted(each.scope.write)}"
            also = ("tasks", written[path], "writes")
            yield Mistake(("scopes", each.index, "write"), what, "give each a file of its own", also)
    changes = {task.name: index for index, task in enumerate(tasks) if task.agent}
    for each in scopes:
        if each.scope.name in changes:  # land:X would be the task of both
            what = f"a scope and an agent's task are called {quoted(each.scope.name)}"
            yield Mistake(("tasks", changes[each.scope.name], "name"), what, "choose another name for the task")


def schema() -> dict[str, Any]:
    """The JSON Schema of tasks.yaml."""
    from . import schema as schemas

    return schemas.document("tasks.yaml", document.Document)


if __name__ == "__main__":
    json.dump(schema(), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
