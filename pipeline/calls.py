"""One call to a model, paid for once: a kept reply that is of use is the answer; else the call is made, and kept.

A call has a name, made of all that decides its reply. Its reply is kept as it comes, before anybody reads it; a note
beside it says that it is whole, and what it takes to use it again. So a crash asks nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import attrs

from pipeline import clock, process
from pipeline.choice import LANE
from pipeline.generators import Reply, read
from pipeline.generators.base import Classifies, believable
from pipeline.host import CannotGoOn
from pipeline.results import Outcome, write_bytes
from pipeline.session import Session

SAME_CALL = "the same call, made by another run"


class Make(Protocol):
    def __call__(self, out_file: Path) -> process.Finished:
        """Make the call; what it says goes to `out_file`."""


@attrs.frozen
class Call:
    session: Session
    name: str  # of its reply
    program: str  # once no call of it does any more, none is made
    who: Classifies
    about: Mapping[str, object]  # whose call it is: fields for the ledger
    noted: Callable[[], Mapping[str, object]]  # what it takes to use the reply again, asked once the call has ended
    ended: Callable[[], int | None] = lambda: None  # exit status of a call that outlived its run, where that is known
    there: Callable[[], bool] = lambda: True  # whether all that such a call left is there still
    over: Callable[[], object] = lambda: (
        None
    )  # once what the call left is kept, or is of no use; under the reply's lock
    barred: Callable[[], str | None] = lambda: None  # why no call is made now

    def reply(self, make: Make) -> Reply:
        """The kept reply where there is one of use (its tokens None: nothing was spent), else that of a call."""
        replies = self.session.replies
        with process.holding(replies.lock(self.name), SAME_CALL):
            if (kept := self._kept()) is not None:
                return kept
            if (stopped := self.session.stopped.get(self.program)) is not None:
                outcome, why = stopped
                return Reply(outcome, detail=f"not asked any more: {why}")
            if (spent := self.barred()) is not None:
                return Reply(Outcome.OVER_BUDGET, detail=spent)
            started = clock.now()
            try:
                finished = make(replies.raw(self.name))
            except process.Stopped:
                self.over()  # it was ended: what it left is no reply
                raise
            got = _believed(read(self.who, finished))
            err = finished.err[-2000:].decode(errors="replace")
            try:
                noted = self.noted()
            except CannotGoOn:  # paid for all the same; what it left stays for the next run
                self._record(got, started=started)
                raise
            # In this order: a reply that is noted is not looked at again, and what it cost would be told nowhere.
            self._record(got, started=started)
            self._note({"exit_code": finished.exit_code, "err": err, **noted})
            self.over()
            if got.outcome is not Outcome.OK:
                replies.drop(self.name)
            if got.outcome in LANE:
                self.session.stopped.setdefault(self.program, (got.outcome, got.detail))
            return got

    def kept(self) -> Reply | None:
        """The kept reply where there is one of use; no call is made."""
        with process.holding(self.session.replies.lock(self.name), SAME_CALL):
            return self._kept()

    def _kept(self) -> Reply | None:
        """The reply that is there, if it is of use; else it is put aside."""
        if not self.session.replies.raw(self.name).exists():
            return None
        replies, note = self.session.replies, read_note(self.session.replies.note(self.name))
        raw = replies.raw(self.name)
        exit_code = note.get("exit_code", self.ended())
        got = _believed(self.who.classify(exit_code, raw.read_bytes(), str(note.get("err", "")).encode()))
        accounted = bool(note) or self.session.accounted(self.name, since=raw.stat().st_mtime)
        if got.outcome is Outcome.OK and (note or self.there()):
            noted = {} if note else self.noted()
            if not accounted:  # its call outlived the run that made it
                self._record(got, recovered=True)
            if not note:
                self._note({"recovered": True, "exit_code": exit_code, **noted})
            self.over()
            return attrs.evolve(got, tokens=None)
        if not accounted:
            lost = Reply(Outcome.LOST, detail="the call died with the run that made it", model=got.model)
            self._record(lost)
        replies.drop(self.name)
        return None

    def _note(self, note: Mapping[str, object]) -> None:
        write_bytes(self.session.replies.note(self.name), json.dumps(note, sort_keys=True).encode())

    def _record(self, got: Reply, started: float | None = None, recovered: bool = False) -> None:
        self.session.call(
            **self.about, model=got.model, reply=self.name,
            outcome=str(got.outcome), detail=got.detail, started=started, ended=clock.now(), recovered=recovered,
            tokens=attrs.asdict(got.tokens) if got.tokens else None,
        )  # fmt: skip


def _believed(reply: Reply) -> Reply:
    return attrs.evolve(reply, tokens=believable(reply.tokens))


def read_note(path: Path) -> dict[str, Any]:
    """A note, {} where there is none."""
    try:
        note = json.loads(path.read_bytes())
        return note if isinstance(note, dict) else {}
    except (OSError, ValueError):
        return {}
