"""The Beta distribution: its distribution function, its quantiles, and the posterior of a rate from counts.

Without scipy, so that a report and a sampler need no extra: the continued fraction of the incomplete beta function
(Lentz's method; DiDonato & Morris 1992, *ACM TOMS* 18:360) and bisection, to about 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, lgamma, log, log1p

JEFFREYS = 0.5
"""Both parameters of the prior. Jeffreys' prior: its intervals have the right coverage for rates near 0 and 1 too,
where most tasks are (Brown, Cai, DasGupta 2001, *Statistical Science* 16:101)."""
_TINY = 1e-300
_TERMS = 10_000


def beta_cdf(x: float, a: float, b: float) -> float:
    """P(p ≤ x) for p ~ Beta(a, b): the regularised incomplete beta function I_x(a, b)."""
    if not (a > 0.0 and b > 0.0):
        raise ValueError(f"Beta({a}, {b}); expected parameters above 0")
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b))
    if x < (a + 1.0) / (a + b + 2.0):
        return min(1.0, front * _fraction(x, a, b) / a)
    return max(0.0, 1.0 - front * _fraction(1.0 - x, b, a) / b)


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    whole = d
    for m in range(1, _TERMS):
        step = 1.0
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + numerator / c
            c = c if abs(c) > _TINY else _TINY
            step = c * d
            whole *= step
        if abs(step - 1.0) < 1e-15:
            break
    return whole


@lru_cache(maxsize=65536)
def beta_quantile(share: float, a: float, b: float) -> float:
    """The x with P(p ≤ x) = ``share``."""
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"a share of {share}; expected 0 to 1")
    low, high = 0.0, 1.0
    while high - low > 1e-14 * max(high, 1e-290):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if beta_cdf(middle, a, b) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class Posterior:
    """What is known of a rate after counting: Beta(``a``, ``b``)."""

    a: float
    b: float

    @classmethod
    def of(cls, attempts: int, successes: int, prior: float = JEFFREYS) -> Posterior:
        """From counts, over the prior Beta(``prior``, ``prior``)."""
        if not 0 <= successes <= attempts:
            raise ValueError(f"{successes} of {attempts}; expected 0 to {attempts}")
        return cls(prior + successes, prior + attempts - successes)

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    def power(self, k: int) -> float:
        """E[pᵏ] = B(a + k, b) / B(a, b), the chance that the next k attempts all succeed."""
        return exp(
            lgamma(self.a + k) - lgamma(self.a) + lgamma(self.a + self.b) - lgamma(self.a + self.b + k)
        )

    @property
    def flipped(self) -> Posterior:
        """The posterior of 1 − p."""
        return Posterior(self.b, self.a)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central credible interval."""
        tail = (1.0 - level) / 2
        return beta_quantile(tail, self.a, self.b), beta_quantile(1.0 - tail, self.a, self.b)
