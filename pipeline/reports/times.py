"""Where the time and the tokens of a run went, as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pipeline.reports.figures import FIRST_COME, THRESHOLD, Figures, Row, Shares, Spent, Verdict
from pipeline.reports.tables import many, table

MOST = 8  # rows of a kind that are shown one by one
_SORTS = ("useful", "recovery", "rerun", "wait", "idle")


def text(figures: Figures) -> list[str]:
    """All of it, for `doit report`."""
    end = "its last event: it was killed, or is running" if figures.killed else "its end"
    said = [f"Where the time went, {figures.wall:.1f} s by the clock from the start of the run to {end}:", ""]
    for lane in figures.lanes:
        said.append(f"{lane.name}: {lane.slots} slots × {figures.wall:.1f} s = {lane.seconds:.1f} s")
        said += table(list(_shown(lane.rows, lane.seconds)), left=(2, 3))
        said.append("")
    said += _clocks(figures)
    said += ["", *_scopes(figures.scopes)]
    if figures.spent:
        said += ["", *_tokens(figures.spent)]
    if n := figures.in_flight:
        asked = "a task was asking a model" if n == 1 else f"{n} tasks were asking a model"
        said += ["", f"{asked} at its last event: what that cost is told by the run that takes the reply over"]
    return [*said, "", *shares(figures.shares), *verdict(figures.verdict, figures.shares)]


def _clocks(figures: Figures) -> list[str]:
    """What all slots of a lane worked, added up, and for how long any of them did."""
    rows = [["at work", "slots together", "by the clock"]]
    for lane in figures.lanes:
        slots = sum(row.seconds for row in lane.rows if row.sort not in ("wait", "idle"))
        clock = sum(seconds for lanes, seconds in figures.together.items() if lane.name in lanes.split(" + "))
        rows.append([lane.name, f"{slots:.1f} s", f"{clock:.1f} s"])
    if len(figures.lanes) > 1:
        both = sum(seconds for lanes, seconds in figures.together.items() if " + " in lanes)
        rows.append(["more than one lane", "", f"{both:.1f} s"])
    rows.append(["none", "", f"{figures.together.get('none', 0.0):.1f} s"])
    said = table(rows, left=(0,))
    if any(lane.slots > 1 for lane in figures.lanes) and figures.scopes:
        said.append("a batch of baselines that holds several slots counts here in each of them, and in v once")
    return said


def _shown(rows: Sequence[Row], whole: float) -> Iterable[list[str]]:
    for sort in _SORTS:
        of = [row for row in rows if row.sort == sort]
        shown = [row for row in of[: MOST if len(of) > MOST + 1 else None] if row.seconds >= 0.05]
        for row in shown:
            yield [f"  {row.seconds:.1f} s", f"{row.seconds / whole:.1%}", sort, _named(row)]
        if more := of[len(shown) :]:
            rest = sum(row.seconds for row in more)
            yield [f"  {rest:.1f} s", f"{rest / whole:.1%}", sort, f"{len(more)} more"]


def _named(row: Row) -> str:
    return f"{row.label}: {row.cause}" if row.cause else row.label


def _scopes(scopes: Mapping[str, Sequence[Row]]) -> list[str]:
    """One line a scope: its work, and what it waited for. Each sums to the wall clock."""
    if not scopes:
        return []
    sums: dict[str, dict[str, float]] = {}
    for scope, rows in scopes.items():
        sums[scope] = defaultdict(float)
        for row in rows:
            label = row.label if row.sort in ("wait", "idle") else "work" if row.sort == "useful" else row.sort
            sums[scope][label] += row.seconds
    labels = sorted({label for each in sums.values() for label in each}, key=lambda label: (label != "work", label))
    head = ["seconds of scope", *labels]
    lines = [
        [scope, *(f"{each[label]:.1f}" if label in each else "" for label in labels)] for scope, each in sums.items()
    ]
    return table([head, *lines], left=(0,))


def _tokens(spent: Sequence[Spent]) -> list[str]:
    head = [
        "tokens of scope",
        "round",
        "model",
        "calls",
        "fresh",
        "cache write",
        "cache read",
        "output",
        "USD",
        "kills",
    ]
    lines = [[*_whose(s), *_counts(s), str(s.kills) if s.round is not None else ""] for s in spent]
    said = table([head, *lines], left=(0, 2))
    kills = sum({(s.scope, s.round): s.kills for s in spent}.values())
    tokens = sum(s.tokens or 0 for s in spent)
    untold = sum(s.calls for s in spent if not s.measured)
    if kills and untold:
        said.append(f"tokens a kill: not measured, for the envelopes of {untold} calls do not say theirs")
    elif kills and tokens:
        said.append(
            f"{tokens / kills:,.0f} tokens a kill ({kills} kills by {tokens:,} tokens; a cache's reads not counted)"
        )
    for s in spent:
        if s.nothing_for:
            paid = many(s.calls, "call") if s.tokens is None else f"{s.tokens:,} tokens"
            said.append(f"{s.scope}, round {s.round}: {paid} bought nothing: {s.nothing_for}")
    return said


def _whose(of: Spent) -> list[str]:
    return [of.scope, "" if of.round is None else str(of.round), of.model or "not told", str(of.calls)]


def _counts(of: Spent) -> list[str]:
    counts = (of.fresh_input, of.cache_write, of.cache_read, of.output)
    cost = "not measured" if of.cost is None else f"{of.cost:.4f}"
    return [*("not measured" if n is None else f"{n:,}" for n in counts), cost]


def shares(of: Shares) -> list[str]:
    """f, and what two lanes can gain at the most; nothing where nothing was validated."""
    if of.f is None or of.ceiling is None:
        return [] if of.v == 0 or of.g else ["no model was asked: g and f are 0, and one lane would do"]
    verdict = "two lanes are worth having" if of.f >= THRESHOLD else "one lane would do"
    said = [
        f"f = g / (g + v) = {of.f:.2f} (from {THRESHOLD} on two lanes pay: {verdict}); "
        f"ceiling 1 / (1 - f) = {of.ceiling:.2f} times"
    ]
    if of.spread and of.spread[0] < of.spread[2]:
        least, median, most = of.spread
        said.append(
            f"f of the rounds that asked a model alone, without baselines, landings and confirms: from {least:.2f} to "
            f"{most:.2f}, median {median:.2f}"
        )
    return said


def verdict(of: Verdict, share: Shares) -> list[str]:
    """What the two lanes and their order were worth."""
    took = f"from the first task's start to the last one's end it took {of.took:.1f} s"
    said = [f"{took}; no order is faster than {of.bound:.1f} s ({of.bound_by})"]
    if of.replays:
        best = next(iter(of.replays.values()))
        said.append(f"the same work in other orders (estimated: {of.how}):")
        said += [f"  {seconds:8.1f} s  {policy}" for policy, seconds in of.replays.items()]
        slots, coupled = next(each for each in of.replays.items() if each[0].startswith("coupled"))
        first = of.replays[FIRST_COME]
        most = f"; the ceiling without an order was {share.f * coupled:.1f}" if share.f is not None else ""
        if best > coupled + 0.05:
            faster = _saved(best - coupled)
            said.append(f"{slots}, with no other cap on calls than that, would have been {faster} s faster")
        else:
            said.append(
                f"two lanes saved {_saved(coupled - best)} s of {coupled:.1f}; their order {_saved(first - best)} s of "
                f"them{most}"
            )
    return said


def _saved(seconds: float) -> str:
    """Without the sign of a zero."""
    return f"{round(seconds, 1) + 0.0:.1f}"
