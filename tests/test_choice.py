"""Which model is asked and how hard it is to think; how long a failing gateway is put up with; what no plan may say."""

# ruff: noqa: E501 - what is said of a mistake is one line, and is to be read as one

from __future__ import annotations

import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import config
from pipeline.choice import GATEWAY, LONGEST, Choice, Member, Patience, choose, of_group, of_scope
from pipeline.generators import GENERATORS, Reply
from pipeline.model import INHERIT, LANES, Confidence, GeneratorConfig, ModelsConfig, Scope, Wish
from pipeline.results import Outcome

MODELS = ModelsConfig(
    names={"large": Wish("opus", "high"), "mid": Wish("sonnet"), "small": Wish("haiku", "low"), "plain": Wish(None, "low")},
    ladder=("large", "mid", "small"),
    by_confidence={"high": Wish("small"), "medium": Wish("mid"), "low": Wish("large", "max")},
    lanes={"generate": Wish("mid", "medium"), "draft": Wish("large")},
)  # fmt: skip


def told(choice: Choice | None) -> tuple[str | None, str | None] | None:
    return None if choice is None else (choice.model, choice.effort)


@pytest.mark.parametrize(
    ("lane", "said", "confidence", "want", "below", "why"),
    [
        ("generate", [], None, ("sonnet", "medium"), ("haiku", "medium"), "lane generate"),
        ("draft", [], None, ("opus", "high"), ("sonnet", None), "lane draft"),
        ("repair", [], None, (None, None), None, "nobody names a model"),
        ("generate", [], "low", ("opus", "max"), ("sonnet", "max"), "confidence low"),
        ("repair", [], "high", ("haiku", "low"), None, "confidence high"),
        ("draft", [("task t", Wish("mid"))], "low", ("sonnet", "max"), ("haiku", "low"), "task t; effort: confidence low"),
        ("draft", [("task t", Wish(None, "max"))], "high", ("haiku", "max"), None, "confidence high; effort: task t"),
        ("draft", [("task t", Wish(INHERIT, INHERIT))], "low", (None, None), None, "task t"),
        ("draft", [("task t", Wish(INHERIT))], None, (None, None), None, "task t"),
        ("generate", [("a", Wish()), ("b", Wish("large")), ("c", Wish("small"))], None, ("opus", "high"), ("sonnet", "medium"), "b"),
        ("generate", [("a", Wish("gpt-9"))], None, ("gpt-9", "medium"), None, "a; effort: lane generate"),
        ("repair", [("a", Wish("plain"))], None, (None, "low"), None, "a"),
    ],
)  # fmt: skip
def test_what_is_said_nearest_to_the_work_goes_first(
    lane: str, said: list[tuple[str, Wish]], confidence: Confidence | None, want: Any, below: Any, why: str
) -> None:
    got = choose(MODELS, lane, said, confidence)
    assert (told(got), told(got.below), got.why) == (want, below, why)
    if got.below:
        assert got.below.below is None and got.below.why == f"one step down from {got.name}"


wishes = st.builds(
    Wish, st.sampled_from([None, INHERIT, *MODELS.names]), st.sampled_from([None, INHERIT, "low", "max"])
)
sureness = st.sampled_from([None, *get_args(Confidence)])


@given(st.lists(st.tuples(st.text("abc", min_size=1), wishes), max_size=3), sureness, st.sampled_from(LANES))
def test_a_choice_is_what_somebody_has_said_and_the_one_below_is_the_next_on_the_ladder(
    said: list[tuple[str, Wish]], confidence: Confidence | None, lane: str
) -> None:
    got = choose(MODELS, lane, said, confidence)
    first = next((wish.model for _, wish in said if wish.model), None)
    if first is not None:
        assert got.name == first
    assert got.model == (None if got.name == INHERIT else MODELS.names[got.name].model)
    assert (got.below.name if got.below else None) == {"large": "mid", "mid": "small"}.get(got.name)
    assert got.effort != INHERIT
    wanted = next((wish.effort for _, wish in said if wish.effort), None)
    if said and said[0][1].effort:
        assert got.effort == (None if wanted == INHERIT else wanted)


