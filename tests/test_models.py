"""The paid part: what a model is asked, what it costs, and that nothing is ever asked or paid for twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import MadeOnce, World, copy_world

GATE, LABEL = "test/label.mutants.test.js", "src/label.js"
IMPORTS = ["import assert from 'node:assert/strict';", "import { gate } from '../src/label.js';"]
OPENS = "the gate opens for its word"
HASH = "hash === 194664"  # a text that only prompts about `gate` hold


def unit(title: str, body: str) -> dict[str, Any]:
    return {"kills": [1], "title": title, "imports": IMPORTS, "code": f"it('{title}', () => {{\n  {body}\n}});"}


def says(*units: dict[str, Any], match: str = "*", **more: Any) -> dict[str, Any]:
    """A rule of the stand-in's script: a reply with these tests."""
    return {"match": match, "text": json.dumps({"tests": units}), **more}


KILLS = unit(OPENS, "assert.equal(gate('sesame seed'), 'open');")
SPENT = ("fresh_input", "cache_write", "cache_read", "output")
USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def paid(world: World) -> list[tuple[float, ...]]:
    """What each call of the last run cost, as the ledger has it."""
    return [(*(e["tokens"][k] for k in SPENT), e["tokens"]["cost"]) for e in world.events("call") if e["tokens"]]


def billed(calls: list[dict[str, Any]]) -> list[tuple[float, ...]]:
    """What each call cost, as the stand-in has it."""
    return [(*(c["usage"][k] for k in USAGE), c["cost"]) for c in calls]


def test_a_model_is_asked_only_about_what_search_left_and_its_test_lands_and_its_tokens_are_in_the_books(
    driven: World,
) -> None:
    driven.use_claude()
    driven.script([says(KILLS)])
    done = driven.doit("-n", "2", "mutate")
    assert OPENS in driven.titles(GATE)
    (call,) = driven.calls()
    assert HASH in call["prompt"] and "name.length" not in call["prompt"].partition("# Mutants")[2]
    assert paid(driven) == billed([call])
    tokens = sum(call["usage"][k] for k in USAGE) - call["usage"]["cache_read_input_tokens"]
    assert f"{tokens:,}" in done.out
    assert driven.ran("generate") == {LABEL, "src/cart.js", "src/price.js"}  # the others had nothing to ask
    assert f"{tokens:,}" in driven.doit("report").out
    assert driven.doit("-n", "2", "mutate").out.count("nothing to do: 0 engine runs, 0 calls") == 1
    assert len(driven.calls()) == 1


LADDER = "backoff: 0.01, tries: 2, names: {large: opus-1, mid: {model: sonnet-1, effort: low}}, ladder: [large, mid]"


def test_a_gateway_that_goes_on_failing_lands_nothing_of_the_model_and_the_next_run_asks_again(driven: World) -> None:
    driven.use_claude(models=f"{LADDER}, generate: large")
    found = driven.titles(GATE)
    driven.script(
        [{"match": "*", "special": s, "exit": 0, "times": 2} for s in ("rate-limit", "overloaded")] + [says(KILLS)]
    )
    done = driven.doit("-n", "2", "mutate", code=1)
    assert done.ending(LABEL) == "failed"
    assert "exhausted: rate-limited 2 times at large, then overloaded 2 times at mid" in done.out
    assert driven.titles(GATE) == found != []
    assert [c["argv"][c["argv"].index("--model") + 1] for c in driven.calls()] == ["opus-1"] * 2 + ["sonnet-1"] * 2
    assert [e["outcome"] for e in driven.events("call")] == ["rate-limited"] * 2 + ["overloaded"] * 2
    (event,) = [e for e in driven.events() if e["kind"] == "generate" and e["scope"] == LABEL]
    assert event["outcome"] == "exhausted" and event["calls"] == 4 == event["gateway_failures"]
    assert (event["model"], event["effort"], event["chosen_by"]) == ("opus-1", None, "lane generate")
    assert event["stepped_down"] == {"model": "sonnet-1", "effort": "low", "chosen_by": "one step down from large"}
    assert 0.01 <= event["waited"] <= 0.02
    done = driven.doit("-n", "2", "mutate")
    assert done.ending(LABEL) == "landed"
    assert OPENS in driven.titles(GATE)
    assert len(driven.calls()) == 5 and "opus-1" in driven.calls()[-1]["argv"]


