"""A dodo without pools runs as doit's own command runs it: the same output, the same exit status, the same files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from doit import cmd_run
from doit.doit_cmd import DoitMain

from pipeline.command import List, Run

# One process for all command lines of a case, and a fork of it for each: most of a run's time is the import of doit.
OURS = """
import json, os, sys
from pathlib import Path
import pipeline.runner
from doit.doit_cmd import DoitMain

DoitMain.BIN_NAME = "doit"
for number, words in enumerate(json.loads(sys.argv[1])):
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for fd, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"../{Path.cwd().name}.{number}.{name}", os.O_WRONLY | os.O_CREAT), fd)
    sys.exit(DoitMain().run(words.split()))
"""
STOCK = "import doit.plugin; doit.plugin.PluginDict._from_entry_points = lambda self, category: {}\n" + OURS

FILES = """
    def task_compile():
        return {"actions": ["cat in.txt > out.txt; echo compiled"], "file_dep": ["in.txt"], "targets": ["out.txt"],
                "clean": True}
    def task_use():
        return {"actions": ["wc -c < out.txt"], "file_dep": ["out.txt"], "verbosity": 2}
"""
GROUPS = """
    def task_sub():
        for name in ("a", "b", "c"):
            yield {"name": name, "actions": ["echo sub %s" % name], "verbosity": 2}
    def task_group():
        return {"actions": None, "task_dep": ["sub", "single"]}
    def task_single():
        return {"actions": [["echo", "no shell"]], "verbosity": 2}
    def task__hidden():
        return {"actions": ["echo hidden"], "verbosity": 2}
"""
VALUES = """
    def make(): return {"x": 5, "y": "text"}
    def show(x, all_of_it=None): print("got", x, all_of_it)
    def task_make(): return {"actions": [make]}
    def task_parts():
        for i in (1, 2):
            yield {"name": str(i), "actions": [(lambda n: {"n": n}, [i])]}
    def task_show():
        return {"actions": [show], "getargs": {"x": ("make", "x"), "all_of_it": ("parts", "n")}, "verbosity": 2}
"""
SETUP = """
    from doit.tools import run_once
    def task_server():
        return {"actions": ["echo up"], "teardown": ["echo down"], "verbosity": 2}
    def task_test():
        for name in ("one", "two"):
            yield {"name": name, "actions": ["echo test"], "setup": ["server"], "uptodate": [run_once], "verbosity": 2}
"""
DYNAMIC = """
    from doit import create_after
    def deps(): return {"file_dep": ["in.txt"], "task_dep": ["late"]}
    def task_deps(): return {"actions": [deps]}
    def task_late(): return {"actions": ["echo late"], "verbosity": 2}
    def task_calc(): return {"actions": ["echo calc"], "calc_dep": ["deps"], "verbosity": 2}
    @create_after(executed="late", target_regex=r".*\\.made")
    def task_delayed():
        for name in ("x", "y"):
            yield {"name": name, "actions": ["echo %(targets)s; touch %(targets)s"], "targets": [name + ".made"],
                   "verbosity": 2}
"""
PARAMS = """
    from doit import get_var, task_params
    def say(name, flag, pos): print(name, flag, pos, get_var("v", "none"))
    def task_say():
        return {"actions": [say], "pos_arg": "pos", "verbosity": 2, "params": [
            {"name": "name", "short": "n", "long": "name", "default": "nobody"},
            {"name": "flag", "long": "flag", "type": bool, "default": False}]}
    def task_cmd():
        return {"actions": ["echo %(name)s"], "verbosity": 2,
                "params": [{"name": "name", "short": "n", "default": "d"}]}
    @task_params([{"name": "many", "long": "many", "default": 2, "type": int}])
    def task_made(many):
        for i in range(many):
            yield {"name": str(i), "actions": ["echo made"], "verbosity": 2}
"""
FAILURES = """
    import sys
    def broken(): raise ValueError("broken on purpose")
    def talk(): print("out"); print("err", file=sys.stderr); return False
    def task_ok(): return {"actions": ["echo fine"], "verbosity": 2}
    def task_exit(): return {"actions": ["echo some; echo more >&2; exit 3"]}
    def task_raise(): return {"actions": [broken]}
    def task_false(): return {"actions": [talk]}
    def task_needs(): return {"actions": ["echo never"], "task_dep": ["exit"]}
    def task_missing(): return {"actions": ["echo never"], "file_dep": ["not-there"]}
    def task_last(): return {"actions": ["echo last"], "verbosity": 2}
"""
CONFIG = """
    DOIT_CONFIG = {"default_tasks": ["two"], "verbosity": 2, "backend": "json", "reporter": "executed-only",
                   "num_process": 2, "par_type": "thread"}
    def task_one(): return {"actions": ["echo one"]}
    def task_two(): return {"actions": ["echo two"], "uptodate": [True]}
