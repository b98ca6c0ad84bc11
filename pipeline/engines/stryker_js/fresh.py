"""One fresh process that runs test files: what it is asked, what it may do, what it answered."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs

from pipeline import process
from pipeline import sandbox as sandboxes
from pipeline.engines import TestResult, TestRun
from pipeline.engines.stryker_js.runners import Runner
from pipeline.results import Outcome
from pipeline.sandbox import Sandbox

PROGRAM = Path(__file__).parent / "run_tests.mjs"
MOST_PRINTED = 16 << 20  # bytes that the tests of one process may print
_OUT_OF_MEMORY = re.compile(rb"heap out of memory|Array buffer allocation failed|bad_alloc|Fatal process out of memory")
_OUTSIDE = re.compile(r"(^|/)(node_modules|\.stryker-tmp|\.doit-mutate)(/|$)")


@attrs.frozen
class Request:
    """As Engine.test takes it. `flags`: of node, as the project needs them; `options`: the runner's, as an earlier run
    found them."""

    root: Path
    runner: Runner
    flags: tuple[str, ...]
    files: Sequence[str] | None
    mutant: str | None
    timeout: float
    record: bool
    shuffle: int | None
    only: Sequence[str] | None
    env: Mapping[str, str]
    sandbox: Sandbox | None
    watch: bool
    options: object


@contextlib.contextmanager
def scratch_folder(root: Path) -> Iterator[Path]:
    """A folder for one program's files, in the worktree: what a killed run leaves of it goes with that."""
    folder = root.resolve() / ".doit-mutate"
    folder.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def run(node: str, major: int, asked: Request) -> tuple[TestRun, object]:
    """The tests, once, and mocha's options as they were found; None where the process gave no answer."""
    with scratch_folder(asked.root) as scratch:
        traced = asked.record and asked.runner.traced
        env = {**asked.env, **({"NODE_V8_COVERAGE": str(scratch / "loaded")} if traced else {})}
        flags = tuple(flag.format(here=PROGRAM.parent) for flag in (*asked.flags, *asked.runner.flags))
        sandbox = asked.sandbox
        if sandbox:
            (scratch / "tmp").mkdir()
            env["TMPDIR"] = str(scratch / "tmp")
            sandbox = attrs.evolve(sandbox, writable=(*sandbox.writable, scratch))
            if sandboxes.missing():
                flags, sandbox = (*flags, *_permissions(sandbox, major)), None
        elif asked.mutant:
            env["__STRYKER_ACTIVE_MUTANT__"] = asked.mutant  # for processes that the tests start
        request = {
            "root": str(asked.root), "runner": asked.runner.module, "scratch": str(scratch),
            "record": asked.record, "files": None if asked.files is None else list(asked.files),
            "out": str(scratch / "answer.json"), "mutant": asked.mutant, "shuffle": asked.shuffle,
            "only": None if asked.only is None else list(asked.only), "watched": asked.watch, "options": asked.options,
        }  # fmt: skip
        words: list[str | Path] = [node, *flags, PROGRAM]
        # A sandbox is put around a fork of all our memory, which costs 10 ms of the 130. What needs none is spared it.
        script = sandbox is None
        finished = process.run(
            [f"exec {shlex.join(map(str, words))}"] if script else words, script=script, sandbox=sandbox,
            cwd=asked.root, env=process.environment(env), stdin=json.dumps(request).encode(),
            timeout=asked.timeout, max_output=MOST_PRINTED,
        )  # fmt: skip
        try:
            answer = json.loads((scratch / "answer.json").read_bytes())
            tests = tuple(TestResult(**t) for t in answer["tests"])
            scripts = _scripts(scratch / "loaded", asked.root)
            loaded = tuple(sorted({*itertools.chain(*scripts), *answer.get("loaded", ())}))
            loads = _loads(answer.get("loads"), loaded, scripts)
        except (OSError, ValueError, KeyError, TypeError):
            answer = None
        if answer is None or finished.timed_out or finished.too_much_output:
            return _ended_early(finished, scratch / "answer.json.running", asked.timeout), None
    outcome, detail = Outcome.OK, ""
    if answer["error"]:
        outcome, detail = Outcome.BUILD_ERROR, answer["error"]
    elif finished.outlived:
        outcome, detail = Outcome.CRASHED, "a program that the tests had started outlived them"
    elif answer.get("looped"):
        outcome, detail = Outcome.TIME_LIMIT, "the mutant made a loop endless"
    elif not any(t.state != "skipped" for t in tests):
        outcome, detail = Outcome.NO_TESTS, f"no test ran in {', '.join(answer['files'])}"
    reached = {i: tuple(titles) for i, titles in answer["reached"].items()}
    files = tuple(answer["files"])
    done = TestRun(outcome, detail, tests, files, loaded, reached, finished.seconds, finished.cpu_seconds, loads=loads)
    return done, answer.get("options")


