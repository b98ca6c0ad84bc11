"""What people are told while a run goes on, through doit's reporters."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import Any

import attrs
from doit.reporter import ConsoleReporter, JsonReporter, ZeroReporter

from pipeline import schedule
from pipeline.host import Attempt, Host
from pipeline.model import VALIDATION


def for_people(reporter: Any) -> bool:
    """Is it doit's console reporter, or one made of it, and not one that is there to be silent?"""
    kind = reporter if isinstance(reporter, type) else type(reporter)
    return issubclass(kind, ConsoleReporter) and not issubclass(kind, ZeroReporter)


def visible(text: str) -> str:
    """Text with what would steer a terminal written out: a model's words are in it, and names of files."""
    return _STEERS.sub(lambda m: m[0].encode("unicode_escape").decode(), text)


_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@attrs.frozen
class Teller:
    reporter: Any
    lanes: schedule.Lanes
    quiet: bool = False  # `-v 0`: of ours nothing while all goes well

    def say(self, text: str) -> None:
        """A line of our own."""
        if for_people(self.reporter) and not self.quiet:
            self.reporter.write(f"{visible(text)}\n")

    def show(self, task: Any, attempt: Attempt) -> None:
        """What the programs of a task have said."""
        task.actions[0].out = attempt.output
        if attempt.output and task.verbosity == 2:
            sys.stdout.write(attempt.output if attempt.output.endswith("\n") else f"{attempt.output}\n")

    def greet(self, host: Host) -> None:
        self.say(self.lanes.line)
        self._warn_of_memory(host.engine_peak_bytes)
        for line in host.notes():
            self.say(line)

    def _warn_of_memory(self, each: int | None) -> None:
        slots = self.lanes.capacity[VALIDATION]
        if not each:
            return
        import psutil

        free = psutil.virtual_memory().available
        if slots * each > free:
            text = (
                f"warning: validation {slots} × {each / 2**30:.1f} GiB an engine run needs more than the "
                f"{free / 2**30:.1f} GiB of memory that are free; -n {max(1, free // each)} fits"
            )
            if isinstance(self.reporter, JsonReporter):
                sys.stderr.write(f"{text}\n")  # it keeps that for its document
            self.say(text)

    def complete(self, summary: str, status: int) -> None:
        """End the report; doit's JSON document stays one. status: what the run is about to exit with."""
        if not isinstance(self.reporter, JsonReporter):
            self.reporter.complete_run()
            if summary:
                attrs.evolve(self, quiet=self.quiet and status == 0).say(summary)
            return
        stream, self.reporter.outstream = self.reporter.outstream, io.StringIO()
        self.reporter.complete_run()
        document = json.loads(self.reporter.outstream.getvalue())
        json.dump(document | {"lanes": self.lanes.line, "summary": summary}, stream)
