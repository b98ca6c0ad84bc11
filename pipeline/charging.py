"""Which task to come each idle slot of a lane is charged to, from edge to edge. Pure."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Sequence

from pipeline.holds import Hold, Place, Stretches, What

# An idle slot for a stretch of time: from, until, what it waited for, and which of several slots is charged first.
Charged = tuple[float, float, What, int]


class Lane:
    """From edge to edge: which task each idle slot is charged to."""

    def __init__(
        self, capacity: int, holds: Sequence[Hold], placed: Sequence[tuple[Hold, Place]], start: float,
        end: float, nothing: What,
    ) -> None:  # fmt: skip
        self.windows: list[tuple[Hold, float, float, int]] = []  # a task to come, and from when until when
        self.left: list[Charged] = []  # slots that nothing comes to
        self.full, self.busy = Stretches(), Stretches()  # when no slot was free; when one was taken
        lent: dict[float, int] = defaultdict(int)  # moment -> slots taken then, or left, by holds that lend theirs
        extra = []
        for hold, (lane, since_, until, more) in placed:
            if more > 0:
                extra.append(_extra(hold, lane, since_, until))
            else:
                lent[since_] += more
                lent[until] -= more
        holds = sorted([*holds, *extra], key=operator.attrgetter("start")) if extra else holds
        starts, ends = [*[hold.start for hold in holds], math.inf], [*sorted([hold.end for hold in holds]), math.inf]
        marks, mark = [*sorted({*lent, end}), math.inf], 0
        since = [start] * len(holds)
        count, taken, begun, over, at = len(holds), 0, 0, 0, start
        reach = min(count, capacity)  # holds before this one have started, or a slot is charged to them
        filled = worked = None  # since when no slot is free; since when one is taken
        while (moment := min(starts[begun], ends[over], marks[mark])) < math.inf:
            if begun + capacity - taken > count and taken < capacity and moment > at:
                self.left += [(at, moment, nothing, n) for n in range(count, begun + capacity - taken)]
            at = moment
            while ends[over] <= moment:
                over += 1
                taken -= 1
            while starts[begun] <= moment:
                if begun < reach and since[begun] < moment:
                    self.windows.append((holds[begun], since[begun], moment, begun))
                begun += 1
                taken += 1
            if marks[mark] == moment:
                mark += 1
                taken += lent.get(moment, 0)
            now = max(begun, min(count, begun + capacity - taken))
            if now > reach:
                for n in range(max(reach, begun), now):
                    since[n] = moment
            elif now < reach:
                self.windows += [(holds[n], since[n], moment, n) for n in range(now, reach) if since[n] < moment]
            reach = now
            if taken >= capacity:
                filled = moment if filled is None else filled
            elif filled is not None:
                self.full.add(filled, moment)
                filled = None
            if taken > 0:
                worked = moment if worked is None else worked
            elif worked is not None:
                self.busy.add(worked, moment)
                worked = None


def _extra(hold: Hold, lane: str, start: float, end: float) -> Hold:
    """One more slot that a task takes, as something that comes to the lane: the task's own course comes before it."""
    names = hold.names[:1]
    return Hold(
        lane, start, end, start, names, (), hold.kind, -1, names[0], hold.outcome, names, None, None, before=hold
    )  # fmt: skip
