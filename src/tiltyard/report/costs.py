"""What the arena's side of an episode costs here: a pool's tasks, this machine, this wall, one episode at a time.

Promises: real episodes on real cells, tasks in an order by seed so that a short measurement sees many of them; every
action timed by itself, in wall-clock seconds of a process that does nothing else. Never: asks a model.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from sqlalchemy import func, select

from tiltyard.env import CodeEnv
from tiltyard.errors import ArenaError, UsageError
from tiltyard.pool import Pool
from tiltyard.records import Store, schema
from tiltyard.report.gather import rows_of
from tiltyard.task import Task

OPEN, VIEW, WRITE, TEST, SUBMIT = "open", "view_file", "write_file", "run_tests", "submit"
KINDS = (OPEN, VIEW, WRITE, TEST, SUBMIT)
"""``open``: reset until the cell has answered a first look. ``submit``: with the grading of all hidden tests."""
MIN_EPISODES = 3


def quantile(ordered: Sequence[float], share: float) -> float:
    """By nearest rank, of sorted numbers."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds by kind of action, sorted. ``busy``: the machine had other work when this was measured."""

    seconds: Mapping[str, tuple[float, ...]]
    episodes: int
    tasks: int
    wall: str
    busy: bool
    memory_bytes: int
    """The largest memory limit of a task: what a cell may take at most."""

    def as_json(self) -> dict[str, Any]:
        kinds = {
            kind: {
                "n": len(values),
                "p50_ms": round(1e3 * quantile(values, 0.5), 3),
                "p99_ms": round(1e3 * quantile(values, 0.99), 3),
            }
            for kind, values in self.seconds.items()
        }
        return {
            "kinds": kinds,
            "episodes": self.episodes,
            "tasks": self.tasks,
            "wall": self.wall,
            "busy": self.busy,
            "memory_bytes": self.memory_bytes,
        }


def measure(pool: Pool, *, wall: str = "auto", seconds: float = 10.0, seed: int = 0) -> Costs:
    """Play for about ``seconds``, at least ``MIN_EPISODES`` episodes. ArenaError if the arena fails."""
    order = random.Random(seed).sample(range(len(pool)), len(pool))
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    busy = _busy()
    env = CodeEnv(pool, wall=wall)
    seen = set()
    try:
        _episode(
            env, pool[order[0]], {kind: [] for kind in KINDS}
        )  # the wall's own start is no cost of an episode
        end, episodes = time.monotonic() + seconds, 0
        while episodes < MIN_EPISODES or time.monotonic() < end:
            task = pool[order[episodes % len(order)]]
            _episode(env, task, found)
            seen.add(task.id)
            episodes += 1
        name = env.wall_name
    finally:
        env.close()
    return Costs(
        seconds={kind: tuple(sorted(values)) for kind, values in found.items()},
        episodes=episodes,
        tasks=len(seen),
        wall=name,
        busy=busy,
        memory_bytes=max(task.limits.memory_bytes for task in pool),
    )


def _episode(env: CodeEnv, task: Task, found: dict[str, list[float]]) -> None:
    """One episode: look, write the reference, test, submit."""
    begun = time.perf_counter()
    env.reset(seed=0, task_id=task.id)
    _act(env, {"tool": "list_files"})
    found[OPEN].append(time.perf_counter() - begun)
    actions: list[tuple[str, dict[str, Any]]] = [(VIEW, {"tool": VIEW, "path": task.main})]
    for path, data in task.reference.items():
        actions.append((WRITE, {"tool": WRITE, "path": path, "content": data.decode("utf-8", "replace")}))
    actions += [(TEST, {"tool": TEST}), (SUBMIT, {"tool": SUBMIT})]
    for kind, action in actions:
        begun = time.perf_counter()
        _act(env, action)
        found[kind].append(time.perf_counter() - begun)


def _act(env: CodeEnv, action: dict[str, Any]) -> None:
    if env.episode.over:  # a task with a cap of very few steps
        return
    _, _, _, _, info = env.step(action)
    if "void" in info:
        raise ArenaError(f"an episode that was played to measure its costs is void: {info['void']}")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a model took in the episodes of a store: seconds of an answer, and how many an episode had (the mean,
    rounded up). ``answers`` were looked at."""

    latency_p50: float
    latency_p99: float
    turns: int
    answers: int


def recorded(store: Store, player: str = "") -> Recorded:
    """From the transcripts of this player, or of all models. Retries and the waiting between them are part of an answer's
    time, as they would be again. UsageError if no model played."""
    messages, episodes = schema.messages.c, schema.episodes.c
    mine = select(episodes.id).where(episodes.turns > 0)
    mine = mine.where(episodes.player == player) if player else mine
    wanted = select(messages.seconds).where(
        messages.role == "assistant", messages.seconds > 0, messages.episode.in_(mine)
    )
    with store.snapshot() as connection:
        seconds = sorted(float(row.seconds) for row in rows_of(connection, wanted))
        count, turns = connection.execute(
            select(func.count(), func.sum(episodes.turns)).where(episodes.id.in_(mine))
        ).one()
    if not seconds:
        who = f"the player {player!r}" if player else "a model"
        raise UsageError(f"{store.where} has no answer of {who} with its time; give --model-latency")
    return Recorded(quantile(seconds, 0.5), quantile(seconds, 0.99), ceil(turns / count), len(seconds))


def _busy() -> bool:
    try:
        return os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)
    except OSError:
        return False
