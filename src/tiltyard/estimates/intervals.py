"""Means with an interval. Attempts at the same task resemble each other, so tasks are what is drawn again.

``clustered_mean`` and ``mean_over_tasks`` are percentile bootstraps over tasks (Efron & Tibshirani 1993, chapter 13;
resampling whole clusters: Davison & Hinkley 1997, section 3.8). Where every task has the same mean a bootstrap would
say that it is certain; there, and for a single task, the score interval for as many trials as there are tasks is given
instead (Wilson 1927), which is conservative for any mean of numbers in [0, 1]. ``Interval.method`` says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import erf, fsum, sqrt
from typing import Any

import numpy as np

RESAMPLES, FEWEST, WORK = 2000, 400, 4_000_000
"""How often tasks are drawn again: the first, or for very many tasks fewer, so that about ``WORK`` tasks are drawn."""
_CHUNK = 1 << 22
"""Numbers drawn at once: bounds memory for any number of tasks."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate in [0, 1] (a difference: in [−1, 1]) with its interval at ``level``. ``tasks`` is the number of
    clusters, ``n`` that of attempts."""

    value: float
    low: float
    high: float
    level: float
    method: str
    tasks: int
    n: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@lru_cache(maxsize=64)
def normal_quantile(share: float) -> float:
    """The standard normal's quantile, by bisection."""
    low, high = -40.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + erf(middle / sqrt(2))) / 2 < share else (low, middle)
    return (low + high) / 2


def wilson(rate: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """The score interval of a rate over ``n`` trials (Wilson 1927); ``n`` may be an effective, fractional number."""
    if n <= 0:
        return 0.0, 1.0
    z = normal_quantile(0.5 + level / 2)
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(max(0.0, rate * (1 - rate)) / n + z * z / (4 * n * n))
    low = 0.0 if rate <= 0.0 else max(0.0, middle - half)
    return low, 1.0 if rate >= 1.0 else min(1.0, middle + half)


def clustered_mean(
    sums: Sequence[float],
    counts: Sequence[int],
    *,
    seed: int = 0,
    level: float = 0.95,
    resamples: int | None = None,
) -> Interval | None:
    """The mean over all attempts, Σ sums / Σ counts, of numbers in [0, 1]; ``sums`` and ``counts`` by task. Tasks with
    no attempt that counts are left out; None if none is left. The same ``seed`` gives the same interval."""
    pairs = [(s, c) for s, c in zip(sums, counts, strict=True) if c > 0]
    if not pairs:
        return None
    n = sum(c for _, c in pairs)
    value = fsum(s for s, _ in pairs) / n
    if len({s / c for s, c in pairs}) == 1:
        low, high = wilson(value, len(pairs), level)
        return Interval(value, low, high, level, "score interval, tasks as trials", len(pairs), n)
    top, bottom = np.array([s for s, _ in pairs]), np.array([c for _, c in pairs], dtype=np.float64)
    rng = np.random.default_rng(np.random.SeedSequence([seed, len(pairs)]))
    resamples = resamples or min(RESAMPLES, max(FEWEST, WORK // len(pairs)))
    means: list[float] = []
    while len(means) < resamples:
        turns = min(resamples - len(means), max(1, _CHUNK // len(pairs)))
        drawn = rng.integers(len(pairs), size=(turns, len(pairs)))
        means.extend((top[drawn].sum(axis=1) / bottom[drawn].sum(axis=1)).tolist())
    tail = (1 - level) / 2
    low, high = (float(q) for q in np.quantile(np.array(means), [tail, 1 - tail]))
    method = f"bootstrap over tasks, {resamples} resamples, percentile"
    return Interval(value, min(low, value), max(high, value), level, method, len(pairs), n)


def mean_over_tasks(
    values: Sequence[float], *, n: int | None = None, seed: int = 0, level: float = 0.95
) -> Interval | None:
    """The mean of one number in [0, 1] a task (such as its pass@k), each task with the same weight."""
    found = clustered_mean(values, [1] * len(values), seed=seed, level=level)
    if found is None or n is None:
        return found
    return Interval(found.value, found.low, found.high, level, found.method, found.tasks, n)
