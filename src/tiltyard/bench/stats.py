"""From seconds that were measured to the three figures that are published. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Timing:
    """``median_ms`` and ``p99_ms`` of ``n`` measurements; ``per_second`` is how many fit one after the other into a
    second at the median. With fewer than 100 measurements p99 is the slowest one."""

    median_ms: float
    p99_ms: float
    per_second: float
    n: int

    @classmethod
    def of(cls, seconds: Sequence[float], *, each: int = 1) -> Timing:
        """``each``: how many things one measurement did, for ``per_second``. ValueError if nothing was measured."""
        if not seconds:
            raise ValueError("nothing was measured")
        middle = median(seconds)
        return cls(
            median_ms=round(middle * 1e3, 4),
            p99_ms=round(quantile(seconds, 0.99) * 1e3, 4),
            per_second=round(each / max(middle, 1e-9), 3),
            n=len(seconds),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "median_ms": self.median_ms,
            "p99_ms": self.p99_ms,
            "per_second": self.per_second,
            "n": self.n,
        }


def quantile(values: Sequence[float], share: float) -> float:
    """The nearest-rank quantile: the smallest value that at least ``share`` of all do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
