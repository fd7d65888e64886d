"""Forks of a warm interpreter, and their end.

``os.fork`` runs Python's after-fork hooks, which touch a hundred pages; the C library's fork skips them (0.3 ms
instead of 0.9). That is safe where the process has one thread, for nothing is left locked by another one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

try:
    _raw = ctypes.PyDLL(None).fork if sys.platform == "linux" else None
except (OSError, AttributeError):
    _raw = None


def fork() -> int:
    """As ``os.fork``: 0 in the child. OSError if there can be no more processes."""
    if _raw is None or len(sys._current_frames()) > 1:
        return os.fork()
    pid = int(_raw())
    if pid < 0:
        return os.fork()  # fails as well, with the right error
    return pid


def end(child: int) -> None:
    """Kill a child with all that is left in its process group, and wait for it."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except OSError:
            pass
    try:
        os.waitpid(child, 0)
    except OSError:
        pass
