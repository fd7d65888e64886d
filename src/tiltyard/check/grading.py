"""Grading predictions: each patch on its task's pristine start, through the referee.

What comes out of a patch is graded like any submission, in fresh cells, with the task's own test files whatever the patch
says of them. Promises: what is wrong with a patch (no diff, does not apply, leads out of the workspace, too large) makes
it unresolved with the reason and is nothing that happens to the machine; a failure of the arena is an error and never
unresolved. Never: executes anything of a patch outside a cell, or lets one prediction reach another.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

from tiltyard import __version__, patches
from tiltyard.cells import make_wall, settled_name
from tiltyard.check.predictions import Prediction, read_predictions
from tiltyard.errors import UsageError
from tiltyard.pool import Pool, load
from tiltyard.pool.model import size_problems
from tiltyard.pool.repository import is_history
from tiltyard.referee import Referee
from tiltyard.task import Files, Task
from tiltyard.workers import Interrupted, Progress, Stop, work_all

GradedKind = Literal["resolved", "unresolved", "empty", "error"]
FORMAT = "tiltyard-grading-1"
MAX_REASON = 500
MAX_LINES = 200_000
MAX_FILES = 5_000
"""What takes seconds to apply and not hours, however it is made."""
FUZZ = 2
"""Lines of a hunk's context that may differ, as SWE-bench's own ``patch --fuzz`` lets them."""


@dataclass(frozen=True, slots=True)
class Graded:
    """How one prediction ended. ``failed`` are the hidden tests that it did not pass, of ``total``."""

    id: str
    outcome: GradedKind
    reason: str = ""
    failed: tuple[str, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class GradeReport:
    """``results`` in the pool's order. ``incomplete`` are tasks of the pool without a prediction, ``unknown`` predictions
    without a task; ``planned`` above the number of results means that it was interrupted."""

    pool: str
    digest: str
    models: tuple[str, ...]
    results: tuple[Graded, ...]
    incomplete: tuple[str, ...]
    unknown: tuple[str, ...]
    planned: int
    resumed: int = 0

    def ids(self, *outcomes: GradedKind) -> list[str]:
        return sorted(one.id for one in self.results if one.outcome in outcomes)

    def as_json(self) -> dict[str, Any]:
        """SWE-bench's report (its schema 2), and under ``tiltyard`` what it has no place for."""
        lists = {
            "completed": self.ids("resolved", "unresolved"),
            "resolved": self.ids("resolved"),
            "unresolved": self.ids("unresolved"),
            "empty_patch": self.ids("empty"),
            "error": self.ids("error"),
            "submitted": sorted(one.id for one in self.results),
        }
        counts = {f"{name}_instances": len(ids) for name, ids in lists.items()}
        return {
            "total_instances": len(self.results) + len(self.incomplete),
            **counts,
            **{f"{name}_ids": ids for name, ids in lists.items()},
            "incomplete_ids": sorted(self.incomplete),
            "schema_version": 2,
            "tiltyard": {
                "version": __version__,
                "pool": self.pool,
                "pool_digest": self.digest,
                "models": list(self.models),
                "unknown_ids": sorted(self.unknown),
                "reasons": {one.id: one.reason for one in self.results if one.reason},
                "failed_tests": {one.id: list(one.failed) for one in self.results if one.failed},
            },
        }


