"""What a run's model has taken so far, and whether it may take more. One for all of a run's episodes, in one thread."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from tiltyard.players.model.failures import ModelFailed
from tiltyard.records import Usage


class OverBudget(ModelFailed):
    """The budget is spent: the episode can't be finished."""


class Meter:
    """``budget_usd`` None: no limit. ``tell`` is called with a short text when what it shows has changed."""

    def __init__(self, budget_usd: float | None = None) -> None:
        self.budget_usd = budget_usd
        self.tell: Callable[[str], None] = lambda text: None
        self.answers = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.spent_usd = 0.0
        self.retries: Counter[str] = Counter()
        self.playing = 0
        self._waiting: Counter[str] = Counter()
        self._finished: list[float] = []
        self._not_before = 0.0

    # -- the budget ------------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def may_begin(self) -> bool:
        """Whether another episode is likely to fit into the budget beside those that are being played."""
        if self.budget_usd is None:
            return True
        mean = sum(self._finished) / len(self._finished) if self._finished else 0.0
        return self.spent_usd + (self.playing + (mean > 0)) * mean <= self.budget_usd and not self.over

    def check(self) -> None:
        """Raises OverBudget if no more may be asked."""
        if self.over:
            raise OverBudget(f"the budget of ${self.budget_usd:g} was spent before the episode ended")

    def ended(self, cost_usd: float | None) -> None:
        """An episode came to its end, with this cost."""
        self._finished.append(cost_usd or 0.0)

    # -- requests --------------------------------------------------------------------------------------------------

    def took(self, usage: Usage) -> None:
        self.answers += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.spent_usd += usage.cost_usd or 0.0
        self._show()

    def hold(self, seconds: float) -> None:
        """Nobody asks before so many seconds are over: the server said so, and would say it to each again."""
        self._not_before = max(self._not_before, time.monotonic() + seconds)

    async def gate(self) -> None:
        """Wait until asking is allowed."""
        while (left := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(left)

    async def wait(self, kind: str, seconds: float) -> None:
        """Wait before another try, and show it."""
        self.retries[kind] += 1
        self._waiting[kind] += 1
        self._show()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._waiting[kind] -= 1
            self._show()

    def _show(self) -> None:
        self.tell(self.line())

    def line(self) -> str:
        """For the progress line: ``$0.0132, 12 retries (429 8, timeout 4), 3 waiting``."""
        parts = [f"${self.spent_usd:.4f}"] if self.spent_usd else []
        if self.retries:
            parts.append(f"{self.retries.total()} retries ({counted(self.retries)})")
        if waiting := self._waiting.total():
            parts.append(f"{waiting} waiting")
        return ", ".join(parts)


def counted(kinds: Counter[str]) -> str:
    """``429 8, timeout 4``."""
    return ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items(), key=lambda item: (-item[1], item[0])))
