"""Where few files have changed, the tasks that they reach are all that is loaded: what comes of it is what the full
load comes to. Random plans and random edits, in two checkouts of one project: one of them has no note to go by."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

SEEDS, EDITS = range(int(os.environ.get("SEEDS", "2"))), 10
SAID = "tasks are up to date: nothing has changed since they were last looked at"
DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"
# One process for all command lines, and a fork of it for each: most of a run's time is what it imports.
DRIVER = """
import json, os, sys, time
import pipeline.runner, pipeline.session, pipeline.commands, pipeline.tasks, pipeline.config, pipeline.declared
import pipeline.noting, pipeline.reports.page, pipeline.reports.plan.answer
from doit.doit_cmd import DoitMain

for line in sys.stdin:
    place, words = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    pipeline.BEGAN = time.time_ns()
    os.chdir(place)
    for fd in (1, 2):
        os.dup2(os.open("../out", os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if fd == 1 else os.O_APPEND)), fd)
    status = DoitMain().run(words)
    sys.stdout.flush()
    os._exit(status)
"""


@attrs.frozen
class Place:
    """A checkout, and what the next run in it goes by: the last one's note, or the whole plan."""

    root: Path
    ask: Callable[[Path, list[str]], int]
    by_note: bool

    def doit(self, *words: str) -> int:
        if not self.by_note:
            (self.root / "cache/unchanged.json").unlink(missing_ok=True)
        return self.ask(self.root, list(words))

    @property
    def said(self) -> str:
        return (self.root.parent / "out").read_text()

    def events(self) -> list[dict[str, Any]]:
        """Of the last run that the ledger has."""
        found = [json.loads(line) for line in (self.root / "cache/ledger.jsonl").read_text().splitlines()]
        return [e for e in found if e["run"] == found[-1]["run"]]

    def ran(self) -> list[tuple[str, str, list[str], list[str]]]:
        """What the last run did, task by task: how it ended, what it needed and held. Not the order, which is free."""
        return sorted(
            (e["task"], e["outcome"], sorted(e.get("needs", ())), [os.path.relpath(p, self.root) for p in e["writes"]])
            for e in self.events()
            if e["event"] == "attempt" and e["lane"]
        )

    def cached(self) -> set[str]:
        return {e["task"] for e in self.events() if e["event"] == "attempt" and e["outcome"] == "cached"}

    def record(self) -> dict[str, Any]:
        """doit's, but for the times of files."""
        with sqlite3.connect(self.root / "cache/doit.db") as connection:
            rows = connection.execute("select task_id, cast(task_data as text) from doit").fetchall()
        connection.close()
        found = {name: json.loads(text) for name, text in rows}
        for data in found.values():
            data["_values_:"].get("_reads", {}).pop("looked", None)
            data |= {k: sorted(v) if k == "deps:" else v[1:] for k, v in data.items() if isinstance(v, list)}
        return found

    def files(self) -> dict[str, str]:
        folders = (self.root / name for name in ("in", "out"))
        found = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
        return {path.relative_to(self.root).as_posix(): path.read_text() for path in found}


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path, list[str]], int]]:
    env = {**os.environ, "DOIT_MUTATE_HOME": str(tmp_path_factory.mktemp("home"))}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as driver:
        assert driver.stdin and driver.stdout

        def asked(place: Path, words: list[str]) -> int:
            assert driver.stdin and driver.stdout
            driver.stdin.write(f"{json.dumps([str(place), words])}\n")
            driver.stdin.flush()
            return int(driver.stdout.readline())

        yield asked
        driver.stdin.close()


