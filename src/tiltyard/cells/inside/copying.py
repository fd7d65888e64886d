"""What a keeper does to have its cell copied: ``pack`` and ``unpack``, a piece at each request of the owner.

The writable folders are opened for the first piece and let go of after the last one, after an error, or when the owner
asks for something else: a cell is never left half opened. What a request needs of memory is a piece, not a cell.
"""

# Paths here are text for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH102

from __future__ import annotations

import os

from .files import FOLDER, FileError
from .pack import Packer, Place
from .unpack import Unpacker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Answer = tuple[dict[str, Any], bytes]

PIECE = 1 << 20


class Copying:
    """One cell's. ``workspace`` and ``upper`` are the keeper's descriptors, ``beside`` the other writable folders, by
    name and path, ``own_disk`` whether they are file systems of their own; see ``pack.Packer`` for the others."""

    def __init__(
        self,
        workspace: int,
        upper: int,
        beside: Mapping[str, str],
        *,
        player: tuple[int, int],
        own_disk: bool,
        not_in: bytes,
    ) -> None:
        self.player = player
        self.own_disk = own_disk
        self.not_in = not_in
        self.opened: list[int] = []
        self.over = False
        """Whether all is let go of: after the last piece, or an error."""
        self.packing: Iterator[bytes] | None = None
        self.unpacking: Unpacker | None = None
        self.places = [Place("workspace", workspace if upper < 0 else upper, workspace)]
        try:
            for name, path in beside.items():
                self.opened.append(os.open(path, FOLDER))
                self.places.append(Place(name, self.opened[-1], self.opened[-1]))
        except OSError as error:
            self.end()
            raise FileError(f"the folder {name} of the cell can't be opened ({error.strerror})") from None

    def pack(self, header: dict[str, Any]) -> Answer:
        """The next piece; ``more`` says whether there is another."""
        more = False
        try:
            piece, more = self._next_piece(header["max_bytes"])
            return {"more": more}, piece
        finally:
            if not more:
                self.end()

    def _next_piece(self, max_bytes: int) -> tuple[bytes, bool]:
        if self.packing is None:
            packer = Packer(
                self.places,
                max_bytes=max_bytes,
                player=self.player,
                own_disk=self.own_disk,
                not_in=self.not_in,
            )
            self.packing = iter(packer)
        pieces: list[bytes] = []
        size = 0
        for piece in self.packing:
            pieces.append(piece)
            size += len(piece)
            if size >= PIECE:
                return b"".join(pieces), True
        return b"".join(pieces), False

    def unpack(self, header: dict[str, Any], block: bytes) -> Answer:
        """Lay out the next piece; ``last`` says that no other will come."""
        more = False
        try:
            self._lay_out(header, block)
            more = not header["last"]
            return {}, b""
        finally:
            if not more:
                self.end()

    def _lay_out(self, header: dict[str, Any], block: bytes) -> None:
        if self.unpacking is None:
            most_files, most_bytes = header.get("disk_files"), header.get("disk_bytes")
            if self.own_disk:  # which counts for itself; this only bounds what is kept in memory
                most_files, most_bytes = None if most_files is None else 4 * most_files + 64, None
            self.unpacking = Unpacker(
                self.places, most_files=1 << 30 if most_files is None else most_files, most_bytes=most_bytes
            )
        self.unpacking.feed(block)
        if header["last"]:
            self.unpacking.finish()

    def end(self) -> None:
        """Let go of everything. May be called twice."""
        self.over = True
        if self.packing is not None:
            self.packing.close()  # type: ignore[attr-defined]  # a generator, which puts modes back
            self.packing = None
        if self.unpacking is not None:
            self.unpacking.close()
            self.unpacking = None
        while self.opened:
            os.close(self.opened.pop())


ROUNDS = 12


def exercise() -> None:
    """Before any cell there is: a small folder is packed and laid out, often enough (see ``drill``)."""
    for number in range(ROUNDS):
        folders = [f"{number:02}-{name}" for name in ("one", "two")]
        for name in folders:
            os.mkdir(name)
        os.mkdir(f"{folders[0]}/inner")
        for path in ("a.py", "b.py", "inner/c.py"):
            fd = os.open(f"{folders[0]}/{path}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.write(fd, b"x = 1\n")
            os.close(fd)
        ends = [os.open(name, FOLDER) for name in folders]
        mine = os.fstat(ends[0])
        player = mine.st_uid, mine.st_gid
        one, two = (Copying(fd, -1, {}, player=player, own_disk=True, not_in=b"") for fd in ends)
        answer, piece = one.pack({"max_bytes": PIECE})
        two.unpack({"last": not answer["more"]}, piece)
        for fd in ends:
            os.close(fd)
