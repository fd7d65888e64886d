"""Void against zero: what a submission does is a zero, however much it looks like our fault; what fails of ours is tried
again, and then void with the reason. ``tests/referee/test_grade.py`` has this for functions; here are the other ways in."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.redteam.test_redteam_own import CALLS, PROGRAM, SUITE

from tiltyard.cells.inside.procs import descendants
from tiltyard.cells.kit import Kit, kitted
from tiltyard.cells.protocol import Cell, CellLimits, CellLost, Wall
from tiltyard.env import CodeEnv
from tiltyard.errors import ArenaError
from tiltyard.referee import Referee
from tiltyard.task import Files, Limits, Task

QUICK = Limits(test_s=10.0, load_s=10.0, run_s=10.0, grade_s=60.0)
RIGHT = Files({**CALLS.reference, "solution.py": CALLS.reference["solution.py"] + b"\n# the same\n"})


def quick(task: Task, **limits: float) -> Task:
    from dataclasses import replace

    return replace(task, limits=replace(QUICK, **limits))


# ---------------------------------------------------------------- a submission pretends

PROGRAMS = {
    "ends with the status of a killed container": "import os; os._exit(137)",
    "ends with the status of an engine that failed": "import os; os._exit(125)",
    "kills itself": "import os; os.kill(os.getpid(), 9)",
    "kills what is above it": "import os\nfor pid in (os.getppid(), 1):\n    try: os.kill(pid, 9)\n    except OSError: pass",
    "says that the disk is full": "import sys\nprint('No space left on device', file=sys.stderr)\nsys.exit(28)",
    "says that the cell was lost": "print('CellLost: the keeper is gone'); raise SystemExit(1)",
    "prints nothing and waits": "import time; time.sleep(600)",
    "takes all memory": "x = []\nwhile True: x.append(bytearray(1 << 24))",
    "fills the disk": "open('x', 'wb').write(bytes(1 << 27))",
    "is a folder": None,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_pretends_is_a_zero(wall: Wall, name: str) -> None:
    if wall.name == "process" and name == "kills what is above it":
        pytest.skip("the process wall does not keep a program from what runs under the same user")
    source = PROGRAMS[name]
    files = Files({"solution.py/x": ""} if source is None else {"solution.py": source})
    verdict = Referee(wall).grade(quick(PROGRAM, test_s=2.0), files, reward="all")
    assert (verdict.reward, verdict.void) == (0.0, None)
    assert Referee(wall).grade(quick(PROGRAM), PROGRAM.reference, reward="all").reward == 1


SUITES = {
    "ends the process at import": "import os\nos._exit(0)\n",
    "ends it in a call": "import os\ndef one(): os._exit(137)\ntwo = one\n",
    "kills itself in a call": "import os\ndef one(): os.kill(os.getpid(), 9)\ntwo = one\n",
    "raises what an arena would": "class ArenaError(Exception): pass\ndef one(): raise ArenaError('no cell can be had')\ntwo = one\n",
    "ends pytest": "def one():\n    import pytest\n    pytest.exit('infrastructure failure', 0)\ntwo = one\n",
    "is no Python": "def one(:\n",
    "closes everything": "import os\ndef one(): os.closerange(3, 256); return 1\ntwo = one\n",
}


@pytest.mark.parametrize("way", ["remote", "in-process"])
@pytest.mark.parametrize("name", SUITES)
def test_a_package_that_pretends_is_a_zero(name: str, way: Any, strong_wall: Wall) -> None:
    from dataclasses import replace

    task = replace(quick(SUITE), way=way)
    verdict = Referee(strong_wall).grade(task, Files({"pkg/core.py": SUITES[name]}), reward="all")
    assert (verdict.reward, verdict.void) == (0.0, None)
    if name == "closes everything":
        assert Referee(strong_wall).grade(task, task.reference, reward="all").reward == 1


@pytest.fixture(scope="module")
def strong_wall() -> Any:
    """The strongest wall of this machine; suites cost much on the process wall, and are the same there."""
    from tiltyard.cells import make_wall

    wall = make_wall("auto")
    yield wall
    wall.close()


DESTROYERS = {
    "kills its keeper": "import os\nfor pid in (os.getppid(), 1):\n    try: os.kill(pid, 9)\n    except OSError: pass\n",
    "kills all": "import os\nos.kill(-1, 9)\n",
    "dies": "import os\nos.kill(os.getpid(), 11)\n",
    "hangs": "import time\ntime.sleep(600)\n",
}


@pytest.mark.parametrize("name", DESTROYERS)
def test_a_player_that_destroys_its_cell_gets_a_zero(strong_wall: Wall, name: str) -> None:
    if strong_wall.name == "process":
        pytest.skip("needs a wall that keeps code from signalling what runs under the same user")
    env = CodeEnv([quick(CALLS, run_s=2.0)], wall=strong_wall)
    try:
        env.reset(task_id=CALLS.id)
        env.step({"tool": "write_file", "path": "solution.py", "content": DESTROYERS[name]})
        _, reward, terminated, truncated, info = env.step({"tool": "run_tests"})
        if not (terminated or truncated):
            _, reward, terminated, truncated, info = env.step({"tool": "submit"})
        assert reward == 0.0
        assert "void" not in info
        assert info.get("truncated_by", "cell") == "cell"
    finally:
        env.close()


# ---------------------------------------------------------------- the arena fails


class Sabotaged:
    """A real wall; ``sabotage(cell)`` is done to each cell that it opens, for the first ``times``."""

    def __init__(self, wall: Wall, sabotage: Callable[[Cell], Cell], times: int | list[int]) -> None:
        self._wall, self._sabotage = wall, sabotage
        self._left = [times] if isinstance(times, int) else times
        self.name, self.weaknesses = wall.name, wall.weaknesses

    def with_kit(self, kit: Kit) -> Wall:
        return Sabotaged(kitted(self._wall, kit), self._sabotage, self._left)

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
        cell = self._wall.open(files, limits)
        if self._left[0] <= 0:
            return cell
        self._left[0] -= 1
        return self._sabotage(cell)

    def close(self) -> None: ...


class Broken:
    """A cell in which one operation fails as if the arena had lost it."""

    def __init__(self, cell: Cell, operation: str, error: Exception) -> None:
        self._cell, self._operation, self._error = cell, operation, error

    def __getattr__(self, name: str) -> Any:
        if name == self._operation:
            return self._fail
        return getattr(self._cell, name)

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise self._error


LOST = CellLost("the keeper does not answer", during_run=False)
FULL = ArenaError("a cell can't be made: No space left on device")


def breaking(operation: str, error: Exception) -> Callable[[Cell], Any]:
    return lambda cell: Broken(cell, operation, error)


FAILURES: dict[str, tuple[Task, str, Exception]] = {
    "a program's cell is lost": (PROGRAM, "run", LOST),
    "a program can't be started": (PROGRAM, "run", ArenaError("the server is gone")),
    "the solution or the examiner can't be started": (CALLS, "start", FULL),
    "a suite can't be started": (SUITE, "start", FULL),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_of_ours_is_tried_again_and_then_void(strong_wall: Wall, name: str) -> None:
    task, operation, error = FAILURES[name]
    right = Files({path: data + b"\n# the same\n" for path, data in task.reference.items()})
    once = Sabotaged(strong_wall, breaking(operation, error), 1)
    verdict = Referee(once).grade(quick(task), right, reward="all")
    assert (verdict.reward, verdict.void) == (1.0, None)
    always = Sabotaged(strong_wall, breaking(operation, error), 10**6)
    for files in (right, task.start):
        verdict = Referee(always).grade(quick(task), files, reward="all")
        assert (verdict.reward, verdict.void) == (None, str(error))


def test_an_examiner_that_is_killed_costs_nobody_a_reward(strong_wall: Wall) -> None:
    def kill(cell: Cell) -> Any:
        return Killing(cell)

    verdict = Referee(Sabotaged(strong_wall, kill, 1)).grade(quick(CALLS), RIGHT, reward="all")
    assert (verdict.reward, verdict.void) == (1.0, None)
    verdict = Referee(Sabotaged(strong_wall, kill, 10**6)).grade(quick(CALLS), RIGHT, reward="all")
    assert verdict.reward is None
    assert "examiner" in str(verdict.void)


class Killing:
    """A cell whose examiner is killed as soon as it runs, as a machine that is out of memory would."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cell, name)

    def start(self, program: str, *args: Any, **kwargs: Any) -> Any:
        started = self._cell.start(program, *args, **kwargs)
        if program == "examiner":
            started.kill()
        return started


