"""What a run has done, for people and for machines: one drive, asked in every form."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import attrs
import jsonschema
import pytest
from conftest import World
from test_models import KILLS, says

from pipeline import ledger
from pipeline.reports import machine
from pipeline.reports.tables import table

DOCS = Path(__file__).parent.parent / "docs"


def test_the_schema_of_the_report_in_the_docs_is_that_of_the_code() -> None:
    written = json.loads((DOCS / "report.schema.json").read_text())
    assert written == machine.schema(), "run: python -m pipeline.reports.machine > docs/report.schema.json"


def test_a_drive_is_told_in_every_form_and_no_second_of_it_is_unaccounted_for(driven: World) -> None:
    told = json.loads(driven.doit("report", "--json").out)
    jsonschema.validate(told, machine.schema())
    figures = told["figures"]
    wall = figures["end"] - figures["start"]
    events = len((driven.root / "cache/ledger.jsonl").read_text().splitlines())
    for lane in figures["lanes"]:
        assert sum(row["seconds"] for row in lane["rows"]) == pytest.approx(lane["slots"] * wall, abs=events / 1000)
    assert set(figures["scopes"]) == {scope["scope"] for scope in told["scopes"]} != set()
    for rows in figures["scopes"].values():
        assert sum(row["seconds"] for row in rows) == pytest.approx(wall, abs=events / 1000)
    labels = {row["label"] for lane in figures["lanes"] for row in lane["rows"] if row["sort"] == "useful"}
    assert {"baseline", "audit", "search", "validate", "prove", "land", "confirm"} <= labels
    tests = [test for scope in told["scopes"] for test in scope["tests"]]
    assert tests and all(test["kills"] for test in tests)
    left = sum(len(scope["survivors"]) for scope in told["scopes"])
    assert left == told["after"]["survivors"] < told["before"]["survivors"]
    started = sum(e.get("engine_runs", 0) for e in driven.events())
    assert started == 2  # one for all baselines, one that confirms what has landed
    assert "with 2 engine runs" in driven.doit("report").out
    (run,) = told["runs"]
    assert (run["status"], run["survivors"], run["landed"]) == (0, left, 3)

    elements = json.loads(driven.doit("report", "--elements").out)
    schema = driven.root / "node_modules/mutation-testing-report-schema/dist/src/mutation-testing-report-schema.json"
    jsonschema.validate(elements, json.loads(schema.read_text()))
    mutants = [mutant for file in elements["files"].values() for mutant in file["mutants"]]
    assert len(mutants) == told["after"]["mutants"]
    assert sum(mutant["status"] in ("Survived", "NoCoverage") for mutant in mutants) == left

    suite = ElementTree.fromstring(driven.doit("report", "--junit").out)
    assert (suite.get("tests"), suite.get("failures")) == (str(len(told["scopes"])), "0")

    comment = driven.doit("report", "--markdown").out
    assert f"{len(tests)} tests on `mutate/main` kill" in comment
    assert "The most telling tests:" in comment

    since = driven.doit("report", "--since", run["run"][:8]).out
    assert run["run"] in since
    assert "no model was asked: g and f are 0, and one lane would do" in driven.doit("report").out
    driven.doit("report", "--since", "nope", code=3)
    assert "no run of that name" in driven.doit("report", "--since", "nope", code=3).both
    assert "two documents" in driven.doit("report", "--json", "--junit", code=3).both
    assert driven.doit("report", "--nope", code=3).err == (
        "ERROR: option --nope not recognized; this task takes --check, --json, --markdown, --junit, --elements, "
        "--since, --what-if (doit help TASK says what each is)\n"
    )
    assert "s with validation 1, generation 3;" in driven.doit("report", "--what-if", "n=1,generation=3").out
    assert "pools: n, generation" in driven.doit("report", "--what-if", "n=none", code=3).both
    assert "'foo=3' is no such thing" in driven.doit("report", "--what-if", "foo=3", code=3).both

    told = driven.doit("report").out.splitlines()
    at = next(
        number
        for number, line in enumerate(told)
        if line.split() == ["at", "work", "slots", "together", "by", "the", "clock"]
    )
    lane, slots, _, clock, _ = told[at + 1].split()
    (none,) = [line.split()[1] for line in told[at:] if line.startswith("none ")]
    worked = [row["seconds"] for row in figures["lanes"][0]["rows"] if row["sort"] not in ("wait", "idle")]
    assert lane == figures["lanes"][0]["name"] and float(slots) == pytest.approx(sum(worked), abs=0.06)
    assert float(clock) <= float(slots) + 0.1 and float(clock) + float(none) == pytest.approx(wall, abs=0.11)


def test_where_a_call_was_not_measured_no_sum_leaves_it_out_and_a_document_says_with_its_status_who_is_needed(
    driven: World,
) -> None:
    driven.use_claude(rounds=2)
    driven.script([{"match": "*", "special": "not-json", "times": 1}, says(KILLS)])
    done = driven.doit("-n", "2", "mutate", code=1)
    calls = driven.events("call")
    measured = [e for e in calls if e["tokens"]["source"] == "envelope"]
    assert 0 < len(measured) < len(calls)
    row = next(line for line in done.out.splitlines() if re.match(r"all\s", line))
    assert re.split(r"\s{2,}", row)[-2] == "not measured"
    said = driven.doit("report").out
    untold = len(calls) - len(measured)
    assert f"tokens a kill: not measured, for the envelopes of {untold} calls do not say theirs" in said
    assert "-0.0" not in said
    ran = driven.doit("report", "--json", "--check", code=1)
    told = json.loads(ran.out)  # what is wrong stands beside it
    jsonschema.validate(told, machine.schema())
    first, last = told["runs"]
    assert (first["tokens"], last["tokens"], last["cost"]) == (0, None, None)
    assert "src/label.js: failed" in ran.err
    of_all = driven.doit("report", "--since", "2", "--check", code=1).out.splitlines()[-1]
    assert of_all.count("not measured") == 2
    assert "two documents" in driven.doit("report", "--markdown", "--what-if", "n=2", code=3).both


def test_a_run_that_was_killed_is_told_until_its_last_event_whatever_stands_in_the_ledger(driven: World) -> None:
    path = driven.root / "cache/ledger.jsonl"
    *kept, _ = path.read_text().splitlines()
    strange = ['{"event": "of another kind", "run": "1"}', '{"event": "of no run"}', "[]", '{"event": "attem']
    path.write_text("\n".join([kept[0], *strange[:3], *kept[1:], strange[3]]))
    told = json.loads(driven.doit("report", "--json").out)
    jsonschema.validate(told, machine.schema())
    assert told["figures"]["killed"]
    run = next(each for each in told["runs"] if each["tasks"])
    assert run["ended"] is None and run["seen"] == told["figures"]["end"]
    assert "it was killed, or is running" in driven.doit("report").out
    (row,) = [line for line in driven.doit("report", "--since", run["run"]).out.splitlines() if run["run"] in line]
    assert f" {(run['seen'] - run['started']) / 60:.1f} " in row and "killed, or running" in row
    # And one that was killed in its first task.
    begin, start = (next(e for e in map(json.loads, kept) if e["event"] == each) for each in ("run-started", "started"))
    with path.open("a") as file:
        for each in (begin, start, {**start, "kind": "generate", "lane": "generation"}):
            file.write("\n" + json.dumps({**each, "run": "9"}))
    said = driven.doit("report").out
    assert "no task of the run has ended" in said
    assert "a task was asking a model at its last event: what that cost is told by the run that takes" in said
    figures = json.loads(driven.doit("report", "--json").out)["figures"]
    assert (figures["run"], figures["in_flight"]) == ("9", 1)
    with path.open("a") as file:
        file.write("\n" + json.dumps({**start, "run": "9", "started": "soon"}))
    said = driven.doit("report", code=3).err
    assert f"ledger.jsonl:{path.read_text().count(chr(10)) + 1}: no event as this program writes them" in said
    # Nor does what reads durations alone end in a traceback; and times that cannot all be so are no figures.
    path.write_text("\n".join(kept))
    ran = next(e for e in map(json.loads, kept) if e["event"] == "attempt" and e["lane"])
    with path.open("a") as file:
        for _ in range(2):
            file.write("\n" + json.dumps({**ran, "slot": 7}))
    said = driven.doit("report", code=3).err
    assert f"the times of the run {ran['run']} contradict each other (validation: " in said
    with path.open("a") as file:
        file.write("\n" + json.dumps({name: value for name, value in ran.items() if name != "ended"}))
    said = driven.doit("plan", "--cost", code=3).err
    assert f"ledger.jsonl:{len(kept) + 3}: no event as this program writes them; take the line out" in said


def test_a_line_that_is_no_event_as_they_are_written_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    tokens = {"source": "envelope", "fresh_input": 1, "cache_write": 2, "cache_read": 3, "output": 4, "cost": None}
    began: dict[str, object] = {
        "event": "run-started",
        "run": "1",
        "at": 1.0,
        "lanes": {"validation": 2},
        "scopes": ["a"],
    }
    ran: dict[str, object] = {
        "event": "attempt", "run": "1", "task": "land:a", "kind": "land", "scope": "a", "round": None, "slot": 0,
        "lane": "validation", "ready": 1.0, "started": 2.0, "ended": 3.0, "outcome": "ok", "after": "validate:a:0",
        "spans": [["wait", "the merge lock", 2.0, 2.5]], "needs": ["validate:a:0"],
    }  # fmt: skip
    idle = {"event": "attempt", "run": "1", "task": "land:b", "lane": None, "outcome": "up-to-date"}
    call: dict[str, object] = {
        "event": "call",
        "run": "1",
        "reply": "r",
        "outcome": "ok",
        "started": None,
        "ended": 3.0,
        "tokens": tokens,
    }
    ending: dict[str, object] = {
        "event": "ending",
        "run": "1",
        "scope": "a",
        "ending": "landed",
        "why": "",
        "after": {"killed": 1},
    }
    good: list[Mapping[str, object]] = [
        began,
        {"event": "of a later version", "run": "1", "at": []},
        ran,
        idle,
        call,
        ending,
    ]

    def first(*events: Mapping[str, object]) -> int | None:
        path.write_text("".join(f"{json.dumps(e)}\n" for e in events))
        return ledger.strange(path)

    assert first(*good) is None
    wrong: list[tuple[Mapping[str, object], dict[str, object]]] = [
        (began, {"lanes": {"validation": "2"}}),
        (began, {"lanes": {"validation": 10**8}}), (began, {"run": 1}), (began, {"scopes": [["a"]]}),
        (ran, {"event": []}), (ran, {"started": 3.5}), (ran, {"ended": None}), (ran, {"lane": []}),
        (ran, {"ended": 1e18}), (ran, {"at": -1}), (ran, {"round": []}), (ran, {"after": {}}),
        (ran, {"spans": [["wait", "x", 2.0]]}), (ran, {"spans": [["wait", "x", "2", 3]]}),
        (call, {"tokens": {"source": "envelope"}}), (call, {"reply": None}),
        (ending, {"after": ""}), (ending, {"ending": None}),
    ]  # fmt: skip
    for e, change in wrong:
        assert first(*good, {**e, **change}) == len(good) + 1, change
    assert first(*good, {name: value for name, value in idle.items() if name != "lane"}) == len(good) + 1


def test_a_report_is_written_whatever_its_stream_takes(driven: World) -> None:
    ascii_ = attrs.evolve(driven, env={**driven.env, "PYTHONIOENCODING": "ascii"})
    assert "\\u2192" in ascii_.doit("report").out
    # Nor does what targets hold hang on the locale: a mutant's text has letters that are not in every one.
    latin = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "utf-8"}
    told = [
        json.loads(world.doit("report", "--json").out)
        for world in (driven, attrs.evolve(driven, env={**driven.env, **latin}))
    ]
    assert told[0]["scopes"] == told[1]["scopes"] and "…" in json.dumps(told[0], ensure_ascii=False)
    command = [sys.executable, "-m", "doit", "report"]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            command,
            cwd=driven.root,
            env=driven.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ran.returncode, "Traceback" in ran.stderr) == (3, False)
    assert "standard output cannot be written: No space left on device" in ran.stderr


def test_columns_stand_under_each_other_whatever_the_letters() -> None:
    assert table([["żółw", "1"], ["日本", "20"], ["e\u0301", "3"]], left=(0,)) == [
        "żółw   1",
        "日本  20",
        "e\u0301      3",
    ]


def test_what_a_comment_shows_of_names_is_text() -> None:
    wild = "a|b <img src=x>_c_*d*`e`[f](g)&lt;\n~h~ @i #1 # @"
    text = r"a\|b &lt;img src=x>\_c\_\*d\*\`e\`\[f\](g)&amp;lt; \~h\~ @<!-- -->i #<!-- -->1 # @"
    assert machine._cell(wild) == text


def test_what_a_run_will_cost_is_told_from_what_runs_have_cost(driven: World) -> None:
    assert "nothing to do: no engine run, no call" in driven.doit("plan", "--cost").out
    driven.use_claude()
    driven.edit("src/label.js", "name.length > width", "name.length > width + 0")
    said = driven.doit("plan", "--cost", "-n", "2").out
    assert "by the clock" in said and "at validation 2, generation" in said
    assert "survivors a scope after search" not in said  # the targets tell
    assert "generate 60 s" in said and "2,000 tokens a call" in said
    assert "baseline" not in said.rpartition("taken as")[2]  # the ledger tells
    told = json.loads(driven.doit("plan", "--cost", "--json", "-n", "2").out)
    assert told["due"] >= 1 and told["cost"] is None
    assert told["engine"]["low"] <= told["engine"]["mean"] <= told["engine"]["high"] <= told["validation"]["high"]
    assert told["tokens"]["mean"] >= 3000 * told["calls"]["mean"] > 0
    assert "do not go together" in driven.doit("plan", "--cost", "--hoist", "x", code=3).both