def test_a_group_takes_the_choice_of_its_least_confident_member() -> None:
    sure, unsure = Member("sure", (), "high"), Member("unsure", (), "low")
    silent = Member("silent", (("task silent", Wish("mid")),))
    assert told(of_group(MODELS, "draft", [sure, silent, unsure])) == ("opus", "max")
    assert told(of_group(MODELS, "draft", [sure, silent])) == ("sonnet", None)
    assert told(of_group(MODELS, "draft", [sure])) == told(choose(MODELS, "draft", (), "high"))
    assert of_group(MODELS, "draft", [sure, unsure]).why == "confidence low; least confident of 2: unsure"
    first = of_group(MODELS, "draft", [Member("a", (("task a", Wish("small")),), "low"), unsure])
    assert told(first) == ("haiku", "low")


def test_a_scope_goes_before_its_generator_and_that_before_the_lane() -> None:
    scope, entry = Scope("s", ("a.js",), None, "b.js"), GeneratorConfig("claude", "c", model="small")
    assert of_scope(MODELS, scope, entry).model == "haiku"
    assert of_scope(MODELS, attrs.evolve(scope, wish=Wish("large")), entry).model == "opus"
    assert of_scope(MODELS, scope, GeneratorConfig("claude", "c")).model == "sonnet"
    assert of_scope(ModelsConfig(), scope, GeneratorConfig("claude", "c", model="opus-9")).model == "opus-9"


def test_inherit_passes_no_flag_and_a_choice_is_a_flag_each() -> None:
    def argv(choice: Choice) -> str:
        config = choice.of(GeneratorConfig("claude", "claude", model="what the plan says"))
        return GENERATORS["claude"](config).key()["argv"]

    assert not {"--model", "--effort"} & set(argv(Choice(None, None, "")).split())
    assert argv(Choice("opus", None, "")).endswith(" --model opus")
    assert argv(Choice("opus", "high", "")).endswith(" --model opus --effort high")


def test_a_program_of_the_users_own_is_told_by_two_variables_and_by_no_run_around_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOIT_MUTATE_MODEL", "outer")
    monkeypatch.setenv("DOIT_MUTATE_EFFORT", "outer")
    show = ("sh", "-c", 'echo "${DOIT_MUTATE_MODEL-none} ${DOIT_MUTATE_EFFORT-none}"')
    for choice, want in ((Choice("m", "high", ""), "m high"), (Choice(None, None, ""), "none none")):
        generator = GENERATORS["command"](choice.of(GeneratorConfig("command", "c", show)))
        assert generator.call("", cwd=tmp_path, out_file=tmp_path / "out", timeout=9).text.strip() == want
    keys = [GENERATORS["command"](GeneratorConfig("command", "c", show, "m", effort=e)).key() for e in (None, "high")]
    assert keys[0] != keys[1]


# --- how long a gateway is put up with

TOP = Choice("opus", None, "lane draft", "large", Choice("sonnet", None, "one step down from large", "mid"))
ALONE = Choice(None, None, "nobody names a model")


def patient(
    choice: Choice, outcomes: str, tries: int = 3
) -> tuple[Patience, list[str | None], list[float], Reply, str]:
    """outcomes: a letter a call: r rate-limited, o overloaded, k ok, c crashed, s session limit."""
    letters = {"r": Outcome.RATE_LIMITED, "o": Outcome.OVERLOADED, "k": Outcome.OK, "c": Outcome.CRASHED, "s": Outcome.SESSION_LIMIT}  # fmt: skip
    left, asked, pauses = deque(outcomes), list[str | None](), list[float]()

    def call(asked_: Choice) -> Reply:
        asked.append(asked_.model)
        return Reply(letters[left.popleft()], detail="said so")

    patience = Patience(choice, tries, 2.0, pauses.append, lambda: 1.0)
    answer, given_up = patience.insist(call)
    return patience, asked, pauses, answer, given_up


