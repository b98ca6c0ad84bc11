"""Which stack of drafts is built next, and what its verdict means. Pure: no thread, clock, file, git or doit.

Drafts wait in landing order on a branch. A stack is some of them, in that order, put on the branch's tip. What lands is
a stack that was itself built and green, on that very tip; so what lands is what would have landed one by one.

The search is nested group testing (Sobel and Groll, "Group testing to eliminate efficiently all defectives in a
binomial sample", Bell System Technical Journal 38, 1959), which halves a red group where Dorfman ("The detection of
defective members of large populations", Annals of Mathematical Statistics 14, 1943) tests all its members. Three things
differ: groups of a red stack are its beginnings, so that a green one lands; a single draft is built alone, so that a
red one is known to need no other; and a draft that is guilty only by elimination is built alone before it is blamed.
That build is what tells a pair that fails only together from one guilty draft.

Of such a pair the later draft is parked, with the earlier one named, and the earlier lands: it came first, and had it
landed an hour ago nobody would ask. Both parked, nothing would land, and neither could be mended on top of the other.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping, Sequence

import attrs

from pipeline.model import LARGEST

PRIOR, WEIGHT = 0.05, 10.0  # the rate of guilty drafts before any was seen, and how many drafts that counts as

Stack = tuple[str, ...]  # drafts in landing order on the branch's tip; () is the branch as it is


class Verdict(enum.StrEnum):
    """What one build of a stack said."""

    GREEN = "green"
    RED = "red"
    UNVERIFIED = "unverified"  # the machine could not finish it: neither


Judged = Mapping[Stack, Sequence[Verdict]]  # what the builds on the present tip said, each stack's in the order of time


@attrs.frozen
class Build:
    """Build this stack, and ask again."""

    stack: Stack
    why: str
    fresh: bool = False  # no verdict has led to it: with more that wait it would be a larger one


@attrs.frozen
class Land:
    """Move the branch to this stack, which is green. Ask again with what is left, and no verdicts but the tip's."""

    stack: Stack


@attrs.frozen
class Park:
    """Take this draft out of the queue, and ask again."""

    draft: str
    verdict: Verdict  # red, or unverified: twice the machine could not finish a build of it
    together: Stack = ()  # drafts before it without which it is green; (): it fails alone
    since: Stack = ()  # where it fails alone, and was green before: what has landed in between

    @property
    def reason(self) -> str:
        """For people."""
        if self.verdict is Verdict.UNVERIFIED:
            return "twice the machine could not finish a build of it"
        if self.together:
            return f"green alone, and red together with {' and '.join(self.together)}, before it in landing order"
        return f"red alone, and green before {' and '.join(self.since)} landed" if self.since else "red alone"


@attrs.frozen
class Stuck:
    """The branch itself is not green: no draft can be blamed, and none lands."""

    verdict: Verdict


Decision = Build | Land | Park | Stuck


@attrs.define
class Gate:
    """The drafts that wait at one branch, and what is known of them. Ask `next`, do what it says, and say what came
    of it."""

    most: int = LARGEST  # drafts of one stack; fewer where so many are guilty that fewer cost less
    rate: float = PRIOR  # of guilty drafts; it moves how many are built together, never what lands
    waiting: list[str] = attrs.field(factory=list)  # in landing order
    judged: dict[Stack, list[Verdict]] = attrs.field(factory=dict)  # on the present tip
    cleared: dict[str, Stack] = attrs.field(factory=dict)  # drafts seen green -> what has landed since

    def next(self) -> Decision | None:
        """None where nothing waits. All else makes progress: no stack is built again that was green or red, and one
        that the machine could not finish only once."""
        return decide(self.waiting, self.judged, self.most, self.rate, self.cleared)

    def built(self, stack: Stack, verdict: Verdict) -> None:
        self.judged.setdefault(stack, []).append(verdict)
        if verdict is Verdict.GREEN:
            self.cleared.update(dict.fromkeys(stack, ()))

    def landed(self, stack: Stack) -> None:
        """The branch is what the stack was, and green."""
        self.waiting = [draft for draft in self.waiting if draft not in stack]
        self.judged = {(): [Verdict.GREEN]}
        self.cleared = {d: (*since, *stack) for d, since in self.cleared.items() if d in self.waiting}

    def gone(self, draft: str) -> None:
        """It waits no more: parked, or taken back."""
        self.waiting.remove(draft)

    def renewed(self, draft: str) -> None:
        """It is another change from now on: nothing that was said of it holds."""
        self.judged = {stack: said for stack, said in self.judged.items() if draft not in stack}
        self.cleared.pop(draft, None)

    def moved(self) -> None:
        """Somebody else has moved the branch: nothing is known of its tip."""
        self.judged = {}


