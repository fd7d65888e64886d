"""Walls like another one that differ in their interpreter: a task's own environment, on whatever wall; or in their image.

``with_python`` asks a wall for one. A wall keeps the latest ``MOST`` of those that it was asked for; one that falls out
lives as long as somebody holds it, or a cell of it is open, so a pool with fifty environments holds a few fork servers
and no cell is lost. All are closed with the wall that was asked.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError

MOST = 6
_W = TypeVar("_W", bound=Wall)


@runtime_checkable
class WithPython(Protocol):
    """A wall that can have cells with another interpreter."""

    def with_python(self, python: str) -> Wall:
        """A wall of the same kind and settings, whose cells have the interpreter at ``python`` with its packages. The
        same one for the same path while it is kept. ArenaError: this wall can't have another interpreter."""


def with_python(wall: Wall, python: str) -> Wall:
    """See :class:`WithPython`. ArenaError: walls of this kind can't."""
    if not isinstance(wall, WithPython):
        raise ArenaError(f"the {wall.name} wall can't have cells with another interpreter")
    return wall.with_python(python)


@runtime_checkable
class WithImage(Protocol):
    """A wall whose cells can be of an image."""

    def with_image(self, image: str) -> Wall:
        """A wall of the same kind and settings, whose cells are of this container image and have its ``python3``."""


def with_image(wall: Wall, image: str) -> Wall:
    """See :class:`WithImage`. ArenaError: walls of this kind can't."""
    if not isinstance(wall, WithImage):
        raise ArenaError(
            f"the task needs the container image {image!r}, which the {wall.name} wall can't have; take the container wall"
        )
    return wall.with_image(image)


class Siblings(Generic[_W]):
    """The latest walls that were made for one wall, by key. Safe to use from several threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._latest: OrderedDict[str, _W] = OrderedDict()
        self._all: weakref.WeakSet[_W] = weakref.WeakSet()
        self._lock = threading.Lock()
        _known.add(self)

    def get(self, key: str, make: Callable[[], _W]) -> _W:
        """The wall of this key, made if it is not kept."""
        with self._lock:
            wall = self._latest.get(key)
            if wall is None:
                wall = make()
                self._all.add(wall)
                self._latest[key] = wall
            self._latest.move_to_end(key)
            dropped = [self._latest.popitem(last=False)[1] for _ in range(len(self._latest) - self._most)]
        del dropped  # outside the lock: the last reference closes a fork server
        return wall

    def close(self) -> None:
        """Close all that still live."""
        with self._lock:
            walls = list(self._all)
        for wall in walls:
            wall.close()


_known: weakref.WeakSet[Siblings[Any]] = weakref.WeakSet()


def _in_child() -> None:
    """After a fork: another thread may have held the lock."""
    for siblings in list(_known):
        siblings._lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)
