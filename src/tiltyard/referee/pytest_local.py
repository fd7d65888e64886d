"""In-process pytest, hardened: the tests and the submission in one process, for suites that work in no other way.

What such a process says is a claim. It is bound to ids that are known outside, to their order and to time limits, in
cells with the task's own test and configuration files and no plugins; and it must stand against *controls*: the same
ids once more in a cell of their own, with one expectation of each test altered (``pytest_controls``). Where the reference fails
a control, a submission that passes it passes everything, and earns nothing (flag ``control_passed``).

What this does not stop: a submission that finds the tests' process from inside, tells a control from the real run (by
knowing the right answer, or by reading the test's source and judging it), and forges the outcomes of the real run
only; one that computes nothing and takes the expected value of a test from its frame where no control can be made of that
test (no comparison in it). ``watch`` notes who looks around like this. Use the remote way wherever it works.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from collections import OrderedDict
from collections.abc import Mapping

from tiltyard.cells.protocol import Wall
from tiltyard.cells.start import on_image
from tiltyard.environments import environment_wall
from tiltyard.errors import ArenaError
from tiltyard.referee.calls import GRACE_S
from tiltyard.referee.inside.link import Closed, Link
from tiltyard.referee.pytest_controls import altered
from tiltyard.referee.pytest_files import layout, together
from tiltyard.referee.pytest_kit import kit_packages, with_pytest
from tiltyard.referee.pytest_remote import examined
from tiltyard.referee.pytest_session import Course, Talk, conduct, look
from tiltyard.referee.result import Allowed, Examined, cell_limits
from tiltyard.task import Files, Task
from tiltyard.verdict import Outcome

CONTROL_PASSED = "control_passed"
REMEMBERED = 256
_PASSES_EVERYTHING = "passed a test with an altered expectation as well"


def grade_local(
    wall: Wall, task: Task, files: Files, order: list[int], stop: bool, allowed: Allowed | None = None
) -> Examined:
    """Run the hidden tests and then their controls. See :class:`tiltyard.referee.result.Way`."""
    found = examined(task, order, run_local(wall, task, files, order, stop))
    passed = [i for i, outcome in zip(sorted(order), found.outcomes, strict=True) if outcome.passed]
    if not passed or (stop and len(passed) < len(order)):
        return found
    if files == task.reference.over(task.start):
        return found  # a control counts where the reference fails it, so it has no other to stand against
    effective = _controls(wall, task)
    ours = [i for i in order if i in effective and i in set(passed)]
    if not ours:
        return found
    control = run_local(wall, task, files, ours, False, altered(task))
    if not any(report.passed for report in control.reports.values()):
        return found
    outcomes = tuple(
        Outcome(o.id, False, _PASSES_EVERYTHING if o.passed else o.reason) for o in found.outcomes
    )
    return Examined(outcomes, found.flags | control.flags | {CONTROL_PASSED})


def collect_local(wall: Wall, task: Task, files: Files) -> Course:
    """The node ids of the suite, collected with ``files`` (the reference) in the same process."""
    return look(task, lambda tests: _begin(wall, task, files, [], {}, only_collect=True), trusted=False)


_known: OrderedDict[tuple[str, str], frozenset[int]] = OrderedDict()
_lock = threading.Lock()


def _controls(wall: Wall, task: Task) -> frozenset[int]:
    """Indices of the hidden tests whose control the reference fails, as an honest solution must."""
    key = (wall.name, task.digest)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    everything = list(range(len(task.hidden)))
    reference = task.reference.over(task.start)
    course = run_local(wall, task, reference, everything, False, altered(task))
    found = frozenset(i for i in everything if not course.reports[i].passed)
    with _lock:
        _known[key] = found
        while len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return found


def run_local(
    wall: Wall,
    task: Task,
    files: Files,
    order: list[int],
    stop: bool,
    changed: Mapping[str, bytes] | None = None,
) -> Course:
    """Run the hidden tests, with some of the trusted files ``changed``, and no controls."""
    return conduct(
        task, order, stop, lambda tests: _begin(wall, task, files, tests, changed or {}), trusted=False
    )


def _begin(
    wall: Wall,
    task: Task,
    files: Files,
    tests: list[int],
    changed: Mapping[str, bytes],
    *,
    only_collect: bool = False,
) -> Talk:
    wall, limits, plan = environment_wall(wall, task), task.limits, layout(task)
    total = limits.load_s + limits.grade_s + GRACE_S
    key = secrets.token_bytes(32)
    with contextlib.ExitStack() as stack:
        control, theirs = socket.socketpair()
        stack.callback(control.close)
        stack.callback(theirs.close)
        cell = with_pytest(wall).open(
            on_image(task.start, together(task, files, changed)), cell_limits(limits)
        )
        stack.callback(cell.close)
        program = cell.start("suite_local", [theirs.fileno()], wall_s=total)
        theirs.close()
        asked = [[i, task.hidden[i].id] for i in tests]
        wanted = list(dict.fromkeys(task.hidden[i].id.partition("::")[0] for i in tests)) or list(plan.ids)
        own = sorted({name.partition(".")[0] for name in plan.modules})
        job = [
            kit_packages(task),
            wanted,
            asked,
            list(plan.roots),
            list(task.plugins),
            own,
            key.hex(),
        ]
        try:
            Link(control, 256 << 20).send([*job, only_collect, list(plan.tests)])
        except Closed:
            raise ArenaError(f"the tests' process ended at once (status {program.wait(1.0)})") from None
        return Talk(control, program, stack.pop_all(), key)
