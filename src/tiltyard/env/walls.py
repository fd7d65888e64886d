"""What an environment holds, and which wall it uses. One that was passed in stays its owner's; one that was named is shared by all
environments of this process that named it, and closed with the last of them: 64 environments cost one fork server.

Never waits for a lock in a finalizer, which may run in a thread that holds it. A forked child forgets the parent's
walls and makes its own.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import cast

from tiltyard.cells import make_wall
from tiltyard.cells.protocol import (
    Capture,
    Cell,
    CellLimits,
    Copyable,
    Copying,
    NotPacked,
    PackedCell,
    Wall,
)
from tiltyard.errors import ArenaError
from tiltyard.referee.pytest_kit import with_pytest
from tiltyard.task import Limits

MAX_DEPTH = 32
"""Of a file in a capture: parts of its path."""
MAX_PACKED = 64 << 20
"""Bytes of a packed cell; one that would have more is brought back by playing its actions again."""


class _Shared:
    """A wall with the number of those who use it."""

    def __init__(self, name: str, wall: Wall) -> None:
        self.name, self.wall, self.users, self.pid = name, wall, 0, os.getpid()


_lock = threading.Lock()
_walls: dict[str, _Shared] = {}
_returned: deque[_Shared] = deque()


def _in_child() -> None:
    """After a fork: another thread may have held the lock, and the walls belong to the parent."""
    global _lock
    _lock = threading.Lock()
    _walls.clear()
    _returned.clear()


os.register_at_fork(after_in_child=_in_child)


def take(wall: str | Wall) -> tuple[Wall, Callable[[], None]]:
    """A wall, and what gives it back (call it once). ArenaError if a wall of that name can't be had."""
    if not isinstance(wall, str):
        return wall, lambda: None
    try:
        with _lock:
            shared = _walls.get(wall)
            if shared is None:
                shared = _walls[wall] = _Shared(wall, make_wall(wall))
            shared.users += 1
    finally:
        _settle()

    def give_back() -> None:
        if os.getpid() == shared.pid:
            _returned.append(shared)
            _settle()

    return shared.wall, give_back


def _settle() -> None:
    """Take back what was returned. Whoever holds the lock does it for those who could not, when it lets go."""
    while _returned and _lock.acquire(blocking=False):
        unused = []
        try:
            while _returned:
                shared = _returned.popleft()
                shared.users -= 1
                if not shared.users:
                    del _walls[shared.name]
                    unused.append(shared.wall)
        finally:
            _lock.release()
        for wall in unused:
            wall.close()


class Held:
    """What an environment must give back. Apart from it, so that a finalizer can hold it without keeping it alive."""

    def __init__(self) -> None:
        self.wall: Wall | None = None
        self.cell: Cell | None = None
        self.give_back: Callable[[], None] = lambda: None
        self.pid = os.getpid()

    def take(self, wall: str | Wall) -> None:
        """Have this wall until ``close``, if there is none yet. ArenaError if it can't be had."""
        if self.wall is None:
            self.wall, self.give_back = take(wall)

    def close_cell(self) -> None:
        cell, self.cell = self.cell, None
        if cell is not None and self.pid == os.getpid():  # a forked copy must not end its parent's episode
            cell.close()

    def close(self) -> None:
        self.close_cell()
        self.wall, give_back, self.give_back = None, self.give_back, lambda: None
        give_back()


def open_cell(
    wall: Wall,
    files: Mapping[str, bytes],
    limits: Limits,
    *,
    pytest: bool = False,
    packed: PackedCell | None = None,
) -> Cell:
    """A player's cell, within the task's limits. ``pytest``: its runs find pytest ready; ``packed``: with what lay in
    another one (NotPacked, where this wall can't)."""
    wall = with_pytest(wall) if pytest else wall
    caps = CellLimits(**{f.name: getattr(limits, f.name) for f in fields(CellLimits)})
    if packed is None:
        return wall.open(files, caps)
    if not isinstance(wall, Copying):
        raise NotPacked(f"cells of the {wall.name} wall can't be copied")
    return wall.unpack(files, caps, packed)


def pack_cell(wall: Wall, cell: Cell) -> PackedCell | None:
    """All that lies in a player's cell; None where it can't be packed, or the cell is lost."""
    if not isinstance(wall, Copying):
        return None
    try:
        return cast(Copyable, cell).pack(max_bytes=MAX_PACKED)
    except (ArenaError, OSError):
        return None


def capture(cell: Cell, limits: Limits) -> Capture:
    """What lies in a player's cell, as far as the task's limits let it."""
    return cell.capture(
        max_file_bytes=limits.file_bytes,
        max_bytes=limits.disk_bytes,
        max_files=limits.disk_files,
        max_depth=MAX_DEPTH,
    )
