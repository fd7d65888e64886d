"""Many episodes of a model at once, in one process: an event loop for the waiting, threads for the environments.

Promises: as ``tiltyard.workers`` does, each episode comes back once, in the order in which they end; a first stop lets
what is in flight finish for a short while, a second does not. The loop never does an environment's work, nor the
store's: both are done in threads, of which there are as many as cores, so that the code of one player does not run into its
time limit because of a hundred others. An episode that can't be finished is void. Never: retries an episode.
"""

from __future__ import annotations

import asyncio
import random
import resource
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from gymnasium.error import ResetNeeded

from tiltyard.env import CodeEnv
from tiltyard.errors import ArenaError, TiltyardError, UsageError
from tiltyard.players.model import Hopeless, ModelFailed, ModelPlayer, ModelSession, OverBudget
from tiltyard.records import EpisodeRecord
from tiltyard.rollout.play import Stage, record_of
from tiltyard.rollout.slots import Slot
from tiltyard.workers import GRACE_S, POLL_S, Stop, usable_cores

MAX_CONCURRENCY = 1000
"""As many connections as an SDK's client has."""
FILES_EACH = 8
"""Open files that an episode in flight may take: a connection, a cell, and for a moment those of a grading."""
_T = TypeVar("_T")

Keep = Callable[[Slot, EpisodeRecord], Any]
"""Store a record; what it returns goes to ``Told``. Called in a thread, one call at a time."""
Told = Callable[[Any], None]
"""Called in the event loop's thread, which is the caller's."""


def play_all(
    stage: Stage,
    player: ModelPlayer,
    slots: Sequence[Slot],
    *,
    concurrency: int,
    stop: Stop,
    keep: Keep,
    told: Told,
) -> str:
    """Play the slots, ``concurrency`` at a time. Returns why it ended early ("" if it did not, or was stopped).

    Raises UsageError for an impossible number or a server that refuses everything, and what ``keep`` raises.
    """
    if type(concurrency) is not int or not 1 <= concurrency <= MAX_CONCURRENCY:
        raise UsageError(
            f"{concurrency!r} episodes at once; expected a whole number from 1 to {MAX_CONCURRENCY}"
        )
    size = min(concurrency, max(1, len(slots)))
    _room_for_files(256 + FILES_EACH * size)
    crowd = _Crowd(stage, player, slots, size, stop, keep, told)
    return _in_a_loop(crowd)


def _room_for_files(wanted: int) -> None:
    """Many systems let a process open 1024 files until it asks for more. Raises UsageError if it may not have as many:
    else episodes would be void, one here and one there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise UsageError(
            f"so many episodes at once need about {wanted} open files, and this process may have {hard}; "
            "lower --concurrency, or raise the limit (ulimit -n)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _in_a_loop(crowd: _Crowd) -> str:
    """In an event loop of its own; where one is running already (a notebook), in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(crowd.play())
    ends: list[Any] = []

    def alone() -> None:
        try:
            ends.append((asyncio.run(crowd.play()), None))
        except BaseException as error:
            ends.append(("", error))

    thread = threading.Thread(target=alone, name="tiltyard-crowd")
    thread.start()
    thread.join()
    why, error = ends[0]
    if error is not None:
        raise error
    return str(why)


