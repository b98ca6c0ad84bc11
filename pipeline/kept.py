"""What came of parsing a large file, kept by what was parsed and by what parsed it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline import source


class Kept:
    """One file; the last text alone. A full disk, a cache that is gone, a torn file: then nothing is kept."""

    def __init__(self, path: Path, raw: bytes) -> None:
        self._path = path
        self._key = hashlib.sha256(raw + Path(source.__file__).read_bytes()).hexdigest()

    def find(self) -> Any | None:
        """The data; None where another text was parsed last."""
        try:
            key, data = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            return None
        return data if key == self._key else None

    def keep(self, data: Any) -> None:
        """Where JSON can say all of it."""
        if (text := self._said(data)) is not None:
            self._write(text)

    def made(self, parse: Callable[[], Any | None]) -> Any | None:
        """What `parse` makes, made in a process that ends with it, and kept: what a parser takes for its nodes stays
        nobody's. None where it said nothing, where JSON cannot say all of it, and beside other threads.
        """
        if threading.active_count() > 1:
            return None
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            status = 1
            try:
                os.close(ours)
                if (said := self._said(parse())) is not None:
                    with os.fdopen(theirs, "w", encoding="utf-8") as file:
                        file.write(said)
                    status = 0
            finally:
                os._exit(status)  # whatever it was: nothing of the process that was forked is this one's to end
        os.close(theirs)
        with os.fdopen(ours, encoding="utf-8") as file:
            text = file.read()
        if os.waitpid(child, 0)[1]:
            return None
        self._write(text)
        return json.loads(text)[1]

    def _said(self, data: Any) -> str | None:
        with contextlib.suppress(ValueError, TypeError):
            text = json.dumps([self._key, data])
            if data is not None and json.loads(text)[1] == data:
                return text
        return None

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            beside = self._path.with_name(f".{self._path.name}")
            beside.write_text(text, encoding="utf-8")
            beside.replace(self._path)
