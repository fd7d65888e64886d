"""Many episodes at once: runs of the lesson's episode on 1, 2, 4 and 8 workers, through ``rollout.run``.

Two sizes are measured. The small one is what a caller sees, from the call to the summary, with the start of the
workers and of what each needs. The difference between the two gives the *steady* rate: what each further episode
costs once all workers play, which is what a run of thousands sees.
"""

from __future__ import annotations

import time
from statistics import median

from tiltyard.bench.lesson import POOL, player
from tiltyard.bench.stats import Timing
from tiltyard.errors import ArenaError
from tiltyard.rollout import run

WORKERS = (1, 2, 4, 8)
EPISODES = 64
LONG = 5
"""How many times as long the longer run is."""


def measure_name(workers: int, episodes: int) -> str:
    """``episodes_64_serial``, ``episodes_64_workers_2``, …"""
    return f"episodes_{episodes}_" + ("serial" if workers == 1 else f"workers_{workers}")


def fleet(wall: str, workers: int, episodes: int) -> dict[str, list[float]]:
    """One run. ArenaError if an episode did not score 1."""
    begun = time.perf_counter()
    summary = run(POOL, player(), episodes=1, attempts=episodes, workers=workers, wall=wall)
    seconds = time.perf_counter() - begun
    bad = [r for r in summary.results if r.reward != 1.0]
    if bad:
        raise ArenaError(
            f"{len(bad)} of {episodes} episodes went wrong: {bad[0].void or f'reward {bad[0].reward}'}"
        )
    return {measure_name(workers, episodes): [seconds]}


def steady_rate(short: list[float], long: list[float], episodes: int) -> Timing | None:
    """From the seconds of runs with ``episodes`` and with ``LONG`` times as many: what one more episode costs."""
    if not short or not long:
        return None
    seconds = (median(long) - median(short)) / (episodes * (LONG - 1))
    return Timing.of([seconds]) if seconds > 0 else None
