"""Intervals: closed forms, what they promise at the edges, and their coverage by simulation."""

import json
from math import isclose, sqrt

import numpy as np
import pytest

from tiltyard.errors import UsageError
from tiltyard.estimates import (
    clustered_mean,
    difference_of_rates,
    group_advantages,
    mean_over_tasks,
    wilson,
)
from tiltyard.estimates.difference import effective_trials
from tiltyard.estimates.intervals import normal_quantile


def test_wilson_against_its_textbook_form():
    z = normal_quantile(0.975)
    assert isclose(z, 1.959963984540054, rel_tol=1e-12)
    low, high = wilson(0.3, 20)
    # both ends solve (p - x)^2 = z^2 x (1 - x) / n
    for x in (low, high):
        assert isclose((0.3 - x) ** 2, z * z * x * (1 - x) / 20, rel_tol=1e-9)
    assert wilson(0.0, 10)[0] == 0.0 and wilson(1.0, 10)[1] == 1.0
    assert 0.2 < wilson(0.0, 10)[1] < 0.35
    assert wilson(0.5, 0) == (0.0, 1.0)


def test_a_mean_over_attempts_with_its_interval_by_seed():
    sums, counts = [4.0, 0.0, 2.0, 1.5], [4, 4, 4, 2]
    found = clustered_mean(sums, counts, seed=3)
    assert found.value == 7.5 / 14 and found.tasks == 4 and found.n == 14
    assert found.low < found.value < found.high
    assert found == clustered_mean(sums, counts, seed=3)
    many = [[0.1 * n % 1 for n in range(50)], [1] * 50]
    assert clustered_mean(*many, seed=3) != clustered_mean(*many, seed=4)
    assert "bootstrap" in found.method
    json.dumps(found.as_json(), allow_nan=False)


def test_the_bootstrap_is_the_known_one_for_a_mean():
    # with equal sizes the bootstrap's spread is the standard error of the mean of task means
    rng = np.random.default_rng(0)
    sums = rng.uniform(size=300)
    found = clustered_mean(list(sums), [1] * 300, seed=1, resamples=4000)
    error = sums.std() / sqrt(300)
    assert isclose(found.high - found.low, 2 * 1.96 * error, rel_tol=0.06)


def test_certainty_is_never_claimed():
    for sums in ([4.0, 4.0, 4.0], [0.0, 0.0, 0.0]):
        found = clustered_mean(sums, [4, 4, 4])
        assert found.high - found.low > 0.3 and "score" in found.method
    assert clustered_mean([2.0], [4]).high > 0.9
    assert clustered_mean([], []) is None
    assert clustered_mean([0.0], [0]) is None  # all void: nothing is known, which is not 0
    assert clustered_mean([1.0, 0.0], [2, 0]).tasks == 1
    assert mean_over_tasks([0.5, 1.0], n=9).n == 9
    assert mean_over_tasks([]) is None


def test_the_means_interval_covers():
    rng = np.random.default_rng(11)
    inside = 0
    for turn in range(200):
        p = rng.beta(0.5, 0.5, size=40)
        solved = rng.binomial(4, p)
        found = clustered_mean(list(map(float, solved)), [4] * 40, seed=turn, resamples=400)
        inside += found.low <= 0.5 <= found.high
    assert inside >= 178  # of 200; a true coverage of 93% gives fewer once in 100,000 times


# -- differences ---------------------------------------------------------------------------------------------------


def test_newcombes_own_example():
    # Newcombe 1998, table II (a): 56/70 against 48/80, method 10 without continuity correction: 0.0524 to 0.3339
    ones = [(1, 1)] * 48 + [(1, 0)] * 32
    others = [(1, 1)] * 56 + [(1, 0)] * 14
    found = difference_of_rates(ones, others)
    assert isclose(found.value, 0.2)
    assert round(found.low, 4) == 0.0524 and round(found.high, 4) == 0.3339
    assert found.effective == (80.0, 70.0)


def test_attempts_of_one_task_count_for_less():
    alike = [(8, 8), (8, 0)] * 5
    assert effective_trials(alike) == 10.0  # nothing but the tasks
    apart = [(8, 4)] * 10
    assert effective_trials(apart) == 80.0  # no resemblance: all attempts
    some = [(8, 6), (8, 2)] * 5
    assert 10 < effective_trials(some) < 80
    assert effective_trials([(8, 3)]) == 1.0
    assert effective_trials([(8, 8)] * 4) == 4.0
    wide, narrow = (difference_of_rates(side, [(1, 1), (1, 0)] * 20) for side in (alike, apart))
    assert wide.high - wide.low > narrow.high - narrow.low


