"""Rows of the published shape, written for these tests, graded for real."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard.cells.protocol import Wall
from tiltyard.errors import TaskError
from tiltyard.pool import load
from tiltyard.referee import Referee
from tiltyard.task import Files, Task

Write = Callable[[str, "str | bytes"], Path]

SKELETON = '''import datetime

class Diary:
    """
    Notes of days.
    """

    def __init__(self):
        """Start empty."""
        self.notes = {}

    def add(self, day, text):
        """
        Keep a note.
        :param day: datetime.date
        """

    def last(self):
        """The note of the latest day, None if there is none."""
'''
SOLUTION = """
class Full(Exception):
    pass


class Diary:
    def __init__(self):
        self.notes = {}

    def add(self, day, text):
        if len(self.notes) == 2:
            raise Full("two are enough")
        self.notes[day] = text

    def last(self):
        return self.notes[max(self.notes)] if self.notes else None


def today():
    return datetime.date(2026, 1, 1)
"""
SUITE = """import unittest


class DiaryTestAdd(unittest.TestCase):
    def setUp(self):
        self.diary = Diary()

    def test_add_1(self):
        self.diary.add(datetime.date(2026, 1, 2), "b")
        self.assertEqual(self.diary.notes, {datetime.date(2026, 1, 2): "b"})

    def test_add_2(self):
        for n in (1, 2):
            self.diary.add(datetime.date(2026, 1, n), "x")
        with self.assertRaisesRegex(Full, "enough"):
            self.diary.add(datetime.date(2026, 1, 3), "x")


class DiaryTestLast(unittest.TestCase):
    def test_last(self):
        diary = Diary()
        self.assertIsNone(diary.last())
        diary.add(datetime.date(2026, 1, 2), "b")
        diary.add(datetime.date(2026, 1, 1), "a")
        self.assertEqual(diary.last(), "b")


if __name__ == '__main__':
    unittest.main()
"""
ROW = {
    "task_id": "ClassEval_900",
    "class_name": "Diary",
    "skeleton": SKELETON,
    "solution_code": SOLUTION,
    "test": SUITE,
    "import_statement": ["import datetime", "from pathlib import Path as P"],
    "test_classes": ["DiaryTestAdd", "DiaryTestLast"],
    "methods_info": [],
}


def read(write: Write, *rows: dict[str, Any]) -> Task:
    return load(f"classeval:{write('rows.jsonl', chr(10).join(map(json.dumps, rows)))}")[0]


def test_a_row_becomes_a_task(write: Write) -> None:
    task = read(write, ROW)
    assert (task.id, task.entry, task.reward) == ("ClassEval_900", ("Full", "Diary"), "all")
    assert task.start["solution.py"].decode() == SKELETON
    reference = task.reference["solution.py"].decode()
    assert reference.startswith("import datetime\n") and "pathlib" not in reference
    assert [t.id for t in task.hidden] == [
        "DiaryTestAdd::test_add_1",
        "DiaryTestAdd::test_add_2",
        "DiaryTestLast::test_last",
    ]
    assert SKELETON.strip() in task.prompt
    assert [t.id for t in task.visible] == ["DiaryTestAdd::test_add_1"]
    assert load(write("again.jsonl", json.dumps(ROW)))[0].digest == task.digest


def test_the_reference_scores_and_faults_do_not(write: Write, wall: Wall) -> None:
    task, referee = read(write, ROW), Referee(wall)
    assert referee.grade(task, task.reference).reward == 1.0
    assert referee.grade(task, Files()).reward == 0.0
    wrong = task.reference["solution.py"].replace(b"max", b"min")
    verdict = referee.grade(task, Files({"solution.py": wrong}))
    assert [o.id for o in verdict.outcomes if not o.passed] == ["DiaryTestLast::test_last"]
    assert verdict.reward == 0.0


def test_a_skeleton_that_is_no_python_is_replaced_by_heads(write: Write, wall: Wall) -> None:
    task = read(write, {**ROW, "skeleton": SKELETON + '    def more(self):\n        """ “never closed\n'})
    start = task.start["solution.py"].decode()
    compile(start, "start", "exec")
    assert "def last(self):\n        raise NotImplementedError" in start and "max" not in start
    assert "never closed" in task.prompt
    assert Referee(wall).grade(task, Files()).reward == 0.0


def test_packages_of_solution_and_tests_are_named(write: Write) -> None:
    row = {**ROW, "import_statement": ["import datetime", "import numpy as np"]}
    task = read(write, {**row, "solution_code": SOLUTION + "\n\nZERO = np.zeros(1)\n"})
    assert task.metadata.packages == ("numpy",)
    assert task.reference["solution.py"].decode().startswith("import datetime\nimport numpy as np\n")


def test_every_problem_is_named(write: Write) -> None:
    rows = [
        {**ROW, "class_name": "Other"},
        {**ROW, "test": "import unittest\n\nclass T(unittest.TestCase):\n    pass\n"},
        {**ROW, "test": "def test(:\n"},
        {**ROW, "test": "def load_tests(*args):\n    pass\n"},
        {**ROW, "skeleton": None},
    ]
    with pytest.raises(TaskError) as caught:
        read(write, *rows)
    found = [str(p).partition("rows.jsonl")[2].partition(";")[0] for p in caught.value.problems]
    at = "(task 'ClassEval_900')"
    assert found == [
        f":1 {at}, solution_code: found no Python that defines the class 'Other'",
        f":2 {at}, test: found no test method that is run",
        f":3 {at}, test: found no Python",
        f":4 {at}, test: found a suite that makes up its tests in load_tests()",
        ":5, skeleton: found null",
    ]


def test_a_suite_that_touches_files_is_one_for_pytest(write: Write, wall: Wall) -> None:
    solution = (
        "import os\n\nclass Store:\n    def keep(self, text):\n        open('kept.txt', 'w').write(text)\n"
    )
    suite = (
        "import unittest, os\n\nclass StoreTest(unittest.TestCase):\n    def tearDown(self):\n        os.remove('kept.txt')\n"
        "    def test_keep(self):\n        Store().keep('abc')\n        self.assertEqual(open('kept.txt').read(), 'abc')\n"
    )
    row = {
        "task_id": "ClassEval_9",
        "class_name": "Store",
        "skeleton": "class Store:\n    def keep(self, text):\n        pass\n",
        "solution_code": solution,
        "test": suite,
        "import_statement": ["import os"],
    }
    task = load(write("rows.jsonl", json.dumps(row)))["ClassEval_9"]
    assert task.grading == "pytest" and [t.id for t in task.hidden] == [
        "test_solution.py::StoreTest::test_keep"
    ]
    assert task.suite["test_solution.py"].decode().startswith("import os\n")
    referee = Referee(wall)
    assert referee.grade(task, task.reference).reward == 1.0
    assert referee.grade(task, task.start).reward == 0.0
