from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.errors import UsageError
from tiltyard.rollout.slots import episode_seed, plan

IDS = tuple(f"t{n}" for n in range(10))


def test_each_task_once_in_order():
    slots = plan(IDS, episodes=None, attempts=1, seed=0)
    assert [slot.task for slot in slots] == list(IDS)
    assert [slot.number for slot in slots] == list(range(10))
    assert len({slot.seed for slot in slots}) == 10


def test_attempts():
    slots = plan(IDS, episodes=None, attempts=3, seed=0)
    assert [(s.task, s.attempt) for s in slots[:4]] == [("t0", 0), ("t0", 1), ("t0", 2), ("t1", 0)]
    assert [slot.number for slot in slots] == list(range(30))
    assert len({slot.seed for slot in slots}) == 30


@given(st.integers(1, 35), st.integers(0, 2**63 - 1))
def test_draws_without_replacement_until_the_pool_is_used_up(episodes, seed):
    slots = plan(IDS, episodes=episodes, attempts=1, seed=seed)
    assert slots == plan(IDS, episodes=episodes, attempts=1, seed=seed)
    assert len(slots) == episodes
    counts = Counter(slot.task for slot in slots)
    assert max(counts.values()) - min(counts.get(id, 0) for id in IDS) <= 1
    for start in range(0, episodes, 10):
        part = slots[start : start + 10]
        assert len({slot.task for slot in part}) == len(part)
    assert len({slot.seed for slot in slots}) == episodes


def test_another_seed_draws_others():
    drawn = {tuple(s.task for s in plan(IDS, episodes=5, attempts=1, seed=seed)) for seed in range(20)}
    assert len(drawn) > 15


def test_more_episodes_begin_with_the_same():
    assert plan(IDS, episodes=25, attempts=1, seed=4)[:7] == plan(IDS, episodes=7, attempts=1, seed=4)


def test_a_seed_does_not_depend_on_the_rest_of_the_pool():
    few = {s.task: s.seed for s in plan(IDS[3:5], episodes=None, attempts=1, seed=4)}
    many = {s.task: s.seed for s in plan(IDS, episodes=10, attempts=2, seed=4) if s.attempt == 0}
    assert few.items() <= many.items()


def test_seeds_are_stable_between_releases():
    assert episode_seed(0, "median", 0, 0) == PINNED
    assert all(0 <= episode_seed(0, str(n), 0, 0) < 2**53 for n in range(200))


PINNED = 3239211319459757


@pytest.mark.parametrize(
    "options",
    [
        {"episodes": 0},
        {"episodes": True},
        {"episodes": 1.5},
        {"attempts": 0},
        {"seed": -1},
        {"seed": 2**63},
        {"seed": None},
        {"episodes": 10_000_000, "attempts": 2},
    ],
)
def test_what_can_t_be_planned(options):
    with pytest.raises(UsageError, match="expected"):
        plan(IDS, **{"episodes": None, "attempts": 1, "seed": 0, **options})


def test_no_task():
    with pytest.raises(UsageError, match="no task"):
        plan((), episodes=None, attempts=1, seed=0)
