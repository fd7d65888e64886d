"""Errors, typed by the boundary at which they arise. Who is to blame decides what happens to a reward.

* ``TaskError``: the author of a task; names the file, the field, what was found and what was expected.
* ``ArenaError``: the arena or the machine under it. The referee turns it into *void*, never into a 0.
* ``UsageError``: the caller of this library or of the command line.
* ``PlayerError``: the player. Never leaves the environment: it comes back as an observation.
"""

from __future__ import annotations

from dataclasses import dataclass


class TiltyardError(Exception):
    """Base class of all errors that tiltyard raises on purpose."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a task.

    ``where`` is the file with line or the folder, ``field`` the dotted name inside it ("" if it is the whole),
    ``found`` and ``expected`` are short texts in plain words.
    """

    where: str
    field: str
    found: str
    expected: str

    def __str__(self) -> str:
        at = f"{self.where}, {self.field}" if self.field else self.where
        return f"{at}: found {self.found}; expected {self.expected}"


class TaskError(TiltyardError, ValueError):
    """One or more tasks are malformed. ``problems`` holds every problem that was found, not the first only."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = tuple(problems)
        head = f"{len(problems)} problems in the tasks:\n" if len(problems) > 1 else ""
        super().__init__(head + "\n".join(str(p) for p in problems))


class UsageError(TiltyardError, ValueError):
    """The library or the command line was called in a way that can't work; the message says what to do."""


class ArenaError(TiltyardError):
    """The arena failed: a cell would not start, the examiner died by itself, the disk is full.

    The episode or verdict concerned is void; the message is the reason.
    """


class PlayerError(TiltyardError):
    """The player asked for something that can't be done. The message is shown to the player as an observation."""
