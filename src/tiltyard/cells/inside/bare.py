"""Signals and sockets by the C functions below the library's own, for processes that live for a few milliseconds.

What a fork touches it pays for, a page fault of some microseconds for each new page. The library's ``signal.signal``
and ``socket.MSG_X | socket.MSG_Y`` make members of enums out of every number that passes, and ``socket.socket`` is a
class of Python over the C type: each of them is some fifty pages. Numbers here are plain, sockets are the C type.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # it has no stub
import _socket
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

Socket = _socket.socket
"""Closed by ``close``, or when nothing refers to it any more; it is no context manager."""
pair = _socket.socketpair

CLOEXEC = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))
WAIT_ALL = int(socket.MSG_WAITALL)
_CUT = int(socket.MSG_CTRUNC)
_LEVEL, _RIGHTS = int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS)
_FD = struct.calcsize("i")

on_signal = _signal.signal
"""As ``signal.signal``, without enums: takes and returns numbers or functions."""
DEFAULT, IGNORE = int(_signal.SIG_DFL), int(_signal.SIG_IGN)
SIGCHLD, SIGINT, SIGPIPE, SIGTERM, SIGHUP, SIGXFSZ, SIGKILL = (
    int(getattr(_signal, name))
    for name in ("SIGCHLD", "SIGINT", "SIGPIPE", "SIGTERM", "SIGHUP", "SIGXFSZ", "SIGKILL")
)


interrupt = _signal.default_int_handler


def plain_signals() -> None:
    """Signals as a new process has them: none wakes, none is caught, ignored or held back."""
    _signal.set_wakeup_fd(-1)
    for number in (SIGCHLD, SIGINT, SIGPIPE, SIGTERM, SIGHUP, SIGXFSZ):
        on_signal(number, DEFAULT)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def send_fds(sock: Socket, data: bytes, fds: Sequence[int]) -> int:
    """Send bytes, the descriptors with the first of them; how many bytes went."""
    return sock.sendmsg((data,), ((_LEVEL, _RIGHTS, struct.pack(f"{len(fds)}i", *fds)),))


def receive_fds(sock: Socket, size: int, most: int, flags: int = 0) -> tuple[bytes, list[int], bool]:
    """At most ``size`` bytes and ``most`` descriptors, and whether there were more of these. They are close-on-exec."""
    data, ancillary, how, _ = sock.recvmsg(size, _socket.CMSG_SPACE(most * _FD), CLOEXEC | flags)
    fds: list[int] = []
    for level, kind, payload in ancillary:
        if level == _LEVEL and kind == _RIGHTS:
            count = len(payload) // _FD
            fds.extend(struct.unpack(f"{count}i", payload[: count * _FD]))
    return data, fds, bool(how & _CUT)
