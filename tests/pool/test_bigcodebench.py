"""Rows of the two published shapes, written for these tests, graded for real."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard.cells.protocol import Wall
from tiltyard.errors import TaskError
from tiltyard.pool import load
from tiltyard.referee import Referee
from tiltyard.task import Files

Write = Callable[[str, "str | bytes"], Path]

HEAD = "import os\nimport random\n\nLIMIT = 3\n\ndef task_func(folder):\n"
DOC = '    """\n    Count the files of a folder, at most LIMIT.\n    """\n'
BODY = "    names = os.listdir(folder)\n    return min(len(names), LIMIT)\n"
SUITE = """import unittest
from unittest.mock import patch

class TestCases(unittest.TestCase):
    def test_few(self):
        with patch("os.listdir", return_value=["a", "b"]):
            self.assertEqual(task_func("x"), 2)
    def test_many(self):
        with patch("__main__.LIMIT", 2):
            with patch("os.listdir", return_value=["a"] * 9):
                self.assertEqual(task_func("x"), 2)
    def test_limit(self):
        self.assertEqual(LIMIT, 3)
        self.assertTrue(random.random() < 1 and os.sep)
"""
ROW: dict[str, Any] = {
    "task_id": "BigCodeBench/1",
    "entry_point": "task_func",
    "prompt": HEAD + DOC,
    "prompt_wo_doc": HEAD,
    "instruction": "Count the files of a folder.",
    "canonical_solution": BODY,
    "test": SUITE,
    "libs": ["os"],
}
PUBLISHED = {
    **{k: ROW[k] for k in ("task_id", "entry_point", "canonical_solution", "test")},
    "complete_prompt": ROW["prompt"],
    "code_prompt": HEAD,
    "instruct_prompt": ROW["instruction"],
    "libs": "['os']",
}


@pytest.mark.parametrize("row", [ROW, PUBLISHED])
def test_a_row_becomes_a_task(row: dict[str, Any], write: Write, wall: Wall) -> None:
    pool = load(f"bigcodebench:{write('rows.jsonl', json.dumps(row))}")
    task = pool["BigCodeBench/1"]
    assert (
        pool.name == "bigcodebench" and task.grading == "pytest" and task.way == "" and task.reward == "all"
    )
    assert [t.id for t in task.hidden] == [
        f"test_solution.py::TestCases::test_{n}" for n in ("few", "many", "limit")
    ]
    text = task.suite["test_solution.py"].decode()
    assert text.startswith("import os\nimport random\nfrom solution import LIMIT, task_func\n\n")
    assert "__main__" not in text and "solution.LIMIT" in text
    assert "NotImplementedError" in task.start["solution.py"].decode() and "test_example.py" in task.protected
    referee = Referee(wall)
    verdict = referee.grade(task, task.reference)
    assert (verdict.reward, verdict.graded) == (1.0, "pytest-in-process")
    assert referee.grade(task, task.start).reward == 0.0
    assert referee.grade(task, Files({"solution.py": HEAD + "    return 1\n"})).reward == 0.0


def test_what_is_no_row(write: Write) -> None:
    for change, expected in (
        ({"prompt": "nonsense ("}, "prompt"),
        ({"test": "x = 1\n"}, "no test method that is run"),
        ({"test": "def ("}, "no Python"),
    ):
        with pytest.raises(TaskError, match=expected):
            load(write("rows.jsonl", json.dumps(ROW | change)))
