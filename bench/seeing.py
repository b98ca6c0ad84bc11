"""What it costs to see: a ledger of 100,000 events folded, and the live view of a run of ten tasks a second.

`python -m bench seeing` prints both. The fold's peer is the reading of the same lines as JSON and no more; the view's
is the same run at a terminal that is told to be dumb.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from bench.measuring import at_a_terminal, doit, run
from pipeline import live
from pipeline.ledger import line_of

EVENTS = 100_000
TASKS = 300
TOKENS = {"source": "envelope", "fresh_input": 900, "cache_write": 0, "cache_read": 0, "output": 300, "cost": 0.01}
DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"


def ledger(path: Path, runs: int) -> int:
    """Write a ledger of 100,000 events, the same for each run but its name. Returns the number of events."""
    with path.open("wb") as file:
        for n in range(runs):
            file.writelines(line_of({"event": e["event"], "run": f"r{n}", **e}) for e in drive(EVENTS // runs))
    return sum(1 for _ in path.open("rb"))


def drive(count: int, seed: int = 1) -> list[dict[str, object]]:
    """About so many events as a drive writes them: 1,000 scopes whose rounds alternate between two lanes; each task
    starts and ends, each generation asks a model once, each validation proves what came."""
    chance = random.Random(seed)
    free = {"validation": [(0.0, slot) for slot in range(4)], "generation": [(0.0, slot) for slot in range(8)]}
    scopes = [f"src/{n}.js" for n in range(1000)]
    last: dict[str, tuple[str, float]] = {}
    events: list[dict[str, object]] = []
    turn = 0
    while len(events) < count - 2:
        lane, scope = ("generation", "validation")[turn // 1000 % 2], scopes[turn % 1000]
        before, ready = last.get(scope, (None, 0.0))
        since, slot = heapq.heappop(free[lane])
        started = max(since, ready) + 0.001
        ended = started + chance.uniform(0.5, 4.0)
        heapq.heappush(free[lane], (ended, slot))
        kind = "generate" if lane == "generation" else "validate"
        name, round_ = f"{kind}:{scope}:{turn // 2000}", turn // 2000
        place = {"kind": kind, "lane": lane, "slot": slot, "after": before, "ready": ready}
        events.append({"event": "started", "started": started - 0.0005, "tasks": [name], "scopes": [scope], **place})
        attempt = {
            "event": "attempt", "task": name, "scope": scope, "round": round_, "share": 1.0, "started": started,
            "ended": ended, "outcome": "ok", "detail": "", "cpu_seconds": 1.0, "needs": [before] if before else [],
            **place,
        }  # fmt: skip
        if lane == "generation":
            call = {"at": ended, "started": started, "ended": ended, "outcome": "ok", "model": "m", "attempt": 1}
            events.append({"event": "call", "scope": scope, "round": round_, **call, "tokens": dict(TOKENS)})
            attempt |= {"calls": 1, "candidates": 3, "model": "m", "waited": 0.0, "tokens": dict(TOKENS)}
        else:
            attempt |= {"killed": 2, "proved": 2, "dropped": 1, "spans": [["phase", "prove", started + 0.3, ended]]}
        events.append(attempt)
        last[scope] = name, ended
        turn += 1
    events.sort(key=lambda event: float(str(event["started"] if event["event"] == "started" else event["ended"])))
    events.insert(0, {"event": "run-started", "at": 0.0, "lanes": {"validation": 4, "generation": 8}, "scopes": scopes})
    events.append({"event": "run-ended", "at": events[-1]["ended"], "status": 0, "interrupted": False})
    return events


FOLD = """\
import json, sys, time
from pathlib import Path
from types import SimpleNamespace
import orjson
from pipeline.reports import figures, past, whole
path = Path(sys.argv[1])
began = time.process_time()
for line in path.open("rb"): orjson.loads(line)
read = time.process_time() - began
began = time.process_time()
with past.no_collection():
    found = past.Past(SimpleNamespace(info=None, plan=SimpleNamespace(since=""), ledger_path=path))
    runs, told = list(whole.runs(found.runs)), found.figures
