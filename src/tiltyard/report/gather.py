"""One pass over the episodes of a store: everything that is counted, for every player, task and group.

Promises: reads a row of facts an episode and never a step, an observation or a verdict, a few thousand rows at a time,
so that a store of millions of steps fits into memory; in one snapshot, so that what others write meanwhile does not
show in one count and miss in another; sums that do not depend on the order of rows, so that the same records give the
same report from any database.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum
from typing import Any

from sqlalchemy import Connection, Select, Text, select, type_coerce

from tiltyard.errors import UsageError
from tiltyard.estimates import GroupTally, group_kind
from tiltyard.records import schema

ROWS = 5000
"""Rows fetched at a time."""
MAX_REASONS = 200
"""Different reasons for voids that are told apart, for each player."""
KEPT = 2
"""Episodes of a player at a task that are remembered by id."""
CHARS_A_TOKEN = 4
"""As the environment's own cap counts tokens (``Limits.tokens``)."""

Key = tuple[str, str]
"""A task: its id and digest, because a task that was changed is another task."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which episodes are looked at; "" means all."""

    run: str = ""
    player: str = ""

    def of(self, wanted: Select[Any]) -> Select[Any]:
        """The query, for these episodes only."""
        if self.run:
            wanted = wanted.where(schema.episodes.c.run == self.run)
        if self.player:
            wanted = wanted.where(schema.episodes.c.player == self.player)
        return wanted


@dataclass(slots=True)
class TaskTally:
    """What one player came to at one task. Voids are counted apart and stand in nothing else but ``steps``."""

    rewards: Counter[float] = field(default_factory=Counter)
    voids: int = 0
    flags: Counter[str] = field(default_factory=Counter)
    best: list[tuple[float, int, str]] = field(default_factory=list)
    """The ``KEPT`` best episodes: (minus the reward, place in the order of reading, id)."""

    @property
    def attempts(self) -> int:
        """Those that count."""
        return self.rewards.total()

    @property
    def solved(self) -> int:
        """Attempts with the whole reward."""
        return sum(n for reward, n in self.rewards.items() if reward >= 1.0)

    @property
    def sum(self) -> float:
        return fsum(reward * n for reward, n in self.rewards.items())


