"""The report: everything together, as data. How it is shown is the business of ``terminal`` and ``html``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.records import Store
from tiltyard.report.cutoff import Cutoff, compare, parse_cutoff
from tiltyard.report.gather import Gathered, Scope, gather, resolve_run
from tiltyard.report.known import Known, known_tasks
from tiltyard.report.perturbed import Perturbed, compare_perturbed
from tiltyard.report.players import PlayerReport, player_report
from tiltyard.report.signs import Signs, signs
from tiltyard.report.unsolved import Unsolved, never_solved, unsolved

DEFAULT_GROUP = 8
MAX_GROUP = 1024
MAX_UNSOLVED = 20
"""Never-solved tasks that are shown with transcripts, unless asked otherwise."""


@dataclass(frozen=True, slots=True)
class FlagRow:
    """How often a flag of the referee stands on a player's attempts at a task."""

    flag: str
    player: str
    task: str
    count: int


@dataclass(frozen=True, slots=True)
class Report:
    """``group_size`` is the k of signal and pass@k; ``group_from`` says where it is from: ``asked``, ``runs`` (the
    largest group that was played) or ``default``. ``never`` counts the never-solved tasks, of which ``unsolved`` shows
    the first ones. Nothing in it depends on the kind of the store, on its place, or on the clock."""

    episodes: int
    runs: int
    steps: int
    scope: Scope
    group_size: int
    group_from: str
    seed: int
    players: Mapping[str, PlayerReport]
    flags: tuple[FlagRow, ...]
    never: int
    unsolved: tuple[Unsolved, ...]
    cutoff: Cutoff | None
    perturbed: Perturbed | None
    signs: Signs
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The shape that ``tiltyard report --json`` prints."""
        return {
            "episodes": self.episodes,
            "runs": self.runs,
            "steps": self.steps,
            "scope": {"run": self.scope.run, "player": self.scope.player},
            "group_size": self.group_size,
            "group_from": self.group_from,
            "seed": self.seed,
            "players": {name: player.as_json() for name, player in self.players.items()},
            "flags": [
                {"flag": f.flag, "player": f.player, "task": f.task, "count": f.count} for f in self.flags
            ],
            "never_solved": {"tasks": self.never, "shown": [u.as_json() for u in self.unsolved]},
            "cutoff": self.cutoff.as_json() if self.cutoff else None,
            "perturbed": self.perturbed.as_json() if self.perturbed else None,
            "contamination": self.signs.as_json(),
            "notes": list(self.notes),
        }


def report(
    store: Store | str | os.PathLike[str],
    *,
    run: str = "",
    player: str = "",
    cutoff: str | None = None,
    group_size: int | None = None,
    pool: Any = None,
    unsolved_shown: int = MAX_UNSOLVED,
    seed: int = 0,
) -> Report:
    """What the episodes of a store say: of one run (an id, or the beginning of one), of one player, or all.

    ``group_size`` None: the largest group that was played, else 8. ``pool`` (anything that ``tiltyard.pool.load`` takes) says where the tasks are now, if not
    where the records say. ``seed`` is that of the bootstrap. Raises UsageError: no store, no such run or player, no episode,
    a date that is none.
    """
    if cutoff is not None:
        parse_cutoff(cutoff)
    if group_size is not None and not 1 <= group_size <= MAX_GROUP:
        raise UsageError(f"a group of {group_size}; expected 1 to {MAX_GROUP}")
    if isinstance(store, Store):
        return _report(store, run, player, cutoff, group_size, pool, unsolved_shown, seed)
    with open_store(store) as opened:
        return _report(opened, run, player, cutoff, group_size, pool, unsolved_shown, seed)


def open_store(where: str | os.PathLike[str]) -> Store:
    """The store for reading; an older one is brought up to date first, or UsageError where it may not be written."""
    opened = Store(where, readonly=True)
    if not opened.older:
        return opened
    opened.close()
    Store(where, create=False).close()
    return Store(where, readonly=True)


def _report(
    store: Store,
    run: str,
    player: str,
    cutoff: str | None,
    group_size: int | None,
    pool: Any,
    shown: int,
    seed: int,
) -> Report:
    with store.snapshot() as connection:
        scope = Scope(resolve_run(connection, run) if run else "", player)
        found = gather(connection, scope)
        k, origin = _group(found, group_size)
        players = {name: player_report(name, tally, k, seed) for name, tally in found.players.items()}
        digests = {row.digest for p in players.values() for row in p.tasks}
        known = known_tasks(found.pools, digests, pool)
        return Report(
            episodes=found.episodes,
            runs=found.runs,
            steps=found.steps,
            scope=scope,
            group_size=k,
            group_from=origin,
            seed=seed,
            players=players,
            flags=_flags(players),
            never=len(never_solved(players)),
            unsolved=unsolved(connection, scope, players, known.tasks, most=shown),
            cutoff=compare(cutoff, players.values(), known.tasks) if cutoff is not None else None,
            perturbed=compare_perturbed(players.values(), known.tasks, seed),
            signs=signs(connection, scope, known.tasks),
            notes=_notes(found, known),
        )


def _group(found: Gathered, asked: int | None) -> tuple[int, str]:
    if asked is not None:
        return asked, "asked"
    largest = max(player.largest_group for player in found.players.values())
    return (min(largest, MAX_GROUP), "runs") if largest > 1 else (DEFAULT_GROUP, "default")


def _flags(players: Mapping[str, PlayerReport]) -> tuple[FlagRow, ...]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for name, player in players.items():
        for row in player.tasks:
            for flag, count in row.flags.items():
                counts[flag, name, row.task] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(FlagRow(flag, name, task, count) for (flag, name, task), count in ordered)


def _notes(found: Gathered, known: Known) -> tuple[str, ...]:
    notes = list(known.notes)
    for name, player in found.players.items():
        digests = Counter(task for task, _ in player.tasks)
        if changed := sorted(task for task, n in digests.items() if n > 1):
            some = ", ".join(changed[:5])
            notes.append(
                f"{name} played {len(changed)} tasks in several versions, which are kept apart: {some}"
            )
    return tuple(notes)
