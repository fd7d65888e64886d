"""A run: many episodes of one player on one pool, on any number of workers.

Promises: the same rewards and digests for any number of workers; what has ended is kept, in the store and in the
summary, whatever happens to the rest. See ``tiltyard.workers`` for what a death, a hang and Ctrl-C do.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tiltyard.cells import make_wall
from tiltyard.errors import UsageError
from tiltyard.players import ReplayPlayer, make_player
from tiltyard.pool import Pool, load
from tiltyard.records import EpisodeRecord, RunRecord, Store
from tiltyard.rollout.play import Seat, Stage
from tiltyard.rollout.slots import Slot, plan
from tiltyard.rollout.summary import EpisodeResult, RunSummary
from tiltyard.task import REWARD_RULES, RewardRule
from tiltyard.workers import Done, Interrupted, Progress, Stop, work

REPLAY = "replay:"


def run(
    pool: Any,
    player: Any,
    *,
    episodes: int | None = None,
    attempts: int = 1,
    workers: int = 1,
    seed: int = 0,
    wall: str = "auto",
    reward: RewardRule | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    pool_spec: str | None = None,
) -> RunSummary:
    """Play ``player`` on ``pool`` and return what it came to.

    ``pool`` is a Pool or whatever ``tiltyard.pool.load`` takes; ``player`` a name (``noop``, ``random``,
    ``reference``, ``replay:STORE#EPISODE``) or a player. Each task once, or ``episodes`` draws by ``seed``; each
    ``attempts`` times. ``workers`` processes (0: in this one, without protection from the player). ``pool_spec`` says
    where a Pool came from, so that its episodes can be replayed from the store alone.

    Raises UsageError, TaskError, ArenaError (no cell can be had, the store's disk is full), and after SIGINT or
    SIGTERM :class:`Interrupted` with the summary so far.
    """
    if reward is not None and reward not in REWARD_RULES:
        raise UsageError(f"reward: found {reward!r}; expected {' or '.join(REWARD_RULES)}")
    spec = pool_spec if pool_spec is not None else spec_of(pool)
    chosen = load(pool)
    name = player_name(player)
    if isinstance(player, str) and player.startswith(REPLAY):
        record = recorded(player)
        chosen = _only(chosen, record)
        player = ReplayPlayer(record.actions)
    elif isinstance(player, str):
        make_player(player)  # a name that is none is found here, and not in every worker
    slots = plan(chosen.ids, episodes=episodes, attempts=attempts, seed=seed)
    probe = make_wall(wall)  # a wall that can't be had is found here, before anything is stored
    wall_name = probe.name
    probe.close()
    stage = Stage(
        chosen,
        player,
        wall_name,  # not "auto": a worker must not take a weaker wall than the one that was announced
        reward,
        name,
        wall_name,
        spec,
        seed,
        settings={"reward": reward} if reward else {},
    )
    own = Store(store) if isinstance(store, (str, os.PathLike)) else None
    try:
        return _run(
            stage, slots, workers, own or store, progress, {"episodes": episodes, "attempts": attempts}
        )
    finally:
        if own is not None:
            own.close()


def _run(
    stage: Stage,
    slots: list[Slot],
    workers: int,
    store: Any,
    progress: Progress | None,
    asked: dict[str, Any],
) -> RunSummary:
    begun = time.monotonic()
    if store is not None:
        stage = replace(stage, run=store.add_run(_head(stage, workers, asked)))
    results: dict[int, EpisodeResult] = {}

    def summary() -> RunSummary:
        in_order = tuple(results[number] for number in sorted(results))
        seconds = time.monotonic() - begun
        return RunSummary(
            stage.pool.name, stage.player_name, stage.wall_name, in_order, len(slots), seconds, stage.run
        )

    if progress is not None:
        progress.begin(len(slots))
    try:
        with Stop() as stop:
            for result in work(
                slots,
                partial(Seat, stage),
                workers=workers,
                stop=stop,
                deadline_s=partial(_deadline_s, stage),
            ):
                slot = slots[result.job]
                record = result.value if isinstance(result, Done) else stage.blank(slot, result.reason)
                id = store.add(record) if store is not None else ""
                results[slot.number] = EpisodeResult.of(record, id)
                if progress is not None:
                    progress.advance(results[slot.number])
    finally:
        if progress is not None:
            progress.end()
    if len(results) < len(slots):
        raise Interrupted(summary(), stop.signum)
    if store is not None:
        store.finish_run(stage.run)
    return summary()


def _deadline_s(stage: Stage, slot: Slot) -> float:
    """When an episode's worker is given up: far later than the environment's own caps, so that only what hangs
    outside of them (a player that never answers) meets it."""
    limits = stage.pool[slot.task].limits
    return limits.episode_s + 3 * limits.grade_s + 60.0


def _head(stage: Stage, workers: int, asked: dict[str, Any]) -> RunRecord:
    return RunRecord(
        pool=stage.pool.name,
        pool_version=str(stage.pool.version),
        pool_digest=stage.pool.digest,
        player=stage.player_name,
        wall=stage.wall_name,
        seed=stage.run_seed or 0,
        pool_spec=stage.pool_spec,
        settings={**stage.settings, **asked, "workers": workers},
    )


def spec_of(pool: Any) -> str:
    """What the pool was loaded from, with an absolute path, or "" for Python objects."""
    if isinstance(pool, os.PathLike):
        return str(Path(pool).resolve())
    if not isinstance(pool, str) or pool == "builtin":
        return pool if isinstance(pool, str) else ""
    if Path(pool).exists():
        return str(Path(pool).resolve())
    head, colon, rest = pool.partition(":")
    return f"{head}:{Path(rest).resolve()}" if colon and rest else pool


def player_name(player: Any) -> str:
    """A player's name for records: the one it was asked for by, its ``name``, or that of its function or class."""
    if isinstance(player, str):
        return player
    given = getattr(player, "name", None)
    return given if isinstance(given, str) and given else getattr(player, "__name__", type(player).__name__)


def recorded(player: str) -> EpisodeRecord:
    """The episode that ``replay:STORE#EPISODE`` names. Raises UsageError."""
    where, mark, id = player.removeprefix(REPLAY).rpartition("#")
    if not mark or not where or not id:
        raise UsageError(
            f"{player!r}: expected replay:STORE#EPISODE, such as replay:episodes.sqlite#e-4m2k0vx7ta"
        )
    with Store(where, readonly=True) as store:
        return store.episode(id)


def _only(pool: Pool, record: EpisodeRecord) -> Pool:
    """The recorded episode's task alone: its actions mean nothing on another one."""
    task = pool[record.task]
    return pool if len(pool) == 1 else replace(pool, tasks=(task,))
