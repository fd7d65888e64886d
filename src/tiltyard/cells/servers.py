"""The owner's side of fork servers: how one is started, asked for cells, and ended.

A server (see ``inside.server``) is born in a nursery (``inside.nursery``): in one of its own, or in one that this process
and those that it forked have in common. It dies with its owner, however that ends, and takes every cell with it. A forked
child of the owner has servers of its own. Who gets one by ``acquire`` gives it back by ``release``; those who want the
same (:class:`Key`) share it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiltyard.cells.ahead import Ahead, Cell
from tiltyard.cells.client import bury_cell, socket_pair
from tiltyard.cells.clock import clock_packages
from tiltyard.cells.inside import lock, wire
from tiltyard.cells.kit import Kit
from tiltyard.cells.launch import Letter, refusal
from tiltyard.cells.process import PATH
from tiltyard.cells.programs import (
    PACKAGE,
    ROOT,
    Interpreter,
    all_compiled,
    inside_folders,
    package_lines,
    uncached_lines,
)
from tiltyard.errors import ArenaError

START_S = 60.0
OPEN_S = 60.0
END_S = 15.0

STALLS = 4
"""How many more cells a server makes ready to hold at a time."""


_USUAL = """abc array ast base64 bisect collections collections.abc contextlib copy dataclasses datetime
decimal enum fractions functools gc heapq importlib.util inspect io itertools json keyword linecache math
numbers operator os random re reprlib resource select signal socket statistics string struct sys textwrap
threading time traceback types typing warnings weakref"""
PRELOAD: tuple[str, ...] = tuple(_USUAL.split())
"""Modules of the standard library that every run finds loaded; those that an interpreter lacks are left out. Each costs
every fork a little, a compiled one five mappings of memory: asyncio and unittest.mock alone would double the price of a
cell; hashlib, cmath, zlib, tempfile, calendar and unittest together cost a twelfth of it."""


@dataclass(frozen=True, slots=True)
class Key:
    """What makes two walls share a server."""

    interpreter: Interpreter
    hash_seed: int
    preload: tuple[str, ...]
    kit: Kit
    trees: tuple[str, int, int] | None = None
    """The folder of all trees that cells can have below their workspace, with its device and inode: another folder may
    come to lie at the same path."""
    clock: str = ""
    """The instant at which the clock stands in cells, "" if it goes (see ``tiltyard.cells.clock``)."""


def environment(key: Key) -> dict[str, str]:
    return {
        "PATH": key.interpreter.search_path(PATH),
        "HOME": "/home",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": str(key.hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


_WHOLE = {"LD_BIND_NOW": "1"}
"""For the server alone: the C library finds all functions at the start, or each fork looks for those that it calls."""


class _NotBorn(Exception):
    """No server came of it."""


class ServerLost(Exception):
    """The server is dead; another may do."""


_table: dict[Key, tuple[Server, int]] = {}
"""Servers of this process, with the number of walls that hold each."""
_table_lock = threading.RLock()
"""Entered again when a wall becomes garbage while the table is in use."""
_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
"""Those of servers and stalls, which a forked child must not keep open."""


def _known(sock: socket.socket) -> socket.socket:
    _sockets.add(sock)
    return sock


def _after_fork() -> None:
    """A child has nothing of its parent's servers: not their sockets, nor a lock that another thread held."""
    global _table_lock
    _table_lock = threading.RLock()
    for sock in list(_sockets):
        sock.close()
    _sockets.clear()
    for server, _ in _table.values():
        server.disown()
    _table.clear()


os.register_at_fork(after_in_child=_after_fork)


def acquire(key: Key) -> Server:
    with _table_lock:
        server, holders = _table.get(key, (None, 0))
        if server is None or not server.alive:
            server, holders = Server(key), 0
        _table[key] = (server, holders + 1)
        return server


def release(held: list[Server]) -> None:
    while held:
        server = held.pop()
        if server.owner != os.getpid():
            continue
        with _table_lock:
            known, holders = _table.get(server.key, (None, 0))
            if known is server and holders > 1:
                _table[server.key] = (server, holders - 1)
                continue
            if known is server:
                del _table[server.key]
        server.stop()


