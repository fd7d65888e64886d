"""Are a pool's hidden tests any good? Changes the references a little, and sees whether a test notices.

Promises: the same seed, the same mutants; what is reported of a surviving mutant is its diff and, where one was found, an
input that tells it from the reference. Never: changes a task, or calls a test wrong. Needs libcst.
"""

from __future__ import annotations

import difflib
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tiltyard.cells import make_wall, settled_name
from tiltyard.check.adequacy.differential import Compared, compare
from tiltyard.check.adequacy.model import AdequacyReport, Mutant, TaskAdequacy
from tiltyard.check.adequacy.unmentioned import unmentioned
from tiltyard.errors import ArenaError, UsageError
from tiltyard.mutate import Mutation, apply, mutations
from tiltyard.pool import Pool, load
from tiltyard.referee import Referee
from tiltyard.referee.inside.examiner import TIMED_OUT
from tiltyard.task import Files, Task
from tiltyard.verdict import Verdict
from tiltyard.workers import Interrupted, Progress, work_all

MUTANTS = 40
INPUTS = 200
PROGRAM_INPUTS = 80
WEAK = 0.9
MAX_MUTANTS = 5000


def adequacy(
    pool: Any,
    *,
    tasks: Sequence[str] = (),
    tags: Sequence[str] = (),
    mutants: int = MUTANTS,
    weak: float = WEAK,
    wall: str = "auto",
    workers: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> AdequacyReport:
    """Measure every task of ``pool`` (a Pool, or whatever ``tiltyard.pool.load`` takes) with up to ``mutants`` mutants.

    A task is weak if the share of mutants that a test noticed, among those not taken for equivalent, is below ``weak``.
    Raises UsageError, TaskError, ArenaError where no cell can be had, and :class:`Interrupted` with the report so far.
    """
    if isinstance(mutants, bool) or not isinstance(mutants, int) or not 1 <= mutants <= MAX_MUTANTS:
        raise UsageError(f"mutants: found {mutants!r}; expected a whole number from 1 to {MAX_MUTANTS}")
    if not 0 <= weak <= 1:
        raise UsageError(f"weak: found {weak!r}; expected a share from 0 to 1")
    chosen = pool if isinstance(pool, Pool) and not tasks and not tags else load(pool, tasks=tasks, tags=tags)
    mutations("")  # a libcst that is missing is missed before any work is done
    wall_name = settled_name(wall)
    jobs = list(chosen)
    begun = time.monotonic()
    found: dict[int, TaskAdequacy] = {}

    def report() -> AdequacyReport:
        in_order = tuple(found[n] for n in range(len(jobs)) if n in found)
        spent = time.monotonic() - begun
        return AdequacyReport(chosen.name, wall_name, seed, weak, in_order, len(jobs), spent)

    make = partial(_Bench, wall_name, mutants, seed)
    deadline_s = partial(_deadline_s, mutants)
    stopped = work_all(
        jobs, make, found.__setitem__, _void, workers=workers, deadline_s=deadline_s, progress=progress
    )
    if stopped is not None:
        raise Interrupted(report(), stopped.signum)
    return report()


def _deadline_s(mutants: int, task: Task) -> float:
    """Far more than it can honestly take."""
    return 600.0 + 3 * task.limits.grade_s + mutants * 120.0


def _void(task: Task, reason: str) -> TaskAdequacy:
    return TaskAdequacy(task.id, task.digest, problem=reason, void=True)


class _Bench:
    """What a worker holds: a warm wall and a referee."""

    def __init__(self, wall: str, mutants: int, seed: int) -> None:
        self.wall, self.mutants, self.seed = make_wall(wall), mutants, seed
        self.referee = Referee(self.wall)

    def close(self) -> None:
        self.wall.close()

    def __call__(self, task: Task) -> TaskAdequacy:
        begun = time.monotonic()
        try:
            measured = self._measure(task)
        except ArenaError as error:
            measured = _void(task, str(error))
        return replace(measured, seconds=time.monotonic() - begun)

    def _measure(self, task: Task) -> TaskAdequacy:
        findings = unmentioned(task)
        begun = time.monotonic()
        verdict = self.referee.grade(task, task.reference)
        took = time.monotonic() - begun
        if verdict.void is not None:
            return _void(task, verdict.void)
        if verdict.passed < verdict.total:
            problem = "the reference does not pass; see tiltyard validate"
            return TaskAdequacy(task.id, task.digest, findings=findings, problem=problem)
        every = all_mutations(task)
        picked = pick(every, self.mutants, f"{self.seed} {task.digest}")
        quick = hurried(task, took)
        graded = [(path, m, self._grade(quick, mutated(task, path, m))) for path, m in picked]
        survivors = [(path, m) for path, m, verdict in graded if _fate(verdict) == "survived"]
        compared = iter(self._compare(task, survivors))
        mutants = tuple(
            _judged(task, path, m, v, next(compared) if _fate(v) == "survived" else None)
            for path, m, v in graded
        )
        failed = Counter(id for m in mutants for id in m.killers)
        idle = tuple(t.id for t in task.hidden if not failed[t.id]) if failed else ()
        return TaskAdequacy(task.id, task.digest, len(every), mutants, findings, idle)

    def _grade(self, task: Task, files: Files) -> Verdict:
        """Once more after a time-out: what is slow by chance is so once."""
        verdict = self.referee.grade(task, files)
        late = any(o.reason == TIMED_OUT for o in verdict.outcomes)
        return self.referee.grade(task, files) if late else verdict

    def _compare(self, task: Task, survivors: list[tuple[str, Mutation]]) -> list[Compared]:
        reference = task.reference.over(task.start)
        changed = [mutated(task, path, m) for path, m in survivors]
        inputs = PROGRAM_INPUTS if task.grading == "stdio" else INPUTS
        return compare(self.wall, task, reference, changed, inputs=inputs, seed=f"{self.seed} {task.digest}")


def all_mutations(task: Task) -> list[tuple[str, Mutation]]:
    """Every mutation of every Python file of the reference that is not the same in the start."""
    found: list[tuple[str, Mutation]] = []
    for path, data in task.reference.items():
        if not path.endswith(".py") or task.start.get(path) == data:
            continue
        try:
            found += [(path, m) for m in mutations(data.decode())]
        except (UsageError, UnicodeDecodeError):
            continue  # a file that is no source: it can't be mutated, and its tests are measured by the others
    return found


def pick(every: list[tuple[str, Mutation]], most: int, seed: str) -> list[tuple[str, Mutation]]:
    """At most this many, drawn by the seed so that every operator has its share; in the order of the source."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    rng = random.Random(seed)
    for n, (_, mutation) in enumerate(every):
        groups[mutation.operator].append(n)
    for name in sorted(groups):
        rng.shuffle(groups[name])
    drawn: list[int] = []
    while len(drawn) < min(most, len(every)):
        for name in sorted(groups):
            if groups[name]:
                drawn.append(groups[name].pop())
    return [every[n] for n in sorted(drawn[:most])]


def mutated(task: Task, path: str, mutation: Mutation) -> Files:
    """The reference's files with one of them mutated, over the start."""
    source = task.reference[path].decode()
    return Files({**task.reference, path: apply(source, [mutation]).encode()}).over(task.start)


def hurried(task: Task, took: float) -> Task:
    """The task with time limits that suit its reference, which took ``took`` seconds for all tests together, so that a
    mutant that does not end is soon known for it."""
    most = 1.0 + 3 * took
    hidden = tuple(replace(t, time_s=min(t.time_s or task.limits.test_s, most)) for t in task.hidden)
    return replace(task, hidden=hidden, reward="all")


def _fate(verdict: Verdict) -> str:
    if verdict.void is not None:
        return "void"
    return "killed" if verdict.passed < verdict.total else "survived"


def _judged(task: Task, path: str, mutation: Mutation, verdict: Verdict, compared: Compared | None) -> Mutant:
    failed = [o for o in verdict.outcomes if not o.passed]
    match _fate(verdict):
        case "void":
            return Mutant(path, mutation, "void")
        case "killed":
            late = any(o.reason == TIMED_OUT for o in failed)
            killers = tuple(o.id for o in failed if not o.reason.startswith("not run"))
            return Mutant(path, mutation, "killed", killers=killers, timed_out=late)
    source = task.reference[path].decode()
    diff = unified(path, source, apply(source, [mutation]))
    if compared is None or compared.witness is not None or not compared.inputs:
        witness = None if compared is None else compared.witness
        return Mutant(path, mutation, "survived", diff, witness, compared.inputs if compared else 0)
    return Mutant(path, mutation, "equivalent", diff, None, compared.inputs)


def unified(path: str, before: str, after: str) -> str:
    """A unified diff with two lines around the change."""
    one, two = before.splitlines(), after.splitlines()
    lines = difflib.unified_diff(one, two, f"a/{path}", f"b/{path}", n=2, lineterm="")
    return "\n".join(lines) + "\n"