def test_a_fork_server_that_is_killed_is_replaced(wall: Wall) -> None:
    if wall.name != "namespace":
        pytest.skip("only the namespace wall has a server")
    from tiltyard.cells import make_wall

    before = descendants()
    own = make_wall("namespace", hash_seed=4711)  # a server of its own, that no other test uses
    try:
        assert Referee(own).grade(quick(CALLS), RIGHT, reward="all").reward == 1
        for pid in descendants() - before:
            with contextlib.suppress(ProcessLookupError):  # it went with the one before it
                os.kill(pid, signal.SIGKILL)
        verdict = Referee(own).grade(quick(CALLS), RIGHT, reward="all")
        assert (verdict.reward, verdict.void) == (1.0, None)
    finally:
        own.close()


ENDS: dict[str, tuple[str, list[dict[str, str]]]] = {
    "a tool": ("list", [{"tool": "list_files"}]),
    "the tests": ("run", [{"tool": "run_tests"}]),
    "the capture": ("capture", [{"tool": "list_files"}, {"tool": "submit"}]),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_player_whose_cell_we_lost_goes_on_or_is_void(strong_wall: Wall, name: str) -> None:
    operation, actions = ENDS[name]
    once = Sabotaged(strong_wall, breaking(operation, LOST), 1)
    env = CodeEnv([quick(CALLS)], wall=once)
    try:
        env.reset(task_id=CALLS.id)
        for action in actions:
            *_, info = env.step(action)
        assert "void" not in info
    finally:
        env.close()
    env = CodeEnv([quick(CALLS)], wall=Sabotaged(strong_wall, breaking(operation, LOST), 10**6))
    try:
        env.reset(task_id=CALLS.id)
        for action in actions:
            _, reward, terminated, truncated, info = env.step(action)
        assert math.isnan(reward)
        assert truncated and not terminated
        assert info["truncated_by"] == "arena"
        assert info["void"] == str(LOST)
    finally:
        env.close()


def test_a_grading_that_fails_makes_an_episode_void_and_its_reward_no_number(strong_wall: Wall) -> None:
    env = CodeEnv([quick(CALLS)], wall=Sabotaged(strong_wall, breaking("start", FULL), 10**6))
    try:
        env.reset(task_id=CALLS.id)
        _, reward, terminated, _, info = env.step({"tool": "submit"})
        assert math.isnan(reward) and terminated
        assert info["void"] == str(FULL)
    finally:
        env.close()
