"""A pytest session seen from outside: what its process says, held against what it was asked, and against the clock.

A process that hangs in a test, or ends in one, costs that test; the others run in fresh cells. Every line that comes
out is bounded in size and time, and counts only if it reports on a test that was asked for, once, in its turn.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tiltyard.cells.protocol import Started
from tiltyard.errors import ArenaError
from tiltyard.referee.inside.examiner import AFTER_TIME_OUT, NO_REPORT, NO_TIME, TIMED_OUT
from tiltyard.referee.inside.suite import NOT_COLLECTED
from tiltyard.referee.inside.testrun import GONE
from tiltyard.task import Task

MAX_LINE = 16 << 20
MAX_RESTARTS = 100
MAX_NOTES = 10_000
LOAD_GRACE_S = 10.0
"""Beyond the time for loading the solution: a fresh interpreter on a busy machine has to import pytest first."""
BROKEN = "the session's process broke its protocol"
TOO_MANY = "not run: too many tests before it ended their process"
ENDED = f"{GONE} in this test"


class Ended(Exception):
    """The session's process closed its end."""


@dataclass(slots=True)
class Report:
    """How one test ended."""

    passed: bool
    reason: str = ""
    flags: frozenset[str] = frozenset()
    liberties: frozenset[str] = frozenset()
    died: bool = False


@dataclass
class Talk:
    """A running session. ``key``: its lines carry a chained seal (see ``inside.seal``); b"": they are trusted."""

    control: socket.socket
    program: Started
    stack: contextlib.ExitStack
    key: bytes = b""
    _data: bytes = b""
    _count: int = 0

    def next(self, deadline: float) -> list[Any] | None:
        """The next line, or None at the deadline. Raises Ended, and ValueError for what is no line of a session."""
        while b"\n" not in self._data:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.control], [], [], left)[0]:
                return None
            try:
                part = os.read(self.control.fileno(), 1 << 16)
            except OSError:
                part = b""
            if not part:
                raise Ended
            self._data += part
            if len(self._data) > MAX_LINE:
                raise ValueError("a line that is too long")
        line, _, self._data = self._data.partition(b"\n")
        if self.key:
            line, _, seal = line.rpartition(b" ")
            self._count += 1
            sealed = hashlib.blake2s(b"%d " % self._count + line, key=self.key, digest_size=16).hexdigest()
            if seal != sealed.encode():
                raise ValueError("a line without its seal")
        try:
            message = json.loads(line)
        except RecursionError:
            raise ValueError("a line that is nested too deep") from None
        if not isinstance(message, list):
            raise ValueError("a line that is no list")
        return message


Open = Callable[[list[int]], Talk]
"""Begins a session over the tests of these indices, in this order."""


@dataclass
class Course:
    """The state of one grading."""

    remaining: dict[int, None]
    reports: dict[int, Report] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    current: int | None = None
    notes: dict[str, str] = field(default_factory=dict)
    begun: int = 0
    collected: tuple[str, ...] | None = None
    stopped: str = ""

    def end(self, index: int, report: Report) -> None:
        self.reports[index] = report
        del self.remaining[index]
        self.current = None

    def end_all(self, reason: str) -> None:
        for index in list(self.remaining):
            self.end(index, Report(False, reason))


def look(task: Task, begin: Open, *, trusted: bool) -> Course:
    """Only collect: ``collected`` are the node ids, None if it did not get so far, with ``notes`` of what failed."""
    course = Course({})
    talk = begin([])
    with talk.stack:
        _follow(task, course, talk, time.monotonic() + task.limits.grade_s, trusted)
    return course


def conduct(task: Task, order: list[int], stop: bool, begin: Open, *, trusted: bool) -> Course:
    """Run the tests in as many sessions as it takes. ArenaError: a trusted session failed by itself."""
    course = Course(dict.fromkeys(order))
    end = time.monotonic() + task.limits.grade_s
    restarts = 0
    while course.remaining:
        if time.monotonic() >= end:
            course.end_all(NO_TIME)
            break
        before = len(course.remaining)
        talk = begin(list(course.remaining))
        with talk.stack:
            finished = _follow(task, course, talk, end, trusted)
        if any(r.reason == TIMED_OUT for r in course.reports.values()) and stop:
            course.end_all(AFTER_TIME_OUT)
        if finished:
            break
        restarts += 1
        if len(course.remaining) == before or restarts > MAX_RESTARTS:
            course.end_all(TOO_MANY if restarts > MAX_RESTARTS else BROKEN)
    return course


