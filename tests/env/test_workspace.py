"""What lies in a workspace: the task's files win, the views of visible tests are readable and never handed in."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from env_tasks import ADD, DOUBLE

from tiltyard.env.observation import MAX_FIRST, first_observation
from tiltyard.env.workspace import case_names, workspace
from tiltyard.task import Files, Limits, Task, Test
from tiltyard.tools import TOOLS


def test_calls() -> None:
    place = workspace(ADD)
    assert list(place.files) == ["lib.py", "solution.py", "test_visible.py"]
    assert set(place.protected) == {"lib.py", "test_visible.py"}
    code = place.files["test_visible.py"].decode()
    assert "from solution import add\n" in code
    assert "# small\nassert add(1, 2) == 3\n" in code
    ast.parse(code)


def test_stdio() -> None:
    task = replace(
        DOUBLE,
        visible=(*DOUBLE.visible, Test("args", stdin="", stdout="x\n", args=("-a", "b c"), exit_code=3)),
    )
    files = workspace(task).files
    assert files["visible/two.in"] == b"2\n"
    assert files["visible/two.out"] == b"4\n"
    assert files["visible/args.args"] == b"-a\nb c\n"
    assert files["visible/args.rc"] == b"3\n"
    assert not {"visible/two.args", "visible/two.rc"} & set(files)


def test_a_test_file_is_shown_once() -> None:
    source = "def test_a():\n    assert add(1, 1) == 2\n\n\ndef test_b():\n    assert add(2, 2) == 4"
    visible = tuple(Test(f"f::{n}", f"{source}\n{n}()") for n in ("test_a", "test_b"))
    code = workspace(replace(ADD, visible=visible)).files["test_visible.py"].decode()
    assert code.count("def test_a()") == 1
    assert code.rstrip().endswith("assert add(2, 2) == 4")
    ast.parse(code)


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["a", "b-1.x"], ["a", "b-1.x"]),
        (["a/b", "c"], ["case-1", "case-2"]),
        (["../x"], ["case-1"]),
        (["A", "a"], ["case-1", "case-2"]),
        ([".hidden"], ["case-1"]),
        (["x" * 300], ["case-1"]),
    ],
)
def test_case_names(ids: list[str], names: list[str]) -> None:
    assert case_names(tuple(Test(i) for i in ids)) == names


def test_the_tasks_own_files_win() -> None:
    task = replace(ADD, start=Files({"test_visible.py": "mine = 1\n"}).over(ADD.start))
    place = workspace(task)
    assert place.files["test_visible.py"] == b"mine = 1\n"
    assert "test_visible.py" not in place.protected
    assert "test_visible.py" in place.submission(place.files)


def test_a_reference_file_of_that_name_can_be_written() -> None:
    task = replace(ADD, reference=Files({"test_visible.py": "x"}).over(ADD.reference))
    assert "test_visible.py" not in workspace(task).files


@pytest.mark.parametrize("path", ["visible", "visible/two.in/x", "visible/two.in"])
def test_files_and_folders_do_not_clash(path: str) -> None:
    task = replace(DOUBLE, start=Files({path: "x"}).over(DOUBLE.start))
    files = workspace(task).files
    assert files[path] == b"x"
    folders = {p.rsplit("/", n)[0] for p in files for n in range(1, p.count("/") + 1)}
    assert not folders & set(files)


def test_submission_leaves_out_what_is_protected() -> None:
    place = workspace(ADD)
    handed = place.submission(
        {**place.files, "lib.py": b"hacked", "test_visible.py": b"hacked", "new.py": b"1"}
    )
    assert set(handed) == {"solution.py", "new.py"}


# -- the first observation ---------------------------------------------------------------------------------------


def observation(task: Task, limits: Limits | None = None) -> str:
    return first_observation(task, limits or task.limits, workspace(task))


def test_first_observation_says_everything() -> None:
    shown = observation(ADD)
    assert shown.startswith("Write add(a, b).\n")
    assert "The tests take add from solution.py." in shown
    assert "  lib.py (6 bytes, protected)\n  solution.py (28 bytes)\n" in shown
    assert "  # small\n  assert add(1, 2) == 3\n" in shown
    for tool in TOOLS:
        assert f"{tool.signature}: {tool.description}" in shown
    assert "the share of hidden tests that pass" in shown
    assert "12 actions" in shown
    assert observation(ADD) == shown


def test_first_observation_says_nothing_hidden() -> None:
    for task in (ADD, DOUBLE):
        marked = replace(
            task,
            hidden=(Test("hidden-id-xyzzy", code="assert 'xyzzy'", stdin="xyzzy", stdout="xyzzy"),),
            prelude="oracle = 'xyzzy'\n",
            reference=Files({"ref.py": "xyzzy"}).over(task.reference),
        )
        assert "xyzzy" not in observation(marked)
        assert not any(b"xyzzy" in data or "xyzzy" in path for path, data in workspace(marked).files.items())


def test_first_observation_of_a_program() -> None:
    shown = observation(replace(DOUBLE, reward="all"))
    assert "two\n  input:\n    2\n  output:\n    4" in shown
    assert "1 if all hidden tests pass, else 0" in shown


def test_first_observation_is_bounded_and_safe() -> None:
    shown = observation(replace(ADD, prompt="\x1b[2J" + "long " * MAX_FIRST))
    assert len(shown) <= MAX_FIRST
    assert shown.startswith("\\x1b[2Jlong")
    assert "characters left out" in shown
