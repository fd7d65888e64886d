"""The ``namespace`` wall: fully locked cells in about two milliseconds, forked from a warm server. Linux only.

A server (see ``inside.server``) is started when a cell is first wanted, one for each process that owns cells,
interpreter, hash seed and set of preloaded modules; walls that want the same share it. It dies with its owner,
however that ends, and takes every cell with it; if it is killed, its open cells are lost and the next ``open`` starts
another. A forked child of the owner starts its own. ``probe`` says by trying whether this machine can have the wall.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tiltyard.cells.client import KeeperCell, filled, socket_pair, unpacked
from tiltyard.cells.clock import checked_instant, clock_packages
from tiltyard.cells.inside import lock, wire
from tiltyard.cells.inside.cell import CAPS, ORDER
from tiltyard.cells.kit import Kit
from tiltyard.cells.launch import Launched, Lent, Letter, Solo, launch_in_cell, letter, refusal
from tiltyard.cells.process import PATH, interpreter
from tiltyard.cells.programs import (
    PACKAGE,
    ROOT,
    Interpreter,
    all_compiled,
    inside_folders,
    package_lines,
    uncached_lines,
)
from tiltyard.cells.protocol import CellLimits, PackedCell, Run
from tiltyard.cells.siblings import Siblings
from tiltyard.cells.start import Below, OnImage, below, contents
from tiltyard.errors import ArenaError
from tiltyard.images import cache_folder
from tiltyard.workers import shared

_T = TypeVar("_T")

START_S = 60.0
OPEN_S = 60.0
END_S = 15.0
LENT = 4
"""How many cells of trusted programs are kept for the next ones."""
LENT_TO = 150
"""How many programs one cell serves. Each takes a pid or two, and numbers up to 256 are made only once."""
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
class _Key:
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


class NamespaceWall:
    """Cells of this kind. ``python`` is another interpreter, whose installed packages cells then see; ``preload``
    names more modules that every run finds loaded (they run in the server, so they must be trusted); ``kit``: with
    the packages of a kit, which are no installed ones (see ``tiltyard.cells.kit``); ``clock`` is an instant at which it
    stands in all that Python runs in cells (see ``tiltyard.cells.clock``)."""

    def __init__(
        self,
        *,
        hash_seed: int = 0,
        python: str | None = None,
        preload: Sequence[str] = (),
        kit: Kit | None = None,
        clock: str = "",
    ) -> None:
        found = interpreter(python)
        if not found.site:
            found = Interpreter(
                os.path.realpath(found.path)
            )  # a virtual environment has nothing that cells need
        self._key = _Key(
            found, hash_seed, tuple(preload), kit or Kit(), clock=clock and checked_instant(clock)
        )
        self._siblings: dict[_Key, NamespaceWall] = {}
        self._others: Siblings[NamespaceWall] = Siblings()
        self._held: list[_Server] = []
        self._cells: weakref.WeakSet[KeeperCell | Solo] = weakref.WeakSet()
        self._lent: list[tuple[KeeperCell, int]] = []
        """Cells of trusted programs, between two of them, with how many each has served."""
        self._closed = False
        self.no_overlay: str | None = None
        """Why a cell got its files one by one that could have had an overlay, if one did."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, _release, self._held)
        _walls.add(self)

    @property
    def name(self) -> str:
        return "namespace"

    @property
    def weaknesses(self) -> tuple[str, ...]:
        return _weaknesses(self._server().has, self.no_overlay)

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> KeeperCell:
        tree = below(files)
        if tree is not None:
            cell, self.no_overlay = self._with_trees(tree.trees)._open_over(tree, files, limits)
            return cell
        return filled(self._new_cell(limits)[0], files)

    def unpack(self, files: Mapping[str, bytes], limits: CellLimits, packed: PackedCell) -> KeeperCell:
        """See ``protocol.Copying``."""
        tree = below(files)
        if tree is None:
            return unpacked(self._new_cell(limits)[0], packed)
        cell, said = self._with_trees(tree.trees)._new_cell(limits, tree.order)
        if said.get("overlay"):
            cell.laid, cell.over = tree.image, tree.order.decode()
        return unpacked(cell, packed)

    def _new_cell(self, limits: CellLimits, tree: bytes = b"") -> tuple[KeeperCell, Mapping[str, Any]]:
        """A cell, which keeps its wall, and so its server, alive; and what it had to say."""
        sock, bury, said = self._bring_up(limits, tree)
        return self._kept_cell(sock, limits, _holding(self, bury)), said

    def _open_over(
        self, tree: Below, files: Mapping[str, bytes], limits: CellLimits
    ) -> tuple[KeeperCell, str | None]:
        """A cell whose workspace is an overlay; where that can't be had, the files are sent, and why is said."""
        cell, said = self._new_cell(limits, tree.order)
        if not said.get("overlay"):
            return filled(cell, files), str(said.get("trouble") or "no reason given")
        cell.laid, cell.over = tree.image, tree.order.decode()
        if isinstance(files, OnImage) and (files.changed or files.gone):
            try:
                cell.put(files.changed, gone=files.gone)
            except BaseException:
                cell.close()
                raise
        return cell, None

    def _with_trees(self, trees: Path) -> NamespaceWall:
        """This wall, with cells that can have one of these trees below their workspace."""
        key = replace(self._key, trees=_identified(trees))
        return self if key == self._key else self._sibling(key)

    def launch(
        self,
        program: str,
        fds: Sequence[int],
        files: Mapping[str, bytes],
        limits: CellLimits,
        *,
        wall_s: float,
        trusted: bool = False,
    ) -> Launched:
        """See ``tiltyard.cells.launch``. Where the kernel adds memory up, without a keeper: nobody need watch."""
        if trusted and not files:
            return self._lend(program, fds, limits, wall_s)
        if "memory" not in self._server().has.get("groups", ()):
            return launch_in_cell(self, program, fds, files, limits, wall_s=wall_s)
        first = letter(program, contents(files), limits, _env(self._key), fds)
        solo = Solo(self._ask(lambda: self._server().ask(_order(limits, alone=True), first)), self)
        with self._lock:
            self._cells.add(solo)
        return solo

    def _lend(self, program: str, fds: Sequence[int], limits: CellLimits, wall_s: float) -> Lent:
        """A program in a cell that others have used, or will. Its keeper's pids stay below those that the interpreter
        has ready: each program begins in the same memory."""
        cell, served = self._take_lent(limits)
        try:
            started = cell.start(program, fds, wall_s=wall_s, again=True)
        except ArenaError:
            cell.close()
            if not served:
                raise
            cell, served = self._bring_up_lent(limits), 0  # it died while nobody looked
            started = cell.start(program, fds, wall_s=wall_s, again=True)
        return Lent(cell, started, lambda: self._take_back(cell, served + 1))

    def _take_lent(self, limits: CellLimits) -> tuple[KeeperCell, int]:
        with self._lock:
            self._check_owner()
            for at, (cell, served) in enumerate(self._lent):
                if cell.limits == limits:
                    del self._lent[at]
                    return cell, served
        return self._bring_up_lent(limits), 0

    def _bring_up_lent(self, limits: CellLimits) -> KeeperCell:
        sock, bury, _ = self._bring_up(limits)  # these do not keep the wall alive, which holds them
        return self._kept_cell(sock, limits, bury)

    def _kept_cell(self, sock: socket.socket, limits: CellLimits, bury: Callable[[], None]) -> KeeperCell:
        """A cell with a keeper, which is closed with the wall."""
        cell = KeeperCell(sock, wall=self.name, limits=limits, env=_env(self._key), bury=bury)
        with self._lock:
            self._cells.add(cell)
        return cell

    def _take_back(self, cell: KeeperCell, served: int) -> None:
        with self._lock:
            if served < LENT_TO and len(self._lent) < LENT and not self._closed:
                self._lent.append((cell, served))
                return
        cell.close()

    def with_kit(self, kit: Kit) -> NamespaceWall:
        """This wall with a kit: see ``tiltyard.cells.kit``. One for each kit, closed with this one."""
        key = replace(self._key, kit=kit)
        return self if key == self._key else self._sibling(key)

    def with_clock(self, clock: str) -> NamespaceWall:
        """This wall with a clock that stands: see ``tiltyard.cells.clock``. Closed with this one."""
        key = replace(self._key, clock=checked_instant(clock))
        return self if key == self._key else self._sibling(key)

    def _sibling(self, key: _Key) -> NamespaceWall:
        with self._lock:
            if key not in self._siblings:
                made = NamespaceWall()
                made._key = key
                self._siblings[key] = made
            return self._siblings[key]

    def with_python(self, python: str) -> NamespaceWall:
        """This wall with another interpreter and its packages, without a kit: see ``tiltyard.cells.siblings``. It is
        ready for trees: who has an environment of its own has a repository, and one server will do."""

        def make() -> NamespaceWall:
            key = self._key
            made = NamespaceWall(hash_seed=key.hash_seed, python=python, clock=key.clock)
            with contextlib.suppress(ArenaError):
                made._key = replace(made._key, trees=_identified(cache_folder() / "trees"))
            return made

        return self._others.get(python, make)

    def _bring_up(
        self, limits: CellLimits, tree: bytes = b""
    ) -> tuple[socket.socket, Callable[[], None], Mapping[str, Any]]:
        """A cell with a keeper: its socket, its end, and its first words. ``tree``: what lies below its workspace (see
        ``inside.overlay``)."""
        order = _order(limits, tree)
        return self._ask(lambda: self._server().ask(order).come_up())

    def _ask(self, what: Callable[[], _T]) -> _T:
        """Ask a server, and a new one if that is dead."""
        try:
            try:
                return what()
            except _ServerLost:
                return what()
        except _ServerLost as error:
            raise ArenaError(f"the fork server died twice in a row: {error}") from None
        except OSError as error:
            raise ArenaError(f"a cell can't be made: {error.strerror or error}") from None

    def close(self) -> None:
        if os.getpid() != self._owner:
            return
        with self._lock:
            cells = list(self._cells)
            self._cells.clear()
            self._lent.clear()
            self._closed = True
        for cell in cells:
            cell.close()
        for sibling in list(self._siblings.values()):
            sibling.close()
        self._others.close()
        _release(self._held)

    def _check_owner(self) -> None:
        """In a forked child, what was held is the parent's."""
        if os.getpid() != self._owner:
            self._owner = os.getpid()
            self._held.clear()
            self._cells = weakref.WeakSet()
            self._lent.clear()

    def _server(self) -> _Server:
        with self._lock:
            self._check_owner()
            self._closed = False
            if not self._held or not self._held[0].alive:
                _release(self._held)
                self._held.append(_acquire(self._key))
            return self._held[0]


