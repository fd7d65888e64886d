"""Cells of repositories under measurement: a start of 500 files, and a small suite run by pytest.

The repository is made here, the same bytes always, and kept in this machine's cache of images like any other. A
reset counts until the cell has answered a first look. What pytest is measured against is what people run: a fresh
``python -m pytest`` in a folder with the same files, with no wall.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from tiltyard.bench.instead import PYTEST
from tiltyard.bench.targets import REPOSITORY_COPY, REPOSITORY_PYTEST, REPOSITORY_RESET
from tiltyard.cells.protocol import CellLimits, Wall
from tiltyard.cells.start import contents
from tiltyard.env import CodeEnv
from tiltyard.errors import ArenaError
from tiltyard.images import Images
from tiltyard.pool.repository import repository_task
from tiltyard.task import Files, Metadata, Task

FILES = 500
TESTS = 20
CALL_S = 120.0
_SUITE = "tests/test_core.py"
_LOOK = {"tool": "view_file", "path": "README.md"}
_RUN = {"tool": "run_tests"}


def repository_files() -> dict[str, bytes]:
    """The repository: a package of many modules, of which the suite uses one."""
    lines = ["import pytest", "", "from package.core import scale", ""]
    lines += ["@pytest.fixture", "def factor():", "    return 3", ""]
    for n in range(TESTS):
        lines += ["", f"def test_{n}(factor):", f"    assert scale({n}, factor) == {3 * n}", ""]
    found = {
        "README.md": b"A repository to measure with.\n",
        "package/__init__.py": b"",
        "package/core.py": b"def scale(value, factor):\n    return value * factor\n",
        _SUITE: "\n".join(lines).encode(),
    }
    for n in range(FILES - len(found)):
        body = "".join(f"def function_{k}(value):\n    return value + {n * k}\n\n\n" for k in range(20))
        found[f"package/part_{n % 25}/module_{n}.py"] = f'"""Module {n}."""\n\n\n{body}'.encode()
    return found


@cache
def repository() -> Task:
    """The task. ArenaError: its image can't be kept on this machine."""
    tests = [f"{_SUITE}::test_{n}" for n in range(TESTS)]
    start = Images().add(repository_files())
    return repository_task(
        "bench/repository",
        "Nothing has to be done here.",
        start,
        {_SUITE: start[_SUITE]},
        tests[:1],
        tests[1:],
        Files({"package/core.py": start["package/core.py"] + b"\n"}),
        metadata=Metadata(source="bench"),
    )


class RepositoryLane:
    """A wall and an environment with the repository, open until ``close``. Used by one thread; the wall stays its
    owner's."""

    def __init__(self, wall: Wall) -> None:
        self.wall = wall
        self.env = CodeEnv([repository()], wall=wall, max_steps=1000)

    def close(self) -> None:
        self.env.close()

    def measure(self) -> dict[str, list[float]]:
        """A reset, and the suite."""
        begun = time.perf_counter()
        self.env.reset(seed=0)
        self._act(_LOOK, "A repository to measure with.")
        opened = time.perf_counter()
        self._act(_RUN, f"{TESTS} of {TESTS} visible tests passed")
        suite = time.perf_counter() - opened
        return {REPOSITORY_RESET: [opened - begun], REPOSITORY_PYTEST: [suite]}

    def copy(self) -> dict[str, list[float]]:
        """A cell with the same files where nothing is shared: they are sent one by one."""
        files = dict(contents(repository().start))
        begun = time.perf_counter()
        cell = self.wall.open(files, CellLimits(disk_bytes=512 << 20, disk_files=20_000))
        try:
            cell.read("README.md", max_bytes=999)
            return {REPOSITORY_COPY: [time.perf_counter() - begun]}
        finally:
            cell.close()

    def _act(self, action: dict[str, str], expected: str) -> None:
        observation, _, _, _, info = self.env.step(action)
        if "void" in info or info["invalid_action"] or expected not in observation:
            raise ArenaError(f"{action['tool']} went wrong: {info.get('void') or observation[:300]}")


class FreshPytest:
    """The same suite as people run it, in a folder of its own until ``close``."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tiltyard-bench-")
        for path, data in repository_files().items():
            target = Path(self._folder.name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    def close(self) -> None:
        self._folder.cleanup()

    def measure(self) -> dict[str, list[float]]:
        """One run. ArenaError if it does not pass."""
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", _SUITE]
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        begun = time.perf_counter()
        done = subprocess.run(
            argv, cwd=self._folder.name, env=env, capture_output=True, text=True, timeout=CALL_S, check=False
        )
        seconds = time.perf_counter() - begun
        if done.returncode != 0 or f"{TESTS} passed" not in done.stdout:
            raise ArenaError(
                f"python -m pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}"
            )
        return {PYTEST: [seconds]}
