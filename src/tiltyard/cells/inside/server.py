"""The fork server: one single-threaded, warm process outside every cell, from which all cells of an owner are forked.

It lives in namespaces of its own, on a root of its own (see ``root``), and answers packets of its owner on one
SEQPACKET socket: each asks for a cell and carries the socket on which the owner will speak to that cell's keeper.
Everything else passes between owner and keeper. It reads nothing that a player wrote, keeps nothing of one cell for
the next but a number, a network namespace and a control group, and ends, with all cells, when its owner is gone.

Being the first process of its pid namespace, it takes every process of every cell with it, by whatever end.
"""

# Paths here are text and bytes for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH208

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys

from . import cell, cgroup, lock, root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

HOSTNAME = "cell"
MAX_PACKET = 1 << 16
_CELL = lock.NEWUSER | lock.NEWPID | lock.NEWNS | lock.NEWIPC | lock.NEWUTS


def say(control: socket.socket, what: Mapping[str, Any]) -> None:
    """One packet to the owner. Never raises: if it is gone, that shows elsewhere."""
    try:
        control.send(json.dumps(what).encode()[:MAX_PACKET])
    except OSError:
        pass


def main(
    control: socket.socket,
    wish: Mapping[str, Any],
    home: cgroup.Home | None,
    *,
    with_user: bool,
    ids: Sequence[int],
) -> None:
    """Get warm, say so, serve until the owner is gone. OSError names the step that this machine refuses."""
    if with_user:
        _map_own_user(wish["uid"], wish["gid"])
    lock.set_name("tiltyard-server")
    lock.set_hostname(HOSTNAME)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_DFL
        )  # no handler: as the namespace's first process it can't be hit then
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    _load(wish["folders"], wish["preload"], wish["must"])
    has_proc = root.build(wish["packages"], wish["hidden"])
    _forget_origin()
    locks = cell.Locks(has_proc=has_proc, two_ids=not with_user)
    _seed()
    gc.collect()
    gc.freeze()
    server = Server(control, home, locks, ids)
    say(
        control,
        {
            "ready": True,
            "user": with_user,
            "proc": has_proc,
            "landlock": locks.landlock,
            "groups": home.controllers if home is not None else (),
        },
    )
    server.serve()


def _map_own_user(uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        except OSError as error:
            raise OSError(
                error.errno, f"{name} of a user namespace can't be written ({error.strerror})"
            ) from None


def _load(folders: Sequence[str], preload: Sequence[str], must: Sequence[str]) -> None:
    """Import what runs will need, and every inside module: they can't be found any more once the root is changed."""
    for name in preload:
        try:
            importlib.import_module(name)
        except ImportError as error:
            if name in must:
                raise OSError(0, f"{name} can't be preloaded: {error}") from None
    for folder in folders:
        for entry in sorted(os.listdir(folder)):
            name, dot, suffix = entry.partition(".")
            if dot and suffix == "py" and name.isidentifier() and name != "__init__":
                importlib.import_module(f"{__package__}.{name}")


def _seed() -> None:
    """Every run begins with the same random numbers; the C library's fork does not reseed Python's."""
    random = sys.modules.get("random")
    if random is not None:
        random.seed(0)


def _forget_origin() -> None:
    """Nothing of how this process was started is seen by those that are forked from it."""
    sys.argv[:] = ["python"]
    sys.orig_argv[:] = ["python"]
    lock.overwrite_arguments(b"python3")


class _Slot:
    """What a cell is given on loan: ids, an empty network, a control group."""

    def __init__(self, number: int, home: cgroup.Home | None, ids: Sequence[int]) -> None:
        self.ids = (ids[2 * number], ids[2 * number + 1]) if ids else None
        lock.unshare(lock.NEWNET)
        self.network = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.group = cgroup.Group(home, f"cell-{number}") if home is not None else None


class Server:
    """The loop, and the table of cells."""

    def __init__(
        self, control: socket.socket, home: cgroup.Home | None, locks: cell.Locks, ids: Sequence[int]
    ) -> None:
        self.control = control
        self.home = home
        self.locks = locks
        self.ids = ids
        self.free: list[_Slot] = []
        self.made = 0
        self.cells: dict[int, tuple[int, _Slot]] = {}
        self.poll = select.epoll()

    def serve(self) -> None:
        self.poll.register(self.control.fileno(), select.EPOLLIN)
        while True:
            for fd, _ in self.poll.poll():
                if fd != self.control.fileno():
                    self._bury(fd)
                elif not self._request():
                    return

    def _request(self) -> bool:
        """One packet; False when the owner is gone."""
        data, fds, _, _ = socket.recv_fds(self.control, MAX_PACKET, 4, socket.MSG_CMSG_CLOEXEC)
        if not data:
            return False
        try:
            if len(fds) == 1:
                self._open(json.loads(data), fds[0])
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _open(self, caps: Mapping[str, Any], fd: int) -> None:
        try:
            slot = self.free.pop() if self.free else self._new_slot()
        except OSError as error:
            self._refuse(fd, error)
            return
        try:
            if slot.group is not None:
                slot.group.cap(caps["memory_bytes"] + caps["disk_bytes"], caps["processes"])
            lock.setns(slot.network, lock.NEWNET)
            pid = self._clone(caps, fd, slot)
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            self.free.append(slot)
            self._refuse(fd, error)
            return
        self.cells[pidfd] = (pid, slot)
        self.poll.register(pidfd, select.EPOLLIN)

    def _new_slot(self) -> _Slot:
        if self.ids and 2 * self.made + 2 > len(self.ids):
            raise OSError(0, f"{self.made} cells are open, and a server has user ids for no more")
        slot = _Slot(self.made, self.home, self.ids)
        self.made += 1
        return slot

    def _clone(self, caps: Mapping[str, Any], fd: int, slot: _Slot) -> int:
        wait, go = os.pipe()
        try:
            pid = lock.clone(_CELL)
            if pid == 0:
                self._child(caps, fd, slot, wait)
            try:
                self._map(pid, slot)
            except OSError:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
            os.write(go, b"!")
            return pid
        finally:
            os.close(wait)
            os.close(go)

    def _map(self, pid: int, slot: _Slot) -> None:
        """The ids of a cell: its own two, or the one that this user has."""
        if slot.ids is not None:
            text = f"{cell.KEEPER} {slot.ids[0]} 1\n{cell.PLAYER} {slot.ids[1]} 1\n".encode()
        else:
            text = f"{cell.PLAYER} 0 1\n".encode()
        for name in ("uid_map", "gid_map"):
            at = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(at, text)
            finally:
                os.close(at)

    def _child(self, caps: Mapping[str, Any], fd: int, slot: _Slot, wait: int) -> NoReturn:
        try:
            if os.read(wait, 1):
                doors = slot.group.entries if slot.group is not None else ()
                sock, doors = cell.take_over(fd, doors)
                cell.live(sock, self.locks, caps, doors)
        finally:
            os._exit(0)

    def _refuse(self, fd: int, error: OSError) -> None:
        try:
            with socket.socket(fileno=os.dup(fd)) as sock:
                cell.refuse(sock, error)
        except OSError:
            pass

    def _bury(self, pidfd: int) -> None:
        pid, slot = self.cells.pop(pidfd)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        os.waitpid(pid, 0)
        self.free.append(slot)