def _order(limits: CellLimits, tree: bytes = b"", *, alone: bool = False) -> bytes:
    return ORDER.pack(*(int(getattr(limits, name)) for name in CAPS), alone, tree)


def _identified(trees: Path) -> tuple[str, int, int]:
    """A folder of trees, made if it is not there, as servers are told apart by it. ArenaError: it can't be had."""
    try:
        trees.mkdir(parents=True, exist_ok=True)
        found = trees.stat()
    except OSError as error:
        raise ArenaError(f"the folder of trees {trees} can't be had ({error.strerror})") from None
    return str(trees), found.st_dev, found.st_ino


def _env(key: _Key) -> dict[str, str]:
    return {
        "PATH": key.interpreter.search_path(PATH),
        "HOME": "/home",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": str(key.hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _weaknesses(has: Mapping[str, Any], no_overlay: str | None) -> tuple[str, ...]:
    """What is missing from a server's walls here."""
    groups = has.get("groups", ())
    found = ["code runs on the machine's own kernel: a hole in it is a hole in this wall"]
    if "memory" not in groups:
        found.append(
            "no memory control group can be had here: each process is capped, and the sum of a cell is watched"
        )
    if "pids" not in groups:
        found.append("no pids control group can be had here: processes are capped by user id (RLIMIT_NPROC)")
    if "cpu" not in groups:
        found.append(
            "no cpu control group can be had here: a cell with many processes gets more than its share"
        )
    if not has.get("landlock"):
        found.append("this kernel has no Landlock: files are guarded by read-only mounts alone")
    if no_overlay is not None:
        found.append(f"no overlay can be had here ({no_overlay}): repositories are copied into each cell")
    return tuple(found)


# ---------------------------------------------------------------- the owner's side of a server


_WHOLE = {"LD_BIND_NOW": "1"}
"""For the server alone: the C library finds all functions at the start, or each fork looks for those that it calls."""


class _NotBorn(Exception):
    """No server came of it."""


class _ServerLost(Exception):
    """The server is dead; another may do."""


_table: dict[_Key, tuple[_Server, int]] = {}
"""Servers of this process, with the number of walls that hold each."""
_table_lock = threading.RLock()
"""Entered again when a wall becomes garbage while the table is in use."""
_walls: weakref.WeakSet[NamespaceWall] = weakref.WeakSet()


_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
"""Those of servers and stalls, which a forked child must not keep open."""


def _known(sock: socket.socket) -> socket.socket:
    _sockets.add(sock)
    return sock


def _after_fork() -> None:
    """A child has nothing of its parent's servers: not their sockets, nor a lock that another thread held."""
    global _table_lock, _probed_lock
    _table_lock, _probed_lock = threading.RLock(), threading.Lock()
    for wall in list(_walls):
        wall._lock = threading.Lock()
    for sock in list(_sockets):
        sock.close()
    _sockets.clear()
    for server, _ in _table.values():
        server.disown()
    _table.clear()


os.register_at_fork(after_in_child=_after_fork)


def _acquire(key: _Key) -> _Server:
    with _table_lock:
        server, holders = _table.get(key, (None, 0))
        if server is None or not server.alive:
            server, holders = _Server(key), 0
        _table[key] = (server, holders + 1)
        return server


def _release(held: list[_Server]) -> None:
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


class _Nursery:
    """A process in which servers of one kind are born (see ``inside.nursery``). It gets warm by itself: who asks too early
    waits. Raises ArenaError if it can't be started."""

    def __init__(self, key: _Key) -> None:
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
        except OSError as error:
            self._requests.close()
            raise ArenaError(f"the fork server can't be started: {error.strerror}") from None
        except BaseException:
            self._requests.close()
            raise

    def bear(self, fds: Sequence[int]) -> None:
        """Ask for a server, which is given these descriptors (see ``inside.warden``). OSError if the nursery is gone."""
        assert self._process.stdin is not None
        socket.send_fds(self._requests, [b"!"], list(fds))
        os.write(self._process.stdin.fileno(), b"!")

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


_nurseries: dict[_Key, _Nursery] = {}
"""Those that forked processes are to use, too: see ``nursery``."""


@contextlib.contextmanager
def nursery() -> Iterator[None]:
    """While this is entered, walls of this process and of those that it forks have their servers from one nursery: the
    servers start in a tenth of the time, and share what memory they have in common. Where it can't be had, all is as
    without it."""
    key = NamespaceWall()._key
    if key in _nurseries or _probed.get(os.getpid(), ("", 0.0))[0] is not None:
        yield  # there is one, or nobody here has asked for this wall
        return
    try:
        _nurseries[key] = made = _Nursery(key)
    except ArenaError:
        yield  # who opens a cell is told
        return
    try:
        yield
    finally:
        if _nurseries.get(key) is made:
            del _nurseries[key]
            made.close()


shared.append(nursery)


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


class _Server:
    """A fork server, from its start to its end. Raises ArenaError from the constructor if it can't be had."""

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.owner = os.getpid()
        self.has: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._idle: list[socket.socket] = []
        self._made = 0
        self._nursery: _Nursery | None = None
        """The one that is for this server alone, if one is."""
        if (reason := lock.supported()) is not None:
            raise ArenaError(reason)
        known = _nurseries.get(replace(key, trees=None))
        if known is not None and known.user == (os.geteuid(), os.getegid()):
            with contextlib.suppress(_NotBorn):
                self._be_born(known)
                self._watch_over()
                return
        own = _Nursery(key)
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

    def _be_born(self, nursery: _Nursery) -> None:
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
            if isinstance(error, OSError | ValueError):
                raise _NotBorn(_read(words) or f"it did not come up ({error})") from None
            raise
        finally:
            os.close(words)

    def _come_up(self) -> None:
        control = self._control
        control.settimeout(START_S)
        hello, fds, _, _ = socket.recv_fds(control, 1 << 16, 1)
        answer = json.loads(hello or b"{}")
        if "warden" not in answer or len(fds) != 1:
            raise _NotBorn(str(answer.get("error", "")))
        self._process = _Warden(answer["warden"], fds[0])
        try:
            with contextlib.suppress(
                OSError
            ):  # it is a child of the nursery, and shall run where this process may
                os.sched_setaffinity(self._process.pid, os.sched_getaffinity(0))
            control.send(json.dumps(_wish(self.key)).encode())
            answer = json.loads(control.recv(1 << 16) or b"{}")
            if "ready" not in answer:
                raise _NotBorn(str(answer.get("error", "")))
        except BaseException:
            self._process.kill()
            self._process.ended(END_S)
            raise
        self.has = answer
        control.settimeout(OPEN_S)

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and not self._process.ended() and self._control.fileno() >= 0

    def ask(self, order: bytes, letter: Letter | None = None) -> _Asked:
        """Ask for a new cell; with ``letter``, for one of that program alone. Raises _ServerLost, ArenaError."""
        ours, theirs = socket_pair()
        try:
            with theirs:
                stall = self._ask_a_stall(order, theirs.fileno())
            if letter is not None:
                # what can't be sent shows when the answer is waited for
                with contextlib.suppress(wire.WireError):
                    header, block, fds = letter
                    wire.send(ours, header, block, deadline=time.monotonic() + OPEN_S, fds=fds)
            return _Asked(self, ours, stall)
        except BaseException:
            ours.close()
            raise

    def _ask_a_stall(self, caps: bytes, fd: int) -> socket.socket:
        deadline = time.monotonic() + OPEN_S
        while True:
            stall = self._take_stall()
            try:
                stall.sendall(b"!")
                socket.send_fds(stall, [caps], [fd])
                return stall
            except OSError:
                stall.close()  # somebody killed it; the next one may do
                if self._gone(0.0) or time.monotonic() > deadline:
                    raise _ServerLost("the fork server is dead") from None

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
                    socket.send_fds(self._control, [mail], [theirs.fileno()])
                    os.write(self._wake, b"!")
                except (OSError, ValueError) as error:
                    ours.close()
                    self.stop()
                    raise _ServerLost(str(error)) from None
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
                raise _ServerLost(str(error)) from None
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

    def disown(self) -> None:
        """In a forked child of the owner: it is not ours to end."""
        self._end.detach()
        os.close(self._wake)
        self._process.disown()
        if self._nursery is not None:
            self._nursery.close()


class _Asked:
    """A cell that was asked for, and has not said yet that it is there (``launch.Opening``)."""

    def __init__(self, server: _Server, sock: socket.socket, stall: socket.socket) -> None:
        self._server = server
        self._sock = sock
        self._stall = stall

    def come_up(self) -> tuple[socket.socket, Callable[[], None], Mapping[str, Any]]:
        """The socket to it, what makes sure of its end, and its first words. Raises _ServerLost, ArenaError, and
        CellFileError for files of a letter."""
        try:
            return self._sock, *self._server.wait_for_word(self._sock, self._stall)
        except BaseException:
            self._sock.close()
            raise

    def finish(self) -> tuple[socket.socket, Callable[[], None]]:
        try:
            return self.come_up()[:2]
        except _ServerLost as error:
            raise ArenaError(f"the fork server died: {error}") from None


def _warmth(key: _Key) -> dict[str, Any]:
    """What all servers of a kind begin with."""
    return {
        "folders": inside_folders(),
        "preload": [*PRELOAD, *key.preload, *key.kit.preload],
        "must": key.preload,
        "alone": key.kit.alone,
        "kit": {**dict(key.kit.packages), **(clock_packages() if key.clock else {})},
        "clock": key.clock,
    }


def _wish(key: _Key) -> dict[str, Any]:
    """What one server is to be."""
    return {
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "trees": key.trees[0] if key.trees else "",
        "packages": key.interpreter.site,
        "hidden": [str(ROOT)],
    }


def _spawn(key: _Key, fd: int) -> subprocess.Popen[bytes]:
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
            env={**_env(key), **_WHOLE},
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
    nursery: _Nursery | None,
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


def _holding(wall: NamespaceWall, bury: Callable[[], None]) -> Callable[[], None]:
    def and_bury() -> None:
        bury()
        _ = wall

    return and_bury


# ---------------------------------------------------------------- can it be had here?

_FAILED_S = 10.0
_probed: dict[int, tuple[str | None, float]] = {}
_probed_lock = threading.Lock()


def probe() -> str | None:
    """None if this wall works here, or the reason in plain words: a cell is opened, and something is run in it. Asked
    once in a process where it works; a failure is tried again at once, for one accident (a process killed for memory)
    is no property of the machine, and again after ``_FAILED_S``."""
    with _probed_lock:
        me = os.getpid()
        reason, until = _probed.get(me, ("", 0.0))
        if reason is not None and time.monotonic() >= until:
            _probed.clear()
            reason = _try() and _try()
            _probed[me] = reason, time.monotonic() + _FAILED_S
        return reason


def _try() -> str | None:
    wall = NamespaceWall()
    try:
        with wall.open({"probe.py": b"print(6 * 7)\n"}, CellLimits()) as cell:
            result = cell.run(Run(("python", "probe.py"), wall_s=30.0))
    except ArenaError as error:
        return str(error)
    finally:
        wall.close()
    if result.rc != 0 or result.stdout != b"42\n":
        said = (result.stderr or result.stdout)[:500].decode("utf-8", "replace")
        return f"a cell opens, and a program that prints 42 ends with {result.rc}: {said}"
    return None
