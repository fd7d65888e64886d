"""What a run came to. Pure: from the results of episodes to counts, means and one digest.

Void episodes are counted apart and left out of every mean; a mean over nothing is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import fsum
from typing import Any

from tiltyard.records import EpisodeRecord, Usage, run_digest


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """One episode's end, small enough to keep for millions. ``reward`` None means void; ``id`` is the store's."""

    number: int
    task: str
    seed: int
    reward: float | None
    void: str | None
    truncated: bool
    steps: int
    digest: str
    id: str = ""
    turns: int = 0
    usage: Usage | None = None
    """What a model took; None where none played."""

    @classmethod
    def of(cls, record: EpisodeRecord, id: str = "") -> EpisodeResult:
        return cls(
            number=record.number,
            task=record.task,
            seed=record.seed,
            reward=record.reward,
            void=record.void,
            truncated=record.truncated,
            steps=len(record.steps),
            digest=record.digest,
            id=id,
            turns=record.turns,
            usage=record.usage if record.model else None,
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """``episodes`` counts all, voids too; ``mean_reward`` is over the others, None if there is none."""

    episodes: int
    mean_reward: float | None
    void: int

    @classmethod
    def of(cls, results: Iterable[EpisodeResult]) -> Tally:
        found = list(results)
        rewards = [result.reward for result in found if result.reward is not None]
        # fsum, because the order in which episodes end must not reach the last digit
        mean = fsum(rewards) / len(rewards) if rewards else None
        return cls(len(found), mean, len(found) - len(rewards))

    def as_json(self) -> dict[str, Any]:
        return {"episodes": self.episodes, "mean_reward": self.mean_reward, "void": self.void}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run's end. ``results`` by number. ``planned`` is how many episodes were asked for; fewer results mean that
    the run was interrupted, or ended early (``ended_early`` says why: the budget, a key that is refused). ``run`` is
    the store's id ("" without a store). ``retries`` counts requests to a model that were tried again, by what failed.
    """

    pool: str
    player: str
    wall: str
    results: tuple[EpisodeResult, ...]
    planned: int
    seconds: float
    run: str = ""
    ended_early: str = ""
    retries: Mapping[str, int] = field(default_factory=dict)

    @property
    def usage(self) -> Usage | None:
        """What a model took in all of these episodes; None if none played."""
        found = [result.usage for result in self.results if result.usage is not None]
        return Usage.total(found) if found else None

    @property
    def total(self) -> Tally:
        return Tally.of(self.results)

    @property
    def tasks(self) -> Mapping[str, Tally]:
        """By task, in the order of the plan."""
        by_task: dict[str, list[EpisodeResult]] = {}
        for result in self.results:
            by_task.setdefault(result.task, []).append(result)
        return {task: Tally.of(results) for task, results in by_task.items()}

    @property
    def voids(self) -> Mapping[str, int]:
        """How many episodes were void, by reason, the most frequent first."""
        counts: dict[str, int] = {}
        for result in self.results:
            if result.void is not None:
                counts[result.void] = counts.get(result.void, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def digest(self) -> str:
        return run_digest(result.digest for result in self.results)

    def as_json(self) -> dict[str, Any]:
        """The shape that ``tiltyard run --json`` prints."""
        total = self.total
        usage = self.usage
        model = {} if usage is None else {"model": self._model(usage)}
        return {
            "pool": self.pool,
            "player": self.player,
            "wall": self.wall,
            "episodes": total.episodes,
            "mean_reward": total.mean_reward,
            "void": total.void,
            "digest": self.digest,
            "tasks": {task: tally.as_json() for task, tally in self.tasks.items()},
            **model,
        }

    def _model(self, usage: Usage) -> dict[str, Any]:
        return {
            "turns": sum(result.turns for result in self.results),
            **asdict(usage),
            "retries": dict(self.retries),
            "planned": self.planned,
            "ended_early": self.ended_early,
        }
