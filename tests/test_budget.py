"""What a run may spend: it stops cleanly, what was proved lands all the same, and nothing is hidden."""

from __future__ import annotations

import json

from conftest import World
from test_models import GATE, HASH, KILLS, LABEL, OPENS, USAGE, says


def test_a_budget_that_is_reached_stops_the_calls_and_says_what_was_not_reached(driven: World) -> None:
    driven.use_claude(rounds=2)
    driven.edit("tasks.yaml", "rounds: 2", "rounds: 2\n  budget: {tokens: 1}")
    driven.script([says()])
    assert "  the budget    1 tokens: then no further call is made, and what" in driven.doit("plan", "--cost").out
    done = driven.doit("-n", "2", "mutate", code=1)
    asked = [e for e in driven.events() if e["kind"] == "generate" and e["outcome"] != "cached"]
    assert len(driven.calls()) == 1  # one lane of generation: the first call comes to its end, and is the last
    stopped = {e["scope"] for e in asked if e["outcome"] == "over-budget"}
    assert stopped and all(done.ending(scope) == "not reached" for scope in stopped)
    assert "the budget of 1 tokens a run is spent" in done.out
    titles = driven.titles(GATE)
    assert titles != []  # what was proved before any call has landed
    # A larger budget goes on where it stood: what was answered is not asked again.
    driven.edit("tasks.yaml", "{tokens: 1}", "{tokens: 1M, cost: 5.00}")
    driven.script([says(KILLS, match=HASH), says()])
    driven.doit("-n", "2", "mutate")
    assert OPENS in driven.titles(GATE)
    prompts = [call["prompt"] for call in driven.calls()]
    assert len(set(prompts)) == len(prompts)


def test_a_scope_that_pays_too_much_for_a_kill_is_asked_about_no_more(driven: World) -> None:
    driven.use_claude(rounds=2)
    driven.edit("tasks.yaml", "rounds: 2", "rounds: 2\n  budget: {tokens_per_kill: 10}")
    driven.script([says()])
    done = driven.doit("-n", "2", "mutate")
    (call,) = driven.calls()  # of the first round; the second would ask about the same mutant
    tokens = sum(call["usage"][k] for k in USAGE) - call["usage"]["cache_read_input_tokens"]
    why = f"not asked: round 1 paid {tokens:,} tokens and killed nothing, and tokens_per_kill is 10"
    assert f"generate:{LABEL}:2: 0 candidates: {why}" in done.out
    report = json.loads(driven.doit("report", "--json").out)
    (spent,) = report["figures"]["spent"]
    assert (spent["scope"], spent["round"], spent["calls"], spent["kills"]) == (LABEL, 1, 1, 0)
    assert spent["nothing_for"] == "no candidate came of them"
    said = driven.doit("report").out
    assert f"{LABEL}, round 1: {tokens:,} tokens bought nothing: no candidate came of them" in said
    driven.edit("tasks.yaml", "tokens_per_kill: 10", f"tokens_per_kill: {tokens}")
    driven.script([says(KILLS)])
    driven.doit("-n", "2", "mutate")  # the floor is another one: the second round is asked
    assert OPENS in driven.titles(GATE)
