"""A stall: a fork of the server that holds what one cell at a time is given, and clones one cell after the other.

That is two user ids, an empty network namespace, and a control group. The stall lives in the group itself, so that
its cells are born in it: to move a process into a group makes the kernel wait for every processor, ten milliseconds
on a machine that has nothing else to do. The owner asks on a SEQPACKET socket; each packet has a cell's caps and
carries the socket on which the owner will speak to the keeper. The next packet is read when that cell is gone.
"""

from __future__ import annotations

import json
import os
import signal
import socket

from . import cell, lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from .cgroup import Group

MAX_PACKET = 1 << 16
_CELL = lock.NEWUSER | lock.NEWPID | lock.NEWNS | lock.NEWIPC | lock.NEWUTS | lock.NEWCGROUP


def live(
    sock: socket.socket, locks: cell.Locks, ids: tuple[int, int] | None, group: Group | None
) -> NoReturn:
    """Be a stall until the owner is gone; for a process just forked from the server."""
    try:
        lock.close_others([0, 1, 2, sock.fileno(), *(group.fds if group is not None else ())])
        lock.die_with_parent()
        lock.set_name("tiltyard-stall")
        stall = Stall(sock, locks, ids, group)
        while stall.serve_one():
            pass
    finally:
        os._exit(0)


class Stall:
    """See the module's first lines. What can't be had is said to who asks for a cell."""

    def __init__(
        self, sock: socket.socket, locks: cell.Locks, ids: tuple[int, int] | None, group: Group | None
    ) -> None:
        self.sock = sock
        self.locks = locks
        self.ids = ids
        self.group = group
        self.trouble: OSError | None = None
        try:
            lock.unshare(lock.NEWNET)
            if group is not None:
                group.enter()
        except OSError as error:
            self.trouble = error

    def serve_one(self) -> bool:
        """One cell, from its request to its end; False when the owner is gone."""
        data, fds, _, _ = socket.recv_fds(self.sock, MAX_PACKET, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            return False
        pid = 0
        try:
            try:
                pid = self._clone(json.loads(data), fds[0])
            except OSError as error:
                _refuse(fds[0], error)
        finally:
            for fd in fds:
                os.close(fd)
        if pid:
            os.waitpid(pid, 0)
        return True

    def _clone(self, caps: Mapping[str, Any], fd: int) -> int:
        if self.trouble is not None:
            raise self.trouble
        wait, go = os.pipe()
        try:
            pid = lock.clone(_CELL)
            if pid == 0:
                self._child(caps, fd, wait)
            try:
                self._map(pid)
            except OSError:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
            os.write(go, b"!")
            return pid
        finally:
            os.close(wait)
            os.close(go)

    def _child(self, caps: Mapping[str, Any], fd: int, wait: int) -> NoReturn:
        try:
            if os.read(wait, 1):
                cell.live(fd, self.locks, caps, self.group)
        finally:
            os._exit(0)

    def _map(self, pid: int) -> None:
        """The ids of a cell: its own two, or the one that this user has."""
        if self.ids is not None:
            text = f"{cell.KEEPER} {self.ids[0]} 1\n{cell.PLAYER} {self.ids[1]} 1\n".encode()
        else:
            text = f"{cell.PLAYER} 0 1\n".encode()
        for name in ("uid_map", "gid_map"):
            at = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(at, text)
            finally:
                os.close(at)


def _refuse(fd: int, error: OSError) -> None:
    with socket.socket(fileno=os.dup(fd)) as sock:
        cell.refuse(sock, error)
