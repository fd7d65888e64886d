"""The fork server: one single-threaded, warm process outside every cell, from which all cells of an owner are forked.

It lives in namespaces of its own, on a root of its own (see ``root``), and answers packets of its owner on one
SEQPACKET socket, which ask for *stalls* (see ``stall``): forks of it, each of which holds what one cell at a time is
given on loan, and clones it. Everything else passes between owner, stall and keeper. It reads nothing that a player
wrote, and ends, with all stalls and cells, when its owner is gone.

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

from . import cell, cgroup, lock, root, stall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

HOSTNAME = "cell"
MAX_PACKET = 1 << 16
MOST_STALLS = 1024


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


class Server:
    """The loop, and the numbers of stalls that live."""

    def __init__(
        self, control: socket.socket, home: cgroup.Home | None, locks: cell.Locks, ids: Sequence[int]
    ) -> None:
        self.control = control
        self.home = home
        self.locks = locks
        self.ids = ids
        self.most = len(ids) // 2 if ids else MOST_STALLS
        self.groups: dict[int, cgroup.Group] = {}
        self.stalls: dict[int, tuple[int, int]] = {}
        """By pidfd: pid and number."""
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
        """One packet, which asks for stalls; False when the owner is gone."""
        data = self.control.recv(MAX_PACKET)
        if not data:
            return False
        fds: list[int] = []
        answer: dict[str, Any] = {}
        try:
            for _ in range(json.loads(data)["stalls"]):
                fds.append(self._stall())
        except OSError as error:
            answer = {"error": f"{error.strerror or error}"}
        try:
            socket.send_fds(self.control, [json.dumps(answer).encode()], fds)
        except OSError:
            return False
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _stall(self) -> int:
        """Fork a stall; the descriptor of the socket on which it is asked for cells."""
        used = {number for _, number in self.stalls.values()}
        number = next(n for n in range(self.most + 1) if n not in used)
        if number == self.most:
            raise OSError(0, f"{self.most} cells are open, and one server can hold no more")
        if self.home is not None and number not in self.groups:
            self.groups[number] = cgroup.Group(self.home, f"cell-{number}")
        ids = (self.ids[2 * number], self.ids[2 * number + 1]) if self.ids else None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            pid = lock.fork()
            if pid == 0:
                stall.live(ours, self.locks, ids, self.groups.get(number))
            pidfd = os.pidfd_open(pid)
            self.stalls[pidfd] = (pid, number)
            self.poll.register(pidfd, select.EPOLLIN)
            ours.close()
            return theirs.detach()

    def _bury(self, pidfd: int) -> None:
        """A stall has ended. Its keeper, if it had one, was killed with it and is now a child of this process."""
        self.stalls.pop(pidfd)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
