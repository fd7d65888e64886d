"""``run_suite`` and ``collect_suite``: which tests pass on which files, by both ways, with tests that end or hang."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tiltyard.cells.protocol import Wall
from tiltyard.errors import UsageError
from tiltyard.referee.suites import collect_suite, run_suite
from tiltyard.task import SUITE_WAYS, Files, Limits, SuiteWay, Task, Test

SUITE = """
import os, time
import pytest
from box import double

def test_ends_the_process():
    if double(1) == 99:
        os._exit(3)

@pytest.mark.parametrize("n", [1, 2])
def test_double(n):
    assert double(n) == 2 * n

def test_hangs():
    while double(1) == 99:
        time.sleep(1)

def test_last():
    assert double("a") == "aa" or double(1) == 99
"""
ONE = "tests/test_box.py"
IDS = tuple(
    f"{ONE}::{name}"
    for name in ("test_ends_the_process", "test_double[1]", "test_double[2]", "test_hangs", "test_last")
)


def task(**fields: Any) -> Task:
    return replace(
        Task(
            id="box",
            prompt="p",
            start=Files({"box.py": "def double(n):\n    return n\n"}),
            hidden=(),
            reference=Files({"box.py": "def double(n):\n    return n * 2\n"}),
            grading="pytest",
            suite=Files({ONE: SUITE}),
            limits=Limits(test_s=20.0),
        ),
        **fields,
    )


@pytest.mark.parametrize("way", SUITE_WAYS)
def test_before_and_after(wall: Wall, way: SuiteWay) -> None:
    """The ids are found out, and the outcomes are those of the files that are given, in the order that is asked for."""
    made = task()
    after = made.reference.over(made.start)
    ids, notes = collect_suite(wall, made, after, way=way)
    assert ids == IDS and notes == {}
    found = run_suite(wall, made, after, tuple(reversed(ids)), way=way)
    assert tuple(found) == tuple(reversed(IDS)) and all(o.passed for o in found.values())
    before = run_suite(wall, made, made.start, [*ids, f"{ONE}::test_none"], way=way)
    assert {i for i, o in before.items() if o.passed} == {IDS[0], IDS[3]}
    assert before[IDS[1]].reason == "assertion failed"
    assert before[f"{ONE}::test_none"].reason == "not collected"


def test_an_end_or_a_hang_costs_one_test(wall: Wall) -> None:
    """A test that ends its process or hangs fails for itself, and the others run."""
    made = task(limits=Limits(test_s=3.0))
    found = run_suite(wall, made, Files({"box.py": "def double(n):\n    return 99\n"}), IDS)
    assert [o.passed for o in found.values()] == [False, False, False, False, True]
    assert "ended" in found[IDS[0]].reason and "time" in found[IDS[3]].reason


def test_what_can_not_be_collected_is_named(wall: Wall) -> None:
    made = task(suite=Files({ONE: SUITE, "tests/test_other.py": "import nothing_of_that_name\n"}))
    ids, notes = collect_suite(wall, made, made.reference.over(made.start))
    assert ids == IDS and notes == {"tests/test_other.py": "raised ModuleNotFoundError"}
    assert run_suite(wall, made, made.start, []) == {}


def test_only_suites() -> None:
    """What can't be run like this is refused before any cell is opened."""
    calls = replace(task(), grading="calls", suite=Files(), hidden=(Test("a", "pass"),), main="box.py")
    with pytest.raises(UsageError, match="task 'box' is graded by calls"):
        run_suite(None, calls, calls.start, ["a"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="expected one of 'remote', 'in-process'"):
        run_suite(None, task(), task().start, ["a"], way="")  # type: ignore[arg-type]