print(json.dumps([read, time.process_time() - began, told.wall]))
"""


def fold(place: Path) -> None:
    """What `doit report` makes of the ledger: read, attributed, summed, tokens, bound, history; and the command."""
    path = place / "ledger.jsonl"
    for runs in (10, 1):
        count = ledger(path, runs)
        for _ in range(3):
            ran = subprocess.run([sys.executable, "-c", FOLD, str(path)], capture_output=True, text=True, check=True)
            read, folded, wall = json.loads(ran.stdout)
            print(
                f"a ledger of {count:,} events of {runs} runs, the last {wall:,.0f} s by its clock: read and folded "
                f"{folded:.2f} s of CPU (asked: under 1), read alone {read:.2f} s",
                flush=True,
            )
    root = project(place / "q", TASKS)
    nothing = run(doit("report"), root, place).cpu_seconds
    (root / "cache").mkdir(exist_ok=True)
    path.rename(root / "cache" / "ledger.jsonl")
    for _ in range(3):
        seen = run(doit("report"), root, place).cpu_seconds
        print(f"doit report: {seen:.2f} s of CPU with its page, {nothing:.2f} s without a ledger", flush=True)


def project(root: Path, tasks: int) -> Path:
    root.mkdir()
    (root / "dodo.py").write_text(DODO)
    lines = [
        f'  - {{name: t{n}, run: "sleep 0.2", pool: {"generation" if n % 2 else "validation"}}}' for n in range(tasks)
    ]
    (root / "tasks.yaml").write_text("\n".join(["version: 1", "pools: {generation: 1}", "tasks:", *lines, ""]))
    (root / ".gitignore").write_text("cache/\n__pycache__/\n")
    for words in ("init -q", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def view(place: Path) -> None:
    each, line = drawing()
    print(
        f"the view: {each * 1000:.2f} ms of CPU to draw it, once a second, {line * 1e6:.0f} µs for a line above it: "
        f"{each / live.EVERY + 20 * line:.2%} of a core at ten tasks a second (asked: under 1)",
        flush=True,
    )
    root = project(place / "p", TASKS)
    for _ in range(3):
        seen, seconds = _seen(root, "xterm")
        dumb, _ = _seen(root, "dumb")
        print(
            f"{TASKS} tasks, {TASKS / seconds:.1f} a second: {seen:.2f} s of CPU with the view, {dumb:.2f} s without: "
            f"{(seen - dumb) / seconds:.2%} of a core",
            flush=True,
        )


def drawing(times: int = 200) -> tuple[float, float]:
    """CPU seconds of one drawing of twelve tasks in two lanes, and of a line that is written above it."""
    lanes = {"validation": 4, "generation": 8}
    doing = [
        live.Doing(lane, (f"{lane}:src/{n}.js:1",), float(n)) for lane, slots in lanes.items() for n in range(slots)
    ]
    state = live.State(lanes, lanes, doing, ["3 of 40 scopes", "12 kills", "1,000 tokens", "about 3:00 min left"])
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        above = live.Above(nowhere, live.drawing(lambda: state))
        above.redraw()  # rich is loaded
        began = time.process_time()
        for _ in range(times):
            above.redraw()
        each = (time.process_time() - began) / times
        began = time.process_time()
        for _ in range(10 * times):
            above.write(".  task\n")
        return each, (time.process_time() - began) / (10 * times)


def _seen(root: Path, term: str) -> tuple[float, float]:
    """CPU seconds of doit itself, and seconds by the clock."""
    env = {key: value for key, value in os.environ.items() if key != "CI"}
    names = [f"t{n}" for n in range(TASKS)]
    began = time.monotonic()
    said, status = at_a_terminal(
        [sys.executable, "-c", MEASURED, "-n", "1", "-a", *names], root,
        {**env, "TERM": term, "DOIT_MUTATE_HOME": str(root.parent)},
    )  # fmt: skip
    if status != 0:
        raise RuntimeError(said[-4000:])
    return float((root / "cpu").read_text()), time.monotonic() - began


MEASURED = """\
import resource, sys
from doit.doit_cmd import DoitMain
status = DoitMain().run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
open("cpu", "w").write(str(used.ru_utime + used.ru_stime))
sys.exit(status)
"""


def figures(place: Path) -> None:
    fold(place)
    view(place)
