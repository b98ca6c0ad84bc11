"""doit's `run` command: in lanes (lanes.py) where a selected task has a pool, else doit's own."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
from doit import cmd_run, runner
from doit.action import PythonAction
from doit.control import TaskControl
from doit.exceptions import InvalidCommand, InvalidTask
from doit.task import Stream

from pipeline import clock, limits, live, process, schedule, telling
from pipeline.action import Refusal, Step, check_pool, compact, meta
from pipeline.host import Host, RunInfo, in_the_way
from pipeline.lanes import LanesRunner
from pipeline.memory import Memory
from pipeline.model import GENERATION
from pipeline.running import Running
from pipeline.selection import closure
from pipeline.signals import INTERRUPTED, Signals

# Options without which the same tasks would be up to date.
_BESIDE = {"num_process", "par_type", "reporter", "outfile", "verbosity", "failure_verbosity", "continue", "always"}
UNREAD = 128 + signal.SIGPIPE  # what a shell says of a program whose reader went away


class Run(cmd_run.Run):  # type: ignore[misc]
    """doit's run; with lanes where the selected tasks have pools."""

    name = "run"

    def execute(self, params: Any, args: list[str]) -> int:
        # `-n 0` is doit's default as well: only the parser knows whether somebody said it.
        self._n_given = "num_process" in params._non_default_keys
        self._reporter_given = "reporter" in params._non_default_keys
        self._plain = set(params._non_default_keys) <= _BESIDE and not self.opt_vals
        status: int = super().execute(params, args)
        return status

    def _execute(
        self, outfile: Any, verbosity: int | None = None, always: bool = False, continue_: bool = False,
        reporter: Any = "console", num_process: int = 0, par_type: str = "process", single: bool = False,
        auto_delayed_regex: bool = False, force_verbosity: bool = False, failure_verbosity: int = 0, pdb: bool = False,
    ) -> int:  # fmt: skip
        selected = closure(self.task_list, self.sel_tasks, single)
        if not any(meta(task, "pool") for task in selected):
            reports_only = self._reports_only(selected)
            if reports_only:
                reporter = "error-only"
            try:
                status: int = super()._execute(
                    outfile, verbosity, always, continue_, reporter, num_process, par_type, single,
                    auto_delayed_regex, force_verbosity, failure_verbosity, pdb,
                )  # fmt: skip
                if reports_only and sys.stdout is not None:
                    sys.stdout.flush()
            except OSError as error:
                if not reports_only:
                    raise
                # `doit plan | head`: its reader has read enough. What is still in the buffer goes nowhere.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                if isinstance(error, BrokenPipeError):
                    return UNREAD
                sys.stderr.write(f"standard output cannot be written: {error.strerror}\n")
                return 3
            return status
        if par_type not in ("process", "thread"):
            raise InvalidCommand(f"Invalid parallel type {par_type}")
        PythonAction.pm_pdb = pdb
        for task in self.task_list:
            compact(task)
        self.control = TaskControl(self.task_list, auto_delayed_regex=auto_delayed_regex)
        self.control.process(self.sel_tasks)
        if single:
            _drop_task_deps(self.control)
        host = _host(selected)
        lanes = self._lanes(num_process, host, selected)
        memory = _memory(selected, host)
        pools = {meta(task, "pool") for task in selected if memory.of(task.name)}
        at_once = min(len(memory.asks), sum(lanes.capacity[pool] for pool in pools))
        lanes = attrs.evolve(lanes, line=f"{lanes.line}{memory.told(at_once)}")
        words = None if self.sel_default_tasks else tuple(self.sel_tasks)
        scopes = tuple(dict.fromkeys(scope for task in selected if (scope := meta(task, "scope"))))
        names = tuple(task.name for task in selected)
        info = RunInfo(_run_id(), lanes, names, scopes, always, clock.now(), words, self._plain)
        inbox: queue.SimpleQueue[Running | None] = queue.SimpleQueue()
        with _told_plainly(), Signals(lambda: inbox.put(None)) as signals, contextlib.ExitStack() as stack:
            try:
                with signals.raising():
                    host.open(info)
            except KeyboardInterrupt:
                return INTERRUPTED
            result, lanes_runner, summary = runner.ERROR, None, ""
            looked: list[LanesRunner] = []
            watching = stack.enter_context(contextlib.ExitStack())
            try:
                if isinstance(outfile, str):
                    outfile = stack.enter_context(Path(outfile).open("w", encoding="utf-8"))
                report = self.reporters[reporter] if isinstance(reporter, str) else reporter
                watched = live.wanted(outfile, telling.for_people(report), verbosity)
                if watched:
                    outfile = watching.enter_context(live.view(lambda: looked[0].look() if looked else None))
                self.outstream = outfile
                if isinstance(report, type):
                    report = report(outfile, {"failure_verbosity": failure_verbosity})
                lanes_runner = LanesRunner(
                    self.dep_manager, report, continue_, always, Stream(verbosity, force_verbosity),
                    host=host, plan=selected, lanes=lanes, memory=memory, signals=signals, inbox=inbox,
                )  # fmt: skip
                lanes_runner.watched = watched
                looked.append(lanes_runner)
                result = lanes_runner.run_all(self.control.task_dispatcher())
            finally:
                with process.tidying():
                    alone = lanes_runner is not None and lanes_runner.alone
                    del self.control, self.task_list
                    selected.clear()
                    status, summary = host.close(result, signals.hit, alone)
                status = INTERRUPTED if signals.hit else max(result, status)
                watching.close()
                if lanes_runner:
                    lanes_runner.teller.complete(summary, status)
            return status

    def _reports_only(self, selected: Sequence[Any]) -> bool:
        """Is what the tasks print all that there is to say? A program may read it: doit adds no line of its own."""
        return not self._reporter_given and bool(selected) and all(meta(task, "report") for task in selected)

    def _lanes(self, num_process: int, host: Host, selected: Sequence[Any]) -> schedule.Lanes:
        n = num_process if self._n_given or num_process else None
        if n is not None and n < 1:
            raise InvalidCommand(f"-n {n}: the validation lane needs a slot at least; say -n 1 or more")
        users: dict[str, set[str]] = defaultdict(set)
        for task in selected:
            if pool := meta(task, "pool"):
                users[pool].add(meta(task, "scope") or task.name)
        # One scope's tasks wait for each other. But a generation may take slots beside its own: how many of them could
        # ever be used is not known.
        width = {pool: None if pool == GENERATION else len(scopes) for pool, scopes in users.items()}
        try:
            cap = schedule.max_slots(os.environ.get(schedule.MAX_SLOTS))
        except ValueError as error:
            raise InvalidCommand(str(error)) from None
        lanes = schedule.lanes(n, host.pools, width, cap, limits.cores(), host.engine_workers)
        for task in selected:
            check_pool(task, lanes)
        return lanes


