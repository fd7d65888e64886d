"""A stall: a fork of the server that holds what one cell at a time is given, and clones one cell after the other.

That is two user ids, an empty network namespace, and a control group. The stall lives in the group itself, so that
its cells are born in it: to move a process into a group makes the kernel wait for every processor, ten milliseconds
on a machine that has nothing else to do. The owner sends a byte, at which the stall clones a cell, and an order with
the cell's caps and the socket on which the owner will speak to its keeper, which the clone reads: the stall itself
stays as it was. The next byte is read when that cell is gone.
"""

from __future__ import annotations

import json
import os
import struct

from . import bare, cell, cgroup, lock, overlay, wire
from .twin import KEEPER, PLAYER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from .bare import Socket
    from .cell import Locks
    from .cgroup import Home

MAX_PACKET = 1 << 16
_CELL = lock.NEWUSER | lock.NEWPID | lock.NEWNS | lock.NEWIPC | lock.NEWUTS | lock.NEWCGROUP


def live(control: Socket, locks: Locks, home: Home | None, ids: Sequence[int]) -> NoReturn:
    """Become the stall that a packet on ``control`` describes, and be it until the owner is gone; for a process just
    forked from the server."""
    try:
        bare.on_signal(bare.SIGCHLD, bare.DEFAULT)
        data, fds, _ = bare.receive_fds(control, MAX_PACKET, 1)
        number = json.loads(data)["number"]
        lock.die_with_parent()
        lock.set_name("tiltyard-stall")
        mail = bare.Socket(fileno=fds[0])
        stall = Stall(mail, locks, home, number, ids[2 * number : 2 * number + 2])
        stall.rehearse()
        while os.read(fds[0], 1) and stall.serve_one():
            pass
    finally:
        os._exit(0)


class Stall:
    """See the module's first lines. What can't be had is said to who asks for a cell."""

    def __init__(
        self, mail: Socket, locks: Locks, home: Home | None, number: int, ids: Sequence[int]
    ) -> None:
        self.mail = mail
        self.locks = locks
        self.wait, self.go = os.pipe()
        self.taken, self.tell_taken = os.pipe()
        os.set_blocking(self.taken, False)
        self.group: cgroup.Group | None = None
        self.trouble: OSError | None = None
        self.for_nobody = False
        self.ids = f"{PLAYER} 0 1\n".encode()  # the one id that this user has
        if ids:
            self.ids = f"{KEEPER} {ids[0]} 1\n{PLAYER} {ids[1]} 1\n".encode()
        try:
            if home is not None:
                self.group = cgroup.Group(home, f"cell-{number}")
                self.group.enter()
            lock.unshare(lock.NEWNET)
            if ids and locks.trees:
                _give_trees(ids[1])
        except OSError as error:
            self.trouble = error
        group = self.group.fds if self.group is not None else []
        lock.close_others([0, 1, 2, mail.fileno(), self.wait, self.go, self.taken, self.tell_taken, *group])

    def rehearse(self) -> None:
        """Serve once for nobody. What the first cell costs comes from memory that was never in use; given back, the next
        one finds it before any other, and would begin in a memory that the first had not."""
        self.for_nobody = True
        if self.trouble is None:
            self.serve_one()
        self.for_nobody = False

    def serve_one(self) -> bool:
        """One cell, from its request to its end; False when no other can be made here. It leaves this process's memory
        as it was, whatever the cell does: the next one begins in the same state."""
        try:
            if self.trouble is not None:
                raise self.trouble
            pid = lock.clone(_CELL)
        except OSError as error:
            self._refuse(error)
            return True
        if pid == 0:
            self._child()
        try:
            for name in ("uid_map", "gid_map"):
                at = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
                os.write(at, self.ids)
                os.close(at)
        except OSError as error:
            os.kill(pid, bare.SIGKILL)
            os.waitpid(pid, 0)
            self._refuse(error)
            return False
        os.write(self.go, b"!")
        os.waitpid(pid, 0)
        return self._was_taken()

    def _was_taken(self) -> bool:
        """Whether the cell that has ended had taken its order. What it says by its end may be a player's word."""
        try:
            return bool(os.read(self.taken, 1))
        except BlockingIOError:
            return False

    def _child(self) -> NoReturn:
        code = 1
        try:
            if os.read(self.wait, 1):
                if self.for_nobody:
                    os.write(self.tell_taken, b"!")
                    os._exit(0)
                cell.live(self.mail, self.locks, self.group, self.tell_taken)
                code = 0
        finally:
            os._exit(code)

    def _refuse(self, error: OSError) -> None:
        """Take the mail that nobody else will take, and answer it."""
        if self.for_nobody:
            return  # who wants a cell is told
        try:
            wire.refuse(cell.take_order(self.mail)[-1], "arena", f"{error.strerror or error}")
        except (OSError, struct.error, IndexError):
            pass  # the owner is gone


def _give_trees(player: int) -> None:
    try:
        overlay.give_to(player, player)
    except OSError:
        pass  # a kernel or a file system that knows no such mounts; a cell that wants a tree finds it as it is
