"""Remote pytest: trusted tests in the examiner's cell, the package in a cell of its own; only typed data crosses.

The strongest way for suites: nothing that a submission does can reach the process that decides. What does not work this
way: tests that share files, warnings, log records or a patched standard library with the package, or that subclass
its classes. This module never reads a byte that the solution's side wrote.
"""

from __future__ import annotations

import ast
import contextlib
import socket
from collections.abc import Mapping

from tiltyard.cells.protocol import Wall
from tiltyard.cells.start import on_image
from tiltyard.environments import environment_wall
from tiltyard.errors import ArenaError
from tiltyard.parsing import parse_source
from tiltyard.referee.calls import EXAMINER_MEMORY, GRACE_S, _examiner_limits
from tiltyard.referee.inside.link import Closed, Link
from tiltyard.referee.inside.testrun import GONE
from tiltyard.referee.once import once_a_task
from tiltyard.referee.pytest_files import REMEMBERED, layout, package_files
from tiltyard.referee.pytest_kit import kit_packages, with_pytest
from tiltyard.referee.pytest_session import Course, Talk, conduct, look
from tiltyard.referee.result import Allowed, Examined, cell_limits
from tiltyard.task import Files, Task
from tiltyard.verdict import Outcome

_CONTROL_BOUND = 256 << 20


def grade_remote(
    wall: Wall, task: Task, files: Files, order: list[int], stop: bool, allowed: Allowed | None = None
) -> Examined:
    """Run the hidden tests against ``files``. See :class:`tiltyard.referee.result.Way`."""
    course = conduct(
        task, order, stop, lambda tests: _begin(wall, task, files, tests, allowed or {}), trusted=True
    )
    return examined(task, order, course)


def collect_remote(wall: Wall, task: Task, files: Files) -> Course:
    """The node ids of the suite, collected on the package ``files``."""
    return look(task, lambda tests: _begin(wall, task, files, [], {}, only_collect=True), trusted=True)


def examined(task: Task, order: list[int], course: Course) -> Examined:
    """The outcomes of a course, in the task's order."""
    outcomes, flags = [], set(course.flags)
    doubtful, liberties = set(), {}
    for i in sorted(order):
        report, test_id = course.reports[i], task.hidden[i].id
        outcomes.append(Outcome(test_id, report.passed, report.reason))
        flags |= report.flags
        if report.died:
            doubtful.add(test_id)
        if report.liberties:
            liberties[test_id] = report.liberties
    ended = any(o.reason.startswith(GONE) for o in outcomes)
    return Examined(tuple(outcomes), frozenset(flags), frozenset(doubtful), liberties, ended)


def _begin(
    wall: Wall,
    task: Task,
    files: Files,
    tests: list[int],
    allowed: Allowed,
    *,
    only_collect: bool = False,
) -> Talk:
    wall, limits, plan = environment_wall(wall, task), task.limits, layout(task)
    total = limits.load_s + limits.grade_s + GRACE_S
    with contextlib.ExitStack() as stack:
        link_e, link_s = socket.socketpair()
        control, control_e = socket.socketpair()
        for sock in (link_e, link_s, control, control_e):
            stack.callback(sock.close)
        examiner_cell = with_pytest(wall).open(
            on_image(task.start, plan.tests.over(plan.data)), _examiner_limits(limits)
        )
        stack.callback(examiner_cell.close)
        solution_cell = wall.open(on_image(task.start, package_files(task, files)), cell_limits(limits))
        stack.callback(solution_cell.close)
        solution_cell.start("package", [link_s.fileno()], wall_s=total)
        link_s.close()
        examiner = examiner_cell.start(
            "suite_remote", [control_e.fileno(), link_e.fileno()], wall_s=total, memory_bytes=EXAMINER_MEMORY
        )
        link_e.close()
        control_e.close()
        mine = [[i, sorted(allowed[i])] for i in tests if i in allowed]
        asked = [[i, task.hidden[i].id] for i in tests]
        wanted = list(dict.fromkeys(task.hidden[i].id.partition("::")[0] for i in tests)) or list(plan.ids)
        roots, plugins = _test_roots(task), list(task.plugins)
        job = [kit_packages(task), wanted, asked, roots, plugins, list(plan.modules), imported(task)]
        try:
            rest = [limits.message_bytes, limits.load_s, mine, only_collect]
            Link(control, _CONTROL_BOUND).send([*job, list(plan.roots), *rest])
        except Closed:
            raise ArenaError(f"the examiner ended at once (status {examiner.wait(1.0)})") from None
        return Talk(control, examiner, stack.pop_all())


def _test_roots(task: Task) -> list[str]:
    """Roots that hold files of the tests: helpers beside the package, imported by their own names."""
    plan = layout(task)
    return [root for root in plan.roots if root == "." or any(p.startswith(f"{root}/") for p in plan.tests)]


@once_a_task(REMEMBERED)
def imported(task: Task) -> list[str]:
    """The package's modules that test files import, to be loaded before the first question."""
    plan = layout(task)
    known, found = set(plan.modules), dict[str, None]()
    for path, data in plan.tests.items():
        if path.endswith(".py"):
            found |= dict.fromkeys(name for name in _imports(data) if name in known)
    return list(found)


def _imports(data: bytes) -> Mapping[str, None]:
    out: dict[str, None] = {}
    try:
        tree = parse_source(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return out
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            out[node.module] = None
            out |= dict.fromkeys(f"{node.module}.{alias.name}" for alias in node.names)
    return out
