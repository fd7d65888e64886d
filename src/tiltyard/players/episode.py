"""Play one episode: the loop between a player and an environment.

The player's generator is seeded with the episode's seed, apart from the environment's own, so that a player that
draws more or less does not change which task comes next. What a player raises is raised here: it is the caller who
knows whether that costs an episode or a run.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from dataclasses import dataclass
from typing import Any

from tiltyard.env import CodeEnv, Episode
from tiltyard.errors import UsageError
from tiltyard.players.protocol import Player, Prepared


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """How an episode went. ``reward`` is the sum of its rewards: NaN if it is void, and ``void`` says why.

    ``info`` is the last step's; ``episode`` has every step.
    """

    task: str
    reward: float
    steps: int
    terminated: bool
    truncated: bool
    truncated_by: str
    void: str | None
    info: dict[str, Any]
    episode: Episode


def run_episode(
    env: CodeEnv,
    player: Player,
    seed: int | None = None,
    task_id: str | None = None,
    *,
    times: list[float] | None = None,
) -> EpisodeResult:
    """Reset the environment and play until the episode ends. To ``times`` are added the seconds that each step took.

    An async player runs on an event loop of its own, kept for the episode. UsageError if one is already running in
    this thread: there, await :func:`arun_episode`.
    """
    with _Loop() as loop:
        rng = random.Random(seed)
        observation, info = env.reset(seed=seed, task_id=task_id)
        if isinstance(player, Prepared):
            loop.value(player.begin(env.task, seed))
        while True:
            _rest(env, player)
            action = loop.value(player(observation, rng))
            begun = time.monotonic()
            observation, _, terminated, truncated, info = env.step(action)
            if times is not None:
                times.append(time.monotonic() - begun)
            if terminated or truncated:
                return _result(env.episode, info)


async def arun_episode(
    env: CodeEnv, player: Player, seed: int | None = None, task_id: str | None = None
) -> EpisodeResult:
    """As run_episode, in a running event loop: the environment works in a thread, so other episodes go on."""
    rng = random.Random(seed)
    observation, info = await asyncio.to_thread(env.reset, seed=seed, task_id=task_id)
    if isinstance(player, Prepared):
        await _awaited(player.begin(env.task, seed))
    while True:
        _rest(env, player)
        action = await _awaited(player(observation, rng))
        observation, _, terminated, truncated, info = await asyncio.to_thread(env.step, action)
        if terminated or truncated:
            return _result(env.episode, info)


def _rest(env: CodeEnv, player: Player) -> None:
    """The clock stands for a player that waits for somebody else; see the Player protocol."""
    if getattr(player, "clock_stands", False):
        env.stop_clock()


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class _Loop:
    """An event loop that is made when the first awaitable comes."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> _Loop:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            self._runner.close()

    def value(self, value: Any) -> Any:
        if not inspect.isawaitable(value):
            return value
        if self._runner is None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                self._runner = asyncio.Runner()
            else:
                if inspect.iscoroutine(value):
                    value.close()
                raise UsageError(
                    "found an async player and a running event loop; await arun_episode() instead"
                )
        return self._runner.run(_awaited(value))


def _result(episode: Episode, info: dict[str, Any]) -> EpisodeResult:
    last = episode.steps[-1]
    return EpisodeResult(
        task=episode.task.id,
        reward=episode.reward,
        steps=len(episode.steps),
        terminated=last.terminated,
        truncated=last.truncated,
        truncated_by=info.get("truncated_by", ""),
        void=info.get("void"),
        info=info,
        episode=episode,
    )
