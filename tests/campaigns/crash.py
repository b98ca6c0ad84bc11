"""kill -9, SIGINT and SIGTERM at random moments of a drive, again and again until it gets through; then the count.

    python -m tests.campaigns.crash --kills 100 --signals 20 --seed 1 --real 10

A drive is stopped at a moment drawn from what an undisturbed one would still take, and run again, plainly, until a run
comes to its end. The seed draws the moments and the ways to stop; what is hit there is up to the machine. Ctrl-C cuts
the campaign short. Exit status 1 where a figure is not what it must be.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import psutil
from conftest import HERE, SHOP, STANDINS, World, copy_world, make_world
from conftest import PLAN as MINI_PLAN

from campaigns import project
from pipeline import ledger
from pipeline.lifetime import GRACE
from pipeline.results import BESIDE

TREE, ALONE, INT, TERM = "kill -9 of the tree", "kill -9 of doit alone", "SIGINT", "SIGTERM"
SIGNALS = {INT: signal.SIGINT, TERM: signal.SIGTERM}
MUST_BE_NONE = (
    "finished tasks redone", "half-written targets", "orphans", "landings lost", "landings doubled",
    "replies that had arrived paid for twice", "replies that the ledger does not account for once",
    "exits after a signal that are not 130, or late", "tracebacks", "files left behind", "final results that differ",
)  # fmt: skip


@attrs.frozen
class Base:
    """A repository where nothing has run, and what a run there comes to that nothing disturbs."""

    world: World
    seconds: float
    tasks: int
    result: Mapping[str, Any]


@attrs.define
class Figures:
    """What was counted. `wrong`: what must be 0, by name."""

    stops: collections.Counter[str] = attrs.field(factory=collections.Counter)
    hit: collections.Counter[str] = attrs.field(factory=collections.Counter)
    seen: collections.Counter[str] = attrs.field(factory=collections.Counter)
    wrong: dict[str, list[str]] = attrs.field(factory=lambda: {name: [] for name in MUST_BE_NONE})
    slowest_exit: float = 0.0

    def blame(self, name: str, things: Sequence[str], drive: int) -> None:
        self.wrong[name] += [f"drive {drive}: {thing}" for thing in things]

    def table(self) -> str:
        rows = [(f"stops by {way}", str(n)) for way, n in sorted(self.stops.items())]
        rows += [("stopped while these ran", ", ".join(f"{what} {n}" for what, n in self.hit.most_common()))]
        rows += [(name, str(n)) for name, n in self.seen.items()]
        rows += [("slowest exit after a signal", f"{self.slowest_exit:.2f} s")] if self.slowest_exit else []
        rows += [(name, str(len(found))) for name, found in self.wrong.items()]
        width = max(len(name) for name, _ in rows)
        found = [f"    {name}: {thing}" for name, things in self.wrong.items() for thing in things]
        return "\n".join([*(f"{name.ljust(width)}  {value}" for name, value in rows), *found])

    @property
    def good(self) -> bool:
        return not any(self.wrong.values())


# -- what there is to be seen of a drive


def result(world: World) -> dict[str, Any]:
    """What a drive comes to: the branch, every target and every stored proof, to the byte."""
    scopes = world.root / "cache" / "scopes"
    stored = world.home / "data" / "projects"
    return {
        "branch": world.git("rev-parse", "mutate/main^{tree}").strip() if _tip(world) else "",
        "landings": _landings(world),
        **{f"target {p.relative_to(scopes)}": p.read_text() for p in sorted(scopes.rglob("*.json"))},
        **{f"stored {p.relative_to(stored)}": p.read_text() for p in sorted(stored.rglob("*.json"))},
    }


def alive(world: World) -> list[psutil.Process]:
    """Processes that a run in this world has started and that live on."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("DOIT_MUTATE_HOME") == str(world.home)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def runs(world: World) -> list[list[Mapping[str, Any]]]:
    """The events of each run so far."""
    by_run: dict[str, list[Mapping[str, Any]]] = {}
    for event in ledger.events(world.root / "cache" / "ledger.jsonl"):
        by_run.setdefault(event["run"], []).append(event)
    return list(by_run.values())


def performed(events: Sequence[Mapping[str, Any]], outcomes: Sequence[str] = ()) -> set[str]:
    """Tasks that a run performed, not those that were up to date."""
    ran = (e for e in events if e["event"] == "attempt" and e["lane"])
    return {e["task"] for e in ran if not outcomes or e["outcome"] in outcomes}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def in_flight(world: World) -> str:
    """Which program the journal has that says most of where the run was."""
    said = " ".join(p.read_text() for p in (world.root / "cache" / "processes").glob("*.json"))
    kinds = {"the model": '"claude"', "the engine": '"run"', "tests": "run_tests.mjs", "git": '"git"'}
    return next((kind for kind, word in kinds.items() if word in said), "no program")


