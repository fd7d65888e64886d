"""The verdict: what the referee says of a submission. Data only.

A verdict has a reward, a finite number in [0, 1], or it is *void* with the reason: the arena itself failed, and the
episode is counted apart and left out of means. It carries no text of a hidden test and no text that the player's
code wrote, so nothing in it can leak an answer into an observation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one hidden test ended. ``reason`` is one of a fixed vocabulary plus exception class names; "" if passed."""

    id: str
    passed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reward`` in [0, 1] and ``void`` None, or ``reward`` None and ``void`` the reason.

    ``graded`` says which way ("calls", "stdio", …); ``flags`` what was noticed ("delegated_equality", …), sorted.
    """

    reward: float | None
    outcomes: tuple[Outcome, ...] = ()
    graded: str = ""
    flags: tuple[str, ...] = ()
    void: str | None = None

    def __post_init__(self) -> None:
        if (self.reward is None) != (self.void is not None):
            raise ValueError("a verdict has a reward or is void with a reason, and never both")
        if self.reward is not None and not (math.isfinite(self.reward) and 0.0 <= self.reward <= 1.0):
            raise ValueError(f"reward {self.reward!r} is not a finite number in [0, 1]")

    @property
    def passed(self) -> int:
        return sum(o.passed for o in self.outcomes)

    @property
    def total(self) -> int:
        return len(self.outcomes)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, the same bytes for the same verdict."""
        return {
            "reward": self.reward,
            "passed": self.passed,
            "total": self.total,
            "graded": self.graded,
            "flags": list(self.flags),
            "void": self.void,
            "outcomes": [{"id": o.id, "passed": o.passed, "reason": o.reason} for o in self.outcomes],
        }
