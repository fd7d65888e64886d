"""Where fork servers are born: a warm interpreter that does nothing but wait for a byte and fork.

It imports what runs will need, goes through the drill, and stays as it is then: every server that is forked from it
begins in the same memory, and those of several owners share it. For each byte on its standard input one packet on its
socket is meant: an empty one with the descriptors of what is to be a server (see ``warden.be_born``), which the fork
takes. It ends when nobody is left who could ask; servers that it bore live on.

It does its drill in a mount namespace of its own, so nothing of that is seen or left anywhere. Where only a user
namespace gives the right to that, everything of this user stays this user's.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys

from . import bare, clock, drill, heap, kit, layout, lock, perform, server, warden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def main() -> None:
    """The socket is descriptor ``layout.CONTROL``; its first packet says what all servers are to have. Never returns."""
    requests = bare.Socket(fileno=layout.CONTROL)
    os.set_inheritable(layout.CONTROL, False)
    wish = json.loads(requests.recv(1 << 16) or b"{}")
    if not wish:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)
    lock.set_name("tiltyard-nurse")
    trouble = ""
    try:
        _get_warm(wish)
    except Exception as error:
        trouble = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    bare.on_signal(bare.SIGCHLD, bare.IGNORE)  # who is born has its own to wait for it
    gc.collect()
    heap.fill()
    gc.freeze()
    while os.read(0, 1):
        try:
            if lock.fork() == 0:
                warden.be_born(requests, trouble)
        except OSError:  # no process to be had just now: who asked sees its socket close
            for fd in bare.receive_fds(requests, 1, warden.GIVEN)[1]:
                os.close(fd)
    os._exit(0)


def _get_warm(wish: Mapping[str, Any]) -> None:
    """All that does not depend on who will own a server. OSError names the step that this machine refuses."""
    finder = kit.install(wish["kit"]) if wish["kit"] else None
    path = list(sys.path)
    if wish["alone"]:
        sys.path[:] = [folder for folder in path if not folder.endswith("-packages")]
    server.load(wish["folders"], wish["preload"], wish["must"])
    sys.path[:] = path
    for folder in wish["folders"]:
        sys.path_importer_cache.pop(folder, None)
    if wish["clock"]:
        clock.stand(wish["clock"])
    if finder is not None:
        kit.remove(finder)
    perform.prepare()
    _own_mounts()
    drill.rounds()


def _own_mounts() -> None:
    """A mount namespace of this process's own, by a user namespace in which all ids are what they were if need be."""
    try:
        lock.unshare(lock.NEWNS)
    except PermissionError:
        uid, gid = os.geteuid(), os.getegid()
        lock.unshare(lock.NEWUSER | lock.NEWNS)
        server.map_user(f"{uid} {uid} 1", f"{gid} {gid} 1")
    lock.mount("none", "/", None, lock.REC | lock.PRIVATE)


perform.nameless(sys.modules[__name__])  # on the stack of every run
