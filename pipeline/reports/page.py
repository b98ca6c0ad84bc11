"""The report as a page: cache/report/index.html, one file that a browser opens from disk, without a network.

page.html is its markup, style and program; this makes the data, which stands in it as JSON that is read when it is
looked at. The program puts all of it into the page as text, never as markup."""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import cattrs

from pipeline.holds import Hold, What
from pipeline.reports import machine, times, whole
from pipeline.reports.past import FAULTS, Past, fault
from pipeline.reports.whole import Report
from pipeline.results import write_bytes
from pipeline.session import Session
from pipeline.timeline import Timeline

PATH = Path("report") / "index.html"  # in the cache
SINCE = Path("report") / "since" / "index.html"  # of a run that was narrowed: never in the place of the whole
BROWSER = "mutation-testing-elements"
_ELEMENT = b"mutation-test-report-app"
_BUNDLE = "dist/mutation-test-elements.js"
_TEMPLATE = Path(__file__).with_suffix(".html")
_converter = cattrs.Converter()
Cut = tuple[int, int, int, int]  # from and to in ms since the run's start, index of a What, index of a hold or -1


def write(session: Session, past: Past) -> tuple[str, bool]:
    """Write it; where it is, for people, or why it is not there; whether it is: a page that cannot be written fails no
    run, and no report."""
    since = session.plan.since
    path = session.home / (SINCE if since else PATH)
    try:
        bundle, without = _bundle(session)
        name = Path(session.plan.root).name + (f", lines changed since {since}" if since else "")
        write_bytes(
            path, html(name, whole.of(session, past), past.timeline, machine.elements(session), bundle, without)
        )
    except Exception as error:  # whatever it is: what has landed is landed
        why = error.strerror if isinstance(error, OSError) else None
        if isinstance(error, FAULTS):
            why = fault(session, error)
        return f"page: not written: {path}: {why or f'{type(error).__name__}: {error}'}", False
    return f"page: {_shown(path)}", True


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _bundle(session: Session) -> tuple[str, str]:
    """Stryker's mutant browser as text, and why it is not there: one of them is empty."""
    if not session.plan.scopes:
        return "", "there is nothing to browse"
    from pipeline.engines import EngineError

    try:
        path = session.engine.tool(BROWSER, Path(session.plan.root))
        if path.suffix == ".dll":
            found = embedded(path.read_bytes())
            return found, "" if found else f"{path.name} has none that can be read"
        while path.name != BROWSER:
            path = path.parent
        return (path / _BUNDLE).read_text(encoding="utf-8"), ""
    except (EngineError, OSError) as error:
        return "", str(error)


def embedded(assembly: bytes) -> str:
    """The program of the mutant browser in a .NET assembly, "" where there is none: the longest resource that names its
    element. Resources stand there as a length (four bytes, the least first) and that many bytes: ECMA-335, II.24.2.4.
    No text holds a zero byte, and the length of one under 16 MB ends in one."""
    found, at = b"", assembly.find(_ELEMENT)
    while at >= 0:
        start = assembly.rfind(b"\0", 0, at) + 1
        end = start + int.from_bytes(assembly[max(0, start - 4) : start], "little")
        if at < end <= len(assembly) and end - start > len(found):
            found = assembly[start:end]
        at = assembly.find(_ELEMENT, at + 1)
    return found.decode("utf-8-sig", errors="replace")


def html(
    name: str, report: Report, found: Timeline | None, elements: Mapping[str, Any], bundle: str, without: str
) -> bytes:
    """The page. name: of the project. bundle: the mutant browser's program; without: why there is none."""
    at = {scope.scope: i for i, scope in enumerate(report.scopes)}
    islands = {
        "page": _page(name, report, without),
        "time": _time(found, list(at)) if found else None,
        "tests": [
            [at[s.scope], t.title, t.file, t.code, t.origin, [list(attrs.astuple(k)) for k in t.kills]]
            for s in report.scopes
            for t in s.tests
        ],
        "left": [[at[s.scope], *attrs.astuple(m)] for s in report.scopes for m in s.survivors],
        "elements": elements,
        **({"bundle": bundle} if bundle else {}),
    }
    data = "\n".join(
        f'<script type="application/json" id="d-{key}">{_json(it)}</script>' for key, it in islands.items()
    )
    before, _, after = _TEMPLATE.read_text(encoding="utf-8").partition("<!--data-->")
    # A lone surrogate, of a path that is no UTF-8, becomes what JSON writes for it.
    return f"{before}{data}{after}".encode(errors="backslashreplace")


