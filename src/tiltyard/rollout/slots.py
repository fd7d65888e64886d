"""Which episodes a run plays, and with which seeds. Pure, and independent of workers and of the order of work.

The seed of an episode is a hash of (run seed, task id, draw, attempt), so that it stays the same when tasks are added
to the pool, when the filter changes, and for any ``episodes`` and ``attempts``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tiltyard.errors import UsageError

SEED_BITS = 53
"""Seeds that every JSON reader keeps exact."""
MAX_EPISODES = 10_000_000


@dataclass(frozen=True, slots=True)
class Slot:
    """One episode to play. ``draw`` counts how often its task was drawn before, ``attempt`` the attempts at one draw."""

    number: int
    task: str
    draw: int
    attempt: int
    seed: int


def _hash(*parts: object) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def episode_seed(run_seed: int, task: str, draw: int, attempt: int) -> int:
    """A seed in [0, 2**53) for one episode."""
    return int.from_bytes(_hash("episode", run_seed, task, draw, attempt)[:8], "big") >> (64 - SEED_BITS)


def plan(
    ids: Sequence[str],
    *,
    episodes: int | None,
    attempts: int,
    seed: int,
    drawn: Sequence[int] | None = None,
) -> list[Slot]:
    """``episodes`` None: each task once, in the pool's order. Else that many draws by ``seed``, without replacement
    until the pool is used up, then again; or those that were ``drawn`` by someone else, as places in ``ids``. Each draw
    is played ``attempts`` times. Raises UsageError."""
    _whole("episodes", 1 if episodes is None else episodes, 1, MAX_EPISODES)
    _whole("attempts", attempts, 1, MAX_EPISODES)
    _whole("a seed", seed, 0, (1 << 63) - 1)
    if not ids:
        raise UsageError("the pool has no task to play")
    count = (len(ids) if episodes is None else episodes) * attempts
    if count > MAX_EPISODES:
        raise UsageError(f"a run of {count} episodes; expected at most {MAX_EPISODES}")
    draws: list[tuple[str, int]] = []
    if drawn is not None:
        before: Counter[int] = Counter()
        for place in drawn:
            draws.append((ids[place], before[place]))
            before[place] += 1
    elif episodes is None:
        draws = [(task, 0) for task in ids]
    else:
        rounds = -(-episodes // len(ids))
        for number in range(rounds):
            shuffled = sorted(ids, key=lambda task: _hash("draw", seed, number, task))
            draws += [(task, number) for task in shuffled]
        del draws[episodes:]
    return [
        Slot(n * attempts + attempt, task, draw, attempt, episode_seed(seed, task, draw, attempt))
        for n, (task, draw) in enumerate(draws)
        for attempt in range(attempts)
    ]


def _whole(what: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{what}: found {value!r}; expected a whole number from {low} to {high}")
