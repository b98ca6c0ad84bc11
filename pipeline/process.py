"""Run a program: its own session, time limit, output to files, CPU and memory. The only importer of sh.

Every child leads a session of its own, so that ending it ends all that it started. While it lives it is written in
a journal, so that the next run can end what a killed one left behind.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Protocol, TypeVar, cast

import attrs
import filelock

from pipeline import account, scratch
from pipeline import sandbox as sandboxes
from pipeline.sandbox import Sandbox

GRACE = 3.0  # seconds between SIGTERM and SIGKILL
_TICKS = os.sysconf("SC_CLK_TCK")
_MOST_SAID = 1 << 18  # bytes of either output that messages are made from
_LONGEST_LINE = 1000  # characters; an engine that prints without end would fill targets, ledger and screen
_ANY_CODE = tuple(range(-64, 256))
T = TypeVar("T")
R = TypeVar("R")


class NotFound(Exception):
    """The program is not on PATH (or not executable)."""


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


def _unnamed() -> IO[bytes]:
    """As tempfile.TemporaryFile makes it, in a third of the time where the system has such files."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):
            flags = os.O_TMPFILE | os.O_RDWR | os.O_EXCL | os.O_CLOEXEC
            return open(os.open(tempfile.gettempdir(), flags, 0o600), "w+b", buffering=0)  # noqa: PTH123
    return cast(IO[bytes], tempfile.TemporaryFile())


@functools.lru_cache(16)
def _sh(path: str | None) -> str | None:
    """The shell is asked for again and again."""
    return shutil.which("sh", path=path)


def _found(program: str, path: str | None) -> str | None:
    return _sh(path) if program == "sh" else shutil.which(program, path=path)


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
    where = _found(words[0], env.get("PATH")) if os.sep not in words[0] else words[0]
    if where is None:
        raise NotFound(f"{words[0]}: not found on PATH")
    with contextlib.ExitStack() as stack:
        # Without a name: what kill -9 of ours would leave of them is nothing.
        unnamed = (stack.enter_context(_unnamed()) for _ in range(3))
        fout = stack.enter_context(out_file.open("w+b")) if out_file else next(unnamed)
        fin, ferr = next(unnamed), next(unnamed)
        if stdin:
            fin.write(stdin)
            fin.seek(0)
        started = time.monotonic()
        journals = [*filter(None, [_children.journal]), *getattr(_of_thread, "journals", ())]
        about = {
            "argv": words[:3], "boot": boot_id(), "keep": keep, "out": str(out_file) if out_file else None,
            "until": None if timeout is None else time.time() + timeout,
        }  # fmt: skip
        enforce = stack.enter_context(sandboxes.prepared(sandbox)) if sandbox else None
        with _children.lock:
            if _children.stopping:
                raise Stopped(words[0])
            files = (fin, fout, ferr)
            if script:
                noted = (f"{_NOTING}{words[-1]}", "sh", json.dumps(about)[:-1], *map(str, journals))
                child: _Child = _script([where, "-c", *noted], cwd, env, files)
            elif brief:
                child = _Brief([where, *words[1:]], cwd, env, files)
                _note(journals, child.pid, about)
            else:
                begin = functools.partial(_begin, nice, journals, about, enforce)
                child = _by_sh([where, *words[1:]], cwd, env, files, begin)
            _children.alive[child.pid] = words[0]
        ended = False
        try:
            ending = _watch(
                child.pid, started, timeout, (fout, ferr), max_output, measure_memory, max_memory, halt,
                cpu=not isinstance(child, _Script),
            )  # fmt: skip
            child.wait()
            ended = not (ending.timed_out or ending.halted)
            outlived = sandbox is not None and _outlived(child.pid)
        finally:
            # What the program left in its session would outlive it: Stryker's workers, a server it forked.
            if not (leave and ended):
                _kill_session(child.pid, signal.SIGKILL)
            child.wait()
            with _children.lock:
                _children.alive.pop(child.pid, None)
                stopped = _children.stopping
            for journal in journals:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{journal}/{child.pid}.json")  # noqa: PTH108
        if stopped and child.exit_code < 0:
            raise Stopped(words[0])
        cpu = getattr(child, "cpu_seconds", ending.cpu)
        if (mine := account.current()) is not None:
            mine.add(cpu or 0.0)
        out, err = (os.pread(file.fileno(), min(max_output, _size(file)), 0) for file in (fout, ferr))
        return Finished(
            words, child.exit_code, out, err, time.monotonic() - started, cpu, ending.peak,
            ending.timed_out,
            # One that ends by itself between two looks has said too much all the same.
            ending.too_much or any(_size(file) > max_output for file in (fout, ferr)),
            ending.too_much_memory,
            outlived, ending.halted,
        )  # fmt: skip


