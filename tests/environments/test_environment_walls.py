"""Cells with a task's own environment, on every wall: players, tests, shells; and what happens where it can't be had."""

from __future__ import annotations

import gc
import math
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from tiltyard import CodeEnv
from tiltyard.cells import CellLimits, ProcessWall, Run, Wall, make_wall
from tiltyard.cells.siblings import Siblings
from tiltyard.environments import BuildError, Environment, environment_wall, pytest_kit_of, pythons, wall_of
from tiltyard.errors import ArenaError
from tiltyard.referee import Referee
from tiltyard.referee.pytest_kit import with_pytest
from tiltyard.task import Files, Metadata, Task, Test

Make = Callable[..., Path]
SHOW = b"import sys, demo; print(demo.value, sys.version_info[:2] == (%d, %d))\n" % sys.version_info[:2]


def pytest_task(way: str = "", packages: tuple[str, ...] = ("demo==1.0",), python: str = "") -> Task:
    suite = "import demo\nfrom pkg import double\n\ndef test_double():\n    assert double(demo.value) == 2\n"
    return Task(
        id="t",
        prompt="p",
        start=Files({"pkg/__init__.py": "def double(x):\n    return x\n", "tests/test_seen.py": "import demo\n\ndef test_seen():\n    assert demo.value == 1\n"}),
        hidden=(Test("tests/test_pkg.py::test_double"),),
        visible=(Test("tests/test_seen.py"),),
        reference=Files({"pkg/__init__.py": "def double(x):\n    return x * 2\n"}),
        suite=Files({"tests/test_pkg.py": suite}),
        grading="pytest",
        reward="all",
        way=way,  # type: ignore[arg-type]
        shell=True,
        metadata=Metadata(python=python, packages=packages),
    )  # fmt: skip


def test_cells_see_the_environment_and_a_shell_has_its_programs(wall: Wall, make_wheel: Make) -> None:
    make_wheel("demo", "1.0", {"demo.py": "value = 1\n"}, points="[console_scripts]\nsay-demo = demo:say\n")
    task = pytest_task()
    own = environment_wall(wall, task)
    assert own is not wall and own.name == wall.name
    assert environment_wall(wall, task) is own and environment_wall(own, task) is own
    with own.open({"show.py": SHOW}, CellLimits()) as cell:
        result = cell.run(Run(("python", "show.py"), wall_s=60.0))
        assert (result.rc, result.stdout) == (0, b"1 True\n"), result.stderr
        result = cell.run(Run(("sh", "-c", "python show.py; command -v say-demo"), wall_s=60.0))
        assert result.rc == 0 and result.stdout.startswith(b"1 True\n"), result.stderr
    with wall.open({"show.py": SHOW}, CellLimits()) as cell:
        assert cell.run(Run(("python", "show.py"), wall_s=60.0)).rc == 1, "other cells have nothing of it"


@pytest.mark.parametrize("way", ["remote", "in-process"])
def test_suites_are_graded_in_it(wall: Wall, make_wheel: Make, way: str) -> None:
    make_wheel("demo", "1.0", {"demo.py": "value = 1\n"})
    task, referee = pytest_task(way), Referee(wall)
    good, bad = referee.grade(task, task.reference), referee.grade(task, task.start)
    assert (good.void, good.reward) == (None, 1.0)
    assert (bad.void, bad.reward) == (None, 0.0)


def test_an_episode_in_it(wall: Wall, make_wheel: Make) -> None:
    make_wheel("demo", "1.0", {"demo.py": "value = 1\n"})
    task = pytest_task()
    with CodeEnv([task], wall=wall) as env:
        env.reset(seed=0)
        seen, *_ = env.step({"tool": "bash", "command": "python -c 'import demo; print(demo.value + 41)'"})
        assert "42" in seen
        seen, *_ = env.step({"tool": "run_tests"})
        assert "test_seen" in seen and "passed" in seen.lower()
        env.step(
            {"tool": "write_file", "path": "pkg/__init__.py", "content": "def double(x):\n    return x * 2\n"}
        )
        _, reward, terminated, _, info = env.step({"tool": "submit"})
        assert terminated and reward == 1.0, info


def test_calls_in_another_python(wall: Wall, wheels: Path) -> None:
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    others = [python.minor for python in pythons() if python.minor != here]
    if not others:
        pytest.skip("this machine has no other Python for cells")
    for version in others:
        task = Task(
            id="t",
            prompt="p",
            start=Files({"solution.py": ""}),
            hidden=(Test("a", code=f"assert version() == {version!r}"), Test("b", code="assert pairs() == {'a': (1, 2)}")),
            reference=Files({"solution.py": "import sys\ndef version():\n    return '%d.%d' % sys.version_info[:2]\ndef pairs():\n    return {'a': (1, 2)}\n"}),
            entry=("version", "pairs"),
            metadata=Metadata(python=version),
        )  # fmt: skip
        verdict = Referee(wall).grade(task, task.reference)
        assert (verdict.void, verdict.reward) == (None, 1.0), version
        assert Referee(wall).grade(task, task.start).reward == 0.0, version