class Nursery:
    """A process in which servers of one kind are born (see ``inside.nursery``). It gets warm by itself: who asks too early
    waits. Raises ArenaError if it can't be started."""

    def __init__(self, key: Key) -> None:
        self.owner = os.getpid()
        self.user = os.geteuid(), os.getegid()
        try:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as error:
            raise ArenaError(f"no socket for a fork server can be had ({error.strerror})") from None
        try:
            with theirs:
                self._process = _spawn(key, theirs.fileno())
            self._requests.send(json.dumps(_warmth(key)).encode())
        except OSError as error:  # it is dead already
            said = self.last_words()
            self.close()
            raise ArenaError(
                f"the fork server can't be started: {str(said or error.strerror)[:2000]}"
            ) from None
        except BaseException:
            self._requests.close()
            raise

    def bear(self, fds: Sequence[int]) -> None:
        """Ask for a server, which is given these descriptors (see ``inside.warden``). OSError if the nursery is gone."""
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), b"!")  # first, as for stalls
        socket.send_fds(self._requests, [b"!"], list(fds))

    def last_words(self) -> str:
        """What it had to say, where no server comes of it; it is dead afterwards if it is this process's."""
        return _last_words(self._process) if self.owner == os.getpid() else ""

    def close(self) -> None:
        """In the process that started it, end it; in a forked one, ask no more."""
        self._requests.close()
        assert self._process.stdin is not None and self._process.stderr is not None
        self._process.stdin.close()
        self._process.stderr.close()
        if self.owner != os.getpid():
            self._process.returncode = 0  # it is not ours to be waited for
            return
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


nurseries: dict[Key, Nursery] = {}
"""Those that forked processes are to use, too: see ``nursery``."""