class _Crowd:
    def __init__(
        self,
        stage: Stage,
        player: ModelPlayer,
        slots: Sequence[Slot],
        size: int,
        stop: Stop,
        keep: Keep,
        told: Told,
    ) -> None:
        self.stage, self.player, self.size, self.stop = stage, player, size, stop
        self.keep, self.told = keep, told
        self.waiting = deque(slots)
        self.ended_early = ""
        self.refused: UsageError | None = None
        self.hands = ThreadPoolExecutor(max(2, min(usable_cores(), size)), "tiltyard-env")
        self.clerk = ThreadPoolExecutor(1, "tiltyard-store")

    async def play(self) -> str:
        seats = [asyncio.create_task(self._seat()) for _ in range(self.size)]
        try:
            await self._watch(seats)
        finally:
            for seat in seats:
                seat.cancel()
            await asyncio.gather(*seats, return_exceptions=True)
            await self.player.close()
            # the environments are closed, so what still runs in a thread has lost its cell and ends
            await asyncio.to_thread(self.hands.shutdown)
            await asyncio.to_thread(self.clerk.shutdown)
        if self.refused is not None:
            raise self.refused
        return self.ended_early

    async def _watch(self, seats: Sequence[asyncio.Task[None]]) -> None:
        """Until all seats are left, or it is time to leave them."""
        left = set(seats)
        stop_at: float | None = None
        while left:
            done, left = await asyncio.wait(left, timeout=POLL_S, return_when=asyncio.FIRST_EXCEPTION)
            for seat in done:
                seat.result()  # what a seat raises ends the run: the store is full, or this is a bug
            if self.stop.count:
                self.waiting.clear()
                stop_at = stop_at if stop_at is not None else time.monotonic() + GRACE_S
                if self.stop.count > 1 or time.monotonic() > stop_at:
                    return

    async def _seat(self) -> None:
        """Episode after episode, in one environment."""
        env = CodeEnv(self.stage.pool, wall=self.stage.wall, reward=self.stage.reward)
        meter = self.player.meter
        try:
            while self.waiting and not self.stop.count:
                if not meter.may_begin():
                    if meter.playing and not meter.over:  # what is being played may come out cheaper
                        await asyncio.sleep(POLL_S)
                        continue
                    self._end_early(f"the budget of ${meter.budget_usd:g} is used up")
                    return
                slot = self.waiting.popleft()
                meter.playing += 1
                try:
                    record = await self._episode(env, slot)
                finally:
                    meter.playing -= 1
                meter.ended(record.usage.cost_usd)
                if self.refused is None:
                    self.told(await self._in(self.clerk, self.keep, slot, record))
        finally:
            # not in a thread, which may be the one that is at work in it: closing is what ends that work
            env.close()

    def _end_early(self, why: str) -> None:
        self.waiting.clear()
        self.ended_early = self.ended_early or why

    async def _episode(self, env: CodeEnv, slot: Slot) -> EpisodeRecord:
        blank = self.stage.blank(slot, "the episode did not begin")
        begun = time.monotonic()
        session, times, void = self.player.session(), list[float](), None
        try:
            await self._play(env, session, slot, times)
        except ModelFailed as failed:
            void = str(failed)
            self._give_up(failed)
        except (ArenaError, OSError, MemoryError) as error:
            void = str(error) or type(error).__name__
        except TiltyardError as error:
            void = f"{type(error).__name__}: {error}"
        except Exception as error:
            traceback.print_exc()  # a bug of ours, which wants its traceback and costs one episode
            void = f"the episode failed: {type(error).__name__}: {error}"
        try:
            record = record_of(env.episode, blank, void=void, seconds=times)
        except ResetNeeded:  # not even reset worked
            record = replace(blank, void=void or blank.void)
        return replace(session.into(record), seconds=time.monotonic() - begun)

    async def _play(self, env: CodeEnv, session: ModelSession, slot: Slot, times: list[float]) -> None:
        rng = random.Random(slot.seed)
        observation, _ = await self._in(self.hands, env.reset, slot.seed, None, slot.task)
        env.stop_clock()
        session.begin(env.task, slot.seed)
        over = False
        while not over:
            action = await session(observation, rng)
            observation, terminated, truncated = await self._in(self.hands, _step, env, action, times)
            env.stop_clock()
            over = terminated or truncated

    def _give_up(self, failed: ModelFailed) -> None:
        """After a failure that the next episode would meet too."""
        if isinstance(failed, OverBudget):
            self._end_early(f"the budget of ${self.player.meter.budget_usd:g} is used up")
        elif isinstance(failed, Hopeless):
            self._end_early(str(failed))
            if not self.player.meter.answers:
                self.refused = UsageError(f"{self.player.name} can't be asked: {failed}")

    async def _in(self, pool: ThreadPoolExecutor, function: Callable[..., _T], *arguments: Any) -> _T:
        return await asyncio.get_running_loop().run_in_executor(pool, function, *arguments)


def _step(env: CodeEnv, action: Any, times: list[float]) -> tuple[str, bool, bool]:
    begun = time.monotonic()
    observation, _, terminated, truncated, _ = env.step(action)
    times.append(time.monotonic() - begun)
    return observation, terminated, truncated
