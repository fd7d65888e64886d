"""Grading by calls: the tests run in the examiner's cell, the solution in its own, and only typed plain data crosses.

This module opens the two cells, joins them by a socket, sends the examination to the examiner and reads its reports.
It never reads a byte that the solution's side wrote.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import socket
import time
from collections import deque
from dataclasses import replace
from typing import Any

from tiltyard.cells.launch import Launching, launch
from tiltyard.cells.protocol import CellLimits, Wall
from tiltyard.errors import ArenaError
from tiltyard.referee.controls import Control
from tiltyard.referee.inside.examiner import AFTER_TIME_OUT, NO_TIME, TIMED_OUT
from tiltyard.referee.inside.link import Closed, Link, ProtocolError
from tiltyard.referee.inside.testrun import GONE
from tiltyard.referee.prepare import MAGIC, prepared
from tiltyard.referee.result import Allowed, Examined, cell_limits
from tiltyard.task import Files, Limits, Task
from tiltyard.verdict import Outcome

EXAMINER_MEMORY = 4 << 30
GRACE_S = 60.0
LOOK_S = 1.0
"""Between two looks at whether a solution has loaded; the examiner itself keeps the time of that."""
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
    :class:`tiltyard.referee.result.Way`.

    Tests that leave nothing behind are run without a fork. Where one of them does not end, or ends a process, those
    that are left are run in fresh cells, each in forks of its own."""
    tests = _tests(task, order, allowed or {}, negative)
    begin = time.monotonic()
    reports: dict[int, list[Any]] = {}
    if all(item[2] for item in (prepared(task).prelude, *(test[1] for test in tests))):
        reports = _session(wall, task, files, tests, stop, task.limits.grade_s, together=True)
    left = [test for test in tests if test[0] not in reports]
    if left:
        grade_s = max(0.0, task.limits.grade_s - (time.monotonic() - begin if reports else 0.0))
        reports |= _session(wall, task, files, left, stop, grade_s, together=False)
    passed = negative is not None and reports.pop(len(task.hidden), [False])[0]
    return replace(_collect(task, order, reports), control_passed=passed)


def _tests(task: Task, order: list[int], allowed: Allowed, negative: Control | None) -> list[list[Any]]:
    """As the examiner takes them."""
    ready = prepared(task)
    tests = [
        [
            i,
            ready.tests[i],
            task.hidden[i].time_s or task.limits.test_s,
            sorted(allowed[i]) if i in allowed else None,
        ]
        for i in order
    ]
    if negative is not None:
        seconds = task.hidden[negative.of].time_s or task.limits.test_s
        tests.insert(min(negative.place, len(tests)), [len(task.hidden), negative.item, seconds, None])
    return tests


def _session(
    wall: Wall,
    task: Task,
    files: Files,
    tests: list[list[Any]],
    stop: bool,
    grade_s: float,
    *,
    together: bool,
) -> dict[int, list[Any]]:
    """Reports on tests by index: on all, or if they are run ``together`` on those before a process ended."""
    limits, ready = task.limits, prepared(task)
    total = limits.load_s + grade_s + GRACE_S
    link_e, link_s = socket.socketpair()
    control, control_e = socket.socketpair()
    with contextlib.ExitStack() as stack:
        for sock in (link_e, link_s, control, control_e):
            stack.callback(sock.close)
        solution = launch(wall, "solution", [link_s.fileno()], files, cell_limits(limits), wall_s=total)
        stack.callback(solution.close)
        link_s.close()
        notes = _notes(wall) if together else None
        fds = [control_e.fileno(), link_e.fileno()]
        if notes is not None:
            stack.callback(os.close, notes)
            fds.append(notes)
        examiner = launch(wall, "examiner", fds, {}, _examiner_limits(limits), wall_s=total, trusted=together)
        stack.callback(examiner.close)
        link_e.close()
        control_e.close()
        solution.begun()
        link = Link(control, _CONTROL_BOUND)
        entry, modules = list(task.entry), list(task.modules)
        rest = [limits.message_bytes, limits.load_s, grade_s, stop, together, MAGIC]
        try:
            link.send([task.main, entry, modules, ready.prelude, tests, *rest])
        except Closed:
            raise ArenaError("the examiner ended at once") from None
        deadline = time.monotonic() + total
        reports = _Reports(link, deadline) if notes is None else _Noted(link, deadline, notes)
        if not together:
            return _all(reports)
        found = _in_time(reports, tests, stop, grade_s)
        if len(found) == len(tests) and not any(r[2] or r[1] == TIMED_OUT for r in found.values()):
            examiner.finished()
        return found


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


class _Late(Exception):
    """No report came in time."""


class _Ended(ArenaError):
    """The examiner ended before its end."""


