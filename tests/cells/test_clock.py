"""A clock that stands, in real cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("time_machine", reason="time-machine is not installed (tiltyard[clock])")

from tiltyard import CodeEnv
from tiltyard.cells import CellLimits, ProcessWall, Run, make_wall
from tiltyard.cells.namespace import NamespaceWall
from tiltyard.errors import ArenaError, TaskError, UsageError
from tiltyard.pool import load
from tiltyard.pool.dump import to_folder, to_jsonl
from tiltyard.referee import Referee
from tiltyard.task import Files, Limits, Task, Test

NOON = "2031-02-03T12:00:00"
LOOK = """
import datetime, os, sys, time
print(time.time(), datetime.datetime.now(datetime.timezone.utc).isoformat(), datetime.date.today(), time.gmtime().tm_hour)
print(type(datetime.datetime.now()) is datetime.datetime)
began = time.monotonic(); time.sleep(0.05); print(time.monotonic() > began, time.time() == time.time(), flush=True)
if os.fork() == 0:
    print(time.gmtime().tm_year, flush=True); os._exit(0)
os.wait()
"""
SEEN = "1927886400.0 2031-02-03T12:00:00+00:00 2031-02-03 12\nTrue\nTrue True\n2031\n"


@pytest.fixture(scope="module")
def clocked() -> Iterator[NamespaceWall]:
    try:
        wall = make_wall("namespace")
    except ArenaError as error:
        pytest.skip(f"no namespace wall here: {error}")
    assert isinstance(wall, NamespaceWall)
    yield wall.with_clock(NOON)
    wall.close()


def test_all_that_python_runs_sees_the_same_instant(clocked: NamespaceWall) -> None:
    for _ in range(2):
        with clocked.open({"look.py": LOOK.encode()}, CellLimits()) as cell:
            result = cell.run(Run(("python", "look.py"), wall_s=60))
            assert result.stdout.decode() == SEEN, result.stderr


def test_a_wall_without_goes_on(clocked: NamespaceWall) -> None:
    assert clocked.with_clock(NOON) is clocked
    plain = NamespaceWall()
    try:
        with plain.open({}, CellLimits()) as cell:
            said = cell.run(Run(("python", "-c", "import time; print(time.gmtime().tm_year)"), wall_s=60))
            assert said.stdout != b"2031\n"
    finally:
        plain.close()


def _task(**fields: object) -> Task:
    return Task(
        **{
            "id": "age",
            "prompt": "The age in whole years of someone born in a year, today.",
            "start": Files({"solution.py": "def age(born):\n    return 0\n"}),
            "reference": Files(
                {
                    "solution.py": "import datetime\ndef age(born):\n    return datetime.date.today().year - born\n"
                }
            ),
            "visible": (Test("v", "assert age(2031) == 0"),),
            "hidden": (Test("h", "import time\nassert age(2000) == 31 and time.gmtime().tm_year == 2031"),),
            "entry": ("age",),
            "clock": NOON,
            "limits": Limits(run_s=60.0, test_s=60.0),
            **fields,
        }  # type: ignore[arg-type]
    )


def test_a_task_is_played_and_graded_at_its_instant(clocked: NamespaceWall) -> None:
    task = _task(visible=(Test("v", "assert age(2000) == 31"),))
    env = CodeEnv([task])
    try:
        env.reset(seed=0)
        env.step(
            {"tool": "write_file", "path": "solution.py", "content": task.reference["solution.py"].decode()}
        )
        assert "1 of 1 visible test passed" in env.step({"tool": "run_tests"})[0]
        assert env.step({"tool": "submit"})[1] == 1.0
    finally:
        env.close()


def test_suites_stand_too(clocked: NamespaceWall) -> None:
    suite = Files(
        {
            "test_age.py": "import datetime\nfrom solution import age\n\n\ndef test_it():\n    assert age(2000) == 31\n"
        }
    )
    base = make_wall("namespace")
    try:
        for way in ("remote", "in-process"):
            task = _task(
                grading="pytest",
                visible=(),
                entry=(),
                suite=suite,
                hidden=(Test("test_age.py::test_it"),),
                way=way,
            )
            assert Referee(base).grade(task, task.reference).reward == 1.0
            assert (
                Referee(base).grade(replace(task, clock="2041-02-03T12:00:00"), task.reference).reward == 0.0
            )
    finally:
        base.close()


def test_it_is_part_of_the_task(tmp_path: object) -> None:
    task = _task()
    assert task.digest != replace(task, clock="").digest
    to_folder(task, tmp_path / "task")  # type: ignore[operator]
    to_jsonl([task], tmp_path / "tasks.jsonl")  # type: ignore[operator]
    for path in ("task", "tasks.jsonl"):
        (again,) = load(tmp_path / path)  # type: ignore[operator]
        assert again.clock == NOON and again.digest == task.digest


@pytest.mark.parametrize("clock", ["noon", "2031-02-03", "2031-02-03T12:00:00+02:00", "0001-01-01T00:00:00"])
def test_what_is_no_instant_says_so(clock: str) -> None:
    with pytest.raises(TaskError, match="expected an instant in UTC"):
        _task(clock=clock)
    with pytest.raises(UsageError, match="expected an instant in UTC"):
        NamespaceWall(clock=clock)


def test_other_walls_say_that_they_can_not(clocked: NamespaceWall) -> None:
    wall = ProcessWall()
    try:
        verdict = Referee(wall).grade(_task(), _task().reference)
        assert verdict.reward is None and "needs the namespace wall" in str(verdict.void)
    finally:
        wall.close()