def test_a_difference_at_the_edges():
    found = difference_of_rates([(4, 4)] * 3, [(4, 0)] * 3)
    assert found.value == -1.0 and found.low == -1.0 and -0.7 < found.high < -0.1
    same = difference_of_rates([(4, 4)] * 3, [(4, 4)] * 3)
    assert same.value == 0.0 and same.low < 0.0 < same.high
    assert difference_of_rates([], [(1, 1)]) is None
    assert difference_of_rates([(0, 0)], [(1, 1)]) is None
    json.dumps(found.as_json(), allow_nan=False)


@pytest.mark.parametrize("shape", [(0.3, 0.3), (2.0, 2.0), (0.5, 4.0)])
def test_the_differences_interval_covers_when_attempts_are_clustered(shape):
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(400):
        sides = []
        for _ in range(2):
            p = rng.beta(*shape, size=30)
            sides.append([(8, int(c)) for c in rng.binomial(8, p)])
        found = difference_of_rates(*sides)
        inside += found.low <= 0.0 <= found.high
    assert inside >= 364  # of 400


# -- advantages ----------------------------------------------------------------------------------------------------


def test_advantages_in_closed_form():
    found = group_advantages([[1, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]])
    assert found.tolist() == [[0.5, -0.5, -0.5, 0.5], [0, 0, 0, 0]]
    scaled = group_advantages([1, 0, 0, 1], scale="std")
    assert np.allclose(scaled, np.array([1, -1, -1, 1]) * 0.5 / sqrt(1 / 3))
    assert np.allclose(group_advantages([1, 0, 0, 1], scale="std", ddof=0), [1, -1, -1, 1])
    with_epsilon = group_advantages([1, 0, 0, 1], scale="std", ddof=0, epsilon=0.5)
    assert np.allclose(with_epsilon, [0.5, -0.5, -0.5, 0.5])


def test_a_void_is_no_part_of_the_baseline():
    nan = float("nan")
    for scale in ("mean", "std"):
        with_void = group_advantages([1.0, nan, 0.0, 0.0], scale=scale)
        without = group_advantages([1.0, 0.0, 0.0], scale=scale)
        assert np.isnan(with_void[1])
        assert np.allclose(np.delete(with_void, 1), without)
    # had it been taken for a 0, the others would have gained
    assert not np.allclose(
        np.delete(group_advantages([1.0, nan, 0.0, 0.0]), 1), group_advantages([1, 0, 0, 0])[[0, 2, 3]]
    )
    assert np.isnan(group_advantages([nan, nan])).all()
    alone = group_advantages([0.7, None, nan], scale="std")
    assert alone[0] == 0.0 and np.isnan(alone[1:]).all()


def test_rounding_makes_no_advantage():
    for value in (0.1, 1 / 3, 0.7):
        for k in (3, 7, 8, 10):
            for scale in ("mean", "std"):
                assert group_advantages([value] * k, scale=scale).tolist() == [0.0] * k


def test_scaled_advantages_of_random_groups():
    rng = np.random.default_rng(2)
    rewards = rng.uniform(size=(200, 8))
    rewards[rng.uniform(size=rewards.shape) < 0.2] = np.nan
    found = group_advantages(rewards, scale="std")
    assert np.allclose(np.nanmean(found, axis=1), 0)
    assert np.allclose(np.nanstd(found, axis=1, ddof=1), 1)
    assert np.array_equal(np.isnan(found), np.isnan(rewards))


def test_what_advantages_refuse():
    with pytest.raises(UsageError, match="scale"):
        group_advantages([1, 0], scale="median")
    with pytest.raises(UsageError, match="infinite"):
        group_advantages([1, float("inf")])
    with pytest.raises(UsageError, match="dimensions"):
        group_advantages(np.zeros((2, 2, 2)))
    with pytest.raises(UsageError, match="ddof"):
        group_advantages([1, 0], ddof=2)
    assert group_advantages([]).shape == (0,)
    assert group_advantages(np.zeros((0, 4))).shape == (0, 4)
