"""The ``container`` wall: cells that a container engine locks, docker's or podman's, with any of its runtimes.

A cell has no network, a read-only root, capped tmpfs folders, no capabilities, no new privileges, the engine's system
call filter with ours beneath it, caps on memory, processes and processors, and an ordinary user. Three modes, which
differ in what one run costs (``weaknesses`` says where they differ in what they hold):

``keeper``  one container a cell; the keeper is its first process, and forks runs from its warm memory
``exec``    one container a cell with a keeper for the files; each run is a process that the engine starts in it
``run``     a container for each run and each program; the workspace is a folder of this machine

A container is named and labelled with its owner before it is made. It ends when the owner's end of a socket or of a
stream closes, by whatever death, and the engine then removes it; ``collect`` removes what a dead engine left behind.
No network and no volume is ever made.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tiltyard.cells import image as images
from tiltyard.cells import reach
from tiltyard.cells.client import KeeperCell, close_all, filled, unpacked
from tiltyard.cells.container_box import make_box
from tiltyard.cells.container_modes import ExecCell, HeldCell, RunCell
from tiltyard.cells.engine import About, Box, Engine, EngineError, connect
from tiltyard.cells.inside.container import BY_STREAMS
from tiltyard.cells.kit import Kit
from tiltyard.cells.process import interpreter
from tiltyard.cells.programs import PACKAGE, Interpreter, package_lines
from tiltyard.cells.protocol import Cell, CellLimits, PackedCell, Run
from tiltyard.cells.rootfs import there
from tiltyard.cells.siblings import Siblings
from tiltyard.errors import ArenaError, UsageError

MODES = ("keeper", "exec", "run")
TRANSPORTS = ("socket", "stream")
_OWN_KERNELS = ("runsc", "kata", "krun")
"""Runtimes, by how their names begin, whose containers have a kernel of their own: no socket of ours reaches them."""
PRELOAD = ("dataclasses", "functools", "re", "random", "traceback", "typing")
_NOT_PLAYERS = ("HOSTNAME", "container", "TERM")


@dataclass(frozen=True, slots=True)
class Ready:
    """What a wall knows once it has asked its engine."""

    about: About
    image: str
    digest: str
    direct: bool
    """Whether keepers are reached by a socket."""


class ContainerWall:
    """Cells of this kind.

    ``engine``: "docker", "podman", None (what is there) or an ``Engine``. ``image``: a name or digest; it needs a
    ``python3`` of 3.11 or later, whose installed packages cells see; None makes one from this machine's Python, or from
    the interpreter at ``python`` with its packages. ``runtime``: the engine's name of it ("runsc"). ``cpus``: how many
    processors one cell may use; 0: all. ``transport``: how keepers are reached; None takes what works here.
    ``kit``: with its packages, which are no installed ones (``tiltyard.cells.kit``). Nothing is asked of the engine
    before the first cell.
    """

    def __init__(
        self,
        *,
        engine: str | Engine | None = None,
        image: str | None = None,
        runtime: str | None = None,
        mode: str = "keeper",
        hash_seed: int = 0,
        python: str | None = None,
        cpus: float = 1.0,
        transport: str | None = None,
        kit: Kit | None = None,
    ) -> None:
        if mode not in MODES:
            raise UsageError(f"found mode {mode!r}; expected one of {', '.join(MODES)}")
        if transport is not None and transport not in TRANSPORTS:
            raise UsageError(
                f"found transport {transport!r}; expected one of {', '.join(TRANSPORTS)}, or None"
            )
        if image is not None and python is not None:
            raise UsageError(
                "found image= and python=; expected one of them, for an image has its own python3"
            )
        self.engine = connect(engine) if engine is None or isinstance(engine, str) else engine
        self.mode = mode
        self._image = image
        self._runtime = runtime
        self._hash_seed = hash_seed
        self._cpus = cpus
        self._transport = transport
        self._python = python
        self._interpreter = _real(interpreter(python))
        self._kit = kit or Kit()
        self._siblings: dict[Kit, ContainerWall] = {}
        self._others: Siblings[ContainerWall] = Siblings()
        self._ready: Ready | None = None
        self._filter = ""
        self._lock = threading.Lock()
        self._cells: weakref.WeakSet[Cell] = weakref.WeakSet()
        _walls.add(self)

    @property
    def name(self) -> str:
        return "container"

    def __repr__(self) -> str:
        return f"<container wall, {self.engine.kind}, {self.mode}, {self._runtime or 'its default runtime'}>"

    @property
    def image_digest(self) -> str:
        """The digest of the image that cells are made of, to be recorded. Made now if it is not there yet."""
        return self.ready().digest

    @property
    def weaknesses(self) -> tuple[str, ...]:
        return _weaknesses(self.ready().about, self.mode, self._runtime, self._filter)

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
        self.ready()
        if self.mode == "run":
            cell: Cell = RunCell.open(self, files, limits)
        else:
            cell = filled(self._new_cell(limits), files)
        self._cells.add(cell)
        return cell

    def unpack(self, files: Mapping[str, bytes], limits: CellLimits, packed: PackedCell) -> Cell:
        """See ``protocol.Copying``. In mode "run" nothing but the workspace lasts from one run to the next, and so
        nothing else is packed."""
        self.ready()
        if self.mode == "run":
            cell: Cell = RunCell.unpack(self, limits, packed)
        else:
            cell = unpacked(self._new_cell(limits), packed)
        self._cells.add(cell)
        return cell

    def _new_cell(self, limits: CellLimits) -> KeeperCell:
        box = self.box(limits)
        try:
            reached = self.reach_keeper(box, self.orders(limits))
        except EngineError as error:
            if not error.missing or self.engine.image_id(box.image) is not None:
                raise
            with self._lock:  # somebody has removed the image, so it is made again
                self._ready = None
            box = self.box(limits)
            reached = self.reach_keeper(box, self.orders(limits))
        env = self.environment(reached.ready)
        kind = ExecCell if self.mode == "exec" else HeldCell
        return kind(reached, self, box, limits=limits, env=env)

    def with_kit(self, kit: Kit) -> ContainerWall:
        """This wall with a kit: see ``tiltyard.cells.kit``. One for each kit, closed with this one."""
        with self._lock:
            if kit not in self._siblings:
                self._siblings[kit] = ContainerWall(
                    engine=self.engine,
                    image=self._image,
                    runtime=self._runtime,
                    mode=self.mode,
                    hash_seed=self._hash_seed,
                    python=self._python,
                    cpus=self._cpus,
                    transport=self._transport,
                    kit=kit,
                )
            return self._siblings[kit]

    def with_python(self, python: str) -> ContainerWall:
        """This wall with another interpreter and its packages, in an image made of them: see
        ``tiltyard.cells.siblings``. ArenaError: the wall's image was named, and has an interpreter of its own."""
        if self._image is not None:
            raise ArenaError(
                f"a task needs an interpreter with packages of its own, and this wall's cells are of {self._image!r};"
                " leave image= out"
            )
        return self._others.get(python, lambda: self._like_this(python))

    def with_image(self, image: str) -> ContainerWall:
        """This wall with the image that a task needs, by name or digest, and the ``python3`` in it. The same one for the
        same image while it is kept. Whether it can be had is found out with the first cell."""
        if image == self._image:
            return self
        return self._others.get(f"image {image}", lambda: self._like_this(None, image))

    def _like_this(self, python: str | None, image: str | None = None) -> ContainerWall:
        return ContainerWall(
            engine=self.engine,
            image=image,
            runtime=self._runtime,
            mode=self.mode,
            hash_seed=self._hash_seed,
            python=python,
            cpus=self._cpus,
            transport=self._transport,
        )

    def close(self) -> None:
        self._others.close()
        for sibling in list(self._siblings.values()):
            sibling.close()
        close_all(self._cells)

    # ---------------------------------------------------------------------------------- for cells of the wall

    def ready(self) -> Ready:
        """Ask the engine, once. ArenaError if it is not there, or the image can't be had."""
        with self._lock:
            if self._ready is None:
                self._ready = self._ask()
            return self._ready

    def _ask(self) -> Ready:
        about = self.engine.about()
        if self._runtime is not None and about.runtimes and self._runtime not in about.runtimes:
            raise ArenaError(
                f"{about.kind} knows no runtime {self._runtime!r}, only {', '.join(about.runtimes)};"
                " add it to the engine's configuration, or give runtime= one of these"
            )
        base = self._image or images.of_machine(self.engine, self._interpreter)
        name = images.of_cell(
            self.engine, base, own=self._image is None, runtime=self._runtime, kit=self._kit
        )
        direct = about.local and not (self._runtime or about.default_runtime).startswith(_OWN_KERNELS)
        if self._transport is not None:
            direct = self._transport == "socket"
        return Ready(about, name, self.engine.image_id(name) or name, direct)

    def box(self, limits: CellLimits, workspace: str | None = None) -> Box:
        """A container for a cell, or for one run of it on the folder ``workspace``."""
        ready = self.ready()
        return make_box(
            ready.about,
            limits,
            image=ready.image,
            argv=self._argv(),
            hash_seed=self._hash_seed,
            cpus=self._cpus,
            runtime=self._runtime,
            workspace=workspace,
        )

    def _argv(self) -> tuple[str, ...]:
        """A keeper's command line, up to the way by which it is reached."""
        if self._image is not None:
            python = Interpreter("python3", site=True)
        else:
            python = replace(self._interpreter, path=there(self._interpreter.path))
        *start, _ = python.argv()
        lines = python.first() + package_lines(images.inside_folders_there())
        return (*start, f"{lines}; from {PACKAGE}.boot import launch; launch()", "tool", "0", "container")

    def orders(self, limits: CellLimits, *, own_disk: bool = True) -> dict[str, Any]:
        """What a keeper is told first."""
        about = self.ready().about
        caps = {"memory_bytes": limits.memory_bytes, "processes": limits.processes}
        return {
            "caps": caps,
            "own_disk": own_disk,
            "watched": not own_disk or about.kind != "docker",
            "counted": about.counted,
            "preload": [*PRELOAD, *self._kit.preload],
            "kit": {name: images.KIT for name, _ in self._kit.packages},
        }

    def reach_keeper(self, box: Box, orders: Mapping[str, Any]) -> reach.Reached:
        """Start a container and reach its keeper."""
        ready = self.ready()
        if not ready.direct:
            return self._reach_by_stream(box, orders)
        try:
            return reach.by_socket(self.engine, box, orders)
        except EngineError:
            raise
        except ArenaError:
            if self._transport is not None or ready.about.rootless:
                raise
            reached = self._reach_by_stream(box, orders)  # a kernel that looks like ours, and is not
            with self._lock:
                self._ready = Ready(ready.about, ready.image, ready.digest, direct=False)
            return reached

    def _reach_by_stream(self, box: Box, orders: Mapping[str, Any]) -> reach.Reached:
        there = replace(box, argv=(*box.argv, BY_STREAMS), stdin=True)
        return reach.by_stream(self.engine, box.name, lambda: self.engine.run(there), orders)

    def reach_in(self, box: Box, orders: Mapping[str, Any]) -> reach.Reached:
        """Have the engine start one more keeper in this container, for a run."""
        argv = (*box.argv, BY_STREAMS)
        begin = lambda: self.engine.exec(box.name, argv, user=box.user, workdir=box.workdir)  # noqa: E731
        return reach.by_stream(self.engine, "", begin, orders)

    def environment(self, ready: Mapping[str, Any]) -> dict[str, str]:
        """What runs find, by what the image has set."""
        self._filter = str(ready.get("filter") or "")
        found = ready.get("env")
        if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
            raise ArenaError("a container's keeper sent an environment that is none")
        env = {name: value for name, value in found.items() if name not in _NOT_PLAYERS}
        if self._interpreter.venv and "PATH" in env:
            env["PATH"] = replace(self._interpreter, path=there(self._interpreter.path)).search_path(
                env["PATH"]
            )
        return env


