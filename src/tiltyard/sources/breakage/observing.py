"""How tests use code, asked of a cell: which lines each test reaches, and what it calls (``referee.inside.observe``).

What comes back is read as data, bounded; of a program that fails or does not end there is what it said before.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tiltyard.cells.protocol import Cell, Wall
from tiltyard.environments import environment_wall
from tiltyard.referee.inside.link import Closed, Link, ProtocolError
from tiltyard.referee.inside.observe import AT_IMPORT
from tiltyard.referee.pytest_files import layout, together
from tiltyard.referee.pytest_kit import kit_packages, with_pytest
from tiltyard.referee.result import cell_limits
from tiltyard.task import Files, Task

BOUND = 64 << 20
GRACE_S = 30.0
Look = Literal["lines", "calls"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One test: whether it passed, in a few words why not, and the trace (``referee.inside.tracing``)."""

    passed: bool
    reason: str
    trace: Any


def observe(
    wall: Wall, task: Task, files: Mapping[str, bytes], order: Sequence[int], look: Look, seen: Sequence[str], seconds: float
) -> dict[int, Seen]:  # fmt: skip
    """What the hidden tests of these indices do on ``files`` (all that a solution has), looking at the files ``seen``; for
    at most ``seconds`` in all; of pytest under ``AT_IMPORT`` what is done before the first test. ArenaError: no cell could be had."""
    control, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        stack.callback(control.close)
        stack.callback(theirs.close)
        cell, job = _opened(wall, task, Files(dict(files)), order)
        stack.callback(cell.close)
        cell.start("observe", [theirs.fileno()], wall_s=seconds + GRACE_S)
        theirs.close()
        link = Link(control, BOUND)
        try:
            link.send([job | {"look": look, "files": list(seen)}])
        except Closed:
            return {}
        return _read(control, link, {*order, AT_IMPORT}, time.monotonic() + seconds)


def _opened(wall: Wall, task: Task, files: Files, order: Sequence[int]) -> tuple[Cell, dict[str, Any]]:
    wall = environment_wall(wall, task)
    if task.grading != "pytest":
        tests = [[i, task.hidden[i].code] for i in order]
        job: dict[str, Any] = {
            "kind": "calls", "tests": tests, "prelude": task.prelude, "main": task.main, "entry": list(task.entry),
            "modules": list(task.modules),
        }  # fmt: skip
        return wall.open(files, cell_limits(task.limits)), job
    plan = layout(task)
    own = sorted({name.partition(".")[0] for name in plan.modules})
    suite = list(dict.fromkeys(task.hidden[i].id.partition("::")[0] for i in order))
    job = {
        "kind": "pytest", "tests": [[i, task.hidden[i].id] for i in order], "kit": kit_packages(task), "suite": suite,
        "roots": list(plan.roots), "plugins": list(task.plugins), "own": own,
    }  # fmt: skip
    return with_pytest(wall).open(together(task, files), cell_limits(task.limits)), job


def _read(control: socket.socket, link: Link, wanted: set[int], deadline: float) -> dict[int, Seen]:
    found: dict[int, Seen] = {}
    control.settimeout(GRACE_S)  # of one message, once it has begun
    while True:
        left = deadline - time.monotonic()
        if not link.buffered() and not select.select([control], [], [], max(0.0, left))[0]:
            return found
        try:
            message = link.recv()
        except (Closed, ProtocolError, OSError):
            return found
        match message:
            case ["e", int(index), bool(passed), str(reason), trace] if index in wanted:
                found[index] = Seen(passed, reason[:200], trace)
            case _:
                return found
