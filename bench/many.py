"""Plans of many trivial tasks: cold, nothing to do, one edit; ours, stock doit, GNU make, ninja and snakemake.

Equal work: task i is `cp src/fi.txt out/fi.txt`, run by a shell, from one input to one output, two at a time. Ours also
holds what a task changed against its file scope, and commits the state of each as it ends; stock doit writes its state
once, at the end; ninja appends a line, make keeps none. CPU seconds are of the command and all its children, for
another's work on the machine does not count in them; the row's seconds are those. snakemake is measured where it is
installed (`pip install snakemake`, some minutes), by file times alone.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.measuring import Row, doit, run

DODO = "from pipeline import plan\n\nDOIT_CONFIG, task_plan = plan(__file__)\n"
STOCK = """\
DOIT_CONFIG = {{"backend": "sqlite3", "dep_file": "doit.db", "verbosity": 1}}


def task_copy():
    for i in range({count}):
        yield {{
            "name": str(i), "actions": [f"cp src/f{{i}}.txt out/f{{i}}.txt"],
            "file_dep": [f"src/f{{i}}.txt"], "targets": [f"out/f{{i}}.txt"],
        }}
"""
# Without our `run`, which stands in for doit's in this environment.
ALONE = (
    "import sys; from doit import doit_cmd; doit_cmd.entry_points = lambda *a, **k: []\n"
    "from doit.plugin import PluginDict; PluginDict.add_plugins = lambda *a, **k: None\n"
    "sys.exit(doit_cmd.DoitMain().run(sys.argv[1:]))"
)


def project(place: Path, count: int, files: dict[str, str]) -> Path:
    root = place
    for folder in ("src", "out"):
        (root / folder).mkdir(parents=True)
    for i in range(count):
        (root / f"src/f{i}.txt").write_text(f"{i}\n")
    for name, text in {".gitignore": "cache/\nout/\n__pycache__/\n.ninja*\ndoit.db*\n.snakemake/\n", **files}.items():
        (root / name).write_text(text)
    for words in ("init -q -b main", "add -A", "-c user.name=b -c user.email=b@b.invalid commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


def declared(count: int) -> str:
    tasks = (
        f"  - {{name: t{i}, run: cp src/f{i}.txt out/f{i}.txt, reads: [src/f{i}.txt], writes: [out/f{i}.txt]}}\n"
        for i in range(count)
    )
    return "version: 1\ntasks:\n" + "".join(tasks)


TOOLS: dict[str, tuple[Callable[[int], dict[str, str]], Sequence[str | Path]]] = {
    "ours": (lambda n: {"dodo.py": DODO, "tasks.yaml": declared(n)}, doit("-n", "2")),
    "stock doit": (
        lambda n: {"dodo.py": STOCK.format(count=n)},
        [sys.executable, "-c", ALONE, "-n", "2", "-P", "thread"],
    ),
    "GNU make": (
        lambda n: {
            "Makefile": f"all: {' '.join(f'out/f{i}.txt' for i in range(n))}\n"
            + "".join(f"out/f{i}.txt: src/f{i}.txt\n\tcp $< $@;\n" for i in range(n))
        },
        ["make", "-s", "-j", "2"],
    ),
    "ninja": (
        lambda n: {
            "build.ninja": "rule cp\n  command = cp $in $out\n"
            + "".join(f"build out/f{i}.txt: cp src/f{i}.txt\n" for i in range(n))
        },
        ["ninja", "--quiet", "-j", "2"],
    ),
    "snakemake": (
        lambda n: {
            "Snakefile": f"rule all:\n    input: expand('out/f{{i}}.txt', i=range({n}))\n"
            "rule copy:\n    input: 'src/f{i}.txt'\n    output: 'out/f{i}.txt'\n    shell: 'cp {input} {output}'\n"
        },
        ["snakemake", "--quiet", "all", "--cores", "2", "--notemp", "--rerun-triggers", "mtime"],
    ),
}
COLD = {"stock doit": "below 1", "ninja": "1.2"}  # asked


def rows(place: Path, count: int, pairs: int) -> list[Row]:
    """Peers in turn, pair by pair."""
    tools = {tool: made for tool, made in TOOLS.items() if tool != "snakemake" or shutil.which(tool)}
    roots = {tool: project(place / tool.replace(" ", "-"), count, files(count)) for tool, (files, _) in tools.items()}
    times: dict[tuple[str, str], list[float]] = {}
    walls: dict[str, list[float]] = {}  # of cold runs
    peaks: dict[str, float] = {}

    def go(what: str) -> None:
        for tool, root in roots.items():
            ran = run(TOOLS[tool][1], root, place / "home")
            times.setdefault((what, tool), []).append(ran.cpu_seconds)
            if what == "cold":
                walls.setdefault(tool, []).append(ran.seconds)
            peaks[tool] = max(peaks.get(tool, 0.0), ran.peak_mib)

    go("cold")
    go("(settling)")
    go("(settling)")  # ours notes what it looked at in the first run that has nothing to do
    for number in range(pairs):
        go("nothing to do")
        time.sleep(0.01)
        for root in roots.values():
            (root / f"src/f{number}.txt").write_text(f"edited {number}\n")
        go("one edit")
        go("(settling)")
        go("(settling)")
    for tool in roots:
        print(f"{count:,} tasks, {tool}: at most {peaks[tool]:.0f} MiB", flush=True)
    peers = [tool for tool in roots if tool != "ours"]

    def against(what: str, of: Mapping[str, Sequence[float]], asked: Mapping[str, str]) -> list[Row]:
        return [Row(f"{what}, against {peer}", of["ours"], of[peer], asked.get(peer, "-")) for peer in peers]

    found = []
    for what in ("cold", "nothing to do", "one edit"):
        of = {tool: times[what, tool] for tool in roots}
        found += against(f"{what}, {count:,} tasks (CPU)", of, COLD if what == "cold" else {})
        if what == "cold":
            found += against(f"cold, {count:,} tasks (wall clock)", walls, COLD)
    nothing = statistics.median(times["nothing to do", "ours"])
    return [
        *found,
        Row(f"one edit among {count:,}, against nothing to do", times["one edit", "ours"], [nothing] * pairs, "1.3"),
    ]


def listing(place: Path, count: int, pairs: int) -> list[Row]:
    """`doit list`, ours and stock doit's."""
    roots = {
        tool: project(place / f"list-{tool}".replace(" ", "-"), count, TOOLS[tool][0](count))
        for tool in ("ours", "stock doit")
    }
    commands: dict[str, Sequence[str | Path]] = {
        "ours": doit("list"),
        "stock doit": [sys.executable, "-c", ALONE, "list", "--all"],
    }
    run(commands["ours"], roots["ours"], place / "home")
    run(commands["ours"], roots["ours"], place / "home")
    times: dict[str, list[float]] = {"ours": [], "stock doit": []}
    for _ in range(pairs):
        for tool, root in roots.items():
            times[tool].append(run(commands[tool], root, place / "home").cpu_seconds)
    return [Row(f"`doit list`, {count:,} tasks (CPU), against stock doit", times["ours"], times["stock doit"], "0.5 s")]
