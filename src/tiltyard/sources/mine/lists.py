"""FAIL_TO_PASS and PASS_TO_PASS of a commit, found out by running its tests before and after it, several times.

The tests of the changed test files run on the base commit's code and on the fix's. A test counts if it ends the same each
time, the third time under another hash seed. One that wavers is flaky, named and left out; the second time is backwards,
and names those that need their order. A commit falls out at the first thing that shows that it can be no task, so most cost two sessions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tiltyard.cells.protocol import Wall
from tiltyard.referee.inside.suite import NOT_COLLECTED, SKIPPED, XFAILED
from tiltyard.referee.suites import collect_suite, run_suite
from tiltyard.task import Files, Task
from tiltyard.verdict import Outcome

NOTHING_COLLECTED = "no test is collected after it"
NONE_PASSES = "no test passes after it"
NO_FAIL_TO_PASS = "no test fails before it and passes after it"
ALL_FLAKY = "only flaky tests tell before from after"
TOO_MANY_TESTS = "too many tests"
_NO_FAILURES = (SKIPPED, XFAILED)
MAX_TESTS = 5000
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")

WallOf = Callable[[int], Wall]
"""The wall for a hash seed."""


@dataclass(frozen=True, slots=True)
class Lists:
    """What came of a commit's tests. ``ordered``: tests that end in another way when the suite runs
    backwards; they count, for gradings run it in its own order. ``why`` it is no task, "": it is one; ``detail`` says more of that. ``unloaded``: on
    the base commit the test files of FAIL_TO_PASS can't be loaded at all, as they need a name that the fix adds."""

    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    why: str = ""
    detail: str = ""
    unloaded: bool = False


def find_lists(wall_of: WallOf, task: Task, modules: Sequence[str], repeats: int = 3) -> Lists:
    """Run the tests of these files of the task's suite on its start and on its reference. Tests whose id is another one
    in each process (with an address in it) are not looked at. ArenaError: the arena failed."""
    start, after = task.start, task.reference.over(task.start)
    found, notes = collect_suite(wall_of(0), task, after, paths=modules)
    ids = [i for i in found if not _ADDRESS.search(i)]
    if not ids:
        return Lists(
            why=NOTHING_COLLECTED, detail="; ".join(f"{f} {why}".strip() for f, why in notes.items())
        )
    if len(ids) > MAX_TESTS:
        return Lists(why=TOO_MANY_TESTS, detail=f"{len(ids)}, more than {MAX_TESTS}")
    right = run_suite(wall_of(0), task, after, ids)
    passing = [i for i in ids if right[i].passed]
    if not passing:
        first = next(iter(right.values()))
        return Lists(why=NONE_PASSES, detail=f"{first.id}: {first.reason}")
    left = run_suite(wall_of(0), task, start, passing)
    if not any(_fails(left[i]) for i in passing):
        broken = [o for i in ids if _fails(o := right[i])]
        said = f"{len(broken)} fail after it too, like {broken[0].id}: {broken[0].reason}" if broken else ""
        return Lists(why=NO_FAIL_TO_PASS, detail=said)
    flaky, ordered = _wavering(wall_of, task, ((after, right), (start, left)), passing, repeats)
    steady = [i for i in passing if i not in flaky]
    failing = tuple(i for i in steady if _fails(left[i]))
    kept = tuple(i for i in steady if left[i].passed)
    named = tuple(i for i in passing if i in flaky)
    in_order = tuple(i for i in passing if i in ordered)
    if not failing:
        return Lists(flaky=named, ordered=in_order, why=ALL_FLAKY, detail=", ".join(named[:3]))
    unloaded = all(left[i].reason.startswith(NOT_COLLECTED) for i in failing)
    return Lists(failing, kept, named, in_order, unloaded=unloaded)


def _fails(outcome: Outcome) -> bool:
    return not outcome.passed and outcome.reason not in _NO_FAILURES


def _wavering(
    wall_of: WallOf,
    task: Task,
    sides: Sequence[tuple[Files, dict[str, Outcome]]],
    ids: Sequence[str],
    repeats: int,
) -> tuple[set[str], set[str]]:
    """The tests that do not end as they did, on either side: always, and only backwards."""
    flaky, ordered = set[str](), set[str]()
    for n in range(1, repeats):
        backwards = n % 2 == 1
        for files, first in sides:
            again = run_suite(wall_of(n // 2), task, files, ids[::-1] if backwards else ids)
            differ = {i for i in ids if again[i].passed != first[i].passed}
            if differ and backwards:
                ordered |= differ
                again = run_suite(wall_of(0), task, files, ids)
                differ = {i for i in ids if again[i].passed != first[i].passed}
            flaky |= differ
    return flaky, ordered - flaky
