"""A judged plan as a graph: DOT, and SVG by graphviz."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline import process
from pipeline.reports.plan.judge import Judged


class CannotDraw(Exception):
    """No picture was made; str() says why, and what to do."""


def dot(parts: Sequence[Judged]) -> str:
    """DOT. A box is a job, a row a wave; an arrow goes from a need to who needs it; a dashed line joins the writers of
    a path, wave by wave, and is red where the path is a finding."""
    lines = ["digraph plan {", "  newrank=true;", "  node [shape=box];"]
    for number, part in enumerate(parts):
        lines += [f"  subgraph {json.dumps(f'cluster_{number}')} {{", f"    label={_text(part.title)};"]
        lines += (f"    {line}" for line in _part(part))
        lines.append("  }")
    return "\n".join([*lines, "}"])


def _part(part: Judged) -> Iterator[str]:
    def node(name: str) -> str:
        return _text(f"{part.title}: {name}")

    for job in part.what.jobs:
        yield f"{node(job.name)} [label={_text(job.name)}];"
    for names in part.waves.groups():
        yield f"{{ rank=same; {' '.join(f'{node(name)};' for name in names)} }}"
    writers: dict[str, list[str]] = defaultdict(list)
    for job in part.what.jobs:
        for need in job.needs:
            yield f"{node(need)} -> {node(job.name)};"
        for path in job.writes:
            writers[path].append(job.name)
    found = {path for finding in part.findings for path in finding.paths}
    for path, wave_by_wave in ((path, sorted(each, key=part.waves.of.__getitem__)) for path, each in writers.items()):
        colour = "red" if path in found else "gray"
        for one, other in itertools.pairwise(wave_by_wave):
            style = f"label={_text(path)}, style=dashed, dir=none, color={colour}, fontcolor={colour}"
            yield f"{node(one)} -> {node(other)} [{style}];"


def svg(text: str, path: Path) -> None:
    """Draw DOT into a file. Raises CannotDraw."""
    try:
        done = process.run(["dot", "-Tsvg"], cwd=Path.cwd(), stdin=text.encode())
    except process.NotFound:
        what = "graphviz's `dot` is not installed; install graphviz (apt install graphviz, brew install graphviz)"
        raise CannotDraw(f"{what}, or take the text by --dot") from None
    if not done.ok:
        raise CannotDraw(f"dot could not draw it: {done.tail()}")
    try:
        path.write_bytes(done.out)
    except OSError as error:
        raise CannotDraw(f"{path} cannot be written: {error.strerror}") from None


def _text(text: str) -> str:
    """A DOT string: only a quote is special in one, and a backslash begins an escape."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
