"""The first thing that a newcomer sees: a pool played by three players, side by side. Shows what a pool must do:
who does nothing earns nothing, who acts at random earns next to nothing, and the reference earns everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tiltyard.pool import Pool
from tiltyard.rollout.runs import run
from tiltyard.rollout.summary import RunSummary

PLAYERS = ("noop", "random", "reference")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same pool by several players."""

    runs: tuple[RunSummary, ...]

    @property
    def as_expected(self) -> bool:
        """noop 0 and reference 1 on every task, and nothing void."""
        wanted = {"noop": 0.0, "reference": 1.0}
        return all(
            r.total.void == 0
            and all(t.mean_reward == wanted.get(r.player, t.mean_reward) for t in r.tasks.values())
            for r in self.runs
        )

    def as_json(self) -> dict[str, Any]:
        """``{"as_expected": bool, "runs": [what `tiltyard run --json` prints, …]}``."""
        return {"as_expected": self.as_expected, "runs": [r.as_json() for r in self.runs]}


def compare(
    pool: Pool,
    *,
    players: Sequence[str] = PLAYERS,
    workers: int = 1,
    seed: int = 0,
    wall: str = "auto",
    progress: Callable[[str], Any] | None = None,
) -> Comparison:
    """Each task of the pool once by each of the players. ``progress(player)`` makes a run's progress display."""
    return Comparison(
        tuple(
            run(pool, p, workers=workers, seed=seed, wall=wall, progress=progress(p) if progress else None)
            for p in players
        )
    )
