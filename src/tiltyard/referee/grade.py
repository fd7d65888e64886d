"""From a submission to a verdict: the chosen way of grading, retried where the arena failed, and the reward rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tiltyard.cells.protocol import Wall
from tiltyard.environments import environment_wall
from tiltyard.errors import ArenaError, UsageError
from tiltyard.referee.calls import grade_calls
from tiltyard.referee.controls import FLAG, Control, as_task, control_of
from tiltyard.referee.pytest_settle import WAYS_OF_PYTEST, is_settled, settle
from tiltyard.referee.result import Allowed, Examined, Way
from tiltyard.referee.stdio import grade_stdio
from tiltyard.task import REWARD_RULES, Files, Grading, RewardRule, Task
from tiltyard.verdict import Outcome, Verdict

WAYS: dict[Grading, Way] = {"calls": grade_calls, "stdio": grade_stdio}
REMEMBERED = 4096
FAILED = ("assertion failed", "wrong output")


def way_of(task: Task) -> tuple[str, Way]:
    """The way of grading of a task in which nothing is left open, with the name that a verdict has for it."""
    if task.grading == "pytest":
        return f"pytest-{task.way}", WAYS_OF_PYTEST[task.way]
    return task.grading, WAYS[task.grading]


class Referee:
    """Grades submissions in cells of one wall. Safe to use from several threads; owns nothing that must be closed.

    ``controls``: a negative control (``referee.controls``) is put among the hidden tests of each grading; a submission
    that passes it gets 0 and a flag."""

    def __init__(self, wall: Wall, *, controls: bool = False) -> None:
        self._wall = wall
        self._controls = controls
        self._no_control: set[str] = set()
        self._liberties: dict[str, Allowed] = {}
        self._settled: dict[str, Task] = {}

    def grade(
        self,
        task: Task,
        files: Files,
        *,
        reward: RewardRule | None = None,
        order: Sequence[int] | None = None,
    ) -> Verdict:
        """The verdict on what a player handed in.

        ``files`` are the submission's files by path; protected files come from the task whatever is in them.
        ``reward`` overrides the task's rule. ``order`` is a permutation of the hidden tests' indices, in which they
        are run; outcomes are reported in the task's order. UsageError: ``order`` or ``reward`` make no sense.
        What a pytest task leaves open (see ``settled``) is found out first.
        """
        try:
            task = self.settled(task)
        except ArenaError as error:
            return Verdict(None, graded=task.grading, void=str(error))
        sequence = list(range(len(task.hidden))) if order is None else list(order)
        if sorted(sequence) != list(range(len(task.hidden))):
            raise UsageError(
                f"order is {sequence!r}; expected a permutation of the indices of {len(task.hidden)} hidden tests"
            )
        rule = reward or task.reward
        if rule not in REWARD_RULES:
            raise UsageError(f"reward is {rule!r}; expected one of {', '.join(REWARD_RULES)}")
        graded, _ = way_of(task)
        try:
            examined = self._grade(task, solution_files(task, files), sequence, rule == "all")
        except ArenaError as error:
            return Verdict(None, graded=graded, void=str(error))
        worth = 0.0 if FLAG in examined.flags else _reward(rule, examined.outcomes, task.pass_to_pass)
        return Verdict(worth, examined.outcomes, graded, tuple(sorted(examined.flags)))

    def settled(self, task: Task) -> Task:
        """The task with the hidden tests and the way of a suite that it leaves open; another one is itself. Found out
        once. ArenaError: the arena failed at it, or there is no test."""
        if is_settled(task):
            return task
        if task.digest not in self._settled:
            if len(self._settled) >= REMEMBERED:
                self._settled.clear()
            self._settled[task.digest] = settle(self._wall, task)[0]
        return self._settled[task.digest]

    def _grade(self, task: Task, files: Files, order: list[int], stop: bool) -> Examined:
        """Examine, and again where the solution took liberties that the reference does not take."""
        control = self._control(task)
        examined = self._examine(task, files, order, stop, control=control)
        if control is not None and examined.control_passed and self._holds(task, control):
            return replace(examined, flags=examined.flags | {FLAG})
        passed = {o.id for o in examined.outcomes if o.passed}
        taken = {
            i: examined.liberties[t.id]
            for i, t in enumerate(task.hidden)
            if t.id in passed & {*examined.liberties}
        }
        decided = stop and len(passed) < len(task.hidden)
        if not taken or decided or files == solution_files(task, task.reference):
            return examined
        allowed = self._liberties_of_reference(task)
        beyond = [i for i in order if i in taken and i in allowed and not taken[i] <= allowed[i]]
        if not beyond:
            return examined
        again = self._examine(task, files, beyond, stop, allowed)
        counts = {o.id: o for o in (*examined.outcomes, *again.outcomes)}
        flags = examined.flags | again.flags
        if not all(o.passed for o in again.outcomes):
            flags |= {"took_liberties"}
        return Examined(tuple(counts[t.id] for t in task.hidden), flags)

    def _control(self, task: Task) -> Control | None:
        wanted = self._controls and task.grading != "pytest" and task.digest not in self._no_control
        return control_of(task) if wanted else None

    def _holds(self, task: Task, control: Control) -> bool:
        """Whether the reference fails the control. One that it passes, or does not get to, counts against nobody."""
        [outcome] = self._examine(
            as_task(task, control), solution_files(task, task.reference), [0], True
        ).outcomes
        if outcome.reason in FAILED:
            return True
        self._no_control.add(task.digest)
        return False

    def _liberties_of_reference(self, task: Task) -> Allowed:
        """By index of a hidden test that the reference passes: the liberties that it takes there."""
        known = self._liberties.get(task.digest)
        if known is not None:
            return known
        found = self._examine(
            task, solution_files(task, task.reference), list(range(len(task.hidden))), False
        )
        nothing: frozenset[str] = frozenset()
        allowed = {i: found.liberties.get(o.id, nothing) for i, o in enumerate(found.outcomes) if o.passed}
        if len(allowed) == len(task.hidden):
            if len(self._liberties) >= REMEMBERED:
                self._liberties.clear()
            self._liberties[task.digest] = allowed
        return allowed

    def _examine(
        self,
        task: Task,
        files: Files,
        order: list[int],
        stop: bool,
        allowed: Allowed | None = None,
        control: Control | None = None,
    ) -> Examined:
        """Grade; again in fresh cells if the arena failed, or if a process ended, which a submission does again and
        chance does not. In doubt ask the reference. ArenaError: it is void."""
        way, failure, examined = way_of(task)[1], None, None
        wall = environment_wall(self._wall, task)
        with_control = {} if control is None else {"negative": control}
        for first in (True, False):
            try:
                examined, failure = way(wall, task, files, order, stop, allowed, **with_control), None
            except ArenaError as error:
                examined, failure = None, error
                continue
            if not examined.doubtful and not (examined.ended and first):
                return examined
        honest = solution_files(task, task.reference)
        if honest == files:
            raise failure or ArenaError("a test's process ended without a report on the reference too")
        reference = way(wall, task, honest, order, False)
        if examined is None:
            # the reference is graded in the very slot in which the submission could not be: it was the submission
            reason = "the grading did not survive the submission"
            outcomes = tuple(Outcome(task.hidden[i].id, False, reason) for i in sorted(order))
            return Examined(outcomes, frozenset({"broke_grading"}))
        if reference.doubtful & examined.doubtful:
            raise ArenaError("a test's process ended without a report on the reference too")
        return replace(examined, flags=examined.flags | {"broke_test"})


def solution_files(task: Task, files: Files) -> Files:
    """What lies in the solution's cell: the submission over the start files, and the protected files from the task."""
    protected = {path: task.start[path] for path in task.protected}
    kept = {path: data for path, data in task.start.items() if path not in files.removed}
    laid = {**kept, **files, **protected}
    return Files(without_clashes(laid, protected))


def without_clashes(files: dict[str, bytes], first: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out files whose path needs another file to be a folder; ``first`` wins against the others."""
    out = dict(first)
    folders = {p.rsplit("/", n)[0] for p in out for n in range(1, p.count("/") + 1)}
    for path, data in files.items():
        parents = {path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1)}
        if path in out or path in folders or parents & out.keys():
            continue
        out[path] = data
        folders |= parents
    return out


def _reward(rule: RewardRule, outcomes: tuple[Outcome, ...], pass_to_pass: tuple[str, ...] = ()) -> float:
    """All or nothing, or the share of tests that pass. What passes at the start (``pass_to_pass``) earns no share: if
    one of those no longer passes, the reward is 0."""
    kept = set(pass_to_pass)
    if rule == "all" or any(o.id in kept and not o.passed for o in outcomes):
        return 1.0 if outcomes and all(o.passed for o in outcomes) else 0.0
    counted = [o for o in outcomes if o.id not in kept]
    return sum(o.passed for o in counted) / len(counted) if counted else 0.0
