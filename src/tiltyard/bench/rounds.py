"""Measuring side by side: every job gets its turns spread over the whole run, so that a busy moment hits all alike.

A job that is slow gets fewer turns, as its budget of seconds allows, but these are spread just as far. A job that
fails with an ArenaError is given up, and the reason kept; the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tiltyard.errors import ArenaError

MIN_TURNS = 3


@dataclass(eq=False)
class Job:
    """``once`` measures one turn: seconds by measure, several for what was done several times. ``group`` names who
    is measured; when one job of a group fails, the others of that group are given up with it."""

    group: str
    once: Callable[[], Mapping[str, Sequence[float]]]
    turns: int
    budget_s: float
    least: int = MIN_TURNS
    """Turns that it gets whatever they cost."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    done: int = 0
    failed: str = ""
    _planned: int = 0

    def plan(self, first_s: float) -> None:
        """How many turns it gets, from how long its first (unmeasured) one took."""
        affordable = int(self.budget_s / max(first_s, 1e-6))
        self._planned = min(self.turns, max(self.least, affordable))

    def is_due(self, turn: int, of: int) -> bool:
        """Whether its turns, spread evenly over ``of``, have one here."""
        return turn * self._planned // of != (turn + 1) * self._planned // of

    def measure(self) -> None:
        for name, seconds in self.once().items():
            self.seconds.setdefault(name, []).extend(seconds)
        self.done += 1


def side_by_side(
    jobs: Sequence[Job], *, warm: bool = True, tick: Callable[[], None] = lambda: None
) -> dict[str, str]:
    """Run all jobs. ``warm``: a first turn of each is not kept; without it the first turn counts. Returns why a group
    was given up, by group."""
    failed: dict[str, str] = {}
    for job in jobs:
        _guarded(job, failed, lambda job=job: _first(job, warm))  # type: ignore[misc]
    most = max((job.turns for job in jobs), default=0)
    for turn in range(most):
        shift = turn % max(1, len(jobs))
        for job in [*jobs[shift:], *jobs[:shift]]:  # or one would always come after the same other
            if job.is_due(turn, most) and job.done < job.turns:
                _guarded(job, failed, job.measure)
        tick()
    return failed


def _first(job: Job, warm: bool) -> None:
    begun = time.perf_counter()
    if warm:
        job.once()
    else:
        job.measure()
    job.plan(time.perf_counter() - begun)


def _guarded(job: Job, failed: dict[str, str], step: Callable[[], None]) -> None:
    if job.group in failed:
        return
    try:
        step()
    except ArenaError as error:
        failed[job.group] = job.failed = str(error)
