"""Inside a new cell: the steps from a bare clone to a keeper that serves.

``live`` is called in the first process of the cell's namespaces. It mounts the cell's folders and /proc, takes the
ids of the keeper, gives up every right that a keeper does not need, and serves the owner until it is gone. The player
can neither signal nor trace it: it is the first process of its namespace, has other ids or more rights, and is not
dumpable.
"""

# Paths here are text and bytes for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH103, PTH112, PTH120

from __future__ import annotations

import os
import resource
import struct
import time

from . import bare, files, keeper, lock, overlay, root, solo, twin, wire
from .twin import KEEPER, PLAYER, cap_group, high
from .twin import ForkStarter as ForkStarter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .bare import Socket
    from .cgroup import Group

ANSWER_S = 30.0
CAPS = ("memory_bytes", "disk_bytes", "disk_files", "processes")
ORDER = struct.Struct("!4QB128s")
"""What an owner sends for a cell, with the socket: its caps, whether it is for one program (see ``solo``), and the name
of the tree that lies in its workspace (see ``overlay``), or nothing."""
_KEPT = (lock.CAP_KILL, lock.CAP_SETGID, lock.CAP_SETUID, lock.CAP_SYS_PTRACE)
"""To signal, to become and to see the player's processes."""
_WORKSPACE = root.WRITABLE[0]


def live(mail: Socket, locks: Locks, group: Group | None, taken: int) -> None:
    """Take the next cell's caps (see ``CellLimits``) and its owner's socket from ``mail``, say so on ``taken``, and be
    the cell's keeper until the owner is gone, or its only program. ``group`` is the control group that this process is
    in. Raises if there is no mail."""
    caps, alone, tree, sock = take_order(mail)
    os.write(taken, b"!")
    lock.close_others([0, 1, 2, sock.fileno(), *(group.fds if group is not None else ())])
    try:
        if group is not None:
            cap_group(group, caps)
        workspace, landlock, upper, trouble = _settle(locks, caps, tree)
        starter = ForkStarter(workspace, locks, landlock, caps, group)
        if alone:
            solo.live(sock, starter)
        said = {"ready": True, "overlay": upper >= 0, "trouble": trouble}
        wire.send(sock, said, deadline=_soon(), fds=[os.pidfd_open(os.getpid())])
        starter.make_twin()
    except files.FileError as error:
        wire.refuse(sock, "file", str(error))
        return
    except (OSError, wire.WireError) as error:
        wire.refuse(sock, "arena", getattr(error, "strerror", None) or str(error))
        return
    beside = {path[1:]: path for path in root.WRITABLE if path != _WORKSPACE}
    keeper.serve(sock, _WORKSPACE, starter, own_disk=True, upper=upper, beside=beside)


def take_order(mail: Socket) -> tuple[dict[str, int], bool, str, Socket]:
    """What the owner wants of a stall: a cell's caps, whether it is for one program, its tree, and the cell's end of its
    socket. Raises OSError, struct.error or IndexError if it is gone."""
    data, fds, _ = bare.receive_fds(mail, ORDER.size, 1, bare.WAIT_ALL)
    *caps, alone, tree = ORDER.unpack(data)
    name = tree.rstrip(b"\0").decode("ascii")
    return dict(zip(CAPS, caps)), bool(alone), name, bare.Socket(fileno=fds[0])  # noqa: B905  (Python 3.9)