def test_what_a_model_lower_down_has_answered_is_not_paid_for_again(driven: World) -> None:
    driven.use_claude(models=f"{LADDER}, generate: {{model: large, effort: high}}")
    driven.script([{"match": "*", "special": "overloaded", "times": 2}, says(KILLS)])
    done = driven.doit("-n", "2", "mutate")
    assert OPENS in driven.titles(GATE)
    assert "(sonnet-1, one step down from large)" in done.out
    assert "for the gateway" in done.out
    first, _, lower = driven.calls()
    assert first["argv"][-4:] == ["--model", "opus-1", "--effort", "high"]
    assert lower["argv"][-4:] == ["--model", "sonnet-1", "--effort", "high"]
    driven.doit("forget", "-a")
    shutil.rmtree(driven.root / "cache")
    driven.doit("-n", "2", "mutate")
    assert OPENS in driven.titles(GATE)
    for store in driven.home.rglob("asked"):
        shutil.rmtree(store)  # as where the run was killed when the reply had just come
    driven.doit("-n", "2", "-a", "mutate")
    assert len(driven.calls()) == 3
    assert OPENS in driven.titles(GATE)


@pytest.mark.parametrize("special", ["session-limit", "not-logged-in"])
def test_a_limit_that_only_time_or_a_person_lifts_stops_the_calls_of_that_program_alone(
    world: World, special: str, tmp_path: Path
) -> None:
    """A second program, behind the first in the plan, is asked all the same."""
    program = tmp_path / "writer"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho '{\"tests\": []}'\n")
    program.chmod(0o755)
    world.use_claude()
    world.edit("tasks.yaml", "[differential, claude]", f"[claude, {{use: command, name: writer, run: [{program}]}}]")
    world.script([{"match": "*", "special": special}])
    done = world.doit("-n", "2", "mutate", code=1)
    assert len(world.calls()) == 1
    ends = [(e["round"], e["outcome"]) for e in world.events() if e["kind"] == "generate"]
    assert {outcome for round_, outcome in ends if round_ == 1} == {special}
    assert {outcome for round_, outcome in ends if round_ == 2} == {"ok"}
    assert "not asked any more" in done.out
    assert len([e for e in world.events("call") if e["generator"] == "claude"]) == 1
    world.script([says(KILLS)])
    world.doit("-n", "2", "mutate")
    assert len(world.calls()) > 1


def test_a_rate_limit_in_a_cold_run_still_lands_what_search_found(world: World) -> None:
    world.use_claude()
    world.script([{"match": "*", "special": "rate-limit", "exit": 0}])
    done = world.doit("-n", "2", "mutate", code=1)
    assert done.ending(LABEL) == "failed"
    assert world.titles(GATE) != []
    assert len(world.subjects()) == 3


def test_a_second_model_is_asked_only_about_what_the_first_left(driven: World) -> None:
    driven.use_claude()
    driven.edit("tasks.yaml", "claude]", "claude, {use: claude, name: other, model: other-1}]")
    shut = unit("the gate is shut for another word", "assert.equal(gate('x'), 'shut');")
    driven.script([says(shut, match="*", times=1), says(KILLS)])
    driven.doit("-n", "2", "mutate")
    first, other = driven.calls()
    assert "other-1" in other["argv"] and "other-1" not in first["argv"]
    assert OPENS in driven.titles(GATE) and "the gate is shut for another word" not in driven.titles(GATE)
    assert [e["generator"] for e in driven.events("call")] == ["claude", "other"]


def test_a_model_that_is_added_to_the_list_is_asked_and_no_other_again(driven: World) -> None:
    driven.use_claude()
    driven.script([says(times=1), says(KILLS)])
    driven.doit("-n", "2", "mutate")
    driven.edit("tasks.yaml", "claude]", "claude, {use: claude, name: other, model: other-1}]")
    driven.doit("-n", "2", "mutate")
    first, other = driven.calls()
    assert "other-1" in other["argv"] and "other-1" not in first["argv"]
    assert OPENS in driven.titles(GATE)
    assert driven.measured() <= {LABEL}  # the engine's word on what has landed, at most


@pytest.fixture(scope="module")
def asked_once(driven_once: World, made_once: MadeOnce) -> World:
    """Where a model has been asked, and what it wrote has landed."""

    def make(place: Path) -> World:
        world = copy_world(driven_once, place)
        world.use_claude(rounds=2)
        world.commit()
        world.script([says(KILLS)])
        world.doit("-n", "2", "mutate")
        assert OPENS in world.titles(GATE) and len(world.calls()) == 1
        return world

    return made_once("asked", make)


