"""Closed forms against brute force, against scipy and against simulation."""

from itertools import combinations, product
from math import comb, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard.estimates import (
    GroupTally,
    Posterior,
    all_equal_share,
    beta_cdf,
    beta_quantile,
    expected_reward_signal,
    expected_signal,
    group_kind,
    pass_all_k,
    pass_at_k,
    signal,
    signal_interval,
    standing,
)

same_everywhere = settings(deadline=None, derandomize=True, max_examples=60)


def counts(max_attempts):
    return st.integers(1, max_attempts).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
    )


@given(counts(9))
@same_everywhere
def test_pass_at_k_is_the_share_of_all_subsets_that_hold_a_solved_one(numbers):
    n, c, k = numbers
    subsets = list(combinations([True] * c + [False] * (n - c), k))
    assert isclose(pass_at_k(n, c, k), sum(map(any, subsets)) / len(subsets))
    assert isclose(pass_all_k(n, c, k), sum(map(all, subsets)) / len(subsets))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.93])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_pass_at_k_is_unbiased_and_the_plugged_in_one_is_not(p, k):
    n = 6
    chance = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    mean = sum(w * pass_at_k(n, c, k) for c, w in enumerate(chance))
    assert isclose(mean, 1 - (1 - p) ** k, abs_tol=1e-12)
    assert isclose(sum(w * pass_all_k(n, c, k) for c, w in enumerate(chance)), p**k, abs_tol=1e-12)
    plugged = sum(w * (1 - (1 - c / n) ** k) for c, w in enumerate(chance))
    assert k == 1 or abs(plugged - (1 - (1 - p) ** k)) > 1e-5


@pytest.mark.parametrize("numbers", [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4), (0, 0, 1)])
def test_counts_that_can_not_be(numbers):
    for estimate in (pass_at_k, pass_all_k):
        with pytest.raises(ValueError, match="expected"):
            estimate(*numbers)


# -- Beta ----------------------------------------------------------------------------------------------------------


@given(x=st.floats(0, 1), a=st.floats(0.1, 3000), b=st.floats(0.1, 3000))
@same_everywhere
def test_the_beta_distribution_function_is_scipys(x, a, b):
    special = pytest.importorskip("scipy.special")
    assert isclose(beta_cdf(x, a, b), special.betainc(a, b, x), rel_tol=1e-8, abs_tol=1e-11)


@given(share=st.floats(0.001, 0.999), n=st.integers(0, 5000), part=st.floats(0, 1))
@same_everywhere
def test_quantiles_are_the_distribution_functions_inverse(share, n, part):
    posterior = Posterior.of(n, round(part * n))
    x = beta_quantile(share, posterior.a, posterior.b)
    assert 0 <= x <= 1
    below, above = max(0.0, x - 1e-9), min(1.0, x + 1e-9)
    assert beta_cdf(below, posterior.a, posterior.b) - 1e-9 <= share
    assert share <= beta_cdf(above, posterior.a, posterior.b) + 1e-9


def test_beta_has_closed_forms_in_corners():
    for x in (0.0, 0.1, 0.7, 1.0):
        assert isclose(beta_cdf(x, 1, 1), x, abs_tol=1e-14)
        assert isclose(beta_cdf(x, 3, 1), x**3, abs_tol=1e-14)
        assert isclose(beta_cdf(x, 1, 4), 1 - (1 - x) ** 4, abs_tol=1e-14)
    # arcsine law
    assert isclose(beta_quantile(0.25, 0.5, 0.5), np.sin(np.pi / 8) ** 2, rel_tol=1e-10)
    with pytest.raises(ValueError):
        beta_cdf(0.5, 0, 1)
    with pytest.raises(ValueError):
        beta_quantile(1.5, 1, 1)


# -- signal --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, c, k", [(0, 0, 8), (4, 0, 8), (4, 4, 2), (10, 3, 4), (64, 63, 16), (5, 2, 1)])
def test_expected_signal_is_the_integral_over_the_posterior(n, c, k):
    posterior = Posterior.of(n, c)
    rng = np.random.default_rng(7)
    p = rng.beta(posterior.a, posterior.b, size=400_000)
    drawn = 1 - p**k - (1 - p) ** k
    assert abs(expected_signal(posterior, k) - drawn.mean()) < 4 * drawn.std() / 400_000**0.5 + 1e-12
    low, high = signal_interval(posterior, k)
    if k > 1:
        assert abs((drawn < low).mean() - 0.025) < 0.002
        assert abs((drawn > high).mean() - 0.025) < 0.002


