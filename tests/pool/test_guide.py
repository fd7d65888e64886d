"""The examples of docs/tasks.md are real: they are loaded, and their references pass their tests."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pool_rows import outcomes

from tiltyard.cells.protocol import Wall
from tiltyard.pool import load
from tiltyard.pool.folder import TaskToml
from tiltyard.pool.model import parse
from tiltyard.referee import Referee

GUIDE = Path(__file__).parents[2] / "docs" / "tasks.md"


@pytest.fixture(scope="module")
def blocks() -> list[tuple[str, str]]:
    """The fenced blocks: language and text."""
    if not GUIDE.exists():
        pytest.skip("the documentation is not part of this installation")
    return re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)


def test_the_dict(blocks: list[tuple[str, str]]) -> None:
    names: dict[str, list[dict[str, object]]] = {}
    exec(next(text for lang, text in blocks if lang == "python" and text.startswith("TASKS")), names)
    (task,) = load(names["TASKS"])
    assert set(outcomes(task).values()) == {""} and outcomes(task, kind="visible") == {"visible/1": ""}
    assert "" not in outcomes(task, task.start["solution.py"].decode()).values()


def test_the_json_lines(blocks: list[tuple[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(next(text for lang, text in blocks if lang == "json"))
    pool = load(path)
    assert pool.ids == ("double", "shout")
    assert set(outcomes(pool["double"]).values()) == {""}
    assert [t.id for t in pool["shout"].hidden] == ["hidden/1", "accents"]


def _write_folders(blocks: list[tuple[str, str]], folder: Path) -> None:
    for _, text in blocks:
        first, _, rest = text.partition("\n")
        if named := re.fullmatch(r"# ((?:stack|total|ledger)/\S+)", first):
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(rest)


def test_the_suite(blocks: list[tuple[str, str]], tmp_path: Path, wall: Wall) -> None:
    _write_folders(blocks, tmp_path)
    task = load(tmp_path)["ledger"]
    assert [test.id for test in task.visible] == ["tests/test_add.py"]
    assert task.protected == {"tests/test_add.py"}
    referee = Referee(wall)
    solved, start = referee.grade(task, task.reference), referee.grade(task, task.start)
    assert (solved.reward, solved.graded, solved.total) == (1.0, "pytest-remote", 3)
    assert (start.reward, start.passed) == (0.0, 1)


def test_the_folders(blocks: list[tuple[str, str]], tmp_path: Path) -> None:
    _write_folders(blocks, tmp_path)
    pool = load(tmp_path)
    assert pool.ids == ("ledger", "stack", "total")
    _, stack, total = pool
    assert list(outcomes(stack)) == [
        f"test_stack::test_{n}" for n in ("last_in_first_out", "length", "empty")
    ]
    assert set(outcomes(stack).values()) == {""} and set(outcomes(stack, kind="visible").values()) == {""}
    assert "" not in outcomes(stack, stack.start["solution.py"].decode()).values()
    assert [(t.id, t.args, t.exit_code, t.match) for t in total.hidden] == [
        ("count", ("--count",), None, "tokens"),
        ("words", (), 2, "tokens"),
    ]
    program = tmp_path / "total" / "reference" / "solution.py"
    for test in total.visible + total.hidden:
        command = [sys.executable, str(program), *test.args]
        done = subprocess.run(command, input=test.stdin, capture_output=True, text=True, check=False)
        assert (done.stdout.split(), done.returncode) == (test.stdout.split(), test.exit_code or 0)


def test_the_toml_with_everything(blocks: list[tuple[str, str]]) -> None:
    problems: list[object] = []
    data = tomllib.loads(next(text for lang, text in blocks if lang == "toml"))
    assert parse(TaskToml, data, "task.toml", problems) is not None, problems  # type: ignore[arg-type]
    assert set(TaskToml.model_fields) == set(data)
