"""Estimators over counts of outcomes: pass@k, posteriors, the chance that a group carries signal, advantages.

Promises: pure functions of numbers, deterministic (what is drawn is drawn by a seed), each with the source of its
formula. A void is None or NaN and never counts as 0; where nothing can be said the answer is None or NaN, never 0.
Never: reads a store, knows a task or a player.
"""

from tiltyard.estimates.advantages import group_advantages
from tiltyard.estimates.beta import Posterior, beta_cdf, beta_quantile
from tiltyard.estimates.difference import Difference, difference_of_rates
from tiltyard.estimates.groups import GroupTally, all_equal_share, group_kind
from tiltyard.estimates.intervals import Interval, clustered_mean, mean_over_tasks, wilson
from tiltyard.estimates.paired import PairedDifference, paired_difference
from tiltyard.estimates.passes import pass_all_k, pass_at_k
from tiltyard.estimates.signal import (
    expected_reward_signal,
    expected_signal,
    signal,
    signal_interval,
    standing,
)

__all__ = [
    "Difference",
    "GroupTally",
    "Interval",
    "PairedDifference",
    "Posterior",
    "all_equal_share",
    "beta_cdf",
    "beta_quantile",
    "clustered_mean",
    "difference_of_rates",
    "expected_reward_signal",
    "expected_signal",
    "group_advantages",
    "group_kind",
    "mean_over_tasks",
    "paired_difference",
    "pass_all_k",
    "pass_at_k",
    "signal",
    "signal_interval",
    "standing",
    "wilson",
]
