"""What came of parsing a large file, kept by what was parsed and by what parsed it."""

from __future__ import annotations

import contextlib
import hashlib
import json
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
        with contextlib.suppress(OSError, ValueError, TypeError):
            text = json.dumps([self._key, data])
            if json.loads(text)[1] == data:
                beside = self._path.with_name(f".{self._path.name}")
                beside.write_text(text, encoding="utf-8")
                beside.replace(self._path)
