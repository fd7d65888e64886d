"""What a fork server does before all else: the same numbers and the same addresses at every start.

Nothing but this is imported before, for it may mean to start again.
"""

from __future__ import annotations

import os
import sys

from . import lock

CONTROL = 3


def begin() -> None:
    """argv: the descriptor of the socket, which is ``CONTROL`` afterwards."""
    _same_number(int(sys.argv[1]))
    _same_addresses()


def _same_number(fd: int) -> None:
    """The socket gets the first free number, and all later descriptors theirs: which ones are in use says how many
    steps it takes to close the others, and that shapes memory, too."""
    if fd != CONTROL:
        os.dup2(fd, CONTROL)
        os.close(fd)


def _same_addresses() -> None:
    """Start again without address space randomisation: addresses, and what is ordered by them, are then the same in
    every run. Where that is not allowed, they are the same among the runs of one server only."""
    try:
        if lock.fixed_addresses():
            return
    except OSError:
        return
    os.set_inheritable(CONTROL, True)
    os.execv(sys.executable, [*sys.orig_argv[:-1], f"{CONTROL:06}"])
