"""Frames with descriptors over a plain stream of bytes: for owners and keepers that no socket can join.

Where a keeper runs under another kernel (gVisor, a remote engine) its socket can't be shown to it, and a descriptor
can't be given to it. A :class:`Relay` at each end joins a local socket to the stream: bytes that cross the socket cross
the stream, and a descriptor that is sent along (a stream socket) becomes a channel of its own with a relay at both
ends, and so on: such a socket may carry descriptors itself. On channel 0 they come with the first byte of a frame,
before which nothing is under way; on the others with the last byte of what was sent with them (the kernel does not
tell where that began). Once sent, a descriptor is the relay's: it ends with its channel, whoever has a copy of it. Each
channel has a window, so that one which nobody reads neither fills memory nor holds up the
others.

What comes over the stream is not believed: lengths and numbers are checked, and any surprise ends the relay.
"""

from __future__ import annotations

import array
import os
import select
import signal
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Wire(Protocol):
        """The stream: see ``tiltyard.cells.engine.Stream``."""

        def fileno(self) -> int: ...
        def put_fileno(self) -> int: ...
        def take(self) -> bytes | None: ...
        def put(self, data: bytes) -> int: ...


_HEAD = struct.Struct("!BIH")
"""What it is, the channel, how many bytes follow."""
_DATA, _END, _CLOSE, _ROOM, _GIVE = range(5)
"""Bytes; no more bytes; the channel is gone; so many bytes were passed on; the next bytes come with these channels."""
WINDOW = 1 << 18
_MOST = 1 << 15
_MAX_OUT = 4 << 20
MAX_GIVEN = 16
MAX_CHANNELS = 256
"""Of one relay; whoever sends stops at half of it, and drops descriptors beyond that."""


class Broken(Exception):
    """The other end sent what can't be."""


class _Channel:
    """One local socket. ``room``: bytes that the other end will still take; ``pending``: bytes for the socket, in
    pieces of which each begins with descriptors or with none."""

    __slots__ = ("ended_here", "ended_there", "pending", "room", "sock", "waiting")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.room = WINDOW
        self.pending: list[tuple[bytearray, list[int]]] = []
        self.waiting = 0
        """Bytes in ``pending``."""
        self.ended_here = False
        self.ended_there = False

    def add(self, data: bytes) -> None:
        if not self.pending:
            self.pending.append((bytearray(), []))
        self.pending[-1][0].extend(data)
        self.waiting += len(data)

    def send(self) -> int:
        """Pass on what the socket takes; how many bytes. BlockingIOError if it takes none now."""
        data, given = self.pending[0]
        if not data:  # only where descriptors follow that came before their bytes
            self.pending.pop(0)
            for fd in given:
                os.close(fd)
            return 0
        sent = socket.send_fds(self.sock, [bytes(data)], given) if given else self.sock.send(data)
        while given:
            os.close(given.pop())
        del data[:sent]
        self.waiting -= sent
        if not data:
            self.pending.pop(0)
        return sent

    def close(self) -> None:
        self.sock.close()
        for _, given in self.pending:
            for fd in given:
                os.close(fd)
        self.pending.clear()