def decide(
    waiting: Sequence[str], judged: Judged, most: int, rate: float = PRIOR, cleared: Mapping[str, Stack] | None = None
) -> Decision | None:
    """What to do about the drafts that wait, in landing order; None where none does.

    judged: verdicts on the tip that they wait for. cleared: drafts that were seen green, and are suspected last, with
    what has landed since.
    """
    known = _Known(judged, cleared or {})
    queue = tuple(waiting)
    if not queue:
        return None
    bad = known.shortest_bad(queue)
    if bad is not None:
        return _search(queue[:bad], known, rate)
    if again := known.again(queue):
        return Build(queue[:again], "again: the machine could not finish it")
    if green := known.longest_green(queue):
        return Land(queue[:green])
    return Build(queue[: best_size(rate, most)], "the first that wait", fresh=True)


@attrs.frozen
class _Known:
    """What the verdicts come to."""

    judged: Judged
    cleared: Mapping[str, Stack]

    def of(self, stack: Stack) -> Verdict | None:
        """None: it is to be built, for the first time, or again because the machine could not finish it."""
        said = self.judged.get(stack, ())
        for verdict in said:
            if verdict is not Verdict.UNVERIFIED:
                return verdict
        return Verdict.UNVERIFIED if len(said) > 1 else None

    def green(self, stack: Stack) -> bool:
        return self.of(stack) is Verdict.GREEN

    def green_alone(self, draft: str) -> bool:
        return draft in self.cleared or self.green((draft,))

    def bad(self, stack: Stack) -> bool:
        return self.of(stack) in (Verdict.RED, Verdict.UNVERIFIED)

    def shortest_bad(self, queue: Stack) -> int | None:
        return min((n for n in self._beginnings(queue) if self.bad(queue[:n])), default=None)

    def longest_green(self, queue: Stack) -> int:
        return max((n for n in self._beginnings(queue) if self.green(queue[:n])), default=0)

    def again(self, queue: Stack) -> int | None:
        """A beginning of which one build could not be finished, and no other was tried."""
        unfinished = (Verdict.UNVERIFIED,)
        return next((n for n in self._beginnings(queue) if tuple(self.judged[queue[:n]]) == unfinished), None)

    def _beginnings(self, queue: Stack) -> list[int]:
        """Lengths of those that were built."""
        return [len(stack) for stack in self.judged if stack and stack == queue[: len(stack)]]


