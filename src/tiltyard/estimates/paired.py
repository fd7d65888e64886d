"""Two solve rates on pairs of tasks, such as a task and the same one told otherwise. Each pair has the same weight.

The interval of the mean difference is a percentile bootstrap over pairs (Efron & Tibshirani 1993, chapter 13); where all
pairs differ by the same, the score interval with pairs as trials (Wilson 1927). The test is the sign-flip permutation test
(Fisher 1935): if telling a task otherwise made no difference, each difference could as well have had the other sign. With
up to 14 differences that are not 0 it is exact; with more, signs are drawn by the seed, and the p-value counts what was
seen as one of the draws (Phipson & Smyth 2010).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from tiltyard.estimates.intervals import Interval, mean_over_tasks

EXACT = 14
DRAWS = 20_000
_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """``value`` is after − before, the mean over ``pairs``, with its interval at ``level``. ``before`` and ``after`` are
    the mean solve rates. ``p``: two-sided; ``test`` says how it was found."""

    value: float
    low: float
    high: float
    level: float
    before: Interval
    after: Interval
    pairs: int
    p: float
    test: str

    def as_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "before": self.before.as_json(),
            "after": self.after.as_json(),
            "pairs": self.pairs,
            "p": self.p,
            "test": self.test,
        }


Counts = Sequence[tuple[int, int]]
"""(attempts, solved) of one side of each pair."""


def paired_difference(
    before: Counts, after: Counts, *, seed: int = 0, level: float = 0.95
) -> PairedDifference | None:
    """The mean of after − before. Pairs with no attempt that counts on a side are left out; None if none is left."""
    pairs = [(b, a) for b, a in zip(before, after, strict=True) if b[0] > 0 and a[0] > 0]
    if not pairs:
        return None
    rates = [[solved / attempts for attempts, solved in side] for side in zip(*pairs, strict=True)]
    attempts = [sum(n for n, _ in side) for side in zip(*pairs, strict=True)]
    sides = [mean_over_tasks(r, n=n, seed=seed, level=level) for r, n in zip(rates, attempts, strict=True)]
    differences = [a - b for b, a in zip(*rates, strict=True)]
    # the bootstrap is for numbers in [0, 1]
    halves = mean_over_tasks([(d + 1) / 2 for d in differences], seed=seed, level=level)
    assert halves is not None and sides[0] is not None and sides[1] is not None
    value = fsum(differences) / len(differences)
    p, test = _sign_flips(differences, seed)
    return PairedDifference(
        value=value,
        low=min(value, 2 * halves.low - 1),
        high=max(value, 2 * halves.high - 1),
        level=level,
        before=sides[0],
        after=sides[1],
        pairs=len(pairs),
        p=p,
        test=test,
    )


def _sign_flips(differences: Sequence[float], seed: int) -> tuple[float, str]:
    moved = np.array([d for d in differences if d != 0.0])
    if not len(moved):
        return 1.0, "sign flips, exact"
    seen = abs(float(moved.sum())) - _SLACK
    if len(moved) <= EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(moved))))
        return float(np.mean(np.abs(signs @ moved) >= seen)), "sign flips, exact"
    rng = np.random.default_rng(np.random.SeedSequence([seed, len(moved)]))
    hits, left = 0, DRAWS
    while left:
        turns = min(left, max(1, (1 << 22) // len(moved)))
        signs = rng.integers(0, 2, size=(turns, len(moved))) * 2.0 - 1.0
        hits += int(np.sum(np.abs(signs @ moved) >= seen))
        left -= turns
    return (hits + 1) / (DRAWS + 1), f"sign flips, {DRAWS} draws"
