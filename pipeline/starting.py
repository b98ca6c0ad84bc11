"""Three ways to start a program, each for what it costs. The only importer of sh."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol, cast

Files = tuple[IO[bytes], IO[bytes], IO[bytes]]  # standard input, output and error
_ANY_CODE = tuple(range(-64, 256))


class NotFound(Exception):
    """The program is not on PATH (or not executable)."""


def unnamed() -> IO[bytes]:
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


def found(program: str, path: str | None) -> str | None:
    return _sh(path) if program == "sh" else shutil.which(program, path=path)


class Child(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def exit_code(self) -> int: ...

    def wait(self) -> object: ...


class Brief:
    """A child that subprocess starts: without a fork of all our memory, and without sh's three threads."""

    def __init__(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], files: Files) -> None:
        fin, fout, ferr = files
        self._process = subprocess.Popen(
            words, stdin=fin, stdout=fout, stderr=ferr, cwd=cwd, env=env, start_new_session=True,
            close_fds=False,  # Python opens no file that a child inherits
        )  # fmt: skip
        self.pid, self.wait = self._process.pid, self._process.wait

    @property
    def exit_code(self) -> int:
        return self._process.wait()


class Script:
    """A shell script in the working directory. posix_spawn forks nothing of ours; wait4 tells what was spent."""

    def __init__(self, words: list[str], env: Mapping[str, str], files: Files) -> None:
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


def script(words: list[str], cwd: Path, env: Mapping[str, str], files: Files) -> Child:
    if hasattr(os, "pidfd_open") and os.getcwd() == str(cwd):  # noqa: PTH109
        return Script(words, env, files)
    return Brief(words, cwd, env, files)


def by_sh(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], files: Files,
    begin: Callable[[], None],
) -> Child:  # fmt: skip
    import sh  # 30 ms that a look at what git says does not need

    fin, fout, ferr = files
    try:
        child: Child = sh.Command(words[0])(
            *words[1:], _cwd=str(cwd), _env=dict(env), _in=fin, _out=fout, _err=ferr,
            # Python opens no file that a child inherits: there is nothing to look through and close.
            _bg=True, _bg_exc=False, _new_session=True, _ok_code=_ANY_CODE, _return_cmd=True, _close_fds=False,
            _preexec_fn=begin,
        )  # fmt: skip
    except sh.CommandNotFound as error:
        raise NotFound(f"{words[0]}: not found or not executable") from error
    return child