def _permissions(sandbox: Sandbox, major: int) -> tuple[str, ...]:
    """What Node.js can enforce by itself: files, and no other programs. It follows links, and knows no network."""
    switch = "--permission" if major >= 24 else "--experimental-permission"
    writable = (f"--allow-fs-write={folder}/*" for folder in sandbox.writable)
    return switch, "--no-warnings", "--allow-fs-read=*", *writable


def _ended_early(finished: process.Finished, running: Path, timeout: float) -> TestRun:
    """A test process whose answer is not there or not to be believed. running: the file that says where it was."""
    title = ""
    with contextlib.suppress(OSError):
        title = running.read_text(errors="replace")
    said = finished.tail(8)
    if finished.timed_out:
        outcome, detail = Outcome.TIME_LIMIT, f"the tests did not end within {timeout:.0f} s"
    elif finished.too_much_output:
        outcome, detail = Outcome.CRASHED, f"the tests printed more than {MOST_PRINTED >> 20} MB"
    elif b"No test files found" in finished.err:
        outcome, detail = Outcome.NO_TESTS, "the test runner found no test file"
    elif _OUT_OF_MEMORY.search(finished.err):
        outcome, detail = Outcome.MEMORY, "the tests ran out of memory"
    else:
        outcome, detail = Outcome.CRASHED, f"the test process died: {said or f'exit code {finished.exit_code}'}"
    return TestRun(outcome, detail, seconds=finished.seconds, cpu_seconds=finished.cpu_seconds, running=title)


def _scripts(folder: Path, root: Path) -> list[list[str]]:
    """Of each thread and process the project files among the scripts that V8 says it loaded: ES modules and CommonJS
    alike, however deep."""
    prefix = str(root) + os.sep
    found = []
    for record in folder.glob("*.json"):
        urls = re.findall(r'"url":"(file://[^"]+)"', record.read_text())
        paths = [path for path in (unquote(urlsplit(url).path) for url in urls) if path.startswith(prefix)]
        found.append([path[len(prefix) :] for path in paths if not _OUTSIDE.search(path[len(prefix) :])])
    return found


def _loads(
    told: Mapping[str, Any] | None, loaded: Sequence[str], scripts: Sequence[Sequence[str]]
) -> dict[str, tuple[str, ...]] | None:
    """Of each test file what it loads. What none of them was seen to load, all may have.

    None where it cannot be told: another thread or process loaded something, or one file was loaded twice, so that not
    every load was seen.
    """
    theirs = [each for each in scripts if each]
    if told is None or len(theirs) > 1 or any(len({*each}) < len(each) for each in theirs):
        return None
    seen = {path for paths in told["each"].values() for path in paths}
    common = {path for path in loaded if path in told["shared"] or path not in seen}
    return {test: tuple(sorted(common.union(paths).intersection(loaded))) for test, paths in told["each"].items()}
