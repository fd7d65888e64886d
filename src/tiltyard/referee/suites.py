"""Suites without a verdict: which of these tests pass on these files? For whoever makes tasks (mining, breaking).

A light run of chosen node ids: one session for all of them, no negative controls, no second try. A test that hangs or ends
its process costs itself, and the others run in another session. What comes out is a claim of the code that was run, so
it is good for making tasks out of code that is not hostile, and for nothing else: rewards come from the ``Referee``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tiltyard.cells.protocol import Wall
from tiltyard.errors import UsageError
from tiltyard.referee.pytest_local import run_local
from tiltyard.referee.pytest_remote import examined, grade_remote
from tiltyard.referee.pytest_settle import COLLECT
from tiltyard.task import SUITE_WAYS, Files, SuiteWay, Task, Test
from tiltyard.verdict import Outcome


def run_suite(
    wall: Wall, task: Task, files: Files, ids: Sequence[str], *, way: SuiteWay = "in-process"
) -> dict[str, Outcome]:
    """How each of these tests of the task's suite ends on ``files``, in the order of ``ids``, in which they are run.

    ``files`` is all that a solution has, start files included (``task.reference.over(task.start)``); trusted test files
    come from the task whatever is in them. ``ids`` need not be among ``task.hidden``. What limits it are the task's
    ``test_s`` and ``grade_s`` (all of it together). An id that is not collected fails with that reason.
    Raises ArenaError if the arena failed, UsageError for a task that is not graded by pytest."""
    wanted = list(dict.fromkeys(ids))
    asked = _asked(task, way, tuple(Test(i) for i in wanted))
    if not wanted:
        return {}
    order = list(range(len(wanted)))
    if way == "remote":
        found = grade_remote(wall, asked, files, order, False)
    else:
        found = examined(asked, order, run_local(wall, asked, files, order, False))
    return {outcome.id: outcome for outcome in found.outcomes}


def collect_suite(
    wall: Wall, task: Task, files: Files, *, way: SuiteWay = "in-process", paths: Sequence[str] = ()
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The node ids that pytest collects from the suite's test files with ``files``, in its order, and by file the
    reason why it can't be collected; under "" the reason why nothing could. ``paths``: collect from these files, whatever
    they are called; (): from those of the suite that are called like tests. Raises as :func:`run_suite`."""
    course = COLLECT[way](wall, _asked(task, way, tuple(map(Test, paths))), files)
    known = {**task.start, **task.suite}
    ids = tuple(i for i in course.collected or () if i.partition("::")[0] in known)
    stopped = {"": course.stopped} if course.stopped and not ids else {}
    return ids, {**course.notes, **stopped}


def _asked(task: Task, way: SuiteWay, hidden: tuple[Test, ...]) -> Task:
    if task.grading != "pytest" or not task.suite:
        raise UsageError(
            f"task {task.id!r} is graded by {task.grading} and has {len(task.suite)} suite files; only the tests of a "
            "task with grading 'pytest' and a suite can be run like this"
        )
    if way not in SUITE_WAYS:
        raise UsageError(f"way is {way!r}; expected one of {', '.join(map(repr, SUITE_WAYS))}")
    return replace(task, hidden=hidden, pass_to_pass=(), way=way)