@pytest.mark.parametrize(
    ("choice", "outcomes", "asked", "pauses"),
    [
        (TOP, "k", ["opus"], []),
        (TOP, "rok", ["opus"] * 3, [2.0, 4.0]),
        (TOP, "c", ["opus"], []),
        (TOP, "rs", ["opus"] * 2, [2.0]),
        (TOP, "rrrk", ["opus"] * 3 + ["sonnet"], [2.0, 4.0]),
        (TOP, "ooork", ["opus"] * 3 + ["sonnet"] * 2, [2.0, 4.0, 2.0]),
        (ALONE, "rrk", [None] * 3, [2.0, 4.0]),
    ],
)
def test_a_failing_gateway_is_asked_again_and_then_the_model_below(
    choice: Choice, outcomes: str, asked: list[str | None], pauses: list[float]
) -> None:
    patience, got_asked, got_pauses, answer, given_up = patient(choice, outcomes)
    assert (got_asked, got_pauses, given_up) == (asked, pauses, "")
    assert answer.outcome not in GATEWAY
    assert patience.waited == sum(pauses)
    assert patience.failures == sum(letter in "ro" for letter in outcomes)


def test_there_is_one_step_down_and_then_it_is_given_up_in_words() -> None:
    _, asked, _, answer, given_up = patient(TOP, "rrrooo")
    assert asked == ["opus"] * 3 + ["sonnet"] * 3
    assert answer.outcome is Outcome.OVERLOADED
    assert given_up == "rate-limited 3 times at large, then overloaded 3 times at mid: said so"
    assert patient(ALONE, "rrr")[-1] == "rate-limited 3 times: said so"


def test_work_that_has_stepped_down_stays_there_with_its_other_calls() -> None:
    patience = patient(TOP, "rrrk")[0]
    asked = []

    def call(choice: Choice) -> Reply:
        asked.append(choice.model)
        return Reply(Outcome.OK)

    patience.insist(call)
    assert asked == ["sonnet"]


def test_calls_side_by_side_step_down_together_and_only_once() -> None:
    """Both fail at the top; neither takes the other's step for its own."""
    patience, asked, both = Patience(TOP, 1, 1.0, lambda _: None), list[str | None](), threading.Barrier(2)

    def call(choice: Choice) -> Reply:
        asked.append(choice.model)
        both.wait(10)
        return Reply(Outcome.OVERLOADED if choice.model == "opus" else Outcome.OK)

    answers: list[Outcome] = []
    threads = [threading.Thread(target=lambda: answers.append(patience.insist(call)[0].outcome)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, asked)) == ["opus", "opus", "sonnet", "sonnet"]
    assert answers == [Outcome.OK, Outcome.OK]


@given(st.integers(1, 12), st.floats(0.01, 1000), st.floats(0, 1))
def test_a_back_off_doubles_is_drawn_by_lot_and_never_longer_than_five_minutes(
    tries: int, first: float, lot: float
) -> None:
    pauses: list[float] = []
    patience = Patience(ALONE, tries, first, pauses.append, lambda: lot)
    patience.insist(lambda _: Reply(Outcome.OVERLOADED))
    assert len(pauses) == tries - 1
    for i, pause in enumerate(pauses):
        full = min(LONGEST, first * 2**i)
        assert full / 2 <= pause <= full
        assert pause == pytest.approx(full * (0.5 + lot / 2))


# --- what no plan may say

PLAN = "version: 1\nscopes:\n  - {mutate: src/a.js, write: a.gen.js}\n"
CLAUDE = "generate: {with: [claude]}\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "src").mkdir()
    (folder / "src" / "a.js").write_text("")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


def problems(place: Path, text: str) -> list[str]:
    (place / "tasks.yaml").write_text(text)
    with pytest.raises(config.PlanErrors) as error:
        config.load(place / "tasks.yaml")
    return [f"{p.line}: {p.path}: {p.message}" for p in error.value.problems]


