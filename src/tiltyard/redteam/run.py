"""``redteam``: every exploit that fits a task, played against it, and what came of it.

Promises: each planned case is in the report exactly once: played, or skipped with the reason; what can't be played is
never counted as held. A case that takes its worker with it, or never comes back, is found out by playing its batch
again case by case, and is harm. Never: changes a task, or excuses a case because of the wall that it is played on.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from tiltyard.cells import make_wall
from tiltyard.errors import UsageError
from tiltyard.pool import Pool, load
from tiltyard.redteam import stock
from tiltyard.redteam.case import KINDS, Case
from tiltyard.redteam.folder import Corpus, read_corpus
from tiltyard.redteam.grader import Grader, make_grader
from tiltyard.redteam.own import own_cases
from tiltyard.redteam.play import REAL_WALLS, Batch, BatchResult, Bench, Setup, bound_s
from tiltyard.redteam.report import CaseResult, ControlResult, Report
from tiltyard.task import Files, Task
from tiltyard.tools.definitions import tools_of
from tiltyard.workers import Done, Interrupted, Progress, Stop, work

BATCH = 10
FEW = 2
"""Tasks of a pool against which cases are played that have nothing to do with the task."""
CONTROL_MARK = b"\n# the same again\n"


def redteam(
    pool: Any = "builtin",
    *,
    corpus: str | Path | None = None,
    wall: str = "auto",
    cases: Sequence[str] = (),
    tasks: Sequence[str] = (),
    tags: Sequence[str] = (),
    workers: int = 1,
    grader: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Play exploits and say what they earned and harmed.

    Without ``corpus``: our own exploits, on every task of ``pool`` (whatever ``tiltyard.pool.load`` takes) that they
    fit. With it: the cases of that folder, on its own tasks. ``cases`` are patterns for their names. ``grader`` is a
    command, or the name of an adapter, to be judged in the place of the arena (docs/redteam.md). Raises UsageError for
    what is malformed, ArenaError where no cell can be had, and :class:`Interrupted` with the report so far.
    """
    if workers < 1:
        raise UsageError(
            f"found {workers} workers; expected at least 1, for exploits are played in a process apart"
        )
    judge = None if grader is None else make_grader(grader, wall)
    asked = wall if judge is None else judge.wall
    probe = make_wall(asked)
    wall_name, weaknesses = probe.name if asked == "auto" else asked, probe.weaknesses
    probe.close()
    if corpus is not None:
        whole = read_corpus(corpus)
        chosen, honest, wrong = list(whole.cases), _by_task(whole.honest), _by_task(whole.wrong)
    else:
        loaded = load(pool, tasks=tasks, tags=tags)
        whole = _own_corpus(loaded)
        chosen = list(whole.cases)
        honest = {task.id: (("honest", _honest(task)),) for task in loaded}
        wrong = {task.id: (("untouched", Files()),) for task in loaded}
    if cases:
        chosen = [case for case in chosen if any(fnmatchcase(case.name, glob) for glob in cases)]
        if not chosen:
            raise UsageError(f"no case matches {' or '.join(map(repr, cases))}")
    skipped = [
        CaseResult(case.name, case.task, case.about, skipped=why)
        for case in chosen
        if (why := _unplayable(case, whole, judge)) is not None
    ]
    names = {result.name for result in skipped}
    batches = list(_batches([case for case in chosen if case.name not in names], honest, wrong))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tiltyard-redteam-", ignore_cleanup_errors=True) as root:
        Path(root).chmod(0o755)  # what has no wall around it must be able to reach the canary
        setup = Setup(
            wall=wall_name,
            tasks=whole.tasks,
            root=Path(root),
            make=None if judge is None else judge.subject,
            python=None if judge is None else judge.python,
            timed=whole.timed,
            secrets=whole.secrets,
        )
        before = stock.take(Path(root))
        try:
            found, controls, interrupted = _play(batches, setup, workers, progress)
        finally:
            if (
                wall_name not in REAL_WALLS
            ):  # behind others nothing can have come out; and another run's is not ours
                stock.remove_marked(before)
    in_order = [case.name for case in chosen]
    results = sorted([*found, *skipped], key=lambda result: in_order.index(result.name))
    report = Report(
        pool=whole.name,
        wall=wall_name,
        results=tuple(results),
        controls=tuple(controls),
        planned=len(chosen),
        seconds=time.monotonic() - begun,
        weaknesses=weaknesses,
        grader=grader or "",
    )
    if interrupted is not None:
        raise Interrupted(report, interrupted.signum)
    return report


