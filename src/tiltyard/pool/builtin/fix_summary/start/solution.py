"""Describing measurements."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

Number = int | Fraction


def mean(values: list[Number]) -> Fraction:
    return Fraction(sum(values), len(values))


def median(values: list[Number]) -> Fraction:
    """The middle value by size; of an even number of values, the mean of the two in the middle."""
    values.sort()
    return Fraction(values[len(values) // 2])


def summarize(measurements: Iterable[Number | None]) -> dict[str, Fraction | int]:
    """count, mean, median, spread (largest less smallest) and variance of the measurements.

    ``measurements`` may be any iterable, also one that can be gone through only once; it is not changed. None means
    that the sensor was off, and is left out. The variance is the mean of the squared distances from the mean. All
    exact: Fractions, and an int for count. ValueError if there is no measurement.
    """
    count = sum(1 for value in measurements if value)
    if not count:
        raise ValueError("no measurement")
    values = measurements if isinstance(measurements, list) else list(measurements)
    return {
        "count": count,
        "mean": mean(values),
        "median": median(values),
        "spread": Fraction(max(values) - min(values)),
        "variance": mean([(value - mean(values)) ** 2 for value in values]),
    }


def histogram(measurements: Iterable[Number | None], bins: int) -> list[int]:
    """How many measurements fall in each of ``bins`` equally wide ranges from the smallest to the largest.

    A value on the border of two ranges belongs to the upper one; the largest value belongs to the last range. If all
    are equal, all are in the first. None is left out; without measurements all counts are 0. ValueError if bins < 1.
    """
    if bins < 1:
        raise ValueError("at least one bin is needed")
    values = [value for value in measurements if value is not None]
    counts = [0] * bins
    if not values:
        return counts
    low, high = min(values), max(values)
    for value in values:
        position = Fraction((value - low) * bins) / (high - low) if high > low else Fraction(0)
        if position < bins:
            counts[int(position)] += 1
    return counts
