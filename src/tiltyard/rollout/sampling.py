"""Which tasks to draw next: those whose groups promise signal, as far as a player's own attempts tell.

Promises: the same store, pool, player and seed give the same draws (with the same numpy), in any order of the pool; tasks
that are known to be mixed are drawn most, those never tried often, and none is ever given up. The state is the episodes
of the store, counted by the task's digest and the player: there is no second book that could disagree with
them, or be lost.
Never: counts a void, or what another player did.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import func, select

from tiltyard.errors import UsageError
from tiltyard.estimates.signal import reward_weights
from tiltyard.records import Store, schema
from tiltyard.task import Task

SIGNAL = "signal"
SAMPLES = ("plan", SIGNAL)
EXPLORE = 0.1
"""The share of draws that do not look at what is known: a player that learns makes old counts wrong."""
WINDOW = 4
"""A window of draws holds at most one in ``WINDOW`` of the tasks, each at most once."""
DEFAULT_GROUP = 8
MAX_DRAWS = 1_000_000

History = Mapping[str, Mapping[float, int]]
"""By task digest, how often each reward was given."""


def history(store: Store, player: str) -> History:
    """What this player's attempts in the store came to; voids are no attempts."""
    table = schema.episodes.c
    wanted = (
        select(table.task_digest, table.reward, func.count())
        .where(table.player == player, table.reward.is_not(None))
        .group_by(table.task_digest, table.reward)
    )
    found: dict[str, Counter[float]] = {}
    with store.snapshot() as connection:
        for digest, reward, count in connection.execute(wanted):
            found.setdefault(digest, Counter())[float(reward)] += int(count)
    return found


def by_signal(
    tasks: Sequence[Task], known: History, *, draws: int, group: int, seed: int, explore: float = EXPLORE
) -> list[int]:
    """``draws`` places in ``tasks``, by Thompson sampling (Thompson 1933; Russo et al. 2018, arXiv:1707.02038).

    For each window of draws and each task, chances of its rewards are drawn from their posterior (a Dirichlet over the
    rewards seen, 0 and 1), and the tasks are taken for which the chance that ``group`` rewards are not all the same,
    1 − Σ qᵥᵏ, came out highest; a share ``explore`` of the window is taken by lot. Raises UsageError.
    """
    if not tasks:
        raise UsageError("the pool has no task to play")
    if not 1 <= draws <= MAX_DRAWS:
        raise UsageError(f"found {draws} draws by signal; expected 1 to {MAX_DRAWS}")
    size, chosen = max(1, len(tasks) // WINDOW), list[int]()
    while len(chosen) < draws:
        chosen += _window(tasks, known, len(chosen) // size, size, max(2, group), seed, explore)
    return chosen[:draws]


def _window(
    tasks: Sequence[Task], known: History, window: int, size: int, group: int, seed: int, explore: float
) -> list[int]:
    promise, lots = [], []
    for task in tasks:
        # a generator of its own for each task: another one in the pool must not change what is drawn for this one
        dice = np.random.default_rng(_seed("signal", seed, window, task.digest))
        weights = list(reward_weights(known.get(task.digest, {})).values())
        q = dice.dirichlet(weights)
        promise.append(1.0 - float((q**group).sum()))
        lots.append(float(dice.random()))
    best = sorted(range(len(tasks)), key=lambda n: (-promise[n], tasks[n].digest))
    dice = np.random.default_rng(_seed("explore", seed, window))
    by_lot = int(dice.binomial(size, explore))
    taken = best[: size - by_lot]
    rest = sorted(best[size - by_lot :], key=lambda n: (lots[n], tasks[n].digest))
    return taken + rest[:by_lot]


def _seed(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:16], "big")


def signal_draws(
    store: Store | None, tasks: Sequence[Task], player: str, *, episodes: int | None, attempts: int, seed: int
) -> list[int]:
    """The draws of a run with ``sample="signal"``. Raises UsageError where there is nothing to go by."""
    if store is None:
        raise UsageError("sampling by signal goes by what a store knows of the player; name one with --store")
    if episodes is None:
        raise UsageError("sampling by signal draws tasks; say how many with --episodes")
    group = attempts if attempts > 1 else DEFAULT_GROUP
    return by_signal(tasks, history(store, player), draws=episodes, group=group, seed=seed)
