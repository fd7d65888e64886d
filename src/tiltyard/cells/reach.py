"""From a container that starts to the socket of its keeper: two ways, with one result.

``by_socket``: a unix socket in a private folder, shown to the container while it starts and removed as soon as the
keeper has come through: descriptors cross it as they are. For engines that share this kernel.
``by_stream``: the engine carries the bytes between a relay here and one there (see ``inside.relay``). For gVisor, for
engines on another machine, and for what is executed in a container that runs.

Either way the keeper ends when our end closes. What does not come up is removed again, and said with its last words.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import select
import shutil
import socket
import struct
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tiltyard.cells.client import socket_pair
from tiltyard.cells.engine import Box, Engine, Stream, discard
from tiltyard.cells.inside import wire
from tiltyard.cells.inside.relay import Relay
from tiltyard.cells.owner import owner_id
from tiltyard.errors import ArenaError

START_S = 120.0
END_S = 20.0
DOOR = "/run/tiltyard"
"""Where the private folder is shown in the container."""
PREFIX = "tiltyard-door-"

_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
_relays: weakref.WeakSet[Relay] = weakref.WeakSet()


def _close_inherited() -> None:
    """In a forked child: a copy of a socket would keep a cell, or a conversation, alive after its owner's death."""
    for sock in list(_sockets):
        sock.close()
    for relay in list(_relays):
        for channel in relay.channels.values():
            channel.close()
    _sockets.clear()
    _relays.clear()
    _doors.clear()


os.register_at_fork(after_in_child=_close_inherited)


@dataclass(frozen=True, slots=True)
class Reached:
    """A keeper: its socket, what it said of itself, and what makes sure of its end (see ``KeeperCell``)."""

    sock: socket.socket
    ready: Mapping[str, Any]
    bury: Callable[[], None]


def by_socket(engine: Engine, box: Box, orders: Mapping[str, Any]) -> Reached:
    """Start this container and reach its keeper. ArenaError if that fails; then nothing is left of it."""
    with _door() as (folder, name, listener):
        there = replace(box, argv=(*box.argv, f"{DOOR}/{name}"), binds=(*box.binds, (folder, DOOR, False)))
        stream = engine.run(there)
        sock = None
        try:
            sock = _accept(listener, stream)
            pidfd = _pidfd(sock)
            try:
                ready = _shake_hands(sock, orders, stream.words)
            except BaseException:
                if pidfd >= 0:
                    os.close(pidfd)
                raise
        except BaseException as error:
            if sock is not None:
                sock.close()
            _discard(engine, box.name, stream, certain=isinstance(error, ArenaError))
            raise
    if pidfd >= 0:
        stream.close()
        return Reached(sock, ready, _bury_by_pidfd(engine, box.name, pidfd))
    return Reached(sock, ready, _bury_by_stream(engine, box.name, stream))


def by_stream(engine: Engine, name: str, begin: Callable[[], Stream], orders: Mapping[str, Any]) -> Reached:
    """As ``by_socket``. ``begin`` starts what runs the keeper with BY_STREAMS as its last argument: a container, which
    is then removed with ``name``, or ("") a process in one."""
    ours, theirs = socket_pair()
    try:
        carrier = _Carrier(theirs, begin())
    except BaseException:
        ours.close()
        theirs.close()
        raise
    try:
        ready = _shake_hands(ours, orders, carrier.last_words)
    except BaseException as error:
        ours.close()
        carrier.wait(END_S)
        if name:
            _discard(engine, name, None, certain=isinstance(error, ArenaError))
        raise
    return Reached(ours, ready, _bury_carrier(engine, name, carrier))


def _discard(engine: Engine, name: str, stream: Stream | None, *, certain: bool = True) -> None:
    if stream is not None:
        stream.close()
    discard(engine, name, certain=certain)


# --------------------------------------------------------------------------------------------------- the socket


_doors: dict[str, int] = {}
"""Private folders that may be there, with the thread that has made each."""


def _remove_door(base: str) -> None:
    shutil.rmtree(base, ignore_errors=True)
    if not os.path.lexists(base):
        _doors.pop(base, None)


def _remove_doors(of: int | None = None) -> None:
    """What an interrupted removal has left: of this thread, which has only one at a time, or of all threads."""
    for base, thread in list(_doors.items()):
        if of is None or thread == of:
            _remove_door(base)


atexit.register(_remove_doors)


