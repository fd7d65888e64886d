"""The ``namespace`` wall: fully locked cells in about two milliseconds, forked from a warm server. Linux only.

A server (see ``inside.server``) is started when a cell is first wanted, one for each process that owns cells,
interpreter, hash seed and set of preloaded modules; walls that want the same share it. It dies with its owner,
however that ends, and takes every cell with it; if it is killed, its open cells are lost and the next ``open`` starts
another. A forked child of the owner starts its own. ``probe`` says by trying whether this machine can have the wall.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tiltyard.cells.ahead import Cell
from tiltyard.cells.client import KeeperCell, filled, unpacked
from tiltyard.cells.clock import checked_instant
from tiltyard.cells.inside.cell import CAPS, ORDER
from tiltyard.cells.kit import Kit
from tiltyard.cells.launch import Launched, Lent, Solo, launch_in_cell, letter
from tiltyard.cells.process import interpreter
from tiltyard.cells.programs import Interpreter
from tiltyard.cells.protocol import CellLimits, PackedCell, Run
from tiltyard.cells.servers import Key, Nursery, Server, ServerLost, acquire, environment, nurseries, release
from tiltyard.cells.siblings import Siblings
from tiltyard.cells.start import Below, OnImage, below, contents
from tiltyard.errors import ArenaError
from tiltyard.images import cache_folder
from tiltyard.workers import shared

_T = TypeVar("_T")

LENT = 4
"""How many cells of trusted programs are kept for the next ones."""
LENT_TO = 150
"""How many programs one cell serves. Each takes a pid or two, and numbers up to 256 are made only once."""


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
        self._key = Key(
            found, hash_seed, tuple(preload), kit or Kit(), clock=clock and checked_instant(clock)
        )
        self._siblings: dict[Key, NamespaceWall] = {}
        self._others: Siblings[NamespaceWall] = Siblings()
        self._held: list[Server] = []
        self._cells: weakref.WeakSet[KeeperCell | Solo] = weakref.WeakSet()
        self._lent: list[tuple[KeeperCell, int]] = []
        """Cells of trusted programs, between two of them, with how many each has served."""
        self._closed = False
        self.no_overlay: str | None = None
        """Why a cell got its files one by one that could have had an overlay, if one did."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, release, self._held)
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
        first = letter(program, contents(files), limits, environment(self._key), fds)
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
        cell = KeeperCell(sock, wall=self.name, limits=limits, env=environment(self._key), bury=bury)
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

    def _sibling(self, key: Key) -> NamespaceWall:
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

    def _bring_up(self, limits: CellLimits, tree: bytes = b"") -> Cell:
        """A cell with a keeper. ``tree``: what lies below its workspace (see ``inside.overlay``), which may be another
        each time: none is made ahead."""
        order = _order(limits, tree)
        if tree:
            return self._ask(lambda: self._server().ask(order).come_up())
        return self._ask(lambda: self._server().open(order))

    def _ask(self, what: Callable[[], _T]) -> _T:
        """Ask a server, and a new one if that is dead."""
        try:
            try:
                return what()
            except ServerLost:
                return what()
        except ServerLost as error:
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
        release(self._held)

    def _check_owner(self) -> None:
        """In a forked child, what was held is the parent's."""
        if os.getpid() != self._owner:
            self._owner = os.getpid()
            self._held.clear()
            self._cells = weakref.WeakSet()
            self._lent.clear()

    def _server(self) -> Server:
        with self._lock:
            self._check_owner()
            self._closed = False
            if not self._held or not self._held[0].alive:
                release(self._held)
                self._held.append(acquire(self._key))
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


_walls: weakref.WeakSet[NamespaceWall] = weakref.WeakSet()


def _after_fork() -> None:
    """No lock that another thread held is held in a child."""
    global _probed_lock
    _probed_lock = threading.Lock()
    for wall in list(_walls):
        wall._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def nursery() -> Iterator[None]:
    """While this is entered, walls of this process and of those that it forks have their servers from one nursery: the
    servers start in a fraction of the time, and share what memory they have in common. Where it can't be had, all is as
    without it."""
    key = NamespaceWall()._key
    if key in nurseries or _probed.get(os.getpid(), ("", 0.0))[0] is not None:
        yield  # there is one, or nobody here has asked for this wall
        return
    try:
        nurseries[key] = made = Nursery(key)
    except ArenaError:
        yield  # who opens a cell is told
        return
    try:
        yield
    finally:
        if nurseries.get(key) is made:
            del nurseries[key]
            made.close()


shared.append(nursery)


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
