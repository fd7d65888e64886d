"""Validation: a task is fit if its untouched start scores 0 and its reference 1, again and again, with the same verdict.

Promises: three outcomes, never two: *unfit* says that the task is at fault and names the hidden tests, *void* that the
arena failed and nothing is known of the task. What was found is kept in the state file at once. Never: changes a
task, excuses one, or lets one task's trouble reach another.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from tiltyard import __version__
from tiltyard.cells import make_wall, settled_name
from tiltyard.cells.protocol import Wall
from tiltyard.check.judge import HASH_SEEDS
from tiltyard.check.judge import Bench as _Bench
from tiltyard.check.rename import libcst
from tiltyard.check.report import TaskReport, ValidationReport
from tiltyard.check.state import State
from tiltyard.errors import Problem, UsageError
from tiltyard.pool import load_lenient
from tiltyard.pool.collection import Pool
from tiltyard.referee.pytest_settle import settle, without_tests
from tiltyard.task import RewardRule, SuiteWay, Task
from tiltyard.workers import Interrupted, Progress, Stop, work_all

MAX_REPEATS = 1000


def validate(
    pool: Any,
    *,
    tasks: Sequence[str] = (),
    tags: Sequence[str] = (),
    repeats: int = 5,
    wall: str = "auto",
    workers: int = 1,
    reward: RewardRule | None = None,
    probes: bool = False,
    drop_flaky: bool = False,
    repos: str | os.PathLike[str] | None = None,
    state: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    reading: Progress | None = None,
) -> ValidationReport:
    """Look at every task of ``pool`` (a Pool, or whatever ``tiltyard.pool.load`` takes).

    For each: the untouched start scores 0 and the reference 1, ``repeats`` times, with identical verdicts; the same
    under other hash seeds and with the hidden tests in reverse. With ``probes`` the reference in other clothes
    (``check.probes``) must score 1 too. Malformed tasks are unfit, by the place where they
    stand, and rows that can't be built here (``repos``: the folder of their repositories) void.

    A repository task's start must fail each test of FAIL_TO_PASS and pass each of PASS_TO_PASS. Tests of its suite that
    need the suite's own order are named (``TaskReport.ordered``) and no fault of it: gradings run it in that order, and
    only a grading that is worth 0 already can come to another one. With ``drop_flaky`` these, and tests that end in
    different ways, are left out, named, and the rest is judged without them. ``reading`` is told of each row of a
    ``swebench:FILE``, ``progress`` of each task. ``state`` names a file to go on from and to add to. Raises UsageError,
    ArenaError where no cell can be had, and :class:`Interrupted` with the report so far.
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or not 1 <= repeats <= MAX_REPEATS:
        raise UsageError(f"repeats: found {repeats!r}; expected a whole number from 1 to {MAX_REPEATS}")
    chosen, problems = load_lenient(pool, tasks=tasks, tags=tags, repos=repos, progress=reading)
    malformed = [] if tasks or tags else _malformed(problems)
    malformed += [] if tags else [_unbuilt(problem) for problem in chosen.left_out]
    wall_name = settled_name(wall)
    settings: dict[str, Any] = {
        "repeats": repeats,
        "wall": wall_name,
        "reward": reward,
        "tiltyard": __version__,
        "python": platform.python_version(),
    }
    if probes:
        libcst()  # missed before any work is done
        settings["probes"] = True
    if drop_flaky:
        settings["drop_flaky"] = True
    begun = time.monotonic()
    found: dict[str, TaskReport] = {report.task: report for report in malformed}

    def report() -> ValidationReport:
        in_order = [*(found[task.id] for task in chosen if task.id in found), *malformed]
        planned = len(chosen) + len(malformed)
        seconds = time.monotonic() - begun
        return ValidationReport(chosen.name, wall_name, repeats, tuple(in_order), planned, seconds, resumed)

    kept = None if state is None else State(state, settings)
    resumed = 0
    try:
        if kept is not None:
            old = {task.id: kept.known.get((task.id, task.digest)) for task in chosen}
            found |= {id: report for id, report in old.items() if report is not None}
            resumed = sum(report is not None for report in old.values())
        # tasks of one environment follow each other: a worker has the fork servers of a few only
        jobs = sorted((task for task in chosen if task.id not in found), key=_environment)
        make = partial(_Bench, wall_name, repeats, reward, probes, drop_flaky)
        interrupted_by = _all(jobs, make, workers, repeats, found, kept, progress)
    finally:
        if kept is not None:
            kept.close()
    if interrupted_by is not None:
        raise Interrupted(report(), interrupted_by.signum)
    return report()


def _all(
    jobs: list[Task],
    make: Callable[[], _Bench],
    workers: int,
    repeats: int,
    found: dict[str, TaskReport],
    kept: State | None,
    progress: Progress | None,
) -> Stop | None:
    """Examine the tasks, adding to ``found``. Returns the Stop if it was asked for before all were done."""

    def keep(number: int, report: TaskReport) -> None:
        found[jobs[number].id] = report
        if kept is not None:
            kept.add(report)

    def lost(task: Task, reason: str) -> TaskReport:
        return TaskReport(task.id, "void", reason, task.digest)

    deadline_s = partial(_deadline_s, repeats=repeats)
    return work_all(jobs, make, keep, lost, workers=workers, deadline_s=deadline_s, progress=progress)


def _deadline_s(task: Task, repeats: int) -> float:
    """Far more than it can honestly take: every grading three times, and a minute."""
    return 60.0 + 3 * task.limits.grade_s * 2 * (repeats + len(HASH_SEEDS) + 6)


def _malformed(problems: Sequence[Problem]) -> list[TaskReport]:
    by_place: dict[str, list[str]] = {}
    for problem in problems:
        at = f"{problem.field}: " if problem.field else ""
        by_place.setdefault(problem.where, []).append(
            f"{at}found {problem.found}; expected {problem.expected}"
        )
    return [TaskReport(where, "unfit", "malformed: " + "; ".join(whats)) for where, whats in by_place.items()]


def _unbuilt(problem: Problem) -> TaskReport:
    at = f"{problem.field}: " if problem.field else ""
    reason = f"can't be built here: {at}found {problem.found}; expected {problem.expected}"
    return TaskReport(problem.where, "void", reason)


def _environment(task: Task) -> tuple[str, tuple[str, ...]]:
    return task.metadata.python, task.metadata.packages


def settled(pool: Pool, wall: str = "auto", report: ValidationReport | None = None) -> Pool:
    """The pool with what its pytest tasks leave open filled in: which tests count, and by which way they run.

    The strongest way by which the reference passes and the start does not. Other tasks stay as they are, and so does
    the version that an author gave. ``report``: what a validation found of these tasks is not found out again, and
    tests that it left out as flaky are left out. ArenaError: a task's tests can't be collected, or the arena failed."""
    known = {one.task: one for one in report.tasks} if report is not None else {}
    with_name = make_wall(wall)
    try:
        tasks = tuple(_settled(with_name, task, known.get(task.id)) for task in pool)
    finally:
        with_name.close()
    made = Pool(pool.name, pool.version, tasks)
    return Pool(pool.name, made.digest[:12], tasks) if pool.version == pool.digest[:12] else made


def _settled(wall: Wall, task: Task, found: TaskReport | None) -> Task:
    if found is not None and found.outcome == "fit" and task.grading == "pytest":
        task = without_tests(task, {*found.flaky, *found.expected})
        if task.hidden and found.way and not task.way:
            return replace(task, way=cast(SuiteWay, found.way))
    return settle(wall, task)[0]
