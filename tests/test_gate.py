"""The batch gate's decisions, by example and over random plans, against one draft after another."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Collection, Iterable, Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.gate import (
    PRIOR,
    Build,
    Gate,
    Land,
    Park,
    Stack,
    Stuck,
    Verdict,
    best_size,
    decide,
    observed,
    per_landed,
    split,
)
from pipeline.model import LARGEST

GREEN, RED, UNVERIFIED = Verdict
Judge = Callable[[Stack], Verdict]  # of all that is on the branch, what has landed too


@attrs.define
class Run:
    """Does what a gate decides, with a judge for a build."""

    judge: Judge
    most: int
    rate: float = PRIOR
    landed: Stack = ()
    parked: dict[str, Park] = attrs.field(factory=dict)
    stuck: Stuck | None = None
    built: list[Stack] = attrs.field(factory=list)  # with what had landed
    landings: int = 0

    def of(self, waiting: Iterable[str]) -> Run:
        gate = Gate(self.most, self.rate, list(waiting))
        while (what := gate.next()) is not None:
            if isinstance(what, Build):
                before = gate.judged.get(what.stack, [])
                assert what.stack == tuple(d for d in gate.waiting if d in what.stack), "not in landing order"
                assert set(before) <= {UNVERIFIED} and len(before) < 2, "built again"
                self.built.append(self.landed + what.stack)
                gate.built(what.stack, self.judge(self.landed + what.stack))
            elif isinstance(what, Land):
                assert gate.judged[what.stack][-1] is GREEN, "landed what was not judged as it lands"
                assert tuple(gate.waiting[: len(what.stack)]) == what.stack
                self.landed += what.stack
                self.landings += 1
                gate.landed(what.stack)
            elif isinstance(what, Park):
                self.parked[what.draft] = what
                gate.gone(what.draft)
            else:
                self.stuck = what
                break
        return self


def failing(*sets: Collection[str]) -> Judge:
    """Red where all of one of these are there."""
    return lambda stack: RED if any(set(each) <= set(stack) for each in sets) else GREEN


def one_by_one(waiting: Sequence[str], judge: Judge) -> tuple[Stack, Stack]:
    """What lands and what doesn't where each is judged on all that has landed before it."""
    landed: Stack = ()
    parked: Stack = ()
    for draft in waiting:
        if judge((*landed, draft)) is GREEN:
            landed = (*landed, draft)
        else:
            parked = (*parked, draft)
    return landed, parked


# -- by example


def test_a_green_stack_lands_whole_for_one_build() -> None:
    gate = Run(failing(), 5).of("abcde")
    assert (gate.landed, gate.built) == (tuple("abcde"), [tuple("abcde")])


def test_a_draft_that_only_the_next_one_completes_lands_with_it_where_both_are_built_together_and_not_alone() -> None:
    def judge(stack: Stack) -> Verdict:
        return RED if "a" in stack and "b" not in stack else GREEN

    assert Run(judge, 5).of("ab").landed == ("a", "b"), "the branch passes through a alone, which is red"
    each = Run(judge, 1).of("ab")
    assert (each.landed, set(each.parked)) == (("b",), {"a"}), "with batch 1 every commit was built"


def test_a_guilty_draft_is_found_alone_and_the_rest_lands_after_a_green_build_of_its_own() -> None:
    gate = Run(failing("c"), 5).of("abcde")
    assert gate.landed == tuple("abde")
    assert gate.parked == {"c": Park("c", RED)}
    assert gate.parked["c"].reason == "red alone"
    assert gate.built[-1] == tuple("abde")
    assert ("c",) in gate.built and () in gate.built  # not blamed for what else is red, or the branch


def test_of_two_that_fail_only_together_the_later_is_parked_with_the_earlier_named() -> None:
    gate = Run(failing("bd"), 5).of("abcde")
    assert gate.landed == tuple("abce")
    assert gate.parked == {"d": Park("d", RED, ("b",))}
    assert gate.parked["d"].reason == "green alone, and red together with b, before it in landing order"
    assert {("b", "d"), ("d",)} <= set(gate.built)


def test_three_that_fail_only_together_are_named_too() -> None:
    gate = Run(failing("ace"), 6).of("abcdef")
    assert gate.landed == tuple("abcdf")
    assert gate.parked == {"e": Park("e", RED, ("a", "c"))}


