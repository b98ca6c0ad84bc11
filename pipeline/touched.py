"""Which files has anybody touched? The kernel tells (inotify(7)): nobody need look at all of them for it.

Not told: writes through a hard link that lies outside of the folders asked about.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

_EVENT = struct.Struct("iIII")  # wd, mask, cookie, length of the name that follows
_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_OVERFLOW, _IGNORED, _IS_DIR = 0x4000, 0x8000, 0x40000000
_ONLY_DIR, _DONT_FOLLOW = 0x01000000, 0x02000000
_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_LARGEST = 1 << 16  # bytes of one read
_AGAIN = 20  # times; where tasks go on making folders, to watch anew costs more than it saves
_MOST = 20_000  # folders; each costs a kilobyte of the kernel's


class Unwatchable(Exception):
    """Said by who names the folders: what happens in them would not be all."""


class Touched:
    """Folders under watch, until closed. `since` says what was touched in them between two calls of it."""

    def __init__(self, folders: Callable[[], Iterable[Path]]) -> None:
        """folders: asked again whenever there may be others; raises Unwatchable. What is below one of them is not told
        of, unless it is one too."""
        self._folders = folders
        self._file = -1
        self._paths: dict[int, str] = {}  # of folders
        self._begun = 0

    def since(self) -> frozenset[str] | None:
        """What was made, changed or removed since the last call; None: nobody knows, anything may have been.

        After None what comes next is told: the folders are under watch before this returns.
        """
        found = self._read() if self._file >= 0 else None
        if found is None:
            self._begin()
        return found

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _begin(self) -> None:
        self.close()
        self._paths = {}
        self._begun += 1
        if sys.platform != "linux" or self._begun > _AGAIN:
            return
        library = ctypes.CDLL(None, use_errno=True)
        self._file = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            return
        try:
            self._watch(library, self._folders())
        except BaseException as error:
            self.close()
            if not isinstance(error, Unwatchable):
                raise

    def _watch(self, library: ctypes.CDLL, folders: Iterable[Path]) -> None:
        for folder in folders:
            number = library.inotify_add_watch(self._file, os.fsencode(folder), _CHANGES | _ONLY_DIR | _DONT_FOLLOW)
            if number < 0 and ctypes.get_errno() in _GONE:
                continue
            if number < 0 or len(self._paths) >= _MOST:  # the user's share of watches is used up
                raise Unwatchable
            self._paths[number] = os.fspath(folder)

    def _read(self) -> frozenset[str] | None:
        found: set[tuple[int, bytes]] = set()
        while True:
            try:
                said = os.read(self._file, _LARGEST)
            except BlockingIOError:
                there = ((self._paths.get(number), name) for number, name in found)
                return frozenset(f"{folder}/{os.fsdecode(name)}" for folder, name in there if folder is not None)
            at = 0
            while at < len(said):
                number, mask, _, length = _EVENT.unpack_from(said, at)
                name = said[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                if mask & (_OVERFLOW | _IGNORED | _IS_DIR | _DELETE_SELF | _MOVE_SELF) and not _of_itself(mask):
                    return None  # there may be other folders now
                if name:
                    found.add((number, name))


_GONE = (2, 20)  # ENOENT, ENOTDIR: between being listed and being watched


def _of_itself(mask: int) -> bool:
    """A folder's own time or mode, which git does not keep."""
    return not mask & ~(_IS_DIR | _ATTRIB)


def folders_of(root: Path, leave_out: Callable[[Path], bool]) -> Iterable[Path]:
    """A folder and all below it, links not followed."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        yield folder
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            waiting += [
                path for e in entries if e.is_dir(follow_symlinks=False) and not leave_out(path := Path(e.path))
            ]
