"""Every guard has a test: change the code in one place at a time, and see its tests fail.

    pip install -e '.[dev,mutants]' && python -m tests.campaigns.mutants schedule --sample 100 --seed 1

The changes are cosmic-ray's. Those that only alter annotations, which nothing evaluates, are left out, and equal ones
are counted once. Each runs in a fork of its own: of the module's tests those that come to the changed statement, the
quickest first, until one fails; with few and always the same random plans. Prints each survivor with its place; exit
status 1 where the tests fail on the code as it is. With --record FILE each verdict is a line of that file as soon as it
is known, and what was killed there is not run again: so a campaign that broke off goes on, and one with new tests for
its survivors runs those alone.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import attrs
import hypothesis
import psutil
import pytest

ROOT = Path(__file__).parents[2]
# In one process, without conftest.py: what the real command does in others sees no change.
TESTS = {
    "schedule": "test_schedule.py", "analysis": "test_analysis.py", "packing": "test_analysis.py",
    "proof": "test_proof.py", "landing": "test_landing_cases.py", "proved": "test_landing_cases.py",
    "branch": "test_branch.py test_landing_cases.py", "heartbeat": "test_heartbeat.py",
}  # fmt: skip
EXAMPLES = 20  # random plans a property
CPU, WALL = 40, 240  # seconds a test; a mutant that needs more has been noticed
MEMORY = 2 << 30  # bytes of address space
NO_MEMORY, BROKEN = 98, 99  # exit statuses that pytest has not
KILLED, SURVIVED, LIMIT = "killed", "survived", "killed by a limit"
MARK = "DOIT_MUTATE_MUTANT"  # in the environment of all that a fork starts


@attrs.frozen
class Mutant:
    operator: str
    line: int
    before: str
    after: str
    code: str

    def __str__(self) -> str:
        return f"{self.line}: {self.operator}: {self.before} -> {self.after}"

    @property
    def id(self) -> str:
        """Of the whole text: once the module is edited, no verdict on it counts."""
        return hashlib.sha256(self.code.encode()).hexdigest()[:16]


@attrs.frozen
class Seen:
    """One test on the code as it is: how long it took, and the lines of the module that it came to."""

    seconds: float
    lines: Sequence[int]


class _Unannotated(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


class _Finder(importlib.machinery.SourceFileLoader):
    """Finds and loads one module, with another text."""

    code = ""

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> object:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of `is` beside a literal: a mutant to be judged as any other
            return compile(self.code, self.path, "exec", dont_inherit=True)


@attrs.define
class _Watch:
    """A plugin of pytest's: a limit for each test, and what each came to where that is to be noted."""

    path: str
    noting: bool
    seen: dict[str, Seen] = attrs.field(factory=dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        limited()
        if not self.noting:
            return (yield)
        began, lines = time.monotonic(), set[int]()

        def note(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
            if frame.f_code.co_filename != self.path:
                return None
            if event == "line":
                lines.add(frame.f_lineno)
            return note

        threading.settrace(note)
        sys.settrace(note)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self.seen[item.nodeid] = Seen(time.monotonic() - began, sorted(lines))


def limited() -> None:
    """From now on this process has so many seconds: the signals end it."""
    signal.setitimer(signal.ITIMER_PROF, CPU)
    signal.setitimer(signal.ITIMER_REAL, WALL)


def meaning(code: str) -> str:
    return ast.dump(_Unannotated().visit(ast.parse(code)))


def mutants(source: str) -> Iterator[Mutant]:
    """All changes to a text that mean something, each meaning once."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    seen, tree = {meaning(source)}, get_ast(source)
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments():
            continue  # those want to be told names of variables
        places = sum(1 for node in ast_nodes(tree) for _ in operator().mutation_positions(node))
        for occurrence in range(places):
            code = mutate_code(source, operator(), occurrence)
            try:
                means = meaning(code)
            except SyntaxError:
                continue  # a bare * among parameters is taken for an operator
            if means in seen:
                continue
            seen.add(means)
            old, new = source.splitlines(), code.splitlines()
            at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(new) - 1)
            yield Mutant(name.split("/")[-1], at + 1, old[at].strip(), new[at].strip(), code)


def judge(module: str, code: str, tests: Sequence[str], watch: _Watch) -> int:
    """In a fork: pytest's exit status with this text for the module."""
    limited()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ[MARK] = str(os.getpid())
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    finder = _Finder(f"pipeline.{module}", watch.path)
    finder.code = code
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    hypothesis.settings.register_profile(
        "few", max_examples=EXAMPLES, derandomize=True, database=None, phases=[hypothesis.Phase.generate]
    )
    hypothesis.settings.load_profile("few")
    try:
        importlib.import_module(finder.name)
    except Exception:  # pytest would call it a usage error, as it does where there is no test of a name
        return 1
    options = ["-x", "-q", "--noconftest", "-p", "no:randomly", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is loaded before the fork
    return int(pytest.main([*options, *tests], plugins=[watch]))


def run(
    module: str, todo: Sequence[tuple[str, Sequence[str]]], jobs: int, note: Path | None = None
) -> Iterator[tuple[int, str]]:
    """For each text with its tests, as they end, its number and what became of it. note: where each test is noted."""
    waiting, running = list(enumerate(todo))[::-1], dict[int, int]()
    while waiting or running:
        while waiting and len(running) < jobs:
            number, (code, tests) = waiting.pop()
            pid = os.fork()
            if not pid:
                status = BROKEN
                watch = _Watch(str(ROOT / "pipeline" / f"{module}.py"), note is not None)
                try:
                    status = judge(module, code, tests, watch) if tests else 0
                    if note:
                        note.write_text(json.dumps({test: attrs.asdict(seen) for test, seen in watch.seen.items()}))
                except MemoryError:  # out of pytest itself, where a loop without end filled a list
                    status = NO_MEMORY
                finally:
                    os._exit(status)
            running[pid] = number
        pid, status = os.wait()
        end_what_it_left(pid)
        ended = os.waitstatus_to_exitcode(status)
        if ended > 2 and ended != NO_MEMORY:  # neither passed, nor failed, nor did not load
            raise RuntimeError(f"pytest ended with {ended}")
        yield running.pop(pid), LIMIT if ended < 0 or ended == NO_MEMORY else SURVIVED if ended == 0 else KILLED


def end_what_it_left(pid: int) -> None:
    """A fork that a limit ends leaves programs behind, each in a session of its own."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == str(pid):
                process.kill()


def tests_for(mutant: Mutant, source: str, seen: Mapping[str, Seen]) -> list[str]:
    """The tests that come to the statement that a mutant is in, the quickest first; all where it runs at import."""
    inside: list[tuple[int, int]] = []  # first and last line of each statement of a function, without what is in it

    def walk(node: ast.AST, called: bool) -> None:
        called = called or isinstance(node, ast.FunctionDef)
        for child in ast.iter_child_nodes(node):
            if called and isinstance(child, (ast.stmt, ast.excepthandler)):
                within = getattr(child, "body", None)
                last = max(child.lineno, within[0].lineno - 1) if within else child.end_lineno or child.lineno
                inside.append((min([child.lineno, *(d.lineno for d in getattr(child, "decorator_list", ()))]), last))
            walk(child, called)

    walk(ast.parse(source), False)
    first, last = max((span for span in inside if span[0] <= mutant.line <= span[1]), default=(0, 0))
    come = {test: s for test, s in seen.items() if not first or any(first <= line <= last for line in s.lines)}
    return sorted(come, key=lambda test: (come[test].seconds, test))


def killed_before(record: Path | None) -> dict[str, str]:
    """Mutant's id -> how it was killed, of a file of one JSON object a line."""
    lines = record.read_text().splitlines() if record and record.exists() else ()
    return {said["id"]: said["how"] for said in map(json.loads, lines) if said["how"] != SURVIVED}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.mutants")
    parser.add_argument("module", choices=TESTS)
    parser.add_argument("--sample", type=int, help="so many of the mutants, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", type=Path, help="a file that keeps each verdict, and says which are not run again")
    asked = parser.parse_args()
    record = asked.record and asked.record.resolve()
    os.chdir(ROOT)
    source = (ROOT / "pipeline" / f"{asked.module}.py").read_text()
    with tempfile.TemporaryDirectory(prefix="mutants-campaign-") as folder:
        note = Path(folder) / "seen"
        if [
            how
            for _, how in run(
                asked.module, [(source, [f"tests/{file}" for file in TESTS[asked.module].split()])], 1, note
            )
        ] != [SURVIVED]:
            print(f"the tests of {asked.module} fail on the code as it is")
            return 1
        seen = {test: Seen(**what) for test, what in json.loads(note.read_text()).items()}
    every = list(mutants(source))
    size = len(every) if asked.sample is None else min(asked.sample, len(every))
    drawn = every if asked.sample is None else random.Random(asked.seed).sample(every, size)
    known = killed_before(record)
    count = Counter(known[mutant.id] for mutant in drawn if mutant.id in known)
    drawn = [mutant for mutant in drawn if mutant.id not in known]
    todo = [(mutant.code, tests_for(mutant, source, seen)) for mutant in drawn]
    with contextlib.suppress(KeyboardInterrupt):  # a long campaign may be cut short: what it has counted by then counts
        for number, how in run(asked.module, todo, asked.jobs):
            count[how] += 1
            place = f"pipeline/{asked.module}.py:{drawn[number]}"
            if how == SURVIVED:
                print(place, flush=True)
            if record:
                with record.open("a") as lines:
                    lines.write(json.dumps({"id": drawn[number].id, "how": how, "where": place}) + "\n")
    print(f"{asked.module}: {len(every)} mutants, {count.total()} run, {dict(sorted(count.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