@contextlib.contextmanager
def _door() -> Iterator[tuple[str, str, socket.socket]]:
    """(folder, name of the socket in it, the socket, listening). Nobody else on this machine can come to it: it lies
    in a folder that is ours alone, below which the container is shown an open one."""
    _remove_doors(of=threading.get_ident())
    me = owner_id()
    base = f"{tempfile.gettempdir()}/{PREFIX}{me.pid}-{me.start}-{secrets.token_hex(6)}"
    _doors[base] = threading.get_ident()  # before it is made: an interruption may come at any moment
    try:
        os.mkdir(base, 0o700)  # noqa: PTH102
    except OSError as error:
        raise ArenaError(f"no folder for a socket can be made ({error.strerror}); set TMPDIR") from None
    listener = socket.socket(socket.AF_UNIX)
    try:
        folder, name = f"{base}/door", secrets.token_hex(4)
        os.mkdir(folder, 0o755)  # noqa: PTH102
        os.chmod(folder, 0o755)  # noqa: PTH101  (whatever the mask)
        listener.bind(f"{folder}/{name}")
        os.chmod(f"{folder}/{name}", 0o777)  # noqa: PTH101
        listener.listen(1)
        yield folder, name, listener
    except OSError as error:
        raise ArenaError(f"no socket for a keeper can be had ({error.strerror or error})") from None
    finally:
        listener.close()
        _remove_door(base)


def _accept(listener: socket.socket, stream: Stream) -> socket.socket:
    listener.setblocking(False)
    deadline = time.monotonic() + START_S
    while True:
        watched: list[socket.socket | Stream] = [listener, stream]
        ready = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))[0]
        if listener in ready:
            sock, _ = listener.accept()
            _sockets.add(sock)
            return sock
        if not ready or (stream in ready and stream.take() is None):
            why = "did not come up in time" if not ready else "ended before its keeper was reached"
            raise ArenaError(f"a container {why}: {stream.words() or 'it said nothing'}"[:2000])


def _shake_hands(sock: socket.socket, orders: Mapping[str, Any], words: Callable[[], str]) -> dict[str, Any]:
    deadline = time.monotonic() + START_S
    try:
        wire.send(sock, dict(orders), deadline=deadline)
        answer, _, _ = wire.receive(sock, deadline=deadline, max_header=1 << 20, max_block=0)
    except wire.WireError as error:
        said = words() or "it said nothing"
        raise ArenaError(f"a container's keeper did not come up ({error}): {said}"[:2000]) from None
    if "ready" not in answer:
        raise ArenaError(f"a cell can't be made: {str(answer.get('text', 'no reason given'))[:2000]}")
    return answer


def _pidfd(sock: socket.socket) -> int:
    """A descriptor of the process at the other end, which is alive; -1 where it can't be seen from here."""
    try:
        pid, _, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return os.pidfd_open(pid) if pid > 0 else -1
    except (AttributeError, OSError):
        return -1


# --------------------------------------------------------------------------------------------------- the stream


class _Carrier:
    """A thread that carries bytes between a local socket and a container's stream, until either ends. Then it waits
    for the container's end, which is the stream's."""

    def __init__(self, sock: socket.socket, stream: Stream) -> None:
        self._stream = stream
        self._ended = threading.Event()
        self._words = ""
        threading.Thread(target=self._carry, args=(sock,), daemon=True, name="tiltyard-relay").start()

    def _carry(self, sock: socket.socket) -> None:
        stream = self._stream
        try:
            relay = Relay(sock, stream, 1)
            _relays.add(relay)
            relay.run()
            end = time.monotonic() + END_S
            while (left := end - time.monotonic()) > 0:
                if select.select([stream], [], [], left)[0] and stream.take() is None:
                    break
            self._words = stream.words()
        except (OSError, ValueError):
            pass  # the stream was closed under it
        finally:
            stream.close()
            self._ended.set()

    def wait(self, within_s: float) -> bool:
        return self._ended.wait(within_s)

    def last_words(self) -> str:
        self.wait(END_S)
        return self._words


# ------------------------------------------------------------------------------------------------------ the ends


def _bury_by_pidfd(engine: Engine, name: str, pidfd: int) -> Callable[[], None]:
    """The first process of a pid namespace ends when every other in it is dead."""

    def bury() -> None:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        ended = poll.poll(END_S * 1000)
        os.close(pidfd)
        if not ended:
            _discard(engine, name, None)

    return bury


def _bury_by_stream(engine: Engine, name: str, stream: Stream) -> Callable[[], None]:
    def bury() -> None:
        end = time.monotonic() + END_S
        ended = False
        with contextlib.suppress(OSError, ValueError):
            while not ended and (left := end - time.monotonic()) > 0:
                ended = bool(select.select([stream], [], [], left)[0]) and stream.take() is None
        _discard(engine, name, stream) if not ended else stream.close()

    return bury


def _bury_carrier(engine: Engine, name: str, carrier: _Carrier) -> Callable[[], None]:
    def bury() -> None:
        if not carrier.wait(END_S) and name:
            _discard(engine, name, None)

    return bury


def sweep_doors() -> list[str]:
    """Remove the private folders that dead owners left; their paths."""
    from tiltyard.cells.owner import Owner, lives

    me, gone = owner_id(), []
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        pid, _, rest = path.name.removeprefix(PREFIX).partition("-")
        start = rest.rpartition("-")[0]
        if pid.isdecimal() and lives(Owner(int(pid), start, me.boot, me.namespace)) is False:
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                gone.append(str(path))
    return gone
