"""From counts to what is said of a player: rewards with an interval, pass@k, costs, endings, what groups bought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil, fsum
from typing import Any

import numpy as np

from tiltyard.estimates import (
    Interval,
    Posterior,
    all_equal_share,
    clustered_mean,
    expected_reward_signal,
    expected_signal,
    mean_over_tasks,
    pass_all_k,
    pass_at_k,
    signal_interval,
    standing,
)
from tiltyard.estimates.signal import STANDINGS
from tiltyard.report.gather import Key, PlayerTally, TaskTally

YARDSTICKS = ("noop", "random", "reference")
"""Players that measure the pool and not themselves."""


def is_yardstick(player: str) -> bool:
    """Whether it only shows what the pool does: nothing, chance, the answer, or a recording."""
    return player in YARDSTICKS or player.startswith("replay:")


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a number that each episode has. Quantiles by nearest rank. ``total`` over all episodes."""

    mean: float
    p50: float
    p99: float
    most: float
    total: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        if not len(values):
            return None
        ordered = np.sort(np.asarray(values, dtype=np.float64))

        def at(share: float) -> float:
            return float(ordered[max(0, ceil(share * len(ordered)) - 1)])

        total = fsum(ordered.tolist())
        return cls(total / len(ordered), at(0.5), at(0.99), float(ordered[-1]), total)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One player at one task. ``signal`` is the expected chance that a group's solves differ, with its credible
    interval; ``reward_signal`` that its rewards differ, partial ones too."""

    task: str
    digest: str
    attempts: int
    solved: int
    voids: int
    standing: str
    mean_reward: float | None
    signal: float
    signal_low: float
    signal_high: float
    reward_signal: float
    flags: Mapping[str, int]
    best: tuple[str, ...]
    """Ids of its best episodes, the best first."""

    @classmethod
    def of(cls, key: Key, tally: TaskTally, k: int) -> TaskRow:
        n, c = tally.attempts, tally.solved
        posterior = Posterior.of(n, c)
        low, high = signal_interval(posterior, k)
        return cls(
            task=key[0],
            digest=key[1],
            attempts=n,
            solved=c,
            voids=tally.voids,
            standing=standing(n, c),
            mean_reward=tally.sum / n if n else None,
            signal=expected_signal(posterior, k),
            signal_low=low,
            signal_high=high,
            reward_signal=expected_reward_signal(tally.rewards, k),
            flags=dict(sorted(tally.flags.items())),
            best=tuple(id for _, _, id in tally.best),
        )


@dataclass(frozen=True, slots=True)
class PassAt:
    """pass@k and pass^k, as means over the tasks with at least ``k`` attempts that count."""

    k: int
    at: Interval
    all: Interval


@dataclass(frozen=True, slots=True)
class NoGradient:
    """What bought no gradient, in shares of all groups, sandboxes (episodes) and generations (steps) as they were
    played; None where no group of two or more was. ``by_kind`` counts them. ``subsets`` is the share of groups of k
    that would have been wasted among the attempts that were made, over tasks with k of them; ``expected`` is what the
    posterior says of the next groups of k, over all tasks tried."""

    groups: float | None
    sandboxes: float | None
    generations: float | None
    by_kind: Mapping[str, Mapping[str, int]]
    subsets: float | None
    subset_tasks: int
    expected: float | None


@dataclass(frozen=True)
class PlayerReport:
    """Everything that is said of one player. Means and counts leave voids out; ``voids`` has them."""

    player: str
    models: tuple[str, ...]
    episodes: int
    voids: Mapping[str, int]
    reward: Interval | None
    passes: tuple[PassAt, ...]
    steps: Spread | None
    tokens: Spread | None
    seconds: Spread | None
    tokens_from: str
    usage: Mapping[str, int]
    cost_usd: float | None
    cost_episodes: int
    invalid_actions: int
    invalid_share: float | None
    invalid_episodes: int
    ended: Mapping[str, int]
    player_ended: Mapping[str, int]
    no_gradient: NoGradient
    tasks: tuple[TaskRow, ...]

    @cached_property
    def standings(self) -> Mapping[str, int]:
        """How many tasks are solved always, sometimes, never; ``untried`` ones have voids only."""
        counts = Counter(row.standing for row in self.tasks)
        return {name: counts[name] for name in STANDINGS}

    @property
    def counted(self) -> int:
        """Episodes that are not void."""
        return self.episodes - sum(self.voids.values())

    def as_json(self) -> dict[str, Any]:
        out = {name: getattr(self, name) for name in self.__dataclass_fields__}
        out["reward"] = self.reward.as_json() if self.reward else None
        out["passes"] = [{"k": p.k, "at": p.at.as_json(), "all": p.all.as_json()} for p in self.passes]
        for name in ("steps", "tokens", "seconds"):
            out[name] = asdict(out[name]) if out[name] else None
        out["no_gradient"] = asdict(self.no_gradient)
        out["standings"] = dict(self.standings)
        out["tasks"] = [asdict(row) for row in self.tasks]
        return out


def player_report(name: str, tally: PlayerTally, k: int, seed: int) -> PlayerReport:
    """``k`` is the size of a group; ``seed`` that of the bootstrap."""
    rows = tuple(TaskRow.of(key, tally.tasks[key], k) for key in sorted(tally.tasks))
    ordered = [tally.tasks[key] for key in sorted(tally.tasks)]
    steps = sum(tally.steps)
    guessed = len(tally.steps) - tally.counted_by_server
    origin = "server" if not guessed else "estimate" if not tally.counted_by_server else "server and estimate"
    return PlayerReport(
        player=name,
        models=tuple(sorted(tally.models)),
        episodes=len(tally.steps) + tally.voids,
        voids=_by_count(tally.void_reasons),
        reward=clustered_mean([t.sum for t in ordered], [t.attempts for t in ordered], seed=seed),
        passes=tuple(_passes(ordered, k, seed)),
        steps=Spread.of(tally.steps),
        tokens=Spread.of(tally.tokens),
        seconds=Spread.of(tally.seconds),
        tokens_from=origin,
        usage={
            "input_tokens": tally.input_tokens,
            "output_tokens": tally.output_tokens,
            "cache_read_tokens": tally.cache_read_tokens,
        },
        cost_usd=fsum(tally.costs) if tally.costs else None,
        cost_episodes=len(tally.costs),
        invalid_actions=tally.invalid,
        invalid_share=tally.invalid / steps if steps else None,
        invalid_episodes=tally.invalid_episodes,
        ended=_by_count(tally.ended),
        player_ended=_by_count(tally.player_ended),
        no_gradient=_no_gradient(tally, ordered, rows, k),
        tasks=rows,
    )


def _by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def ks(largest: int) -> list[int]:
    """Which k are shown: all up to 8, then doublings, and the largest."""
    shown = {*range(1, min(largest, 8) + 1), largest}
    k = 16
    while k < largest:
        shown.add(k)
        k *= 2
    return sorted(shown - {0})


def _passes(tasks: list[TaskTally], k: int, seed: int) -> list[PassAt]:
    found = []
    for each in ks(max(k, 1)):
        counts = [(t.attempts, t.solved) for t in tasks if t.attempts >= each]
        n = sum(attempts for attempts, _ in counts)
        some = mean_over_tasks([pass_at_k(m, c, each) for m, c in counts], n=n, seed=seed)
        every = mean_over_tasks([pass_all_k(m, c, each) for m, c in counts], n=n, seed=seed)
        if some is not None and every is not None:
            found.append(PassAt(each, some, every))
    return found


def _no_gradient(tally: PlayerTally, tasks: list[TaskTally], rows: tuple[TaskRow, ...], k: int) -> NoGradient:
    groups, played = tally.groups, tally.largest_group >= 2
    wasted = [share for t in tasks if (share := all_equal_share(t.rewards, k)) is not None and k > 1]
    tried = [row.reward_signal for row in rows if row.attempts]
    return NoGradient(
        groups=groups.no_gradient(groups.groups) if played else None,
        sandboxes=groups.no_gradient(groups.sandboxes) if played else None,
        generations=groups.no_gradient(groups.generations) if played else None,
        by_kind={
            "groups": dict(groups.groups),
            "sandboxes": dict(groups.sandboxes),
            "generations": dict(groups.generations),
        },
        subsets=fsum(wasted) / len(wasted) if wasted else None,
        subset_tasks=len(wasted),
        expected=1.0 - fsum(tried) / len(tried) if tried else None,
    )