# A script writes itself into the journals before it does anything: `_begin` would cost a fork of all our memory. Its
# arguments are the record without its end, and the journals. On one line: what is wrong in line 1 is told of line 1.
_NOTING = (
    "_record=$1; shift; "
    f"{{ read -r {'_x ' * 21}_start _x </proc/$$/stat; }} 2>/dev/null; "
    'for _journal do printf \'%s, "pid": %s, "start": "%s"}\' "$_record" $$ "$_start" >"$_journal/$$.json"; '
    "done 2>/dev/null; unset _record _start _journal _x; set --; "
)


class _Child(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def exit_code(self) -> int: ...

    def wait(self) -> object: ...


class _Brief:
    """A child that subprocess starts: without a fork of all our memory, and without sh's three threads."""

    def __init__(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], files: tuple[IO[bytes], IO[bytes], IO[bytes]]
    ) -> None:
        fin, fout, ferr = files
        self._process = subprocess.Popen(
            words, stdin=fin, stdout=fout, stderr=ferr, cwd=cwd, env=env, start_new_session=True,
            close_fds=False,  # Python opens no file that a child inherits
        )  # fmt: skip
        self.pid, self.wait = self._process.pid, self._process.wait

    @property
    def exit_code(self) -> int:
        return self._process.wait()


class _Script:
    """A shell script in the working directory. posix_spawn forks nothing of ours; wait4 tells what was spent."""

    def __init__(self, words: list[str], env: Mapping[str, str], files: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> None:
        self.pid = os.posix_spawn(
            words[0], words, env, file_actions=[(os.POSIX_SPAWN_DUP2, f.fileno(), n) for n, f in enumerate(files)],
            setsid=True, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # which Python ignores
        )  # fmt: skip
        self.exit_code, self.cpu_seconds, self._over = 0, 0.0, False

    def wait(self) -> object:
        if not self._over:
            _, status, used = os.wait4(self.pid, 0)
            self.exit_code, self.cpu_seconds = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
            self._over = True
        return self.exit_code


def _script(
    words: list[str], cwd: Path, env: Mapping[str, str], files: tuple[IO[bytes], IO[bytes], IO[bytes]]
) -> _Child:
    if hasattr(os, "pidfd_open") and os.getcwd() == str(cwd):  # noqa: PTH109
        return _Script(words, env, files)
    return _Brief(words, cwd, env, files)


def _by_sh(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], files: tuple[IO[bytes], IO[bytes], IO[bytes]],
    begin: Callable[[], None],
) -> _Child:  # fmt: skip
    import sh  # 30 ms that a look at what git says does not need

    fin, fout, ferr = files
    try:
        child: _Child = sh.Command(words[0])(
            *words[1:], _cwd=str(cwd), _env=dict(env), _in=fin, _out=fout, _err=ferr,
            # Python opens no file that a child inherits: there is nothing to look through and close.
            _bg=True, _bg_exc=False, _new_session=True, _ok_code=_ANY_CODE, _return_cmd=True, _close_fds=False,
            _preexec_fn=begin,
        )  # fmt: skip
    except sh.CommandNotFound as error:
        raise NotFound(f"{words[0]}: not found or not executable") from error
    return child


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


# -- what a task's programs take, and running several at once

_of_thread = threading.local()


def side_by_side(function: Callable[[T], R], items: Iterable[T], workers: int) -> list[R]:
    """`function` of each item, `workers` at a time, in the order of the items."""
    with ThreadPoolExecutor(max(1, workers)) as pool:
        return list(pool.map(account.carried(function), items))


@attrs.define
class _Ending:
    cpu: float | None = None
    peak: int | None = None
    timed_out: bool = False
    too_much: bool = False
    too_much_memory: bool = False
    halted: bool = False


