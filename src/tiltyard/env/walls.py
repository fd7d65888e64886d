"""Which wall an environment uses. One that was passed in stays its owner's; one that was named is shared by all
environments of this process that named it, and closed with the last of them, so that 64 environments cost one fork
server. Holds no lock while a wall starts for another name, and nothing over a fork: a child starts its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from tiltyard.cells import make_wall
from tiltyard.cells.protocol import Wall

_lock = threading.Lock()
_shared: dict[str, tuple[Wall, int]] = {}


def _in_child() -> None:
    """After a fork: another thread may have held the lock, and the walls belong to the parent."""
    global _lock
    _lock = threading.Lock()
    _shared.clear()


os.register_at_fork(after_in_child=_in_child)


def take(wall: str | Wall) -> tuple[Wall, Callable[[], None]]:
    """A wall, and what gives it back (call it once). ArenaError if a wall of that name can't be had."""
    if not isinstance(wall, str):
        return wall, lambda: None
    with _lock:
        held, count = _shared.get(wall) or (make_wall(wall), 0)
        _shared[wall] = (held, count + 1)
    pid = os.getpid()

    def give_back() -> None:
        if os.getpid() != pid:
            return
        with _lock:
            kept, count = _shared[wall]
            if count > 1:
                _shared[wall] = (kept, count - 1)
                return
            del _shared[wall]
        kept.close()

    return held, give_back