"""
POOLS = """
    from pipeline.action import Step
    class Host:
        def __getattr__(self, name): raise AssertionError("the host was asked for " + name)
    def task_measure():
        for scope in ("a", "b"):
            yield {"name": scope, "actions": [Step(Host(), scope, None)], "meta": {"pool": "validation"}}
    def report(only, names): print("report", only, names)
    def task_report():
        return {"actions": [report], "verbosity": 2, "pos_arg": "names",
                "params": [{"name": "only", "long": "only", "default": ""}]}
"""

CASES = {
    "file_dep, targets, clean, forget": (
        FILES, ["", "", "list --all --status", "clean", "", "forget use", "use", "out.txt", "info use", "reset-dep"]),
    "groups and subtasks": (GROUPS, ["", "group", "sub:b sub:a", "sub:*", "list --all -p", "_hidden single"]),
    "getargs": (VALUES, ["show", "show", "make", "-s show"]),
    "setup and teardown": (SETUP, ["", "", "test:two", "forget", "-n 2 -P process test:one", "-s test:one"]),
    "calc_dep and create_after": (DYNAMIC, ["calc", "calc", "delayed", "x.made", "delayed:y", "", "list"]),
    "params and arguments": (
        PARAMS, ["say", "say -n me --flag a b", "v=7 say one", "cmd -n you say last", "made --many 3", "say --bad"]),
    "failures": (
        FAILURES, ["", "--continue", "-c --failure-verbosity 2", "raise", "-v 0 false", "-v 2 false", "ok nothing",
                   "needs", "missing last", "-c -n 2", "exit -n 2"]),
    "reporters": (
        FAILURES, [f"-c -r {each}" for each in ("console", "executed-only", "json", "zero", "error-only", "none")]
        + ["-r json ok", "-o log -c"]),
    "verbosity": (FILES, ["-v 0 -a", "-v 1 -a", "-v 2 -a"]),
    "ignore": (GROUPS, ["ignore sub:a", "", "sub:a", "forget sub:a", "sub:a"]),
    "parallel": (
        GROUPS, ["-n 2 -P process", "-n 2 -P thread", "-n 3", "-n 0", "-n x", "-n 2 -P fibre", "-n -1 single"]),
    "configuration": (CONFIG, ["", "one", "-n 0 one", "-r console"]),
    "help": (GROUPS, ["help run", "help", "help single", "help task"]),
    "a dodo with pools, none of them selected": (
        POOLS, ["report", "report --only measure:a", "report measure", "-r json report", "-n 2 report", "list --all"]),
}  # fmt: skip


def run(program: str, commands: list[str], folder: Path) -> list[tuple[str, str, list[str], list[str]]]:
    """For each command line: itself, the exit status, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(commands)], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    results = []
    for number, (words, status) in enumerate(zip(commands, done.stdout.split(), strict=True)):
        out, err = (folder.parent / f"{folder.name}.{number}.{name}" for name in ("out", "err"))
        results.append((words, status, shown(out.read_text(), folder, words), shown(err.read_text(), folder, words)))
    return results


def shown(text: str, folder: Path, words: str) -> list[str]:
    """Lines of output without what differs from run to run: times and addresses. What runs in parallel writes as it
    comes, even within a line: then its characters."""
    if "json" in words and text.startswith("{"):
        document = json.loads(text)
        for task in document["tasks"]:
            task["started"], task["elapsed"] = bool(task["started"]), bool(task["elapsed"])
        text = json.dumps(document, indent=1)
    text = re.sub(r" at 0x[0-9a-f]+", "", text.replace(str(folder), "."))
    return sorted(text) if "-n" in words.split() else text.splitlines()


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != "__pycache__"}


@pytest.mark.parametrize("case", CASES)
def test_a_dodo_without_pools_runs_as_in_doit(case: str, tmp_path: Path) -> None:
    dodo, commands = CASES[case]
    ours, stock = tmp_path / "ours", tmp_path / "stock"
    for folder in (ours, stock):
        folder.mkdir()
        (folder / "dodo.py").write_text(textwrap.dedent(dodo))
        (folder / "in.txt").write_text("input")
    for one, other in zip(run(OURS, commands, ours), run(STOCK, commands, stock), strict=True):
        assert one == other
    assert files(ours) == files(stock)
    if (ours / "log").exists():
        assert shown((ours / "log").read_text(), ours, "") == shown((stock / "log").read_text(), stock, "")


def test_the_entry_points_replace_doits_run_and_list_and_nothing_else() -> None:
    commands = DoitMain().get_cmds()
    assert (commands.get_plugin("run"), commands.get_plugin("list")) == (Run, List)
    assert {name for name in commands if commands.get_plugin(name).__module__.startswith("pipeline")} == {"run", "list"}


def test_its_options_are_doits() -> None:
    assert Run.cmd_options == cmd_run.Run.cmd_options
