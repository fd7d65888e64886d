"""The tasks themselves, where they can be had: a store keeps only their ids and digests.

Promises: a task is only used if its digest is the one that was played; a pool that has moved or changed is named, with
what to do, and never an error: a report without it says less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tiltyard.errors import TiltyardError
from tiltyard.pool import load
from tiltyard.task import Task


@dataclass(frozen=True, slots=True)
class Known:
    """``tasks`` by digest. ``missing`` counts the played tasks that could not be had, ``notes`` say why."""

    tasks: Mapping[str, Task] = field(default_factory=dict)
    missing: int = 0
    notes: tuple[str, ...] = ()


def known_tasks(specs: Iterable[str], digests: Iterable[str], pool: Any = None) -> Known:
    """The tasks with these digests, from the pools that they were played on, or from ``pool`` where that is given.
    A ``pool`` that can't be loaded raises, for it was asked for by name."""
    wanted = set(digests)
    found: dict[str, Task] = {}
    notes = []
    if pool is not None:
        found = {task.digest: task for task in load(pool) if task.digest in wanted}
    for spec in () if pool is not None else sorted(set(specs)):
        if not spec:
            notes.append("some tasks were given as Python objects; name their pool with --pool")
            continue
        try:
            found |= {task.digest: task for task in load(spec) if task.digest in wanted}
        except (TiltyardError, OSError) as error:
            first = str(error).split("\n")[0][:300]
            notes.append(f"the pool {spec} can't be loaded ({first}); name where it is now with --pool")
    missing = len(wanted - set(found))
    if missing:
        notes.append(
            f"{missing} of {len(wanted)} tasks are not in the pool as they were played; what needs the tasks "
            "themselves leaves them out"
        )
    return Known(found, missing, tuple(notes))
