"""A clock that stands: the same instant in every run of Python in a cell, for code that asks what time it is.

By ``time-machine``, which makes ``time.time``, ``datetime.now`` and their like answer with one instant (UTC), in the fork
server and so in everything forked from it: scripts, hidden tests, solutions. ``time.monotonic`` and ``sleep`` go on. What
is executed anew (``bash -c date``, another interpreter) has the machine's clock, and so have the times of files.
Only the namespace wall has it; others say so.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Protocol, runtime_checkable

from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError, UsageError
from tiltyard.task import instant_problem

_PACKAGES = ("time_machine", "_time_machine")


@runtime_checkable
class WithClock(Protocol):
    """A wall that can have cells whose clock stands."""

    def with_clock(self, clock: str) -> Wall:
        """A wall of the same kind and settings whose clock stands at this instant. Closed together with this one."""


def with_clock(wall: Wall, clock: str) -> Wall:
    """See :class:`WithClock`. ArenaError: walls of this kind can't, or time-machine is not installed."""
    if not isinstance(wall, WithClock):
        raise ArenaError(
            f"the {wall.name} wall has no clock that stands; a task that needs one needs the namespace wall"
        )
    clock_packages()
    return wall.with_clock(clock)


def checked_instant(clock: str) -> str:
    """The instant itself. UsageError: it is none."""
    if (why := instant_problem(clock)) is not None:
        raise UsageError(f"found {why} as the clock; expected an instant in UTC like '2026-01-31T12:00:00'")
    return clock


def clock_packages() -> dict[str, str]:
    """What has to be found for it: top-level names with the folder that each is in. ArenaError: it is not installed."""
    out: dict[str, str] = {}
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ArenaError(
                "a clock that stands needs time-machine, which is not installed: pip install 'tiltyard[clock]'"
            )
        home = Path(spec.origin).parent
        out[name] = str(home.parent if spec.submodule_search_locations else home)
    return out