def _search(bad: Stack, known: _Known, rate: float) -> Decision:
    """Who is to blame for the shortest beginning of the queue that is not green?"""
    green = known.longest_green(bad[:-1])
    suspects = bad[green:]
    for draft in suspects:
        if known.bad((draft,)):
            return _blame(draft, bad[:green], known)
    left = [draft for draft in suspects if not known.green_alone(draft)]
    if left:
        group = split(len(left), rate)
        if group == 1:
            return Build((left[0],), "alone: is it to blame?")
        return Build(bad[: bad.index(left[group - 1]) + 1], "a beginning of a stack that is not green")
    # Each is green alone. Some fail only together, and the first beginning that is red ends with the last of them; or
    # the machine could not finish the stack, and may well finish smaller ones.
    if len(suspects) > 1:
        return Build(bad[: (green + len(bad)) // 2], "a beginning of a stack whose drafts are green alone")
    if known.of(bad) is Verdict.UNVERIFIED and green:
        return Land(bad[:green])
    return _partners(bad[:-1], bad[-1], known)


def _blame(draft: str, green: Stack, known: _Known) -> Decision:
    """It is bad alone on the branch; so the branch must be known to be green without it. Where the branch is not, a
    stack that is green has mended it, and lands."""
    tip = known.of(())
    if tip is None:
        return Build((), "the branch as it is: is it green without the draft?")
    if tip is Verdict.GREEN:
        return Park(draft, known.of((draft,)) or Verdict.RED, since=known.cleared.get(draft, ()))
    return Land(green) if green else Stuck(tip)


def _partners(before: Stack, draft: str, known: _Known) -> Decision:
    """`before` is green, and red with the draft, which is green alone: with which of them is it red?

    The shortest beginning of `before` that is red with the draft ends with one that it needs; with that one held, and
    what is before it, the same again, until the draft and those found are red by themselves.
    """
    found: Stack = (draft,)
    while not known.bad(found):
        if not known.green(found):
            return Build(found, "by themselves: do they fail only together?")
        most = next(n for n in range(1, len(before) + 1) if n == len(before) or known.bad(before[:n] + found))
        least = next((n for n in range(most - 1, 0, -1) if known.green(before[:n] + found)), 0)
        if most - least > 1:
            middle = (least + most) // 2
            return Build(before[:middle] + found, "with fewer before it: with which does it fail?")
        before, found = before[:least], (before[least], *found)
    return Park(draft, known.of(found) or Verdict.RED, found[:-1])


# -- how many, and where to cut


def observed(guilty: int, judged: int) -> float:
    """The rate of guilty drafts, drawn to what is expected where few were judged (the mean of a beta posterior)."""
    return (guilty + PRIOR * WEIGHT) / (judged + WEIGHT)


def split(suspects: int, rate: float) -> int:
    """Of suspects one of which at least is guilty: how many to build together first."""
    return _search_costs(_clamped(rate))[min(suspects, LARGEST)][1]


def per_landed(size: int, rate: float) -> float:
    """Builds that a draft costs that lands, by expectation, in stacks of `size` from a queue that never ends.

    Each stack ends with the first guilty draft in it or lands whole; what is behind a guilty one joins the next stack.
    With p the rate and q = 1 - p, a stack disposes of (1 - q^n) / p drafts, q of them to land, for one build and, where
    it is red, the search.
    """
    p = _clamped(rate)
    red = 1 - (1 - p) ** size
    search = _search_costs(p)[size][0] if size > 1 else 0.0  # one that is red was alone
    return (1 + red * search) / (red / p * (1 - p))


def best_size(rate: float, largest: int = LARGEST) -> int:
    """How many to build together: the fewest builds for each draft that lands; the smaller of two that are equal."""
    return _best_size(_clamped(rate), min(largest, LARGEST))


@functools.lru_cache(maxsize=256)
def _best_size(rate: float, largest: int) -> int:
    return min(range(1, largest + 1), key=lambda size: (per_landed(size, rate), size))


def _clamped(rate: float) -> float:
    return round(min(max(rate, 0.001), 0.999), 3)


@functools.lru_cache(maxsize=64)
def _search_costs(p: float) -> Sequence[tuple[float, int]]:
    """For n suspects one of which at least is guilty: expected builds until the first is found, and the first cut.

    Sobel and Groll's recursion with the build that confirms: one suspect costs it; of n, a group of h ≥ 2 is red with
    probability (1 - q^h) / (1 - q^n), and then one of n = h; a group of one that is red has confirmed itself.
    """
    q = 1 - p
    costs = [(0.0, 1), (1.0, 1)]
    for n in range(2, LARGEST + 1):
        options = []
        for h in range(1, n):
            red = (1 - q**h) / (1 - q**n)
            within = 0.0 if h == 1 else costs[h][0]
            options.append((1 + red * within + (1 - red) * costs[n - h][0], h))
        costs.append(min(options))
    return costs
