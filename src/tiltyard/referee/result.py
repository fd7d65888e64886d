"""What a way of grading hands to the referee: one entry a hidden test that was asked for, in the task's order. Data
only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from tiltyard.cells.protocol import CellLimits, Wall
from tiltyard.task import Files, Limits, Task
from tiltyard.verdict import Outcome


@dataclass(frozen=True, slots=True)
class Examined:
    """``doubtful`` are the ids of tests whose own process ended without a report: the submission's doing, or ours.

    ``liberties`` says by id of a test what helped it to pass (``referee.inside.liberties``). ``ended``: a process of
    the solution ended where it should not have, by its own doing or by chance."""

    outcomes: tuple[Outcome, ...]
    flags: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()
    liberties: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ended: bool = False
    control_passed: bool = False
    """A negative control passed (``referee.controls``)."""


Allowed: TypeAlias = Mapping[int, frozenset[str]]
"""The liberties that may be taken, by index of the hidden test; a test that is not in it may take all."""


class Way(Protocol):
    """A way of grading: the hidden tests of these indices, in this order, against the files of a solution.

    ``stop``: one failed test decides, so after a test that timed out the others need not be run. Raises ArenaError if
    the arena failed; whatever the solution's code does ends in an Outcome."""

    def __call__(
        self,
        wall: Wall,
        task: Task,
        files: Files,
        order: list[int],
        stop: bool,
        allowed: Allowed | None = None,
    ) -> Examined: ...


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
