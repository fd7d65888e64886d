"""How many cells, cores and hours a training run needs: a simulation over what was measured. Pure, but for the clock.

A step plays ``batch`` groups of ``group`` episodes. Each episode opens a cell, then ``turns`` times waits for the model
and acts; its last action is submit. An action holds one core while it runs, in the order of asking; a model's answer
holds none. The step ends when its slowest episode ends. ``ASSUMPTIONS`` says what is assumed; everything else is drawn
from the measured times, so that their tails count as often as they were seen.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import exp, inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiltyard.errors import UsageError
from tiltyard.estimates.intervals import normal_quantile
from tiltyard.report.costs import OPEN, SUBMIT, TEST, VIEW, WRITE, Costs, quantile

MAX_EVENTS = 4_000_000
EVENTS = 1_000_000
"""Actions that are simulated for one figure, in repeated steps."""
MAX_STEPS, MIN_STEPS = 50, 3
NEAR = 1.05
"""A number of cores is enough where a step takes at most so many times what it would with cores without end."""
CANDIDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked. Latencies in seconds, of one answer of the model: the median and the 99th percentile; between
    and beyond them it is lognormal. ``cells`` None: one for every episode of a step. ``test_share`` of the turns run
    the visible tests, the others view and write in equal parts."""

    batch: int
    group: int
    turns: int
    latency_p50: float
    latency_p99: float
    steps: int = 1
    train_s: float = 0.0
    cells: int | None = None
    test_share: float = 1 / 3

    def __post_init__(self) -> None:
        for name in ("batch", "group", "turns", "steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: found {getattr(self, name)}; expected 1 or more")
        if self.cells is not None and self.cells < 1:
            raise UsageError(f"cells: found {self.cells}; expected 1 or more")
        if not 0 <= self.latency_p50 <= self.latency_p99 < inf or self.latency_p50 == 0 < self.latency_p99:
            raise UsageError(
                f"found a model latency of {self.latency_p50:g} s at the median and {self.latency_p99:g} s at the 99th "
                "percentile; expected both above 0, the second not below the first, or both 0"
            )
        if not 0 <= self.test_share <= 1:
            raise UsageError(f"test_share: found {self.test_share:g}; expected 0 to 1")
        if self.episodes * self.turns > MAX_EVENTS:
            raise UsageError(
                f"a step of {self.episodes:,} episodes with {self.turns} turns is more than {MAX_EVENTS:,} actions; plan a "
                "part of the batch, on as large a part of the machines"
            )

    @property
    def episodes(self) -> int:
        """Of one step."""
        return self.batch * self.group

    @property
    def open_cells(self) -> int:
        return min(self.episodes, self.cells or self.episodes)


@dataclass(frozen=True, slots=True)
class Row:
    """One number of cores. Seconds of a step; ``busy`` is the share of the cores' time that is used; ``hours`` of the
    whole run, at the median step."""

    cores: int
    step_p50_s: float
    step_p99_s: float
    busy: float
    hours: float


@dataclass(frozen=True, slots=True)
class Plan:
    """``rows`` around the number of ``cores`` that is enough (the last of them, if none is). ``ideal_*``: a step with
    cores without end. ``episode_*``: one episode there. ``core_seconds`` of the arena's work in one step."""

    load: Load
    costs: Costs
    cells: int
    cores: int
    enough: bool
    hours: float
    rows: tuple[Row, ...]
    ideal_p50_s: float
    ideal_p99_s: float
    episode_p50_s: float
    episode_p99_s: float
    core_seconds: float
    waiting_share: float
    """The share of the median episode that is the model's."""
    simulated: int
    seed: int

    def as_json(self) -> dict[str, Any]:
        """The shape that ``tiltyard plan --json`` prints."""
        return asdict(self) | {
            "costs": self.costs.as_json(),
            "memory_gib_at_most": round(self.cells * self.costs.memory_bytes / (1 << 30), 1),
            "assumptions": list(assumptions(self)),
        }


def assumptions(plan: Plan) -> tuple[str, ...]:
    """What is assumed and not measured, in words."""
    load, tail = plan.load, plan.load.latency_p99 / max(plan.load.latency_p50, 1e-9)
    said = [
        "the model answers any number of requests at once, each as fast as it would alone",
        f"an answer takes {load.latency_p50:g} s at the median and {load.latency_p99:.3g} s at the 99th percentile "
        f"({tail:.1f} times as much), lognormal",
        f"every episode takes all of its {load.turns} turns, {100 * load.test_share:.0f}% of which run the visible tests",
        "an action holds one core for as long as it took here, alone; a core elsewhere is as fast as one here",
        "a step begins with all cells closed and ends with its slowest episode; the next one does not overlap it",
        f"the trainer takes {load.train_s:g} s a step beside it",
    ]
    if plan.costs.busy:
        said.append("this machine had other work while it was measured, so that its times are too long")
    return tuple(said)


