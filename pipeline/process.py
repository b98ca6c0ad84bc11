"""Run a program: its own session, time limit, output to files, CPU and memory.

Every child leads a session of its own, so that ending it ends all that it started. While it lives it is written in
a journal, so that the next run can end what a killed one left behind.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import attrs
import filelock

from pipeline import account, journals, lifetime, scratch, starting
from pipeline import sandbox as sandboxes
from pipeline.lifetime import GRACE
from pipeline.sandbox import Sandbox
from pipeline.starting import NotFound as NotFound

_MOST_SAID = 1 << 18  # bytes of either output that messages are made from
_LONGEST_LINE = 1000  # characters; an engine that prints without end would fill targets, ledger and screen
T = TypeVar("T")
R = TypeVar("R")


class Stopped(Exception):
    """The run is ending: the program was ended, or not started. Whatever was to be told from it is not known."""


@attrs.frozen
class Finished:
    """How a program ended. `exit_code` is negative for a signal, as in subprocess."""

    argv: tuple[str, ...]
    exit_code: int
    out: bytes
    err: bytes
    seconds: float  # wall clock
    cpu_seconds: float | None  # user + system of the program and the children it waited for; None: not measured
    peak_bytes: int | None  # largest sum of resident memory over its session, sampled; None: not asked for
    timed_out: bool = False
    too_much_output: bool = False
    too_much_memory: bool = False
    outlived: bool = False  # in a sandbox: something that it had started was still running when it had ended
    halted: bool = False  # `halt` said so

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not (self.timed_out or self.too_much_output or self.too_much_memory)

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")

    @property
    def said(self) -> str:
        """Both outputs, fit to be searched and told: the last of each, and of a line without an end its beginning."""
        both = (output[-_MOST_SAID:].decode(errors="replace") for output in (self.out, self.err))
        lines = "".join(both).splitlines()
        return "\n".join(line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in lines)

    def tail(self, lines: int = 20) -> str:
        """The last lines of both outputs, for a message."""
        return "\n".join(self.said.strip().splitlines()[-lines:])


@attrs.define
class _Children:
    """The sessions alive now, and whether more may start."""

    lock: threading.Lock = attrs.field(factory=threading.Lock)
    alive: dict[int, str] = attrs.field(factory=dict)
    stopping: bool = False
    tidying: bool = False
    journal: Path | None = None


_children = _Children()


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: git's own variables removed (a hook's GIT_DIR would redirect every git command of
    ours), and this interpreter's scripts at the end of PATH, where `node` from PyPI is if the machine has none."""
    scrubbed = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in _GIT_KEPT}
    scripts = str(Path(sys.prefix) / "bin")
    path = scrubbed.get("PATH", os.defpath)
    if scripts not in path.split(os.pathsep):
        scrubbed["PATH"] = f"{path}{os.pathsep}{scripts}"
    scrubbed.update(extra or {})
    return scrubbed


_GIT_KEPT = {
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_SSH", "GIT_SSH_COMMAND",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_ASKPASS",
}  # fmt: skip


