"""Keep a program, and all that it starts, from writing elsewhere, from the network, and from other programs. Linux.

Landlock says where it may write; a seccomp filter refuses what Landlock does not know. Both need no rights, hold for
every child, and cannot be taken off again. They cost well under a millisecond a program, and no namespace: those are
shut in many containers and on hardened systems.
Sources: the kernel's Documentation/userspace-api/landlock.rst and seccomp_filter.rst; include/uapi/linux/landlock.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import platform
import resource
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

MOST_MEMORY = 1 << 30  # bytes of private memory for each program
MOST_FILE = 256 << 20  # bytes of one file
_OLDEST_ABI = 3  # of Landlock (Linux 6.2): before that, a file could be emptied that could not be written
_SIGNALS_ABI = 6  # (Linux 6.12): from there on signals go no further than the sandbox
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # landlock_*(2), the same number on every architecture
_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE = 1 << 1
# REMOVE_DIR, REMOVE_FILE, MAKE_*, REFER, TRUNCATE: every right but those to read, to execute and to write a file
_WRITES = _WRITE_FILE | sum(1 << bit for bit in range(4, 15))
_SCOPES = 0b11  # abstract Unix sockets, signals
_SET_SECCOMP, _SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF: ld abs, jeq, jge, ret
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO


@attrs.frozen
class _Machine:
    """An architecture: its name to seccomp, and its numbers of system calls."""

    audit: int
    foreign: int | None  # from this number on, calls are those of another ABI
    socket: int
    session: tuple[int, ...]  # setsid, setpgid: what leaves the session is not ended with it
    kill: int
    # chmod, chown, utime, setxattr and their kin: Landlock does not look at what a file is, only at what is in it.
    attributes: tuple[int, ...]


_URING = 425  # io_uring_setup: its operations are no system calls, so that no filter sees them
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E, 0x40000000, 41, (112, 109), 62,
        (90, 91, 92, 93, 94, 132, 188, 189, 190, 235, 260, 261, 268, 280, 452, 463),
    ),
    "aarch64": _Machine(0xC00000B7, None, 198, (157, 154), 129, (5, 6, 7, 52, 53, 54, 55, 88, 452, 463)),
}  # fmt: skip


@attrs.frozen
class Sandbox:
    """What a program may do beside reading files and starting others."""

    writable: tuple[Path, ...]  # folders below which anything may be written, made and removed


@functools.cache
def missing() -> str:
    """Why nothing can be enforced by this system; "" where it can."""
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return f"there is none for {sys.platform} on {platform.machine()}"
    if _abi() < _OLDEST_ABI:
        return "this kernel has no Landlock of Linux 6.2 or newer"
    # Whether a filter may be set is only told by setting one: some containers refuse it.
    with prepared(Sandbox(())) as enforce:
        pid = os.fork()
        if pid == 0:
            try:
                enforce()
                os._exit(0)
            except BaseException:
                os._exit(1)
    return "" if os.waitpid(pid, 0)[1] == 0 else "this system refuses Landlock or seccomp"


@contextlib.contextmanager
def prepared(sandbox: Sandbox) -> Iterator[Callable[[], None]]:
    """What a child calls between fork and exec. It allocates little and takes no lock; it raises OSError if anything
    cannot be enforced, and then the program must not be started."""
    abi = _abi()
    ruleset = _system(_CREATE, struct.pack("QQQ", _WRITES, 0, _SCOPES if abi >= _SIGNALS_ABI else 0), 24, 0)
    try:
        for place, rights in [(Path(os.devnull), _WRITE_FILE), *((p, _WRITES) for p in sandbox.writable)]:
            folder = os.open(place, os.O_PATH | os.O_CLOEXEC)
            try:
                _system(_ADD, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, folder), 0)
            finally:
                os.close(folder)
        filter_ = _filter(_MACHINES[platform.machine()], signals=abi >= _SIGNALS_ABI)
        lines = ctypes.create_string_buffer(filter_)
        program = struct.pack("HxxxxxxP", len(filter_) // 8, ctypes.addressof(lines))

        def enforce() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE, MOST_FILE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            _checked(_libc().prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            _system(_RESTRICT, ruleset, 0)
            _checked(_libc().prctl(_SET_SECCOMP, _FILTER, program, 0, 0))
            assert lines  # alive until here: the kernel has read it by its address

        yield enforce
    finally:
        os.close(ruleset)


def _filter(machine: _Machine, signals: bool) -> bytes:
    """The filter as BPF. signals: Landlock keeps them inside, so that kill(2) may stay."""
    refused = [(machine.socket, errno.EACCES), (_URING, errno.ENOSYS)]
    refused += [(call, errno.EPERM) for call in (*machine.session, *machine.attributes)]
    refused += [] if signals else [(machine.kill, errno.EPERM)]
    program = [
        (_LOAD, 0, 0, 4),  # seccomp_data.arch
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_LOAD, 0, 0, 0),  # seccomp_data.nr
    ]
    if machine.foreign is not None:
        program += [(_AT_LEAST, 0, 1, machine.foreign), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    for call, error in refused:
        program += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, _REFUSE | error)]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in program)


@functools.cache
def _abi() -> int:
    """Landlock's version; 0 where there is none."""
    try:
        return _system(_CREATE, None, 0, _VERSION)
    except OSError:
        return 0


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _system(call: int, *words: int | bytes | None) -> int:
    return _checked(_libc().syscall(ctypes.c_long(call), *(_word(w) for w in words)))


def _word(word: int | bytes | None) -> object:
    return ctypes.c_long(word) if isinstance(word, int) else word


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
