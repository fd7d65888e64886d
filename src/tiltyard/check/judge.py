"""What a worker of a validation does: judge one task, by grading its start and its reference many times.

Promises: what is said of a task is what gradings showed, with the tests named; a void grading ends the judgement as void.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from tiltyard.cells import make_wall
from tiltyard.cells.protocol import Wall
from tiltyard.check.probes import probes as probes_of
from tiltyard.check.report import (
    TaskReport,
    difference,
    is_repository,
    lists_problem,
    needs_problem,
    reference_problem,
    start_problem,
    tried_problem,
    unlike,
)
from tiltyard.errors import ArenaError
from tiltyard.referee import Referee
from tiltyard.referee.pytest_settle import NothingCollectedError, Tried, is_settled, settle, without_tests
from tiltyard.task import Files, RewardRule, Task
from tiltyard.verdict import Verdict

HASH_SEEDS = (1, 2, 3, 4)
"""Beside 0. A set of two texts keeps its order under another seed in half of all cases; under all of these in 1/16."""


class _Void(Exception):
    """A grading was void; the reason is the message."""


@dataclass
class _Unsteady:
    """Ids of tests that end in different ways: from one grading to the next, or when they run in another order."""

    flaky: list[str] = field(default_factory=list)
    ordered: list[str] = field(default_factory=list)

    def add(self, verdicts: list[Verdict], *, order: bool = False) -> None:
        known = self.ordered if order else self.flaky
        known.extend(id for id in unlike(verdicts) if id not in known)


class Bench:
    """What a worker holds: a wall for each hash seed, opened when first needed."""

    def __init__(
        self,
        wall: str,
        repeats: int,
        reward: RewardRule | None,
        probes: bool = False,
        drop_flaky: bool = False,
    ) -> None:
        self.wall, self.repeats, self.reward, self.probes = wall, repeats, reward, probes
        self.drop_flaky = drop_flaky
        self.walls: dict[int, Wall] = {}
        self._referee(0)  # a wall that does not work is found here, before any task is blamed

    def _referee(self, hash_seed: int) -> Referee:
        if hash_seed not in self.walls:
            self.walls[hash_seed] = make_wall(self.wall, hash_seed=hash_seed)
        return Referee(self.walls[hash_seed], controls=True)

    def close(self) -> None:
        for wall in self.walls.values():
            wall.close()

    def __call__(self, task: Task) -> TaskReport:
        begun = time.monotonic()
        settled, tried, unsteady = task, tuple[Tried, ...](), _Unsteady()
        try:
            if not is_settled(task):
                self._referee(0)
                settled, tried = settle(self.walls[0], task)
            reason, unsteady = self._judge(settled)
            if reason:
                reason += tried_problem(tried) + needs_problem(task, reason)
            outcome = TaskReport(task.id, "unfit" if reason else "fit", reason or "", task.digest)
        except NothingCollectedError as nothing:
            reason = str(nothing)
            reason += needs_problem(task, reason)
            outcome = TaskReport(task.id, "unfit", reason, task.digest)
        except (_Void, ArenaError) as void:
            outcome = TaskReport(task.id, "void", str(void), task.digest)
        counted = {test.id for test in settled.hidden}
        return replace(
            outcome,
            seconds=time.monotonic() - begun,
            way=settled.way,
            flaky=tuple(unsteady.flaky),
            ordered=tuple(unsteady.ordered),
            expected=tuple(test.id for test in task.hidden if test.id not in counted),
        )

    def _judge(self, task: Task) -> tuple[str | None, _Unsteady]:
        """Why the task is unfit, or None; tests that waver are left out of it where that is wanted."""
        unsteady = _Unsteady()
        reason = self._examine(task, unsteady)
        while self.drop_flaky and (more := {*unsteady.flaky, *unsteady.ordered}):
            steady = without_tests(task, more)
            if not steady.fail_to_pass:
                if reason:
                    reason += "; without the tests that differ there is nothing left to make pass"
                break
            unsteady.flaky, unsteady.ordered = sorted(more), []
            reason = self._examine(steady, unsteady)
            if {*unsteady.flaky, *unsteady.ordered} == more:
                break
        return reason, unsteady

    def _examine(self, task: Task, unsteady: _Unsteady) -> str | None:
        """Why the task is unfit, or None."""
        start, reference = task.start, task.reference
        starts, references = [self._grade(task, start)], [self._grade(task, reference)]
        wrong = [
            (lists_problem(task, starts[0]) if is_repository(task) else None) or start_problem(starts[0]),
            reference_problem(references[0]),
        ]
        # a task that is wrong at once is tried once more, to tell a wrong one from a wavering one
        for _ in range(1 if any(wrong) and not self.drop_flaky else self.repeats - 1):
            starts.append(self._grade(task, start))
            references.append(self._grade(task, reference))
        for name, verdicts in (("start", starts), ("reference", references)):
            if (what := difference(verdicts)) is not None:
                unsteady.add(verdicts)
                return f"verdicts differ between repeats of the {name}: {what}"
        if any(wrong):
            return "; ".join(what for what in wrong if what)
        elsewhere = self._suite_elsewhere if is_repository(task) else self._elsewhere
        for name, files, verdict in (("reference", reference, references[0]), ("start", start, starts[0])):
            if what := elsewhere(task, name, files, verdict, unsteady):
                return what
        return self._probed(task) if self.probes else None

    def _elsewhere(
        self, task: Task, name: str, files: Files, verdict: Verdict, unsteady: _Unsteady
    ) -> str | None:
        """The same under other hash seeds, and in another order?"""
        for seed in HASH_SEEDS if name == "reference" else HASH_SEEDS[:1]:
            if what := self._differs(task, files, verdict, unsteady, seed):
                return f"the {name} differs under another hash seed ({seed}): {what}"
        if what := self._differs(task, files, verdict, unsteady, reverse=True):
            return f"the {name} differs with the tests in another order: {what}"
        return None

    def _suite_elsewhere(
        self, task: Task, name: str, files: Files, verdict: Verdict, unsteady: _Unsteady
    ) -> str | None:
        """As ``_elsewhere`` for a repository's suite: both at once, for it costs more than a function's tests, and a
        hash seed a fork server of each environment; apart if that differs. Gradings run a suite in its own order."""
        seed = HASH_SEEDS[0]
        if not (both := self._differs(task, files, verdict, _Unsteady(), seed, reverse=True)):
            return None
        if what := self._differs(task, files, verdict, unsteady, seed):
            return f"the {name} differs under another hash seed ({seed}): {what}"
        verdicts = [verdict, self._grade(task, files, order=_reversed(task))]
        if difference(verdicts) is not None:
            unsteady.add(verdicts, order=True)
            return None
        self._differs(task, files, verdict, unsteady, seed, reverse=True)
        return f"the {name} differs under another hash seed with the tests in another order: {both}"

    def _differs(
        self,
        task: Task,
        files: Files,
        verdict: Verdict,
        unsteady: _Unsteady,
        seed: int = 0,
        *,
        reverse: bool = False,
    ) -> str:
        order = _reversed(task) if reverse else None
        verdicts = [verdict, self._grade(task, files, hash_seed=seed, order=order)]
        what = difference(verdicts)
        if what is not None:
            unsteady.add(verdicts)
        return what or ""

    def _probed(self, task: Task) -> str | None:
        """Why a probe is not worth 1, or None."""
        for probe in probes_of(task):
            what = reference_problem(self._grade(task, probe.files))
            if what is not None:
                return what.replace("the reference", f"the reference {probe.name}", 1)
        return None

    def _grade(
        self, task: Task, files: Files, *, hash_seed: int = 0, order: tuple[int, ...] | None = None
    ) -> Verdict:
        verdict = self._referee(hash_seed).grade(task, files, reward=self.reward, order=order)
        if verdict.void is not None:
            raise _Void(verdict.void)
        return verdict


def _reversed(task: Task) -> tuple[int, ...]:
    return tuple(reversed(range(len(task.hidden))))