def plan(load: Load, costs: Costs, *, cores: int | None = None, seed: int = 0) -> Plan:
    """The smallest number of cores that is enough, and what others would take. ``cores``: look at that many instead."""
    events = load.episodes * (load.turns + 1)
    repeats = max(MIN_STEPS, min(MAX_STEPS, EVENTS // events))
    worlds = [World(load, costs, seed, n) for n in range(repeats)]
    ideal = sorted(world.play(inf)[0] for world in worlds)
    known: dict[int, Row] = {}

    def row(number: int) -> Row:
        if number not in known:
            known[number] = _row(load, worlds, number)
        return known[number]

    def good(number: int) -> bool:
        return row(number).step_p99_s <= NEAR * quantile(ideal, 0.99)

    if cores is not None:
        if cores < 1:
            raise UsageError(f"cores: found {cores}; expected 1 or more")
        best, shown = cores, sorted({max(1, cores // 2), cores, 2 * cores})
    else:
        best = _first(CANDIDATES, good)
        place = CANDIDATES.index(best)
        shown = list(CANDIDATES[max(0, place - 2) : place + 2])
    alone = np.concatenate([world.alone() for world in worlds])
    ordered = np.sort(alone).tolist()
    thinking = float(np.median(np.concatenate([world.think.sum(axis=1) for world in worlds])))
    return Plan(
        load=load,
        costs=costs,
        cells=load.open_cells,
        cores=best,
        enough=good(best),
        hours=row(best).hours,
        rows=tuple(row(number) for number in shown),
        ideal_p50_s=quantile(ideal, 0.5),
        ideal_p99_s=quantile(ideal, 0.99),
        episode_p50_s=quantile(ordered, 0.5),
        episode_p99_s=quantile(ordered, 0.99),
        core_seconds=float(np.mean([world.work.sum() for world in worlds])),
        waiting_share=thinking / max(float(np.median(alone)), 1e-9),
        simulated=repeats,
        seed=seed,
    )


def _first(numbers: tuple[int, ...], good: Callable[[int], bool]) -> int:
    """The first good one of an order that ends with the good ones; the last one if none is."""
    low, high = 0, len(numbers) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(numbers[middle]) else (middle + 1, high)
    return numbers[low]


def _row(load: Load, worlds: list[World], cores: int) -> Row:
    played = [world.play(cores) for world in worlds]
    seconds = sorted(s for s, _ in played)
    busy = sum(work for _, work in played) / max(cores * sum(s for s, _ in played), 1e-9)
    p50 = quantile(seconds, 0.5)
    return Row(cores, p50, quantile(seconds, 0.99), busy, load.steps * (p50 + load.train_s) / 3600)


class World:
    """One step, with all that chance decides drawn before: the same for any number of cores. ``think`` and ``work`` have
    a row for each episode; ``work`` begins with the opening of the cell."""

    def __init__(self, load: Load, costs: Costs, seed: int, number: int) -> None:
        dice = np.random.default_rng(np.random.SeedSequence([seed, number]))
        shape = (load.episodes, load.turns)
        self.cells = load.open_cells
        self.think: NDArray[np.float64] = np.zeros(shape)
        if load.latency_p50 > 0:
            sigma = log(load.latency_p99 / load.latency_p50) / normal_quantile(0.99)
            self.think = np.exp(log(load.latency_p50) + sigma * dice.standard_normal(shape))
        lots = dice.random(shape)
        tests, views = lots < load.test_share, lots >= load.test_share + (1 - load.test_share) / 2
        acts = np.where(tests, self._drawn(costs, TEST, dice, shape), self._drawn(costs, WRITE, dice, shape))
        acts = np.where(views, self._drawn(costs, VIEW, dice, shape), acts)
        acts[:, -1] = self._drawn(costs, SUBMIT, dice, shape)[:, -1]
        opening = self._drawn(costs, OPEN, dice, (load.episodes, 1))
        self.work: NDArray[np.float64] = np.concatenate([opening, acts], axis=1)

    @staticmethod
    def _drawn(
        costs: Costs, kind: str, dice: np.random.Generator, shape: tuple[int, int]
    ) -> NDArray[np.float64]:
        return dice.choice(np.asarray(costs.seconds[kind]), size=shape)

    def alone(self) -> NDArray[np.float64]:
        """The seconds of each episode where nothing waits for a core."""
        seconds: NDArray[np.float64] = self.think.sum(axis=1) + self.work.sum(axis=1)
        return seconds

    def play(self, cores: float) -> tuple[float, float]:
        """Seconds until the slowest episode ends, and the core seconds that were worked."""
        worked = float(self.work.sum())
        if cores == inf and self.cells >= len(self.work):
            return float(self.alone().max()), worked
        free = [0.0] * int(min(cores, self.work.size))
        think, work, turns = self.think.tolist(), self.work.tolist(), self.think.shape[1]
        # (when it asks for a core, episode, how many actions it has behind it)
        asking = [(0.0, episode, 0) for episode in range(self.cells)]
        waiting, end = self.cells, 0.0
        while asking:
            now, episode, behind = asking[0]
            done = max(now, free[0]) + work[episode][behind]
            heapq.heapreplace(free, done)
            if behind < turns:
                heapq.heapreplace(asking, (done + think[episode][behind], episode, behind + 1))
                continue
            end = max(end, done)
            if waiting < len(work):
                heapq.heapreplace(asking, (done, waiting, 0))
                waiting += 1
            else:
                heapq.heappop(asking)
        return end, worked


_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """Seconds of ``3s``, ``500ms``, ``2m``, ``1.5h`` or ``3``. UsageError for anything else."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(ms|s|min|m|h|)\s*", text, re.ASCII)
    if match is None:
        raise UsageError(f"found {text!r}; expected a time such as 3s, 500ms or 2m")
    return float(match[1]) * _UNITS[match[2]]


def default_tail(p50: float) -> float:
    """The 99th percentile of a model's latency where only the median is known: e times the median."""
    return p50 * exp(1)