LADDER = "models: {ladder: [large, mid, small]}\n"
WRONG = {
    "an empty ladder": ("models: {ladder: []}\n", ["4: models.ladder: it names no model; list them, the strongest first; or leave it out"]),
    "a ladder of a name that is none": (
        "models:\n  names: {large: opus, mid: sonnet}\n  ladder: [large, mdi]\n",
        ["6: models.ladder[1]: no model is called 'mdi'; say one of large, mid"],
    ),
    "a ladder of a name without a model": (
        "models:\n  names: {large: opus, mid: {effort: high}}\n  ladder: [large, mid]\n",
        ["6: models.ladder[1]: 'mid' names no model (also models.names.mid, line 5); say which under `names: mid`"],
    ),
    "inherit on a ladder": ("models: {ladder: [large, inherit]}\n", ["4: models.ladder[1]: inherit is no model; name one"]),
    "inherit for a name": ("models: {names: {inherit: opus}}\n", ["4: models.names.inherit: inherit is what names no model; choose another name"]),
    "one model twice": ("models: {ladder: [a, b, a]}\n", ["4: models.ladder[2]: 'a' stands on it twice; a step down leads to another model"]),
    "confidence": (
        LADDER[:-2] + ", by_confidence: {high: smal, sure: mid}}\n",
        ["4: models.by_confidence.high: no model is called 'smal'; say one of large, mid, small, inherit; a program's own name goes under `models: names`",
         "4: models.by_confidence.sure: no such name for a key; choose from high, low, medium"],
    ),
    "confidence without names": ("models: {by_confidence: {low: large}}\n", ["4: models.by_confidence.low: no model is called 'large'; list it under `ladder` or `names`"]),
    "a lane": (
        LADDER[:-2] + ", draft: opus}\n",
        ["4: models.draft: no model is called 'opus'; say one of large, mid, small, inherit; a program's own name goes under `models: names`"],
    ),
    "a generator": (
        LADDER + "generate: {with: [{use: claude, model: larg, effort: hihg}]}\n",
        ["5: generate.with[0].effort: no effort is called 'hihg'; say one of low, medium, high, xhigh, max, inherit",
         "5: generate.with[0].model: no model is called 'larg'; say one of large, mid, small, inherit; a program's own name goes under `models: names`"],
    ),
    "an effort of another program": (
        "generate: {with: [claude]}\nmodels: {generate: {effort: minimal}}\n",
        ["4: generate.with[0]: claude knows no effort 'minimal' (nobody names a model; effort: lane generate); say one of low, medium, high, xhigh, max, inherit"],
    ),
    "differential": ("generate: {with: [{use: differential, effort: low}]}\n", ["4: generate.with[0].effort: differential asks no model; leave `effort` out"]),
    "tries": ("models: {tries: 0}\n", ["4: models.tries: expected a whole number from 1 to 1000, got 0"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_an_illegal_name_is_told_with_its_place_and_the_legal_ones(place: Path, text: str, said: list[str]) -> None:
    assert sorted(problems(place, PLAN + text)) == sorted(said)


def test_a_scope_may_only_name_what_the_plan_declares(place: Path) -> None:
    scope = PLAN.replace("write: a.gen.js", "write: a.gen.js, model: gpt, effort: hgih, confidence: hi")
    assert problems(place, scope + LADDER) == [
        "3: scopes[0].confidence: no such name, got 'hi'; did you mean 'high'?",
        "3: scopes[0].effort: no effort is called 'hgih'; say one of low, medium, high, xhigh, max, none, minimal, ultra, inherit",
        "3: scopes[0].model: no model is called 'gpt'; say one of large, mid, small, inherit; a program's own name goes under `models: names`",
    ]


def test_a_plan_without_names_of_its_own_hands_on_what_it_says(place: Path) -> None:
    (place / "tasks.yaml").write_text(
        PLAN + "generate: {with: [{use: claude, model: any-model-1}]}\nmodels: {draft: opus}\n"
    )
    plan = config.load(place / "tasks.yaml")
    assert of_scope(plan.models, plan.scopes[0], plan.generate.models[0]).model == "any-model-1"
    assert choose(plan.models, "draft", ()).model == "opus"
