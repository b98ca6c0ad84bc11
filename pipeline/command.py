"""What `doit` finds under the names `run` and `list`. Light: where nothing has changed, nothing more is loaded."""

from __future__ import annotations

import gc
import io
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doit import cmd_list, cmd_run
from doit.cmdparse import CmdParseError
from doit.doit_cmd import _CMDLINE_VARS

from pipeline import limits

if TYPE_CHECKING:
    from pipeline import reached, unchanged


class Run(cmd_run.Run):  # type: ignore[misc]
    """doit's run, in lanes where the selected tasks have pools (runner.py)."""

    name = "run"

    def __init__(self, **kwargs: Any) -> None:
        self._made_with = kwargs
        super().__init__(**kwargs)

    def parse_execute(self, in_args: list[str]) -> int:
        _spell_out()
        in_args = limits.counted(in_args)
        gc.disable()  # it would look through the same states of 20,000 files again and again
        try:
            changed = self._changed(in_args)
            if changed and not changed.files and not changed.note["owed"]:
                sys.stdout.write(f"{changed.note['said']}\n")
                return 0
            made_with = self._made_with
            if narrowed := self._narrowed(changed):
                from pipeline import few

                made_with = {**made_with, "task_loader": few(narrowed)}
                in_args = in_args[: len(in_args) - len(narrowed.words or ())]  # they stand for what is loaded
            from pipeline.runner import Run as InLanes

            gc.freeze()
        finally:
            gc.enable()
        command = InLanes(**made_with)
        try:
            status: int = command.parse_execute(in_args)
        except CmdParseError as error:
            if _host(getattr(command, "task_list", ())) is None:
                raise  # a dodo without a plan of ours runs as in doit
            raise CmdParseError(_plainly(str(error))) from None
        return status

    def _narrowed(self, changed: unchanged.Changed | None) -> reached.Narrowed | None:
        if not changed or not changed.note["table"]:
            return None
        from pipeline import reached

        return reached.narrowed(Path("cache").absolute(), changed)

    def _changed(self, in_args: list[str]) -> unchanged.Changed | None:
        """What has changed since the last such run, where it left a note that can tell."""
        home = _home("unchanged.json", self)
        if home is None or any(home.glob("paused/*.json")):
            return None  # a killed run has left a watcher paused
        try:
            params, words = self.cmdparser.parse(in_args)
        except CmdParseError:
            return None  # said by the full command
        if not set(params._non_default_keys) <= {"num_process", "continue"}:
            return None
        if "num_process" in params._non_default_keys and params["num_process"] < 1:
            return None
        from pipeline import unchanged

        return unchanged.find(home, words or None)


class List(cmd_list.List):  # type: ignore[misc]
    """doit's list. Of a plan that has not changed, what it said last."""

    name = "list"

    def parse_execute(self, in_args: list[str]) -> int:
        _spell_out()
        if in_args:
            status: int = super().parse_execute(in_args)
            return status
        if (home := _home("listed.json", self)) is not None:
            from pipeline import unchanged

            found = unchanged.find(home, None, unchanged.LIST)
            if found and not found.files:
                sys.stdout.write(found.note["said"])
                return 0
        self.outstream = kept = io.StringIO()
        try:
            status = super().parse_execute(in_args)
        finally:
            sys.stdout.write(kept.getvalue())
        if status == 0 and not _from_elsewhere(self):
            self._keep(kept.getvalue())
        return status

    def _keep(self, said: str) -> None:
        if (keep := getattr(_host(self.task_list), "listed", None)) is not None:
            keep(said)


def _host(tasks: Iterable[Any]) -> object:
    """What our tasks of a plan have in common; None where there is none of ours."""
    hosts = (getattr(action, "host", None) for task in tasks for action in task.actions)
    return next(filter(None, hosts), None)


def _plainly(error: str) -> str:
    """What doit says of a wrong option, without the representation of all that it knows."""
    said = re.fullmatch(r"Error parsing (Task|Command): (.*) \(parsing options: \[(.*)\]\)\. Got: .*", error, re.DOTALL)
    if said is None:
        return error
    kind, what, options = said.groups()
    if (flag := re.fullmatch(r"option (--\S+) must not have an argument", what)) is not None:
        for word in sys.argv[1:]:
            name, _, value = word.partition("=")
            if "=" in value and len(name) > 2 and flag[1].startswith(name):
                return f"{what}; it stands beside it: {flag[1]} {value}"
    names = [f"--{long}" if long else f"-{short}" for short, long in _OPTION.findall(options) if long or short]
    of = "this task" if kind == "Task" else "doit run"
    there = f"{of} takes {', '.join(names)}" if names else f"{of} takes none"
    return f"{what}; {there} (doit help {'TASK' if kind == 'Task' else 'run'} says what each is)"


_OPTION = re.compile(r"'short':'(.*?)','long':'(.*?)'")


def _spell_out() -> None:
    """What the encoding of a stream has no letters for is written as an escape: no run ends by an arrow."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _home(note: str, command: Any) -> Path | None:
    """The folder of the cache, where there is such a note, and nothing but it to go by."""
    home = Path("cache")
    if _from_elsewhere(command) or not (home / note).exists() or not Path("dodo.py").exists():
        return None
    return home.absolute()


def _from_elsewhere(command: Any) -> bool:
    """Are there variables on the command line, options in a configuration file, or another dodo file?"""
    if command.opt_vals or not {"DOIT_FILE", "DOIT_SEEK_FILE"}.isdisjoint(os.environ):
        return True
    return bool(_CMDLINE_VARS or {"GLOBAL", command.name} & set(command.config))
