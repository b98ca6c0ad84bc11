"""How long a browser takes over the report page of a big project: from the navigation until its timeline is drawn."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import browser
from pipeline import ledger, timeline
from pipeline.reports import figures, page
from pipeline.reports.whole import Killed, LandedTest, Left, Report, Run, ScopeReport, Scores

SHOP = Path(__file__).parent.parent / "examples" / "shop"
BUNDLE = SHOP / "node_modules" / "mutation-testing-elements" / "dist" / "mutation-test-elements.js"
LANES = {"validation": 4, "generation": 8}
STEPS = (  # of every scope: what, its lane, its seconds
    ("baseline", "validation", 9.0), ("search", "validation", 2.0), ("validate", "validation", 4.0),
    ("generate", "generation", 31.0), ("validate", "validation", 5.0), ("land", "validation", 1.5),
    ("confirm", "validation", 6.0),
)  # fmt: skip


def events(scopes: int) -> list[dict[str, Any]]:
    """A run of so many scopes: each goes through STEPS, in the first slot that frees."""
    free = {lane: [0.0] * slots for lane, slots in LANES.items()}
    ready = [0.0] * scopes
    names = [name(i) for i in range(scopes)]
    found: list[dict[str, Any]] = [
        {"event": "run-started", "at": 0.0, "lanes": LANES, "scopes": names, "selected": 7 * scopes}
    ]
    before: dict[str, str] = {}
    for n, (kind, lane, seconds) in enumerate(STEPS):
        for i, scope in enumerate(names):
            slot = min(range(LANES[lane]), key=free[lane].__getitem__)
            started = max(free[lane][slot], ready[i])
            ended = started + seconds * (0.5 + i % 7 / 6)
            task = f"{kind}:{scope}:{n}"
            found.append(
                {
                    "event": "attempt", "task": task, "scope": scope, "kind": kind, "lane": lane, "slot": slot,
                    "ready": ready[i], "started": started, "ended": ended, "outcome": "ok", "after": before.get(scope),
                    "spans": [["work", "audit", started + seconds / 4, started + seconds / 3]] if not n else [],
                }
            )  # fmt: skip
            free[lane][slot] = ready[i] = ended
            before[scope] = task
    found.append({"event": "run-ended", "at": max(ready), "status": 0, "interrupted": False})
    return [{"run": "20260101T000000Z-1", **each} for each in found]


def name(i: int) -> str:
    return f"src/area{i // 40}/module{i}.js"


def report(scopes: int, mutants: int, title: str = "returns {n} for an order of {n} lines", why: str = "") -> Report:
    """Of so many scopes with so many mutants in all: a tenth of them is left, and another tenth killed by tests."""
    each = mutants // scopes
    part = max(1, each // 10)
    before, after = Scores(each, 2 * part, 0, 80.0, 80.0), Scores(each, part, 0, 90.0, 90.0)
    happened = ledger.by_event(events(scopes))
    found = timeline.of(happened)
    made = []
    for i in range(scopes):
        killed = [
            Killed(name(i), n + 1, "EqualityOperator", f"a{n} > b", f"a{n} >= b", "assertion") for n in range(part)
        ]
        tests = tuple(
            LandedTest(
                title.format(n=n), f"test/module{i}.test.js", f"it('{n}', () => {{\n  run({n});\n}});", "claude", (k,)
            )
            for n, k in enumerate(killed)
        )  # fmt: skip
        left = tuple(
            Left(name(i), 40 + n, "BooleanLiteral", "true", "false", "Survived", n == 0, why) for n in range(part)
        )
        made.append(
            ScopeReport(
                name(i), "landed" if i % 9 else "parked", why, not i % 9, before, after, True, 0, (), tests, left, (),
                {},
            )
        )  # fmt: skip
    sums = [Scores(mutants, n * part * scopes, 0, score, score) for n, score in ((2, 80.0), (1, 90.0))]
    run = Run("20260101T000000Z-1", "", 0.0, 3600.0, 3600.0, 1, 7 * scopes, 0, 123456, 1.5, scopes, part * scopes, 90.0)
    spent = figures.spent(happened, found) if found else ()
    told = figures.of(happened, found, spent, figures.shares(spent, found)) if found else None
    return Report(1, "mutate/main", sums[0], sums[1], tuple(made), (), told, (run,))


def elements(scopes: int, mutants: int) -> Mapping[str, Any]:
    each = mutants // scopes
    source = "".join(f"export const f{n} = (a, b) => a > b;\n" for n in range(each))
    files = {}
    for i in range(scopes):
        files[name(i)] = {
            "language": "javascript",
            "source": source,
            "mutants": [
                {
                    "id": f"{i}-{n}", "mutatorName": "EqualityOperator", "replacement": "a >= b",
                    "status": "Survived" if n % 10 == 0 else "Killed", "static": False,
                    "location": {"start": {"line": n + 1, "column": 28}, "end": {"line": n + 1, "column": 33}},
                }
                for n in range(each)
            ],
        }  # fmt: skip
    return {"schemaVersion": "2", "thresholds": {"high": 80, "low": 60}, "files": files}


def big(path: Path, scopes: int = 1000, mutants: int = 50_000) -> None:
    """Write the page of such a project."""
    made = report(scopes, mutants)
    bundle = BUNDLE.read_text() if BUNDLE.exists() else ""
    path.write_bytes(
        page.html(
            "big",
            made,
            timeline.of(ledger.by_event(events(scopes))),
            elements(scopes, mutants),
            bundle,
            "it is not installed",
        )
    )


def table(place: Path, pairs: int) -> None:
    if browser.chromium() is None:
        print(f"no Chromium: install one of {', '.join(browser.NAMES)}")
        return
    path = place / "index.html"
    big(path)
    seconds = []
    for _ in range(pairs):
        with browser.opened() as tab:
            seconds.append(tab.open(path))
    spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
    print(
        f"page of 1,000 scopes and 50,000 mutants ({path.stat().st_size / 1e6:.1f} MB): "
        f"{statistics.median(seconds):.2f} s from navigation to interactive ({spread}; asked: under 3)",
        flush=True,
    )
