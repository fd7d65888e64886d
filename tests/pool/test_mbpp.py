"""Rows of the published shapes, written for these tests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pool_rows import outcomes

from tiltyard.errors import TaskError
from tiltyard.pool import load
from tiltyard.task import Task

Write = Callable[[str, "str | bytes"], Path]

ORIGINAL = {
    "text": "Write a function to find how far apart two points are, in steps along the axes.",
    "code": (
        "import math\r\nclass Point(object):\r\n\tdef __init__(self, x, y):\r\n\t\tself.x, self.y = x, y\r\n\r\n"
        "def _gap(a, b):\r\n\treturn abs(a - b)\r\n\r\ndef steps(p, q, scale: int = 1, unit=math.pi):\r\n"
        "\treturn (_gap(p.x, q.x) + _gap(p.y, q.y)) * scale"
    ),
    "task_id": 990,
    "test_setup_code": "origin = Point(0, 0)\r\n",
    "test_list": [
        "assert steps(origin, Point(1, 2)) == 3",
        "assert math.isclose(steps(origin, origin), 0.0)",
    ],
    "challenge_test_list": ["assert steps(origin, Point(1, 1), 2) == 4"],
}
SANITIZED = {
    "source_file": "x.ipynb",
    "task_id": 991,
    "prompt": "Write a function to round to tens.",
    "code": "def tens(x):\n    return round(x, -1)\n",
    "test_imports": ["import math"],
    "test_list": ["assert tens(14) == math.floor(10.5)"],
}
PLUS = {
    "task_id": "Mbpp/2",
    "prompt": '"""\nWrite a function to find the shared elements.\nassert set(similar_elements((3, 4), (4, 5))) == {4}\n"""\n',
    "entry_point": "similar_elements",
    "canonical_solution": "\ndef similar_elements(a, b):\n    assert type(a) is type(b) is tuple\n    return tuple(set(a) & set(b))\n",
    "base_input": [[[3, 4], [4, 5]]],
    "plus_input": [[[1, 2, 3], [3, 2]], [[], []]],
    "atol": 0,
    "contract": "",
    "assertion": "\nassert similar_elements((3, 4), (4, 5)) == (4,)\n",
}
ORIGIN_FORMAT = {
    "task_id": 992,
    "code": "\nimport collections\ndef counts(xs):\n    return collections.Counter(xs)\n",
    "prompt": "Write a function to count.",
    "source_file": "x.ipynb",
    "test_imports": [],
    "test_list": ["assert counts([1, 1]) == {1: 2}"],
    "test": (
        "import numpy as np\nfrom math import inf\n\ndef assertion(out, exp, atol):\n    if out != exp and atol != 0:\n"
        "        assert np.allclose(out, exp, rtol=1e-07, atol=atol)\n    else:\n        assert out == exp\n\n\n"
        "from collections import Counter\ndef ref_func(xs):\n    return Counter(xs)\n\n\n"
        "inputs = [[[1, 2, inf]], [[]], [['a']]]\nfor i, inp in enumerate(inputs):\n"
        "    assertion(counts(*inp), ref_func(*inp), 0)\n"
    ),
}


def read(write: Write, row: dict[str, Any]) -> Task:
    return load(f"mbpp:{write('rows.jsonl', json.dumps(row))}")[0]


def test_the_original_format(write: Write) -> None:
    task = read(write, ORIGINAL)
    assert (task.id, task.entry, task.reward) == ("Mbpp/990", ("Point", "steps"), "all")
    start = task.start["solution.py"].decode()
    assert "def steps(p, q, scale=1, unit=None):\n    raise NotImplementedError\n" in start
    assert "class Point" in start and "_gap" not in start and "\r" not in start
    assert [t.id for t in task.hidden] == ["test/1", "test/2", "challenge/1"]
    assert [t.code for t in task.visible] == ["origin = Point(0, 0)\nassert steps(origin, Point(1, 2)) == 3"]
    assert task.hidden[1].code.startswith("import math\norigin = ")
    assert set(outcomes(task).values()) == {""} and outcomes(task, kind="visible") == {"example/1": ""}
    assert set(outcomes(task, start).values()) == {"NotImplementedError"}
    assert ORIGINAL["test_list"][0] in task.prompt and "`Point` and `steps`" in task.prompt
    assert ORIGINAL["test_list"][1] not in task.prompt
    assert (task.metadata.source, task.metadata.created) == ("MBPP", "2021-08")


def test_the_sanitized_format_is_a_json_list(write: Write) -> None:
    pool = load(
        f"mbpp:{write('sanitized-mbpp.json', json.dumps([SANITIZED, {**SANITIZED, 'task_id': 3}], indent=2))}"
    )
    assert pool.name == "mbpp" and pool.ids == ("Mbpp/991", "Mbpp/3")
    assert outcomes(pool[0]) == {"test/1": ""}


def test_plus_in_its_own_format(write: Write) -> None:
    task = read(write, PLUS)
    assert [t.id for t in task.hidden] == ["base", "plus/1"]
    assert task.start["solution.py"] == b"def similar_elements(a, b):\n    raise NotImplementedError\n"
    assert [t.code for t in task.visible] == ["assert set(similar_elements((3, 4), (4, 5))) == {4}"]
    assert outcomes(task) == {"base": "", "plus/1": ""}
    assert outcomes(task, "def similar_elements(a, b): return [*{*a} & {*b}] * 2") == {
        "base": "",
        "plus/1": "",
    }
    assert outcomes(task, "def similar_elements(a, b): return (4,)") == {
        "base": "",
        "plus/1": "AssertionError",
    }
    assert task.metadata.source == "MBPP+" and "Write `similar_elements` in" in task.prompt


def test_arguments_get_the_shape_that_the_number_of_the_task_says(write: Write) -> None:
    assert outcomes(read(write, {**PLUS, "task_id": "Mbpp/4"}))["base"] == "AssertionError"
    row = {**PLUS, "task_id": "Mbpp/124", "base_input": [["1", "2j"]], "plus_input": [], "atol": 1e-4}
    row |= {
        "entry_point": "angle",
        "canonical_solution": "import cmath\ndef angle(a, b):\n    return cmath.phase(a + b)\n",
    }
    assert outcomes(read(write, row)) == {"base": ""}
    assert outcomes(read(write, row), "def angle(a, b): return 1.1") == {"base": "AssertionError"}


def test_plus_in_the_format_of_mbpp(write: Write) -> None:
    task = read(write, ORIGIN_FORMAT)
    assert [t.id for t in task.hidden] == ["test/1", "plus"]
    assert "numpy" not in task.hidden[1].code and task.metadata.packages == ()
    assert task.metadata.source == "MBPP+"
    assert outcomes(task) == {"test/1": "", "plus": ""}
    emptied = "def counts(xs):\n    n = {x: xs.count(x) for x in xs} if 1 in xs and len(xs) == 2 else {}\n    xs.clear()\n    return n\n"
    assert outcomes(task, emptied) == {"test/1": "", "plus": "AssertionError"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            {**ORIGINAL, "test_list": ["assert other(1)"], "test_setup_code": ""},
            "(task 'Mbpp/990'), test_list: found no test that uses a function",
        ),
        (
            {**ORIGINAL, "code": "def steps(:"},
            "(task 'Mbpp/990'), test_list: found no test that uses a function of 'code'",
        ),
        ({**ORIGINAL, "test_list": "x"}, ", test_list: found 'x' (text); expected a list"),
        (
            {**ORIGINAL, "challenge_test_list": ["assert steps("]},
            "(task 'Mbpp/990'), hidden[2].code: found code that does",
        ),
        (
            {**PLUS, "entry_point": "nix"},
            "(task 'Mbpp/2'), canonical_solution: found a solution that doesn't define 'nix'",
        ),
        (
            {**ORIGIN_FORMAT, "test": "import numpy as np\nnp.random.rand()"},
            "(task 'Mbpp/992'), test: found a test file that",
        ),
        (
            {**ORIGIN_FORMAT, "test": "import numpy\n"},
            "(task 'Mbpp/992'), test: found a test file that uses numpy for more",
        ),
    ],
)
def test_what_is_wrong_is_named(write: Write, row: dict[str, Any], expected: str) -> None:
    with pytest.raises(TaskError) as caught:
        read(write, row)
    assert expected in str(caught.value)
