"""Which survivors does no input seem to tell apart from the original? Those may be equivalent. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipeline.results import KILLS_NOTHING, Candidates, Proofs

TRIES = 3  # candidates that ran, were to kill a mutant, and did not


def possibly_equivalent(candidates: Sequence[Candidates], proofs: Sequence[Proofs]) -> frozenset[str]:
    """Keys of mutants that search ran out of inputs for, or that TRIES candidates failed to kill.

    candidates, proofs: of the rounds so far, from round 0. Nothing is decided by it: which survivors are asked about
    last, and what the summary calls them.
    """
    same = {key for each in candidates for key, why in each.unreached.items() if why.startswith("never-told-apart")}
    killed = {key for each in proofs for proved in each.proved for key in proved.how}
    tried: Counter[str] = Counter()
    for offered, judged in zip(candidates, proofs, strict=False):
        unfit = {d.title for d in judged.dropped if d.failed and d.reason != KILLS_NOTHING}
        tried.update(key for test in offered.tests if test.title not in unfit for key in test.kills)
    return frozenset(same | {key for key, times in tried.items() if times >= TRIES}) - killed
