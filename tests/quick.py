"""Drives of a small repository in this process: real git, real proofs and landings, and a stand-in for the engine.

A source of the stand-in's language is words in quotes, each of which is a mutant; a test passes where every word that
it names stands in the file that it names, and kills the mutants of those words.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from pipeline import config, schedule
from pipeline.engines import Measured, Switch, TestResult, TestRun
from pipeline.engines.stryker_js.suite import JavaScriptSuite
from pipeline.freshness import Freshness
from pipeline.host import RunInfo, Slot
from pipeline.model import EngineConfig, Scope
from pipeline.mutants import Mutant, Raw, Status, identify
from pipeline.results import Candidates, Landed, Outcome, Test, dump, load
from pipeline.sandbox import Sandbox
from pipeline.session import Session
from pipeline.steps import Steps

BRANCH = "mutate/main"
PLAN = """\
version: 1
generate: {with: []}
land: {proof_runs: 1, time_limit: 20}
scopes:
  - mutate: src/*.js
    tests: test/{stem}.test.js
    write: test/{stem}.mutants.test.js
"""


@attrs.frozen
class StandIn:
    """The engine's three verbs, without a process."""

    config: EngineConfig
    name: str = "stand-in"
    language: str = "words"
    links: tuple[str, ...] = ("node_modules",)
    outputs: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()
    suite: JavaScriptSuite = attrs.field(factory=JavaScriptSuite)

    def version(self, root: Path) -> str:
        return "1"

    def essence(self, text: str) -> str | None:
        return None

    def notes(self, root: Path, scopes: Sequence[Scope]) -> Sequence[str]:
        return ()

    def tool(self, name: str, root: Path) -> Path:
        raise AssertionError(f"nothing here asks for {name}")

    def installed(self, root: Path) -> tuple[Path, ...]:
        return ()

    def config_files(self) -> tuple[str, ...]:
        return ()

    def measure(self, root: Path, scopes: Sequence[Scope], *, workers: int, log: Path) -> Mapping[str, Measured]:
        return {scope.name: self._measured(root, scope) for scope in scopes}

    def _measured(self, root: Path, scope: Scope) -> Measured:
        tests = tuple(t for t in scope.tests or () if (root / t).exists())
        said = {pair for t in tests for pairs in self._said(root, t).values() for pair in pairs}
        files = {file: (root / file).read_text() for file in scope.mutate}
        content = {file: text.encode() for file, text in files.items()}
        mutants = [m for file, text in files.items() for m in _mutants(file, text, said)]
        ids = {m.key: f"{m.file}\0{m.original}" for m in mutants}
        inputs = tuple(sorted({*files, *tests, *(file for file, _ in said)}))
        return Measured(Outcome.OK, "", tuple(mutants), tests, inputs, {}, Switch(content, ids), 0.01)

    def check(self, root: Path, installs: bool) -> None:
        pass

    def tidy(self, root: Path, write: str, tests: Sequence[Test]) -> Sequence[Test]:
        return tests

    def test(
        self, root: Path, files: Sequence[str] | None, *, mutant: str | None = None, timeout: float,
        record: bool = False, shuffle: int | None = None, only: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None, sandbox: Sandbox | None = None, watch: bool = False,
    ) -> TestRun:  # fmt: skip
        results, reached, inputs = [], dict[str, tuple[str, ...]](), list[str]()
        for file in files or ():
            for title, pairs in self._said(root, file).items():
                killed = mutant in {f"{source}\0'{word}'" for source, word in pairs}
                there = all((root / s).exists() and word in (root / s).read_text() for s, word in pairs)
                state = "passed" if there and not killed else "failed"
                results.append(TestResult(file, title, state, "" if state == "passed" else "assertion", "it differs"))
                inputs += [source for source, _ in pairs]
                for source, word in pairs:
                    id_ = f"{source}\0'{word}'"
                    reached[id_] = (*reached.get(id_, ()), title)
        return TestRun(Outcome.OK, "", tuple(results), tuple(files or ()), tuple(inputs), reached)

    def _said(self, root: Path, file: str) -> dict[str, list[tuple[str, str]]]:
        """Title -> what the test says: source, and a word that is to be in it."""
        text = (root / file).read_bytes().decode(errors="surrogateescape")
        code = {title: self.suite.find(text, title) or "" for title in self.suite.titles(text)}
        return {title: re.findall(r"says\(['\"](.*?)['\"], ['\"](.*?)['\"]\)", body) for title, body in code.items()}


def _mutants(file: str, text: str, said: set[tuple[str, str]]) -> Sequence[Mutant]:
    raws = []
    for number, line in enumerate(text.split("\n"), 1):
        for m in re.finditer(r"'(\w+)'", line):
            status = Status.KILLED if (file, m[1]) in said else Status.SURVIVED
            place = (number, m.start() + 1, number, m.end() + 1)
            raws.append(Raw(f"{number}", "StringLiteral", "''", status, *place, False, (), 1, ""))
    return identify(raws, file, text)


def pins(title: str, *words: str, source: str = "src/a.js") -> Test:
    body = "".join(f"  says('{source}', '{word}');\n" for word in words)
    return Test(title, f"it('{title}', () => {{\n{body}}});", ("import { says } from './says.js';",))


@attrs.frozen
class Place:
    """A repository, and a project in it."""

    root: Path

    @property
    def session(self) -> Session:
        plan = config.load(self.root / "tasks.yaml")
        return Session(plan, lambda session: [], lambda session, result, interrupted: (0, ""))

    def git(self, *args: str, cwd: Path | None = None) -> str:
        ran = subprocess.run(["git", *args], cwd=cwd or self.root, capture_output=True, check=False)
        assert ran.returncode == 0, (args, ran.stderr.decode())
        return ran.stdout.decode(errors="surrogateescape")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def commit(self, message: str = "edit") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--no-verify", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def hook(self, name: str, text: str) -> None:
        self.write(f".git/hooks/{name}", f"#!/bin/sh\n{text}\n")
        (self.root / ".git/hooks" / name).chmod(0o755)

    def on(self, branch: str, path: str) -> str | None:
        """A file's text on a branch."""
        ran = subprocess.run(["git", "cat-file", "blob", f"{branch}:{path}"], cwd=self.root, capture_output=True)
        return ran.stdout.decode(errors="surrogateescape") if ran.returncode == 0 else None

    def titles(self, path: str = "test/a.mutants.test.js", branch: str = BRANCH) -> list[str]:
        return sorted(JavaScriptSuite().titles(self.on(branch, path) or ""))

    @contextlib.contextmanager
    def by_hand(self, branch: str = BRANCH) -> Iterator[Place]:
        """A person's checkout of a branch, for as long as they work in it."""
        place = self.root.parent / "theirs"
        self.git("worktree", "add", "--quiet", "--force", str(place), branch)
        try:
            yield Place(place)
        finally:
            self.git("worktree", "remove", "--force", str(place))

    def state(self) -> dict[str, str]:
        """All that is the user's: files, index, HEAD, branches but landing branches, stash, configuration."""
        git = self.root / ".git"
        mine = [p for p in self.root.rglob("*") if git not in p.parents and "cache" not in p.parts]
        found = {
            str(p): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in (*mine, *(git / name for name in ("index", "config", "HEAD", "logs/refs/stash")))
            if p.is_file() and not p.is_symlink()
        }
        links = {str(p): str(p.readlink()) for p in mine if p.is_symlink()}
        refs = [r for r in self.git("for-each-ref").splitlines() if "refs/heads/mutat" not in r]
        return {**found, **links, "refs": "\n".join(refs)}

    def run(
        self, tests: Mapping[str, Sequence[Test]] | None = None, meanwhile: Callable[[], object] = lambda: None,
        between: Callable[[], object] = lambda: None,
    ) -> dict[str, Landed]:  # fmt: skip
        """One drive: scope -> what landing came to. Raises Refusal or PlanErrors where the run may not begin.

        tests: new candidates, beside those that the proof store offers. meanwhile: what a person does while it is
        proved; between: while a commit of the first scope is there and the second's is not.
        """
        with self._undisturbed():
            session = self.session
            steps, slot = Steps(session), Slot("validation", 0, 1)
            names = [scope.name for scope in session.plan.scopes]
            lanes = schedule.lanes(1, {}, {}, None, 1, 1)
            info = RunInfo(
                f"r{time.time_ns()}", lanes, tuple(f"land:{name}" for name in names), tuple(names), False, time.time()
            )
            session.open(info)
            steps.baseline(names, slot)
            for name in names:
                steps.search([name], slot)
                target = session.target(name, "candidates.0.json")
                found = load(target, Candidates)
                dump(target, attrs.evolve(found, tests=(*found.tests, *(tests or {}).get(name, ()))))
                steps.validate([(name, 0)], slot)
        try:
            meanwhile()
            landed = {}
            for name in names:
                with self._undisturbed():
                    steps.land([name], slot)
                    landed[name] = load(session.target(name, "landed.json"), Landed)
                    up_to_date = landed[name].outcome is Outcome.OK and not landed[name].held
                    assert Freshness(session).landed(session.scopes[name]) == up_to_date
                if name == names[0]:
                    between()
        finally:
            session.close(0, False, True)
        return landed

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        before = self.state()
        yield
        after = self.state()
        assert {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)} == set()


def make_place(root: Path) -> Place:
    """A repository with one commit: two sources, of which a test covers one word each."""
    root.mkdir(parents=True)
    place = Place(root)
    for name in ("a", "b"):
        place.write(f"src/{name}.js", f"export const words = [\n  'alpha',\n  'beta',\n  'gamma',\n];  // {name}\n")
        place.write(f"test/{name}.test.js", f"it('has {name}', () => {{\n  says('src/{name}.js', 'alpha');\n}});\n")
    place.write("notes.txt", "one\n")
    place.write("tasks.yaml", PLAN)
    place.write(".gitignore", "cache/\nnode_modules\n")
    place.git("init", "--quiet")
    place.commit("begin")  # that one stands for the project
    place.write("notes.txt", "two\n")
    place.commit("go on")
    return place


def environment(home: Path) -> dict[str, str]:
    """Variables under which nothing of the machine's own configuration counts."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "gitconfig").write_text(
        "[user]\nname = Tess\nemail = tess@example.invalid\n[init]\ndefaultBranch = main\n"
        '[protocol "file"]\nallow = always\n'
    )
    return {"GIT_CONFIG_GLOBAL": str(home / "gitconfig"), "GIT_CONFIG_NOSYSTEM": "1", "DOIT_MUTATE_HOME": str(home)}