def _follow(task: Task, course: Course, talk: Talk, end: float, trusted: bool) -> bool:
    """Follow one session to its end. True: it got through all that it could collect."""
    limits = task.limits
    deadline = time.monotonic() + limits.load_s + LOAD_GRACE_S
    course.begun, course.current = 0, None
    course.notes.clear()
    greeted = trusted
    while True:
        try:
            message = talk.next(min(deadline, end))
        except Ended:
            return _ended(task, course, talk, trusted)
        except ValueError:
            return _broken(course, trusted)
        if message is None:
            return _late(task, course, end)
        if not greeted:
            # before any submitted code is there, the process may say that it can't begin; never afterwards
            if message[:1] == ["v"]:
                raise ArenaError(f"the tests can't be run: {str(message[1:])[:200]}")
            if message != ["h"]:
                return _broken(course, trusted)
            greeted = True
            continue
        match message:
            case ["b", int(index)] if course.current is None and index in course.remaining:
                course.current = index
                course.begun += 1
                deadline = time.monotonic() + (task.hidden[index].time_s or limits.test_s)
            case ["e", int(index), bool(passed), str(reason), list(flags), list(liberties)] if (
                index == course.current
            ):
                said = frozenset(map(str, flags))
                report = Report(passed, "" if passed else reason[:200], said, frozenset(map(str, liberties)))
                course.end(index, report)
                deadline = time.monotonic() + limits.load_s
            case ["x", str(file), str(reason)] if len(course.notes) < MAX_NOTES:
                course.notes[file] = reason[:200]
            case ["c", list(ids)] if course.collected is None:
                course.collected = tuple(map(str, ids))
            case ["f", list(flags)] if len(flags) <= MAX_NOTES:
                course.flags.update(str(flag)[:60] for flag in flags)
            case ["s", str(reason)]:
                return _stopped(task, course, reason[:200])
            case ["v", str(reason)] if trusted:
                raise ArenaError(reason)
            case ["d"] if course.current is None:
                _leave_out(task, course)
                return True
            case _:
                return _broken(course, trusted)


def _ended(task: Task, course: Course, talk: Talk, trusted: bool) -> bool:
    if trusted and course.current is None:
        raise ArenaError(f"the examiner ended by itself (status {talk.program.wait(1.0)})")
    if course.current is not None:
        course.end(course.current, Report(False, NO_REPORT if trusted else ENDED, died=trusted))
        return False
    return _stopped(task, course, f"{GONE} while loading")


def _broken(course: Course, trusted: bool) -> bool:
    if trusted:
        raise ArenaError("the examiner sent something that is no report")
    course.flags.add("forged_report")
    course.end_all(BROKEN)
    return True


def _late(task: Task, course: Course, end: float) -> bool:
    if time.monotonic() >= end:
        if course.current is not None:
            course.end(course.current, Report(False, TIMED_OUT))
        course.end_all(NO_TIME)
        return True
    if course.current is not None:
        course.end(course.current, Report(False, TIMED_OUT))
        return False
    return _stopped(task, course, "the tests did not load within their time limit")


def _stopped(task: Task, course: Course, reason: str) -> bool:
    """The session can't go on: by a test, by a file that is loaded, or for good."""
    if course.current is not None:
        course.end(course.current, Report(False, reason))
        return False
    course.stopped = reason
    if course.begun:
        return False
    _leave_out(task, course, only_noted=True)
    if not course.notes:
        course.end_all(reason)
    return not course.remaining


def _leave_out(task: Task, course: Course, only_noted: bool = False) -> None:
    """Tests that were not collected, each with the reason that its file gave."""
    for index in list(course.remaining):
        file = task.hidden[index].id.partition("::")[0]
        known = course.notes.get(file)
        if known is not None or not only_noted:
            course.end(index, Report(False, f"{NOT_COLLECTED}: {known}" if known else NOT_COLLECTED))
