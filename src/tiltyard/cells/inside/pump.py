"""The streams of one run: what goes in, what is kept of what comes out, and when it ends.

``Kept`` holds the first and the last half of a stream and drops the middle while it streams; ``Hide`` takes the
cell's own folder out of it before, so that no path of this machine is ever seen. ``pump`` serves the streams until
the leader has ended, the time is over, the cell uses too much, or the owner is gone; it kills nothing itself.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 16
TICK_S = 0.025
"""Between two looks at what a run uses."""


class Kept:
    """The first ``size - size // 2`` bytes and the last ``size // 2`` of what is fed."""

    def __init__(self, size: int) -> None:
        self.tail_size = size // 2
        self.head_size = size - self.tail_size
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = 0

    def feed(self, data: bytes) -> None:
        room = self.head_size - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > self.tail_size + (1 << 20):
            self._trim()

    def _trim(self) -> None:
        over = len(self.tail) - self.tail_size
        if over > 0:
            self.dropped += over
            del self.tail[:over]

    def value(self) -> bytes:
        self._trim()
        return bytes(self.head + self.tail)


class Hide:
    """Takes every occurrence of ``what`` out of a stream, also where two reads meet. b"" hides nothing."""

    def __init__(self, what: bytes) -> None:
        self.what = what
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        what = self.what
        if not what:
            return data
        data = (self.rest + data).replace(what, b"")
        keep = self._begun(data)
        self.rest = data[len(data) - keep :]
        return data[: len(data) - keep]

    def _begun(self, data: bytes) -> int:
        """Length of the longest end of ``data`` that ``what`` begins with."""
        at = max(0, len(data) - len(self.what) + 1)
        while (at := data.find(self.what[:1], at)) >= 0:
            if self.what.startswith(data[at:]):
                return len(data) - at
            at += 1
        return 0

    def end(self) -> bytes:
        rest, self.rest = self.rest, b""
        return rest


class Stream:
    """The keeper's end of a run's stdout or stderr."""

    def __init__(self, fd: int, size: int, hide: bytes) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.kept = Kept(size)
        self.hide = Hide(hide)

    def read_once(self) -> bool:
        """Take what is there, up to a chunk; False at its end."""
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return True
        if data:
            self.kept.feed(self.hide.feed(data))
        return bool(data)

    def drain(self) -> None:
        """Take what is left in the pipe. Does not wait for its end: somebody outside may hold the other side."""
        for _ in range(64):  # a pipe holds at most 1 MiB
            try:
                data = os.read(self.fd, _CHUNK)
            except BlockingIOError:
                break
            if not data:
                break
            self.kept.feed(self.hide.feed(data))

    def finish(self, note: bytes = b"") -> bytes:
        """Everything kept, with ``note`` as the last thing said."""
        self.kept.feed(self.hide.end())
        if note:
            self.kept.feed(note)
        return self.kept.value()


class OwnerGone(Exception):
    """The cell's owner has closed its socket or is dead."""


def pump(
    *,
    owner: dict[int, int],
    wake: int,
    stdin: int,
    data: bytes,
    streams: list[Stream],
    until: float,
    quiet_s: float | None = None,
    ended: Callable[[], bool],
    tick: Callable[[], str | None],
) -> str | None:
    """Serve the streams until ``ended()`` (asked whenever ``wake`` says that some child has ended), ``until``
    (monotonic), nothing has been printed for ``quiet_s``, or ``tick()`` gives a reason. Returns "" for ended, None for out of time, else the reason.
    ``stdin`` is closed after ``data``. Raises OwnerGone when a descriptor in ``owner``
    (with the events that mean it; a hang-up always does) says so."""
    poll = select.poll()
    for fd, events in owner.items():
        poll.register(fd, events)
    poll.register(wake, select.POLLIN)
    by_fd = {s.fd: s for s in streams}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    feed = _Feed(poll, stdin, data)
    next_tick = time.monotonic() + TICK_S
    latest = until
    if quiet_s is not None:
        until = min(latest, time.monotonic() + quiet_s)
    try:
        while True:
            if ended():
                return ""
            now = time.monotonic()
            if now >= until:
                return None
            if now >= next_tick:
                reason = tick()
                if reason:
                    return reason
                next_tick = time.monotonic() + TICK_S
            pause = max(0.0, min(until, next_tick) - time.monotonic())
            for fd, event in poll.poll(int(pause * 1000) + 1):
                if fd in owner:
                    raise OwnerGone
                if fd == wake:
                    drain(wake)
                elif fd in by_fd:
                    if quiet_s is not None:
                        until = min(latest, time.monotonic() + quiet_s)
                    if not by_fd[fd].read_once():
                        poll.unregister(fd)
                        del by_fd[fd]
                elif fd == feed.fd:
                    feed.on(event)
    finally:
        feed.close()


class _Feed:
    """What goes to stdin, as fast as it is read."""

    def __init__(self, poll: select.poll, fd: int, data: bytes) -> None:
        self.poll = poll
        self.fd = fd
        self.left = memoryview(data)
        if data:
            os.set_blocking(fd, False)
            poll.register(fd, select.POLLOUT)
        else:
            os.close(fd)
            self.fd = -1

    def on(self, event: int) -> None:
        try:
            self.left = self.left[os.write(self.fd, self.left[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # nobody reads it any more
            self.left = self.left[:0]
        if not self.left:
            self.close()

    def close(self) -> None:
        if self.fd >= 0:
            try:
                self.poll.unregister(self.fd)
            except KeyError:
                pass
            os.close(self.fd)
            self.fd = -1


def drain(fd: int) -> None:
    """Take everything out of the pipe that wakes a poll."""
    try:
        while len(os.read(fd, 4096)) == 4096:
            pass
    except BlockingIOError:
        pass
