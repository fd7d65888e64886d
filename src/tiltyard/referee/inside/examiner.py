"""The program in the examiner's cell: holds the hidden tests, runs them, believes nothing.

Descriptor 3 is the control socket to the arena, 4 the link to the solution's cell, 5, if there is one, a file for notes.
In: one message, the examination (see :func:`examine`). Out, on 3: ``["loaded"]``, ``["test", index, passed, reason, flags,
died, liberties]`` after each test, at the end ``["done"]``; or ``["void", reason]`` if the task's own prelude fails. Where
there is a file, all but the end and a failure are lines ``[time, message]`` in it instead.

Tests run in forks of this process, whose time limits are kept here: one that does not end is killed. ``together`` they
run in this process itself, and the arena keeps the time.
"""

from __future__ import annotations

import gc
import importlib.util
import io
import json
import marshal
import os
import select
import socket
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

from . import fork
from .link import Closed, Link, ProtocolError
from .older import paired
from .testrun import GONE, Discard, Setting, exception_name, fresh_names, run

MAX_REPORT = 16384
TIMED_OUT = "timed out"
NO_TIME = "not run: the grading's time is over"
AFTER_TIME_OUT = "not run: a test before it timed out"
NO_REPORT = "the test's process ended without a report"


def main(fds: list[int]) -> None:
    """Examine once, and end: an interpreter's end would take a millisecond, and nobody needs it."""
    control, solution = socket.socket(fileno=fds[0]), socket.socket(fileno=fds[1])
    examine(control, solution, fds[2] if len(fds) > 2 else -1)
    os._exit(0)


def examine(to_arena: socket.socket, solution: socket.socket, notes: int = -1) -> None:
    """The message:
    ``[main path, entry names, module names, prelude, tests, bound, load_s, grade_s, stop at a time-out, together,
    magic]``.

    ``tests`` is a list of ``[index, item, seconds, allowed liberties or None for all]`` in the order in which they are
    to run. An item, as the prelude is one, is ``[source, compiled code in hex or "", leaves nothing behind]``; the
    compiled code is for the interpreter with the bytecode number ``magic``."""
    control = Link(to_arena, 256 << 20)
    tell = control.send if notes < 0 else lambda message: _write_down(notes, message)
    main_path, entry, modules, prelude, tests, bound, load_s, grade_s, stop, together, magic = control.recv()
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), Discard(), Discard()
    warnings.simplefilter("ignore")
    now = time.monotonic()
    end, load_end = now + grade_s, now + load_s
    link = Link(solution, 4096)
    failed = None
    try:
        link.send([main_path, bound, len(tests), together])
    except Closed:
        failed = f"{GONE} while loading"
    compiled_here = magic == importlib.util.MAGIC_NUMBER.hex()
    try:
        compiled = _code(prelude, "<prelude>", compiled_here)
        names = fresh_names(compiled)
    except BaseException as error:
        control.send(["void", f"the task's prelude raised {type(error).__name__}: {str(error)[:200]}"])
        return
    batches = list(_batches(tests, prelude[2], compiled_here))
    failed, one_talk = (failed, False) if failed else _await_loaded(solution, link, load_end)
    tell(["loaded"])
    setting = Setting(solution, entry, modules, compiled, bound, together and one_talk)
    if together and failed is None:
        for batch in batches:
            for test, report in paired(batch, run(setting, batch, names)):
                passed, reason, flags, liberties = report
                tell(["test", test[0], passed, reason, flags, False, liberties])
        control.send(["done"])
        return
    gc.collect()
    gc.freeze()
    for batch in batches:
        for index, report in _examine(setting, batch, names, failed, end, stop):
            tell(["test", index, *report])
            if stop and report[1] == TIMED_OUT:
                failed = AFTER_TIME_OUT  # for the batches after this one
    control.send(["done"])


