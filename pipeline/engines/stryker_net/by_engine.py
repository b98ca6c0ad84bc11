"""Where no picture of the mutated assembly could be taken, Stryker itself is asked which tests kill which mutants: one
run for each text of a test file. It says that a test failed, never how."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import limits
from pipeline.engines import Measured, TestResult, TestRun
from pipeline.engines.stryker_net import running, stryker
from pipeline.engines.stryker_net.builds import Builds
from pipeline.engines.stryker_net.projects import Pair, Projects
from pipeline.model import EngineConfig
from pipeline.results import Outcome

NAME = "engine.json"  # lies where an assembly would: what to ask for


def request(pair: Pair, files: Sequence[str]) -> bytes:
    return json.dumps({"source": pair.source.path, "tests": pair.tests.path, "files": list(files)}).encode()


@attrs.define
class ByEngine:
    config: EngineConfig
    builds: Builds
    _last: dict[Path, tuple[object, stryker.Run | Measured]] = attrs.field(factory=dict)  # of a worktree
    _lock: threading.RLock = attrs.field(factory=threading.RLock)

    def test(
        self, root: Path, asked: Path, known: Projects, inputs: Sequence[str], mutant: str, files: Collection[str],
        classes: Collection[str],
    ) -> TestRun:  # fmt: skip
        """The tests of some files against one mutant, as a run for all mutants says. Raises EngineError."""
        words = json.loads(asked.read_bytes())
        pair = Pair(known.by_path[words["source"]], known.by_path[words["tests"]])
        question = stryker.Question(
            pair, words["files"], running.filter_of(classes), True, limits.cores(), asked.with_name("engine.log")
        )
        with self._lock:
            state = self.builds.state(root, inputs), question
            found = self._last[root][1] if self._last.get(root, (None,))[0] == state else None
            if found is None:
                found = stryker.run(self.config, self.builds, root, question)
                self._last[root] = state, found
        if isinstance(found, Measured):
            return TestRun(found.outcome, found.detail)
        return told(found, mutant, files)


def told(run: stryker.Run, mutant: str, files: Collection[str]) -> TestRun:
    """What a run says of one mutant."""
    statuses: Mapping[str, str] = {
        str(m["id"]): m["status"] for entry in run.report.content["files"].values() for m in entry["mutants"]
    }
    if statuses.get(mutant) == "Timeout":
        return TestRun(Outcome.TIME_LIMIT, "Stryker says that a test did not end")
    killers = run.report.killers.get(mutant, frozenset()) if statuses.get(mutant) == "Killed" else frozenset()
    failed = {(run.report.tests[i].file, run.report.tests[i].name) for i in killers if i in run.report.tests}
    tests = sorted({(t.file, t.name) for t in run.report.tests.values() if t.file in files})
    results = (
        TestResult(file, name.rpartition(".")[2], *(("failed", "engine") if (file, name) in failed else ("passed",)))
        for file, name in tests
    )
    return TestRun(Outcome.OK, tests=tuple(results))
