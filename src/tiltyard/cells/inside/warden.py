"""The first process of a fork server: it outlives the server only to clean up, and never speaks to a cell.

Started by the owner with one end of a SEQPACKET socket, whose first packet says what is wanted.
It clones the server into namespaces of its own, makes what lies outside every namespace (control groups, a block of
user ids) and hands it over, and then waits for one of two ends: the server's, or its owner's, however they come. Then everything of the
server dies with its pid namespace, and the control groups are removed. If the warden itself is killed, the server
dies with it.

The server is cloned before anything is looked at that differs from one start to the next: what a process has read
shapes its memory, and all servers of a machine shall be alike.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
import time

from . import cell, cgroup, keeper, layout, lock, perform, server, solo, stall, twin, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

LETTER_S = 60.0
_NAMESPACES = lock.NEWPID | lock.NEWNS | lock.NEWIPC | lock.NEWUTS | lock.NEWNET


def main() -> None:
    """The socket is descriptor ``layout.CONTROL``. Never returns."""
    control = socket.socket(fileno=layout.CONTROL)
    control.set_inheritable(False)
    wish = json.loads(control.recv(1 << 16) or b"{}")
    if not wish:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)
    lock.set_name("tiltyard-warden")
    home = None
    ours, theirs = socket.socketpair()
    try:
        owner = _pidfd_of_owner(int(wish["owner"]))
        child, with_user = _clone()
        if child == 0:
            ours.close()
            _serve(control, theirs, wish, with_user)
        theirs.close()
        home = _groups()
        letter = {
            "ids": 0 if with_user else _claim_ids(),
            "places": [[p.version, p.controllers] for p in home.places] if home is not None else [],
        }
        fds = home.fds if home is not None else []
        wire.send(ours, letter, deadline=time.monotonic() + LETTER_S, fds=fds)
        status = _watch(owner, child, control)
    except (OSError, wire.WireError) as error:
        server.say(control, {"error": f"{getattr(error, 'strerror', None) or error}"})
        status = 1
    finally:
        if home is not None:
            home.remove()
    os._exit(status)


def _pidfd_of_owner(pid: int) -> int:
    fd = os.pidfd_open(pid)
    if os.getppid() != pid:  # it ended before this process looked
        os._exit(0)
    return fd


def _groups() -> cgroup.Home | None:
    places, _ = cgroup.find()
    cgroup.sweep(places)
    try:
        return cgroup.Home(places, f"{os.getpid()}-{os.urandom(6).hex()}") if places else None
    except OSError:
        return None  # what is in force is reported by what the server has, not by what was wished


def _clone() -> tuple[int, bool]:
    """Clone the server: its pid, or 0 in it, and whether it lives in a user namespace of its own."""
    if os.geteuid() == 0 and _id_range() is not None:
        try:
            return lock.clone(_NAMESPACES), False
        except PermissionError:
            pass  # a root without the right to mount: as an ordinary user, then
    return lock.clone(_NAMESPACES | lock.NEWUSER), True


def _id_range() -> tuple[int, int] | None:
    """User ids that may be given to cells, from and to, far from those of people; None where there are too few."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        ranges = [tuple(map(int, line.split())) for line in file]
    first, _, count = max(ranges, key=lambda r: r[2])
    lowest = first + (20_000 if count < 1 << 17 else 1 << 20)
    top = min(first + count, 1 << 31)
    return (lowest, top) if lowest + server.IDS <= top else None


_claims: list[socket.socket] = []


def _claim_ids() -> int:
    """The first of a block of user ids that no other server of this machine uses: a block is held by the name of an
    abstract socket, which goes with its holder."""
    lowest, top = _id_range() or (0, 0)
    for base in range(top - server.IDS, lowest - 1, -server.IDS):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0tiltyard-ids-{base}")
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return base
    raise OSError(0, f"all user ids from {lowest} to {top} are taken by other fork servers")


def _serve(control: socket.socket, letter: socket.socket, wish: dict[str, Any], with_user: bool) -> NoReturn:
    code = 1
    try:
        lock.die_with_parent()
        server.main(control, letter, wish, with_user=with_user)
        code = 0
    except BaseException as error:
        text = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        server.say(control, {"error": text})
    finally:
        os._exit(code)


def _watch(owner: int, child: int, control: socket.socket) -> int:
    """Until the server or the owner ends; then the server, and with it every cell, is dead."""
    server_fd = os.pidfd_open(child)
    control.close()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    poll = select.poll()
    poll.register(owner, select.POLLIN)
    poll.register(server_fd, select.POLLIN)
    ended = {fd for fd, _ in poll.poll()}
    if server_fd not in ended:
        lock.pidfd_signal(server_fd, signal.SIGKILL)
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return 0
        poll = select.poll()
        poll.register(server_fd, select.POLLIN)
        poll.poll(100)
    return 1


# All of these are on the stack of every run.
perform.nameless(sys.modules[__name__], server, stall, cell, keeper, solo, twin, perform)
