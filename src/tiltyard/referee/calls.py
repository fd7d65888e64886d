"""Grading by calls: the tests run in the examiner's cell, the solution in its own, and only typed plain data crosses.

This module opens the two cells, joins them by a socket, sends the examination to the examiner and reads its reports.
It never reads a byte that the solution's side wrote.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tiltyard.cells.protocol import CellLimits, Started, Wall
from tiltyard.errors import ArenaError
from tiltyard.referee.controls import Control
from tiltyard.referee.inside.link import Closed, Link, ProtocolError
from tiltyard.referee.inside.testrun import GONE
from tiltyard.referee.prepare import MAGIC, prepared
from tiltyard.referee.result import Allowed, Examined, cell_limits
from tiltyard.task import Files, Limits, Task
from tiltyard.verdict import Outcome

EXAMINER_MEMORY = 4 << 30
GRACE_S = 60.0
_CONTROL_BOUND = 256 << 20


def grade_calls(
    wall: Wall,
    task: Task,
    files: Files,
    order: list[int],
    stop: bool,
    allowed: Allowed | None = None,
    negative: Control | None = None,
) -> Examined:
    """Run the hidden tests against ``files``, in this order, and the control among them. See
    :class:`tiltyard.referee.result.Way`."""
    limits = task.limits
    link_e, link_s = socket.socketpair()
    control, control_e = socket.socketpair()
    with contextlib.ExitStack() as stack:
        for sock in (link_e, link_s, control, control_e):
            stack.callback(sock.close)
        total = limits.load_s + limits.grade_s + GRACE_S
        examiner_cell = wall.open({}, _examiner_limits(limits))
        stack.callback(examiner_cell.close)
        solution_cell = wall.open(files, cell_limits(limits))
        stack.callback(solution_cell.close)
        solution_cell.start("solution", [link_s.fileno()], wall_s=total)
        link_s.close()
        examiner = examiner_cell.start(
            "examiner", [control_e.fileno(), link_e.fileno()], wall_s=total, memory_bytes=EXAMINER_MEMORY
        )
        link_e.close()
        control_e.close()
        link = Link(control, _CONTROL_BOUND)
        try:
            link.send(_examination(task, order, stop, allowed or {}, negative))
        except Closed:
            raise ArenaError(f"the examiner ended at once (status {examiner.wait(1.0)})") from None
        reports = dict(_reports(link, examiner, time.monotonic() + total))
        passed = negative is not None and reports.pop(len(task.hidden), [False])[0]
        return replace(_collect(task, order, reports), control_passed=passed)


def _examiner_limits(limits: Limits) -> CellLimits:
    return CellLimits(
        cpu_s=limits.load_s + limits.grade_s + GRACE_S,
        memory_bytes=EXAMINER_MEMORY,
        processes=64,
        open_files=256,
        file_bytes=64 << 20,
        disk_bytes=64 << 20,
        disk_files=1024,
    )


def _examination(
    task: Task, order: list[int], stop: bool, allowed: Allowed, negative: Control | None
) -> list[Any]:
    limits, ready = task.limits, prepared(task)
    tests = [
        [
            i,
            ready.tests[i],
            task.hidden[i].time_s or limits.test_s,
            sorted(allowed[i]) if i in allowed else None,
        ]
        for i in order
    ]
    if negative is not None:
        seconds = task.hidden[negative.of].time_s or limits.test_s
        tests.insert(min(negative.place, len(tests)), [len(task.hidden), negative.item, seconds, None])
    entry, modules = list(task.entry), list(task.modules)
    rest = [limits.message_bytes, limits.load_s, limits.grade_s, stop, MAGIC]
    return [task.main, entry, modules, ready.prelude, tests, *rest]


def _reports(link: Link, examiner: Started, deadline: float) -> Iterator[tuple[int, list[Any]]]:
    """(index, [passed, reason, flags, died, liberties]) for each test. ArenaError if the examiner does not get to its end."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([link.sock], [], [], left)[0]:
            raise ArenaError("the examiner did not finish within its time limit")
        try:
            message = link.recv()
        except (Closed, ProtocolError):
            raise ArenaError(f"the examiner ended by itself (status {examiner.wait(1.0)})") from None
        match message:
            case ["test", int(index), bool(passed), str(reason), list(flags), bool(died), list(liberties)]:
                yield index, [passed, reason, flags, died, liberties]
            case ["void", str(reason)]:
                raise ArenaError(reason)
            case ["done"]:
                return
            case _:
                raise ArenaError("the examiner sent something that is no report")


def _collect(task: Task, order: list[int], reports: dict[int, list[Any]]) -> Examined:
    if sorted(reports) != sorted(order):
        raise ArenaError(
            f"the examiner reported on {len(reports)} tests that are not the {len(order)} expected ones"
        )
    outcomes: list[Outcome] = []
    flags: set[str] = set()
    doubtful: set[str] = set()
    liberties: dict[str, frozenset[str]] = {}
    for i in sorted(order):
        test = task.hidden[i]
        passed, reason, seen, died, taken = reports[i]
        outcomes.append(Outcome(test.id, passed, "" if passed else reason))
        flags.update(str(f) for f in seen)
        if died:
            doubtful.add(test.id)
        if taken:
            liberties[test.id] = frozenset(str(name) for name in taken)
    ended = any(o.reason.startswith(GONE) for o in outcomes)
    return Examined(tuple(outcomes), frozenset(flags), frozenset(doubtful), liberties, ended)
