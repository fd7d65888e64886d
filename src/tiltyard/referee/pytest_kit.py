"""How pytest gets into a cell: the arena's own, with the few distributions that it needs, and nothing else installed.

On the namespace wall a fork server of its own has all of it loaded, so a warm pytest costs no import; elsewhere the
program in the cell imports it from where it lies. A task whose environment has a pytest of its own uses that one.
"""

from __future__ import annotations

import importlib.metadata as metadata
import re
from functools import cache
from pathlib import Path, PurePosixPath

from tiltyard.cells.kit import Kit, kitted
from tiltyard.cells.protocol import Wall
from tiltyard.environments import environment_of, pytest_kit_of
from tiltyard.environments.walls import modules_with_pytest
from tiltyard.errors import ArenaError
from tiltyard.task import Task

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@cache
def pytest_kit() -> Kit:
    """pytest and what it needs, found by the names of their distributions. ArenaError: it is not installed."""
    packages: dict[str, str] = {}
    todo, seen = ["pytest"], set[str]()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise ArenaError(
                f"grading by pytest needs {name}, which is not installed: pip install {name}"
            ) from None
        packages |= _packages(found)
        for requirement in found.requires or ():
            needed, _, marker = requirement.partition(";")
            if "extra" not in marker and "python_version" not in marker and "sys_platform" not in marker:
                match = _NAME.match(needed.strip())
                todo += [match[0]] if match else []
    return Kit(tuple(sorted(packages.items())), modules_with_pytest(Path(packages["_pytest"])))


def _packages(distribution: metadata.Distribution) -> dict[str, str]:
    """Top-level names of a distribution, with the folder that holds each."""
    out: dict[str, str] = {}
    for file in distribution.files or ():
        path = PurePosixPath(file)
        top = path.parts[0]
        if path.suffix == ".py" and ".." not in path.parts and "-" not in top:
            name = top.removesuffix(".py")
            out[name] = str(Path(str(distribution.locate_file(path.parts[0]))).resolve().parent)
    return out


def with_pytest(wall: Wall) -> Wall:
    """A wall of the same kind whose cells have pytest: that of an environment, where the wall is one's, else the arena's."""
    return kitted(wall, pytest_kit_of(wall) or pytest_kit())


def kit_packages(task: Task) -> dict[str, str]:
    """What a program in a cell is told of the kit: nothing, where the task's environment has a pytest of its own."""
    environment = environment_of(task)
    return {} if environment is not None and "pytest" in environment.pins else dict(pytest_kit().packages)
