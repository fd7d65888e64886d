"""An episode's budget of wall-clock: counts what the player takes, and nothing else. No time ever leaves this page but
into a snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Counts seconds up to a budget. ``waiting``: stands at ``elapsed_s`` until ``go``, else it goes at once."""

    def __init__(self, budget_s: float, elapsed_s: float = 0.0, *, waiting: bool = False) -> None:
        self._budget_s, self._before_s = budget_s, elapsed_s
        self._since: float | None = None if waiting else time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds of the budget that are used."""
        return self._before_s + (0.0 if self._since is None else time.monotonic() - self._since)

    @property
    def up(self) -> bool:
        """Whether more than the budget is used."""
        return self.elapsed_s > self._budget_s

    def go(self) -> None:
        """Begin, or go on."""
        if self._since is None:
            self._since = time.monotonic()

    def stop(self) -> None:
        """Stand still until ``go``."""
        self._before_s, self._since = self.elapsed_s, None

    @contextmanager
    def standing(self) -> Iterator[None]:
        """For what the arena does for itself: the player does not pay for it. Afterwards the clock goes if it went before."""
        went = self._since is not None
        self.stop()
        try:
            yield
        finally:
            if went:
                self.go()
