"""Amounts as text and as whole cents."""

from __future__ import annotations

import re
from collections.abc import Sequence

AMOUNT = re.compile(r"([+-]?)([0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.([0-9]{2}))?")


def parse(text: str) -> int:
    """Cents of ``"12"``, ``"-0.50"``, ``"+1,234.56"``: commas, if any, between all groups of three digits.

    ValueError for anything else.
    """
    match = AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"not an amount: {text!r}")
    sign, whole, cents = match.groups()
    units = int(sign + whole.replace(",", ""))
    return units * 100 + int(cents or 0) if units >= 0 else units * 100 - int(cents or 0)


def show(cents: int) -> str:
    """The opposite: ``-0.05``, ``1,234.56``, always with two decimals, with commas, a minus sign if below zero."""
    return f"{cents // 100:,}.{cents % 100:02d}"


def share(cents: int, weights: Sequence[int]) -> list[int]:
    """Share an amount in proportion to weights (at least 0, not all 0). The shares add up to the amount exactly.

    Each share is rounded towards zero first; the cents that are left go, one each, to the first parties whose weight
    isn't 0. So the shares of -x are the negatives of the shares of x. ValueError for bad weights.
    """
    total = sum(weights)
    if total <= 0 or min(weights) < 0:
        raise ValueError("weights must be at least 0, and not all 0")
    shares = [cents * weight // total for weight in weights]
    left = cents - sum(shares)
    for n, weight in enumerate(weights):
        if left and weight:
            shares[n] += 1
            left -= 1
    return shares
