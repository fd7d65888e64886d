"""The chance that a group of k attempts at a task carries signal: that their rewards are not all the same.

A group whose rewards are all equal has only advantages of 0 (``tiltyard.estimates.advantages``) and teaches nothing.
The rate p is never plugged in as if it were known: 0 of 4 solved does not mean that the task can't be solved.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import fsum

from tiltyard.estimates.beta import JEFFREYS, Posterior, beta_cdf

ALWAYS, NEVER, MIXED, UNTRIED = "always", "never", "mixed", "untried"
STANDINGS = (ALWAYS, MIXED, NEVER, UNTRIED)


def standing(attempts: int, solved: int) -> str:
    """``always``, ``never`` or ``mixed`` solved in these attempts; ``untried`` if there was none that counts."""
    if attempts == 0:
        return UNTRIED
    if solved in (0, attempts):
        return ALWAYS if solved else NEVER
    return MIXED


def signal(p: float, k: int) -> float:
    """1 − pᵏ − (1 − p)ᵏ: the chance that k attempts, each solved with probability ``p``, are neither all solved nor
    all unsolved."""
    _check(k)
    return 1.0 - p**k - (1.0 - p) ** k


def expected_signal(posterior: Posterior, k: int) -> float:
    """E[1 − pᵏ − (1 − p)ᵏ] over the posterior, in closed form: 1 − B(a+k, b)/B(a, b) − B(a, b+k)/B(a, b).

    It is the posterior predictive probability that the next group is mixed: the beta-binomial's mass off both ends.
    """
    _check(k)
    return max(0.0, 1.0 - posterior.power(k) - posterior.flipped.power(k))


@lru_cache(maxsize=65536)
def signal_interval(posterior: Posterior, k: int, level: float = 0.95) -> tuple[float, float]:
    """The central credible interval of 1 − pᵏ − (1 − p)ᵏ.

    The signal rises in p up to ½ and falls as it rose, so P(signal ≤ s) = P(p ≤ x) + P(p ≥ 1 − x) with x in [0, ½]
    where signal(x) = s; its quantiles are found by bisection over x.
    """
    _check(k)
    tail = (1.0 - level) / 2
    return _quantile(posterior, k, tail), _quantile(posterior, k, 1.0 - tail)


def _quantile(posterior: Posterior, k: int, share: float) -> float:
    low, high = 0.0, 0.5
    for _ in range(60):
        x = (low + high) / 2
        mass = beta_cdf(x, posterior.a, posterior.b) + beta_cdf(x, posterior.b, posterior.a)
        low, high = (x, high) if mass < share else (low, x)
    return signal((low + high) / 2, k)


def reward_weights(counts: Mapping[float, int], prior: float = JEFFREYS) -> dict[float, float]:
    """Parameters of the Dirichlet posterior over the rewards that a task gives: the values seen, and 0 and 1, which
    every task can give. With 0 and 1 alone it is the Beta posterior of the solve rate."""
    return {value: prior + counts.get(value, 0) for value in sorted({0.0, 1.0, *counts})}


def expected_reward_signal(counts: Mapping[float, int], k: int, prior: float = JEFFREYS) -> float:
    """The chance that k rewards are not all the same, for rewards of any value: E[1 − Σ qᵥᵏ] with the probabilities q
    of the values from a Dirichlet posterior, whose parts are Beta(αᵥ, α − αᵥ). ``counts`` says how often each reward
    was given. Partial rewards make signal where nothing was solved."""
    _check(k)
    weights = reward_weights(counts, prior)
    total = fsum(weights.values())
    return max(0.0, 1.0 - fsum(Posterior(w, total - w).power(k) for w in weights.values()))


def _check(k: int) -> None:
    if k < 1:
        raise ValueError(f"a group of {k}; expected 1 or more")
