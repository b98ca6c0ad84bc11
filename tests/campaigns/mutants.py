"""Every guard has a test: change the code in one place at a time, and see its tests fail.

    pip install -e '.[dev,mutants]' && python -m tests.campaigns.mutants schedule --sample 100 --seed 1

The changes are cosmic-ray's. Those that only alter annotations, which nothing evaluates, are left out, and equal ones
are counted once. Each runs in a fork of its own: the module's tests until the first fails, with few and always the
same random plans. Prints each survivor with its place; exit status 1 where the tests fail on the code as it is.
"""

from __future__ import annotations

import argparse
import ast
import importlib.machinery
import importlib.util
import os
import random
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType

import attrs
import hypothesis
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[2]
TESTS = {"schedule": "test_schedule.py", "analysis": "test_analysis.py", "packing": "test_analysis.py"}
EXAMPLES = 20  # random plans a property
CPU = 40  # seconds; a mutant that needs more has been noticed
MEMORY = 2 << 30  # bytes of address space
NO_MEMORY, BROKEN = 98, 99  # exit statuses that pytest has not
KILLED, SURVIVED, LIMIT = "killed", "survived", "killed by a limit"


@attrs.frozen
class Mutant:
    operator: str
    line: int
    before: str
    after: str
    code: str

    def __str__(self) -> str:
        return f"{self.line}: {self.operator}: {self.before} -> {self.after}"


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
        return compile(self.code, self.path, "exec", dont_inherit=True)


def meaning(code: str) -> str:
    return ast.dump(_Unannotated().visit(ast.parse(code)))


def mutants(source: str) -> Iterator[Mutant]:
    """All changes to a text that mean something, each meaning once."""
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


def judge(module: str, code: str) -> int:
    """In a fork: pytest's exit status with this text for the module."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    finder = _Finder(f"pipeline.{module}", str(ROOT / "pipeline" / f"{module}.py"))
    finder.code = code
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    hypothesis.settings.register_profile(
        "few", max_examples=EXAMPLES, derandomize=True, database=None, phases=[hypothesis.Phase.generate]
    )
    hypothesis.settings.load_profile("few")
    options = ["-x", "-q", "--noconftest", "-p", "no:randomly", "-p", "no:cacheprovider"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is loaded before the fork
    return int(pytest.main([*options, str(ROOT / "tests" / TESTS[module])]))


def run(module: str, codes: Sequence[str], jobs: int) -> Iterator[tuple[int, str]]:
    """For each text, as they end, its number and what became of it."""
    waiting, running = list(enumerate(codes))[::-1], dict[int, int]()
    while waiting or running:
        while waiting and len(running) < jobs:
            number, code = waiting.pop()
            pid = os.fork()
            if not pid:
                status = BROKEN
                try:
                    status = judge(module, code)
                except MemoryError:  # out of pytest itself, where a loop without end filled a list
                    status = NO_MEMORY
                finally:
                    os._exit(status)
            running[pid] = number
        pid, status = os.wait()
        ended = os.waitstatus_to_exitcode(status)
        if ended > 2 and ended != NO_MEMORY:  # neither passed, nor failed, nor did not load
            raise RuntimeError(f"pytest ended with {ended}")
        yield running.pop(pid), LIMIT if ended < 0 or ended == NO_MEMORY else SURVIVED if ended == 0 else KILLED


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.mutants")
    parser.add_argument("module", choices=TESTS)
    parser.add_argument("--sample", type=int, help="so many of the mutants, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    os.chdir(ROOT)
    source = (ROOT / "pipeline" / f"{asked.module}.py").read_text()
    if [how for _, how in run(asked.module, [source], 1)] != [SURVIVED]:
        print(f"the tests of {asked.module} fail on the code as it is")
        return 1
    every = list(mutants(source))
    drawn = every if asked.sample is None else random.Random(asked.seed).sample(every, min(asked.sample, len(every)))
    count: Counter[str] = Counter()
    for number, how in run(asked.module, [mutant.code for mutant in drawn], asked.jobs):
        count[how] += 1
        if how == SURVIVED:
            print(f"pipeline/{asked.module}.py:{drawn[number]}", flush=True)
    print(f"{asked.module}: {len(every)} mutants, {len(drawn)} run, {dict(sorted(count.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