def left_behind(world: World) -> list[str]:
    """Files that no run needs any more once one has come to its end."""
    places = [world.root.parent / "tmp", world.home / "cache" / "worktrees", world.root / "cache" / "processes"]
    found = [p for place in places for p in place.glob("*") if not (place.name == "worktrees" and not any(p.iterdir()))]
    found += (world.root / "cache").rglob(f"{BESIDE}*")
    return [str(p.relative_to(world.root.parent)) for p in found]


# -- stopping


def stop(way: str, run: subprocess.Popen[bytes], world: World) -> float:
    """Stop a run; the seconds that it took to end."""
    began = time.monotonic()
    if way in SIGNALS:
        run.send_signal(SIGNALS[way])
        run.wait(60)
    else:
        run.kill()
        run.wait()
    while way == TREE and (left := alive(world)):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):  # it was ending anyway
                process.kill()
        psutil.wait_procs(left, 1)
    return time.monotonic() - began


def drive(number: int, base: Base, place: Path, ways: deque[str], rng: random.Random, figures: Figures) -> None:
    """One drive, stopped until it gets through or there are no more `ways` to; counted into `figures`."""
    world = with_places(copy_world(base.world, place))
    finished: set[str] = set()
    tips: list[str] = []
    done = False
    while not done:
        way = ways[0] if ways else ""
        moment = base.seconds * max(0.3, 1 - len(finished) / base.tasks) * rng.uniform(0.02, 1.0)
        so_far = len(runs(world))
        run = world.start("-n", "2", "mutate")
        done = not way or not _comes_to(run, world, way, moment, so_far)
        if done:
            if code := run.wait(600):
                figures.blame("final results that differ", [f"exit status {code}"], number)
        else:
            ways.popleft()
            figures.hit[in_flight(world)] += 1
            seconds = stop(way, run, world)
            figures.stops[way] += 1
            if way in SIGNALS:
                figures.slowest_exit = max(figures.slowest_exit, seconds)
                ended_well = run.returncode == 130 and seconds <= GRACE + 1
                figures.blame(
                    "exits after a signal that are not 130, or late",
                    [] if ended_well else [f"{way}: exit status {run.returncode} after {seconds:.2f} s"], number,
                )  # fmt: skip
                figures.blame("orphans", [" ".join(p.cmdline()) for p in alive(world)], number)
        said = (world.root.parent / "out").read_text()
        figures.blame("tracebacks", [said] if "Traceback" in said else [], number)
        for events in runs(world)[so_far:]:
            figures.blame("finished tasks redone", sorted(finished & performed(events)), number)
            finished |= performed(events, ("ok", "cached", "no-mutants"))
        figures.seen["tasks finished before a stop"] += 0 if done else len(finished)
        targets = list((world.root / "cache" / "scopes").rglob("*.json"))
        figures.blame("half-written targets", [str(p) for p in targets if not _whole(p)], number)
        tips += [t for t in [_tip(world)] if t]
    figures.seen["drives"] += 1
    _count_calls(number, world, figures)
    lost = [tip for tip in tips if not _holds(world, tip)]
    figures.blame("landings lost", lost, number)
    subjects = _landings(world)
    figures.seen["landings"] += len(subjects)
    figures.blame("landings doubled", sorted({s for s in subjects if subjects.count(s) > 1}), number)
    figures.blame("orphans", [" ".join(p.cmdline()) for p in alive(world)], number)
    figures.blame("files left behind", left_behind(world), number)
    now = result(world)
    differs = sorted(k for k in now.keys() | base.result.keys() if now.get(k) != base.result.get(k))
    figures.blame("final results that differ", differs, number)


def _comes_to(run: subprocess.Popen[bytes], world: World, way: str, seconds: float, so_far: int) -> bool:
    """Wait for the moment; False where the run ends before it. A signal has a handler once the run has begun."""
    until = time.monotonic() + seconds
    while time.monotonic() < until or (way in SIGNALS and len(runs(world)) == so_far):
        if run.poll() is not None:
            return False
        time.sleep(0.01)
    return run.poll() is None


def _whole(target: Path) -> bool:
    try:
        return bool(json.loads(target.read_text()))
    except ValueError:
        return False


def _tip(world: World) -> str:
    return world.git("for-each-ref", "--format=%(objectname)", "refs/heads/mutate/main").strip()


def _landings(world: World) -> list[str]:
    return sorted(world.subjects()) if _tip(world) else []


def _holds(world: World, commit: str) -> bool:
    return bool(_tip(world)) and not world.git("rev-list", "--max-count=1", commit, "^mutate/main").strip()


