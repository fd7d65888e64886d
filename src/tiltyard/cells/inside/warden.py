"""The first process of a fork server: it outlives the server only to clean up, and never speaks to a cell.

Forked from a nursery with one end of a SEQPACKET socket to the owner, whose first packet says what is wanted.
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

from . import bare, cell, cgroup, keeper, layout, lock, perform, server, solo, stall, twin, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .bare import Socket

LETTER_S = 60.0
GIVEN = 4
_OWNER = 4
"""The descriptor that tells the owner's end."""
_NAMESPACES = lock.NEWPID | lock.NEWNS | lock.NEWIPC | lock.NEWUTS | lock.NEWNET


def be_born(requests: Socket, trouble: str) -> NoReturn:
    """Become the warden that the next packet on ``requests`` is about. It brings ``GIVEN`` descriptors: the socket to
    the owner, what wakes the server, where last words go, and what tells the owner's end. ``trouble``: why no server
    can be had."""
    status = 1
    try:
        bare.on_signal(bare.SIGCHLD, bare.DEFAULT)
        _, fds, _ = bare.receive_fds(requests, 1, GIVEN)
        wake, words = fds[1:3]
        os.dup2(fds[0], layout.CONTROL, inheritable=False)
        os.dup2(wake, 0)
        os.dup2(words, 2)
        os.dup2(fds[3], _OWNER, inheritable=False)
        lock.close_others((0, 1, 2, layout.CONTROL, _OWNER))
        os.setsid()
        lock.set_name("tiltyard-warden")
        control = socket.socket(fileno=layout.CONTROL)
        if trouble:
            server.say(control, {"error": trouble})
        else:
            pidfd = os.pidfd_open(os.getpid())
            bare.send_fds(control, json.dumps({"warden": os.getpid()}).encode(), [pidfd])
            os.close(pidfd)
            status = _keep(control)
    finally:
        os._exit(status)


def _keep(control: socket.socket) -> int:
    wish = json.loads(control.recv(1 << 16) or b"{}")
    if not wish:
        return 0
    home = None
    child = 0
    ours, theirs = socket.socketpair()
    try:
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
        return _watch(_OWNER, child, control)
    except (OSError, wire.WireError) as error:
        server.say(control, {"error": f"{getattr(error, 'strerror', None) or error}"})
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return 1
    finally:
        if home is not None:
            home.remove()


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
