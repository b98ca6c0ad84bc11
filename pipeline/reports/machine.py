"""The report for machines: JSON, a pull request's comment, JUnit's XML, and the format of mutation-testing-elements."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import cattrs

from pipeline.reports.tables import many
from pipeline.reports.whole import LandedTest, Report, Scores
from pipeline.results import Landed, Proofs, find
from pipeline.session import Session

TELLING = 3  # tests that a comment shows
_converter = cattrs.Converter()


def as_json(report: Report) -> str:
    """The document that docs/report.schema.json describes."""
    return json.dumps(_converter.unstructure(report), indent=1, sort_keys=True, ensure_ascii=False)


def schema() -> dict[str, Any]:
    """The JSON Schema of that document."""
    from pipeline import schema
    from pipeline.reports import figures, whole

    for module in (figures, whole):
        for class_ in vars(module).values():
            if isinstance(class_, type) and attrs.has(class_) and class_.__module__ == module.__name__:
                attrs.resolve_types(class_, include_extras=True)
    return schema.document("report", Report)


def as_markdown(report: Report) -> str:
    """A comment of a few lines on what a drive has done."""
    if not report.scopes:
        return "\n".join([_of_run(report), *_not_done(report)]) + "\n"
    if report.before is None or report.after is None:
        return "No scope has been measured yet.\n"
    tests = [test for scope in report.scopes for test in scope.tests]
    spent = report.figures.spent if report.figures else ()
    kill, killed = "kills" if len(tests) == 1 else "kill", report.before.survivors - report.after.survivors
    where = f" on `{report.branch}`" if report.branch else ""
    lines = [
        f"### Mutation score {_percent(report.before.score)} → {_percent(report.after.score)}",
        "",
        f"{many(len(tests), 'test')}{where} {kill} {killed} of "
        f"{report.before.survivors} survivors; honest score {_percent(report.before.honest)} → "
        f"{_percent(report.after.honest)}; {_tokens(spent)}.",
        "",
        "| scope | survivors | score | tests | ending |",
        "|---|--:|--:|--:|---|",
    ]
    for scope in report.scopes:
        change = _change(scope.before, scope.after)
        lines.append(f"| {_cell(scope.scope)} | {change} | {len(scope.tests)} | {_cell(scope.ending)} |")
    told = sorted(tests, key=lambda test: (-len(test.kills), test.title))[:TELLING]
    if told:
        lines += ["", "The most telling tests:", "", *(f"- {_test(test)}" for test in told)]
    return "\n".join([*lines, *_not_done(report)]) + "\n"


def _of_run(report: Report) -> str:
    """Of the tasks of a plan without scopes: what the last run that did anything came to."""
    figures = report.figures
    run = next((run for run in report.runs if figures and run.run == figures.run), None)
    if run is None:
        return "No task has run yet."
    ended = Counter(task.ending for task in report.tasks)
    said = [f"{many(run.tasks, 'task')} ran, {run.failed} failed", *(f"{n} {ending}" for ending, n in ended.items())]
    return f"{', '.join(said)}; {_tokens(figures.spent if figures else ())}."


def _not_done(report: Report) -> list[str]:
    needed = [(s.scope, s.ending, s.why) for s in report.scopes if s.needs_a_person]
    needed += [(t.task, t.ending, t.why) for t in report.tasks if t.needs_a_person]
    said = [f"- {_cell(name)}: {ending}: {_cell(why.splitlines()[0] if why else '')}" for name, ending, why in needed]
    return ["", "Not done:", "", *said] if said else []


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} %"


def _tokens(spent: Any) -> str:
    if not spent:
        return "no tokens"
    if not all(each.measured for each in spent):
        return f"{many(sum(each.calls for each in spent), 'call')}, tokens not measured"
    return f"{sum(each.tokens or 0 for each in spent):,} tokens"


def _change(before: Scores | None, after: Scores | None) -> str:
    if before is None or after is None:
        return " | "
    return f"{before.survivors} → {after.survivors} | {_percent(before.score)} → {_percent(after.score)}"


def _cell(text: str) -> str:
    """As text: nothing in it is markup, a mention, or the end of a cell."""
    plain = re.sub(r"([\\`*_\[\]|~])", r"\\\1", " ".join(text.split("\n"))).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([@#])(?=\w)", r"\1<!-- -->", plain)  # else a title of a test would call somebody


def _test(test: LandedTest) -> str:
    first = test.kills[0] if test.kills else None
    what = (
        f", such as `{_code(first.original)}` → `{_code(first.replacement)}` in {_cell(first.file)}:{first.line}"
        if first
        else ""
    )
    return f"**{_cell(test.title)}** kills {many(len(test.kills), 'mutant')}{what}"


def _code(text: str) -> str:
    short = " ".join(text.split()) or "nothing"
    return (short if len(short) <= 60 else f"{short[:59]}…").replace("`", "'")


def as_junit(report: Report) -> str:
    """A test suite with a case for each scope and each agent's task: failed where a person is needed, skipped where
    work waits for a commit or was not reached. The format as Jenkins' xunit plugin documents it."""
    cases = [(s.scope, "scope", s.ending, s.why, s.needs_a_person) for s in report.scopes]
    cases += [(t.task, "task", t.ending, t.why, t.needs_a_person) for t in report.tasks]
    seconds = {}
    if report.figures:
        for scope, rows in report.figures.scopes.items():
            seconds[scope] = sum(row.seconds for row in rows if row.sort in ("useful", "recovery", "rerun"))
    skipped = ("held", "not reached")
    from xml.etree import ElementTree

    suite = ElementTree.Element(
        "testsuite", name="doit-mutate", tests=str(len(cases)),
        failures=str(sum(needed and ending not in skipped for *_, ending, _, needed in cases)),
        skipped=str(sum(ending in skipped for _, _, ending, _, _ in cases)), errors="0",
        time=f"{sum(seconds.values()):.3f}",
    )  # fmt: skip
    for name, kind, ending, why, needed in cases:
        case = ElementTree.SubElement(
            suite, "testcase", classname=kind, name=name, time=f"{seconds.get(name, 0.0):.3f}"
        )
        if ending in skipped:
            ElementTree.SubElement(case, "skipped", message=_xml(f"{ending}: {why}"))
        elif needed:
            ElementTree.SubElement(case, "failure", type=ending, message=_xml(why)).text = _xml(why)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Without what no XML may hold."""
    return "".join(
        c if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff" else "�" for c in text
    )


def elements(session: Session) -> dict[str, Any]:
    """All scopes as one report of mutation-testing-elements (schema version 2), with what landed tests kill as killed.
    https://github.com/stryker-mutator/mutation-testing-elements"""
    from pipeline.measuring import Baseline

    files: dict[str, dict[str, Any]] = {}
    test_files: dict[str, dict[str, Any]] = {}
    root = Path(session.plan.root)
    for scope in session.plan.scopes:
        baseline = find(session.target(scope.name, "baseline.json"), Baseline)
        landed = find(session.target(scope.name, "landed.json"), Landed)
        killers = _killers(session, scope.name, set(landed.titles) if landed else set())
        for title in sorted({title for titles in killers.values() for title in titles}):
            tests = test_files.setdefault(scope.write, {"tests": []})["tests"]
            tests.append({"id": f"{scope.write}: {title}", "name": title})
        for m in baseline.mutants if baseline else ():
            file = files.get(m.file)
            if file is None:
                try:
                    source = (root / m.file).read_text(encoding="utf-8", errors="replace")
                except OSError:
                    source = ""
                file = files[m.file] = {"language": session.engine.language, "source": source, "mutants": []}
            by = [f"{scope.write}: {title}" for title in killers.get(m.key, ())]
            file["mutants"].append(
                {
                    "id": m.key,
                    "mutatorName": m.mutator,
                    "replacement": m.replacement,
                    "status": "Killed" if by else str(m.final),
                    "static": m.static,
                    "location": {
                        "start": {"line": m.line, "column": m.column},
                        "end": {"line": m.end_line, "column": m.end_column},
                    },
                    **({"killedBy": by, "coveredBy": by} if by else {}),
                    **({"statusReason": m.reason} if m.reason else {}),
                }
            )
    return {
        "schemaVersion": "2",
        "thresholds": {"high": 80, "low": 60},
        "projectRoot": "",
        "files": dict(sorted(files.items())),
        "testFiles": dict(sorted(test_files.items())),
    }


def _killers(session: Session, scope: str, titles: set[str]) -> Mapping[str, list[str]]:
    """Mutant -> the landed tests that kill it."""
    killers: dict[str, list[str]] = {}
    for round_ in range(session.plan.generate.last_round + 1):
        proofs = find(session.target(scope, f"proofs.{round_}.json"), Proofs)
        for proved in proofs.proved if proofs else ():
            if proved.test.title in titles:
                for key in proved.how:
                    killers.setdefault(key, []).append(proved.test.title)
    return killers


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