@pytest.mark.parametrize("what", ["forget", "clean", "always", "no cache", "a clone", "merged"])
def test_a_kept_reply_is_never_paid_for_again(asked_once: World, tmp_path: Path, what: str) -> None:
    world = copy_world(asked_once, tmp_path / "w")
    again = world
    options: tuple[str, ...] = ()
    if what == "forget":
        world.doit("forget", "-a")
    elif what == "clean":
        world.doit("clean", "-a")
    elif what == "always":
        options = ("-a",)
    elif what == "no cache":
        shutil.rmtree(world.root / "cache")
        world.git("branch", "--delete", "--force", "mutate/main")
    elif what == "a clone":
        world.git("clone", "--quiet", str(world.root), str(tmp_path / "clone"))
        (tmp_path / "clone" / "node_modules").symlink_to((world.root / "node_modules").resolve())
        again = World(tmp_path / "clone", world.home, world.env)
    else:
        world.git("merge", "--quiet", "mutate/main")
    again.doit("-n", "2", *options, "mutate")
    assert len(world.calls()) == 1
    assert not again.events("call")
    if what != "merged":
        assert again.titles(GATE) == asked_once.titles(GATE)


def test_a_call_that_failed_is_no_attempt_and_one_of_a_later_round_is(driven: World) -> None:
    driven.use_claude(rounds=2)
    wrong = unit("the gate is ajar", "assert.equal(gate('sesame seed'), 'ajar');")
    driven.script([{"match": "*", "special": "not-logged-in", "times": 1}, says(wrong)])
    driven.doit("-n", "2", "mutate", code=1)
    for _ in range(2):
        driven.doit("-n", "2", "mutate")
        driven.doit("forget", "-a")
    assert len([c for c in driven.calls() if c["usage"]["output_tokens"]]) == 2
    assert "the gate is ajar" in driven.calls()[-1]["prompt"]  # with the reason why it was no use


@pytest.mark.parametrize(
    ("rule", "outcome", "ending"),
    [
        (says({**KILLS, "kills": [39]}), "rejected", "landed"),
        (says({**KILLS, "code": "it('breaks', () => { assert.equal(1, });"}), "rejected", "landed"),
        (says(unit("is wrong", "assert.equal(gate('sesame seed'), 'ajar');")), "it fails on the original", "landed"),
        (says(unit("is shut for y", "assert.equal(gate('y'), 'shut');")), "it kills nothing", "landed"),
        ({"match": "*", "special": "prose"}, "unparsable", "landed"),
        ({"match": "*", "special": "truncated"}, "unparsable", "landed"),
        ({"match": "*", "special": "empty"}, "empty-reply", "failed"),
        ({"match": "*", "special": "not-json"}, "unparsable", "failed"),
        ({"match": "*", "special": "not-logged-in", "exit": 1}, "not-logged-in", "failed"),
        ({"match": "*", "special": "exit-1"}, "crashed", "failed"),
    ],
    ids=["other-mutants", "no-code", "wrong", "useless", "prose", "truncated", "empty", "not-json", "login", "exit-1"],
)
def test_a_reply_that_is_no_use_has_a_name_and_lands_nothing(
    driven: World, rule: dict[str, Any], outcome: str, ending: str
) -> None:
    driven.use_claude()
    before = driven.on_branch(GATE)
    driven.script([rule])
    done = driven.doit("-n", "2", "mutate", code=1 if ending == "failed" else 0)
    assert done.ending(LABEL) == ending
    assert driven.on_branch(GATE) == before
    scope = next((driven.root / "cache" / "scopes").glob("*label*"))
    said = [json.loads((scope / name).read_text()) for name in ("candidates.1.json", "proofs.1.json")]
    assert outcome in json.dumps(said)
    assert len(driven.calls()) == 1


def test_any_program_may_be_the_generator(driven: World, tmp_path: Path) -> None:
    program = tmp_path / "writer"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/asked\ncat <<'EOF'\n{json.dumps({'tests': [KILLS]})}\nEOF\n")
    program.chmod(0o755)
    driven.write(
        "tasks.yaml",
        driven.read("tasks.yaml").replace(
            "with: [differential]",
            f"with: [differential, {{use: command, name: writer, run: [{program}]}}]\n  rounds: 1",
        ),
    )
    driven.doit("-n", "2", "mutate")
    assert OPENS in driven.titles(GATE)
    assert HASH in (tmp_path / "asked").read_text()
    (event,) = driven.events("call")
    assert event["outcome"] == "ok" and event["tokens"]["source"] == "not measured"
    driven.doit("-n", "2", "-a", "mutate")
    assert not driven.events("call")


def test_a_run_that_only_calls_a_model_has_no_ratio_of_lanes(driven: World) -> None:
    driven.use_claude()
    driven.script([{"match": "*", "special": "rate-limit"}])
    driven.doit("-n", "2", "mutate", code=1)
    again = driven.doit("-n", "2", "mutate", code=1)
    assert "rate-limited" in again.out
    assert "ceiling" not in again.out
