"""`models` of tasks.yaml → model.ModelsConfig; and whether every model and effort that a plan names may be named there.

Which models a program knows changes by the month and is not for us to say. So a plan that declares names of its own may
use these and no other, and a slip of the pen is told before anything is paid for; one that declares none hands its
names on as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import model
from .choice import Choice, of_scope, of_task
from .document import Document
from .source import Mistake, Where, listed, quoted
from .wishes import ModelsDocument, WishDocument


def models(doc: ModelsDocument) -> model.ModelsConfig:
    """What the plan says of models, as it is. What is wrong with it is told by `mistakes`."""
    lanes = {lane: _wish(said) for lane in model.LANES if (said := getattr(doc, lane)) is not None}
    return model.ModelsConfig(
        names={name: _wish(wish) for name, wish in doc.names.items()},
        ladder=doc.ladder or (),
        by_confidence={sure: _wish(wish) for sure, wish in doc.by_confidence.items()},
        lanes=lanes,
        tries=doc.tries,
        backoff=doc.backoff,
    )


def mistakes(doc: Document) -> Iterator[Mistake]:
    """Names of models that stand for none, a ladder that cannot be climbed down, efforts that no program has."""
    declared = models(doc.models).declared
    yield from _ladder_mistakes(doc.models)
    for name, wish in doc.models.names.items():
        if name == model.INHERIT:
            what = f"{model.INHERIT} is what names no model"
            yield Mistake(("models", "names", name), what, "choose another name")
        yield from wish_mistakes(("models", "names", name), (), WishDocument(None, wish.effort))
    for lane in model.LANES:
        if (wished := getattr(doc.models, lane)) is not None:
            yield from wish_mistakes(("models", lane), declared, wished)
    for sure, wish in doc.models.by_confidence.items():
        where = ("models", "by_confidence", sure)
        if not declared and wish.model not in (None, model.INHERIT):
            remedy = "list it under `ladder` or `names`"
            yield Mistake(where, f"no model is called {quoted(str(wish.model))}", remedy)
        yield from wish_mistakes(where, declared, wish)
    for index, generator in enumerate(doc.generate.with_):
        efforts = model.EFFORTS.get(generator.use)
        wish = WishDocument(generator.model, generator.effort)
        yield from wish_mistakes(("generate", "with", index), declared, wish, efforts)
    for index, task in enumerate(doc.tasks):
        if task.agent is not None:
            wish = WishDocument(task.agent.model, task.agent.effort)
            yield from wish_mistakes(("tasks", index, "agent"), declared, wish, model.EFFORTS.get(task.agent.use))
    for index, scope in enumerate(doc.scopes):
        yield from wish_mistakes(("scopes", index), declared, WishDocument(scope.model, scope.effort))


def wish_mistakes(
    where: Where, declared: Sequence[str], wish: WishDocument, efforts: Sequence[str] | None = None
) -> Iterator[Mistake]:
    """What is wrong with what stands at `where`. declared: the plan's own names of models, () if it has none.
    efforts: those that its program takes; None: any program's will do."""
    legal = (*declared, model.INHERIT)
    if wish.model is not None and declared and wish.model not in legal:
        remedy = f"{_one_of(legal)}; a program's own name goes under `models: names`"
        yield Mistake((*where, "model"), f"no model is called {quoted(wish.model)}", remedy)
    known = _every_effort() if efforts is None else efforts
    if wish.effort is not None and wish.effort not in (*known, model.INHERIT):
        what = f"no effort is called {quoted(wish.effort)}"
        yield Mistake((*where, "effort"), what, _one_of((*known, model.INHERIT)))


def choice_mistakes(plan: model.Plan) -> Iterator[Mistake]:
    """Efforts that a scope's generator would be told and does not know, whoever said so."""
    told: dict[Mistake, None] = {}
    for scope in plan.scopes:
        for index, generator in enumerate(plan.generate.generators):
            if not generator.embedded:
                choice = of_scope(plan.models, scope, generator)
                told.update(dict.fromkeys(effort_mistakes(("generate", "with", index), generator.use, choice)))
    for index, task in enumerate(plan.tasks):
        if task.agent is not None:
            choices = [of_task(plan.models, lane, task) for lane in ("draft", "repair")]
            where = ("tasks", index, "agent")
            told.update(dict.fromkeys(m for each in choices for m in effort_mistakes(where, task.agent.use, each)))
    yield from told


def effort_mistakes(where: Where, use: str, choice: Choice) -> Iterator[Mistake]:
    """What a program would be told and does not know, in a choice that it is to work by."""
    efforts = model.EFFORTS.get(use)
    for each in (choice, choice.below):
        if efforts is not None and each is not None and each.effort not in (None, *efforts):
            what = f"{use} knows no effort {quoted(str(each.effort))} ({each.why})"
            yield Mistake(where, what, _one_of((*efforts, model.INHERIT)))


def _ladder_mistakes(doc: ModelsDocument) -> Iterator[Mistake]:
    if doc.ladder is None:
        return
    where = ("models", "ladder")
    if not doc.ladder:
        yield Mistake(where, "it names no model", "list them, the strongest first; or leave it out")
    for index, name in enumerate(doc.ladder):
        known = doc.names.get(name)
        if name == model.INHERIT:
            yield Mistake((*where, index), f"{name} is no model", "name one")
        elif doc.names and known is None:
            yield Mistake((*where, index), f"no model is called {quoted(name)}", _one_of(tuple(doc.names)))
        elif known is not None and known.model in (None, model.INHERIT):
            what = f"{quoted(name)} names no model"
            yield Mistake((*where, index), what, f"say which under `names: {name}`", ("models", "names", name))
        elif name in doc.ladder[:index]:
            yield Mistake((*where, index), f"{quoted(name)} stands on it twice", "a step down leads to another model")


def _one_of(legal: Sequence[str]) -> str:
    return f"say one of {listed(legal, 20)}"


def _every_effort() -> tuple[str, ...]:
    return tuple(dict.fromkeys(effort for efforts in model.EFFORTS.values() for effort in efforts))


def _wish(doc: WishDocument) -> model.Wish:
    return model.Wish(doc.model, doc.effort)
