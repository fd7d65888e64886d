"""Grading by standard input and output: bytes in, bytes out, exit code; a fresh cell for each test.

The expected output never enters a cell. What the program prints is compared here, as bytes or as words; it is never
evaluated, and it is bounded.
"""

from __future__ import annotations

import math
import time

from tiltyard.cells.protocol import CellFileError, CellLost, Run, RunResult, Wall
from tiltyard.referee.controls import Control
from tiltyard.referee.inside.examiner import AFTER_TIME_OUT, NO_TIME, TIMED_OUT
from tiltyard.referee.result import Allowed, Examined, cell_limits
from tiltyard.task import Files, Task, Test
from tiltyard.verdict import Outcome

DESTROYED = "the program destroyed its cell"
KILLED = "killed by signal 9"


def grade_stdio(
    wall: Wall,
    task: Task,
    files: Files,
    order: list[int],
    stop: bool,
    allowed: Allowed | None = None,
    negative: Control | None = None,
) -> Examined:
    """Run the program on each hidden test. See :class:`tiltyard.referee.result.Way`."""
    outcomes: dict[int, Outcome] = {}
    end, skip = time.monotonic() + task.limits.grade_s, ""
    control_passed = False
    for i in order:
        if not skip and time.monotonic() >= end:
            skip = NO_TIME
        result: RunResult | str = skip or _run_one(wall, task, files, task.hidden[i])
        reason = result if isinstance(result, str) else judge(task.hidden[i], result)
        if negative is not None and negative.of == i and not isinstance(result, str):
            control_passed = not judge(negative.test, result)
        outcomes[i] = Outcome(task.hidden[i].id, not reason, reason)
        if stop and reason == TIMED_OUT:
            skip = AFTER_TIME_OUT
    ended = any(o.reason in (DESTROYED, KILLED) for o in outcomes.values())
    return Examined(tuple(outcomes[i] for i in sorted(order)), ended=ended, control_passed=control_passed)


def _run_one(wall: Wall, task: Task, files: Files, test: Test) -> RunResult | str:
    """How the program ended, or why it could not be run to an end."""
    limits = task.limits
    run = Run(
        argv=("python", task.main, *test.args),
        stdin=test.stdin.encode(),
        wall_s=test.time_s or limits.test_s,
        output_bytes=max(limits.output_bytes, 4 * len(test.stdout.encode())),
    )
    cell = wall.open(files, cell_limits(limits))
    try:
        return cell.run(run)
    except CellFileError:
        return "the program is missing"
    except CellLost as error:
        if error.during_run:
            return DESTROYED
        raise
    finally:
        cell.close()


def judge(test: Test, result: RunResult) -> str:
    """Why the run does not pass the test, in a fixed vocabulary; "" if it does."""
    if result.timed_out:
        return TIMED_OUT
    if result.rc < 0:
        return f"killed by signal {-result.rc}"
    expected_rc = test.exit_code or 0
    if result.rc != expected_rc:
        return f"exit code {result.rc}, expected {expected_rc}"
    if result.stdout_dropped:
        return "too much output"
    if test.match == "exact":
        return "" if result.stdout == test.stdout.encode() else "wrong output"
    try:
        actual = result.stdout.decode("utf-8")
    except UnicodeDecodeError:
        return "output that is not UTF-8"
    return "" if same(test, actual) else "wrong output"


def same(test: Test, actual: str) -> bool:
    """Whether ``actual`` is what the test expects, by its ``match`` rule (not ``exact``)."""
    if test.match == "lines":
        return _lines(actual) == _lines(test.stdout)
    got, want = actual.split(), test.stdout.split()
    if test.match == "tokens":
        return got == want
    return len(got) == len(want) and all(
        _same_number(g, w, test.tolerance) for g, w in zip(got, want, strict=True)
    )


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_number(got: str, want: str, tolerance: float) -> bool:
    if got == want:
        return True
    try:
        a, b = float(got), float(want)
    except ValueError:
        return False
    # "_" and other digits that float() takes are not what a program prints
    if not (got.isascii() and "_" not in got and math.isfinite(a) and math.isfinite(b)):
        return False
    return abs(a - b) <= tolerance
