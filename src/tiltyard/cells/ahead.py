"""Cells that are made ready before they are wanted: who has opened two alike in a row is likely to want a third.

A cell takes milliseconds to come up, and who asks for one waits. So once an order has come twice in a row, one more such
cell is asked for whenever one is handed out, and comes up while the owner is busy with what it has. A server keeps one,
however many walls share it. Nothing of it differs from a cell that is made when it is asked for.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tiltyard.cells.client import bury_cell
from tiltyard.cells.inside import wire
from tiltyard.errors import ArenaError

ANSWER_S = 10.0
_NOTHING = {"op": "put", "files": [], "fresh": True, "gone": [], "id": 0}
"""A request that changes nothing."""

Cell = tuple[socket.socket, Callable[[], None], Mapping[str, Any]]
"""The socket to a keeper, what makes sure of its end, and its first words."""


class Coming(Protocol):
    """A cell that was asked for."""

    def come_up(self) -> Cell:
        """Wait until it is there."""

    def forget(self) -> None:
        """Of a server that is dead."""


class Ahead:
    """The one that is ready, of a server. ``failures``: what to ask for a cell, and to wait for it, raises beside
    ArenaError. For any number of threads."""

    def __init__(self, failures: tuple[type[Exception], ...], owner: int) -> None:
        self._failures: tuple[type[Exception], ...] = (*failures, ArenaError, OSError)
        self._owner = owner
        self._lock = threading.Lock()
        self._last = b""
        self._order = b""
        self._coming: Coming | None = None

    def take(self, order: bytes) -> Cell | None:
        """The cell that is ready, if there is one of this kind, and it still lives."""
        with self._lock:
            if self._coming is None or self._order != order:
                return None
            coming, self._coming = self._coming, None
        cell = self._up(coming)
        if cell is None:
            return None
        lives = False
        try:
            lives = _answers(cell[0])
        finally:
            if not lives:
                self._bury(cell)
        return cell if lives else None

    def look_ahead(self, order: bytes, ask: Callable[[bytes], Coming]) -> None:
        """A cell of this kind was handed out: have the next one made, if it is a habit. Never raises: what can't be had
        is told to who wants it."""
        with self._lock:
            habit, self._last = order == self._last, order
            if not habit or (self._coming is not None and self._order == order):
                return
            before, self._coming = self._coming, None
        self._drop(before)
        try:
            coming: Coming | None = ask(order)
        except self._failures:
            return
        with self._lock:
            if self._coming is None:  # no other thread had the same habit
                self._coming, self._order, coming = coming, order, None
        self._drop(coming)

    def give_up(self) -> bool:
        """Free what the one that is ready takes up; whether there was one."""
        with self._lock:
            before, self._coming, self._last = self._coming, None, b""
        self._drop(before)
        return before is not None

    def forget(self) -> None:
        """The server is dead, or another process's."""
        coming, self._coming = self._coming, None
        if coming is not None:
            coming.forget()

    def _drop(self, coming: Coming | None) -> None:
        cell = self._up(coming) if coming is not None else None
        if cell is not None:
            self._bury(cell)

    def _up(self, coming: Coming) -> Cell | None:
        try:
            return coming.come_up()
        except self._failures:
            return None  # who wants it asks again, and is told

    def _bury(self, cell: Cell) -> None:
        bury_cell(cell[0], cell[1], self._owner)


def _answers(sock: socket.socket) -> bool:
    """Whether the keeper at the other end of a socket lives, and not only until the signal that was sent to it arrives."""
    until = time.monotonic() + ANSWER_S
    try:
        wire.send(sock, _NOTHING, deadline=until)
        return wire.receive(sock, deadline=until, max_block=0)[0].get("id") == 0
    except wire.WireError:
        return False
