"""Rows of the published shapes, written for these tests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pool_rows import outcomes

from tiltyard.errors import TaskError, UsageError
from tiltyard.pool import load
from tiltyard.task import Task

Write = Callable[[str, "str | bytes"], Path]

HEAD = (
    "def ring(xs):\n    return xs[1:] + xs[:1]\n\n\n"
    'def back(xs: list) -> list:\n    """ Undo ring.\n    >>> back([2, 3, 1])\n    [1, 2, 3]\n    """\n'
)
TEST = "\n\n\ndef check(back):\n    assert back([9, 1]) == [1, 9]\n    assert back(ring([5, 6, 7])) == [5, 6, 7]\n\ncheck(back)"
ROW = {
    "task_id": "python/900",
    "language": "python",
    "entry_point": "back",
    "buggy": HEAD + "    return xs[:1] + xs[1:]\n",
    "canonical": HEAD + "    return xs[-1:] + xs[:-1]\n",
    "test": TEST,
}
PACK = {
    "task_id": "Python/900",
    "entry_point": "back",
    "prompt": HEAD,
    "declaration": "def back(xs: list) -> list:\n",
    "canonical_solution": "    return xs[-1:] + xs[:-1]\n",
    "buggy_solution": "    return xs[:1] + xs[1:]\n",
    "bug_type": "value misuse",
    "test": TEST,
}


def read(write: Write, *rows: dict[str, Any], form: str = "humanevalfix:") -> Task:
    return load(f"{form}{write('rows.jsonl', chr(10).join(map(json.dumps, rows)))}")[0]


@pytest.mark.parametrize("row", [ROW, PACK])
@pytest.mark.parametrize("form", ["humanevalfix:", ""])
def test_a_row_of_either_form_becomes_a_task(write: Write, row: dict[str, Any], form: str) -> None:
    task = read(write, row, form=form)
    assert (task.id, task.entry, task.reward) == (row["task_id"], ("back",), "all")
    assert task.start["solution.py"].decode() == ROW["buggy"]
    assert task.reference["solution.py"].decode() == ROW["canonical"]
    assert ROW["buggy"].strip() in task.prompt and "xs[-1:]" not in task.prompt
    assert [t.code for t in task.visible] == ["assert back([2, 3, 1]) == [1, 2, 3]"]
    assert set(task.metadata.tags) >= {"bugfix", "humanevalfix"}
    assert outcomes(task) == {"check": ""}
    assert outcomes(task, ROW["buggy"]) == {"check": "AssertionError"}


def test_the_functions_beside_it_stay_the_trusted_ones(write: Write) -> None:
    cheat = "def ring(xs):\n    return xs\n\ndef back(xs):\n    return xs[::-1] if len(xs) == 2 else xs\n"
    assert outcomes(read(write, ROW), cheat) == {"check": "AssertionError"}


def test_every_problem_is_named(write: Write) -> None:
    rows = [
        {**PACK, "task_id": "Java/1"},
        {**ROW, "canonical": "def other(): pass\n"},
        {**ROW, "test": "def check(f):\n    pass\n"},
        {**ROW, "buggy": 3},
    ]
    with pytest.raises(TaskError) as caught:
        read(write, *rows)
    found = [str(p).partition("rows.jsonl")[2].partition(";")[0] for p in caught.value.problems]
    assert found == [
        ":1 (task 'Java/1'), language: found 'Java'",
        ":2 (task 'python/900'), canonical: found no Python that defines 'back'",
        ":3 (task 'python/900'), test: found no call of check(…) at its end",
        ":4, buggy: found 3 (int)",
    ]


def test_a_file_of_another_set_is_no_such_file(write: Write) -> None:
    path = write("rows.jsonl", json.dumps(ROW))
    with pytest.raises(
        UsageError, match=r"holds rows of humanevalfix; expected humaneval or humaneval.+use humanevalfix:"
    ):
        load(f"humaneval:{path}")
