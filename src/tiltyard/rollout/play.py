"""One episode, played and recorded. What a worker of a run does.

Promises: whatever a player does comes back as a record. A player that raises makes its episode void, with the
exception named; so does an arena that fails. Only being told to end leaves this room as an exception.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

from gymnasium.error import ResetNeeded

from tiltyard.env import CodeEnv, Episode
from tiltyard.errors import ArenaError, TiltyardError
from tiltyard.players import make_player, run_episode
from tiltyard.pool import Pool
from tiltyard.records import EpisodeRecord, StepRecord
from tiltyard.records.store import now
from tiltyard.rollout.slots import Slot
from tiltyard.task import RewardRule
from tiltyard.workers import Terminated

MAX_REASON = 500


@dataclass(frozen=True, slots=True)
class Stage:
    """What all episodes of a run have in common. ``player`` is a name for ``make_player``, or the player itself."""

    pool: Pool
    player: Any
    wall: str
    reward: RewardRule | None = None
    player_name: str = ""
    wall_name: str = ""
    pool_spec: str = ""
    run_seed: int | None = None
    run: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def blank(self, slot: Slot, void: str) -> EpisodeRecord:
        """The record of an episode of which nothing is known but that it is void."""
        return EpisodeRecord(
            task=slot.task,
            task_digest=self.pool[slot.task].digest,
            player=self.player_name,
            seed=slot.seed,
            void=void,
            wall=self.wall_name,
            pool=self.pool.name,
            pool_version=str(self.pool.version),
            pool_digest=self.pool.digest,
            pool_spec=self.pool_spec,
            run_seed=self.run_seed,
            attempt=slot.attempt,
            number=slot.number,
            settings=self.settings,
            started=now(),
            run=self.run,
        )


def record_of(
    episode: Episode, blank: EpisodeRecord, *, void: str | None = None, seconds: Sequence[float] = ()
) -> EpisodeRecord:
    """``blank`` filled with what ``env.episode`` holds. ``void`` is a reason of the caller's; the arena's own comes
    first. An episode that has not ended, and is not void, has the reward 0.0: nothing was submitted. ``seconds`` is
    how long each step took, as far as that was measured."""
    last = episode.steps[-1].info if episode.steps else {}
    why = last.get("void", void)
    verdict = last.get("verdict")
    return replace(
        blank,
        observation=episode.observation,
        steps=tuple(
            StepRecord(
                action=step.action,
                observation=step.observation,
                reward=step.reward,
                terminated=step.terminated,
                truncated=step.truncated,
                truncated_by=step.info.get("truncated_by", ""),
                invalid=step.info.get("invalid_action", False),
                seconds=took,
            )
            for step, took in zip(episode.steps, chain(seconds, repeat(0.0)), strict=False)
        ),
        reward=None if why is not None else episode.reward,
        void=why,
        verdict=verdict,
        flags=tuple(verdict["flags"]) if verdict else (),
        patch=last.get("patch", ""),
    )


class PlayerFailed(Exception):
    """The player raised. The message is the void's reason."""


class _Guarded:
    """The player, with what it raises told apart from what the arena raises."""

    def __init__(self, player: Any) -> None:
        self.player = player

    def begin(self, task: Any, seed: Any) -> Any:
        begin = getattr(self.player, "begin", None)
        return None if begin is None else self._call(begin, task, seed)

    def __call__(self, observation: Any, rng: Any) -> Any:
        return self._call(self.player, observation, rng)

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            result = function(*arguments)
        except Terminated:
            raise
        except BaseException as error:  # SystemExit and its kin too: a player does not end a run
            raise PlayerFailed(_reason(error)) from error
        return self._await(result) if inspect.isawaitable(result) else result

    async def _await(self, result: Any) -> Any:
        try:
            return await result
        except Terminated:
            raise
        except BaseException as error:
            raise PlayerFailed(_reason(error)) from error


def _reason(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its message can't be read)"
    name = type(error).__name__
    return f"the player raised {name}: {text}"[:MAX_REASON] if text else f"the player raised {name}"


class Seat:
    """Where a worker plays: one environment and one player, for episode after episode."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.player = _Guarded(make_player(stage.player) if isinstance(stage.player, str) else stage.player)
        self.env = CodeEnv(stage.pool, wall=stage.wall, reward=stage.reward)

    def __call__(self, slot: Slot) -> EpisodeRecord:
        blank = self.stage.blank(slot, "the episode did not begin")
        begun = time.monotonic()
        void, times = None, list[float]()
        try:
            run_episode(self.env, self.player, slot.seed, task_id=slot.task, times=times)
        except PlayerFailed as failed:
            void = str(failed)
        except (ArenaError, OSError, MemoryError) as error:
            void = str(error) or type(error).__name__
        except TiltyardError as error:
            void = f"{type(error).__name__}: {error}"
        try:
            record = record_of(self.env.episode, blank, void=void, seconds=times)
        except ResetNeeded:  # not even reset worked
            record = replace(blank, void=void or blank.void)
        return replace(record, seconds=time.monotonic() - begun)

    def close(self) -> None:
        self.env.close()
