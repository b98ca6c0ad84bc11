"""A plan of what has changed alone: the lines that differ from what a ref held, and only the scopes that mutate any.

Its scopes have names, results and a landing branch of their own (`src/a.js@main`, `mutate/main-since`): what is known
of the whole, and what has landed of it, stays as it is.
"""

from __future__ import annotations

import re

import attrs

from pipeline.model import Plan
from pipeline.worktree import Repository

_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_ENDLESS = 10**9  # no file has a line of that number
_NAME = re.compile(r"[^\s:=*?\x00-\x1f]+")


class NoSuchRef(Exception):
    """Worded for people."""


def narrowed(plan: Plan, ref: str, repository: Repository) -> Plan:
    """The plan for the lines changed since `ref`: between the commit where HEAD's history left that of `ref`, and the
    checkout as it is on disk. Raises NoSuchRef."""
    base = _base(repository, ref)
    changed = _changed(repository, base)
    scopes = []
    for scope in plan.scopes:
        lines = tuple(line for file in scope.mutate if file in changed for line in _lines(repository, base, file))
        if lines:
            files = tuple(file for file in scope.mutate if any(file == each for each, _, _ in lines))
            scopes.append(attrs.evolve(scope, name=f"{scope.name}@{ref}", mutate=files, lines=lines))
    land = attrs.evolve(plan.land, branch=f"{plan.land.branch}-since")
    return attrs.evolve(plan, scopes=tuple(scopes), land=land, since=ref)


def _base(repository: Repository, ref: str) -> str:
    commit = repository.rev(ref) if _NAME.fullmatch(ref) and not ref.startswith("-") else None
    if commit is None:
        raise NoSuchRef(f"since={ref}: no commit of that name here; `git fetch` what it is, or name another")
    found = repository.git("merge-base", commit, "HEAD", ok=(0, 1, 128))
    if found.exit_code == 0:
        return found.text.strip()
    # Of histories that are cut off nobody knows what both share: all that the ref has changed would be taken, too.
    if repository.git("rev-parse", "--is-shallow-repository").text.strip() == "true":
        raise NoSuchRef(
            f"since={ref}: this clone is shallow, and where HEAD's history left that of {ref} is not in it; "
            "`git fetch --unshallow`, or fetch more of it (a CI's checkout: the whole depth)"
        )
    return commit  # they have nothing in common


def _changed(repository: Repository, base: str) -> frozenset[str]:
    """Project files whose text is not what it was at `base`; those that git does not know yet are among them."""
    where = ("--", ".")
    diff = repository.git(
        "diff", "--name-only", "-z", "--no-renames", "--relative", base, *where, cwd=repository.project
    )
    new = repository.git("ls-files", "--others", "--exclude-standard", "-z", *where, cwd=repository.project)
    names = (diff.out + new.out).decode(errors="surrogateescape").split("\0")
    return frozenset(name for name in names if name)


def _lines(repository: Repository, base: str, file: str) -> list[tuple[str, int, int]]:
    """(file, first, last): stretches of lines that are new or changed; all of it where the file is new."""
    if repository.read(base, file) is None:
        return [(file, 1, _ENDLESS)]
    # Said plainly, `[id].js` would bring the hunks of `i.js` as well, and lines that nobody changed would be measured.
    hunks = repository.git(
        "diff", "-U0", "--inter-hunk-context=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
        "--text", base, "--", f":(literal){file}", cwd=repository.project,
    )  # fmt: skip
    found = []
    for first, count in _HUNK.findall(hunks.out):
        many = int(count) if count else 1
        if many:  # else lines were only taken out
            found.append((file, int(first), int(first) + many - 1))
    return found
