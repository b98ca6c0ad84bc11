"""What `doit` finds under the name `run`. Light: where nothing has changed, nothing more is loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from doit import cmd_run
from doit.cmdparse import CmdParseError
from doit.doit_cmd import _CMDLINE_VARS


class Run(cmd_run.Run):  # type: ignore[misc]
    """doit's run, in lanes where the selected tasks have pools (runner.py)."""

    name = "run"

    def __init__(self, **kwargs: Any) -> None:
        self._made_with = kwargs
        super().__init__(**kwargs)

    def parse_execute(self, in_args: list[str]) -> int:
        said = self._unchanged(in_args)
        if said is not None:
            sys.stdout.write(f"{said}\n")
            return 0
        from pipeline.runner import Run as InLanes

        status: int = InLanes(**self._made_with).parse_execute(in_args)
        return status

    def _unchanged(self, in_args: list[str]) -> str | None:
        home = Path("cache")
        if not (home / "unchanged.json").exists() or not Path("dodo.py").exists():
            return None
        if any(home.glob("paused/*.json")):
            return None  # a killed run has left a watcher paused
        if _CMDLINE_VARS or {"GLOBAL", "run"} & set(self.config):
            return None  # options from elsewhere
        try:
            params, words = self.cmdparser.parse(in_args)
        except CmdParseError:
            return None  # said by the full command
        if not set(params._non_default_keys) <= {"num_process"} or params["num_process"] < 1:
            return None
        from pipeline import unchanged

        return unchanged.find(home.absolute(), words or None)