def grade(
    predictions: str | os.PathLike[str] | Sequence[Prediction],
    pool: Any,
    *,
    tasks: Sequence[str] = (),
    repos: str | os.PathLike[str] | None = None,
    wall: str = "auto",
    workers: int = 1,
    state: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> GradeReport:
    """Grade predictions (a file, or what ``read_predictions`` gave) against the tasks of ``pool``.

    ``state`` names a file to go on from and to add to; errors are tried again. Raises UsageError, and
    :class:`Interrupted` with the report so far."""
    given = (
        read_predictions(predictions) if isinstance(predictions, (str, os.PathLike)) else tuple(predictions)
    )
    chosen = pool if isinstance(pool, Pool) and not tasks else load(pool, tasks=tasks, repos=repos)
    by_id = {one.id: one for one in given}
    jobs = [(task, by_id[task.id]) for task in chosen if task.id in by_id]
    wall_name = settled_name(wall)
    kept = None if state is None else _State(Path(state), wall_name)
    found: dict[str, Graded] = {}
    if kept is not None:
        for task, one in jobs:
            if (old := kept.known.get(_key(task, one))) is not None:
                found[task.id] = old
    resumed = len(found)
    todo = [job for job in jobs if job[0].id not in found]
    todo.sort(key=lambda job: (job[0].metadata.python, job[0].metadata.packages))
    try:
        stopped = _all(todo, partial(_Bench, wall_name), workers, found, kept, progress)
    finally:
        if kept is not None:
            kept.close()
    ids = {task.id for task in chosen}
    report = GradeReport(
        chosen.name,
        chosen.digest,
        tuple(sorted({one.model for one in given if one.model})),
        tuple(found[task.id] for task, _ in jobs if task.id in found),
        tuple(id_ for id_ in chosen.ids if id_ not in by_id),
        # rows that a filter left out are no strangers
        tuple(one.id for one in given if one.id not in ids) if not tasks else (),
        len(jobs),
        resumed,
    )
    if stopped is not None:
        raise Interrupted(report, stopped.signum)
    return report


def _all(
    jobs: list[tuple[Task, Prediction]],
    make: partial[_Bench],
    workers: int,
    found: dict[str, Graded],
    kept: _State | None,
    progress: Progress | None,
) -> Stop | None:
    def keep(number: int, graded: Graded) -> None:
        task, prediction = jobs[number]
        found[task.id] = graded
        if kept is not None:
            kept.add(_key(task, prediction), graded)

    def lost(job: tuple[Task, Prediction], reason: str) -> Graded:
        return Graded(job[0].id, "error", reason)

    return work_all(jobs, make, keep, lost, workers=workers, deadline_s=_deadline_s, progress=progress)


def _deadline_s(job: tuple[Task, Prediction]) -> float:
    return 120.0 + 8 * job[0].limits.grade_s


class _Bench:
    """What a worker holds."""

    def __init__(self, wall: str) -> None:
        self.wall = make_wall(wall)
        self.referee = Referee(self.wall, controls=True)

    def close(self) -> None:
        self.wall.close()

    def __call__(self, job: tuple[Task, Prediction]) -> Graded:
        task, prediction = job
        try:
            files = submission_of(task, prediction)
        except NothingInItError:
            return Graded(task.id, "empty")
        except UsageError as error:
            return Graded(task.id, "unresolved", str(error)[:MAX_REASON])
        verdict = self.referee.grade(task, files, reward="all")
        if verdict.void is not None:
            return Graded(task.id, "error", verdict.void)
        failed = tuple(outcome.id for outcome in verdict.outcomes if not outcome.passed)
        if verdict.reward == 1.0:
            return Graded(task.id, "resolved", total=verdict.total)
        first = next((f"{o.id}: {o.reason or 'failed'}" for o in verdict.outcomes if not o.passed), "")
        said = "; ".join([*([first] if first else []), *verdict.flags])
        return Graded(task.id, "unresolved", said[:MAX_REASON], failed, verdict.total)


class NothingInItError(UsageError):
    """A patch that is empty."""


def submission_of(task: Task, prediction: Prediction) -> Files:
    """The files that a prediction hands in, with those that it takes away. UsageError: its patch is none, does not apply,
    or makes more than the task's limits allow."""
    if prediction.problem:
        raise UsageError(f"found {prediction.problem}; expected a unified diff as text")
    if prediction.patch is None or not prediction.patch.strip():
        raise NothingInItError("the patch is empty")
    if (lines := prediction.patch.count("\n")) > MAX_LINES:
        raise UsageError(f"found a patch of {lines} lines; expected at most {MAX_LINES}")
    if (files := prediction.patch.count("\n+++ ")) > MAX_FILES:
        raise UsageError(f"found a patch of {files} files; expected at most {MAX_FILES}")
    before = task.start
    try:
        after = patches.apply(prediction.patch, before, fuzz=FUZZ)
    except (ValueError, LookupError, TypeError, RecursionError, MemoryError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"found a patch that can't be read ({type(error).__name__})") from None
    was, now = before.digests, after.digests
    changed = {
        path: after[path] for path, sha in now.items() if was.get(path) != sha and not is_history(path)
    }
    removed = {path for path in was if path not in now}
    for problem in size_problems(after, "patch", task.limits, task.id):
        raise UsageError(f"the patch makes {problem.found}; expected {problem.expected}")
    return Files(changed, removed)


# -- what is known from before -----------------------------------------------------------------------------------

_Key = tuple[str, str, str]


def _key(task: Task, prediction: Prediction) -> _Key:
    patch = hashlib.sha256((prediction.patch or prediction.problem).encode("utf-8", "replace")).hexdigest()
    return task.id, task.digest, patch


class _State:
    """Gradings that are known, and a place to add to: one JSON object a line; a cut line is ignored."""

    def __init__(self, path: Path, wall: str) -> None:
        self.known: dict[_Key, Graded] = {}
        self.wall = wall
        try:
            data = path.read_bytes() if path.exists() else b""
            self._read(data, path)
            self._file: IO[str] = path.open("a", encoding="utf-8")
            if not data:
                self._line({"format": FORMAT})
            elif not data.endswith(b"\n"):
                self._file.write("\n")
        except OSError as error:
            raise UsageError(
                f"the state file {path} can't be used: {error.strerror}; name another one"
            ) from None

    def _read(self, data: bytes, path: Path) -> None:
        lines = data.split(b"\n")
        if data and _object(lines[0]).get("format") != FORMAT:
            raise UsageError(f"{path} is no state file of a grading; name another one, or remove it")
        for line in lines[1:]:
            entry = _object(line)
            key, end = entry.get("key"), entry.get("graded")
            if entry.get("wall") != self.wall or not isinstance(key, list) or not isinstance(end, dict):
                continue
            if end.get("outcome") in ("resolved", "unresolved", "empty") and len(key) == 3:
                graded = Graded(
                    str(key[0]),
                    end["outcome"],
                    str(end.get("reason", "")),
                    tuple(map(str, end.get("failed", ()))),
                    int(end.get("total", 0)),
                )
                self.known[(str(key[0]), str(key[1]), str(key[2]))] = graded

    def add(self, key: _Key, graded: Graded) -> None:
        """Keep one, at once."""
        end = {
            "outcome": graded.outcome,
            "reason": graded.reason,
            "failed": list(graded.failed),
            "total": graded.total,
        }
        self._line({"key": list(key), "graded": end, "wall": self.wall})

    def _line(self, entry: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _object(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}
