"""What is played, and how: the tasks of a pool, with what an environment overrides. Made once a task, for groups play
the same one again and again. Holds nothing that must be given back; forks of an environment share it, in any threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tiltyard.env.observation import first_observation
from tiltyard.env.workspace import Workspace, workspace
from tiltyard.errors import UsageError
from tiltyard.pool import Pool
from tiltyard.task import Limits, RewardRule, Task

MAX_KEPT = 256


class Scenes:
    """The tasks of ``pool``; ``changes`` are fields of their limits (see ``overrides``), ``reward`` a rule or None."""

    def __init__(self, pool: Pool, changes: Mapping[str, Any], reward: RewardRule | None) -> None:
        self.pool, self._changes, self._reward = pool, changes, reward
        self._changed: dict[Limits, Limits] = {}
        self._effective: dict[str, Task] = {}
        self._kept: dict[str, tuple[Task, Workspace, str]] = {}

    def named(self, options: Mapping[str, Any] | None, task_id: str | None) -> Task | None:
        """The task that the arguments of a reset name, None if they name none. UsageError if they can't."""
        options = options or {}
        if unknown := sorted(map(str, set(options) - {"task_id"})):
            raise UsageError(f"found the reset option {unknown[0]!r}; the only one is 'task_id'")
        wanted = options.get("task_id")
        if task_id is not None and wanted is not None and task_id != wanted:
            raise UsageError(
                f"found task_id={task_id!r} and options['task_id']={wanted!r}; expected one of them"
            )
        task_id = task_id if task_id is not None else wanted
        if task_id is None:
            return None
        if not isinstance(task_id, str):
            raise UsageError(
                f"found a task id of type {type(task_id).__name__}; expected a text such as {self.pool[0].id!r}"
            )
        return self.pool[task_id]

    def of(self, task: Task) -> tuple[Workspace, str]:
        """A task's workspace and first observation."""
        found = self._kept.get(task.id)
        if found is None or found[0] is not task:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            place = workspace(task)
            observation = first_observation(self.as_played(task), self.limits(task), place)
            found = self._kept[task.id] = task, place, observation
        return found[1:]

    def limits(self, task: Task) -> Limits:
        """The task's limits, with what is overridden."""
        if not self._changes:
            return task.limits
        found = self._changed.get(task.limits)  # asked several times a step
        if found is None:
            found = self._changed[task.limits] = replace(task.limits, **self._changes)
        return found

    def as_played(self, task: Task) -> Task:
        """The task with what is overridden; the task itself if that changes nothing."""
        reward, limits = self._reward or task.reward, self.limits(task)
        if (reward, limits) == (task.reward, task.limits):
            return task
        found = self._effective.get(task.id)
        if found is None:
            found = self._effective[task.id] = replace(task, reward=reward, limits=limits)
        return found
