"""Environments: the Python and the packages that a repository's code and tests need, built once and used in cells.

An :class:`Environment` is a version of Python and pinned packages. ``build`` makes it in the cache of this machine, with
the network, through uv; from then on it is used without. ``environment_wall`` gives the wall whose cells have a task's
environment; ``find`` works out the environment of a repository as of a date, from what it declares and imports.

Promises: no package's code runs outside a cell, but for what has no wheel and is built from source (said, noted), and
pytest, which fork servers load. The repository itself is never installed: it is imported from where its files lie.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tiltyard.environments.model import BuildError, Environment, Found, environment_of
from tiltyard.environments.walls import environment_wall, pytest_kit_of, wall_of

if TYPE_CHECKING:
    from tiltyard.environments.building import Built, about, all_built, build, is_built, remove
    from tiltyard.environments.finding import find
    from tiltyard.environments.generated import generated_files, version_of
    from tiltyard.environments.interpreters import OLDEST, Python, python_for, pythons
    from tiltyard.environments.plugins import plugins_of

__all__ = [
    "OLDEST",
    "BuildError",
    "Built",
    "Environment",
    "Found",
    "Python",
    "about",
    "all_built",
    "build",
    "environment_of",
    "environment_wall",
    "find",
    "generated_files",
    "is_built",
    "plugins_of",
    "pytest_kit_of",
    "python_for",
    "pythons",
    "remove",
    "version_of",
    "wall_of",
]

_LATER = {
    "building": ("Built", "about", "all_built", "build", "is_built", "remove"),
    "finding": ("find",),
    "generated": ("generated_files", "version_of"),
    "plugins": ("plugins_of",),
    "interpreters": ("OLDEST", "Python", "python_for", "pythons"),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    """What most programs never use is loaded when it is."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