def test_what_cannot_be_had_is_void_and_never_0(wall: Wall, wheels: Path) -> None:
    task = pytest_task("remote", packages=("nosuch==1.0",))
    verdict = Referee(wall).grade(task, task.reference)
    assert verdict.reward is None and verdict.void is not None and "nosuch" in verdict.void
    old = Referee(wall).grade(pytest_task("remote", packages=(), python="2.7"), task.reference)
    assert old.void is not None and "needs Python 2.7; cells need 3.9 or newer" in old.void
    with CodeEnv([task], wall=wall) as env:
        env.reset(seed=0)
        _, reward, _, truncated, info = env.step({"tool": "bash", "command": "true"})
        assert truncated and math.isnan(float(reward)) and "nosuch" in info["void"]


def test_a_pytest_of_its_own_comes_before_the_arenas(make_wheel: Make) -> None:
    make_wheel(
        "pytest", "7.0", {"pytest.py": "import _pytest\n", "_pytest/__init__.py": "", "_pytest/config.py": ""}
    )
    wall = ProcessWall()
    kit = pytest_kit_of(wall_of(wall, Environment("", ("pytest==7.0",))))
    assert kit is not None and kit.alone and [name for name, _ in kit.packages] == ["_pytest", "pytest"]
    assert {"pytest", "_pytest", "_pytest.config"} <= {*kit.preload}
    make_wheel("demo", "1.0", {"demo.py": ""})
    assert pytest_kit_of(wall_of(wall, Environment("", ("demo==1.0",)))) is None
    assert pytest_kit_of(wall) is None


def test_a_fork_server_loads_nothing_but_pytest(make_wheel: Make, tmp_path: Path) -> None:
    try:
        wall = make_wall("namespace")
    except ArenaError as error:
        pytest.skip(f"there is no fork server here: {error}")
    trace = tmp_path / "trace"
    evil = f"open({str(trace)!r}, 'w').write('ran')\n"
    try_it = "try:\n    import evil\nexcept ImportError:\n    evil = None\n"
    make_wheel(
        "pytest",
        "7.0",
        {"pytest.py": f"{try_it}import _pytest\nloaded = evil is not None\n", "_pytest/__init__.py": ""},
    )
    make_wheel(
        "evil",
        "1.0",
        {"evil.py": evil, "decimal.py": evil, "pytest_evil.py": evil},
        points="[pytest11]\nevil = pytest_evil\n",
    )
    own = with_pytest(wall_of(wall, Environment("", ("pytest==7.0", "evil==1.0"))))
    with own.open({}, CellLimits()) as cell:
        result = cell.run(Run(("python", "-c", "import pytest; print(pytest.loaded)"), wall_s=60.0))
        assert (result.stdout, result.rc) == (b"False\n", 0), (
            "loaded in the server, where there was nothing but pytest"
        )
        result = cell.run(Run(("python", "-c", "import evil"), wall_s=60.0))
        assert (result.rc == 1 and b"FileNotFoundError" in result.stderr) or b"Permission" in result.stderr, (
            "only here it runs"
        )
    wall.close()
    assert not trace.exists()


def test_files_put_among_those_of_pytest_are_noticed(make_wheel: Make, tmp_path: Path) -> None:
    make_wheel("pytest", "7.0", {"pytest.py": "", "_pytest/__init__.py": ""})
    for version, path in (("1.0", "_pytest/more.py"), ("2.0", "pytest.py"), ("3.0", "pytest/__init__.py")):
        make_wheel("evil", version, {path: "raise SystemExit('evil')\n"})
        kit = pytest_kit_of(wall_of(ProcessWall(), Environment("", ("pytest==7.0", f"evil=={version}"))))
        assert kit is not None and not kit.packages and "pytest" not in kit.preload, path


def test_few_walls_are_kept_and_all_are_closed() -> None:
    closed: list[int] = []

    class Counting(ProcessWall):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        def close(self) -> None:
            closed.append(self.number)

    siblings: Siblings[Counting] = Siblings(most=2)
    held = siblings.get("0", lambda: Counting(0))
    assert siblings.get("0", lambda: Counting(9)) is held
    loose = weakref.ref(siblings.get("1", lambda: Counting(1)))
    for number in (2, 3):
        siblings.get(str(number), lambda n=number: Counting(n))  # type: ignore[misc]
    gc.collect()
    assert loose() is None, "nobody held it"
    siblings.close()
    assert sorted(closed) == [0, 2, 3], "one that fell out and is held is closed with the others"


def test_a_wall_that_has_no_other_interpreters_says_so(make_wheel: Make) -> None:
    make_wheel("demo", "1.0", {"demo.py": "value = 1\n"})

    class Odd:
        name = "odd"
        weaknesses = ()

        def open(self, files: object, limits: object) -> None: ...
        def close(self) -> None: ...

    with pytest.raises(ArenaError, match="the odd wall can't have cells with another interpreter"):
        environment_wall(Odd(), pytest_task())  # type: ignore[arg-type]


def test_closing_the_wall_closes_the_cells_of_its_environments(make_wheel: Make) -> None:
    make_wheel("demo", "1.0", {"demo.py": "value = 1\n"})
    wall = make_wall("process")
    cell = environment_wall(wall, pytest_task()).open({}, CellLimits())
    wall.close()
    with pytest.raises(ArenaError):
        cell.write("x", b"")


def test_a_missing_uv_is_said(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BuildError, match=r"pip install 'tiltyard\[repos\]'") as caught:
        environment_wall(ProcessWall(), pytest_task())
    assert caught.value.kind == "uv"
