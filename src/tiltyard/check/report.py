"""What validation found. Data, and the pure judgement from verdicts to an outcome with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tiltyard.environments import environment_of
from tiltyard.referee.pytest_settle import Tried
from tiltyard.task import Task
from tiltyard.verdict import Verdict

OutcomeKind = Literal["fit", "unfit", "void"]
OUTCOMES: tuple[OutcomeKind, ...] = ("fit", "unfit", "void")
NAMED = 4
"""Hidden tests that a reason names; the rest is counted."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One task's outcome: ``fit`` (reason ""), ``unfit`` (the task is at fault) or ``void`` (the arena failed)."""

    task: str
    outcome: OutcomeKind
    reason: str = ""
    digest: str = ""
    """The task's; "" for one so malformed that it has none."""
    seconds: float = 0.0
    way: str = ""
    """How the tests of a pytest task are run: the way that the task names, or the strongest that was found to work."""
    flaky: tuple[str, ...] = ()
    """Hidden tests that ended in different ways. Of a task that is fit: judged without them."""
    expected: tuple[str, ...] = ()
    """Tests of PASS_TO_PASS that are marked as expected failures, and so count for nothing."""
    ordered: tuple[str, ...] = ()
    """Hidden tests of a repository that end in another way when the suite runs in another order than its own, in which
    every grading runs it."""


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """``tasks`` in the pool's order. ``planned`` above their number means that it was interrupted."""

    pool: str
    wall: str
    repeats: int
    tasks: tuple[TaskReport, ...]
    planned: int
    seconds: float = 0.0
    resumed: int = 0
    """How many of the tasks were taken over from an earlier validation's state file."""

    @property
    def summary(self) -> Mapping[str, int]:
        return {kind: sum(task.outcome == kind for task in self.tasks) for kind in OUTCOMES}

    @property
    def fit(self) -> tuple[str, ...]:
        """The ids of the tasks that are fit to teach."""
        return tuple(task.task for task in self.tasks if task.outcome == "fit")

    @property
    def ways(self) -> Mapping[str, int]:
        """How many of the fit pytest tasks go which way."""
        return dict(sorted(Counter(t.way for t in self.tasks if t.way and t.outcome == "fit").items()))

    @property
    def flaky(self) -> Mapping[str, tuple[str, ...]]:
        """The tests of each task that ended in different ways."""
        return {task.task: task.flaky for task in self.tasks if task.flaky}

    @property
    def ordered(self) -> Mapping[str, tuple[str, ...]]:
        """The tests of each task that depend on the order in which the suite runs."""
        return {task.task: task.ordered for task in self.tasks if task.ordered}

    @property
    def ok(self) -> bool:
        """Every task was looked at and is fit."""
        return len(self.tasks) == self.planned and len(self.fit) == len(self.tasks)

    def as_json(self) -> dict[str, Any]:
        """The shape that ``tiltyard validate --json`` prints."""
        return {
            "summary": dict(self.summary),
            "tasks": {
                task.task: {"outcome": task.outcome, "reason": task.reason}
                | ({"way": task.way} if task.way else {})
                | ({"flaky": list(task.flaky)} if task.flaky else {})
                | ({"expected_failures": list(task.expected)} if task.expected else {})
                | ({"order_dependent": list(task.ordered)} if task.ordered else {})
                for task in self.tasks
            },
        }


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def start_problem(verdict: Verdict) -> str | None:
    """Why this is no verdict for an untouched start, or None. It must be worth nothing."""
    if verdict.reward == 0.0:
        return None
    passing = [outcome.id for outcome in verdict.outcomes if outcome.passed]
    verb = "passes" if len(passing) == 1 else "pass"
    return f"the untouched start scores {verdict.reward:g}: {_named(passing)} {verb} on it"


def is_repository(task: Task) -> bool:
    """Whether a task is judged as SWE-bench's are: some tests fail before the fix, all others pass before and after."""
    return task.grading == "pytest" and task.reward == "all" and bool(task.start.image or task.pass_to_pass)


def lists_problem(task: Task, verdict: Verdict) -> str | None:
    """Why this is no verdict for the untouched start of a repository task, or None: it must fail each of FAIL_TO_PASS,
    and pass each of PASS_TO_PASS."""
    kept = set(task.pass_to_pass)
    passing = [o.id for o in verdict.outcomes if o.passed and o.id not in kept]
    failing = [f"{o.id} ({o.reason or 'failed'})" for o in verdict.outcomes if not o.passed and o.id in kept]
    said = [f"the untouched start passes {_named(passing)}, of FAIL_TO_PASS"] if passing else []
    said += [f"the untouched start fails {_named(failing)}, of PASS_TO_PASS"] if failing else []
    return "; ".join(said) or None