def made(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Tasks of a random plan. What one reads may make it fail, and what it makes may stay the same all the same."""
    tasks: list[dict[str, Any]] = []
    for i in range(count):
        there = [f"in/s{n}" for n in range(5)] + [f"out/t{n}" for n in range(i)][-2:]
        reads = sorted(rng.sample(there, rng.randint(1, 2)))
        work = rng.choice([f"cat {' '.join(reads)}", f"cat {' '.join(reads)} | head -c 2", "echo same"])
        run = f"! grep -q bad {' '.join(reads)} || exit 1; {work} > out/t{i}; [ ! -e h/{i} ] || sh h/{i}"
        writes = [f"out/t{i}"]
        if rng.random() < 0.3:
            writes.append("out/all")
            run += f"; touch out/all; grep -v ^{i}: out/all > h/x; echo {i}: >> h/x; sort h/x > out/all"
        task: dict[str, Any] = {"name": f"t{i}", "run": run, "reads": reads, "writes": writes}
        if rng.random() < 0.1:
            task["reads"] = ["in/**"]
        if rng.random() < 0.2:
            writes.append(f"out/d{i}/")
            task["run"] += f"; mkdir -p out/d{i}; cat {reads[0]} > out/d{i}/x$(head -c 1 {reads[0]})"
        elif rng.random() < 0.1 and any(each.startswith("out/d") for other in tasks for each in other["writes"]):
            task["reads"] = ["out/d*/*", f"in/s{i % 5}"]
        if i == count - 1:  # the last one
            task["needs"] = [other["name"] for other in tasks]
        elif i and rng.random() < 0.2:
            task["needs"] = [f"t{rng.randrange(i)}"]
        if rng.random() < 0.2:
            task["env"] = {"V": str(i)}
        tasks.append(task)
    return tasks


def project(place: Path, tasks: list[dict[str, Any]]) -> Path:
    root = place / "project"
    for folder in ("in", "out", "h"):
        (root / folder).mkdir(parents=True)
    for i in range(5):
        (root / f"in/s{i}").write_text(f"{i}\n")
    for name, text in {
        "dodo.py": DODO, "tasks.yaml": yaml.safe_dump({"version": 1, "tasks": tasks}),
        ".gitignore": "cache/\nin/\nout/\nh/\n__pycache__/\n",
    }.items():  # fmt: skip
        (root / name).write_text(text)
    for words in ("init -q -b main", "add -A", "-c user.name=n -c user.email=n@n.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def edited(rng: random.Random, count: int) -> tuple[str, Callable[[Place], object]]:
    """A random edit, the same for every checkout."""
    source, task, text = f"in/s{rng.randrange(5)}", f"t{rng.randrange(count)}", f"{rng.randrange(1000)}\n"

    def write(place: Place, path: str, content: str) -> None:
        (place.root / path).write_text(content)

    def during(place: Place) -> None:
        """While the last task runs, which what comes first makes sure of, an input of others is edited."""
        write(place, f"h/{count - 1}", f"echo {text.strip()} > {source}; rm h/{count - 1}\n")
        (place.root / f"out/t{count - 1}").unlink(missing_ok=True)

    def plan(place: Place) -> None:
        plan = yaml.safe_load((place.root / "tasks.yaml").read_text())
        plan["tasks"][int(task[1:])]["env"] = {"W": text.strip()}
        write(place, "tasks.yaml", yaml.safe_dump(plan))

    def gone(place: Place) -> None:
        (place.root / source).unlink(missing_ok=True)

    def two(place: Place) -> None:
        write(place, source, text)
        write(place, "in/s0", text)

    return rng.choice(
        [
            ("an input", lambda place: write(place, source, text)),
            ("an input", lambda place: write(place, source, text)),
            ("two inputs", two),
            ("an input touched", lambda place: (place.root / source).touch()),
            ("an input that makes tasks fail", lambda place: write(place, source, "bad\n")),
            ("an input gone", gone),
            ("what is in directories", lambda place: [p.write_text(text) for p in (place.root / "out").glob("d*/x*")]),
            ("a file more", lambda place: write(place, f"in/{task}", text)),
            ("a file less", lambda place: (place.root / f"in/{task}").unlink(missing_ok=True)),
            ("an output gone", lambda place: (place.root / f"out/{task}").unlink(missing_ok=True)),
            ("an output", lambda place: write(place, f"out/{task}", text)),
            ("what several tasks write", lambda place: write(place, "out/all", "mine\n")),
            ("an input during the run", during),
            ("the plan", plan),
            ("a task forgotten", lambda place: place.ask(place.root, ["forget", task])),
            ("nothing", lambda place: None),
        ]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_few_tasks_loaded_come_to_what_all_of_them_loaded_come_to(
    ask: Callable[[Path, list[str]], int], tmp_path: Path, seed: int
) -> None:
    rng, count, narrow = random.Random(seed), 10, 0
    tasks = made(rng, count)
    places = [Place(project(tmp_path / name, tasks), ask, name == "note") for name in ("note", "whole")]
    few, whole = places
    how: Callable[[Place], object]
    for what, how in [("a cold run", lambda place: None), *(edited(rng, count) for _ in range(EDITS))]:
        for place in places:
            how(place)
        for _ in range(rng.randint(1, 2)):
            time.sleep(0.03)  # what is edited in the moment in which a run begins is looked at by the next, too
            codes = [place.doit("-n", "1", "-c") for place in places]
            assert codes[0] == codes[1], (what, few.said, whole.said)
            if SAID in few.said:
                assert whole.ran() == [], what
                continue
            if codes[0] == 3:
                assert few.said == whole.said
                for path in (f"in/s{i}" for i in range(5)):
                    for place in places:
                        (place.root / path).touch()
                continue
            assert few.ran() == whole.ran(), (what, few.said, whole.said)
            started = [next(e for e in place.events() if e["event"] == "run-started") for place in places]
            assert started[0]["selected"] == started[1]["selected"] == count
            carried = [name for e in few.events() if e["event"] == "carried" for name in e["tasks"]]
            narrow += bool(carried)
            assert few.cached() | set(carried) == whole.cached(), what
            assert few.record() == whole.record(), what
            assert few.files() == whole.files(), what
    assert narrow, "it was no test: everything was loaded each time"
    for path in (f"in/s{i}" for i in range(5)):
        for place in places:
            (place.root / path).write_text("good\n")
    for _ in range(3):
        assert [place.doit("-n", "1", "-c") for place in places] == [0, 0], whole.said
    assert SAID in few.said
    assert whole.ran() == []
    assert few.record() == whole.record()
    assert few.files() == whole.files()
    assert [place.doit("list") for place in places] == [0, 0]