def _memory(selected: Iterable[Any], host: Host) -> Memory:
    """What there is to share out among tasks that ask for memory. Raises InvalidTask for one that could never start."""
    said = {task.name: asked for task in selected if (asked := meta(task, "memory"))}
    seen = {task.name: peak for task in selected if task.name not in said and (peak := host.peak(task.name))}
    try:
        there, source = limits.memory() if said or seen else (0, "")
    except ValueError as error:
        raise InvalidCommand(str(error)) from None
    for name, asked in said.items():
        if asked > there:
            whose = "this machine has" if source == "this machine" else f"{source} leaves"
            raise InvalidTask(
                f"{name}: asks for {asked / 2**30:.1f} GiB of memory, and {whose} {there / 2**30:.1f} GiB; "
                "ask for less, or run it on another"
            )
    return Memory({**{name: min(peak, there) for name, peak in seen.items()}, **said}, there, source)


@contextlib.contextmanager
def _told_plainly() -> Iterator[None]:
    """What only the machine is to blame for (a full disk) ends the run as a refusal does, without a traceback."""
    try:
        yield
    except Exception as error:
        if not in_the_way(error):
            raise
        raise Refusal(f"the run cannot go on: {error}; run again when that is mended") from None


def _run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{os.getpid()}"


def _host(selected: Iterable[Any]) -> Host:
    for task in selected:
        for action in task.actions if meta(task, "pool") else ():
            if isinstance(action, Step):
                return action.host
    raise InvalidTask("tasks with a pool have one action, a Step; none has")


def _drop_task_deps(control: Any) -> None:
    """What -s does in doit."""
    for name in control.selected_tasks:
        task = control.tasks[name]
        for each in [control.tasks[dep] for dep in task.task_dep] if task.has_subtask else [task]:
            each.task_dep = []
