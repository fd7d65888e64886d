"""What a pytest task leaves open, found out with its reference: which tests count, and by which way they run.

All that are collected count, but for those that are skipped or expected to fail on the reference. The way is the
strongest by which the reference passes all of them and the start does not; where none is one, the one by which the
reference passes most, so that validation can say what is wrong. The answer is a task with these fields filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError
from tiltyard.referee.inside.suite import SKIPPED, XFAILED
from tiltyard.referee.pytest_local import collect_local, grade_local
from tiltyard.referee.pytest_remote import collect_remote, grade_remote
from tiltyard.referee.pytest_session import Course
from tiltyard.referee.result import Examined, Way
from tiltyard.task import SUITE_WAYS, Files, SuiteWay, Task, Test

SAMPLE = 16
"""Tests of a big suite that are tried first."""
ENOUGH_S = 5.0
WAYS_OF_PYTEST: dict[str, Way] = {"remote": grade_remote, "in-process": grade_local}
COLLECT: dict[str, Callable[[Wall, Task, Files], Course]] = {
    "remote": collect_remote,
    "in-process": collect_local,
}
"""By way: the node ids of a task's suite, collected with the files of a solution."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One way with the reference: how many of the counted tests it passes, and why the first of the others failed."""

    way: SuiteWay
    passed: int
    total: int
    start_fails: bool
    reason: str = ""

    @property
    def works(self) -> bool:
        return self.total > 0 and self.passed == self.total and self.start_fails


class NothingCollectedError(ArenaError):
    """No test of a suite is collected with its own reference: the task is at fault, or what it needs is missing."""


def is_settled(task: Task) -> bool:
    """Whether nothing is left open."""
    return task.grading != "pytest" or bool(task.way and task.hidden)


def without_tests(task: Task, ids: Collection[str]) -> Task:
    """The task without some of its hidden tests."""
    if not ids:
        return task
    hidden = tuple(test for test in task.hidden if test.id not in ids)
    return replace(task, hidden=hidden, pass_to_pass=tuple(i for i in task.pass_to_pass if i not in ids))


def settle(wall: Wall, task: Task) -> tuple[Task, tuple[Tried, ...]]:
    """The task with its tests and its way, and what was tried. ArenaError: the arena failed, or nothing is collected."""
    if is_settled(task):
        return task, ()
    ways: tuple[SuiteWay, ...] = (task.way,) if task.way else ("remote", "in-process")
    assert {*ways} <= {*SUITE_WAYS}
    reference, start = task.reference.over(task.start), task.start
    best: tuple[Task, Tried] | None = None
    tried: list[Tried] = []
    for way in ways:
        candidate, why = _counted(wall, replace(task, way=way), reference)
        if candidate is None:
            tried.append(Tried(way, 0, 0, False, why))
            continue
        hasty = way != ways[-1]
        if hasty and (failed := _sampled(wall, candidate, reference)) is not None:
            tried.append(failed)
            continue
        found = _examine(wall, _hurried(candidate) if hasty else candidate, reference, hasty)
        if not task.hidden:
            kept = [o.id for o in found.outcomes if o.reason not in (SKIPPED, XFAILED)]
            candidate = replace(candidate, hidden=tuple(Test(i) for i in kept)) if kept else candidate
            found = replace(found, outcomes=tuple(o for o in found.outcomes if o.id in {*kept}))
        else:
            # published lists count an expected failure as passed; here a solution could raise one
            never = {o.id for o in found.outcomes if o.reason == XFAILED} & {*task.pass_to_pass}
            candidate = without_tests(candidate, never)
            found = replace(found, outcomes=tuple(o for o in found.outcomes if o.id not in never))
        passed = sum(o.passed for o in found.outcomes)
        works = bool(found.outcomes) and passed == len(found.outcomes)
        fails = works and _is_of_a_start(candidate, _examine(wall, candidate, start))
        first = next((f"{o.id}: {o.reason}" for o in found.outcomes if not o.passed), "")
        one = Tried(way, passed, len(found.outcomes), fails, first)
        tried.append(one)
        if one.works:
            return candidate, tuple(tried)
        if best is None or one.passed > best[1].passed:
            best = candidate, one
    if best is None:
        said = "; ".join(f"{one.way}: {one.reason}" for one in tried)
        raise NothingCollectedError(f"no hidden test is collected with the reference ({said})")
    return best[0], tuple(tried)


def _sampled(wall: Wall, task: Task, reference: Files) -> Tried | None:
    """That this way does not work, if some tests of a big suite show it: to run all of them this way costs long. The
    reference fails none of those that count; where they are not known yet, some may."""
    if len(task.hidden) < 2 * SAMPLE or not task.fail_to_pass or not task.pass_to_pass:
        return None
    step = len(task.hidden) // SAMPLE
    wanted = [i for i, test in enumerate(task.hidden) if i % step == 0 or test.id == task.fail_to_pass[0]]
    found = WAYS_OF_PYTEST[task.way](wall, _hurried(task), reference, wanted, True)
    failed = [o for o in found.outcomes if not o.passed and o.reason != XFAILED]
    if not failed:
        return None
    first = f"{failed[0].id}: {failed[0].reason}"
    return Tried(task.way, len(wanted) - len(failed), len(wanted), False, first)


def _hurried(task: Task) -> Task:
    """The task with less time for each test, where it has much: a way by which a test comes near its limit would time out
    on a busy machine, and there is another way."""
    test_s = min(task.limits.test_s, max(ENOUGH_S, task.limits.test_s / 4))
    return replace(task, limits=replace(task.limits, test_s=test_s))


def _is_of_a_start(task: Task, found: Examined) -> bool:
    """Whether these outcomes are those of an untouched start: it must not pass everything, and where a task says which
    tests pass at the start, these do and no others: a way that shows something else does not work."""
    passed = {o.id for o in found.outcomes if o.passed}
    return passed == {*task.pass_to_pass} if task.pass_to_pass else len(passed) < len(found.outcomes)


def _counted(wall: Wall, task: Task, reference: Files) -> tuple[Task | None, str]:
    """The task with all the tests that are collected, if it does not name those that count; or why there is none."""
    if task.hidden:
        return task, ""
    course = COLLECT[task.way](wall, task, reference)
    known = {**task.start, **task.suite}
    ids = tuple(i for i in course.collected or () if i.partition("::")[0] in known)
    if ids:
        return replace(task, hidden=tuple(Test(i) for i in ids)), ""
    notes = [f"{file} {why}" for file, why in sorted(course.notes.items())]
    return None, notes[0] if notes else course.stopped or "no test in the suite's files"


def _examine(wall: Wall, task: Task, files: Files, hasty: bool = False) -> Examined:
    """``hasty``: after a test that timed out nothing more is run."""
    return WAYS_OF_PYTEST[task.way](wall, task, files, list(range(len(task.hidden))), hasty)
