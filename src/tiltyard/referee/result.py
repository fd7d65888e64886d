"""What a way of grading hands to the referee: one entry a hidden test, in the task's order. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tiltyard.cells.protocol import CellLimits, Wall
from tiltyard.task import Files, Limits, Task
from tiltyard.verdict import Outcome


@dataclass(frozen=True, slots=True)
class Examined:
    """``doubtful`` are the ids of tests whose own process ended without a report: the submission's doing, or ours."""

    outcomes: tuple[Outcome, ...]
    flags: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()


class Way(Protocol):
    """A way of grading: all hidden tests of a task against the files of a solution, in the given order of indices.

    ``stop``: one failed test decides, so after a test that timed out the others need not be run. Raises ArenaError if
    the arena failed; whatever the solution's code does ends in an Outcome."""

    def __call__(self, wall: Wall, task: Task, files: Files, order: list[int], stop: bool) -> Examined: ...


def cell_limits(limits: Limits) -> CellLimits:
    """The caps of a cell in which a solution of a task runs."""
    return CellLimits(
        cpu_s=limits.cpu_s,
        memory_bytes=limits.memory_bytes,
        processes=limits.processes,
        open_files=limits.open_files,
        file_bytes=limits.file_bytes,
        disk_bytes=limits.disk_bytes,
        disk_files=limits.disk_files,
    )
