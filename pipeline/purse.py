"""What a run has paid for tests, and what it may: tokens and money, by the providers' envelopes."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pipeline.model import Budget


@attrs.define
class Purse:
    budget: Budget
    tokens: int = 0  # paid in full: fresh input, cache writes and output
    cost: float = 0.0  # USD
    untold: int = 0  # calls that no envelope tells of
    kills: int = 0
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def pay(self, tokens: Mapping[str, Any] | None) -> None:
        """For one call."""
        with self._lock:
            self.untold += not tokens or tokens["source"] != "envelope"
            if tokens:
                self.tokens += tokens["fresh_input"] + tokens["cache_write"] + tokens["output"]
                self.cost += tokens["cost"] or 0.0

    def bought(self, kills: object) -> None:
        with self._lock:
            self.kills += kills if isinstance(kills, int) else 0

    def spent_out(self) -> str | None:
        """Why no test is asked for any more in this run; None while the budget lasts."""
        budget = self.budget
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return f"the budget of {budget.tokens:,} tokens a run is spent"
        if budget.cost is not None and self.cost >= budget.cost:
            return f"the budget of {budget.cost:.2f} USD a run is spent"
        return None

    def told(self, scopes: bool) -> Sequence[str]:
        """Kills, tokens and cost so far, the last two beside their budget. scopes: is there anything to kill?"""
        kills, budget = self.kills, self.budget
        most = f" of {budget.tokens:,}" if budget.tokens else ""
        said = [f"{kills} kills" if kills or scopes else ""]
        said.append(f"{self.tokens:,}{most} tokens" if self.tokens or most else "")
        most = f" of {budget.cost:.2f}" if budget.cost else ""
        said.append(f"{self.cost:.2f}{most} USD" if self.cost or most else "")
        said.append(f"{self.untold} calls not measured" if self.untold else "")
        return [each for each in said if each]
