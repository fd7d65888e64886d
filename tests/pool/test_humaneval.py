"""Rows of the published shape, written for these tests."""

import gzip
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

ROW = {
    "task_id": "HumanEval/900",
    "prompt": (
        "import math\n\n\ndef ring(xs):\n    return xs[1:] + xs[:1]\n\n\n"
        'def back(xs: list) -> list:\n    """ Undo ring.\n    >>> back([2, 3, 1])\n    [1, 2, 3]\n'
        "    >>> back([9, 1])\n    [9, 1]\n    >>> back(ring([5]))\n    [5]\n    >>> back([])\n    []\n"
        '    """\n'
    ),
    "entry_point": "back",
    "canonical_solution": "    return xs[-1:] + xs[:-1]\n",
    "test": (
        "\n\nMETADATA = {'author': 'x'}\n\n\ndef check(candidate):\n    import random\n    assert candidate([9, 1]) == [1, 9]\n"
        "    for n in range(5):\n        xs = [random.random() for _ in range(n)]\n"
        "        assert candidate(ring(xs)) == xs\n"
    ),
}
PLUS = {
    "task_id": "HumanEval/901",
    "prompt": 'def halves(xs: list) -> list:\n    """ Halve each.\n    >>> halves([1, 2])\n    [0.5, 1.0]\n    """\n',
    "entry_point": "halves",
    "canonical_solution": "\n    return [x / 2 for x in xs]\n",
    "contract": "\n    assert isinstance(xs, list)\n",
    "base_input": [[[1, 2]], [[]]],
    "plus_input": [[[n, 0.5]] for n in range(125)],
    "atol": 0,
}


def read(write: Write, *rows: dict[str, Any], name: str = "rows.jsonl") -> Task:
    return load(f"humaneval:{write(name, chr(10).join(map(json.dumps, rows)))}")[0]


def test_a_row_becomes_a_task(write: Write) -> None:
    task = read(write, ROW)
    assert task.id == "HumanEval/900" and task.entry == ("back",) and task.reward == "all"
    assert task.start["solution.py"].decode() == ROW["prompt"] + "    raise NotImplementedError\n"
    assert task.reference["solution.py"].decode() == ROW["prompt"] + ROW["canonical_solution"]
    assert [(t.id, t.code) for t in task.hidden] == [("check", "check(back)")]
    assert ROW["prompt"].rstrip() in task.prompt
    assert (task.metadata.source, task.metadata.license) == ("HumanEval", "MIT")
    assert outcomes(task) == {"check": ""}
    assert outcomes(task, task.start["solution.py"].decode()) == {"check": "NotImplementedError"}


def test_helpers_in_the_prompt_stay_the_trusted_ones(write: Write) -> None:
    cheat = "def ring(xs):\n    return xs\n\ndef back(xs):\n    return xs\n"
    assert outcomes(read(write, ROW), cheat) == {"check": "AssertionError"}


def test_visible_tests_are_the_plain_examples_that_the_tests_do_not_contradict(write: Write) -> None:
    task = read(write, ROW)
    assert [t.code for t in task.visible] == ["assert back([2, 3, 1]) == [1, 2, 3]", "assert back([]) == []"]
    assert outcomes(task, kind="visible") == {"example/1": "", "example/2": ""}


def test_the_random_numbers_of_a_test_are_the_same_each_time(write: Write) -> None:
    seen = []
    row = {
        **ROW,
        "test": "import random\nlog = []\ndef check(candidate):\n    candidate([random.random()])\n",
    }
    task = read(write, row)
    for _ in range(2):
        log: list[Any] = []
        names: dict[str, Any] = {}
        exec(task.prelude, names)
        names["back"] = log.append
        exec(task.hidden[0].code, names)
        seen.append(log)
    assert seen[0] == seen[1] != []


def test_plus_compares_with_the_reference_in_chunks(write: Write) -> None:
    task = read(write, PLUS)
    assert [t.id for t in task.hidden] == ["base", "plus/1", "plus/2", "plus/3"]
    assert all(t.time_s and 20 <= t.time_s <= 60 for t in task.hidden)
    assert outcomes(task) == dict.fromkeys(["base", "plus/1", "plus/2", "plus/3"], "")
    good = "def halves(xs):\n    return [x * (0.1 + 0.4) for x in xs]\n"
    assert set(outcomes(task, good).values()) == {""}
    late = "def halves(xs):\n    return [x / 2 if x < 75 else 0 for x in xs]\n"
    assert [k for k, v in outcomes(task, late).items() if v] == ["plus/2", "plus/3"]
    assert outcomes(task, task.start["solution.py"].decode())["base"] == "NotImplementedError"
    assert [t.code for t in task.visible] == ["assert halves([1, 2]) == [0.5, 1.0]"]


