"""Solve rates on tasks and on the same tasks told otherwise (``tiltyard perturb``), where a store holds attempts at both.

A model that had read a task remembers its names and its words; a rate that falls when those change is what contamination
would look like, and so would be words that are harder to understand. Tasks are paired by what they say of their origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tiltyard.estimates.paired import PairedDifference, paired_difference
from tiltyard.report.players import PlayerReport
from tiltyard.sources.lineage import kinds_of, lineage
from tiltyard.task import Task


@dataclass(frozen=True, slots=True)
class Pair:
    """One player at an original and at all of its variants that it played; (attempts, solved) of each."""

    player: str
    task: str
    variants: tuple[str, ...]
    kinds: tuple[str, ...]
    original: tuple[int, int]
    perturbed: tuple[int, int]

    @property
    def difference(self) -> float | None:
        """Solve rate of the variants minus that of the original; None where one side has no attempt that counts."""
        (n, c), (m, d) = self.original, self.perturbed
        return d / m - c / n if n and m else None

    def as_json(self) -> dict[str, Any]:
        return {
            "player": self.player,
            "task": self.task,
            "variants": list(self.variants),
            "kinds": list(self.kinds),
            "original": {"attempts": self.original[0], "solved": self.original[1]},
            "perturbed": {"attempts": self.perturbed[0], "solved": self.perturbed[1]},
            "difference": self.difference,
        }


@dataclass(frozen=True, slots=True)
class Perturbed:
    """For each player with pairs the paired difference, perturbed − original (None: no pair has attempts that count on
    both sides). ``pairs``: those with the largest fall first. ``alone`` counts variants whose original was not played."""

    players: Mapping[str, PairedDifference | None]
    pairs: tuple[Pair, ...]
    alone: int

    def as_json(self) -> dict[str, Any]:
        return {
            "players": {name: d.as_json() if d else None for name, d in self.players.items()},
            "pairs": [pair.as_json() for pair in self.pairs],
            "alone": self.alone,
        }


def compare_perturbed(
    players: Iterable[PlayerReport], tasks: Mapping[str, Task], seed: int = 0
) -> Perturbed | None:
    """``tasks`` by digest. None if nothing that was played was made of something that was played."""
    found: dict[str, PairedDifference | None] = {}
    pairs: list[Pair] = []
    alone: set[str] = set()
    for player in players:
        own = _pairs(player, tasks, alone)
        if own:
            before, after = [p.original for p in own], [p.perturbed for p in own]
            found[player.player] = paired_difference(before, after, seed=seed)
            pairs += own
    if not pairs:
        return None
    pairs.sort(key=lambda p: (p.difference is None, p.difference or 0.0, p.task, p.player))
    return Perturbed(found, tuple(pairs), len(alone))


def _pairs(player: PlayerReport, tasks: Mapping[str, Task], alone: set[str]) -> list[Pair]:
    rows = {row.digest: row for row in player.tasks}
    variants: dict[str, list[str]] = {}
    for digest in rows:
        line = lineage(tasks[digest].metadata) if digest in tasks else None
        if line is not None and line[1] in rows and line[1] != digest:
            variants.setdefault(line[1], []).append(digest)
        elif line is not None:
            alone.add(digest)
    out = []
    for origin, digests in sorted(variants.items(), key=lambda item: rows[item[0]].task):
        ordered = sorted(digests, key=lambda d: rows[d].task)
        kinds = frozenset[str]().union(*(kinds_of(tasks[d].metadata) for d in ordered))
        out.append(
            Pair(
                player.player,
                rows[origin].task,
                tuple(rows[d].task for d in ordered),
                tuple(sorted(kinds)),
                (rows[origin].attempts, rows[origin].solved),
                (sum(rows[d].attempts for d in ordered), sum(rows[d].solved for d in ordered)),
            )
        )
    return out
