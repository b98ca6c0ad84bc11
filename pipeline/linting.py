"""Runs a linter, and holds what it says against its baseline. Writes nothing: that is for `doit lint` alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import lint, process
from pipeline.findings import Finding, Unreadable, read
from pipeline.lint import Entry, Judged
from pipeline.model import Lint
from pipeline.results import Outcome
from pipeline.worktree import GitError, Repository, git

Renames = Callable[[Collection[str]], Mapping[str, str]]  # files that are gone -> what those of them are called now
SHOWN = 50  # new findings


@attrs.frozen
class Linted:
    """What came of one linter: how it ended, what it said, and what that comes to."""

    lint: Lint
    exit_code: int
    found: tuple[Finding, ...] = ()
    judged: Judged = attrs.field(factory=lambda: Judged((), (), ()))
    why: str = ""  # why nothing is verified; "" where it is
    tail: str = ""  # what it said last, where nothing is verified

    @property
    def outcome(self) -> Outcome:
        return Outcome.UNVERIFIED if self.why else Outcome.NEW_FINDINGS if self.judged.new else Outcome.OK

    @property
    def line(self) -> str:
        """Two facts, and what they come to."""
        if self.why:
            return f"{self.lint.name}: unverified: {self.why}"
        new, known, gone = len(self.judged.new), len(self.judged.known), len(self.judged.gone)
        counts = f"{known} known, {new} new" + (f", {gone} gone" if gone else "")
        verdict = "green" if not new else "not green"
        if self.exit_code and not new:
            verdict += ", for no finding is new: the exit code does not count"
        findings = f"{len(self.found)} finding{'' if len(self.found) == 1 else 's'}"
        return f"{self.lint.name}: exit code {self.exit_code}; {findings} ({counts}): {verdict}"

    @property
    def text(self) -> str:
        """The line, and below it each new finding, or what the tool said last."""
        new = self.judged.new
        more = [f"  and {len(new) - SHOWN} more"] if len(new) > SHOWN else []
        said = [f"  {line}" for line in self.tail.splitlines()]
        return "\n".join([self.line, *(f"  {finding}" for finding in new[:SHOWN]), *more, *said])

    @property
    def event(self) -> dict[str, object]:
        """What the ledger says of it."""
        counts = {name: len(getattr(self.judged, name)) for name in ("known", "new", "gone")}
        ended = {"outcome": str(self.outcome), "exit_code": self.exit_code, "why": self.why}
        return {"lint": self.lint.name, **ended, **counts}


def run(declared: Lint, root: Path, renames: Renames, env: Mapping[str, str] | None = None) -> Linted:
    """Run a linter in `root`, whose baseline is there. Raises lint.BadBaseline and OSError where that is unreadable."""
    baseline = load(root / declared.baseline)
    done = process.run(
        ["sh", "-c", declared.run], cwd=root, env=process.environment(env), timeout=declared.timeout
    )  # fmt: skip
    out, err = done.text, done.err.decode(errors="replace")
    try:
        found, why = read(declared, out, err, str(root), functools.cache(lambda path: _lines(root, path))), ""
    except Unreadable as error:
        found, why = (), f"exit code {done.exit_code}, and what it said is no SARIF: {error}"
    why = lint.unverified(declared, done, len(found)) or why
    if why:
        return Linted(declared, done.exit_code, found, why=why, tail=done.tail(10))
    judged = lint.judge(found, baseline)
    lost = {entry.path for entry in judged.gone if entry.path and not (root / entry.path).exists()}
    if judged.new and lost and (renamed := renames(lost)):
        judged = lint.judge(found, baseline, renamed)
    return Linted(declared, done.exit_code, found, judged)


def load(path: Path) -> tuple[Entry, ...]:
    """What is known; nothing where there is no baseline yet. Raises lint.BadBaseline and OSError."""
    try:
        return lint.load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()


def _lines(root: Path, path: str) -> Sequence[str] | None:
    try:
        return (root / path).read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return None


def renames_to(repository: Repository, baseline: str, tree: str) -> Renames:
    """By git: from when the baseline was last committed to a tree of the project's repository."""
    return lambda lost: _renamed(Path(repository.project), baseline, lost, tree)


def renames_in(place: Path, baseline: str) -> Renames:
    """By git: from when the baseline was last committed to the files of a worktree whose project is at `place`."""
    return lambda lost: _renamed(place, baseline, lost)


def _renamed(place: Path, baseline: str, lost: Collection[str], *to: str) -> Mapping[str, str]:
    try:
        since = git(place, "log", "-1", "--format=%H", "HEAD", "--", f":(literal){baseline}", ok=(0, 128)).text.strip()
        said = git(
            place, "diff", "-z", "--name-status", "--find-renames", "--diff-filter=R", "--relative",
            since or "HEAD", *to,
        ).out.decode(errors="surrogateescape")  # fmt: skip
    except GitError:
        return {}
    fields = iter(said.split("\0"))
    pairs = [(next(fields), next(fields)) for status in fields if status.startswith("R")]
    return {before: now for before, now in pairs if before in lost}
