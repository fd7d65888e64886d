"""Environments: the Python and the packages that a repository's code and tests need, built once and used in cells.

An :class:`Environment` is a version of Python and pinned packages. ``build`` makes it in the cache of this machine, with
the network, through uv; from then on it is used without. ``environment_wall`` gives the wall whose cells have a task's
environment; ``find`` works out the environment of a repository as of a date, from what it declares and imports.

Promises: no package's code runs outside a cell, but for what has no wheel and is built from source (said, noted), and
pytest, which fork servers load. The repository itself is never installed: it is imported from where its files lie.
"""

from tiltyard.environments.build import Built, about, all_built, build, is_built
from tiltyard.environments.model import BuildError, Environment, Found, environment_of
from tiltyard.environments.pythons import OLDEST, Python, python_for, pythons
from tiltyard.environments.walls import environment_wall, pytest_kit_of, wall_of

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
    "is_built",
    "pytest_kit_of",
    "python_for",
    "pythons",
    "wall_of",
]
