"""Inside a container: the keeper as its first process, or one that was executed for a single run.

``main`` reaches the owner by a socket that was shown to the container, or by a relay on its own standard streams,
takes one frame of orders, locks itself and serves. It has neither capabilities nor a second user id, so it is guarded
otherwise: nobody can look into it, and as the first process of its namespace no signal from inside reaches it.
Runs are forked from its warm memory, under the same filter as in the namespace wall, beneath what the engine locks.
When its owner is gone it ends, and the container with it.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import signal
import socket
import sys
import time

from . import keeper, kit, lock, procs, relay, run, twin, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from .run import Job

BY_STREAMS = "-"
"""In place of a socket's path: the owner is at the other end of stdin and stdout."""
WORKSPACE = "/workspace"
_HIGH = 512
"""Descriptors of the keeper's own are kept from here on, away from those that a run is given."""
ORDERS_S = 60.0


def main(argv: Sequence[str]) -> None:
    """argv: the path of the owner's socket, or BY_STREAMS."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    way = argv[0]
    relayed = 0
    if way == BY_STREAMS:
        sock, relayed = relay.begin(_settle_relay)
    else:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(way)
    try:
        serve(sock, relayed)
    except wire.WireError:
        pass


def _settle_relay() -> None:
    lock.set_name("tiltyard-relay")
    lock.set_dumpable(False)


def serve(sock: socket.socket, relayed: int) -> None:
    """Take orders, lock up, keep the cell. ``relayed``: the pid of the relay, or 0. Raises WireError if the owner is
    gone before it begins."""
    deadline = time.monotonic() + ORDERS_S
    orders, _, _ = wire.receive(sock, deadline=deadline, max_block=0)
    environment = dict(os.environ)
    finder = kit.install(orders["kit"]) if orders["kit"] else None
    for name in orders["preload"]:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    if finder is not None:
        kit.remove(finder)
    try:
        locks = Locks()
        locks.settle()
        starter = Starter(
            os.open(WORKSPACE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), locks, orders, relayed
        )
    except OSError as error:
        wire.send(sock, {"error": "arena", "text": f"{error.strerror or error}"}, deadline=deadline)
        return
    lock.overwrite_arguments(b"python3")
    sys.argv[:] = sys.orig_argv[:] = ["python"]
    gc.collect()
    gc.freeze()
    ready = {
        "ready": True,
        "filter": locks.trouble,
        "env": environment,
        "python": list(sys.version_info[:3]),
        "pid": os.getpid(),
    }
    wire.send(sock, ready, deadline=deadline)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    os.close(null)
    keeper.serve(sock, WORKSPACE, starter, own_disk=orders["own_disk"], beside=_beside())


def _beside() -> dict[str, str]:
    """The folders that code can write to, next to the workspace."""
    paths = {"home": "/home", "tmp": "/tmp", "shm": "/dev/shm"}
    return {name: path for name, path in paths.items() if os.access(path, os.W_OK)}


class Locks(twin.Steps):
    """What ``twin.ForkStarter`` must know, where the engine has made the walls already."""

    landlock = 0

    def __init__(self) -> None:
        super().__init__()
        self.trouble: str | None = lock.supported()
        """Why there is no filter of ours beneath the engine's, or None."""

    def settle(self) -> None:
        """Lock this process, and so all that it will fork."""
        lock.set_name("tiltyard-keeper")
        if os.getpid() != 1:
            procs.become_reaper()
        lock.set_dumpable(False)
        lock.no_new_privileges()
        if self.trouble is None:
            try:
                lock.Filter(lock.filter_program()).install()
            except OSError as error:
                self.trouble = f"{error.strerror or error}"
        for what, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MSGQUEUE, 0),
            (resource.RLIMIT_MEMLOCK, 1 << 16),
        ):
            try:
                hard = resource.getrlimit(what)[1]
                most = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.setrlimit(what, (most, most))
            except (ValueError, OSError):
                pass  # not every runtime has every limit
        os.umask(0o022)
        os.chdir(WORKSPACE)


class Starter(twin.ForkStarter):
    """Forks runs from the keeper. The engine's control group counts memory and processes where it can (``counted``);
    where the workspace has no caps of its own, its size is watched (``watched``)."""

    def __init__(self, workspace: int, locks: Locks, orders: Mapping[str, Any], relayed: int) -> None:
        super().__init__(workspace, locks, -1, orders["caps"], None)  # type: ignore[arg-type]
        self.counted = orders["counted"]
        self.watcher = run.ProcessStarter((), workspace) if orders["watched"] else None
        self.kept = frozenset((relayed,)) if relayed else frozenset()

    def start(self, job: Job, stdio: tuple[int, int, int], fds: Sequence[int]) -> int:
        job.processes = None  # by user id the kernel would count other containers' too; the engine caps them
        if self.watcher is not None:  # a run that makes room has a moment for it
            self.watcher._next_disk = time.monotonic() + self.watcher.DISK_PAUSE_S
        return super().start(job, stdio, fds)

    def _lose_twin(self) -> None:
        super()._lose_twin()
        self.reborn = False  # in containers addresses differ from cell to cell in any case

    def excess(self, job: Job) -> str | None:
        reason = super().excess(job)
        if reason is None and self.watcher is not None:
            memory, job.memory_bytes = job.memory_bytes, None
            try:
                reason = self.watcher.excess(job)
            finally:
                job.memory_bytes = memory
        return reason

    def kill(self, reap: Callable[[], bool], spare: Collection[int]) -> bool:
        if os.getpid() != 1 or self.kept:
            return procs.kill_descendants(reap, self.kept.union(spare, (self.twin,)))
        return super().kill(reap, spare)