def _json(value: Any) -> str:
    """JSON that no script element ends in, or reads anything into."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _page(name: str, report: Report, without: str) -> dict[str, Any]:
    """What is shown at once."""
    scopes = []
    for i, scope in enumerate(report.scopes):
        said = _converter.unstructure(attrs.evolve(scope, tests=(), survivors=()))
        scopes.append({**said, "at": i, "tests": len(scope.tests), "survivors": len(scope.survivors)})
    told = report.figures
    figures = _converter.unstructure(attrs.evolve(told, scopes={})) if told else None
    said = [*times.shares(told.shares), *times.verdict(told.verdict, told.shares)] if told else []
    return {
        "project": name,
        "made": time.time(),
        "branch": report.branch,
        "before": _converter.unstructure(report.before),
        "after": _converter.unstructure(report.after),
        "scopes": scopes,
        "tasks": _converter.unstructure(report.tasks),
        "runs": _converter.unstructure(report.runs),
        "figures": figures,
        "said": said,
        "tests": sum(len(scope.tests) for scope in report.scopes),
        "left": sum(len(scope.survivors) for scope in report.scopes),
        "without": without,
    }


# -- the timeline


def _time(found: Timeline, scopes: Sequence[str]) -> dict[str, Any]:
    names = list(dict.fromkeys([*scopes, *found.scopes]))
    at = {name: i for i, name in enumerate(names)}
    whats: dict[What, int] = {}
    numbers = {id(hold): i for i, hold in enumerate(found.holds)}

    def cut(start: float, end: float, what: What, hold: Hold | None = None) -> Cut:
        known = whats.setdefault(what, len(whats))
        return ms(start), ms(end), known, -1 if hold is None else numbers[id(hold)]

    def ms(moment: float) -> int:
        return round((moment - found.start) * 1000)

    lanes = [
        {"name": lane, "slots": slots, "rows": _rows(found, lane, slots, cut)} for lane, slots in found.lanes.items()
    ]
    by_scope = [_joined([cut(*piece) for piece in found.scopes.get(name, ())]) for name in names]
    return {
        "span": ms(found.end),
        "names": names,
        "holds": [
            {"names": hold.names, "scopes": sorted({at[s] for s in hold.scopes if s in at})} for hold in found.holds
        ],
        "lanes": lanes,
        "scopes": by_scope,
        "whats": [[what.sort, what.label, what.cause] for what in whats],
    }


def _rows(found: Timeline, lane: str, slots: int, cut: Callable[..., Cut]) -> list[list[Cut]]:
    """A row for each slot: what was in it, and why it was idle."""
    rows: list[list[tuple[float, float, Hold]]] = [[] for _ in range(slots)]
    for hold in (hold for hold in found.holds if hold.lane == lane):
        _put(rows, hold.slot, hold.start, hold.end, hold)
    more = [(p[1], p[2], hold) for hold in found.holds for p in hold.places if p[0] == lane and p[3] > 0]
    for start, end, hold in sorted(more, key=lambda each: each[:2]):
        _put(rows, None, start, end, hold)
    cuts: list[list[Cut]] = []
    for row in rows:
        mine: list[Cut] = []
        for start, end, hold in row:
            mine += [cut(*each, hold) for each in hold.within(start, end)]
        cuts.append(mine)
    places = [0] * len(rows)
    for left, right, why in found.idle(lane):
        idle = iter(why)
        for i, row in enumerate(rows):
            while places[i] < len(row) and row[places[i]][1] <= left:
                places[i] += 1
            if places[i] == len(row) or row[places[i]][0] > left:
                if (what := next(idle, None)) is None:
                    break
                cuts[i].append(cut(left, right, what))
    return [_joined(sorted(row)) for row in cuts]


def _put(rows: list[list[tuple[float, float, Hold]]], slot: int | None, start: float, end: float, hold: Hold) -> None:
    """Into its own row, else into the first that is free then; a slot that was lent has two, and gets one more."""
    order = [slot] if slot is not None and slot < len(rows) else []
    for i in (*order, *range(len(rows))):
        at = bisect_right(rows[i], start, key=lambda span: span[0])
        if (at == 0 or rows[i][at - 1][1] <= start) and (at == len(rows[i]) or rows[i][at][0] >= end):
            rows[i].insert(at, (start, end, hold))
            return
    rows.append([(start, end, hold)])


def _joined(cuts: Sequence[Cut]) -> list[Cut]:
    """Without what is shorter than a millisecond, and with one piece where two of a kind meet."""
    joined: list[Cut] = []
    for start, end, what, hold in cuts:
        if joined and joined[-1][1] == start and joined[-1][2:] == (what, hold):
            joined[-1] = joined[-1][0], end, what, hold
        elif end > start:
            joined.append((start, end, what, hold))
    return joined