def _write_down(notes: int, message: list[Any]) -> None:
    """A line with the time, for who looks there before it takes this process for stuck."""
    line = json.dumps([time.monotonic(), message]).encode() + b"\n"
    while line:
        line = line[os.write(notes, line) :]


def _code(item: list[Any], name: str, compiled_here: bool) -> Any:
    source, code, _ = item
    if code and compiled_here:
        return marshal.loads(bytes.fromhex(code))
    return compile(source, name, "exec", dont_inherit=True)


def _batches(tests: list[Any], sharing: bool, compiled_here: bool) -> Iterator[list[Any]]:
    """Tests that may share a fork of the examiner, with their code."""
    batch: list[Any] = []
    for index, item, *rest in tests:
        test = [index, _code(item, f"<test {index}>", compiled_here), *rest]
        if sharing and item[2]:
            batch.append(test)
            continue
        if batch:
            yield batch
        yield [test]
        batch = []
    if batch:
        yield batch


def _await_loaded(solution: socket.socket, link: Link, end: float) -> tuple[str | None, bool]:
    """None once the solution is loaded, else why it is not; and whether it can have all tests in one conversation."""
    try:
        if not select.select([solution], [], [], max(0.0, end - time.monotonic()))[0]:
            return "the solution did not load within its time limit", False
        answer = link.recv()
    except (Closed, ProtocolError):
        return f"{GONE} while loading", False
    if answer[:1] == ["loaded"] and (len(answer) == 1 or (len(answer) == 2 and answer[1] is True)):
        return None, len(answer) == 2
    name = answer[1] if len(answer) == 2 and type(answer[1]) is str else ""
    return f"the solution did not load: {exception_name(name)}", False


def _examine(
    setting: Setting, batch: list[Any], names: dict[str, Any], failed: str | None, end: float, stop: bool
) -> Iterator[tuple[int, list[Any]]]:
    """(index, [passed, reason, flags, died, liberties]) of each test of a batch; ``died``: its process ended without a
    report."""
    while batch:
        if failed is None and time.monotonic() >= end:
            failed = NO_TIME
        if failed is not None:
            yield from ((test[0], [False, failed, [], False, []]) for test in batch)
            return
        # a fork ends early at a test that does not end or dies; the tests after it get another one
        for report in _fork_and_run(setting, batch, names, end):
            yield batch[0][0], report
            batch = batch[1:]
            if stop and report[1] == TIMED_OUT:
                failed = AFTER_TIME_OUT


def _fork_and_run(
    setting: Setting, batch: list[Any], names: dict[str, Any], end: float
) -> Iterator[list[Any]]:
    reader, writer = os.pipe()
    child = fork.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setpgid(0, 0)
            for report in run(setting, batch, names):
                said = json.dumps(report).encode() + b"\n"
                while said:
                    said = said[os.write(writer, said) :]
        finally:
            os._exit(0)
    os.close(writer)
    try:
        lines = _Lines(reader)
        for _, _, seconds, _ in batch:
            line = lines.next(min(time.monotonic() + seconds, end))
            if line is None:
                yield [False, TIMED_OUT, [], False, []]
                return
            try:
                passed, reason, flags, liberties = json.loads(line)
            except ValueError:
                yield [False, NO_REPORT, [], True, []]
                return
            yield [passed is True, reason, flags, False, liberties]
    finally:
        os.close(reader)
        fork.end(child)


class _Lines:
    """Lines from a pipe, with a deadline for each."""

    def __init__(self, reader: int) -> None:
        self._reader = reader
        self._data = b""

    def next(self, deadline: float) -> bytes | None:
        """The next line, b"" at the end of the stream, None at the deadline."""
        while b"\n" not in self._data and len(self._data) < MAX_REPORT:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._reader], [], [], left)[0]:
                return None
            part = os.read(self._reader, MAX_REPORT)
            if not part:
                return b""
            self._data += part
        line, _, self._data = self._data.partition(b"\n")
        return line
