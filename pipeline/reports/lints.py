"""`lint`: every declared linter against its baseline; with --accept, what they find is what is known from now on."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import attrs

from pipeline import lint, linting, process
from pipeline.action import Refusal
from pipeline.host import Attempt, Performer, Slot
from pipeline.linting import Linted
from pipeline.model import Lint
from pipeline.reports.asked import ACCEPT
from pipeline.results import Outcome, write_bytes
from pipeline.session import Session
from pipeline.worktree import GitError


def performer(session: Session) -> Performer:
    """The step of `lint`: its one key are the linters to run, all where there is none, and perhaps --accept."""

    def perform(keys: Sequence[Hashable], slot: Slot) -> Mapping[Hashable, Attempt]:
        (key,) = keys
        words = cast(tuple[str, ...], key)
        names = [word for word in words if not word.startswith("--")]
        chosen = [each for each in session.plan.lints if not names or each.name in names]
        if not session.plan.lints:
            failure = f"{session.plan.path} declares no linter: see docs/lint.md"
            return {key: Attempt(Outcome.BAD_CONFIG, failure=failure)}
        baselines = {each.baseline for each in chosen}
        try:
            session.watch.begin("lint", lambda path: path in baselines)
            try:
                linted = _linted(session, chosen, slot)
                said = [f"{each.text}{_write(session, each, f'--{ACCEPT}' in words)}" for each in linted]
            finally:
                outside = session.watch.end("lint")
        except GitError as error:
            return {key: Attempt(Outcome.UNVERIFIED, failure=f"what it changed cannot be told: {error}")}
        return {key: _attempt(linted, said, outside, f"--{ACCEPT}" in words)}

    return perform


def _linted(session: Session, chosen: Sequence[Lint], slot: Slot) -> list[Linted]:
    """One after another, or side by side where slots are free right now."""

    def run(each: Lint) -> Linted:
        renames = linting.renames_to(session.repository, each.baseline, session.snapshot.tree)
        try:
            return linting.run(each, Path(session.plan.root), renames)
        except (OSError, lint.BadBaseline) as error:  # it could be read when the plan was
            raise Refusal(f"{each.baseline} is no baseline any more: {error}") from None

    with ExitStack() as stack:
        width = 1
        while width < len(chosen) and stack.enter_context(slot.try_extra()):
            width += 1
        return process.side_by_side(run, chosen, width)


def _write(session: Session, linted: Linted, accept: bool) -> str:
    """Write the baseline anew where it is to be, and say so."""
    judged, baseline = linted.judged, linted.lint.baseline
    path = Path(os.path.realpath(Path(session.plan.root) / baseline))  # a link stays one
    if linted.why:
        return f"\n  nothing is accepted, and {baseline} is as it was" if accept else ""
    moved = sum(finding.path != entry.path for finding, entry in judged.known)
    if accept:
        entries = (*judged.kept, *map(lint.as_entry, judged.new))
        said = f"{len(entries)} accepted into {baseline}: {len(judged.new)} more, {len(judged.gone)} gone"
    elif judged.new:  # what has gone may be what is new, edited: it is known again when that is taken back
        hint = f"there is no {baseline} yet; `doit lint --accept` begins one with these"
        return "" if path.exists() else f"\n  {hint}"
    elif judged.gone or moved:
        entries = judged.kept
        said = f"{len(judged.gone)} gone from {baseline}" + (f", {moved} moved with its file" if moved else "")
    else:
        return ""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    changed = write_bytes(path, lint.dump(entries).encode())
    path.chmod(mode)
    return f"\n  {said}; commit it" if changed else f"\n  {baseline} is as it was"


def _attempt(linted: Sequence[Linted], said: Sequence[str], outside: Sequence[str], accepted: bool) -> Attempt:
    fields = {"lints": [each.event for each in linted]}
    done = Attempt(Outcome.OK, output="\n".join(said), fields=fields)
    new = sum(len(each.judged.new) for each in linted)
    unverified = [each.lint.name for each in linted if each.why]
    if outside:
        failure = f"a linter changed files: {', '.join(outside)}"
        return attrs.evolve(done, outcome=Outcome.OUTSIDE_SCOPE, failure=failure)
    if new and not accepted:
        failure = f"{new} new finding{'' if new == 1 else 's'}: see above; mend them, or `doit lint --accept`"
        return attrs.evolve(done, outcome=Outcome.NEW_FINDINGS, failure=failure)
    if unverified:
        return attrs.evolve(done, outcome=Outcome.UNVERIFIED, failure=f"unverified: {', '.join(unverified)}; see above")
    return done
