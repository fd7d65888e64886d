"""What a mining came to: tasks, and how many commits fell out at each step and why. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

MERGED = "a merge whose commits are tasks"
NOT_YET = "not looked at"


@dataclass(frozen=True, slots=True)
class Step:
    """A reason why commits are no tasks, with their number: found in the ``history``, or by running ``tests``."""

    why: str
    count: int
    stage: str
    example: str = ""


@dataclass(frozen=True, slots=True)
class MineReport:
    """``commits`` of the history, of which ``candidates`` could be tasks; ``examined`` of these, ``resumed`` of them before
    this run, ``left`` not at all. ``tasks`` are the ids in the pool; those of ``needs_prompt`` are in it or apart.
    ``written``: the files or folders with the tasks in them, and how many are new there."""

    repository: str
    commits: int
    candidates: int
    steps: tuple[Step, ...]
    tasks: tuple[str, ...]
    needs_prompt: tuple[str, ...]
    why_no_prompt: Mapping[str, int]
    flaky: int
    ways: Mapping[str, int]
    environments: int
    examined: int
    resumed: int
    left: int
    written: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
