"""What exploits are played against: the arena's own referee, or a grader of somebody else's.

Promises of every subject: it comes back whatever a submission does, within a bound that the caller enforces from
outside; what it returns is data. Text that was shown to a player or written to a log comes back too, so that it can be
looked through for secrets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tiltyard.cells.protocol import Wall
from tiltyard.env import CodeEnv
from tiltyard.pool import Pool
from tiltyard.referee import Referee
from tiltyard.task import Files, Limits, Task

SHELL_S = 6.0
"""Of one command of a shell: programs that an exploit needs have to start first."""
CAP = Limits(run_s=2.0, load_s=3.0, test_s=2.0, grade_s=20.0)
"""An exploit's limits in time, where the task's own are not lower."""


@dataclass(frozen=True, slots=True)
class Played:
    """``reward`` None: void, with the reason. ``seen`` is all that a player or a log saw."""

    reward: float | None
    void: str | None = None
    flags: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()


class Subject(Protocol):
    """See the module's first lines."""

    tools: bool
    """Whether cases that use tools can be played against it."""

    def grade(self, task: Task, files: Files) -> Played:
        """The reward of a submission: all of these files, over the task's start files."""

    def play(self, task: Task, actions: Sequence[Any]) -> Played:
        """The reward of an episode in which these actions are played, then submit if it goes on."""


class Arena:
    """Tiltyard itself, on one wall."""

    tools = True

    def __init__(self, wall: Wall) -> None:
        self._wall = wall
        self._referee = Referee(wall, controls=True)

    def grade(self, task: Task, files: Files) -> Played:
        verdict = self._referee.grade(task, files, reward="all")
        return Played(verdict.reward, verdict.void, verdict.flags, (repr(verdict.as_dict()),))

    def play(self, task: Task, actions: Sequence[Any]) -> Played:
        steps = max(task.limits.steps, len(actions) + 2)
        env = CodeEnv(Pool("redteam", 1, (task,)), wall=self._wall, reward="all", limits={"steps": steps})
        reward, void, seen = 0.0, None, []
        flags: tuple[str, ...] = ()
        try:
            seen.append(env.reset(task_id=task.id)[0])
            for action in [*actions, {"tool": "submit"}]:
                over = env.episode.over
                observation, earned, _, _, info = env.step(action)
                seen.append(observation)
                reward += earned
                if over and earned:
                    flags = (*flags, "paid_after_the_end")
                void = info.get("void", void)
                if not over and (verdict := info.get("verdict")) is not None:
                    flags = (*flags, *verdict["flags"])
                    seen.append(repr(verdict))
        finally:
            env.close()
        if void is not None or math.isnan(reward):
            return Played(None, void or "the reward is not a number", flags, tuple(seen))
        return Played(reward, None, flags, tuple(seen))


def tightened(task: Task) -> Task:
    """The task with none of its limits in time above CAP's: an exploit that hangs is as wrong after two seconds as
    after ten. A test's own limit is the author's and stays, for the reference may need it."""
    return replace(task, limits=tight_limits(task))


def tight_limits(task: Task) -> Limits:
    """See ``tightened``, which checks a whole task again: call it once a batch."""
    return replace(
        task.limits,
        run_s=min(task.limits.run_s, SHELL_S if task.shell else CAP.run_s),
        load_s=min(task.limits.load_s, CAP.load_s),
        test_s=min(task.limits.test_s, CAP.test_s),
        grade_s=min(task.limits.grade_s, CAP.grade_s),
    )


def loosened(task: Task) -> Task:
    """The task with time for honest work on a machine that is busy with an exploit."""
    limits = replace(task.limits, load_s=60.0, test_s=60.0, grade_s=300.0)
    return replace(task, limits=limits)


def submission(task: Task, files: Mapping[str, bytes], delete: Sequence[str] = ()) -> Files:
    """What lies in the workspace after a solver has laid these files over the start files and removed others."""
    return Files({p: b for p, b in {**task.start, **files}.items() if p not in delete})
