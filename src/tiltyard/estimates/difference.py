"""The difference of two solve rates over different tasks, such as those from before and after a date.

Newcombe's hybrid score interval (Newcombe 1998, *Statistics in Medicine* 17:873, method 10), which never leaves [−1, 1]
and never has no width, with each side's attempts divided by its design effect 1 + (m̄ − 1)·ICC, because attempts at the
same task resemble each other (Kish 1965; ICC by analysis of variance as in Donner & Klar 2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from tiltyard.estimates.intervals import wilson


@dataclass(frozen=True, slots=True)
class Difference:
    """``before`` and ``after`` are solve rates, ``value`` is after − before. The ``effective`` numbers of trials lie
    between the tasks and the attempts of each side."""

    value: float
    low: float
    high: float
    level: float
    before: float
    after: float
    tasks: tuple[int, int]
    attempts: tuple[int, int]
    effective: tuple[float, float]

    def as_json(self) -> dict[str, Any]:
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()} | {
            "method": "hybrid score interval (Newcombe 1998), attempts divided by the design effect of tasks"
        }


Counts = Sequence[tuple[int, int]]
"""(attempts, solved) of each task."""


def difference_of_rates(before: Counts, after: Counts, *, level: float = 0.95) -> Difference | None:
    """``after`` − ``before``; None if one of them has no attempt that counts."""
    sides = [[(n, c) for n, c in side if n > 0] for side in (before, after)]
    if not sides[0] or not sides[1]:
        return None
    rates = [sum(c for _, c in side) / sum(n for n, _ in side) for side in sides]
    sizes = [effective_trials(side) for side in sides]
    (low1, high1), (low2, high2) = (wilson(p, m, level) for p, m in zip(rates, sizes, strict=True))
    p1, p2 = rates
    return Difference(
        value=p2 - p1,
        low=max(-1.0, p2 - p1 - sqrt((p2 - low2) ** 2 + (high1 - p1) ** 2)),
        high=min(1.0, p2 - p1 + sqrt((high2 - p2) ** 2 + (p1 - low1) ** 2)),
        level=level,
        before=p1,
        after=p2,
        tasks=(len(sides[0]), len(sides[1])),
        attempts=(sum(n for n, _ in sides[0]), sum(n for n, _ in sides[1])),
        effective=(sizes[0], sizes[1]),
    )


def effective_trials(counts: Counts) -> float:
    """How many independent trials the attempts are worth: at least the number of tasks, at most that of attempts.

    The number of tasks where the resemblance can't be told (one task, one attempt each, no spread at all)."""
    k, n = len(counts), sum(m for m, _ in counts)
    if n == k:
        return float(n)
    if k < 2:
        return float(k)
    p = sum(c for _, c in counts) / n
    between = sum(m * (c / m - p) ** 2 for m, c in counts) / (k - 1)
    within = sum(c * (1 - c / m) for m, c in counts) / (n - k)
    size = (n - sum(m * m for m, _ in counts) / n) / (k - 1)
    spread = between + (size - 1) * within
    if spread <= 0:
        return float(k)
    resemblance = min(1.0, max(0.0, (between - within) / spread))
    # weighted by size: a task with many attempts says more of the same
    effect = 1 + (sum(m * m for m, _ in counts) / n - 1) * resemblance
    return min(float(n), max(float(k), n / effect))