@dataclass(slots=True)
class PlayerTally:
    """What one player came to. The arrays have one number for each episode that is not void."""

    tasks: dict[Key, TaskTally] = field(default_factory=dict)
    groups: GroupTally = field(default_factory=GroupTally)
    largest_group: int = 0
    void_reasons: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    """submit, or the cap that truncated the episode."""
    player_ended: Counter[str] = field(default_factory=Counter)
    """Why a model came to its end, where one played."""
    steps: array[int] = field(default_factory=lambda: array("q"))
    tokens: array[int] = field(default_factory=lambda: array("q"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    invalid: int = 0
    invalid_episodes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    counted_by_server: int = 0
    """Episodes whose tokens a model's server counted; those of others are estimated."""
    costs: list[float] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    voids: int = 0
    rewards: Counter[float] = field(default_factory=Counter)


@dataclass(slots=True)
class Gathered:
    """Players in the order of their names. ``episodes`` counts all, voids too."""

    players: dict[str, PlayerTally]
    episodes: int = 0
    runs: int = 0
    steps: int = 0
    pools: dict[str, str] = field(default_factory=dict)
    """The specs of the pools that were played, with the digest of the pool that was last met."""


_E = schema.episodes.c
_COLUMNS = (
    _E.id,
    _E.run,
    _E.number,
    _E.attempt,
    _E.player,
    _E.task,
    _E.task_digest,
    _E.reward,
    _E.void,
    type_coerce(_E.flags, Text).label("flags"),
    _E.seconds,
    _E.step_count,
    _E.invalid_count,
    _E.truncated_by,
    _E.text_chars,
    _E.model,
    _E.ended_by,
    _E.input_tokens,
    _E.output_tokens,
    _E.cache_read_tokens,
    _E.cost_usd,
)


def rows_of(connection: Connection, wanted: Select[Any]) -> Iterator[Any]:
    """The rows, fetched as they are asked for."""
    yield from connection.execution_options(yield_per=ROWS).execute(wanted)


@lru_cache(maxsize=4096)
def _flags(text: str) -> tuple[str, ...]:
    return tuple(map(str, json.loads(text)))


def resolve_run(connection: Connection, run: str) -> str:
    """The id of the run that begins so. UsageError if there is none, or more than one."""
    table = schema.runs.c
    wanted = run if run.startswith("r-") else f"r-{run}"
    found = connection.execute(
        select(table.id).where(table.id.startswith(wanted, autoescape=True)).order_by(table.id).limit(4)
    )
    ids = list(found.scalars())
    if len(ids) == 1 or wanted in ids:
        return wanted if wanted in ids else ids[0]
    if ids:
        raise UsageError(f"{run!r} begins the ids of several runs: {', '.join(ids)}; write more of it")
    newest = connection.execute(select(table.id).order_by(table.started.desc()).limit(4)).scalars()
    raise UsageError(f"no run {run!r} in this store; its newest runs are {', '.join(newest) or 'none'}")


def gather(connection: Connection, scope: Scope) -> Gathered:
    """Count. UsageError if the scope holds no episode."""
    order = (_E.run.nulls_first(), _E.number, _E.id)
    found = Gathered(players={})
    group = _Group()
    runs = set()
    for place, row in enumerate(rows_of(connection, scope.of(select(*_COLUMNS)).order_by(*order))):
        player = found.players.get(row.player)
        if player is None:
            player = found.players[row.player] = PlayerTally()
        # an episode that belongs to no run is a group of its own
        key = (row.run, row.number - row.attempt, row.task_digest, row.player) if row.run else (row.id,)
        if key != group.key:
            group.close()
            group = _Group(key, player)
        group.add(row)
        found.episodes += 1
        found.steps += row.step_count
        runs.add(row.run)
        _count(player, row, place)
    group.close()
    if not found.episodes:
        raise UsageError(_nothing(connection, scope))
    found.runs = len(runs - {None})
    found.players = dict(sorted(found.players.items()))
    specs = select(_E.pool_spec, _E.pool_digest).distinct()
    found.pools = dict(
        sorted((str(spec), str(digest)) for spec, digest in connection.execute(scope.of(specs)))
    )
    return found


def _nothing(connection: Connection, scope: Scope) -> str:
    if scope.player:
        names = sorted(connection.execute(select(_E.player).distinct()).scalars())
        some = ", ".join(names[:12]) or "none"
        where = f" in run {scope.run}" if scope.run else ""
        return f"no episode of the player {scope.player!r}{where}; the players of this store are {some}"
    return "there is no episode in this store" if not scope.run else f"run {scope.run} has no episode"


def _count(player: PlayerTally, row: Any, place: int) -> None:
    key = (row.task, row.task_digest)
    task = player.tasks.get(key)
    if task is None:
        task = player.tasks[key] = TaskTally()
    if row.model:
        player.models.add(row.model)
    if row.cost_usd is not None:
        player.costs.append(row.cost_usd)
    if row.reward is None:
        task.voids += 1
        player.voids += 1
        reason = row.void if row.void in player.void_reasons or len(player.void_reasons) < MAX_REASONS else ""
        player.void_reasons[reason or "another reason"] += 1
        return
    reward = float(row.reward)
    task.rewards[reward] += 1
    player.rewards[reward] += 1
    for flag in _flags(row.flags):
        task.flags[flag] += 1
    entry = (-reward, place, row.id)
    if len(task.best) < KEPT or entry < task.best[-1]:
        task.best = sorted([*task.best, entry])[:KEPT]
    player.ended[row.truncated_by or "submit"] += 1
    if row.ended_by:
        player.player_ended[row.ended_by] += 1
    player.steps.append(row.step_count)
    player.invalid += row.invalid_count
    player.invalid_episodes += row.invalid_count > 0
    player.seconds.append(row.seconds)
    counted = row.input_tokens + row.output_tokens
    player.counted_by_server += counted > 0
    player.input_tokens += row.input_tokens
    player.output_tokens += row.output_tokens
    player.cache_read_tokens += row.cache_read_tokens
    player.tokens.append(counted or -(-row.text_chars // CHARS_A_TOKEN))


class _Group:
    """The attempts at one draw of a task, which stand next to each other."""

    def __init__(self, key: object = None, player: PlayerTally | None = None) -> None:
        self.key, self.player = key, player
        self.counted = self.voids = self.steps = self.void_steps = self.size = 0
        self.low: float | None = None
        self.high: float | None = None

    def add(self, row: Any) -> None:
        # not how many there are: a void that was played again when the run was resumed is there twice
        self.size = max(self.size, row.attempt + 1)
        if row.reward is None:
            self.voids += 1
            self.void_steps += row.step_count
            return
        self.counted += 1
        self.steps += row.step_count
        self.low = row.reward if self.low is None else min(self.low, row.reward)
        self.high = row.reward if self.high is None else max(self.high, row.reward)

    def close(self) -> None:
        if self.player is not None:
            self.player.largest_group = max(self.player.largest_group, self.size)
            kind = group_kind(self.counted, self.low, self.high)
            self.player.groups.add(
                kind, counted=self.counted, voids=self.voids, steps=self.steps, void_steps=self.void_steps
            )
