"""Frames over a stream socket, bounded: a four-byte length, then that many bytes of JSON (an array).

Promises: a frame longer than the bound, a frame that is no JSON array, and an end in the middle are a
:class:`ProtocolError`; a clean end is :class:`Closed`. Never unpickles, never keeps descriptors that were not asked for.
"""

from __future__ import annotations

import array
import functools
import json
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any, TypeVar

ROOM = 6000
"""Frames: enough for what the codec lets through, and far from what the C stack bears."""

_LOOK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
_LENGTH = struct.Struct(">I")
_decode = json.JSONDecoder().decode
_encode = json.JSONEncoder(ensure_ascii=True, check_circular=False, separators=(",", ":")).encode


class ProtocolError(Exception):
    """The other side sent something that it may not send."""


class Closed(Exception):
    """The other side is gone."""


class TooLarge(Exception):
    """The message is longer than the bound; nothing was sent."""


_F = TypeVar("_F", bound=Callable[..., Any])


def deep(function: _F) -> _F:
    """Data may be nested deeper than a solution's own recursion limit has room for; its limit stays what it was."""

    @functools.wraps(function)
    def with_room(*args: Any, **kwargs: Any) -> Any:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, ROOM))
        try:
            return function(*args, **kwargs)
        finally:
            sys.setrecursionlimit(before)

    return with_room  # type: ignore[return-value]


class Link:
    """One end of a conversation. ``bound`` is the largest frame, in bytes, that it sends or takes.

    ``constant`` is called with each "NaN", "Infinity" or "-Infinity" that arrives; it returns what it stands for."""

    __slots__ = ("_buffer", "_decode", "bound", "sock")

    def __init__(
        self, sock: socket.socket, bound: int, constant: Callable[[str], float] | None = None
    ) -> None:
        self.sock = sock
        self.bound = bound
        self._buffer = b""
        self._decode = json.JSONDecoder(parse_constant=constant).decode if constant else _decode

    @deep
    def send(self, message: list[Any]) -> None:
        """Send one message. TooLarge: it was not sent and the conversation may go on."""
        data = _encode(message).encode("ascii")
        if len(data) > self.bound:
            raise TooLarge(len(data))
        try:
            self.sock.sendall(_LENGTH.pack(len(data)) + data)
        except OSError as error:
            raise Closed(str(error)) from None

    @deep
    def recv(self) -> list[Any]:
        """The next message."""
        (size,) = _LENGTH.unpack(self._take(_LENGTH.size, True))
        if size > self.bound:
            raise ProtocolError("a frame larger than the bound")
        data = self._take(size, False)
        try:
            message = self._decode(data.decode("ascii"))
        except (ValueError, RecursionError):
            raise ProtocolError("a frame that is no JSON") from None
        if type(message) is not list:
            raise ProtocolError("a frame that is no array")
        return message

    def buffered(self) -> bool:
        """Whether the next message, or its beginning, has been read from the socket already."""
        return bool(self._buffer)

    def pending(self) -> bool:
        """Whether bytes have arrived that were not asked for yet. Closed if the other side is gone."""
        if self._buffer:
            return True
        try:
            if self.sock.recv(1, _LOOK):
                return True
        except BlockingIOError:
            return False
        except OSError as error:
            raise Closed(str(error)) from None
        raise Closed("end of stream")

    def _take(self, size: int, first: bool) -> bytes:
        if len(self._buffer) >= size:
            out, self._buffer = self._buffer[:size], self._buffer[size:]
            return out
        parts = [self._buffer]
        have = len(self._buffer)
        self._buffer = b""
        while have < size:
            try:
                part = self.sock.recv(max(65536, min(size - have, 1 << 20)))
            except OSError as error:
                raise Closed(str(error)) from None
            if not part:
                if first and have == 0:
                    raise Closed("end of stream")
                raise ProtocolError("the stream ended inside a frame")
            parts.append(part)
            have += len(part)
        data = b"".join(parts)
        out, self._buffer = data[:size], data[size:]
        return out


def send_fd(sock: socket.socket, fd: int) -> None:
    """Send one byte together with a descriptor. OSError if the other side is gone."""
    sock.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])


def recv_fd(sock: socket.socket) -> int | None:
    """The descriptor that comes with the next byte; None at the end of the stream."""
    size = array.array("i").itemsize
    data, ancillary, _, _ = sock.recvmsg(1, socket.CMSG_SPACE(size))
    if not data:
        return None
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS and len(body) >= size:
            return int(array.array("i", body[:size])[0])
    raise ProtocolError("a request without a descriptor")
