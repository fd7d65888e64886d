"""Cells of the container wall, by mode. See ``container`` for what the modes are.

``HeldCell`` has a container of its own for as long as it lives; ``ExecCell`` has the engine start each run in it;
``RunCell`` has a folder here, and a new container for each run and each program.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiltyard.cells.client import KeeperCell, Program
from tiltyard.cells.container_box import memory_of, player_of
from tiltyard.cells.process import _temp_folder, bring_up, interpreter
from tiltyard.cells.protocol import Capture, CellLimits, CellLost, Listing, PackedCell, Run, RunResult
from tiltyard.cells.start import contents
from tiltyard.errors import ArenaError

if TYPE_CHECKING:
    from tiltyard.cells.container import ContainerWall
    from tiltyard.cells.engine import Box
    from tiltyard.cells.reach import Reached


class HeldCell(KeeperCell):
    """A cell whose keeper is the first process of a container, which goes with it."""

    def __init__(
        self,
        reached: Reached,
        of_wall: ContainerWall,
        box: Box,
        *,
        limits: CellLimits,
        env: Mapping[str, str],
    ) -> None:
        super().__init__(reached.sock, wall=of_wall.name, limits=limits, env=env, bury=reached.bury)
        self._of = of_wall
        self._box = box
        self._memory = limits.memory_bytes

    @property
    def container(self) -> str:
        """The name by which the engine knows it."""
        return self._box.name

    def start(
        self,
        program: str,
        fds: Sequence[int],
        *,
        wall_s: float,
        memory_bytes: int | None = None,
        again: bool = False,
    ) -> Program:
        if memory_bytes is not None and memory_bytes > self._memory and self._box.memory_bytes:
            self._of.engine.update_memory(self._box.name, memory_of(self._limits, memory_bytes))
            self._memory = memory_bytes
        return super().start(program, fds, wall_s=wall_s, memory_bytes=memory_bytes, again=again)


class ExecCell(HeldCell):
    """As ``HeldCell``; but each run is begun by the engine, in a keeper that serves that run only."""

    def run(self, run: Run) -> RunResult:
        return self._once(lambda cell: cell.run(run))

    def run_command(self, run: Run) -> RunResult:
        return self._once(lambda cell: cell.run_command(run))

    def _once(self, act: Callable[[KeeperCell], RunResult]) -> RunResult:
        self._check_owner()
        self._check_open()
        try:
            reached = self._of.reach_in(self._box, self._of.orders(self._limits))
        except ArenaError:
            if not self._end.alive:
                raise CellLost("the cell was closed", during_run=False) from None
            raise
        with KeeperCell(
            reached.sock, wall=self._wall, limits=self._limits, env=self._env, bury=reached.bury
        ) as once:
            try:
                return act(once)
            except CellLost:
                self.close()  # whatever the code did to what reports on it, it ends here
                raise


class RunCell:
    """See the module's first lines; implements ``protocol.Cell``."""

    @classmethod
    def open(cls, of_wall: ContainerWall, files: Mapping[str, bytes], limits: CellLimits) -> RunCell:
        cell = cls(of_wall, limits)
        try:
            cell._files.put(contents(files), fresh=True)
        except BaseException:
            cell.close()
            raise
        return cell

    @classmethod
    def unpack(cls, of_wall: ContainerWall, limits: CellLimits, packed: PackedCell) -> RunCell:
        cell = cls(of_wall, limits)
        try:
            cell._files.unpack(packed)
        except BaseException:
            cell.close()
            raise
        return cell

    def __init__(self, of_wall: ContainerWall, limits: CellLimits) -> None:
        self._of = of_wall
        self._limits = limits
        base = f"{_temp_folder()}/tiltyard-{secrets.token_hex(8)}"
        about = of_wall.ready().about
        player = None
        if os.getuid() == 0 and not about.rootless:
            uid, gid = player_of(about).split(":")
            player = int(uid), int(gid)
        self._files = bring_up(
            interpreter(None),
            limits,
            {},
            base=base,
            workspace=None,
            wall=of_wall.name,
            player=player,
            elsewhere=True,
        )
        self._workspace = f"{base}/workspace"
        self._live: dict[KeeperCell, None] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._owner = os.getpid()

    @property
    def wall(self) -> str:
        return self._of.name

    @property
    def limits(self) -> CellLimits:
        return self._limits

    def __enter__(self) -> RunCell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------- files

    def read(self, path: str, *, max_bytes: int) -> bytes:
        return self._files.read(path, max_bytes=max_bytes)

    def write(self, path: str, data: bytes) -> None:
        self._files.write(path, data)

    def put(self, files: Mapping[str, bytes]) -> None:
        self._files.put(files)

    def list(self, *, max_entries: int) -> Listing:
        return self._files.list(max_entries=max_entries)

    def capture(self, *, max_file_bytes: int, max_bytes: int, max_files: int, max_depth: int) -> Capture:
        self._end_all()
        return self._files.capture(
            max_file_bytes=max_file_bytes, max_bytes=max_bytes, max_files=max_files, max_depth=max_depth
        )

    def pack(self, *, max_bytes: int) -> PackedCell:
        self._end_all()
        return self._files.pack(max_bytes=max_bytes)

    # -------------------------------------------------------------------------------------------- runs

    def run(self, run: Run) -> RunResult:
        with self._container() as once:
            try:
                return once.run(run)
            finally:
                self._forget(once)

    def run_command(self, run: Run) -> RunResult:
        with self._container() as once:
            try:
                return once.run_command(run)
            finally:
                self._forget(once)

    def start(
        self, program: str, fds: Sequence[int], *, wall_s: float, memory_bytes: int | None = None
    ) -> Alone:
        once = self._container()
        try:
            return Alone(self, once, once.start(program, fds, wall_s=wall_s, memory_bytes=memory_bytes))
        except BaseException:
            self._forget(once)
            once.close()
            raise

    def _container(self) -> HeldCell:
        self._files._check_owner()
        self._files._check_open()
        of = self._of
        box = of.box(self._limits, self._workspace)
        reached = of.reach_keeper(box, of.orders(self._limits, own_disk=False))
        once = HeldCell(reached, of, box, limits=self._limits, env=of.environment(reached.ready))
        with self._lock:
            self._live[once] = None
            closed = self._closed
        if closed:
            self._end_all()
            raise CellLost("the cell was closed", during_run=False)
        return once

    def _forget(self, once: KeeperCell) -> None:
        with self._lock:
            self._live.pop(once, None)

    def _end_all(self) -> None:
        with self._lock:
            live = list(self._live)
            self._live.clear()
        for once in live:
            once.close()

    def close(self) -> None:
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
        self._end_all()
        self._files.close()


class Alone:
    """A program with a container of its own (``Started``)."""

    def __init__(self, cell: RunCell, once: KeeperCell, program: Program) -> None:
        self._cell = cell
        self._once = once
        self._program = program

    def poll(self) -> int | None:
        return self._see(self._program.poll)

    def wait(self, timeout_s: float) -> int | None:
        return self._see(lambda: self._program.wait(timeout_s))

    def kill(self) -> None:
        self._program.kill()
        self._end()

    def _see(self, ask: Callable[[], Any]) -> int | None:
        try:
            rc: int | None = ask()
        except CellLost:
            if self._program.seen is None:
                self._program.seen = -9
            rc = self._program.seen
        if rc is not None:
            self._end()
        return rc

    def _end(self) -> None:
        self._cell._forget(self._once)
        self._once.close()