@given(counts(12), st.sampled_from([0.5, 1.0]))
@same_everywhere
def test_expected_signal_is_the_beta_binomials_mass_between_its_ends(numbers, prior):
    n, c, k = numbers
    stats = pytest.importorskip("scipy.stats")
    posterior = Posterior.of(n, c, prior)
    mass = stats.betabinom(k, posterior.a, posterior.b).pmf([0, k])
    wanted = 0.0 if k == 1 else 1 - mass.sum()
    assert isclose(expected_signal(posterior, k), wanted, abs_tol=1e-9)


def test_a_rate_that_is_not_known_is_not_plugged_in():
    assert signal(0.0, 8) == 0.0 and signal(1.0, 8) == 0.0 and isclose(signal(0.5, 2), 0.5)
    never = expected_signal(Posterior.of(4, 0), 8)
    assert 0.2 < never < 0.6  # four failures do not make a task hopeless
    assert expected_signal(Posterior.of(400, 0), 8) < 0.02
    assert signal(0.3, 1) == 0.0
    for bad in (0, -1):
        with pytest.raises(ValueError):
            signal(0.5, bad)


def test_partial_rewards_are_a_dirichlet_and_two_values_the_beta():
    for n, c in ((0, 0), (4, 0), (9, 5)):
        rewards = {0.0: n - c, 1.0: c}
        assert isclose(
            expected_reward_signal(rewards, 8), expected_signal(Posterior.of(n, c), 8), abs_tol=1e-12
        )
    rng = np.random.default_rng(3)
    seen = {0.25: 3, 0.5: 5, 1.0: 1}
    q = rng.dirichlet([0.5, 3.5, 5.5, 1.5], size=200_000)
    drawn = 1 - (q**4).sum(axis=1)
    assert abs(expected_reward_signal(seen, 4) - drawn.mean()) < 5 * drawn.std() / 200_000**0.5
    # never solved, yet its rewards differ: the signal of rewards sees what that of solves does not
    assert expected_reward_signal({0.25: 8, 0.5: 8}, 8) > 0.9 > expected_signal(Posterior.of(16, 0), 8)


def test_standing():
    assert [standing(4, 4), standing(4, 0), standing(4, 1), standing(0, 0)] == [
        "always",
        "never",
        "mixed",
        "untried",
    ]


# -- groups that were played ---------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=8), st.integers(1, 8))
@same_everywhere
def test_the_share_of_equal_subsets(rewards, k):
    tally = {value: rewards.count(value) for value in set(rewards)}
    found = all_equal_share(tally, k)
    if k > len(rewards):
        assert found is None
    else:
        subsets = list(combinations(rewards, k))
        assert isclose(found, sum(len(set(s)) == 1 for s in subsets) / len(subsets))


def test_the_share_of_equal_subsets_is_unbiased():
    p, n, k = 0.7, 5, 3
    mean = 0.0
    for outcome in product((0.0, 1.0), repeat=n):
        c = int(sum(outcome))
        mean += p**c * (1 - p) ** (n - c) * all_equal_share({0.0: n - c, 1.0: c}, k)
    assert isclose(mean, 1 - signal(p, k))


def test_groups_and_what_they_bought():
    assert group_kind(0, None, None) == "void"
    assert group_kind(1, 0.3, 0.3) == "alone"
    assert group_kind(4, 0.3, 0.3) == "equal"
    assert group_kind(4, 0.3, 0.4) == "mixed"
    tally = GroupTally()
    tally.add("mixed", counted=3, voids=1, steps=30, void_steps=2)
    tally.add("equal", counted=4, voids=0, steps=8, void_steps=0)
    tally.add("void", counted=0, voids=2, steps=0, void_steps=5)
    assert tally.groups == {"mixed": 1, "equal": 1, "alone": 0, "void": 1}
    assert tally.sandboxes == {"mixed": 3, "equal": 4, "alone": 0, "void": 3}
    assert tally.no_gradient(tally.sandboxes) == 0.7
    assert isclose(tally.no_gradient(tally.generations), 1 - 30 / 45)
    assert isclose(tally.no_gradient(tally.groups), 2 / 3)
    assert GroupTally().no_gradient(GroupTally().groups) is None
