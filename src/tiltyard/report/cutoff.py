"""Solve rates on tasks from before a date and from after it. A model that was trained up to that date may have read the
earlier ones; a rate that falls after it is what contamination would look like, and so is a harder second half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.estimates import Difference, difference_of_rates
from tiltyard.report.players import PlayerReport
from tiltyard.task import Task

BEFORE, AFTER, ACROSS, UNDATED = "before", "after", "across", "undated"


@dataclass(frozen=True, slots=True)
class Cutoff:
    """For each player the difference of solve rates, after − before (None: one side has no attempt). ``tasks`` counts
    those ``before``, ``after``, ``across`` (dated too vaguely to tell) and ``undated`` (or not to be had)."""

    date: str
    tasks: Mapping[str, int]
    players: Mapping[str, Difference | None]

    def as_json(self) -> dict[str, Any]:
        return {
            "date": self.date,
            "tasks": dict(self.tasks),
            "players": {name: d.as_json() if d else None for name, d in self.players.items()},
        }


def parse_cutoff(text: str) -> date:
    """The first day that is after. UsageError if it is no ISO date."""
    first, _ = period(text)
    if first is None:
        raise UsageError(f"--cutoff: found {text!r}; expected a date such as 2026-10-31, 2026-10 or 2026")
    return first


def period(created: str) -> tuple[date | None, date | None]:
    """First and last day of ``2026``, ``2026-10`` or ``2026-10-31``; (None, None) for anything else."""
    parts = created.strip().split("T")[0].split("-")
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None, None
    if [len(part) for part in parts] != [4, 2, 2][: len(parts)]:
        return None, None
    numbers = [int(part) for part in parts]
    try:
        first = date(*[*numbers, 1, 1][:3])
        if len(numbers) == 3:
            return first, first
        year, month = numbers[0], numbers[1] if len(numbers) == 2 else 12
        after = date(year + month // 12, month % 12 + 1, 1)
        return first, date.fromordinal(after.toordinal() - 1)
    except ValueError:
        return None, None


def side(created: str, cutoff: date) -> str:
    """On which side of the cutoff a task is: ``after`` if its whole period begins on that day or later."""
    first, last = period(created)
    if first is None or last is None:
        return UNDATED
    if last < cutoff:
        return BEFORE
    return AFTER if first >= cutoff else ACROSS


def compare(cutoff: str, players: Iterable[PlayerReport], tasks: Mapping[str, Task]) -> Cutoff:
    """``tasks`` by digest. UsageError for a cutoff that is no date."""
    day = parse_cutoff(cutoff)
    everyone = list(players)
    digests = sorted({row.digest for player in everyone for row in player.tasks})
    sides = {d: side(tasks[d].metadata.created, day) if d in tasks else UNDATED for d in digests}
    counts = Counter(sides.values())
    found = {}
    for player in everyone:
        before, after = (
            [(row.attempts, row.solved) for row in player.tasks if sides[row.digest] == which]
            for which in (BEFORE, AFTER)
        )
        found[player.player] = difference_of_rates(before, after)
    return Cutoff(day.isoformat(), {s: counts[s] for s in (BEFORE, AFTER, ACROSS, UNDATED)}, found)
