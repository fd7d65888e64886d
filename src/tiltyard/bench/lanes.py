"""One wall under measurement: a lane has a wall, an environment on it, and times what a player does in it.

Every episode that is timed must score 1: a wall that is quick to fail is no wall. A lane is named as its wall
("namespace"), or as wall and how ("container:exec", "container:runtime=runsc").
"""

from __future__ import annotations

import time
from typing import Any

from tiltyard.bench.lesson import ACTIONS, POOL, RUN_TESTS, SUBMIT, TASK, VIEW, WRITE
from tiltyard.cells import WALLS, make_wall
from tiltyard.cells.container_words import options
from tiltyard.cells.protocol import Wall
from tiltyard.env import CodeEnv
from tiltyard.errors import ArenaError, UsageError

MODES = {"container": ("keeper", "exec", "run")}
"""Walls that do the same in several ways; the first one is what the wall's name alone stands for."""
LOOKS = 5
"""How often a file is viewed and written in one turn: these are so quick that one alone says little."""


def lane_names() -> tuple[str, ...]:
    """All lanes of this build, weakest wall last."""
    return tuple(
        wall if number == 0 else f"{wall}:{mode}"
        for wall in WALLS
        for number, mode in enumerate(MODES.get(wall, ("",)))
    )


def check_names(names: list[str]) -> None:
    """UsageError for a name that is no lane's."""
    known = lane_names()
    for name in names:
        kind, colon, words = name.partition(":")
        if colon and kind in MODES:
            options(words)
        elif name not in known:
            raise UsageError(f"found the wall {name!r}; expected one of {', '.join(known)}")


def lane_wall(name: str) -> Wall:
    """The wall of a lane. Raises ArenaError, with the reason, if it can't be had here."""
    return make_wall(name)


class Lane:
    """A wall and an environment, open until ``close``. Used by one thread."""

    def __init__(self, name: str, wall: Wall | None = None) -> None:
        self.name = name
        self.wall = wall if wall is not None else lane_wall(name)
        self.env = CodeEnv(POOL, wall=self.wall, max_steps=1000)

    def close(self) -> None:
        self.env.close()
        self.wall.close()

    def steps(self) -> dict[str, list[float]]:
        """One episode, each action timed. A reset counts until the cell has answered a first look, for cells are
        opened when they are first needed, and one that is only promised costs nothing."""
        found: dict[str, list[float]] = {"view_file": [], "write_file": []}
        begun = time.perf_counter()
        self.reset()
        self.act(VIEW)
        found["reset"] = [time.perf_counter() - begun]
        for _ in range(LOOKS):
            found["view_file"].append(self._timed(VIEW))
        for _ in range(LOOKS):
            found["write_file"].append(self._timed(WRITE))
        found["run_tests"] = [self._timed(RUN_TESTS)]
        found["submit"] = [self._timed(SUBMIT)]
        return found

    def episode(self) -> dict[str, list[float]]:
        """One lesson episode as a whole: reset, view, write, run_tests, submit."""
        begun = time.perf_counter()
        self.play()
        return {"episode": [time.perf_counter() - begun]}

    def play(self) -> None:
        """The lesson's episode, to its end."""
        self.reset()
        for action in ACTIONS:
            self.act(action)

    @property
    def forks(self) -> bool:
        """Whether an episode can be copied in its middle here."""
        return callable(getattr(self.env, "fork", None))

    def fork(self) -> dict[str, list[float]]:
        """A copy of an episode in its middle, after a view and a write, until its own cell has answered a first look."""
        self.reset()
        self.act(VIEW)
        self.act(WRITE)
        begun = time.perf_counter()
        (copy,) = self.env.fork(1)
        try:
            observation, _, _, _, info = copy.step(VIEW)
            seconds = time.perf_counter() - begun
        finally:
            copy.close()
        if info["invalid_action"] or "void" in info or "no values" not in observation:
            raise ArenaError(f"a copy of an episode went wrong: {info.get('void') or observation[:300]}")
        return {"fork": [seconds]}

    def reset(self) -> None:
        """Start an episode."""
        self.env.reset(seed=0, task_id=TASK.id)

    def _timed(self, action: Any) -> float:
        begun = time.perf_counter()
        self.act(action)
        return time.perf_counter() - begun

    def act(self, action: Any) -> None:
        """Carry out one action. ArenaError if it goes wrong."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if "void" in info:
            raise ArenaError(f"an episode was void: {info['void']}")
        if info["invalid_action"] or truncated or (terminated and reward != 1.0):
            raise ArenaError(f"{info['tool']} went wrong (reward {reward}): {observation[:300]}")
