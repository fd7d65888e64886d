"""The fork server: one single-threaded, warm process outside every cell, from which all cells of an owner are forked.

It is forked warm (see ``nursery``), and lives in namespaces of its own, on a root of its own (see ``root``). For each byte on its standard input it forks a
*stall* (see ``stall``), which holds what one cell at a time is given on loan, and clones it; what is wanted, the fork
itself reads from the control socket. So the server stays as it was when it said that it is ready: every stall begins
in the same memory. It reads nothing that a player wrote, and ends, with all stalls and cells, when its owner is gone.

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
import signal
import socket
import sys
import time

from . import bare, cgroup, heap, lock, overlay, root, stall, wire
from .cell import Locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

HOSTNAME = "cell"
MOST_STALLS = 1024
IDS = 2 * MOST_STALLS
"""User ids for cells: two for each that is open at a time."""
LETTER_S = 60.0
_kept: list[object] = []
"""All modules: a run takes ours out of sys.modules, and would spend its first millisecond on taking them apart."""


def say(control: socket.socket, what: Mapping[str, Any]) -> None:
    """One packet to the owner. Never raises: if it is gone, that shows elsewhere."""
    try:
        control.send(json.dumps(what).encode()[: stall.MAX_PACKET])
    except OSError:
        pass


def main(control: socket.socket, letter: socket.socket, wish: Mapping[str, Any], *, with_user: bool) -> None:
    """Take what the warden has made outside, say so, serve until the owner is gone. OSError names the step that this
    machine refuses."""
    if with_user:
        map_user(f"0 {wish['uid']} 1", f"0 {wish['gid']} 1")
    lock.set_name("tiltyard-server")
    _begin_with_large_pids()
    lock.set_hostname(HOSTNAME)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # without a handler the namespace's first process can't be hit
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    trees = wish["trees"]
    stashed = root.build(wish["packages"], wish["hidden"], lambda: overlay.show(trees) if trees else None)
    _forget_origin()
    home, ids = _open(letter)
    locks = Locks(two_ids=not with_user, stashed=stashed, trees=bool(trees))
    _seed()
    _kept.extend(sys.modules.values())
    gc.collect()
    heap.fill()
    gc.freeze()
    say(
        control,
        {
            "ready": True,
            "user": with_user,
            "landlock": locks.landlock,
            "groups": home.controllers if home is not None else (),
            "most": MOST_STALLS,
        },
    )
    while os.read(0, 1):
        try:
            if lock.fork() == 0:
                stall.live(control, locks, home, ids)
        except (
            OSError
        ):  # no process to be had just now: the packet is dropped, and with it the stall's socket
            _, fds, _ = bare.receive_fds(control, stall.MAX_PACKET, 1)
            for fd in fds:
                os.close(fd)


def _begin_with_large_pids() -> None:
    """The interpreter has the numbers up to 256 ready and makes the others: when pids grow past that, the memory of a
    stall would change, and with it every cell's. Not every kernel allows it."""
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write("300")
    except OSError:
        pass


def _open(letter: socket.socket) -> tuple[cgroup.Home | None, Sequence[int]]:
    """The control groups' home, if there is one, and the user ids for cells, if they can be chosen."""
    with letter:
        said, _, fds = wire.receive(letter, deadline=time.monotonic() + LETTER_S, max_block=0, take_fds=True)
    places = [cgroup.Place("", version, tuple(controllers)) for version, controllers in said["places"]]
    ids = range(said["ids"], said["ids"] + IDS) if said["ids"] else range(0)
    return cgroup.Home.handed_over(places, fds) if fds else None, ids


def map_user(uids: str, gids: str) -> None:
    """The ids of the user namespace that this process has just made. OSError: they can't be."""
    for name, text in (("setgroups", "deny"), ("uid_map", uids), ("gid_map", gids)):
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        except OSError as error:
            raise OSError(
                error.errno, f"{name} of a user namespace can't be written ({error.strerror})"
            ) from None


def load(folders: Sequence[str], preload: Sequence[str], must: Sequence[str]) -> None:
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
                try:
                    module = importlib.import_module(f"{__package__}.{name}")
                    getattr(module, "warm_up", lambda: None)()
                except Exception:
                    pass  # whoever asks for that program is told; cells that don't are as good as ever


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
