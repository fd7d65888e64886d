"""A run that goes on: which one, whether it still is the same, and what of it was played.

Never: changes a run. What is void counts as not played.
"""

from __future__ import annotations

from typing import Any

from tiltyard.errors import UsageError
from tiltyard.players.model import ModelPlayer
from tiltyard.pool import Pool
from tiltyard.records import RunRecord, Store
from tiltyard.rollout.summary import EpisodeResult


def stored_run(store: Store, id: str) -> RunRecord:
    """The run with this id, or with an id that begins so. Raises UsageError."""
    wanted = id if id.startswith("r-") else f"r-{id}"
    found = [run for run in store.runs() if run.id.startswith(wanted)]
    exact = [run for run in found if run.id == wanted]
    if len(exact or found) == 1:
        return (exact or found)[0]
    known = ", ".join(run.id for run in store.runs()[-5:]) or "none"
    what = f"several runs whose id begins with {id!r}" if found else f"no run {id!r}"
    raise UsageError(f"found {what} in {store.where}; the newest there: {known}")


def resumable(store: Store | None, id: str, pool: Pool, name: str, player: Any) -> RunRecord:
    """The run that goes on. Raises UsageError if it can't: another pool, another player, other settings."""
    if store is None:
        raise UsageError("a run is resumed from its store; name it")
    run = stored_run(store, id)
    if run.player != name:
        raise UsageError(f"run {run.id} is one of {run.player}, not of {name}; resume it with that player")
    if run.pool_digest != pool.digest:
        raise UsageError(
            f"run {run.id} was played on other tasks ({run.pool_spec or run.pool}, digest {run.pool_digest[:12]}…, "
            f"and here {pool.digest[:12]}…); give the pool and the filters that it was begun with"
        )
    if isinstance(player, ModelPlayer):
        before, now = run.settings.get("model", {}), player.settings.as_dict()
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                raise UsageError(
                    f"run {run.id} was begun with {key} = {before.get(key)!r}, and goes on with "
                    f"{now.get(key)!r}; a run has one"
                )
    return run


def played(store: Store | None, run: str) -> dict[int, EpisodeResult]:
    """By number, the episodes of a run that are not void."""
    assert store is not None
    found = (record for record in store.episodes(run=run) if record.void is None)
    return {record.number: EpisodeResult.of(record, record.id) for record in found}
