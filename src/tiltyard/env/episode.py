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
    def info(self) -> dict[str, Any]:
        """What every info of it says."""
        about = {"task_id": self.task.id, "task_digest": self.task.digest}
        return {**about, "steps": len(self.steps), "tokens": self.tokens}

    @property
    def last(self) -> tuple[str, dict[str, Any]]:
        """The last observation with its info: of the last step, or of reset."""
        if not self.steps:
            return self.observation, self.info
        return self.steps[-1].observation, own_copy(self.steps[-1].info)

    @property
    def over(self) -> bool:
        return bool(self.steps) and (self.steps[-1].terminated or self.steps[-1].truncated)

    @property
    def reward(self) -> float:
        """The reward of the whole episode: NaN if it is void."""
        return sum(step.reward for step in self.steps)


def own_copy(value: Any) -> Any:
    """A copy of plain data that shares no dict or list with it; an eighth of what ``copy.deepcopy`` costs."""
    if type(value) is dict:
        return {key: own_copy(item) for key, item in value.items()}
    if type(value) is list:
        return [own_copy(item) for item in value]
    return value