def _count_calls(number: int, world: World, figures: Figures) -> None:
    """Each rule of the script is one question: asked until its answer has arrived, and never again."""
    log = world.root.parent / "calls.jsonl"
    calls, said = lines(log), lines(Path(f"{log}.said"))
    events = [e for run in runs(world) for e in run if e["event"] == "call"]
    for rule in sorted({call["rule"] for call in calls}):
        arrived = min((s["time"] for s in said if s["rule"] == rule), default=float("inf"))
        again = [call for call in calls if call["rule"] == rule and call["time"] > arrived]
        figures.blame("replies that had arrived paid for twice", [call["prompt"][:80] for call in again], number)
    accounted = collections.Counter(e["scope"] for e in events if e["outcome"] == "ok")
    odd = [f"{scope}: {n} times" for scope, n in accounted.items() if n != 1]
    if len(accounted) != len(answered := {s["rule"] for s in said}):
        odd.append(f"{len(accounted)} scopes, and {len(answered)} answers")
    figures.blame("replies that the ledger does not account for once", odd, number)
    figures.seen["calls"] += len(calls)
    figures.seen["replies that arrived"] += len(said)
    figures.seen["replies of calls that outlived their run"] += sum(bool(e["recovered"]) for e in events)
    figures.seen["calls lost in flight"] += sum(e["outcome"] == "lost" for e in events)


# -- the whole


def with_places(world: World) -> World:
    """With a folder for temporary files of its own, so that what is left there is seen."""
    (world.root.parent / "tmp").mkdir(exist_ok=True)
    recordings = {"STANDIN_RECORDINGS": str(world.root.parent.parent / "recordings")}
    return attrs.evolve(world, env={**world.env, **recordings, "TMPDIR": str(world.root.parent / "tmp")})


def undisturbed(world: World, place: Path) -> Base:
    """A run that nothing disturbs, once so that the engine is recorded and once more to compare and to time."""
    results, seconds, tasks = [], 0.0, 0
    for i in range(2):
        copy = with_places(copy_world(world, place / f"undisturbed-{i}"))
        began = time.monotonic()
        copy.doit("-n", "2", "mutate")
        seconds = time.monotonic() - began
        tasks = len(performed(runs(copy)[0]))
        results.append(result(copy))
    assert results[0] == results[1], "two undisturbed runs differ"
    return Base(world, seconds, tasks, results[0])


def make_base(place: Path, node_modules: Path, real: bool) -> Base:
    """The project of eight scopes on a recorded engine, or the one of three on the real one."""
    place.mkdir(parents=True)
    (place / "base").mkdir()
    if real:
        plan = MINI_PLAN.replace("[differential]", "[differential, claude]\n  rounds: 1")
        world = make_world(place / "base", node_modules, plan, HERE / "projects" / "mini")
        names = ("cart", "label", "price")
        world.script([{"match": f"src/{n}.js", "text": '{"tests": []}', "delay": 1} for n in names])
    else:
        plan = project.PLAN.format(engine=STANDINS / "stryker-js")
        world = make_world(place / "base", node_modules, plan, project.make_project(place / "project"))
        world.script(project.script(delay=1.5))
    return undisturbed(world, place)


def campaign(base: Base, place: Path, ways: Sequence[str], seed: int) -> Figures:
    """Stop drives in these ways, in an order and at moments that the seed draws."""
    rng, number = random.Random(seed), 0
    left = deque(rng.sample(ways, len(ways)))
    figures = Figures()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts behind it is deaf to that
    try:
        while left:
            number = figures.seen["drives"] + 1
            drive(number, base, place / f"drive-{number}", left, rng, figures)
            shutil.rmtree(place / f"drive-{number}")
            sys.stderr.write(f"drive {number}: {len(ways) - len(left)} of {len(ways)} stops\n")
    except KeyboardInterrupt:  # a long campaign may be cut short: what it has counted by then counts
        for process in alive(World(place / f"drive-{number}" / "repo", place / f"drive-{number}" / "home")):
            process.kill()
    finally:
        signal.signal(signal.SIGINT, before)
    return figures


def ways_of(kills: int, signals: int) -> list[str]:
    """Both kinds of each, in turn."""
    return [(TREE, ALONE)[i % 2] for i in range(kills)] + [(INT, TERM)[i % 2] for i in range(signals)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.crash", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="on eight scopes, with the engine's reports replayed")
    parser.add_argument("--signals", type=int, default=20)
    parser.add_argument("--real", type=int, default=0, help="kills on three scopes with the real engine")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="crash-campaign-") as name:
        for real, ways in ((False, ways_of(asked.kills, asked.signals)), (True, ways_of(asked.real, 0))):
            if ways:
                place = Path(name) / ("real" if real else "replayed")
                base = make_base(place, SHOP / "node_modules", real)
                figures = campaign(base, place, ways, asked.seed)
                engine = "real StrykerJS" if real else "StrykerJS replayed"
                print(f"\n{engine}; an undisturbed run takes {base.seconds:.1f} s\n{figures.table()}")
                good &= figures.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
