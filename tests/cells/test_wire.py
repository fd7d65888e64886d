"""Frames over real sockets: whole, cut short, too large, late, and with descriptors."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.cells.inside import wire

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, two = socket.socketpair()
    with one, two:
        yield one, two


def soon(seconds: float = 30.0) -> float:
    return time.monotonic() + seconds


@given(
    st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.floats(allow_nan=False)),
    st.binary(max_size=5000),
)
def test_what_is_sent_is_received(header: dict[str, object], block: bytes) -> None:
    one, two = socket.socketpair()
    with one, two:
        wire.send(one, header, block, deadline=soon())
        assert wire.receive(two, deadline=soon(), max_block=5000) == (header, block, [])


def test_large_frames_cross(pair: Pair) -> None:
    block = os.urandom(20 << 20)
    thread = threading.Thread(target=lambda: wire.send(pair[0], {"n": 1}, block, deadline=soon()))
    thread.start()
    assert wire.receive(pair[1], deadline=soon(), max_block=len(block))[1] == block
    thread.join()


def test_frames_keep_their_order(pair: Pair) -> None:
    for n in range(20):
        wire.send(pair[0], {"n": n}, b"%d" % n, deadline=soon())
    for n in range(20):
        assert wire.receive(pair[1], deadline=soon(), max_block=9)[:2] == ({"n": n}, b"%d" % n)


def test_descriptors_cross_and_are_not_inherited(pair: Pair) -> None:
    read, write = os.pipe()
    wire.send(pair[0], {}, b"x", deadline=soon(), fds=[write])
    os.close(write)
    _, block, fds = wire.receive(pair[1], deadline=soon(), max_block=9, take_fds=True)
    assert block == b"x" and len(fds) == 1 and not os.get_inheritable(fds[0])
    os.write(fds[0], b"through")
    assert os.read(read, 100) == b"through"
    os.close(read)
    os.close(fds[0])


def test_descriptors_of_a_broken_frame_are_closed(pair: Pair) -> None:
    read, write = os.pipe()
    socket.send_fds(pair[0], [struct.pack("!IQ", 5, 0) + b"wrong"], [write])
    os.close(write)
    with pytest.raises(wire.WireError):
        wire.receive(pair[1], deadline=soon(), max_block=9, take_fds=True)
    assert os.read(read, 1) == b""
    os.close(read)


@pytest.mark.parametrize("cut", [0, 1, 11, 12, 20, 30])
def test_an_end_in_the_middle_is_an_end(pair: Pair, cut: int) -> None:
    text = b'{"a": 1234567890123}'
    pair[0].sendall((struct.pack("!IQ", len(text), 20) + text + b"x" * 20)[:cut])
    pair[0].close()
    with pytest.raises(wire.Closed):
        wire.receive(pair[1], deadline=soon(), max_block=100)


def test_silence_is_late(pair: Pair) -> None:
    with pytest.raises(wire.Late):
        wire.receive(pair[1], deadline=soon(0.05), max_block=9)
    pair[0].sendall(b"\0\0")
    with pytest.raises(wire.Late):
        wire.receive(pair[1], deadline=soon(0.05), max_block=9)
    with pytest.raises(wire.Late):
        wire.receive(pair[1], deadline=soon(-1), max_block=9)


def test_who_does_not_read_is_late(pair: Pair) -> None:
    with pytest.raises(wire.Late):
        wire.send(pair[0], {}, bytes(50 << 20), deadline=soon(0.1))


def test_sending_to_nobody_is_closed(pair: Pair) -> None:
    pair[1].close()
    with pytest.raises(wire.Closed):
        wire.send(pair[0], {}, b"x", deadline=soon())


def test_more_than_asked_for_is_refused(pair: Pair) -> None:
    wire.send(pair[0], {}, b"x" * 11, deadline=soon())
    with pytest.raises(wire.WireError, match="11"):
        wire.receive(pair[1], deadline=soon(), max_block=10)
