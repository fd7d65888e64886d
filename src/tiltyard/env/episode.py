"""What an environment keeps of the episode that it plays, for whoever records it. Plain data; no cell, no clock text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tiltyard.task import Task


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the action as canonical JSON (playing it again gives the same), and the five things step returned."""

    action: str
    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(slots=True)
class Episode:
    """One episode, growing until ``over``. ``seed`` is the one that reset was given, or None."""

    task: Task
    seed: int | None
    observation: str
    """The first one."""
    steps: list[Step] = field(default_factory=list)
    tokens: int = 0
    """Estimated tokens of the first observation, all actions and all observations."""

    @property
    def over(self) -> bool:
        return bool(self.steps) and (self.steps[-1].terminated or self.steps[-1].truncated)

    @property
    def reward(self) -> float:
        """The reward of the whole episode: NaN if it is void."""
        return sum(step.reward for step in self.steps)
