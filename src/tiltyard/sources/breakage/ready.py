"""A subject made ready: which of its tests count, which lines each reaches, and how deep below it each function lies.

Tests count that pass on the working code in two orders and under two hash seeds, within a time that leaves room.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError
from tiltyard.referee import Referee
from tiltyard.referee.inside.examiner import TIMED_OUT
from tiltyard.referee.inside.observe import AT_IMPORT
from tiltyard.referee.pytest_local import run_local
from tiltyard.referee.pytest_remote import examined
from tiltyard.referee.suites import collect_suite
from tiltyard.sources.breakage.observing import observe
from tiltyard.sources.breakage.subject import Subject, with_tests
from tiltyard.task import Files, Task
from tiltyard.verdict import Outcome

Walls = Callable[[int], Wall]
"""The wall of a hash seed."""
SLOWER = 20
"""How much slower a test may be while it is traced, and a broken one than a working one."""
LEAST_S = 5.0
MAX_TESTS = 5000


@dataclass(frozen=True)
class Ready:
    """``task``: the working code, its hidden tests those that count, its limits those of a trial. ``reach``: by path and line,
    the tests that reach it. ``depths``: by path and first line of a function, and by test, how deep it was first
    entered."""

    subject: Subject
    task: Task
    reach: Mapping[str, Mapping[int, frozenset[int]]] = field(default_factory=dict)
    depths: Mapping[tuple[str, int], Mapping[int, int]] = field(default_factory=dict)
    left_out: int = 0
    problem: str = ""


def make_ready(walls: Walls, subject: Subject) -> Ready:
    """Look at a subject. ``problem`` says why it can't be broken. ArenaError: the arena failed."""
    task = subject.task
    if task.grading == "pytest":
        task = _collected(walls(0), task)
    if not task.hidden:
        return Ready(subject, task, problem="no test is collected")
    everything = list(range(len(task.hidden)))
    begun = time.monotonic()
    first = outcomes_of(walls(0), task, task.start, everything)
    took = time.monotonic() - begun
    second = outcomes_of(walls(1), task, task.start, everything[::-1])
    stable = [i for i in everything if first[i].passed and second[i].passed]
    left_out = len(everything) - len(stable)
    if task.grading != "pytest" and left_out:
        bad = next(first[i] if not first[i].passed else second[i] for i in everything if i not in stable)
        return Ready(subject, task, left_out=left_out, problem=f"the reference fails {bad.id} ({bad.reason})")
    if len(stable) < 2:
        why = next((o.reason for o in first.values() if not o.passed), "")
        return Ready(
            subject, task, left_out=left_out, problem=f"{len(stable)} tests pass on the working code ({why})"
        )
    ids = tuple(task.hidden[i].id for i in stable)
    task = with_tests(task, ids) if task.grading == "pytest" else task
    reach, depths = _reach(walls(0), subject, task, took)
    return Ready(subject, _limited(task, took), reach, depths, left_out)


def _collected(wall: Wall, task: Task) -> Task:
    if not task.hidden:
        ids, notes = collect_suite(wall, task, task.start)
        if not ids and notes:
            file, why = sorted(notes.items())[0]
            raise ArenaError(f"no test is collected ({file or 'the suite'}: {why})")
        task = with_tests(task, ids[:MAX_TESTS])
    return replace(task, way="in-process")


def _limited(task: Task, took: float) -> Task:
    """With time limits that suit the working code, so that what does not end is soon known for it."""
    most = LEAST_S + SLOWER * took / max(1, len(task.hidden)) + took
    hidden = tuple(replace(t, time_s=min(t.time_s or task.limits.test_s, most)) for t in task.hidden)
    limits = replace(task.limits, grade_s=min(task.limits.grade_s, 60.0 + SLOWER * took))
    return replace(task, hidden=hidden, limits=limits, reward="all")


def outcomes_of(wall: Wall, task: Task, files: Files, order: Sequence[int]) -> dict[int, Outcome]:
    """How these tests end on ``files``, run in this order; after one that did not end the others are not run."""
    if not order:
        return {}
    if task.grading == "pytest":
        found = examined(task, list(order), run_local(wall, task, files, list(order), True)).outcomes
        return dict(zip(sorted(order), found, strict=True))
    whole = [*order, *(i for i in range(len(task.hidden)) if i not in {*order})]
    verdict = Referee(wall).grade(task, files, reward="all", order=whole)
    if verdict.void is not None:
        raise ArenaError(verdict.void)
    return {i: verdict.outcomes[i] for i in order}


def hangs(outcomes: Mapping[int, Outcome]) -> bool:
    """Whether a test did not end."""
    return any(o.reason == TIMED_OUT or o.reason.startswith("not run") for o in outcomes.values())


def _reach(
    wall: Wall, subject: Subject, task: Task, took: float
) -> tuple[dict[str, dict[int, frozenset[int]]], dict[tuple[str, int], dict[int, int]]]:
    order = range(len(task.hidden))
    if task.grading == "stdio":  # a program: each test runs it from its first line
        everything = frozenset(order)
        lines = {path: 1 + subject.task.start[path].count(b"\n") for path in subject.targets}
        return {path: dict.fromkeys(range(1, n + 1), everything) for path, n in lines.items()}, {}
    slow = with_time(task, task.limits.test_s * SLOWER)
    seen = observe(wall, slow, task.start, order, "lines", subject.targets, 60.0 + 3 * SLOWER * took)
    reach: defaultdict[str, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    depths: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for index, one in seen.items():
        # a fault in what is done at the import can fail every test; those of ``calls`` are always run all
        alone = task.grading == "pytest" and index != AT_IMPORT
        tests = {index} if alone else {*order}
        for file, lines_of, functions in one.trace:
            path = subject.targets[file]
            for line in lines_of:
                reach[path][line] |= tests
            for line, depth in functions:
                depths[path, line][index] = depth
    return {p: {n: frozenset(t) for n, t in of.items()} for p, of in reach.items()}, dict(depths)


def with_time(task: Task, seconds: float) -> Task:
    """The task with more time, and more of the processor."""
    limits = replace(
        task.limits, test_s=seconds, grade_s=max(task.limits.grade_s, seconds),
        cpu_s=max(task.limits.cpu_s, 20 * 60.0),
    )  # fmt: skip
    return replace(task, limits=limits)
