"""Cells: one locked box each, owned by exactly one episode or one grading, and the walls that make them.

``make_wall`` makes a wall by name; ``protocol`` says what walls and cells promise.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, cast

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
    "settled_name",
]

_STRONG = {
    "namespace": ("tiltyard.cells.namespace", "NamespaceWall"),
    "container": ("tiltyard.cells.container", "ContainerWall"),
}
"""Walls that may be missing from this build or this machine, strongest first: module and class."""

WALLS: tuple[str, ...] = (*_STRONG, "process")


def make_wall(name: str = "auto", *, hash_seed: int = 0, python: str | None = None) -> Wall:
    """A wall by name; ``auto`` is the strongest that works here. ``container`` may say how, as in
    ``container:exec,runtime=runsc``: see ``tiltyard.cells.container_words``.

    ``hash_seed`` is PYTHONHASHSEED of all that runs; ``python`` the path of another interpreter, with its packages.
    Raises ArenaError, with the reason, if a wall that was asked for by name can't be had here, and UsageError for an
    unknown name.
    """
    if name == "auto":
        name = next(w for w in WALLS if probe_wall(w) is None)
    if name == "process":
        return ProcessWall(hash_seed=hash_seed, python=python)
    kind, how = _kind(name)
    if (reason := probe_wall(name)) is not None:
        raise ArenaError(f"the {name} wall can't be had here: {reason}")
    module, cls = _STRONG[kind]
    make = cast(Callable[..., Wall], getattr(importlib.import_module(module), cls))
    return make(hash_seed=hash_seed, python=python, **how)


def settled_name(name: str) -> str:
    """The name for all who must have the same wall (workers, records): of ``auto``, the wall that it is; any other stays.
    Raises as ``make_wall``, for it is tried."""
    made = make_wall(name)
    made.close()
    return made.name if name == "auto" else name


def _kind(name: str) -> tuple[str, dict[str, Any]]:
    """The kind of a wall, and the arguments that its name has for it. UsageError if there is no such wall."""
    kind, colon, words = name.partition(":")
    if kind not in WALLS or (colon and kind != "container"):
        raise UsageError(
            f"found wall {name!r}; expected one of auto, {', '.join(WALLS)}, or container:HOW"
            " (docs/walls.md lists the words)"
        )
    if not words:
        return kind, {}
    from tiltyard.cells.container_words import options

    return kind, options(words)


def probe_wall(name: str) -> str | None:
    """Why a wall can't be had here, or None if it works. UsageError for an unknown name."""
    kind, how = _kind(name)
    if kind == "process":
        return None
    try:
        probe = importlib.import_module(_STRONG[kind][0]).probe
    except (ImportError, AttributeError) as error:
        return f"this build has no {kind} wall ({error})"
    return cast("str | None", probe(**how))