class Relay:
    """``sock`` is the local end of channel 0, over which descriptors may pass; ``first`` is 1 at one end of the stream
    and 2 at the other, so that both can number new channels. ``run`` serves until channel 0 or the stream ends."""

    def __init__(self, sock: socket.socket, stream: Wire, first: int) -> None:
        self.stream = stream
        self.channels = {0: _Channel(sock)}
        self.number = first
        self.out = bytearray()
        self.come = bytearray()
        self.gone = False

    def run(self) -> None:
        try:
            while not self.gone and 0 in self.channels:
                self._once()
            self._flush()
        except (Broken, struct.error):
            pass
        finally:
            for channel in self.channels.values():
                channel.close()

    def _flush(self) -> None:
        """What was said before the end still goes out, unless nobody takes it."""
        while self.out and not self.gone:
            poll = select.poll()
            poll.register(self.stream.put_fileno(), select.POLLOUT)
            if not poll.poll(5000):
                return
            self._send()

    # ------------------------------------------------------------------------------------------ one round

    def _once(self) -> None:
        poll = select.poll()
        reads, writes = self.stream.fileno(), self.stream.put_fileno()
        wanted: dict[int, int] = {reads: select.POLLIN}
        if self.out:
            wanted[writes] = wanted.get(writes, 0) | select.POLLOUT
        by_fd = {}
        for number, channel in self.channels.items():
            events = 0
            if not channel.ended_here and channel.room and len(self.out) < WINDOW:
                events |= select.POLLIN
            if channel.waiting:
                events |= select.POLLOUT
            if events:
                by_fd[channel.sock.fileno()] = number
                wanted[channel.sock.fileno()] = events
        for fd, events in wanted.items():
            poll.register(fd, events)
        for fd, event in poll.poll():
            if fd == reads and event & ~select.POLLOUT:
                self._receive()
            if fd == writes and self.out:
                self._send()
            if fd in by_fd:
                self._serve(by_fd[fd], event)

    def _serve(self, number: int, event: int) -> None:
        channel = self.channels.get(number)
        if channel is None:
            return  # closed in this round
        if event & select.POLLOUT and channel.waiting:
            self._pass_on(number, channel)
        may_read = not channel.ended_here and channel.room
        if event & ~select.POLLOUT and may_read and number in self.channels:
            self._read(number, channel)

    def _tell(self, what: int, number: int, data: bytes = b"") -> None:
        self.out += _HEAD.pack(what, number, len(data)) + data
        if len(self.out) > _MAX_OUT:
            raise Broken("it sends, and takes nothing")

    def _send(self) -> None:
        try:
            del self.out[: self.stream.put(bytes(self.out[: 1 << 16]))]
        except OSError:
            self.gone = True

    # --------------------------------------------------------------------------- from here to over there

    def _read(self, number: int, channel: _Channel) -> None:
        try:
            data, fds = _receive(channel.sock, min(_MOST, channel.room))
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if data:
            channel.room -= len(data)
            before = data[:-1] if fds and number else b""
            if before:
                self._tell(_DATA, number, before)
            if fds:
                self._give(number, fds)
            self._tell(_DATA, number, data[len(before) :])
            return
        channel.ended_here = True
        self._tell(_END, number)
        if number == 0:
            self._drop(0)
        else:
            self._drop_if_over(number)

    def _give(self, by: int, fds: list[int]) -> None:
        """Make channels of these descriptors; they go with the next byte on the channel ``by``."""
        numbers = []
        for fd in fds:
            if len(self.channels) >= MAX_CHANNELS // 2:
                os.close(fd)
                continue
            self.number += 2
            self.channels[self.number] = _Channel(_socket_of(fd))
            numbers.append(self.number)
        if numbers:
            self._tell(_GIVE, by, struct.pack(f"!{len(numbers)}I", *numbers))

    # --------------------------------------------------------------------------- from over there to here

    def _receive(self) -> None:
        data = self.stream.take()
        if data is None:
            self.gone = True
            return
        self.come += data
        while len(self.come) >= _HEAD.size:
            what, number, size = _HEAD.unpack_from(self.come)
            if len(self.come) < _HEAD.size + size:
                return
            body = bytes(self.come[_HEAD.size : _HEAD.size + size])
            del self.come[: _HEAD.size + size]
            self._take(what, number, body)

    def _take(self, what: int, number: int, body: bytes) -> None:
        channel = self.channels.get(number)
        if channel is None:
            if what == _GIVE:  # it was closed here, and they did not know yet
                for lost in struct.unpack(f"!{len(body) // 4}I", body):
                    self._tell(_CLOSE, lost)
            return
        if what == _DATA:
            channel.add(body)
            if channel.waiting > WINDOW:
                raise Broken("more than fits the window")
            self._pass_on(number, channel)
        elif what == _ROOM:
            channel.room = min(WINDOW, channel.room + struct.unpack("!I", body)[0])
        elif what == _GIVE:
            self._accept(channel, body)
        elif what == _END:
            channel.ended_there = True
            self._pass_on(number, channel)
        elif what == _CLOSE:
            self._drop(number)
        else:
            raise Broken("a frame of no kind")

    def _accept(self, channel: _Channel, body: bytes) -> None:
        numbers = struct.unpack(f"!{len(body) // 4}I", body)
        if len(numbers) > MAX_GIVEN or len(self.channels) + len(numbers) > MAX_CHANNELS:
            raise Broken("too many channels")
        given: list[int] = []
        channel.pending.append((bytearray(), given))
        for number in numbers:
            if number in self.channels:
                raise Broken("a channel that is there already")
            ours, theirs = socket.socketpair()
            self.channels[number] = _Channel(ours)
            given.append(theirs.detach())

    def _pass_on(self, number: int, channel: _Channel) -> None:
        sent = 0
        try:
            if channel.waiting:
                sent = channel.send()
        except BlockingIOError:
            return
        except OSError:  # nobody reads here any more
            self._tell(_CLOSE, number)
            self._drop(number)
            return
        if sent:
            self._tell(_ROOM, number, struct.pack("!I", sent))
        self._drop_if_over(number)

    # --------------------------------------------------------------------------------------------- ends

    def _drop_if_over(self, number: int) -> None:
        channel = self.channels[number]
        if not channel.ended_there or channel.waiting:
            return
        if channel.ended_here or number == 0:
            self._drop(number)
            return
        try:
            channel.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _drop(self, number: int) -> None:
        self.channels.pop(number).close()


def _receive(sock: socket.socket, most: int) -> tuple[bytes, list[int]]:
    space = socket.CMSG_SPACE(MAX_GIVEN * 4)
    data, ancillary, _, _ = sock.recvmsg(most, space, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    fds = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    return data, list(fds)


def _socket_of(fd: int) -> socket.socket:
    """The socket that a descriptor is; for anything else, one that is at its end."""
    try:
        return socket.socket(fileno=fd)
    except OSError:
        os.close(fd)
        ours, theirs = socket.socketpair()
        theirs.close()
        return ours


# ---------------------------------------------------------------------------------------- inside a container


class _StandardStreams:
    """stdin and stdout of this process as the stream."""

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self.fd_in = fd_in
        self.fd_out = fd_out
        os.set_blocking(fd_in, False)
        os.set_blocking(fd_out, False)

    def fileno(self) -> int:
        return self.fd_in

    def put_fileno(self) -> int:
        return self.fd_out

    def take(self) -> bytes | None:
        try:
            return os.read(self.fd_in, 1 << 16) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def put(self, data: bytes) -> int:
        try:
            return os.write(self.fd_out, data)
        except BlockingIOError:
            return 0


def begin(settle: Callable[[], None]) -> tuple[socket.socket, int]:
    """Fork a relay that owns this process's stdin and stdout: (the socket that leads to it, its pid). ``settle`` is
    called in the relay before it serves."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)
        return ours, pid
    code = 1
    try:
        ours.close()
        settle()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Relay(theirs, _StandardStreams(0, 1), 2).run()
        code = 0
    finally:
        os._exit(code)
