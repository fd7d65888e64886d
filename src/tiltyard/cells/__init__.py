"""Cells: one locked box each, owned by exactly one episode or one grading, and the walls that make them.

``make_wall`` makes a wall by name; ``protocol`` says what walls and cells promise.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from tiltyard.cells.process import ProcessWall
from tiltyard.cells.protocol import (
    Capture,
    Cell,
    CellFileError,
    CellLimits,
    CellLost,
    Copyable,
    Copying,
    Entry,
    Listing,
    NotPacked,
    PackedCell,
    Run,
    RunResult,
    Started,
    Wall,
)
from tiltyard.errors import ArenaError, UsageError

__all__ = [
    "WALLS",
    "Capture",
    "Cell",
    "CellFileError",
    "CellLimits",
    "CellLost",
    "Copyable",
    "Copying",
    "Entry",
    "Listing",
    "NotPacked",
    "PackedCell",
    "ProcessWall",
    "Run",
    "RunResult",
    "Started",
    "Wall",
    "make_wall",
    "probe_wall",
]

_STRONG = {
    "namespace": ("tiltyard.cells.namespace", "NamespaceWall"),
    "container": ("tiltyard.cells.container", "ContainerWall"),
}
"""Walls that may be missing from this build or this machine, strongest first: module and class."""

WALLS: tuple[str, ...] = (*_STRONG, "process")


def make_wall(name: str = "auto", *, hash_seed: int = 0, python: str | None = None) -> Wall:
    """A wall by name; ``auto`` is the strongest that works here.

    ``hash_seed`` is PYTHONHASHSEED of all that runs; ``python`` the path of another interpreter, with its packages.
    Raises ArenaError, with the reason, if a wall that was asked for by name can't be had here, and UsageError for an
    unknown name.
    """
    if name == "auto":
        name = next(w for w in WALLS if probe_wall(w) is None)
    if name == "process":
        return ProcessWall(hash_seed=hash_seed, python=python)
    if name not in WALLS:
        raise UsageError(f"found wall {name!r}; expected one of auto, {', '.join(WALLS)}")
    if (reason := probe_wall(name)) is not None:
        raise ArenaError(f"the {name} wall can't be had here: {reason}")
    module, kind = _STRONG[name]
    make = cast(Callable[..., Wall], getattr(importlib.import_module(module), kind))
    return make(hash_seed=hash_seed, python=python)


def probe_wall(name: str) -> str | None:
    """Why a wall can't be had here, or None if it works. UsageError for an unknown name."""
    if name == "process":
        return None
    if name not in WALLS:
        raise UsageError(f"found wall {name!r}; expected one of {', '.join(WALLS)}")
    module = _STRONG[name][0]
    try:
        probe = importlib.import_module(module).probe
    except (ImportError, AttributeError) as error:
        return f"this build has no {name} wall ({error})"
    return cast("str | None", probe())