def _own_corpus(pool: Pool) -> Corpus:
    """Our own exploits on each task of a pool; those that have nothing to do with a task on a few of them."""
    played: dict[str, int] = {}
    cases: list[Case] = []
    for task in pool:
        for case in own_cases(task):
            bare = case.name.partition("@")[0]
            if case.once and played.get(bare, 0) >= FEW:
                continue
            played[bare] = played.get(bare, 0) + 1
            cases.append(case)
    if not cases:
        raise UsageError(f"no exploit fits a task of {pool.name}")
    return Corpus(pool.name, tuple(cases), {task.id: task for task in pool})


def _honest(task: Task) -> Files:
    """The reference with a remark, so that it is another submission than the reference itself."""
    path = next((path for path in (task.main, *task.reference) if path in task.reference), "")
    if not path.endswith(".py") or path in task.protected:
        return task.reference
    return Files({**task.reference, path: task.reference[path] + CONTROL_MARK})


def _by_task(controls: Iterable[Case]) -> dict[str, tuple[tuple[str, Files], ...]]:
    found: dict[str, tuple[tuple[str, Files], ...]] = {}
    for control in controls:
        found[control.task] = (*found.get(control.task, ()), (control.name, control.files))
    return found


def _unplayable(case: Case, corpus: Corpus, judge: Grader | None) -> str | None:
    """Why a case can't be played here, or None."""
    if case.kind not in KINDS:
        return f"unknown kind {case.kind!r}; this build knows {', '.join(KINDS)}"
    if case.min_python > sys.version_info[: len(case.min_python)]:
        return f"needs Python {'.'.join(map(str, case.min_python))}"
    if case.kind == "tool":
        if judge is not None:
            return "uses tools, and a grader only grades"
        if missing := sorted(case.tools - {tool.name for tool in tools_of(corpus.tasks[case.task].shell)}):
            return f"needs the tool {', '.join(missing)}, which this task does not give"
    if judge is not None:
        return judge.why_not(corpus.tasks[case.task])
    return None


def _batches(
    cases: Iterable[Case],
    honest: dict[str, tuple[tuple[str, Files], ...]],
    wrong: dict[str, tuple[tuple[str, Files], ...]],
) -> Iterable[Batch]:
    by_task: dict[str, list[Case]] = {}
    for case in cases:
        by_task.setdefault(case.task, []).append(case)
    for task, those in by_task.items():
        for at in range(0, len(those), BATCH):
            yield Batch(task, tuple(those[at : at + BATCH]), honest.get(task, ()), wrong.get(task, ()))


def _play(
    batches: list[Batch], setup: Setup, workers: int, progress: Progress | None
) -> tuple[list[CaseResult], list[ControlResult], Stop | None]:
    """Play all; a batch whose worker was lost is played again, case by case. The Stop if it was asked for before."""
    found: list[CaseResult] = []
    controls: list[ControlResult] = []
    planned = sum(len(batch.cases) for batch in batches)
    if progress is not None:
        progress.begin(planned)
    try:
        with Stop() as stop:
            again: list[Batch] = []
            for jobs in (batches, again):
                make = partial(Bench, setup)
                for result in work(
                    list(jobs), make, workers=workers, stop=stop, deadline_s=partial(_deadline_s, setup)
                ):
                    batch = jobs[result.job]
                    if isinstance(result, Done):
                        done: BatchResult = result.value
                        controls += done.controls
                        ended = list(done.cases)
                    elif len(batch.cases) > 1:
                        again += [replace(batch, cases=(case,)) for case in batch.cases]
                        continue
                    else:
                        case, why = batch.cases[0], result.reason
                        harm = (f"the grading hung or was brought down: {why}",)
                        ended = [CaseResult(case.name, case.task, case.about, void=why, harm=harm)]
                    found += ended
                    if progress is not None:
                        for one in ended:
                            progress.advance(one)
    finally:
        if progress is not None:
            progress.end()
    return found, controls, stop if len(found) < planned else None


def _deadline_s(setup: Setup, batch: Batch) -> float:
    """When a batch's worker is given up. A batch of several is looked at again case by case, so it may be short."""
    task = setup.tasks[batch.task]
    each = bound_s(task) * max(1, *(case.episodes for case in batch.cases))
    return each * 2 + 30.0 * len(batch.cases)
