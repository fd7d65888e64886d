"""Inside a new cell: the steps from a bare clone to a keeper that serves.

``live`` is called in the first process of the cell's namespaces. It mounts the cell's folders and /proc, takes the
ids of the keeper, gives up every right that a keeper does not need, and serves the owner until it is gone. The player
can neither signal nor trace it: it is the first process of its namespace, has other ids or more rights, and is not
dumpable.
"""

# Paths here are text and bytes for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH102, PTH103, PTH112, PTH120

from __future__ import annotations

import os
import resource
import socket
import struct
import time

from . import copying as _loaded_before_the_root_is_closed  # noqa: F401
from . import files, keeper, lock, overlay, root, solo, wire
from .twin import KEEPER, PLAYER, Locks, cap_group, high
from .twin import ForkStarter as ForkStarter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .cgroup import Group

ANSWER_S = 30.0
CAPS = ("memory_bytes", "disk_bytes", "disk_files", "processes")
ORDER = struct.Struct("!4QB128s")
"""What an owner sends for a cell, with the socket: its caps, whether it is for one program (see ``solo``), and the name
of the tree that lies in its workspace (see ``overlay``), or nothing."""
_KEPT = (lock.CAP_KILL, lock.CAP_SETGID, lock.CAP_SETUID, lock.CAP_SYS_PTRACE)
"""To signal, to become and to see the player's processes."""
_WORKSPACE = root.WRITABLE[0]


def live(mail: socket.socket, locks: Locks, group: Group | None, taken: int) -> None:
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


def take_order(mail: socket.socket) -> tuple[dict[str, int], bool, str, socket.socket]:
    """What the owner wants of a stall: a cell's caps, whether it is for one program, its tree, and the cell's end of its
    socket. Raises OSError, struct.error or IndexError if it is gone."""
    flags = socket.MSG_CMSG_CLOEXEC | socket.MSG_WAITALL
    data, fds, _, _ = socket.recv_fds(mail, ORDER.size, 1, flags)
    *caps, alone, tree = ORDER.unpack(data)
    name = tree.rstrip(b"\0").decode("ascii")
    return dict(zip(CAPS, caps)), bool(alone), name, socket.socket(fileno=fds[0])  # noqa: B905  (Python 3.9)


def _settle(locks: Locks, caps: Mapping[str, Any], tree: str) -> tuple[int, int, int, str]:
    """Everything up to the last lock of the keeper. Returns descriptors: of the workspace, Landlock's or -1, and that of
    the upper folder of the overlay or -1, and why there is no overlay, if there should be one."""
    lock.set_name("tiltyard-keeper")
    if locks.two_ids:
        os.setgroups([])
        os.setresgid(KEEPER, KEEPER, KEEPER)
        os.setresuid(KEEPER, KEEPER, KEEPER)
    upper, trouble = _mount(locks, caps, tree)
    lock.set_file_owner(PLAYER, PLAYER)
    lock.set_capabilities(_KEPT)
    lock.set_dumpable(False)
    lock.die_with_parent()  # here, for a change of ids undoes it
    lock.no_new_privileges()
    locks.filter.install()
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
    ):
        resource.setrlimit(what, (most, most))
    landlock = -1
    if locks.landlock:
        landlock = lock.landlock_ruleset(locks.landlock, root.WRITABLE, ("/dev",))
        landlock = high(landlock)
    os.chdir(_WORKSPACE)
    return high(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)), landlock, upper, trouble


def _mount(locks: Locks, caps: Mapping[str, Any], tree: str) -> tuple[int, str]:
    """One tmpfs, so that the caps on bytes and files hold for all writable folders together; and /proc. See ``_settle``
    for what it returns."""
    layers, trouble = _enter(tree)
    upper = -1
    more = len(root.WRITABLE) + 1 + sum(path.count("/") for path in locks.stashed)
    more += overlay.EXTRA_FILES if layers else 0
    options = f"mode=700,size={caps['disk_bytes']},nr_inodes={caps['disk_files'] + more}"
    lock.mount("cell", root.CELL, "tmpfs", lock.NOSUID | lock.NODEV, options)
    for path in root.WRITABLE:
        inner = root.CELL + path
        os.mkdir(inner, 0o755)
        if locks.two_ids:
            os.chown(inner, PLAYER, PLAYER)
        if layers and path == _WORKSPACE:
            try:
                overlay.lay(layers, inner, f"{root.CELL}/work", path)
            except OSError as error:
                trouble = f"{error.strerror or error}"
            else:
                upper = high(os.open(inner, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
                continue
        lock.mount(inner, path, None, lock.BIND)
    os.chdir("/")
    lock.mount("/empty", root.CELL, None, lock.BIND)  # one way to each folder
    for n, path in enumerate(locks.stashed):
        _show_again(f"{root.STASH}/{n}", path)
    flags = lock.NOSUID | lock.NODEV | lock.NOEXEC
    try:
        lock.mount("proc", "/proc", "proc", flags, "hidepid=invisible,subset=pid")
    except OSError:  # a kernel before 5.8
        lock.mount("proc", "/proc", "proc", flags, "hidepid=2")
    return upper, trouble


def _enter(tree: str) -> tuple[list[str], str]:
    """The layers of a tree, which is the current folder afterwards, or why there are none."""
    if not tree:
        return [], ""
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