def test_a_pair_whose_first_is_already_on_the_branch_is_red_alone() -> None:
    gate = Run(failing("ad"), 2).of("abcd")
    assert gate.parked == {"d": Park("d", RED)}


def test_what_was_green_until_others_landed_says_so() -> None:
    gate = Gate(5, waiting=list("abde"))
    gate.built(("d",), GREEN)
    gate.built(("a", "b"), GREEN)
    gate.landed(("a", "b"))
    gate.built(("d", "e"), RED)
    gate.built(("d",), RED)
    park = gate.next()
    assert park == Park("d", RED, since=("a", "b"))
    assert isinstance(park, Park) and park.reason == "red alone, and green before a and b landed"


def test_nobody_is_blamed_where_the_branch_itself_is_red() -> None:
    gate = Run(lambda _: RED, 5).of("abcde")
    assert (gate.stuck, gate.parked, gate.landed) == (Stuck(RED), {}, ())


def test_a_draft_that_mends_the_branch_lands_and_the_others_are_judged_on_it() -> None:
    gate = Run(lambda stack: GREEN if "a" in stack and "d" not in stack else RED, 5).of("abcde")
    assert gate.landed == tuple("abce")
    assert gate.parked == {"d": Park("d", RED)}


def test_a_build_that_the_machine_could_not_finish_is_tried_once_more() -> None:
    said = iter([UNVERIFIED, GREEN])
    gate = Run(lambda _: next(said), 5).of("abc")
    assert (gate.landed, gate.built) == (tuple("abc"), [tuple("abc")] * 2)


def test_what_is_tried_again_is_what_was_not_finished_though_more_have_come() -> None:
    assert decide("abcd", {("a", "b"): [UNVERIFIED]}, 5) == Build(("a", "b"), "again: the machine could not finish it")


def test_a_draft_that_no_build_gets_through_with_is_unverified_and_not_guilty() -> None:
    gate = Run(lambda stack: UNVERIFIED if "b" in stack else GREEN, 4).of("abcd")
    assert gate.landed == tuple("acd")
    assert gate.parked == {"b": Park("b", UNVERIFIED)}
    assert max(map(gate.built.count, gate.built)) == 2


def test_a_machine_that_finishes_nothing_blames_nobody_and_gives_up() -> None:
    gate = Run(lambda _: UNVERIFIED, 4).of("abcd")
    assert (gate.stuck, gate.parked, gate.landed) == (Stuck(UNVERIFIED), {}, ())
    assert len(gate.built) <= 8


def test_trouble_that_passes_costs_no_draft() -> None:
    said = iter([UNVERIFIED, UNVERIFIED])
    gate = Run(lambda _: next(said, GREEN), 4).of("abcd")
    assert gate.landed == tuple("abcd")


def test_nothing_is_to_be_done_where_nothing_waits() -> None:
    assert decide([], {(): [RED]}, 5) is None


# -- over random plans


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[str], list[frozenset[str]], int, float]:
    """Drafts; sets of them that fail together, most of one draft or two; the most drafts of one stack; a rate."""
    drafts = [f"d{i}" for i in range(draw(st.integers(1, 14)))]
    some = st.frozensets(st.sampled_from(drafts), min_size=1, max_size=3)
    sets = draw(st.lists(some, max_size=4))
    return drafts, sets, draw(st.integers(1, 8)), draw(st.floats(0, 1))


@settings(max_examples=400, deadline=None)
@given(plans())
def test_what_lands_is_what_lands_one_by_one_who_is_parked_is_named_rightly_and_builds_are_bounded(
    plan: tuple[list[str], list[frozenset[str]], int, float],
) -> None:
    drafts, sets, most, rate = plan
    judge = failing(*sets)
    gate = Run(judge, most, rate).of(drafts)
    landed, parked = one_by_one(drafts, judge)
    assert (gate.landed, gate.stuck) == (landed, None)
    assert set(gate.parked) == set(parked)
    for draft, park in gate.parked.items():
        before = tuple(d for d in landed if drafts.index(d) < drafts.index(draft))
        assert set(park.together) <= set(before)
        assert judge((*before, draft)) is RED
        if not park.together:
            continue
        for left_out in park.together:  # all that is named is needed
            assert judge((*(d for d in park.together if d != left_out), draft)) is GREEN
    states = [frozenset(stack) for stack in gate.built]
    assert len(states) == len(set(states)), "a state was judged twice"
    size = best_size(rate, most)
    stacks, halvings = math.ceil(len(drafts) / size), math.ceil(math.log2(size))
    named = max((len(park.together) for park in gate.parked.values()), default=0)
    a_search = 1 + size + halvings + named * (halvings + 1) + 1  # stack, alone, beginnings, partners, the branch
    assert len(gate.built) <= stacks + len(gate.parked) * a_search
    assert gate.parked or len(gate.built) == stacks


