"""The wall for a task: the one that was given, or for a task with an environment of its own one like it.

``environment_wall`` is asked wherever cells are opened for a task. The environment is built when it is first needed (one
line on stderr says so); if it can't be had, that is an ArenaError with the reason: what needs it is void and never 0.
What the fork server of such a wall loads is pytest of the environment and what pytest itself needs: other packages
run in cells only.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tiltyard.cells.clock import with_clock
from tiltyard.cells.kit import Kit
from tiltyard.cells.protocol import Wall
from tiltyard.cells.siblings import with_image, with_python
from tiltyard.environments.model import Environment, environment_of
from tiltyard.task import Task

OFTEN_USED = (
    "asyncio",
    "unittest.mock",
    "logging",
    "doctest",
    "pprint",
    "shutil",
    "subprocess",
    "glob",
    "csv",
    "html",
)
"""Modules of the standard library that suites and pytest's own plugins import."""
_LEFT_OUT = frozenset({"freeze_support"})

_made: weakref.WeakKeyDictionary[Wall, tuple[str, str]] = weakref.WeakKeyDictionary()
"""Walls of environments, with the digest and the interpreter."""
_lock = threading.Lock()


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


def environment_wall(wall: Wall, task: Task) -> Wall:
    """The wall whose cells have what this task needs: ``wall`` itself, if the task names no environment or the wall is
    that environment's, else one of the same kind and settings with its interpreter, closed together with
    ``wall``; of the container image that a task names; and with the clock at which a task says that it stands. BuildError, an ArenaError: the environment can't be
    had, with the reason."""
    metadata = task.metadata
    if metadata.image:
        wall = with_image(wall, metadata.image)
    if metadata.packages or metadata.python:
        environment = environment_of(task)
        wall = wall if environment is None else wall_of(wall, environment)
    return _with_clock(wall, task.clock) if task.clock else wall


def _with_clock(wall: Wall, instant: str) -> Wall:
    found = with_clock(wall, instant)
    with _lock:
        if found is not wall and wall in _made:
            _made[found] = _made[wall]
    return found


def wall_of(wall: Wall, environment: Environment, progress: Callable[[str], None] | None = None) -> Wall:
    """As ``environment_wall``, for an environment."""
    with _lock:
        if _made.get(wall, ("", ""))[0] == environment.digest:
            return wall
    from tiltyard.environments.building import build  # most tasks have no environment

    python = str(build(environment, progress or _say))
    found = with_python(wall, python)
    with _lock:
        _made[found] = environment.digest, python
    return found


def pytest_kit_of(wall: Wall) -> Kit | None:
    """For a wall of an environment with a pytest of its own: what its fork server is to load, and nothing else that is
    installed. None for other walls."""
    with _lock:
        _, python = _made.get(wall, ("", ""))
    kit = _kit(python) if python else None
    # a container has it in its image, and its keeper is locked in before it loads anything
    return replace(kit, packages=()) if kit is not None and wall.name == "container" else kit


@lru_cache(maxsize=64)
def _kit(python: str) -> Kit | None:
    from tiltyard.environments.building import read_about

    found = read_about(Path(python).parent.parent)
    folder = next(Path(python).parent.parent.glob("lib/python3*/site-packages"), None)
    if found is None or folder is None or not (folder / "_pytest").is_dir():
        return None
    if not found.trusted:
        return Kit((), OFTEN_USED)  # the cell imports it by itself
    packages = tuple((name, str(folder)) for name in found.trusted)
    return Kit(packages, modules_with_pytest(folder), alone=True)


def modules_with_pytest(folder: Path) -> tuple[str, ...]:
    """What a fork server loads of the pytest in ``folder``, and of the standard library with it: all of pytest's modules,
    for what is not loaded there can't be found in its cells."""
    paths = sorted((folder / "_pytest").rglob("*.py"))
    names = [".".join(path.relative_to(folder).with_suffix("").parts) for path in paths]
    own = [name.removesuffix(".__init__") for name in names if name.rpartition(".")[2] not in _LEFT_OUT]
    return (*OFTEN_USED, "pytest", *own)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