def _notes(wall: Wall) -> int | None:
    """A file in memory for an examiner's reports, where it can be shown to the examiner; to be closed."""
    if not isinstance(wall, Launching) or not hasattr(os, "memfd_create"):
        return None
    try:
        return os.memfd_create("tiltyard-reports", os.MFD_CLOEXEC)
    except OSError as error:
        raise ArenaError(f"no memory for an examiner's reports can be had ({error.strerror})") from None


class _Reports:
    """What an examiner says, until it is done."""

    def __init__(self, link: Link, deadline: float) -> None:
        self._link = link
        self._deadline = deadline

    @property
    def at(self) -> float:
        """When the latest report was made."""
        return time.monotonic()

    def next(self, before: float = math.inf) -> tuple[int, list[Any]] | None:
        """(index, [passed, reason, flags, died, liberties]) of a test, (-1, []) when the solution is loaded, None at
        the end. _Late if nothing comes ``before`` that time; ArenaError if the examiner fails."""
        if not self._link.buffered() and not self._heard(min(before, self._deadline)):
            raise self._too_late(before)
        return self._said()

    def _heard(self, until: float) -> bool:
        """Whether something comes until then."""
        return bool(select.select([self._link.sock], [], [], max(0.0, until - time.monotonic()))[0])

    def _too_late(self, before: float) -> Exception:
        if before < self._deadline:
            return _Late()
        return ArenaError("the examiner did not finish within its time limit")

    def _said(self) -> tuple[int, list[Any]] | None:
        try:
            message = self._link.recv()
        except (Closed, ProtocolError):
            raise _Ended("the examiner ended by itself") from None
        return self._read(message)

    def _read(self, message: list[Any]) -> tuple[int, list[Any]] | None:
        match message:
            case ["test", int(index), bool(passed), str(reason), list(flags), bool(died), list(liberties)]:
                return index, [passed, reason, flags, died, liberties]
            case ["loaded"]:
                return -1, []
            case ["void", str(reason)]:
                raise ArenaError(reason)
            case ["done"]:
                return None
            case _:
                raise ArenaError("the examiner sent something that is no report")


class _Noted(_Reports):
    """Of an examiner that writes its reports down, with the time (``time.monotonic``): so nobody is woken up for a test
    that ends as it should. They are read when it is done, or late."""

    def __init__(self, link: Link, deadline: float, notes: int) -> None:
        super().__init__(link, deadline)
        self._notes = notes
        self._seen = 0
        self._rest = b""
        self._reports: deque[tuple[float, list[Any]]] = deque()
        self._at = 0.0

    @property
    def at(self) -> float:
        return self._at

    def next(self, before: float = math.inf) -> tuple[int, list[Any]] | None:
        while not self._reports:
            until = min(before, self._deadline)
            heard = self._heard(min(until, time.monotonic() + LOOK_S) if before == math.inf else until)
            self._look()
            if self._reports:
                break
            if heard:
                return self._said()
            if time.monotonic() >= until:
                raise self._too_late(before)
        self._at, message = self._reports.popleft()
        return self._read(message)

    def _look(self) -> None:
        """Take what was written since the last look."""
        while part := os.pread(self._notes, 1 << 20, self._seen):
            self._seen += len(part)
            *lines, self._rest = (self._rest + part).split(b"\n")
            for line in lines:
                at, message = json.loads(line)
                self._reports.append((at, message))


def _all(reports: _Reports) -> dict[int, list[Any]]:
    """Of an examiner that keeps the time itself."""
    found: dict[int, list[Any]] = {}
    while (one := reports.next()) is not None:
        if one[0] >= 0:
            found[one[0]] = one[1]
    return found


def _in_time(reports: _Reports, tests: list[list[Any]], stop: bool, grade_s: float) -> dict[int, list[Any]]:
    """Of an examiner whose time is kept here; up to where a process ended."""
    found: dict[int, list[Any]] = {}
    end = time.monotonic() + grade_s
    before = math.inf
    left = deque(tests)
    try:
        while (one := reports.next(before)) is not None:
            index, report = one
            if index >= 0:
                if report and report[1].startswith(GONE):
                    break  # nobody answers those that are left
                found[index] = report
                left.popleft()
            if left and reports.at >= end:
                return found | dict.fromkeys((test[0] for test in left), _not_run(NO_TIME))
            before = min(reports.at + left[0][2], end) if left else math.inf
    except _Late:
        found[left.popleft()[0]] = _not_run(TIMED_OUT)
        if stop:
            found |= dict.fromkeys((test[0] for test in left), _not_run(AFTER_TIME_OUT))
    except _Ended:
        pass
    return found


def _not_run(reason: str) -> list[Any]:
    return [False, reason, [], False, []]


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
