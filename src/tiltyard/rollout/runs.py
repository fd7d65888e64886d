"""A run: many episodes of one player on one pool, on any number of workers; a model's in one process, many at once.

Promises: the same rewards and digests for any number of workers; what has ended is kept, in the store and in the
summary, whatever happens to the rest, and a run that was cut short can be resumed. See ``tiltyard.workers`` for what a
death, a hang and Ctrl-C do.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tiltyard.cells import settled_name
from tiltyard.errors import UsageError
from tiltyard.players import ReplayPlayer, make_player
from tiltyard.players.model import ModelPlayer
from tiltyard.pool import Pool, load
from tiltyard.records import EpisodeRecord, RunRecord, Store
from tiltyard.rollout.crowd import play_all
from tiltyard.rollout.play import Seat, Stage
from tiltyard.rollout.resume import played, resumable
from tiltyard.rollout.sampling import SAMPLES, SIGNAL, signal_draws
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
    concurrency: int = 8,
    resume: str | None = None,
    sample: str = "plan",
) -> RunSummary:
    """Play ``player`` on ``pool`` and return what it came to.

    ``pool`` is a Pool or whatever ``tiltyard.pool.load`` takes; ``player`` a name (``noop``, ``random``,
    ``reference``, ``replay:STORE#EPISODE``, ``anthropic:MODEL``, ``openai:MODEL``) or a player. Each task once, or
    ``episodes`` draws by ``seed``; each ``attempts`` times. ``workers`` processes (0: in this one, without protection
    from the player); a ModelPlayer plays ``concurrency`` episodes at a time in this one. ``pool_spec`` says where a
    Pool came from, so that its episodes can be replayed from the store alone.

    ``resume`` is the id of a run in ``store`` that goes on: what was played is not played again, but for voids. Its
    seed, episodes, attempts and reward rule are those of the run, whatever is given.

    ``sample="signal"`` draws the ``episodes`` tasks of which the store says that this player's groups will differ
    (``tiltyard.rollout.sampling``); the draws are kept with the run.

    Raises UsageError, TaskError, ArenaError (no cell can be had, the store's disk is full), and after SIGINT or
    SIGTERM :class:`Interrupted` with the summary so far.
    """
    if reward is not None and reward not in REWARD_RULES:
        raise UsageError(f"reward: found {reward!r}; expected {' or '.join(REWARD_RULES)}")
    if sample not in SAMPLES:
        raise UsageError(f"sample: found {sample!r}; expected {' or '.join(SAMPLES)}")
    spec = pool_spec if pool_spec is not None else spec_of(pool)
    chosen = load(pool)
    name = player_name(player)
    if isinstance(player, str) and player.startswith(REPLAY):
        record = recorded(player)
        chosen = _only(chosen, record)
        player = ReplayPlayer(record.actions)
    elif isinstance(player, str):
        made = make_player(player)  # a name that is none is found here, and not in every worker
        player = made if isinstance(made, ModelPlayer) else player
    own = Store(store) if isinstance(store, (str, os.PathLike)) else None
    kept = own if own is not None else store if isinstance(store, Store) else None
    try:
        asked: dict[str, Any] = {"episodes": episodes, "attempts": attempts}
        if resume is not None:
            plan_ = _resumed(resumable(kept, resume, chosen, name, player), kept, chosen, asked)
        else:
            if sample == SIGNAL:
                drawn = signal_draws(kept, chosen.tasks, name, **asked, seed=seed)
                asked |= {"sample": sample, "drawn": drawn}
            plan_ = _Plan(_slots(chosen, asked, seed), asked, seed, reward)
        wall_name = _wall_name(wall)
        stage = Stage(
            chosen,
            player,
            wall_name,  # not "auto": a worker must not take a weaker wall than the one that was announced
            plan_.reward,
            name,
            wall_name,
            spec,
            plan_.seed,
            run=plan_.run,
            settings={"reward": plan_.reward} if plan_.reward else {},
        )
        return _Run(stage, plan_, kept, progress).play(workers, concurrency)
    finally:
        if own is not None:
            own.close()


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be played, how it was ``asked`` for, and what of it is ``done``. ``run`` is "" for a new one."""

    slots: list[Slot]
    asked: dict[str, Any]
    seed: int
    reward: RewardRule | None
    run: str = ""
    done: dict[int, EpisodeResult] = field(default_factory=dict)


def _resumed(head: RunRecord, store: Store | None, pool: Pool, asked: dict[str, Any]) -> _Plan:
    """The plan of a run that goes on: as it was begun."""
    asked = {key: head.settings.get(key, value) for key, value in asked.items()}
    asked |= {key: head.settings[key] for key in ("sample", "drawn") if key in head.settings}
    slots = _slots(pool, asked, head.seed)
    return _Plan(slots, asked, head.seed, head.settings.get("reward"), head.id, played(store, head.id))


def _slots(pool: Pool, asked: dict[str, Any], seed: int) -> list[Slot]:
    return plan(
        pool.ids,
        episodes=asked["episodes"],
        attempts=asked["attempts"],
        seed=seed,
        drawn=asked.get("drawn"),
    )


def _wall_name(wall: str) -> str:
    """A wall that can't be had is found here, before anything is stored."""
    return settled_name(wall)


class _Run:
    """A run on its way: what was played, and where it is kept."""

    def __init__(self, stage: Stage, plan_: _Plan, store: Store | None, progress: Progress | None) -> None:
        self.stage, self.store, self.progress = stage, store, progress
        self.slots, self.asked = plan_.slots, plan_.asked
        self.results = dict(plan_.done)
        self.begun = time.monotonic()

    def play(self, workers: int, concurrency: int) -> RunSummary:
        """All that is not done yet. Raises Interrupted."""
        model = self.stage.player if isinstance(self.stage.player, ModelPlayer) else None
        if self.store is not None and not self.stage.run:
            how: dict[str, Any] = {"workers": workers}
            if model is not None:
                how = {"concurrency": concurrency, "model": model.settings.as_dict()}
            head = _head(self.stage, {**self.asked, **how})
            self.stage = replace(self.stage, run=self.store.add_run(head))
        todo = [slot for slot in self.slots if slot.number not in self.results]
        if self.progress is not None:
            self.progress.begin(len(todo))
        ended_early = ""
        try:
            with Stop() as stop:
                if model is None:
                    self._with_workers(todo, workers, stop)
                else:
                    ended_early = self._with_a_model(model, todo, concurrency, stop)
        finally:
            if self.progress is not None:
                self.progress.end()
        summary = self._summary(model, ended_early)
        if len(self.results) < len(self.slots):
            if ended_early and not stop.count:
                return summary
            raise Interrupted(summary, stop.signum)
        if self.store is not None and not ended_early:
            self.store.finish_run(self.stage.run)
        return summary

    def _with_workers(self, todo: list[Slot], workers: int, stop: Stop) -> None:
        stage = self.stage
        make, deadline_s = partial(Seat, stage), partial(_deadline_s, stage)
        for result in work(todo, make, workers=workers, stop=stop, deadline_s=deadline_s):
            slot = todo[result.job]
            record = result.value if isinstance(result, Done) else stage.blank(slot, result.reason)
            self._told(self._keep(slot, record))

    def _with_a_model(self, model: ModelPlayer, todo: list[Slot], concurrency: int, stop: Stop) -> str:
        note = getattr(self.progress, "note", None)
        if note is not None:
            model.meter.tell = note
        return play_all(
            self.stage, model, todo, concurrency=concurrency, stop=stop, keep=self._keep, told=self._told
        )

    def _keep(self, slot: Slot, record: EpisodeRecord) -> EpisodeResult:
        return EpisodeResult.of(record, self.store.add(record) if self.store is not None else "")

    def _told(self, result: EpisodeResult) -> None:
        self.results[result.number] = result
        if self.progress is not None:
            self.progress.advance(result)

    def _summary(self, model: ModelPlayer | None, ended_early: str) -> RunSummary:
        stage = self.stage
        return RunSummary(
            stage.pool.name,
            stage.player_name,
            stage.wall_name,
            tuple(self.results[number] for number in sorted(self.results)),
            len(self.slots),
            time.monotonic() - self.begun,
            stage.run,
            ended_early,
            dict(model.meter.retries) if model is not None else {},
        )


def _deadline_s(stage: Stage, slot: Slot) -> float:
    """When an episode's worker is given up: far later than the environment's own caps, so that only what hangs
    outside of them (a player that never answers) meets it."""
    limits = stage.pool[slot.task].limits
    return limits.episode_s + 3 * limits.grade_s + 60.0


def _head(stage: Stage, asked: dict[str, Any]) -> RunRecord:
    return RunRecord(
        pool=stage.pool.name,
        pool_version=str(stage.pool.version),
        pool_digest=stage.pool.digest,
        player=stage.player_name,
        wall=stage.wall_name,
        seed=stage.run_seed or 0,
        pool_spec=stage.pool_spec,
        settings={**stage.settings, **asked},
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
