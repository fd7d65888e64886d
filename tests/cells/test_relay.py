"""Relays: bytes and descriptors over a plain stream, windows, ends, and what is not believed."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from conformance import LONG, eventually

from tiltyard.cells.inside import relay, wire
from tiltyard.cells.inside.relay import Relay


class OverSocket:
    """A stream between two relays of one process."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock

    def fileno(self) -> int:
        return self.sock.fileno()

    put_fileno = fileno

    def take(self) -> bytes | None:
        try:
            return self.sock.recv(1 << 16) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def put(self, data: bytes) -> int:
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0


class Pair:
    """Two relays and the sockets at their ends."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        self.near, near = socket.socketpair()
        self.far, far = socket.socketpair()
        self.relays = [Relay(near, OverSocket(here), 1), Relay(far, OverSocket(there), 2)]
        self.threads = [
            threading.Thread(target=self._run, args=(r, s))
            for r, s in zip(self.relays, (here, there), strict=True)
        ]
        for thread in self.threads:
            thread.start()
        for sock in (self.near, self.far):
            sock.settimeout(LONG)

    def _run(self, one: Relay, stream: socket.socket) -> None:
        one.run()
        stream.close()

    def close(self) -> None:
        self.near.close()
        self.far.close()
        for thread in self.threads:
            thread.join(LONG)
            assert not thread.is_alive()


@pytest.fixture
def pair() -> Iterator[Pair]:
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    pair = Pair()
    yield pair
    pair.close()
    assert eventually(lambda: len(os.listdir("/dev/fd")) <= before)  # noqa: PTH208


def send_fd(sock: socket.socket, data: bytes, *fds: int) -> None:
    socket.send_fds(sock, [data], list(fds))


def receive_fd(sock: socket.socket, size: int) -> tuple[bytes, list[socket.socket]]:
    data, fds, _, _ = socket.recv_fds(sock, size, 16)
    made = [socket.socket(fileno=fd) for fd in fds]
    for one in made:
        one.settimeout(LONG)
    return data, made


def exactly(sock: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size and (data := sock.recv(size - len(parts))):
        parts += data
    return parts


def test_bytes_cross_both_ways(pair: Pair) -> None:
    data = os.urandom(3 << 20)
    for one, other in ((pair.near, pair.far), (pair.far, pair.near)):
        sender = threading.Thread(target=one.sendall, args=(data,))
        sender.start()
        assert exactly(other, len(data)) == data
        sender.join()


def test_frames_with_descriptors_cross(pair: Pair) -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(LONG)
    with ours:
        deadline = time.monotonic() + LONG
        wire.send(pair.near, {"op": "start"}, b"x" * 100_000, deadline=deadline, fds=[theirs.fileno()])
        theirs.close()
        header, block, fds = wire.receive(pair.far, deadline=deadline, max_block=1 << 20, take_fds=True)
        assert header == {"op": "start"} and len(block) == 100_000 and len(fds) == 1
        with socket.socket(fileno=fds[0]) as far:
            far.settimeout(LONG)
            ours.sendall(b"to you")
            assert far.recv(100) == b"to you"
            far.sendall(b"and back")
            assert ours.recv(100) == b"and back"
        assert ours.recv(1) == b""


def test_a_channel_carries_descriptors_itself_with_the_last_byte(pair: Pair) -> None:
    ours, theirs = socket.socketpair()
    send_fd(pair.near, b"f", theirs.fileno())
    theirs.close()
    _, (channel,) = receive_fd(pair.far, 1)
    with ours, channel:
        for _ in range(20):
            inner, inner_theirs = socket.socketpair()
            inner.settimeout(LONG)
            ours.sendall(b"a message before")
            send_fd(ours, b"f", inner_theirs.fileno())
            inner_theirs.close()
            assert exactly(channel, len(b"a message before")) == b"a message before"
            data, (far,) = receive_fd(channel, 1)
            assert data == b"f"
            with far, inner:
                far.sendall(b"!")
                assert inner.recv(1) == b"!"


def test_an_end_of_one_direction_is_passed_on(pair: Pair) -> None:
    ours, theirs = socket.socketpair()
    send_fd(pair.near, b"f", theirs.fileno())
    theirs.close()
    _, (far,) = receive_fd(pair.far, 1)
    ours.settimeout(LONG)
    with ours, far:
        ours.sendall(b"all")
        ours.shutdown(socket.SHUT_WR)
        assert exactly(far, 3) == b"all" and far.recv(1) == b""
        far.sendall(b"still")
        assert exactly(ours, 5) == b"still"


def test_who_is_not_read_holds_up_nobody(pair: Pair) -> None:
    ours, theirs = socket.socketpair()
    send_fd(pair.near, b"f", theirs.fileno())
    theirs.close()
    _, (deaf,) = receive_fd(pair.far, 1)
    with ours, deaf:
        ours.setblocking(False)
        sent = 0
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            try:
                sent += ours.send(bytes(1 << 16))
            except BlockingIOError:
                time.sleep(0.01)
        assert sent < 4 << 20  # windows and the system's own buffers, and no more
        pair.near.sendall(b"you are heard")
        assert exactly(pair.far, 13) == b"you are heard"


def test_what_is_no_socket_is_at_its_end(pair: Pair) -> None:
    with open("/dev/null", "rb") as null:
        send_fd(pair.near, b"f", null.fileno())
    _, (far,) = receive_fd(pair.far, 1)
    with far:
        assert far.recv(1) == b""


def test_the_end_of_the_first_channel_ends_both(pair: Pair) -> None:
    pair.near.sendall(b"last")
    pair.near.close()
    assert exactly(pair.far, 4) == b"last" and pair.far.recv(1) == b""
    for thread in pair.threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_descriptors_without_end_are_dropped(pair: Pair) -> None:
    kept = []
    for _ in range(relay.MAX_CHANNELS):
        ours, theirs = socket.socketpair()
        send_fd(pair.near, b"f", theirs.fileno())
        theirs.close()
        kept.append(ours)
        data, made = receive_fd(pair.far, 1)
        assert data == b"f"
        kept.extend(made)
    assert max(len(one.channels) for one in pair.relays) <= relay.MAX_CHANNELS // 2
    pair.near.sendall(b"on we go")
    assert exactly(pair.far, 8) == b"on we go"
    for sock in kept:
        sock.close()


HEAD = struct.Struct("!BIH")
NONSENSE = {
    "no kind": HEAD.pack(77, 0, 0),
    "more than the window": HEAD.pack(0, 0, 60_000) * 1 + bytes(60_000),
    "room of a wrong size": HEAD.pack(3, 0, 1) + b"x",
    "too many at once": HEAD.pack(4, 0, 4 * 17) + bytes(4 * 17),
    "the same twice": HEAD.pack(4, 0, 8) + struct.pack("!2I", 9, 9),
    "one that is there": HEAD.pack(4, 0, 4) + struct.pack("!I", 0),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_ends_the_relay(what: str) -> None:
    ours, theirs = socket.socketpair()
    near, end = socket.socketpair()
    one = Relay(end, OverSocket(theirs), 1)
    thread = threading.Thread(target=one.run)
    thread.start()
    with ours, near, theirs:
        ours.setblocking(False)
        stop = time.monotonic() + LONG
        while thread.is_alive() and time.monotonic() < stop:
            try:
                ours.send(NONSENSE[what])
            except BlockingIOError:
                select.select([ours], [], [], 0.01)
            except OSError:
                break
            if what != "more than the window":
                break
        thread.join(LONG)
        assert not thread.is_alive()


def test_frames_for_nobody_are_ignored(pair: Pair) -> None:
    ours, theirs = socket.socketpair()
    near, end = socket.socketpair()
    one = Relay(end, OverSocket(theirs), 1)
    thread = threading.Thread(target=one.run)
    thread.start()
    with ours, near, theirs:
        for kind in (0, 1, 2):
            ours.sendall(HEAD.pack(kind, 99, 0))
        ours.sendall(HEAD.pack(0, 0, 2) + b"ok")
        near.settimeout(LONG)
        assert near.recv(2) == b"ok"
        ours.close()
        thread.join(LONG)
        assert not thread.is_alive()
