"""One Stryker process: what it is asked, and what it left, where that can be believed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from pipeline import account, process, scratch
from pipeline.engines import Measured
from pipeline.engines.stryker_net import dotnet, picture, settings
from pipeline.engines.stryker_net.builds import Builds
from pipeline.engines.stryker_net.outcomes import failure
from pipeline.engines.stryker_net.projects import Pair
from pipeline.engines.stryker_net.report import FEW, Report
from pipeline.model import EngineConfig
from pipeline.mutants import ReportError
from pipeline.results import Outcome

Halt = Callable[[], bool]


@attrs.frozen
class Run:
    """What one Stryker process left."""

    report: Report
    mutated: bytes  # the assembly with all mutants in it; b"" where no picture of it could be taken
    peak_bytes: int | None
    killers: bool = False  # every test that kills a mutant is named, not only the first


@attrs.frozen
class Question:
    """files: those to mutate. only: a filter for the tests, "" for all. killers: name every test that kills a mutant,
    not only the first."""

    pair: Pair
    files: Sequence[str]
    only: str
    killers: bool
    workers: int
    log: Path


def command(config: EngineConfig) -> tuple[str, ...]:
    return config.command or (dotnet.find(), "stryker")


def run(config: EngineConfig, builds: Builds, root: Path, asked: Question, halt: Halt | None = None) -> Run | Measured:
    """Once, in the test project's folder, which has been built. halt: asked at times; it is ended once that says so.
    Raises EngineError."""
    pair, log = asked.pair, asked.log
    theirs = settings.find(root, pair.tests.folder, config.config)
    folder = root / pair.tests.folder
    with scratch.folder() as place:
        for name in ("tmp", "out"):
            (place / name).mkdir()
        chosen = dict(theirs.theirs)
        if filter_ := settings.both(asked.only, str(chosen.get("test-case-filter") or "")):
            chosen["test-case-filter"] = filter_
        if "targetframeworks" in pair.tests.properties:  # of several that one whose output is known
            chosen.setdefault("target-framework", builds.folder(root, pair.tests).name)
        (place / "stryker-config.json").write_text(json.dumps({"stryker-config": chosen}))
        mutated = [os.path.relpath(f, pair.source.folder) for f in asked.files]
        words = [
            *command(config), "-f", os.path.relpath(place / "stryker-config.json", folder),
            "-p", Path(pair.source.path).name, "--skip-version-check", "-r", "json",
            "-O", str(place / "out"), "-c", str(asked.workers), "--break-on-initial-test-failure", "--break-at", "0",
            *(("-t", "mtp") if pair.tests.runner == "mtp" else ()), *(("--disable-bail",) if asked.killers else ()),
            *(word for path in mutated for word in ("-m", _literal(path))),
        ]  # fmt: skip
        assembly = builds.folder(root, pair.tests) / f"{pair.source.assembly}.dll"
        picture.put_right(assembly)
        # Its analysis cleans the projects, by the list in this file, and then they are compiled a second time. A name
        # that no build has written to: nothing is on that list.
        env = dotnet.environment(place / "tmp", {"CleanFile": f"{place.name}.txt"})
        with picture.taken(assembly) as taken:
            account.engine_started()
            finished = process.run(
                words, cwd=folder, env=env, timeout=config.time_limit, measure_memory=True, halt=halt
            )
        builds.forget(root)  # believed again once it is built: a run that was ended leaves the mutated one
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            file.write(f"{theirs.note}\n".encode() + finished.out + finished.err)
        try:
            content = json.loads((place / "out/reports/mutation-report.json").read_text(encoding="utf-8-sig"))
            report = Report.of(content, str(root.resolve()))
        except (OSError, ValueError, ReportError):
            return failure(finished, log)
        return _believed(report, finished, taken, asked)


def _believed(report: Report, finished: process.Finished, taken: picture.Picture, asked: Question) -> Run | Measured:
    """A report that this run wrote, where nothing says that it cannot be true."""
    log = asked.log
    if finished.exit_code != 0:
        return failure(finished, log)
    if taken.disturbed:
        detail = f"something else built or tested in the same folder: such a report is wrong (log: {log})"
        return Measured(Outcome.HOLLOW_REPORT, detail)
    if b"coverage capture failed" in (finished.out + finished.err).lower():
        detail = f"Stryker could not tell which tests run a mutant: is the test runner the right one? (log: {log})"
        return Measured(Outcome.COVERAGE_FAILED, detail)
    if report.tested >= FEW and not report.killed:
        detail = f"{report.tested} mutants were tested and none was killed: the tests do not see them (log: {log})"
        return Measured(Outcome.NO_KILLS, detail)
    return Run(report, taken.content or b"", finished.peak_bytes, asked.killers)


def _literal(path: str) -> str:
    """A path as a glob that matches it alone."""
    return re.sub(r"([\[*?])", r"[\1]", path)
