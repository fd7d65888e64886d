"""Kits: trusted packages that some cells need, though cells see no installed package.

A kit names top-level packages with the folders that hold them, and modules to have loaded. A wall with a warm server
gives a server of its own to each kit (``with_kit``), which imports them before its cells lose sight of the machine;
on other walls the program in the cell finds them by itself (``inside.kit``), where the folders can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tiltyard.cells.protocol import Wall


@dataclass(frozen=True, slots=True)
class Kit:
    """``packages``: pairs of a top-level name and the folder that it is in. ``preload``: modules to have loaded. ``alone``:
    while they are loaded nothing else that is installed can be; it is not trusted as they are."""

    packages: tuple[tuple[str, str], ...] = ()
    preload: tuple[str, ...] = ()
    alone: bool = False


@runtime_checkable
class Kitted(Protocol):
    """A wall that can have cells with a kit ready in them."""

    def with_kit(self, kit: Kit) -> Wall:
        """A wall of the same kind and settings whose runs find the kit loaded. Closed together with this one."""


def kitted(wall: Wall, kit: Kit) -> Wall:
    """A wall whose cells have the kit ready, if this one can be asked for it, else itself."""
    return wall.with_kit(kit) if isinstance(wall, Kitted) else wall
