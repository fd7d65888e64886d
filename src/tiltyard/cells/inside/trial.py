"""One thing that a wall is built of, tried in a process of its own: does this machine let us have it?

``main`` does the trial that argv names, and prints one JSON object: ``ok``, ``why`` (what happened, in the system's
words) and ``errno`` (0 if there was none). Everything that a trial makes belongs to namespaces of its own and goes with
the process. For ``tiltyard.cells.doctor``, which starts one process a trial.
"""

# Paths here are text for system calls.
# ruff: noqa: PTH102

from __future__ import annotations

import errno
import json
import os
import socket
import sys

from . import cgroup, lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = "/tmp"


class Refused(Exception):
    """The kernel did what was asked, but not what was meant."""


def main() -> None:
    name, *rest = sys.argv[1:]
    try:
        why, number, ok = TRIALS[name](*rest), 0, True
    except OSError as error:
        why, number, ok = error.strerror or str(error), error.errno or 0, False
    except Refused as error:
        why, number, ok = str(error), 0, False
    print(json.dumps({"ok": ok, "why": why, "errno": number}))


def _enter(flags: int) -> str:
    """New namespaces, as root, or in a user namespace of its own. Says which."""
    try:
        lock.unshare(flags)
        return "as root"
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    uid, gid = os.geteuid(), os.getegid()
    lock.unshare(flags | lock.NEWUSER)
    _map(uid, gid)
    return "in a user namespace"


def _map(uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _in_child(act: Callable[[], str]) -> str:
    """``act`` in a forked process, for what holds for children only."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = [0, act()]
        except OSError as error:
            said = [error.errno or -1, error.strerror or str(error)]
        except BaseException as error:
            said = [-1, str(error)]
        os.write(tell, json.dumps(said).encode())
        os._exit(0)
    os.close(tell)
    data = b""
    while part := os.read(told, 4096):
        data += part
    os.waitpid(pid, 0)
    number, text = json.loads(data or b'[-1, "it died"]')
    if number:
        raise OSError(max(number, 0), text)
    return str(text)


def _private_mounts() -> str:
    way = _enter(lock.NEWNS)
    lock.mount("none", "/", None, lock.REC | lock.PRIVATE)
    return way


def user() -> str:
    uid, gid = os.geteuid(), os.getegid()
    lock.unshare(lock.NEWUSER)
    _map(uid, gid)
    if os.getuid() != 0:
        raise Refused(f"the map was written, and the id is {os.getuid()}")
    return "made, with a map of one id"


def pid() -> str:
    way = _enter(lock.NEWPID)
    if _in_child(lambda: str(os.getpid())) != "1":
        raise Refused("made, but its first process is not number 1")
    return f"made {way}"


def mount() -> str:
    return f"made {_private_mounts()}"


def uts() -> str:
    way = _enter(lock.NEWUTS)
    lock.set_hostname("trial")
    return f"made {way}"


def ipc() -> str:
    return f"made {_enter(lock.NEWIPC)}"


def net() -> str:
    way = _enter(lock.NEWNET)
    names = [name for _, name in socket.if_nameindex()]
    if set(names) - {"lo"}:
        raise Refused(f"made, but not empty: {', '.join(names)}")
    return f"made {way}, and empty"


def tmpfs() -> str:
    way = _private_mounts()
    lock.mount("trial", _FOLDER, "tmpfs", lock.NOSUID | lock.NODEV, "size=1m,nr_inodes=20")
    try:
        with open(f"{_FOLDER}/big", "wb", buffering=0) as file:
            for _ in range(32):
                file.write(bytes(1 << 16))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return f"mounted {way}; its cap holds"
        raise
    raise Refused("mounted, but its cap does not hold")


def proc() -> str:
    way = _enter(lock.NEWPID | lock.NEWNS)
    lock.mount("none", "/", None, lock.REC | lock.PRIVATE)

    def act() -> str:
        lock.mount("proc", "/proc", "proc", lock.NOSUID | lock.NODEV | lock.NOEXEC, "hidepid=2")
        seen = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        return f"mounted {way}; it shows {len(seen)} process"

    return _in_child(act)


def pivot() -> str:
    way = _private_mounts()
    lock.mount("trial", _FOLDER, "tmpfs", lock.NOSUID, "size=1m")
    os.mkdir(f"{_FOLDER}/old")
    os.mkdir(f"{_FOLDER}/usr")
    lock.pivot(_FOLDER, f"{_FOLDER}/old")
    lock.bind("/old/usr", "/usr")
    lock.unmount("/old")
    lock.mount("none", "/", None, lock.BIND | lock.REMOUNT | lock.RDONLY | lock.NOSUID)
    for path in ("/new", "/usr/new"):
        try:
            with open(path, "x"):
                raise Refused(f"changed, but {path} can be written")
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES):
                raise
    return f"changed {way}, and read-only"


def seccomp() -> str:
    reason = lock.supported()
    if reason is not None:
        raise Refused(reason)
    lock.no_new_privileges()
    lock.Filter(lock.filter_program()).install()
    try:
        socket.socket(socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            return "installed, and it refuses"
        raise
    raise Refused("installed, but it refuses nothing")


def landlock() -> str:
    abi = lock.landlock_abi()
    if not abi:
        raise Refused("this kernel has no Landlock, or it was not turned on at boot")
    lock.no_new_privileges()
    lock.landlock_restrict(lock.Landlock(abi, (), ("/dev",)).make())
    path = f"{_FOLDER}/tiltyard-trial-{os.getpid()}"
    try:
        with open(path, "x"):
            pass
    except OSError as error:
        if error.errno == errno.EACCES:
            return f"version {abi}; it refuses"
        raise
    os.unlink(path)  # noqa: PTH108
    raise Refused(f"version {abi}, but it refuses nothing")


def group(controller: str) -> str:
    places, missing = cgroup.find((controller,))
    if controller in missing:
        raise Refused(missing[controller])
    home = cgroup.Home(places, f"{os.getpid()}-trial")
    try:
        made = cgroup.Group(home, "cell-0")
        made.cap(64 << 20, 8)

        def act() -> str:
            made.enter()
            return f"version {places[0].version}, in {places[0].path}"

        return _in_child(act)
    finally:
        home.remove()


TRIALS: dict[str, Callable[..., str]] = {
    f.__name__: f for f in (user, pid, mount, uts, ipc, net, tmpfs, proc, pivot, seccomp, landlock, group)
}
