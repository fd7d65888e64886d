"""Group-relative advantages, as GRPO and its descendants take them. Voids are no part of the baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiltyard.errors import UsageError

SCALES = ("mean", "std")


def group_advantages(
    rewards: ArrayLike, *, scale: str = "mean", epsilon: float = 0.0, ddof: int = 1
) -> NDArray[np.float64]:
    """The advantage of each attempt over its group. ``rewards``: one group, shape (k,), or groups, shape (n, k); NaN
    (or None) is a void. Returns the same shape: NaN for voids, and 0 for every attempt of a group whose rewards are
    all equal or of which only one counts.

    ``scale="mean"``: r − mean(r). Source: Liu et al. 2025, *Understanding R1-Zero-Like Training* (Dr. GRPO),
    arXiv:2503.20783. ``scale="std"``: (r − mean(r)) / (std(r) + epsilon). Source: Shao et al. 2024,
    *DeepSeekMath* (GRPO), arXiv:2402.03300, section 4.1.2. ``ddof=1`` is the sample's standard deviation, as TRL and
    verl take it (with an epsilon of 1e-4 and 1e-6); ``ddof=0`` the population's.

    Raises UsageError for another ``scale`` or shape, an infinite reward, a negative ``epsilon``, another ``ddof``.
    """
    if scale not in SCALES:
        raise UsageError(f"scale: found {scale!r}; expected one of {', '.join(SCALES)}")
    if ddof not in (0, 1) or not 0.0 <= epsilon < float("inf"):
        raise UsageError(
            f"found ddof={ddof!r}, epsilon={epsilon!r}; expected 0 or 1, and a finite number from 0"
        )
    given = np.asarray(rewards, dtype=np.float64)
    if given.ndim not in (1, 2):
        raise UsageError(
            f"found rewards of {given.ndim} dimensions; expected one group (k,) or groups (n, k)"
        )
    if np.isinf(given).any():
        raise UsageError("found an infinite reward; expected finite numbers, or NaN for a void")
    groups = given.reshape(1, -1) if given.ndim == 1 else given
    counts = ~np.isnan(groups)
    n = counts.sum(axis=1, keepdims=True)
    filled = np.where(counts, groups, 0.0)
    mean = filled.sum(axis=1, keepdims=True) / np.maximum(n, 1)
    apart = np.where(counts, groups - mean, 0.0)
    # told by the extremes and not by the deviation: the mean of eight times 0.1 is not 0.1, and dividing what is left
    # of the rounding by itself would make advantages of 1 out of nothing
    flat = (n < 2) | (_extreme(groups, counts, np.inf) == _extreme(groups, counts, -np.inf))
    result = np.where(flat, 0.0, apart)
    if scale == "std":
        spread = np.sqrt((apart**2).sum(axis=1, keepdims=True) / np.maximum(n - ddof, 1))
        result = np.where(flat, 0.0, apart / np.where(flat, 1.0, spread + epsilon))
    return np.where(counts, result, np.nan).reshape(given.shape)


def _extreme(groups: NDArray[np.float64], counts: NDArray[Any], void: float) -> NDArray[np.float64]:
    filled = np.where(counts, groups, void)
    if not filled.shape[1]:
        return np.zeros((len(filled), 1))
    found: NDArray[np.float64] = (filled.min if void > 0 else filled.max)(axis=1, keepdims=True)
    return found
