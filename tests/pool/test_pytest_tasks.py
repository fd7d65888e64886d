"""Tasks whose tests are files for pytest: read from folders and rows, written, and refused with the reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard.errors import TaskError
from tiltyard.pool import describe, load, to_dict, to_folder, to_jsonl
from tiltyard.task import Files, Limits, Task, Test

Write = Callable[[str, "str | bytes"], Path]


def suite(**fields: Any) -> Task:
    values: dict[str, Any] = {
        "id": "stack",
        "prompt": "Repair it.",
        "start": Files(
            {"src/stack.py": "x = 0\n", "tests/test_old.py": "def test_old(): pass\n", "raw.bin": b"\xff"}
        ),
        "reference": Files({"src/stack.py": "x = 1\n"}),
        "suite": Files({"tests/test_new.py": "def test_x(): pass\n", "tests/data.bin": b"\x00\xff"}),
        "hidden": (Test("tests/test_new.py::test_x", time_s=2.5), Test("tests/test_old.py::test_old")),
        "pass_to_pass": ("tests/test_old.py::test_old",),
        "visible": (Test("tests/test_old.py"),),
        "grading": "pytest",
        "way": "remote",
        "pythonpath": ("src",),
        "plugins": ("pytest_mock",),
        "limits": Limits(test_s=7.0),
    }
    return Task(**{**values, **fields})


@pytest.mark.parametrize(
    "task",
    [
        suite(),
        suite(hidden=(), pass_to_pass=(), way="", pythonpath=(), plugins=()),
        suite(visible=(Test("tests/test_old.py::test_old"),), protected=frozenset({"tests/test_old.py"})),
        suite(visible=()),
    ],
)
def test_what_is_written_is_read_back(task: Task, tmp_path: Path) -> None:
    to_folder(task, tmp_path / "stack")
    to_jsonl([task], tmp_path / "tasks.jsonl")
    for spec in (tmp_path / "stack", tmp_path / "tasks.jsonl", [to_dict(task)]):
        read = load(spec)["stack"]
        assert read == task and read.digest == task.digest


def test_every_field_of_a_suite_is_in_the_digest() -> None:
    digests = {
        suite(**change).digest
        for change in (
            {},
            {"way": "in-process"},
            {"pythonpath": ()},
            {"plugins": ()},
            {"pass_to_pass": ()},
            {"suite": Files({"tests/test_new.py": "def test_x(): assert True\n"})},
        )
    }
    assert len(digests) == 6


def test_a_folder(write: Write) -> None:
    write("t/task.toml", 'grading = "pytest"\n')
    write("t/prompt.md", "Do it.")
    write("t/start/m.py", "x = 0\n")
    write("t/reference/m.py", "x = 1\n")
    write("t/visible/tests/test_seen.py", "def test_seen(): pass\n")
    root = write("t/hidden/tests/deep/test_m.py", "from m import x\ndef test_x(): assert x\n").parents[3]
    write("t/hidden/tests/conftest.py", "")
    task = load(root)["t"]
    assert set(task.suite) == {"tests/conftest.py", "tests/deep/test_m.py"} and task.hidden == ()
    assert set(task.start) == {"m.py", "tests/test_seen.py"} and task.protected == {"tests/test_seen.py"}
    assert [t.id for t in task.visible] == ["tests/test_seen.py"]
    shown = describe(task, hidden=True)
    assert set(shown["suite"]) == set(task.suite) and "suite" not in describe(task)
    json.dumps(shown)


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ('way = "telepathy"', "way: found 'telepathy'"),
        ('fail_to_pass = ["tests/none.py::test_x"]', "hidden: found 'tests/none.py::test_x'"),
        ('pass_to_pass = ["tests/test_m.py::test_x"]', "pass_to_pass without fail_to_pass"),
        ('visible_tests = ["tests/test_m.py"]', "visible: found 'tests/test_m.py'"),
        ('pythonpath = ["../x"]', "pythonpath: found '../x'"),
        ('plugins = ["-p no"]', "plugins: found '-p no'"),
        ('entry = ["f"]', "entry: found something"),
        ("[times]\n'tests/test_m.py::test_x' = 3", "times: found 'tests/test_m.py::test_x'"),
    ],
)
def test_what_a_folder_may_not_say(toml: str, expected: str, write: Write) -> None:
    write("t/task.toml", f'grading = "pytest"\n{toml}\n')
    write("t/prompt.md", "Do it.")
    write("t/start/m.py", "")
    write("t/reference/m.py", "x = 1\n")
    root = write("t/hidden/tests/test_m.py", "def test_x(): pass\n").parents[2]
    with pytest.raises(TaskError) as caught:
        load(root)
    assert expected in str(caught.value)


def test_keys_of_suites_in_other_tasks(write: Write) -> None:
    root = write("t/task.toml", 'way = "remote"\n').parent
    write("t/prompt.md", "Do it.")
    write("t/reference/solution.py", "x = 1\n")
    write("t/hidden/test_x.py", "assert True\n")
    with pytest.raises(TaskError, match="a key of pytest grading"):
        load(root)


def test_what_a_suite_may_not_be() -> None:
    for change, expected in (
        ({"reference": Files({"tests/test_new.py": "def test_x(): pass\n"})}, "also a file of the suite"),
        ({"pass_to_pass": ("tests/test_new.py::test_y",)}, "which is no hidden test"),
        ({"prelude": "x = 1\n"}, "pytest files import what they use"),
        ({"suite": Files(), "hidden": (), "pass_to_pass": ()}, "no hidden test"),
    ):
        with pytest.raises(TaskError, match=expected):
            suite(**change)
    with pytest.raises(TaskError, match="grading is 'calls'"):
        Task(
            id="x",
            prompt="p",
            start=Files({"solution.py": ""}),
            reference=Files({"solution.py": "x = 1\n"}),
            hidden=(Test("a", "assert x"),),
            way="remote",
        )


def test_an_order_of_its_own_is_kept(tmp_path: Path) -> None:
    task = suite(pass_to_pass=("tests/test_new.py::test_x",))
    to_folder(task, tmp_path / "x")
    assert load(tmp_path / "x")["stack"] == task
    assert load([to_dict(task)])["stack"] == task