def reference_problem(verdict: Verdict) -> str | None:
    """Why this is no verdict for a reference, or None. It must be worth everything."""
    if verdict.reward == 1.0 and verdict.passed == verdict.total:
        return None
    failing = [
        f"{outcome.id} ({outcome.reason or 'failed'})" for outcome in verdict.outcomes if not outcome.passed
    ]
    why = _named(failing) if failing else "no hidden test has an outcome"
    return f"the reference scores {verdict.reward:g}: {why}"


def tried_problem(tried: Sequence[Tried]) -> str:
    """What the ways that were tried for a pytest task came to, for a task that is unfit; "" if none was."""
    if not tried:
        return ""
    said = [
        f"{one.way}: {one.passed} of {one.total} pass" + (f", but not {one.reason}" if one.reason else "")
        for one in tried
    ]
    return f" (tried {'; '.join(said)})"


def needs_problem(task: Task, reason: str) -> str:
    """What to add to a reason that may come from what a cell does not have."""
    return packages_problem(task, reason) + compiled_problem(task, reason)


def packages_problem(task: Task, reason: str) -> str:
    """What to add to a reason that may come from packages that a cell's interpreter does not have."""
    if not task.metadata.packages or not any(word in reason for word in _OF_PACKAGES):
        return ""
    if environment_of(task) is not None:
        return ""  # they were there
    return f"; the task needs packages that a cell has only from an interpreter with them: {', '.join(task.metadata.packages)}"


def compiled_problem(task: Task, reason: str) -> str:
    """What to add to a reason that may come from extension modules: a repository is run from its sources."""
    if not is_repository(task) or not any(word in reason for word in _OF_PACKAGES):
        return ""
    sources = sorted(path for path in task.start if path.endswith(_COMPILED))
    if not sources:
        return ""
    return f"; {len(sources)} files of the repository need a compiler, such as {sources[0]}, and none is run here"


_COMPILED = (".pyx", ".pxd", ".c", ".cc", ".cpp", ".f", ".f90", ".rs")
_OF_PACKAGES = ("ModuleNotFoundError", "ImportError", "did not load", "collected", "AttributeError")


def difference(verdicts: Sequence[Verdict]) -> str | None:
    """What differs between verdicts that should be identical, or None. Outcomes are compared by id, for the order of
    the tests may have been another one."""
    first = verdicts[0]
    if all(_facts(verdict) == _facts(first) for verdict in verdicts):
        return None
    differing = []
    for id in _ids(verdicts):
        seen = [_of(verdict, id) for verdict in verdicts]
        kinds = sorted(set(seen), key=lambda kind: (-seen.count(kind), kind))
        if len(kinds) > 1:
            differing.append(f"{id} ({', '.join(f'{kind} {seen.count(kind)}x' for kind in kinds)})")
    if differing:
        return _named(differing)
    rewards = sorted({f"{verdict.reward:g}" for verdict in verdicts})
    if len(rewards) > 1:
        return f"rewards {', '.join(rewards)}"
    flags = sorted({flag for verdict in verdicts for flag in verdict.flags})
    return f"flags ({', '.join(flags) or 'none'}) or the way of grading"


def unlike(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """The ids of the tests that did not end in the same way in all of these verdicts."""
    return tuple(id for id in _ids(verdicts) if len({_of(verdict, id) for verdict in verdicts}) > 1)


def _facts(verdict: Verdict) -> tuple[Any, ...]:
    return (verdict.reward, verdict.graded, verdict.flags, tuple(sorted(map(_key, verdict.outcomes))))


def _key(outcome: Any) -> tuple[str, bool, str]:
    return (outcome.id, outcome.passed, outcome.reason)


def _ids(verdicts: Iterable[Verdict]) -> list[str]:
    return list(dict.fromkeys(outcome.id for verdict in verdicts for outcome in verdict.outcomes))


def _of(verdict: Verdict, id: str) -> str:
    for outcome in verdict.outcomes:
        if outcome.id == id:
            return "passed" if outcome.passed else outcome.reason or "failed"
    return "absent"
