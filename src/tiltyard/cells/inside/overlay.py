"""The start files of a cell as an overlay: a tree that many cells share lies below, the cell's own changes above.

The folder of all trees is shown in the server's root at ``TREES``, where every cell mounts its own disk over it: no cell
reaches it by any path, and the overlay holds on to the one tree that it was mounted with, read-only. What a player
changes goes to the cell's disk, so the caps hold. Trees belong to whoever made them; a stall that has ids of its own
shows them to its cells as the player's (an idmapped mount), or the kernel could not copy a file up.

What can't be had here raises OSError, and the files are sent one by one instead.
"""

# Paths here are text for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH102, PTH116

from __future__ import annotations

import errno
import os

from . import lock, root

TREES = f"{root.CELL}/trees"
EXTRA_FILES = 6
"""Inodes that the kernel needs on a cell's disk for an overlay."""
_MARK = "user.overlay.tiltyard"


def show(trees: str) -> None:
    """Show the folder of all trees (a path of the machine) in the root that is being built. See ``root.build``."""
    os.mkdir(TREES, 0o755)
    lock.bind(f"/old{trees}", TREES)


def give_to(uid: int, gid: int) -> None:
    """In a process with the machine's ids: from here on its cells see what it owns in the trees as ``uid``'s."""
    lock.unshare(lock.NEWNS)
    namespace = _namespace(f"{os.geteuid()} {uid} 1\n", f"{os.getegid()} {gid} 1\n")
    try:
        lock.bind_as(TREES, TREES, namespace)
    finally:
        os.close(namespace)


def _namespace(uids: str, gids: str) -> int:
    """A descriptor of a user namespace with these maps."""
    wait, go = os.pipe()
    try:
        pid = lock.clone(lock.NEWUSER)
        if pid == 0:
            try:
                os.close(go)
                os.read(wait, 1)
            finally:
                os._exit(0)
        try:
            for name, text in (("uid_map", uids), ("gid_map", gids)):
                at = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
                try:
                    os.write(at, text.encode())
                finally:
                    os.close(at)
            return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(go)
            os.waitpid(pid, 0)
    finally:
        os.close(wait)


def enter(order: str, player: int) -> list[str]:
    """Make a tree the current folder, while it can be reached. ``order`` is its name and, after a colon, its layers, the
    upper first, which are returned. OSError: it is not there, or its files can't be the player's."""
    tree, _, names = order.partition(":")
    layers = names.split(",")
    os.chdir(f"{TREES}/{tree}")
    for name in layers:
        found = os.stat(name)
        if (found.st_uid, found.st_gid) != (player, player):
            raise OSError(
                errno.EOVERFLOW,
                f"the tree belongs to an id that a cell can't have (it is shown as {found.st_uid}:{found.st_gid})",
            )
    return layers


def lay(layers: list[str], upper: str, work: str, target: str) -> None:
    """Mount the layers of the tree that is the current folder at ``target``, below ``upper``."""
    os.mkdir(work, 0o755)
    # without such attributes the kernel can't note that a folder was replaced
    os.setxattr(upper, _MARK, b"y")
    os.removexattr(upper, _MARK)
    options = f"lowerdir={':'.join(layers)},upperdir={upper},workdir={work},userxattr"
    lock.mount("overlay", target, "overlay", lock.NOSUID | lock.NODEV, options)