def find(program: str, env: Mapping[str, str] | None = None) -> str | None:
    """Absolute path of a program, or None."""
    return shutil.which(program, path=(env or environment()).get("PATH"))


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float | None = None,
    out_file: Path | None = None,
    max_output: int = 64 << 20,
    measure_memory: bool = False,
    max_memory: int | None = None,
    nice: int = 0,
    keep: bool = False,
    sandbox: Sandbox | None = None,
    halt: Callable[[], bool] | None = None,
    leave: bool = False,
    brief: bool = False,
    script: bool = False,
) -> Finished:
    """Run to the end and say how it ended. Raises NotFound and Stopped; never raises for an exit code.

    timeout: seconds, then the whole session is ended. out_file: where standard output goes (kept); else a temporary
    file. max_output: bytes of either stream, then the session is ended. max_memory: bytes of resident memory of the
    session, looked at ten times a second, then it is ended. keep: a later run that finds this program
    still alive after ours was killed waits for it instead of ending it (out_file then holds what it said). sandbox:
    what it may do, where the system can enforce that (sandbox.missing says); its standard input is nobody's to read
    again. halt: asked twice a second; the session is ended once it says so. leave: what it has started stays when it
    has ended. brief: it is done in a moment, as git is, and started in a quarter of the time; not with nice or sandbox.
    script: `argv` is one shell script, and is started in a quarter of the time, too.
    """
    words = tuple(str(a) for a in argv)
    if script:
        words = ("sh", "-c", *words)
    env = env or environment()
    where = starting.found(words[0], env.get("PATH")) if os.sep not in words[0] else words[0]
    if where is None:
        raise NotFound(f"{words[0]}: not found on PATH")
    with contextlib.ExitStack() as stack:
        # Without a name: what kill -9 of ours would leave of them is nothing.
        unnamed = (stack.enter_context(starting.unnamed()) for _ in range(3))
        fout = stack.enter_context(out_file.open("w+b")) if out_file else next(unnamed)
        fin, ferr = next(unnamed), next(unnamed)
        if stdin:
            fin.write(stdin)
            fin.seek(0)
        started = time.monotonic()
        places = [*filter(None, [_children.journal]), *getattr(_of_thread, "journals", ())]
        about = {
            "argv": words[:3], "boot": journals.boot_id(), "keep": keep, "out": str(out_file) if out_file else None,
            "until": None if timeout is None else time.time() + timeout,
        }  # fmt: skip
        enforce = stack.enter_context(sandboxes.prepared(sandbox)) if sandbox else None
        with _children.lock:
            if _children.stopping:
                raise Stopped(words[0])
            files = (fin, fout, ferr)
            if script:
                noting = (f"{journals.NOTING}{words[-1]}", "sh", json.dumps(about)[:-1], *map(str, places))
                child: starting.Child = starting.script([where, "-c", *noting], cwd, env, files)
            elif brief:
                child = starting.Brief([where, *words[1:]], cwd, env, files)
                journals.note(places, child.pid, about)
            else:
                begin = functools.partial(journals.begin, nice, places, about, enforce)
                child = starting.by_sh([where, *words[1:]], cwd, env, files, begin)
            _children.alive[child.pid] = words[0]
        ended = False
        try:
            ending = lifetime.watch(
                child.pid, started, timeout, (fout, ferr), max_output, measure_memory, max_memory, halt,
                cpu=not isinstance(child, starting.Script),
            )  # fmt: skip
            child.wait()
            ended = not (ending.timed_out or ending.halted)
            outlived = sandbox is not None and lifetime.outlived(child.pid)
        finally:
            # What the program left in its session would outlive it: Stryker's workers, a server it forked.
            if not (leave and ended):
                lifetime.kill_session(child.pid, signal.SIGKILL)
            child.wait()
            with _children.lock:
                _children.alive.pop(child.pid, None)
                stopped = _children.stopping
            for journal in places:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{journal}/{child.pid}.json")  # noqa: PTH108
        if stopped and child.exit_code < 0:
            raise Stopped(words[0])
        cpu = getattr(child, "cpu_seconds", ending.cpu)
        if (mine := account.current()) is not None:
            mine.add(cpu or 0.0)
        out, err = (os.pread(file.fileno(), min(max_output, lifetime.size(file)), 0) for file in (fout, ferr))
        return Finished(
            words, child.exit_code, out, err, time.monotonic() - started, cpu, ending.peak,
            ending.timed_out,
            # One that ends by itself between two looks has said too much all the same.
            ending.too_much or any(lifetime.size(file) > max_output for file in (fout, ferr)),
            ending.too_much_memory,
            outlived, ending.halted,
        )  # fmt: skip


# -- what a task's programs take, and running several at once

_of_thread = threading.local()


def side_by_side(function: Callable[[T], R], items: Iterable[T], workers: int) -> list[R]:
    """`function` of each item, `workers` at a time, in the order of the items."""
    with ThreadPoolExecutor(max(1, workers)) as pool:
        return list(pool.map(account.carried(function), items))


@contextlib.contextmanager
def holding(lock: filelock.BaseFileLock, what: str, told: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Wait for a lock that another run may hold, and hold it. Raises Stopped where this run ends meanwhile.

    what: for people: what is waited for. told: called once where there is a wait.
    """
    if not _taken(lock):
        told()
        with account.span("wait", what):
            while not _taken(lock):
                time.sleep(0.05)
    try:
        yield
    finally:
        lock.release()


def _taken(lock: filelock.BaseFileLock) -> bool:
    if _children.stopping:
        raise Stopped(f"waiting for {lock.lock_file}")
    with contextlib.suppress(filelock.Timeout):
        lock.acquire(timeout=0)
        return True
    return False


def pause(seconds: float) -> None:
    """Do nothing for that long. Raises Stopped where the run ends meanwhile."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if _children.stopping:
            raise Stopped("waiting")
        time.sleep(min(left, 0.05))


@contextlib.contextmanager
def tidying() -> Iterator[None]:
    """All children have ended: what is left of the run may start programs again, and a first signal lets it."""
    with _children.lock:
        _children.stopping, _children.tidying = False, True
    try:
        yield
    finally:
        with _children.lock:
            _children.tidying = False


def stop_all(grace: float = GRACE) -> None:
    """End every child and let no new one start: the run is ending. What tidies up goes on, unless `grace` is 0."""
    with _children.lock:
        if _children.tidying and grace:
            return
        _children.stopping = True
        alive = list(_children.alive)
    threads = [threading.Thread(target=lifetime.end_session, args=(sid, grace)) for sid in alive]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def journal(folder: Path) -> Iterator[tuple[int, int]]:
    """Keep a journal of children in `folder` for the length of a run, after dealing with what an earlier run left.

    Yields (ended, waited): orphans ended, and calls still alive that were waited for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = journals.settle(folder)
    scratch.sweep()  # once those that work in them have ended
    with _children.lock:
        _children.stopping, _children.journal = False, folder
    try:
        yield counts
    finally:
        with _children.lock:
            _children.journal, _children.stopping = None, False


@contextlib.contextmanager
def journalled(folder: Path) -> Iterator[None]:
    """Write what this thread starts into the journal in `folder` as well."""
    before = getattr(_of_thread, "journals", ())
    _of_thread.journals = (*before, folder)
    try:
        yield
    finally:
        _of_thread.journals = before