def test_nothing_of_the_comparison_shares_names_with_the_solution(write: Write) -> None:
    for name in ("sum", "zip", "json", "checker", "same", "len"):
        row = {**PLUS, "prompt": PLUS["prompt"].replace("halves", name), "entry_point": name}
        assert set(outcomes(read(write, row)).values()) == {""}, name


def test_both_shapes_of_inputs_and_none_at_all(write: Write) -> None:
    listed = read(write, PLUS)
    text = {**PLUS, "plus_input": json.dumps(PLUS["plus_input"])}
    assert read(write, text).digest == listed.digest
    assert [t.id for t in read(write, {**PLUS, "plus_input": {}}).hidden] == ["base"]
    with pytest.raises(
        TaskError, match=r"rows.jsonl:1, plus_input: found '\[1' .text.; expected JSON text of a list"
    ):
        read(write, {**PLUS, "plus_input": "[1"})


def test_any_root_of_a_polynomial(write: Write) -> None:
    row = {
        **PLUS,
        "prompt": 'def find_zero(xs: list):\n    """ A root.\n    """\n',
        "entry_point": "find_zero",
        "canonical_solution": "    return 2.0\n",
        "base_input": [[[-4, 0, 1]]],
        "plus_input": [],
        "atol": 0.0001,
    }
    task = read(write, row)
    assert outcomes(task) == {"base": ""}
    assert outcomes(task, "def find_zero(xs): return -2") == {"base": ""}
    assert outcomes(task, "def find_zero(xs): return 1.9") == {"base": "AssertionError"}


def test_tests_that_compare_with_numpy_need_none(write: Write) -> None:
    test = (
        "import numpy as np\n\ndef assertion(out, exp, atol):\n    if isinstance(exp, np.ndarray) or out != exp:\n"
        "        assert np.allclose(out, exp, rtol=1e-07, atol=1e-6)\n\n\ndef ref_func(xs):\n    return [x / 2 for x in xs]\n\n\n"
        "def check(candidate):\n    inputs = [[[1, 2]], [[3]]]\n"
        "    for i, inp in enumerate(inputs):\n        assertion(candidate(*inp), ref_func(*inp), 0)\n"
    )
    task = read(
        write, {k: v for k, v in {**PLUS, "test": test}.items() if k not in ("base_input", "plus_input")}
    )
    assert "import numpy" not in task.prelude and task.metadata.packages == ()
    assert outcomes(task) == {"check": ""}
    assert outcomes(task, "def halves(xs): return [x * 0.5 + 1e-9 for x in xs]") == {"check": ""}
    emptied = "def halves(xs):\n    xs.clear()\n    return []\n"
    assert outcomes(task, emptied) == {"check": "AssertionError"}


def test_a_package_that_a_task_needs_is_named(write: Write) -> None:
    row = {
        **ROW,
        "canonical_solution": "    import scipy.linalg\n    return xs\n",
        "test": "import numpy\n" + ROW["test"],
    }
    assert read(write, row).metadata.packages == ("numpy", "scipy")


def test_every_problem_of_a_file_is_named(write: Write) -> None:
    rows = [
        {**ROW, "test": 3},
        {**ROW, "prompt": "def other(x):\n", "task_id": "HumanEval/902"},
        {k: v for k, v in ROW.items() if k != "prompt"},
        {**ROW, "test": "def check(:", "task_id": "HumanEval/903"},
        {**PLUS, "base_input": [3], "atol": "x"},
        {**PLUS, "base_input": [], "plus_input": []},
    ]
    path = write("rows.jsonl.gz", gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    with pytest.raises(TaskError) as caught:
        load(f"humaneval:{path}")
    found = [str(p).removeprefix(str(path)) for p in caught.value.problems]
    assert [p.split(";")[0] for p in found] == [
        ":1, test: found 3 (int)",
        ":2 (task 'HumanEval/902'), prompt: found no Python that ends in the head of the function 'back'",
        ":3, prompt: found nothing",
        ":4 (task 'HumanEval/903'), prelude: found code that does not compile (invalid syntax (prelude, line 21))",
        ":5, base_input[0]: found 3 (int)",
        ":5, atol: found 'x' (text)",
        ":6 (task 'HumanEval/901'), hidden: found no hidden test",
    ]
