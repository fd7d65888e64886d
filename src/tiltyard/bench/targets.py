"""What the walls must reach, as ratios and figures of one run, and whether they do. Pure: from the report's numbers.

Each has a value, a target and whether it is met; where something was not measured, value and met are None, and why
says what is missing. The names and targets are those of the project's own list for two processors; what only holds
for two is not judged elsewhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tiltyard.bench.floors import CLONE, FORK
from tiltyard.bench.instead import PYTEST
from tiltyard.bench.stats import Timing

Walls = Mapping[str, Mapping[str, Timing]]
CORES = 2
REPOSITORY_RESET, REPOSITORY_COPY = "repository_reset", "repository_copy"
REPOSITORY_PYTEST = "repository_pytest"
"""Measures of a repository of 500 files: a reset, a cell with all of it sent, and its suite of 20 tests."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """``target`` with its sign in front (">= 25"). ``value`` None: not measured, and ``why`` says what was missing."""

    name: str
    value: float | None
    target: str
    met: bool | None
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"value": self.value, "target": self.target, "met": self.met}
        return {**found, "why": self.why} if self.why else found


def judged(name: str, value: float | None, sign: str, target: float, why: str = "") -> Ratio:
    """A ratio, judged. ``sign`` is ``>=`` or ``<=``."""
    met = None
    if value is not None:
        compare: Callable[[float, float], bool] = operator.ge if sign == ">=" else operator.le
        met = compare(value, target)
        value = round(value, 4)
    return Ratio(name, value, f"{sign} {target:g}", met, why)


class _Missing(Exception):
    """Something that a ratio needs was not measured."""


def ratios(
    walls: Walls,
    floors: Mapping[str, Timing],
    *,
    cores: int,
    episodes: int,
    wall: str = "namespace",
    instead: Mapping[str, Timing] = MappingProxyType({}),
) -> tuple[Ratio, ...]:
    """All ratios. ``cores``: how many processors the run had; ``episodes``: the size of the small fleets; ``instead``:
    what people use instead."""

    def of(lane: str, measure: str) -> Timing:
        if lane not in walls:
            raise _Missing(f"the {lane} wall was not measured")
        if measure not in walls[lane]:
            raise _Missing(f"{measure} was not measured in the {lane} wall")
        return walls[lane][measure]

    def floor() -> float:
        found = [floors[name].median_ms for name in (FORK, CLONE) if name in floors]
        if not found:
            raise _Missing("the fork-and-wait floor was not measured")
        return min(found)  # the harder one to reach

    def faster_than(lane: str) -> float:
        return of(lane, "episode").median_ms / of(wall, "episode").median_ms

    def steady(workers: int) -> float:
        return of(wall, f"steady_workers_{workers}").per_second

    def whole(workers: int) -> float:
        return of(
            wall, f"episodes_{episodes}_" + ("serial" if workers == 1 else f"workers_{workers}")
        ).per_second

    def fresh_pytest() -> float:
        if PYTEST not in instead:
            raise _Missing("a fresh python -m pytest was not measured")
        return instead[PYTEST].median_ms / of(wall, REPOSITORY_PYTEST).median_ms

    found: list[Ratio] = []

    def add(name: str, value: Callable[[], float], sign: str, target: float, *, two: bool = False) -> None:
        try:
            number, why = value(), ""
        except _Missing as missing:
            number, why = None, str(missing)
        ratio = judged(name, number, sign, target, why)
        if two and number is not None and cores != CORES:
            why = f"the target is for {CORES} processors, and this run had {cores}; --cores {CORES} measures with them"
            ratio = Ratio(name, ratio.value, ratio.target, None, why)
        found.append(ratio)

    add("episodes_per_second", lambda: steady(CORES), ">=", 100, two=True)
    add("episode_vs_docker_run", lambda: faster_than("container:run"), ">=", 25)
    add("episode_vs_docker_exec", lambda: faster_than("container:exec"), ">=", 5)
    add("episode_vs_process_wall", lambda: faster_than("process"), ">=", 5)
    # reset <= 3 forks + 2 ms, as one number: what is left of it above the 2 ms, in forks
    add("reset_above_2_ms_in_forks", lambda: (of(wall, "reset").median_ms - 2.0) / floor(), "<=", 3)
    quick = (("view_file", 0.2), ("write_file", 0.2), ("submit", 12))
    for measure, most in (*quick, (REPOSITORY_RESET, 10), (REPOSITORY_COPY, 40)):
        add(f"{measure}_ms", lambda measure=measure: of(wall, measure).median_ms, "<=", most)  # type: ignore[misc]
    add("warm_pytest_vs_fresh", fresh_pytest, ">=", 3)
    add("two_workers_vs_one", lambda: steady(2) / steady(1), ">=", 1.85, two=True)
    add("eight_workers_vs_two", lambda: steady(8) / steady(2), ">=", 0.95, two=True)
    add(f"two_workers_vs_one_{episodes}_episodes", lambda: whole(2) / whole(1), ">=", 1.85, two=True)
    add(f"eight_workers_vs_two_{episodes}_episodes", lambda: whole(8) / whole(2), ">=", 0.95, two=True)
    return tuple(found)
