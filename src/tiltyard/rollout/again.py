"""A recorded episode, played again and compared byte for byte.

Promises: says that it is the same only if every observation, reward and end, the verdict and the digest are; else
names the first difference and shows it. Never: compares with a task that was changed since, or a void episode.
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tiltyard.env import CodeEnv
from tiltyard.errors import ArenaError, UsageError
from tiltyard.pool import load
from tiltyard.records import EpisodeRecord, Store
from tiltyard.rollout.play import Stage, record_of
from tiltyard.rollout.slots import Slot

SHOWN_LINES = 40


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """``same``, or ``difference`` says where first, with a diff (recorded ``-``, played again ``+``)."""

    recorded: EpisodeRecord
    again: EpisodeRecord
    difference: str = ""

    @property
    def same(self) -> bool:
        return not self.difference

    def as_json(self) -> dict[str, Any]:
        return {
            "episode": self.recorded.id,
            "task": self.recorded.task,
            "same": self.same,
            "steps": len(self.recorded.steps),
            "reward": {"recorded": self.recorded.reward, "again": self.again.reward},
            "digest": {"recorded": self.recorded.digest, "again": self.again.digest},
            "difference": self.difference,
        }


def replay(
    store: Store | str | os.PathLike[str], episode: str, *, pool: Any = None, wall: str = "auto"
) -> ReplayResult:
    """Play the episode with this id (or unique beginning of one) again. ``pool`` is needed only where the record
    does not say what it was played on. Raises UsageError: no such episode, a void one, a task that is gone or has
    changed; ArenaError if the arena fails now."""
    if isinstance(store, Store):
        record = store.episode(episode)
    else:
        with Store(store, readonly=True) as opened:
            record = opened.episode(episode)
    if record.void is not None:
        raise UsageError(
            f"episode {record.id} is void ({record.void}); there is nothing to compare a replay with"
        )
    return play_again(record, pool=pool, wall=wall)


def play_again(record: EpisodeRecord, *, pool: Any = None, wall: str = "auto") -> ReplayResult:
    """As :func:`replay`, for a record in hand."""
    if pool is None and not record.pool_spec:
        raise UsageError(
            f"episode {record.id} was played on tasks that were given as Python objects; name its pool"
        )
    chosen = load(record.pool_spec if pool is None else pool)
    task = chosen[record.task]
    if task.digest != record.task_digest:
        raise UsageError(
            f"task {task.id!r} is not the one that was played: its digest was {record.task_digest[:12]}… and is "
            f"{task.digest[:12]}… in {record.pool_spec if pool is None else chosen.name}; find the older task"
        )
    settings = record.settings
    env = CodeEnv([task], settings.get("max_steps"), wall=wall, reward=settings.get("reward"))
    stage = Stage(chosen, None, wall, player_name=record.player, run_seed=record.run_seed, settings=settings)
    blank = stage.blank(Slot(record.number, task.id, 0, record.attempt, record.seed), "it did not begin")
    try:
        env.reset(seed=record.seed, task_id=task.id)
        for step in record.steps:
            _, reward, terminated, truncated, info = env.step(step.action)
            if math.isnan(reward):
                raise ArenaError(f"the replay is void: {info.get('void')}; try again")
            if terminated or truncated:
                break
        again = record_of(env.episode, blank)
    finally:
        env.close()
    return ReplayResult(record, again, next(_differences(record, again), ""))


def _differences(recorded: EpisodeRecord, again: EpisodeRecord) -> Iterator[str]:
    """Every difference, the first in time first."""
    if recorded.observation != again.observation:
        yield "the first observation differs:\n" + _diff(recorded.observation, again.observation)
    for n, (before, now) in enumerate(zip(recorded.steps, again.steps, strict=False), start=1):
        at = f"step {n} ({_short(before.action)})"
        if before.action != now.action:
            yield f"{at}: the action is understood differently:\n" + _diff(before.action, now.action)
        if before.observation != now.observation:
            yield f"{at}: the observation differs:\n" + _diff(before.observation, now.observation)
        for name in ("reward", "terminated", "truncated", "truncated_by", "invalid"):
            old, new = getattr(before, name), getattr(now, name)
            if old != new:
                yield f"{at}: {name} was {old!r} and is {new!r}"
    if len(recorded.steps) != len(again.steps):
        clock = "; the clock ended it then" if recorded.truncated_by == "time" else ""
        yield f"{len(recorded.steps)} steps were recorded, and it ended after {len(again.steps)}{clock}"
    if recorded.verdict != again.verdict:
        yield "the verdict differs:\n" + _diff(_lines(recorded.verdict), _lines(again.verdict))
    if recorded.digest != again.digest:
        yield f"the digest was {recorded.digest} and is {again.digest}"


def _short(action: str) -> str:
    return action if len(action) <= 80 else action[:79] + "…"


def _lines(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True)


def _diff(before: str, now: str) -> str:
    lines = list(
        difflib.unified_diff(
            before.split("\n"), now.split("\n"), "recorded", "played again", lineterm="", n=2
        )
    )
    left_out = len(lines) - SHOWN_LINES
    return "\n".join(lines[:SHOWN_LINES] + ([f"… {left_out} more lines"] if left_out > 0 else []))