def _watch(
    pid: int, started: float, timeout: float | None, outputs: tuple[IO[bytes], IO[bytes]], max_output: int,
    memory: bool, max_memory: int | None, halt: Callable[[], bool] | None, cpu: bool,
) -> _Ending:  # fmt: skip
    """Wait until the child has ended, without reaping it: a zombie still tells its CPU time, if that is asked for, and
    nobody else gets its id."""
    memory = memory or max_memory is not None
    ending = _Ending(peak=0 if memory else None)
    fd: int | None = None
    try:
        if hasattr(os, "pidfd_open"):
            fd = os.pidfd_open(pid)
        poller = select.poll()
        if fd is not None:
            poller.register(fd, select.POLLIN)
        while True:
            left = None if timeout is None else timeout - (time.monotonic() - started)
            step = 0.01 if fd is None else 0.5 if max_memory is None else 0.1
            over = poller.poll(max(0.0, min(step, left if left is not None else step)) * 1000)
            if over or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                ending.cpu = _cpu_seconds(pid) if cpu else None
                return ending
            if memory:
                now = _session_memory(pid)
                ending.peak = max(ending.peak or 0, now)
                if max_memory is not None and now > max_memory:
                    ending.too_much_memory = True
                    end_session(pid)
                    max_memory = timeout = left = None
            if halt is not None and halt():
                ending.halted = True
                end_session(pid)
                halt = timeout = left = None
            too_much = any(_size(file) > max_output for file in outputs)
            if too_much or (left is not None and left <= 0):
                ending.too_much, ending.timed_out = too_much, not too_much
                end_session(pid)
                timeout = None
    except (ChildProcessError, ProcessLookupError):
        # sh's own thread looks once at the start and once a second, and reaps: that CPU time is not measured.
        return ending
    finally:
        if fd is not None:
            os.close(fd)


def _cpu_seconds(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(int(f) for f in fields[11:15]) / _TICKS  # proc(5): utime, stime, cutime, cstime


def _session_memory(sid: int) -> int:
    import psutil

    total = 0
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(pid) == sid:  # asked first: it costs nothing, where machines run hundreds
                total += psutil.Process(pid).memory_info().rss
    return total


def _kill_session(sid: int, sign: int) -> bool:
    """Signal the group that the session's leader made; True where somebody was there to receive it."""
    try:
        os.killpg(sid, sign)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _outlived(sid: int) -> bool:
    """Whether anything of a session is left whose leader has ended. What was ended with it may take a moment."""
    deadline = time.monotonic() + 0.2
    while _kill_session(sid, 0):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.01)
    return False


def end_session(sid: int, grace: float = GRACE) -> None:
    """SIGTERM, then SIGKILL after `grace` seconds for what is still there."""
    if not _kill_session(sid, signal.SIGTERM):
        return
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, sid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                break
        if not _kill_session(sid, 0):
            return
        time.sleep(0.02)
    _kill_session(sid, signal.SIGKILL)


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
    threads = [threading.Thread(target=end_session, args=(sid, grace)) for sid in alive]
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
    counts = settle(folder)
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


@functools.cache
def boot_id() -> str:
    """The same for all processes of this machine until it is started again; "" where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _entry(journal: Path, pid: int) -> Path:
    return journal / f"{pid}.json"


def _begin(
    nice: int, journals: Sequence[Path], about: Mapping[str, object], enforce: Callable[[], None] | None
) -> None:
    """In the child, before it becomes the program. Written by us afterwards, the journal would miss what was started
    in the moment before kill -9."""
    if nice:
        os.nice(nice)
    _note(journals, os.getpid(), about)
    if enforce:
        enforce()


def _note(journals: Sequence[Path], pid: int, about: Mapping[str, object]) -> None:
    record = {**about, "pid": pid, "start": scratch.start_time(pid)}
    for journal in journals:
        with contextlib.suppress(OSError):  # a full disk, a cache that was deleted: no reason to start nothing
            journal.mkdir(parents=True, exist_ok=True)
            _entry(journal, pid).write_text(json.dumps(record))


def settle(folder: Path) -> tuple[int, int]:
    """End what dead runs have left of those in a journal, or wait for what was to be kept. Gives both counts."""
    ended = waited = 0
    for entry in folder.glob("*.json"):
        try:
            record = json.loads(entry.read_text())
            pid = int(record["pid"])
            # A process id is used again: only the same start time in the same boot is the same process. A leader that
            # has ended may have left its group behind, which no new process can have taken as its own.
            start = scratch.start_time(pid)
            ours = record["boot"] == boot_id() and start in (record["start"], "")
            if ours and record.get("keep") and start:
                waited += 1
                until = record["until"] or float("inf")
                while scratch.start_time(pid) == record["start"] and time.time() < until:
                    time.sleep(0.1)
            if ours and _kill_session(pid, 0):
                ended += 1
                end_session(pid)
        except (ValueError, KeyError, OSError):
            pass  # a torn entry names nobody
        entry.unlink(missing_ok=True)
    return ended, waited
