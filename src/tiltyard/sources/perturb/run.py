"""Perturbing a pool: variants of every task, each validated before it is kept. Deterministic by seed, whatever the workers.

A variant is kept if it differs in what a player sees, its reference scores 1 and its start 0. Where all kinds together do
not come out so, they are tried one after the other, and what breaks the task is left out with the reason.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tiltyard.cells import make_wall, settled_name
from tiltyard.cells.protocol import Wall
from tiltyard.check.rename import libcst
from tiltyard.check.report import reference_problem, start_problem
from tiltyard.errors import ArenaError, TaskError, UsageError
from tiltyard.pool import Pool, load
from tiltyard.referee import Referee
from tiltyard.sources.lineage import HOW, OF, OF_DIGEST, lineage
from tiltyard.sources.perturb.constants import other_constants
from tiltyard.sources.perturb.model import KINDS, CantError, Change, Made, PerturbReport
from tiltyard.sources.perturb.rename import rename
from tiltyard.sources.perturb.reorder import reorder
from tiltyard.sources.perturb.walk import CLASS, FUNCTION, METHOD, PARAM
from tiltyard.sources.perturb.wording import reword
from tiltyard.task import Task
from tiltyard.verdict import Verdict
from tiltyard.workers import Interrupted, Progress, Stop, work_all

ORDER = ("prompt", "constants", "rename", "files", "reorder")
"""In which kinds are done: words first, for constants and names are then changed in the new ones too."""
MAX_COUNT = 1000
_CANT = (CantError, TaskError, SyntaxError, ValueError, RecursionError)
_FEWER: tuple[frozenset[str], ...] = (
    frozenset({FUNCTION, CLASS, METHOD, PARAM}),
    frozenset({FUNCTION, CLASS}),
)
"""What ``rename`` is tried with where all names at once break a task."""


@dataclass(frozen=True, slots=True)
class Job:
    """One variant to make. ``prompt``: its prompt as a model reworded it, "" if none did; ``no_prompt``: why not."""

    task: Task
    variant: int
    prompt: str = ""
    no_prompt: str = ""


def perturb(
    pool: Any,
    *,
    tasks: Sequence[str] = (),
    tags: Sequence[str] = (),
    kinds: Sequence[str] = ("rename", "prompt"),
    seed: int = 0,
    count: int = 1,
    wall: str = "auto",
    workers: int = 1,
    words: Callable[[Sequence[Task], int], Sequence[tuple[str, str]]] | None = None,
    progress: Progress | None = None,
) -> PerturbReport:
    """``count`` variants of each task of ``pool``, with these ``kinds`` of changes where they apply.

    ``words`` rewords prompts in place of the templates (``tiltyard.sources.perturb.by_model``): it is given the tasks, one
    for each variant, and says for each the new prompt and, where there is none, why. Raises UsageError, ArenaError where
    no cell can be had, and :class:`Interrupted` with the report so far.
    """
    _check(kinds, count)
    libcst("perturbing needs")
    chosen = load(pool, tasks=tasks, tags=tags)
    wall_name = settled_name(wall)
    begun = time.monotonic()
    jobs = [Job(task, n) for task in chosen for n in range(1, count + 1)]
    found: dict[int, Made] = {}

    def report() -> PerturbReport:
        made = _differing([found[n] for n in sorted(found)])
        seconds = time.monotonic() - begun
        asked = tuple(kind for kind in KINDS if kind in kinds)
        return PerturbReport(chosen.name, seed, asked, len(jobs), tuple(made), wall_name, seconds)

    if words is not None and "prompt" in kinds:
        try:
            worded = words([job.task for job in jobs], seed)
        except KeyboardInterrupt:
            raise Interrupted(report(), signal.SIGINT) from None
        jobs = [replace(j, prompt=p, no_prompt=why) for j, (p, why) in zip(jobs, worded, strict=True)]
    stopped = _all(jobs, partial(_Bench, wall_name, tuple(kinds), seed), workers, found, progress)
    if stopped is not None:
        raise Interrupted(report(), stopped.signum)
    return report()


def _check(kinds: Sequence[str], count: int) -> None:
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown or not kinds:
        raise UsageError(f"kinds: found {', '.join(unknown) or 'none'}; expected some of {', '.join(KINDS)}")
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_COUNT:
        raise UsageError(f"count: found {count!r}; expected a whole number from 1 to {MAX_COUNT}")


def _all(
    jobs: list[Job],
    make: Callable[[], _Bench],
    workers: int,
    found: dict[int, Made],
    progress: Progress | None,
) -> Stop | None:
    """Do the jobs, adding to ``found``. Returns the Stop if it was asked for before all were done."""

    def lost(job: Job, reason: str) -> Made:
        return Made(job.task.id, job.variant, None, reason=f"void: {reason}")

    return work_all(
        jobs, make, found.__setitem__, lost, workers=workers, deadline_s=_deadline_s, progress=progress
    )


def _deadline_s(job: Job) -> float:
    """Far more than it can honestly take."""
    return 120.0 + 3 * job.task.limits.grade_s * 2 * (len(KINDS) + 3)


def _differing(made: list[Made]) -> list[Made]:
    """Variants of a task that came out the same count once."""
    seen: set[str] = set()
    out = []
    for one in made:
        digest = None if one.task is None else replace(one.task, id=one.of).digest
        if digest in seen:
            one = replace(one, task=None, kinds=(), reason="the same as another variant")
        elif digest is not None:
            seen.add(digest)
        out.append(one)
    return out


def as_pool(pool: Pool, report: PerturbReport, *, originals: bool = False) -> Pool:
    """The variants as a pool, each behind its original if ``originals``. UsageError: there is none."""
    by_task: dict[str, list[Task]] = {}
    for one in report.made:
        if one.task is not None:
            by_task.setdefault(one.of, []).append(one.task)
    tasks: list[Task] = []
    for task in pool:
        tasks += [task] if originals and task.id in by_task else []
        tasks += by_task.get(task.id, [])
    if not tasks:
        raise UsageError(f"no task of {report.pool} could be perturbed; there is nothing to write")
    made = Pool(f"{pool.name}-perturbed", 0, tuple(tasks))
    return Pool(made.name, made.digest[:12], made.tasks)


class _Bench:
    """What a worker holds: the wall and its referee."""

    def __init__(self, wall: str, kinds: tuple[str, ...], seed: int) -> None:
        self.wall: Wall = make_wall(wall)
        self.referee = Referee(self.wall)
        self.kinds = tuple(kind for kind in ORDER if kind in kinds)
        self.seed = seed

    def close(self) -> None:
        self.wall.close()

    def __call__(self, job: Job) -> Made:
        try:
            return self._variant(job)
        except ArenaError as error:
            return Made(job.task.id, job.variant, None, reason=f"void: {error}")

    def _variant(self, job: Job) -> Made:
        task, left_out = job.task, dict[str, str]()
        current, applied = self._apply(job, task, self.kinds, left_out)
        if not applied:
            return Made(task.id, job.variant, None, left_out=left_out, reason="no kind of change applies")
        problem = self._problem(current)
        if problem is not None:
            if (own := self._problem(task)) is not None:
                return Made(task.id, job.variant, None, reason=f"the original is unfit: {_short(own)}")
            current, applied = self._one_by_one(job, tuple(applied), left_out)
            if not applied:
                return Made(
                    task.id,
                    job.variant,
                    None,
                    left_out=left_out,
                    reason=f"no change left it fit: {_short(problem)}",
                )
        if not _seen_differs(task, current):
            return Made(
                task.id,
                job.variant,
                None,
                left_out=left_out,
                reason="nothing that a player sees would differ",
            )
        kept = with_lineage(current, task, tuple(applied), self.seed, job.variant)
        shown = tuple(kind for kind in KINDS if kind in applied)
        return Made(task.id, job.variant, kept, shown, left_out, details=applied)

    def _apply(
        self, job: Job, task: Task, kinds: Sequence[str], left_out: dict[str, str]
    ) -> tuple[Task, dict[str, str]]:
        """The task with all of these kinds that apply, and what each did."""
        applied: dict[str, str] = {}
        for kind in kinds:
            try:
                change = self._change(job, task, kind)
            except _CANT as error:
                left_out[kind] = _why(error)
                continue
            task, applied[kind] = change.task, change.detail
        return task, applied

    def _change(self, job: Job, task: Task, kind: str, only: frozenset[str] = frozenset()) -> Change:
        seed = f"{self.seed} {job.task.digest} {job.variant} {kind}"
        rng = random.Random(seed)
        if kind == "prompt":
            if job.prompt:
                return Change(replace(task, prompt=job.prompt), "reworded by a model")
            if job.no_prompt:
                raise CantError(job.no_prompt)
            return reword(task, rng)
        if kind == "constants":
            return other_constants(self.wall, task, rng)
        if kind == "reorder":
            return reorder(task, seed)
        return rename(task, rng, files=kind == "files", only=only)

    def _one_by_one(
        self, job: Job, kinds: Sequence[str], left_out: dict[str, str]
    ) -> tuple[Task, dict[str, str]]:
        """Kind after kind, each kept only if the task stays fit."""
        task, applied = job.task, dict[str, str]()
        for kind in kinds:
            for only in (frozenset[str](), *(_FEWER if kind == "rename" else ())):
                try:
                    change = self._change(job, task, kind, only)
                except _CANT as error:
                    left_out[kind] = _why(error)
                    break
                problem = self._problem(change.task)
                if problem is None:
                    task, applied[kind] = change.task, change.detail
                    left_out.pop(kind, None)
                    break
                left_out[kind] = f"unfit with it: {_short(problem)}"
        return task, applied

    def _problem(self, task: Task) -> str | None:
        """Why a task is unfit, or None. ArenaError: the arena failed."""
        reference = reference_problem(self._grade(task, task.reference.over(task.start)))
        return reference or start_problem(self._grade(task, task.start))

    def _grade(self, task: Task, files: Any) -> Verdict:
        verdict = self.referee.grade(task, files)
        if verdict.void is not None:
            raise ArenaError(verdict.void)
        return verdict


def _why(error: Exception) -> str:
    if isinstance(error, (CantError, TaskError)):
        return _short(str(error))
    return f"what was made of it is no Python ({type(error).__name__})"


def _short(text: str) -> str:
    """A reason that can be counted: without what is special to one test."""
    first = " ".join(text.split())
    return first if len(first) <= 160 else first[:159] + "…"


def _seen_differs(old: Task, new: Task) -> bool:
    return (old.prompt, old.start, old.visible) != (new.prompt, new.start, new.visible)


def with_lineage(task: Task, of: Task, kinds: Sequence[str], seed: int, variant: int) -> Task:
    """The task under a new id, with where it comes from in its metadata: the first original, if ``of`` is a variant."""
    known = dict(of.metadata.extra)
    id, digest = lineage(of.metadata) or (of.id, of.digest)
    how = f"{'+'.join(kinds)} seed={seed} variant={variant}"
    made = {OF: id, OF_DIGEST: digest, HOW: "; ".join(filter(None, [known.get(HOW, ""), how]))}
    metadata = replace(of.metadata, extra=tuple(sorted((known | made).items())))
    return replace(task, id=f"{of.id}~s{seed}v{variant}", metadata=metadata)