def _real(python: Interpreter) -> Interpreter:
    return python if python.site else Interpreter(os.path.realpath(python.path))


_walls: weakref.WeakSet[ContainerWall] = weakref.WeakSet()


def _after_fork() -> None:
    """A lock that some thread held is held by nobody in a child; and the parent's cells are not its own."""
    for wall in list(_walls):
        wall._lock = threading.Lock()
        wall._cells = weakref.WeakSet()


os.register_at_fork(after_in_child=_after_fork)


def _weaknesses(about: About, mode: str, runtime: str | None, filter_trouble: str) -> tuple[str, ...]:
    own_kernel = (runtime or about.default_runtime).startswith(_OWN_KERNELS)
    found = (
        [] if own_kernel else ["code runs on the machine's own kernel: a hole in it is a hole in this wall"]
    )
    found.append(
        "addresses of objects differ from cell to cell: a program that prints them prints others each time"
    )
    found.append(
        "each writable folder has the cap on disk for itself: a cell may hold up to four times as much"
    )
    if mode == "run":
        found.append("the workspace is a folder of this machine: its size is watched, not enforced")
        if os.getuid() != 0:
            found.append("code runs with the id of the arena's user, in a container of its own")
    if mode == "exec":
        found.append(
            "code can kill what reports on its own run; the cell is then lost, and it is the code's doing"
        )
    if about.kind != "docker":
        found.append(f"{about.kind} can't cap the number of files of a cell: it is watched, not enforced")
    if not about.seccomp:
        found.append("the engine has no system call filter")
    if filter_trouble:
        found.append(f"there is no filter of ours beneath the engine's: {filter_trouble}")
    if not about.counted:
        found.append(
            "the engine can't cap memory here: each process is capped, and the sum of a cell is watched"
        )
    if not about.pids:
        found.append("the engine can't cap the number of processes here")
    if not about.cpu:
        found.append("the engine can't cap processors here")
    return tuple(found)


# ---------------------------------------------------------------- can it be had here?


_probed: dict[tuple[object, ...], str | None] = {}


def probe(**how: Any) -> str | None:
    """None if this wall works here, or the reason in plain words: a cell is opened, and something is run in it. Asked
    once in a process for each DOCKER_HOST and ``how``, the arguments of the wall."""
    me = os.getpid(), os.environ.get("DOCKER_HOST"), *sorted(how.items())
    if me not in _probed:
        _probed[me] = _try(how)
    return _probed[me]


def _try(how: Mapping[str, Any]) -> str | None:
    try:
        wall = ContainerWall(**how)
        cell = wall.open({"probe.py": b"print(6 * 7)\n"}, CellLimits())
        try:
            result = cell.run(Run(("python", "probe.py"), wall_s=30.0))
        finally:
            cell.close()
    except ArenaError as error:
        return str(error)
    if result.rc != 0 or result.stdout != b"42\n":
        said = (result.stderr or result.stdout)[:500].decode("utf-8", "replace")
        return f"a cell opens, and a program that prints 42 ends with {result.rc}: {said}"
    return None
