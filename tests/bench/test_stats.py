"""Figures from seconds."""

from __future__ import annotations

import pytest

from tiltyard.bench.stats import Timing, quantile


def test_the_middle_and_the_slowest():
    timing = Timing.of([0.003, 0.001, 0.002])
    assert (timing.median_ms, timing.p99_ms, timing.per_second, timing.n) == (2.0, 3.0, 500.0, 3)


def test_per_second_counts_what_one_measurement_did():
    assert Timing.of([2.0], each=64).per_second == 32.0


def test_nearest_rank():
    values = [float(n) for n in range(1, 101)]
    assert quantile(values, 0.99) == 99.0
    assert quantile([*values, 101.0], 0.99) == 100.0
    assert quantile([5.0], 0.99) == 5.0
    assert quantile([2.0, 1.0], 0.5) == 1.0


def test_nothing_is_no_timing():
    with pytest.raises(ValueError, match="nothing was measured"):
        Timing.of([])


def test_no_time_at_all_is_no_division_by_zero():
    assert Timing.of([0.0]).per_second == 1e9
