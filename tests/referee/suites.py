"""A small package with its suites, for the tests of pytest grading: files as text, and a task made of them."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

from tiltyard.task import Files, Limits, Task, Test

CORE = """
class Empty(ValueError):
    pass


class Tally:
    def __init__(self, name="tally"):
        self.name = name
        self.items = []

    def add(self, *items):
        self.items.extend(items)
        return self

    def total(self):
        return sum(self.items){wrong_total}

    def __len__(self):
        return len(self.items)


def mean(xs):
    if not xs:
        raise Empty("no items")
    return sum(xs) / len(xs)


def median(xs):
    ys = sorted(xs)
    half = len(ys) // 2
    {median}
"""
RIGHT = "return ys[half] if len(ys) % 2 else (ys[half - 1] + ys[half]) / 2"
SOLVED = CORE.format(wrong_total="", median=RIGHT)
BROKEN = CORE.format(wrong_total=" + 1", median="return ys[half]")
INIT = "from tally.core import Empty, Tally, mean, median\n"

TEST_MEAN = """
from tally import Empty, mean
import pytest


def test_mean():
    assert mean([1, 2, 3]) == 2


def test_no_items():
    with pytest.raises(Empty, match="no items"):
        mean([])
"""
CONFTEST = """
import pytest

from tally import Tally


@pytest.fixture
def three():
    return Tally().add(1, 2, 3)
"""
TEST_MEDIAN = """
import statistics

import pytest
from tally import median


def test_even():
    assert median([4, 1, 3, 2]) == 2.5


@pytest.mark.parametrize("xs, expected", [([10, 20], 15), ([60, 10, 50, 20], 35.0)])
def test_more(xs, expected):
    assert median(xs) == pytest.approx(expected)


def test_oracle():
    assert median([7, 1, 5, 9]) == statistics.median([7, 1, 5, 9])
"""
TEST_TALLY = """
import unittest

from tally import Tally


class TestTally(unittest.TestCase):
    def setUp(self):
        self.tally = Tally().add(5)

    def test_total(self):
        self.assertEqual(self.tally.add(2).total(), 7)

    def test_each(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertEqual(Tally().add(n).total(), n)


def test_three(three):
    assert three.total() == 6
"""
FAIL_TO_PASS = (
    "tests/test_median.py::test_even",
    "tests/test_median.py::test_more[xs0-15]",
    "tests/test_median.py::test_more[xs1-35.0]",
    "tests/test_median.py::test_oracle",
    "tests/test_tally.py::TestTally::test_total",
    "tests/test_tally.py::TestTally::test_each",
    "tests/test_tally.py::test_three",
)
PASS_TO_PASS = ("tests/test_mean.py::test_mean", "tests/test_mean.py::test_no_items")
LIMITS = Limits(test_s=60.0, load_s=60.0, grade_s=300.0)


def tally_task(**fields: Any) -> Task:
    """The task of repairing ``tally``: hidden tests beside those that its workspace has."""
    defaults: dict[str, Any] = {
        "id": "tally",
        "prompt": "Repair median() and Tally.total().",
        "start": Files({"tally/__init__.py": INIT, "tally/core.py": BROKEN, "tests/test_mean.py": TEST_MEAN}),
        "reference": Files({"tally/core.py": SOLVED}),
        "suite": Files(
            {
                "tests/conftest.py": CONFTEST,
                "tests/test_median.py": TEST_MEDIAN,
                "tests/test_tally.py": TEST_TALLY,
            }
        ),
        "hidden": tuple(map(Test, FAIL_TO_PASS + PASS_TO_PASS)),
        "pass_to_pass": PASS_TO_PASS,
        "visible": (Test("tests/test_mean.py"),),
        "grading": "pytest",
        "reward": "all",
        "limits": LIMITS,
    }
    return Task(**{**defaults, **fields})


def suite_task(solution: str, tests: str, **fields: Any) -> Task:
    """A task of one module, ``solution.py``, whose reference this is, with one file of tests; all of them count."""
    defaults: dict[str, Any] = {
        "id": "suite",
        "prompt": "p",
        "start": Files({"solution.py": ""}),
        "reference": Files({"solution.py": dedent(solution)}),
        "suite": Files({"test_solution.py": dedent(tests)}),
        "hidden": (),
        "grading": "pytest",
        "limits": LIMITS,
    }
    return Task(**{**defaults, **fields})
