"""The work of cells, done in the nursery of fork servers before there is any: so that each cell finds it done.

An interpreter adapts code that it runs, and fills its caches, by writing into memory. What is written before a fork is
shared by all forks; what each fork writes for itself costs it a page fault at a time. So the nursery goes through what
forks will do, in one process and with nothing at stake: a keeper serves a few requests in a folder of its own, a job
crosses from one end of a socket to the other, and steps that do nothing are carried out. Then every module that has
a function ``exercise`` does its own. Nothing of a task is near.

``rounds`` leaves the process as it was. Everything in it takes the same steps each time: what a nursery has done shapes
the memory of servers, and all servers of a machine shall be alike.
"""

# Paths here are text and bytes for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH102, PTH208

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time

from . import bare, boot, cell, cgroup, keeper, lock, perform, root, run, twin, wire
from .run import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

ROUNDS = 5
"""An interpreter adapts code that has run eight times; what a cell does most is done twice in a round."""
WAIT_S = 30.0
_CAPS = {"memory_bytes": 1 << 28, "disk_bytes": 1 << 20, "disk_files": 64, "processes": 8}
_JOB = {"kind": "tool", "rest": ["drill"], "env": {}, "memory_bytes": 1 << 28, "processes": 8}
_OUT = {"output_bytes": 1 << 10, "wall_s": WAIT_S, "quiet_s": None, "cpu_s": None}
_CAPTURE = {"max_file_bytes": 1 << 20, "max_bytes": 1 << 20, "max_files": 64, "max_depth": 8}
_FILES = (("a.py", b"x = 1\n"), ("b/c.py", b"y = 2\n"))
_MOST: tuple[tuple[dict[str, Any], bytes], ...] = (
    ({"op": "read", "path": "a.py", "max_bytes": 1 << 10}, b""),
    ({"op": "write", "path": "a.py", "disk_bytes": 1 << 20, "disk_files": 64}, b"x = 3\n"),
    ({"op": "list", "max_entries": 64}, b""),
    ({"op": "run", **_JOB, **_OUT}, b"to its standard input"),
)
_REQUESTS: tuple[tuple[dict[str, Any], bytes], ...] = (
    (
        {"op": "put", "files": [[path, len(data)] for path, data in _FILES], "fresh": True, "gone": []},
        b"".join(data for _, data in _FILES),
    ),
    *_MOST,
    *_MOST,
    ({"op": "start", **_JOB, "wall_s": WAIT_S}, b""),
    ({"op": "poll", "program": 0, "wait_s": 0.0}, b""),
    ({"op": "capture", **_CAPTURE}, b""),
)


def rounds() -> None:
    """Do it all often enough. For a process with a mount namespace of its own. Raises OSError if something can't be done
    here: then cells could not be had, either."""
    locks = cell.Locks(two_ids=False, stashed=())
    if locks.landlock:
        locks.rules = lock.Landlock(locks.landlock, ("/", "/", "/"), ("/dev",))
    base = root.scratch()
    lock.mount_tmpfs(base, "mode=700,size=1048576,nr_inodes=256")
    try:
        for number in range(ROUNDS):
            folder = f"{base}/{number:02}"
            os.mkdir(folder)
            _keep(folder, locks)
            for _ in range(2):
                _steps(locks)
        os.mkdir(f"{base}/others")
        os.chdir(f"{base}/others")
        for name in boot.OURS:
            if hasattr(sys.modules[name], "exercise"):
                with contextlib.suppress(Exception):  # its forks are slower then, and as good as ever
                    sys.modules[name].exercise()
    finally:
        os.chdir("/")
        lock.unmount(base)


def _keep(folder: str, locks: cell.Locks) -> None:
    """A keeper's life, from its order to the end of its owner."""
    mail, post = bare.pair()
    ours, theirs = bare.pair()
    order = cell.ORDER.pack(*_CAPS.values(), False, b"")
    bare.send_fds(post, order, [theirs.fileno()])
    theirs.close()
    caps, _, _, sock = cell.take_order(mail)
    group = _group()
    twin.cap_group(group, caps)
    starter = _Starter(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), locks, -1, caps, group)
    wire.send(sock, {"ready": True, "overlay": False, "trouble": ""}, deadline=_soon(), fds=[0])
    for header, block in _REQUESTS:
        wire.send(ours, {**header, "id": 1}, block, deadline=_soon())
    ours.shutdown(1)
    keeper.serve(sock, folder, starter, own_disk=True)
    answer, _, fds = wire.receive(ours, deadline=_soon(), max_block=1 << 20, take_fds=True)
    while "error" not in answer and answer.get("files") is None:
        answer, _, _ = wire.receive(ours, deadline=_soon(), max_block=1 << 20)
    if "error" in answer:
        raise OSError(0, f"a keeper's drill: {answer.get('text')}")
    for fd in (*fds, *group.fds, starter.workspace):
        os.close(fd)
    for end in (mail, post, ours, sock):
        end.close()


def _group() -> cgroup.Group:
    """One whose caps go nowhere."""
    group = cgroup.Group(cgroup.Home.handed_over((), ()), "")
    null = [os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC) for _ in range(4)]
    group._memory, group._pids, group._events = null[:2], null[2:3], null[3:]
    return group


class _Starter(twin.ForkStarter):
    """Both ends of what a keeper and its twin say to each other; what is begun is a fork that ends at once."""

    def start(self, job: Job, stdio: tuple[int, int, int], fds: Sequence[int]) -> int:
        ours, theirs = bare.pair()
        told, tell = os.pipe()
        twin._send_job(ours, job, [tell, *stdio, *fds])
        taken, got = twin._take_job(theirs)
        os.close(tell)
        got[0] = twin.high(got[0])
        pid = lock.fork()
        if pid == 0:
            os._exit(0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.write(got[0], twin._PID.pack(pid))
        perform._environment(dict(os.environ))
        perform._depth()
        for fd in got:
            os.close(fd)
        ours.close()
        theirs.close()
        begun = twin._begun(told, taken)
        os.close(told)
        return begun

    def kill(self, reap: Callable[[], bool], spare: Collection[int]) -> bool:
        self._alone()
        return super().kill(reap, spare) if not spare else True


def _steps(locks: cell.Locks) -> None:
    """Those of the way to a cell that change nothing in a process that holds everything."""
    nothing = lock.naming("tiltyard-nurse")
    nothing()
    lock.carry_out((nothing, nothing, nothing))
    lock.close_others([int(name) for name in os.listdir("/proc/self/fd")])
    run.limit(Job("tool", [], {}, open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    lock.set_file_owner(os.geteuid(), os.getegid())
    if locks.rules is not None:
        os.close(locks.rules.make())


def _soon() -> float:
    return time.monotonic() + WAIT_S