class _Warden:
    """The process that stands above a server, by its pidfd: it is no child of this one."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._lock = threading.Lock()

    def ended(self, within_s: float = 0.0) -> bool:
        with self._lock:
            if self._pidfd < 0:
                return True
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if not poll.poll(int(within_s * 1000)):
                return False
            os.close(self._pidfd)
            self._pidfd = -1
            return True

    def kill(self) -> None:
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def disown(self) -> None:
        """In a forked child: forget it."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class Server:
    """A fork server, from its start to its end. Raises ArenaError from the constructor if it can't be had."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.owner = os.getpid()
        self.has: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._idle: list[socket.socket] = []
        self._made = 0
        self._ahead = Ahead((ServerLost,), self.owner)
        self._nursery: Nursery | None = None
        """The one that is for this server alone, if one is."""
        if (reason := lock.supported()) is not None:
            raise ArenaError(reason)
        known = nurseries.get(replace(key, trees=None))
        if known is not None and known.user == (os.geteuid(), os.getegid()):
            with contextlib.suppress(_NotBorn):
                self._be_born(known)
                self._watch_over()
                return
        own = Nursery(key)
        try:
            self._be_born(own)
        except _NotBorn as error:
            said = own.last_words()
            own.close()
            reason = str(error) or said or "it ended without a word"
            raise ArenaError(
                f"the fork server can't be started: {reason[:2000]} (tiltyard doctor says more)"
            ) from None
        except BaseException:
            own.close()
            raise
        self._nursery = own
        self._watch_over()

    def _watch_over(self) -> None:
        what = (self._control, self._wake, self._idle, self._process, self._nursery, self.owner)
        self._end = weakref.finalize(self, _stop, *what)

    def _be_born(self, nursery: Nursery) -> None:
        """Raises _NotBorn with what is known of why it is not."""
        made: list[int] = []
        try:
            control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made += [theirs.detach(), *os.pipe(), *os.pipe(), os.pidfd_open(os.getpid())]
        except OSError as error:
            for fd in made:
                os.close(fd)
            raise ArenaError(f"no descriptors for a fork server can be had ({error.strerror})") from None
        told, wakes, self._wake, words, cries, me = made
        self._control = _known(control)
        try:
            try:
                nursery.bear([told, wakes, cries, me])
            finally:
                for fd in (told, wakes, cries, me):
                    os.close(fd)
            self._come_up()
        except BaseException as error:
            control.close()
            os.close(self._wake)
            self._bury_warden()
            if isinstance(error, OSError | ValueError):
                raise _NotBorn(_read(words) or f"it did not come up ({error})") from None
            raise
        finally:
            os.close(words)

    def _bury_warden(self) -> None:
        """Of a server that did not come up: it ends by itself, and has control groups to take away before."""
        process: _Warden | None = getattr(self, "_process", None)
        if process is not None and not process.ended(END_S):
            process.kill()
            process.ended(END_S)

    def _come_up(self) -> None:
        control = self._control
        control.settimeout(START_S)
        hello, fds, _, _ = socket.recv_fds(control, 1 << 16, 1)
        answer = json.loads(hello or b"{}")
        if "warden" not in answer or len(fds) != 1:
            raise _NotBorn(str(answer.get("error", "")))
        self._process = born = _Warden(answer["warden"], fds[0])
        with contextlib.suppress(OSError):  # no child of this process, it shall run where this process may
            os.sched_setaffinity(born.pid, os.sched_getaffinity(0))
        control.send(json.dumps(_wish(self.key)).encode())
        answer = json.loads(control.recv(1 << 16) or b"{}")
        if "ready" not in answer:
            raise _NotBorn(str(answer.get("error", "")))
        self.has = answer
        control.settimeout(OPEN_S)

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and not self._process.ended() and self._control.fileno() >= 0

    def open(self, order: bytes) -> Cell:
        """A new cell: the one that is ready, or one that is made now. Raises as ``ask`` and ``Asked.come_up`` do."""
        cell = self._ahead.take(order)
        if cell is None:
            try:
                cell = self.ask(order).come_up()
            except ArenaError:
                if not self._ahead.give_up():
                    raise
                cell = self.ask(order).come_up()  # with what that one took up
        try:
            self._ahead.look_ahead(order, self.ask)
        except BaseException:
            bury_cell(cell[0], cell[1], self.owner)
            raise
        return cell

    def ask(self, order: bytes, letter: Letter | None = None) -> Asked:
        """Ask for a new cell; with ``letter``, for one of that program alone. Raises ServerLost, ArenaError."""
        ours, theirs = socket_pair()
        try:
            with theirs:
                stall = self._ask_a_stall(order, theirs.fileno())
            if letter is not None:
                # what can't be sent shows when the answer is waited for
                with contextlib.suppress(wire.WireError):
                    header, block, fds = letter
                    wire.send(ours, header, block, deadline=time.monotonic() + OPEN_S, fds=fds)
            return Asked(self, ours, stall)
        except BaseException:
            ours.close()
            raise

    def _ask_a_stall(self, caps: bytes, fd: int) -> socket.socket:
        deadline = time.monotonic() + OPEN_S
        while True:
            try:
                stall = self._take_stall()
            except ArenaError:
                if not self._ahead.give_up():
                    raise
                continue
            try:
                stall.sendall(b"!")
                socket.send_fds(stall, [caps], [fd])
                return stall
            except OSError:
                stall.close()  # somebody killed it; the next one may do
                if self._gone(0.0) or time.monotonic() > deadline:
                    raise ServerLost("the fork server is dead") from None

    def _take_stall(self) -> socket.socket:
        with self._lock:
            if not self._idle:
                self._more_stalls()
            return self._idle.pop()

    def _more_stalls(self) -> None:
        for _ in range(STALLS):
            if self._made >= self.has["most"]:
                break
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    mail = json.dumps({"number": self._made}).encode()
                    # in this order: if something comes between, a stall waits for the next packet, and no packet for a stall
                    os.write(self._wake, b"!")
                    socket.send_fds(self._control, [mail], [theirs.fileno()])
                except (OSError, ValueError) as error:
                    ours.close()
                    self.stop()
                    raise ServerLost(str(error)) from None
                except BaseException:
                    ours.close()
                    raise
            self._made += 1
            self._idle.append(_known(ours))
        if not self._idle:
            raise ArenaError(f"a cell can't be made: {self._made} are open, and one server can hold no more")

    def wait_for_word(
        self, sock: socket.socket, stall: socket.socket
    ) -> tuple[Callable[[], None], Mapping[str, Any]]:
        try:
            deadline = time.monotonic() + OPEN_S
            answer, _, fds = wire.receive(sock, deadline=deadline, max_block=0, take_fds=True)
        except wire.WireError as error:
            stall.close()  # it may be in any state: it ends, and with it what it has made
            if isinstance(error, wire.Closed) and self._gone(0.2):
                raise ServerLost(str(error)) from None
            raise ArenaError(f"a cell's keeper did not come up: {error}") from None
        except BaseException:
            stall.close()
            raise
        if "ready" not in answer or len(fds) != 1:
            for fd in fds:
                os.close(fd)
            self._idle.append(stall)
            raise refusal(answer)
        return _burial(fds[0], stall, self._idle), answer

    def _gone(self, within_s: float) -> bool:
        """Whether the server is dead, or just now dying."""
        self._process.ended(within_s)
        return not self.alive

    def stop(self) -> None:
        self._end()
        self._ahead.forget()

    def disown(self) -> None:
        """In a forked child of the owner: it is not ours to end."""
        self._end.detach()
        self._ahead.forget()
        os.close(self._wake)
        self._process.disown()
        if self._nursery is not None:
            self._nursery.close()


class Asked:
    """A cell that was asked for, and has not said yet that it is there (``launch.Opening``)."""

    def __init__(self, server: Server, sock: socket.socket, stall: socket.socket) -> None:
        self._server = server
        self._sock = sock
        self._stall = stall

    def come_up(self) -> Cell:
        """Raises ServerLost, ArenaError, and CellFileError for files of a letter."""
        try:
            return self._sock, *self._server.wait_for_word(self._sock, self._stall)
        except BaseException:
            self._sock.close()
            raise

    def forget(self) -> None:
        self._sock.close()
        self._stall.close()

    def finish(self) -> tuple[socket.socket, Callable[[], None]]:
        try:
            return self.come_up()[:2]
        except ServerLost as error:
            raise ArenaError(f"the fork server died: {error}") from None


def _warmth(key: Key) -> dict[str, Any]:
    """What all servers of a kind begin with."""
    return {
        "folders": inside_folders(),
        "preload": [*PRELOAD, *key.preload, *key.kit.preload],
        "must": key.preload,
        "alone": key.kit.alone,
        "kit": {**dict(key.kit.packages), **(clock_packages() if key.clock else {})},
        "clock": key.clock,
    }


def _wish(key: Key) -> dict[str, Any]:
    """What one server is to be."""
    return {
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "trees": key.trees[0] if key.trees else "",
        "packages": key.interpreter.site,
        "hidden": [str(ROOT)],
    }


def _spawn(key: Key, fd: int) -> subprocess.Popen[bytes]:
    *start, _, _ = key.interpreter.argv()
    lines = [
        key.interpreter.first() + package_lines(),
        f"from {PACKAGE}.layout import begin; begin()",
        f"from {PACKAGE}.nursery import main; main()",
    ]
    if not (all_compiled() and key.interpreter.path == os.path.realpath(sys.executable)):
        lines.insert(1, uncached_lines())
    try:
        process = subprocess.Popen(
            [*start, "-c", "; ".join(lines), f"{fd:06}"],
            stdin=subprocess.PIPE,  # pipes, as runs have: what an interpreter notes about its streams stays true
            bufsize=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={**environment(key), **_WHOLE},
            pass_fds=[fd],
            start_new_session=True,
        )
    except OSError as error:
        raise ArenaError(f"{key.interpreter.path} can't be started: {error.strerror}") from None
    assert process.stdout is not None
    process.stdout.close()
    return process


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """What a process that did not come up had to say; it is dead afterwards."""
    process.kill()
    process.wait()
    assert process.stderr is not None
    return _read(process.stderr.fileno())


def _stop(
    control: socket.socket,
    wake: int,
    idle: list[socket.socket],
    process: _Warden,
    nursery: Nursery | None,
    owner: int,
) -> None:
    """End a server, and with it all its cells: when its socket closes it ends by itself."""
    if os.getpid() != owner:
        return
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_RDWR)
    control.close()
    os.close(wake)
    while idle:
        idle.pop().close()
    if not process.ended(END_S):
        process.kill()
        process.ended(END_S)
    if nursery is not None:
        nursery.close()


def _read(fd: int) -> str:
    """What has been written to a pipe."""
    os.set_blocking(fd, False)
    try:
        return os.read(fd, 4096).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _burial(pidfd: int, stall: socket.socket, idle: list[socket.socket]) -> Callable[[], None]:
    """What kills a keeper, returns when the kernel has taken down all that was in its cell, and hands the stall on."""

    def bury() -> None:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        dead = poll.poll(END_S * 1000)
        os.close(pidfd)
        if dead:
            idle.append(stall)
        else:
            stall.close()

    return bury