@settings(max_examples=200, deadline=None)
@given(plans(), st.randoms(use_true_random=False))
def test_a_machine_in_trouble_never_lands_what_was_not_green_and_always_comes_to_an_end(
    plan: tuple[list[str], list[frozenset[str]], int, float], chance: object
) -> None:
    drafts, sets, most, rate = plan
    truth = failing(*sets)
    flip = getattr(chance, "random")  # noqa: B009
    gate = Run(lambda stack: UNVERIFIED if flip() < 0.3 else truth(stack), most, rate).of(drafts)
    assert all(truth(gate.landed[:n]) is GREEN for n in range(len(gate.landed) + 1))
    assert gate.stuck or {*gate.landed, *gate.parked} == set(drafts)
    blamed = [d for d, park in gate.parked.items() if park.verdict is RED]
    for draft in blamed:
        together = gate.parked[draft].together
        before = tuple(d for d in gate.landed if drafts.index(d) < drafts.index(draft))
        assert truth((*before, *together, draft)) is RED


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 10), st.integers(1, 6), st.integers(0, 2**32))
def test_any_judge_at_all_is_come_to_an_end_with(count: int, most: int, seed: int) -> None:
    """What is red may be green with one more draft: nothing that a build says is taken for granted."""
    drafts = [f"d{i}" for i in range(count)]
    verdicts = itertools.cycle(f"{seed:032b}")
    memory: dict[frozenset[str], Verdict] = {}

    def judge(stack: Stack) -> Verdict:
        return memory.setdefault(frozenset(stack), GREEN if next(verdicts) == "0" else RED)

    gate = Run(judge, most).of(drafts)
    assert gate.stuck or {*gate.landed, *gate.parked} == set(drafts)
    assert len(gate.built) <= 4 * (count + 1) * (most + 4)


# -- how many


@pytest.mark.parametrize(("rate", "most", "asked"), [(0.0, 5, 0.25), (0.05, 5, 0.6), (0.2, 5, 1.1), (0.2, 32, 1.1)])
def test_what_a_draft_costs_is_what_was_expected_and_less_than_was_asked(rate: float, most: int, asked: float) -> None:
    chance, built, landed = random.Random(1), 0, 0
    for _ in range(60):
        drafts = [f"d{i}" for i in range(60)]
        gate = Run(failing(*([d] for d in drafts if chance.random() < rate)), most, rate).of(drafts)
        built, landed = built + len(gate.built), landed + len(gate.landed)
    assert built / landed <= asked
    assert built / landed == pytest.approx(per_landed(best_size(rate, most), rate), rel=0.12)  # a plan has an end


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9])
def test_auto_takes_the_size_that_costs_least(rate: float) -> None:
    best = best_size(rate)
    assert per_landed(best, rate) == min(per_landed(n, rate) for n in range(1, LARGEST + 1))
    assert per_landed(best, rate) <= 1 / (1 - rate) + 1e-9  # one by one


def test_auto_goes_with_the_rate_from_the_largest_to_one_at_a_time() -> None:
    sizes = [best_size(rate / 100) for rate in range(0, 100, 5)]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (LARGEST, 1)


def test_a_rate_is_drawn_to_what_is_expected_while_few_were_judged() -> None:
    assert observed(0, 0) == PRIOR
    assert PRIOR < observed(1, 1) < 0.2
    assert observed(200, 1000) == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("rate", [-1.0, 0.0, 0.3, 1.0, 7.0])
def test_a_cut_leaves_something_on_both_sides_whatever_the_rate(rate: float) -> None:
    assert split(1, rate) == 1
    assert all(1 <= split(n, rate) < n for n in (2, 3, 10, LARGEST, 1000))
