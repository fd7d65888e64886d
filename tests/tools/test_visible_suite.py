"""What run_tests says of a task whose tests are suites for pytest."""

from __future__ import annotations

from typing import Any

from tiltyard.cells import Wall
from tiltyard.env.walls import open_cell
from tiltyard.task import Files, Limits, Task, Test
from tiltyard.tools.visible import run_tests

LONG = Limits(run_s=60.0)
SEEN = """
import pytest
from pkg import double


@pytest.mark.parametrize("n", [1, 2])
def test_double(n):
    print("trying", n)
    assert double(n) == n + n


def test_tmp(tmp_path):
    assert tmp_path.exists()
"""


def suite(**fields: Any) -> Task:
    return Task(
        **{
            "id": "suite",
            "prompt": "p",
            "start": Files({"pkg/__init__.py": "def double(n): return 0\n", "tests/test_seen.py": SEEN}),
            "reference": Files({"pkg/__init__.py": "def double(n): return 2 * n\n"}),
            "suite": Files(
                {"tests/test_hidden.py": "from pkg import double\ndef test_x(): assert double(4) == 8\n"}
            ),
            "visible": (Test("tests/test_seen.py"),),
            "hidden": (),
            "grading": "pytest",
            **fields,
        }
    )


def run_suite(wall: Wall, files: dict[str, str], **fields: Any) -> str:
    task = suite(**fields)
    cell = open_cell(wall, Files(files).over(task.start), LONG, pytest=True)
    try:
        return run_tests(cell, task, LONG, lambda tests: {})
    finally:
        cell.close()


def test_a_suite_runs_in_the_players_cell(wall: Wall) -> None:
    assert run_suite(wall, {"pkg/__init__.py": "def double(n): return 2 * n\n"}) == (
        "PASSED tests/test_seen.py::test_double[1]\nPASSED tests/test_seen.py::test_double[2]\n"
        "PASSED tests/test_seen.py::test_tmp\n3 of 3 visible tests passed"
    )


def test_what_fails_in_a_suite_is_explained(wall: Wall) -> None:
    report = run_suite(wall, {"pkg/__init__.py": "def double(n): return n * n\n"})
    assert (
        "FAILED tests/test_seen.py::test_double[1]\n  tests/test_seen.py, line 9, in test_double\n" in report
    )
    assert "assert double(n) == n + n" in report and "assert 1 == (1 + 1)" in report
    assert "printed:\n    trying 1" in report and report.endswith("2 of 3 visible tests passed")
    assert "site-packages" not in report


def test_one_test_of_a_suite(wall: Wall) -> None:
    report = run_suite(wall, {}, visible=(Test("tests/test_seen.py::test_tmp"),))
    assert report == "PASSED tests/test_seen.py::test_tmp\n1 of 1 visible test passed"


def test_a_suite_that_does_not_get_far(wall: Wall) -> None:
    for code, expected in (
        ("import os\nos._exit(3)\n", "ended while the tests were collected (exit status 3)"),
        ("def double(:\n", "SyntaxError"),
        ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        (
            "def double(n): __import__('os')._exit(4)\n",
            "ended in tests/test_seen.py::test_double[1] (exit status 4)",
        ),
    ):
        report = run_suite(wall, {"pkg/__init__.py": code})
        assert expected in report and "site-packages" not in report, report
