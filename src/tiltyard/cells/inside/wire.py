"""Frames between a cell's owner and its keeper: a JSON header and a block of bytes, over a unix stream socket.

A frame is two lengths (``!IQ``: header, block), then the header's bytes, then the block. Whoever receives names the
most that it takes, and a deadline; nothing is allocated on the word of the other side. File descriptors cross with
the first byte of a frame (SCM_RIGHTS) and are received only by who asks for them. Used on both sides, and by whatever
else in a cell wants to speak in frames; it knows nothing of what they say.
"""

from __future__ import annotations

import json
import os
import struct
import time

from . import bare

TYPE_CHECKING = False  # not imported from typing, which would cost each keeper three milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .bare import Socket

_LENGTHS = struct.Struct("!IQ")
MAX_HEADER = 16 << 20
MAX_FDS = 16
_CHUNK = 1 << 20
_SMALL = 1 << 16
"""Blocks that are sent together with their header: one system call, one wake-up of the other side."""


_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # what ``decode`` calls, without its regular expressions


def _encoder() -> Callable[[Any], str]:
    """One that is made once: ``json.dumps`` makes one for each call."""
    slow = json.JSONEncoder(separators=(",", ":"))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return slow.encode
    ascii_text = json.encoder.encode_basestring_ascii
    fast = make(None, slow.default, ascii_text, None, ":", ",", False, False, True)
    return lambda what: "".join(fast(what, 0))


_encode = _encoder()


class WireError(Exception):
    """The other side sent what is no frame, or more than was asked for."""


class Closed(WireError):
    """The other side is gone."""


class Late(WireError):
    """The deadline passed before the whole frame had crossed."""


def send(
    sock: Socket,
    header: dict[str, Any],
    block: bytes | bytearray | memoryview = b"",
    *,
    deadline: float,
    fds: Sequence[int] = (),
) -> None:
    """Send one frame before ``deadline`` (``time.monotonic``). Raises Closed, Late."""
    text = _encode(header).encode()
    head = _LENGTHS.pack(len(text), len(block)) + text
    if len(block) < _SMALL:
        head, block = head + bytes(block), b""
    try:
        if fds:
            _wait(sock, deadline)
            head = head[bare.send_fds(sock, head, fds) :]
        _send_all(sock, head, deadline)
        _send_all(sock, block, deadline)
    except TimeoutError:
        raise Late("the other side does not read") from None
    except OSError as error:
        raise Closed(f"the other side is gone ({error.strerror or error})") from None


def refuse(sock: Socket, kind: str, text: str, *, within_s: float = 30.0) -> None:
    """Tell the other side why it can't have what it wants: ``{"error": kind, "text": text}``. Never raises: if it is
    gone, nobody asks."""
    try:
        send(sock, {"error": kind, "text": text}, deadline=time.monotonic() + within_s)
    except (WireError, OSError):
        pass


def _send_all(sock: Socket, data: bytes | bytearray | memoryview, deadline: float) -> None:
    view = memoryview(data)
    while view:
        _wait(sock, deadline)
        view = view[sock.send(view[:_CHUNK]) :]


def _wait(sock: Socket, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    sock.settimeout(left)


def receive(
    sock: Socket,
    *,
    deadline: float,
    max_header: int = MAX_HEADER,
    max_block: int,
    take_fds: bool = False,
) -> tuple[dict[str, Any], bytes, list[int]]:
    """One frame: header, block and descriptors (close-on-exec; [] without ``take_fds``). Raises Closed, Late,
    WireError; descriptors that came with a broken frame are closed."""
    fds: list[int] = []
    try:
        first = _receive_fds(sock, deadline, fds) if take_fds else b""
        lengths = first + _receive_exactly(sock, _LENGTHS.size - len(first), deadline)
        header_size, block_size = _LENGTHS.unpack(lengths)
        if header_size > max_header or block_size > max_block:
            raise WireError(
                f"a frame of {header_size} + {block_size} bytes; at most {max_header} + {max_block}"
            )
        header = _parse(_receive_exactly(sock, header_size, deadline))
        return header, _receive_exactly(sock, block_size, deadline), fds
    except BaseException as error:
        for fd in fds:
            os.close(fd)
        if isinstance(error, TimeoutError):
            raise Late("no whole frame came in time") from None
        if isinstance(error, OSError):
            raise Closed(f"the other side is gone ({error.strerror or error})") from None
        raise


def _parse(text: bytes) -> dict[str, Any]:
    try:
        words = text.decode()
        header, end = _scan(words, 0)
        if end != len(words):
            raise ValueError("more than one value")
    except (ValueError, RecursionError, StopIteration) as error:
        raise WireError(f"a header that is no JSON ({type(error).__name__})") from None
    if not isinstance(header, dict):
        raise WireError("a header that is no JSON object")
    return header


def _receive_exactly(sock: Socket, size: int, deadline: float) -> bytes:
    parts: list[bytes] = []
    while size:
        _wait(sock, deadline)
        part = sock.recv(min(size, _CHUNK))
        if not part:
            raise Closed("the other side is gone")
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _receive_fds(sock: Socket, deadline: float, fds: list[int]) -> bytes:
    """The first bytes of a frame; descriptors that come with them are added to ``fds``."""
    _wait(sock, deadline)
    data, got, cut = bare.receive_fds(sock, _LENGTHS.size, MAX_FDS)
    fds.extend(got)
    if not bare.CLOEXEC:
        for fd in fds:
            os.set_inheritable(fd, False)
    if not data:
        raise Closed("the other side is gone")
    if cut:
        raise WireError(f"more than {MAX_FDS} descriptors with one frame")
    return data
