"""One program in a cell of its own, for grading: opened, begun and closed as one thing.

``launch`` is for every wall. A wall that can do it more cheaply than by a cell with a keeper has a method of that name;
there the program is the first process of its cell, and what a keeper would do (answer for files, keep the time) is not
to be had: who launches a program must close it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from tiltyard.cells.client import KeeperCell, Program, bury_cell, caps_of
from tiltyard.cells.programs import has_program
from tiltyard.cells.protocol import Cell, CellFileError, CellLimits, Wall
from tiltyard.errors import ArenaError, UsageError
from tiltyard.task import path_problem

END_S = 1.0
"""What a program that has done its work may take to end."""
Letter = tuple[dict[str, Any], bytes, Sequence[int]]
"""What a cell without a keeper is sent: header, block and descriptors of a frame."""


class Launched(Protocol):
    """A program that runs in a cell, or is about to. How it ends is told by its own descriptors."""

    def begun(self) -> None:
        """Returns when it has begun. To launch two and wait then takes less than one after the other. Raises what
        ``launch`` may: some walls know only here whether the cell can be had."""

    def finished(self) -> None:
        """It has done all that it was to do, and nothing unusual was seen: its cell may serve the next one."""

    def close(self) -> None:
        """End it, and everything in its cell. May be called twice, and never raises."""


@runtime_checkable
class Launching(Protocol):
    """A wall with a way of its own to launch programs."""

    def launch(
        self,
        program: str,
        fds: Sequence[int],
        files: Mapping[str, bytes],
        limits: CellLimits,
        *,
        wall_s: float,
        trusted: bool = False,
    ) -> Launched: ...


def launch(
    wall: Wall,
    program: str,
    fds: Sequence[int],
    files: Mapping[str, bytes],
    limits: CellLimits,
    *,
    wall_s: float,
    trusted: bool = False,
) -> Launched:
    """Start the inside program ``program`` in a new cell with these files, ``fds`` as its descriptors 3, 4, … (see
    ``Cell.start``). The caller closes its own copies, and the program within ``wall_s`` seconds: some walls kill it
    then. ``trusted``: it runs nothing of a player's, there are no files, and it leaves nothing in its cell, which may
    have served another one before. Raises ArenaError, and CellFileError for files that can't lie together."""
    if isinstance(wall, Launching):
        return wall.launch(program, fds, files, limits, wall_s=wall_s, trusted=trusted)
    return launch_in_cell(wall, program, fds, files, limits, wall_s=wall_s)


def launch_in_cell(
    wall: Wall,
    program: str,
    fds: Sequence[int],
    files: Mapping[str, bytes],
    limits: CellLimits,
    *,
    wall_s: float,
) -> Launched:
    """``launch`` by a cell with a keeper."""
    cell = wall.open(files, limits)
    try:
        cell.start(program, fds, wall_s=wall_s)
    except BaseException:
        cell.close()
        raise
    return _InCell(cell)


class _InCell:
    """A program beside the keeper of a cell that is closed with it."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def begun(self) -> None:
        pass

    def finished(self) -> None:
        pass

    def close(self) -> None:
        self._cell.close()


class Lent:
    """A program in a cell that is handed on (``give_back``) if the program finished as it should."""

    def __init__(self, cell: KeeperCell, program: Program, give_back: Callable[[], None]) -> None:
        self._cell = cell
        self._program = program
        self._give_back = give_back
        self._finished = False
        self._closed = False

    def begun(self) -> None:
        pass

    def finished(self) -> None:
        self._finished = True

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if self._finished and self._program.wait(END_S) == 0:
                self._give_back()
                return
        except ArenaError:
            pass
        self._cell.close()


class Opening(Protocol):
    """A cell that was asked for."""

    def finish(self) -> tuple[socket.socket, Callable[[], None]]:
        """The socket to it, and what ends it and returns when nothing is left. Called once. Raises if it can't be had."""


class Solo:
    """A program that is the first process of its cell. ``wall`` is kept for as long as it lives."""

    def __init__(self, opening: Opening, wall: object) -> None:
        self._owner = os.getpid()
        self._opening: Opening | None = opening
        self._wall = wall
        self._end: weakref.finalize[Any, Any] = weakref.finalize(self, _abandon, opening, self._owner)

    def begun(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            self._end.detach()
            sock, bury = opening.finish()
            self._end = weakref.finalize(self, bury_cell, sock, bury, self._owner)

    def finished(self) -> None:
        pass

    def close(self) -> None:
        if os.getpid() == self._owner:
            self._end()


def _abandon(opening: Opening, owner: int) -> None:
    """It may have begun: only by its end is it known that nothing of it is left."""
    if os.getpid() == owner:
        with contextlib.suppress(ArenaError, CellFileError):
            bury_cell(*opening.finish(), owner)


def letter(
    program: str, files: Mapping[str, bytes], limits: CellLimits, env: Mapping[str, str], fds: Sequence[int]
) -> Letter:
    """What makes a new cell this program. UsageError: there is no such program; CellFileError: a path that is none."""
    if not has_program(program):
        raise UsageError(f"no inside folder has a program {program!r}")
    for path in files:
        if (problem := path_problem(path)) is not None:
            raise CellFileError(f"{problem}: {path!r}")
    manifest = [[path, len(data)] for path, data in files.items()]
    header = {"kind": "program", "rest": [program], "env": dict(env), **caps_of(limits), "files": manifest}
    return header, b"".join(files.values()), fds


def refusal(answer: Mapping[str, Any]) -> Exception:
    """The error for a cell's answer that it can't be had."""
    text = str(answer.get("text", "no reason given"))[:2000]
    return (
        CellFileError(text) if answer.get("error") == "file" else ArenaError(f"a cell can't be made: {text}")
    )
