"""Columns under each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence


def table(rows: Sequence[Sequence[str]], left: Collection[int] | None = None) -> list[str]:
    """Lines. left: the columns that go to the left; None: the first and the last."""
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = {0, len(widths) - 1} if left is None else left
    lines = []
    for row in rows:
        cells = [
            cell + " " * (w - width(cell)) if i in left else " " * (w - width(cell)) + cell
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def width(text: str) -> int:
    """In columns of a terminal: a wide character takes two, a mark that joins the one before it none. By the classes
    of Unicode's annex 11."""
    if text.isascii():
        return len(text)
    return sum((unicodedata.east_asian_width(c) in "WF") + 1 for c in text if not unicodedata.combining(c))


def many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
