"""The mutated assembly, taken while Stryker.NET tests with it: it lies in the test project's output only for that time,
with the original beside it, and is never written anywhere else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs

MUTATED = b"MutantControl"  # the name of the type that chooses a mutant: an assembly that has it has mutants
_LOOK = 0.1  # seconds


def is_mutated(content: bytes) -> bool:
    return MUTATED in content


@attrs.define
class Picture:
    content: bytes | None = None
    disturbed: bool = False  # something else wrote there: two runs in one checkout test each other's assemblies


def put_right(assembly: Path) -> None:
    """A run that was ended has left its mutated assembly, with the original put aside: of that no picture is to be
    taken, and the next run would keep that original for its own. The build puts the assembly there again."""
    original = _aside(assembly)
    if original.exists():
        assembly.unlink(missing_ok=True)
        original.unlink(missing_ok=True)


@contextlib.contextmanager
def taken(assembly: Path) -> Iterator[Picture]:
    """Look at `assembly` for as long as this is open; `content` is the mutated one, once it was there."""
    picture = Picture()
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(assembly, picture, ended), daemon=True)
    watcher.start()
    try:
        yield picture
    finally:
        ended.set()
        watcher.join()


def _watch(assembly: Path, picture: Picture, ended: threading.Event) -> None:
    """A run makes the assembly mutated once, and the original again: what was mutated twice was another run's too."""
    original = _aside(assembly)
    before = b""
    gone = False  # the one that the picture is of
    while not ended.wait(_LOOK):
        try:
            # Stryker puts the original aside first, and what it then writes is there in part for a moment.
            now = assembly.read_bytes() if original.exists() else b""
        except OSError:
            continue
        if picture.content is None:
            if is_mutated(now) and now == before:
                picture.content = now
        elif is_mutated(now) and now == before and (gone or now != picture.content):
            picture.disturbed = True
        elif now != picture.content:
            gone = True
        before = now


def _aside(assembly: Path) -> Path:
    """Where Stryker puts the original."""
    return assembly.with_name(f"{assembly.name}.stryker-unchanged")