class Locks(twin.Locks):
    """With the steps of a keeper, made ready before any fork (see ``lock.Prepared``)."""

    def __init__(self, *, two_ids: bool, stashed: Sequence[str], trees: bool = False) -> None:
        super().__init__(two_ids=two_ids, stashed=stashed, trees=trees)
        ids = (lock.without_groups(), *lock.becoming(KEEPER, KEEPER)) if two_ids else ()
        self.be_keeper = (lock.naming("tiltyard-keeper"), *ids)
        self.lay_out = {path: self._shown(path) for path in root.WRITABLE}
        self.lay_out_all = (*(step for steps in self.lay_out.values() for step in steps), *self.one_way())
        flags = lock.NOSUID | lock.NODEV | lock.NOEXEC
        self.proc = lock.mounting("proc", "/proc", "proc", flags, "hidepid=invisible,subset=pid")
        self.old_proc = lock.mounting("proc", "/proc", "proc", flags, "hidepid=2")
        self.give_up = (
            lock.holding(_KEPT),
            lock.dumpable(False),
            lock.dying_with_parent(),  # here, for a change of ids undoes it
            lock.gaining_nothing(),
        )
        self.rules = lock.Landlock(self.landlock, root.WRITABLE, ("/dev",)) if self.landlock else None

    def _shown(self, path: str) -> list[lock.Prepared]:
        """One of the cell's own folders."""
        inner = root.CELL + path
        owner = (PLAYER, PLAYER) if self.two_ids else ()
        return [*lock.making(inner, *owner), lock.mounting(inner, path, None, lock.BIND)]

    def one_way(self) -> tuple[lock.Prepared, ...]:
        """So that there is one way to each folder of the cell."""
        return lock.entering("/"), lock.mounting("/empty", root.CELL, None, lock.BIND)


def _settle(locks: Locks, caps: Mapping[str, Any], tree: str) -> tuple[int, int, int, str]:
    """Everything up to the last lock of the keeper. Returns descriptors: of the workspace, Landlock's or -1, and that of
    the upper folder of the overlay or -1, and why there is no overlay, if there should be one."""
    lock.carry_out(locks.be_keeper)
    upper, trouble = _mount(locks, caps, tree)
    lock.set_file_owner(PLAYER, PLAYER)
    lock.carry_out(locks.give_up)
    locks.filter.install()
    for what, most in _LIMITS:
        resource.setrlimit(what, (most, most))
    landlock = high(locks.rules.make()) if locks.rules is not None else -1
    workspace = os.open(_WORKSPACE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fchdir(workspace)
    return high(workspace), landlock, upper, trouble


_LIMITS = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_MSGQUEUE, 0), (resource.RLIMIT_MEMLOCK, 1 << 16))


def _mount(locks: Locks, caps: Mapping[str, Any], tree: str) -> tuple[int, str]:
    """One tmpfs, so that the caps on bytes and files hold for all writable folders together; and /proc. See ``_settle``
    for what it returns."""
    layers, trouble = _enter(tree) if tree else ([], "")
    files = caps["disk_files"] + _FOLDERS
    if locks.stashed:
        files += sum(path.count("/") for path in locks.stashed)
    if layers:
        files += overlay.EXTRA_FILES
    lock.mount_tmpfs(root.CELL, f"mode=700,size={caps['disk_bytes']},nr_inodes={files}")
    upper = -1
    if layers:
        upper, trouble = _lay_over(locks, layers)
    else:
        lock.carry_out(locks.lay_out_all)
    for n, path in enumerate(locks.stashed):
        _show_again(f"{root.STASH}/{n}", path)
    try:
        locks.proc()
    except OSError:  # a kernel before 5.8
        locks.old_proc()
    return upper, trouble


_FOLDERS = len(root.WRITABLE) + 1


def _lay_over(locks: Locks, layers: list[str]) -> tuple[int, str]:
    """The writable folders, with an overlay on these layers as workspace, if it can be had."""
    upper, trouble = -1, ""
    for path, (*make, show) in locks.lay_out.items():
        lock.carry_out(make)
        if path == _WORKSPACE:
            inner = root.CELL + path
            try:
                overlay.lay(layers, inner, f"{root.CELL}/work", path)
            except OSError as error:
                trouble = f"{error.strerror or error}"
            else:
                upper = high(os.open(inner, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
                continue
        show()
    lock.carry_out(locks.one_way())
    return upper, trouble


def _enter(tree: str) -> tuple[list[str], str]:
    """The layers of a tree, which is the current folder afterwards, or why there are none."""
    try:
        return overlay.enter(tree, PLAYER), ""
    except OSError as error:
        return [], f"{error.strerror or error}"


def _show_again(stash: str, path: str) -> None:
    """Show what one of the cell's own folders has covered. It is as read-only as it was."""
    if os.path.isdir(stash):
        os.makedirs(path, 0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        with open(path, "xb"):
            pass
    lock.mount(stash, path, None, lock.BIND | lock.REC)


def _soon() -> float:
    return time.monotonic() + ANSWER_S
