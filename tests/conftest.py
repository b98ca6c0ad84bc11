"""A small project in a repository of its own, and doit run on it for real."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import filelock
import pytest

HERE = Path(__file__).parent
SHOP = HERE.parent / "examples" / "shop"
STANDINS = HERE / "standins"
DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"
PLAN = """\
version: 1
generate:
  with: [differential]
land: {proof_runs: 2}
scopes:
  - mutate: src/*.js
    tests: test/{stem}.test.js
    write: test/{stem}.mutants.test.js
"""


@attrs.frozen
class Done:
    """A finished run of doit."""

    code: int
    out: str
    err: str

    @property
    def both(self) -> str:
        return self.out + self.err

    def ending(self, scope: str) -> str:
        """The last column of the scope's row in the summary."""
        row = next(line for line in self.out.splitlines() if re.match(rf"{re.escape(scope)}\s", line))
        return re.split(r"\s{2,}", row)[-1]


@attrs.frozen
class World:
    """A repository with a project, a plan, and a home for what outlives it."""

    root: Path
    home: Path
    env: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def at(cls, place: Path) -> World:
        env = {"STANDIN_SCRIPT": str(place / "script.json"), "STANDIN_LOG": str(place / "calls.jsonl")}
        return cls(place / "repo", place / "home", env)

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTEST_", "STANDIN_"))}
        return {
            **kept,
            "DOIT_MUTATE_HOME": str(self.home),
            "PATH": f"{STANDINS}{os.pathsep}{os.environ['PATH']}",
            "GIT_CONFIG_GLOBAL": str(self.home.parent / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            **self.env,
        }

    def doit(self, *args: str, code: int | None = 0, timeout: float = 300) -> Done:
        """Run doit here. code: the exit status that is asked for; None takes any."""
        ran = subprocess.run(
            [sys.executable, "-m", "doit", *args], cwd=self.root, env=self.environment, capture_output=True,
            timeout=timeout, check=False,
        )  # fmt: skip
        done = Done(ran.returncode, ran.stdout.decode(), ran.stderr.decode())
        if code is not None:
            assert done.code == code, done.both
        assert "Traceback" not in done.both, done.both
        return done

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """Start doit in a session of its own, its output in `out`."""
        with (self.root.parent / "out").open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "doit", *args], cwd=self.root, env=self.environment, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def git(self, *args: str) -> str:
        ran = subprocess.run(["git", *args], cwd=self.root, env=self.environment, capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout.decode()

    def commit(self, message: str = "edit") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert old in text
        self.write(path, text.replace(old, new, 1))

    def on_branch(self, path: str, branch: str = "mutate/main") -> str | None:
        """A file's text on the landing branch."""
        ran = subprocess.run(
            ["git", "show", f"{branch}:{path}"], cwd=self.root, env=self.environment, capture_output=True, check=False
        )
        return ran.stdout.decode() if ran.returncode == 0 else None

    def titles(self, path: str, branch: str = "mutate/main") -> list[str]:
        """Titles of the tests in a file of the landing branch; [] where there is none."""
        found = re.findall(r"^it\((['\"`])(.*?)\1,", self.on_branch(path, branch) or "", re.M)
        return [title for _, title in found]

    def subjects(self, branch: str = "mutate/main") -> list[str]:
        """The commits that the landing branch has over HEAD, oldest first."""
        return self.git("log", "--reverse", "--format=%s", f"HEAD..{branch}").splitlines()

    def events(self, event: str = "attempt") -> list[dict[str, Any]]:
        """Events of the last run."""
        path = self.root / "cache" / "ledger.jsonl"
        everything = [json.loads(line) for line in path.read_text().splitlines()]
        last = [e["run"] for e in everything if e["event"] == "run-started"][-1]
        return [e for e in everything if e["run"] == last and e["event"] == event]

    def ran(self, kind: str) -> set[str]:
        """Scopes whose task of this kind was performed in the last run, not up to date."""
        return {e["scope"] for e in self.events() if e["kind"] == kind and e["lane"]}

    def measured(self) -> set[str]:
        """Scopes that an engine run measured in the last run."""
        return {e["scope"] for e in self.events() if e.get("engine_run")}

    def calls(self) -> list[dict[str, Any]]:
        """Calls that the stand-in got, all runs together."""
        log = self.root.parent / "calls.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def script(self, rules: list[dict[str, Any]]) -> None:
        """What the stand-in for claude answers from now on."""
        (self.root.parent / "script.json").write_text(json.dumps(rules))

    def use_claude(self, rounds: int = 1, also: str = "", models: str = "backoff: 0.01") -> None:
        text = self.read("tasks.yaml").replace(
            "with: [differential]", f"with: [differential, claude]\n  rounds: {rounds}"
        )
        self.write("tasks.yaml", f"{text}models: {{{models}}}\n{also}")


@pytest.fixture(autouse=True, scope="session")
def signals_as_in_a_terminal() -> Iterator[None]:
    """A shell makes what it starts in the background, and all below, deaf to Ctrl-C; nohup does so for SIGHUP."""
    deaf = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, before in deaf.items():
        signal.signal(number, before)


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The example's packages, installed once."""
    installed = SHOP / "node_modules"
    with filelock.FileLock(SHOP.parent / ".install.lock"):
        if not (installed / ".package-lock.json").exists():
            npm = shutil.which("npm") or str(Path(sys.prefix) / "bin" / "npm")
            path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.prefix) / 'bin'}"
            subprocess.run(
                [npm, "ci", "--no-audit", "--no-fund"], cwd=SHOP, check=True, env={**os.environ, "PATH": path}
            )
    return installed


def make_world(place: Path, node_modules: Path, plan: str = PLAN, project: Path = HERE / "projects" / "mini") -> World:
    """A fresh repository of a copy of `project`, with one commit."""
    root = place / "repo"
    shutil.copytree(project, root)
    (place / "gitconfig").write_text(
        "[user]\nname = Tess\nemail = tess@example.invalid\n[init]\ndefaultBranch = main\n"
    )
    world = World.at(place)
    (root / "node_modules").symlink_to(node_modules)
    world.write("dodo.py", DODO)
    world.write("tasks.yaml", plan)
    world.write(".gitignore", "node_modules\n__pycache__/\ncache/\n")
    world.script([{"match": "*", "reply": "text", "text": '{"tests": []}'}])
    world.git("init", "--quiet")
    world.commit("begin")
    return world


@pytest.fixture
def world(tmp_path: Path, node_modules: Path) -> World:
    """A repository where nothing has run yet."""
    return make_world(tmp_path, node_modules)


MadeOnce = Callable[[str, Callable[[Path], World]], World]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> MadeOnce:
    """A world by its name, made in the folder that is given by whichever worker comes first: all others copy it."""
    base = tmp_path_factory.getbasetemp()
    between = base if worker_id == "master" else base.parent

    def made(name: str, make: Callable[[Path], World]) -> World:
        place, whole = between / f"once-{name}", between / f"once-{name}.whole"
        with filelock.FileLock(between / f"once-{name}.lock"):
            if not whole.exists():
                shutil.rmtree(place, ignore_errors=True)
                make(place)
                whole.touch()
        return World.at(place)

    return made


@pytest.fixture(scope="session")
def driven_once(made_once: MadeOnce, node_modules: Path) -> World:
    def make(place: Path) -> World:
        world = make_world(place, node_modules)
        world.doit("-n", "2", "mutate")
        return world

    return made_once("driven", make)


@pytest.fixture
def driven(driven_once: World, tmp_path: Path) -> World:
    """A copy of a repository, and its home, after one whole run."""
    return copy_world(driven_once, tmp_path / "w")


def copy_world(world: World, place: Path) -> World:
    shutil.copytree(world.root.parent, place, symlinks=True)
    return World.at(place)


@pytest.fixture
def no_orphans() -> Iterator[Callable[[str], list[str]]]:
    """Processes whose command line holds a text, once those that are ending have had a moment."""

    def left(text: str) -> list[str]:
        for _ in range(50):
            found = [
                line.strip()
                for line in subprocess.run(
                    ["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True
                ).stdout.splitlines()
                if text in line and " ps " not in line
            ]
            if not found:
                return []
            time.sleep(0.1)
        return found

    yield left


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """kill -9 of doit alone, as the kernel's out-of-memory killer does it."""
    process.send_signal(signal.SIGKILL)
    process.wait()
