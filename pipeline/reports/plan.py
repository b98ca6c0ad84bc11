"""What a run would do, before it does: the scopes of the plan, and what each has to go through."""

from __future__ import annotations

from pipeline.session import Session


def text(session: Session, scope: str | None) -> str:
    """The plan as a table, or one scope of it with all its files."""
    plan = session.plan
    if scope is not None:
        return _one(session, scope)
    width = max([len(s.name) for s in plan.scopes], default=0)
    lines = [
        f"{s.name.ljust(width)}  {_count(len(s.mutate), 'file')}, {_tests(s.tests)} → {s.write}" for s in plan.scopes
    ]
    rounds = [plan.generate.of_round(r)[0].name for r in range(1, plan.generate.last_round + 1)]
    embedded = [g.name for g in plan.generate.generators if g.embedded]
    asked = f" ({', '.join(rounds)})" if rounds else ""
    search = ", ".join(embedded) or "tests proved earlier only"
    lines += [
        "",
        f"{_count(len(plan.scopes), 'scope')}, each: baseline, search ({search}), "
        f"{_count(len(rounds), 'round')}{asked}, land on {plan.land.branch}, confirm",
        f"declared tasks: {', '.join(t.name for t in plan.tasks) or 'none'}",
    ]
    return "\n".join(lines)


def _one(session: Session, name: str) -> str:
    scope = session.scopes.get(name)
    if scope is None:
        return f"no scope is called {name!r}; there are: {', '.join(session.scopes)}"
    parts = {
        "mutates": scope.mutate,
        "tests": scope.tests or ("the whole suite",),
        "reads": scope.reads,
        "writes": (scope.write,),
    }
    return "\n".join(f"{key}: {' '.join(paths)}" for key, paths in parts.items() if paths)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _tests(tests: tuple[str, ...] | None) -> str:
    return "the whole suite" if tests is None else _count(len(tests), "test file")
