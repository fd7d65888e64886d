"""The other half of ``pack``: bytes become what a new cell holds. Nothing in them is believed.

They may have been made by a player that took a keeper over, so this runs inside, with the rights of the new cell's
keeper and no others. Every length is checked before anything is read or made; a name is one part of a path; a folder is
entered by descriptor, never through a link, and every step up is checked; what lies in the cell is never replaced. Caps
on bytes and files are the disk's own, or counted here. Bytes that are not what ``pack`` makes raise
:class:`files.FileError`; the cell is then good for nothing, and its owner closes it.
"""

from __future__ import annotations

import os
import stat
import struct
import time

from . import pack
from .files import FOLDER, FileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from .pack import Place

    More = Generator[None, None, None]
    Attributes = list[tuple[str, bytes]]

UNPACK_S = 60.0
MAX_NAME = 255
MAX_TARGET = 4095
MAX_HOLDERS = 256
"""Folders that are kept open because something in them has another name elsewhere."""
_OVERLAY = "user.overlay."
_OVERLAYS_OWN = ("opaque", "origin", "impure", "nlink", "protattr", "uuid")
"""What the kernel notes in an upper folder; a player's attributes of such names are there with another ``overlay.`` in front. The
rest would lead elsewhere in the tree below."""
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILL = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class _Record:
    """One record, read from its beginning."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise _broken("a record is too short")
        self.at, found = end, self.data[self.at : end]
        return found

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def end(self) -> None:
        if self.at != len(self.data):
            raise _broken("a record is too long")

    def attributes(self) -> Attributes:
        found: Attributes = []
        for _ in range(pack.COUNT.unpack(self.take(pack.COUNT.size))[0]):
            name, value = pack.ATTRIBUTE.unpack(self.take(pack.ATTRIBUTE.size))
            text = os.fsdecode(self.take(name))
            if not text.startswith(pack.ATTRIBUTES) or "\0" in text:
                raise _broken("an attribute of another kind")
            found.append((text, self.take(value)))
        return found


class _Entry:
    """One entry of a folder, checked."""

    __slots__ = ("device", "kind", "mode", "name", "number", "owner", "size", "target", "times")

    def __init__(self, record: _Record) -> None:
        fixed = pack.META.unpack(record.take(pack.META.size))
        self.kind, size, self.mode, accessed, a_ns, changed, c_ns, self.number, others = fixed
        self.times = accessed * pack.BILLION + a_ns, changed * pack.BILLION + c_ns
        self.name = record.take(size)
        self.owner = pack.OWNERS.unpack(record.take(pack.OWNERS.size)) if others else None
        self.size = 0
        self.target = b""
        self.device = 0, 0
        if self.kind == pack.FILE:
            (self.size,) = pack.SIZE.unpack(record.take(pack.SIZE.size))
        elif self.kind == pack.LINK:
            self.target = record.rest()
        elif self.kind in (pack.CHAR, pack.BLOCK):
            self.device = pack.DEVICE.unpack(record.take(pack.DEVICE.size))
        record.end()
        if self.mode > 0o7777 or max(a_ns, c_ns) >= pack.BILLION or not _is_name(self.name):
            raise _broken("an entry that no folder can have")
        if self.kind == pack.LINK and not (0 < len(self.target) <= MAX_TARGET and b"\0" not in self.target):
            raise _broken("a link that leads nowhere")


class Unpacker:
    """``feed`` it with the bytes, in pieces of any size, then ``finish``. ``places`` are the new cell's, with nothing of
    a player's in them; ``most_files`` is how many entries there may be, ``most_bytes`` how many bytes, None where the
    disk itself says so; ``player`` as for ``Packer``."""

    def __init__(self, places: list[Place], *, most_files: int, most_bytes: int | None) -> None:
        self.places = {place.name: place for place in places}
        self.left_files = min(most_files, pack.MAX_ENTRIES)
        self.left_bytes = most_bytes
        self.until = time.monotonic() + UNPACK_S
        self.newest_first: bool | None = None
        """How this file system lists what is made; None: not known yet."""
        self.links: dict[int, tuple[int, bytes]] = {}
        """Where an inode with several names has one: a folder's descriptor and the name."""
        self.holders: list[int] = []
        self.holder = -1
        """The one of the folder that is being filled, or -1."""
        self.overlay = False
        self.buffer = b""
        self.at = 0
        self.done = False
        self.work = self._all()

    def feed(self, data: bytes) -> None:
        if time.monotonic() > self.until:
            raise FileError(f"to lay out a packed cell takes more than {UNPACK_S:.0f} s")
        self.buffer = self.buffer[self.at :] + data
        self.at = 0
        try:
            if not self.done:
                next(self.work)
        except StopIteration:
            self.done = True
        except (OverflowError, UnicodeError, ValueError, struct.error) as error:
            raise _broken(str(error)) from None
        if self.done and self.at != len(self.buffer):
            raise _broken("there is more after the end")

    def finish(self) -> None:
        if not self.done:
            raise _broken("they end too early")

    def close(self) -> None:
        """Let go of what is open. May be called twice."""
        self.work.close()
        while self.holders:
            os.close(self.holders.pop())
        self.links.clear()

    def _record(self) -> Generator[None, None, _Record]:
        while True:
            have = len(self.buffer) - self.at - pack.LENGTH.size
            if have >= 0:
                (size,) = pack.LENGTH.unpack_from(self.buffer, self.at)
                if not 0 < size <= pack.MAX_RECORD:
                    raise _broken("a record of an impossible length")
                if have >= size:
                    begin = self.at + pack.LENGTH.size
                    self.at = begin + size
                    return _Record(self.buffer[begin : self.at])
            yield

    # ------------------------------------------------------------------------------------------ folders

    def _all(self) -> More:
        if (yield from self._record()).data != pack.MAGIC:
            raise _broken("they begin with something else")
        seen: set[str] = set()
        while True:
            record = yield from self._record()
            if record.data == bytes((pack.END,)):
                return
            root = _Entry(record)
            place = self.places.get(name := root.name.decode("ascii"))
            if root.kind != pack.ROOT or name in seen:
                raise _broken("something else where a folder begins")
            seen.add(name)
            if place is None:
                yield from self._nothing(name)
                continue
            self.overlay = place.fd != place.face
            attributes = yield from self._tree(place.fd)
            self._set_attributes(place.fd, attributes)
            _settle(place.face, root)

    def _nothing(self, name: str) -> More:
        """A folder that cells of this wall do not have."""
        record = yield from self._record()
        if record.data[0] != pack.END:
            raise FileError(f"the packed cell has files in {name!r}, a folder that this one lacks")

    def _tree(self, root: int) -> Generator[None, None, Attributes]:
        """Fill a folder and all below it; the folder's own attributes are left to the caller."""
        fd = os.dup(root)
        stack: list[tuple[list[_Entry], Attributes, _Entry, os.stat_result]] = []
        try:
            inner, attributes = yield from self._fill(fd)
            while True:
                if inner:
                    entry = inner.pop()
                    child = os.open(entry.name, FOLDER, dir_fd=fd)
                    stack.append((inner, attributes, entry, os.fstat(fd)))
                    os.close(fd)
                    fd = child
                    inner, attributes = yield from self._fill(fd)
                elif stack:
                    self._set_attributes(fd, attributes)
                    inner, attributes, entry, above = stack.pop()
                    up = os.open(b"..", FOLDER, dir_fd=fd)
                    _settle(fd, entry)
                    os.close(fd)
                    fd = up
                    if not os.path.samestat(os.fstat(fd), above):
                        raise FileError("a folder was moved while it was filled")
                else:
                    return attributes
        finally:
            os.close(fd)

    def _fill(self, fd: int) -> Generator[None, None, tuple[list[_Entry], Attributes]]:
        """Make all that is in one folder; folders in it stay empty, and are returned, the first one last."""
        entries: list[_Entry] = []
        while True:
            record = yield from self._record()
            if record.data[0] == pack.END:
                record.take(1)
                attributes = record.attributes()
                record.end()
                break
            self.left_files -= 1
            if self.left_files < 0:
                raise FileError("the packed cell has more files than a cell may hold")
            entries.append(_Entry(record))
        self.holder = -1
        self._make_all(fd, entries)
        for entry in entries:
            if entry.kind == pack.FILE:
                yield from self._file(fd, entry)
        return [entry for entry in reversed(entries) if entry.kind == pack.DIR], attributes

    def _make_all(self, fd: int, entries: list[_Entry]) -> None:
        """In the order after which the folder lists them as the packed one did, as far as that follows from it."""
        if self.newest_first is None and len(entries) > 1:
            self.newest_first = _lists_newest_first(fd, entries[-1].name, entries[-2].name)
        firsts = {entry.number: entry for entry in entries if entry.number and entry.kind != pack.HARD}
        for entry in reversed(entries) if self.newest_first else entries:
            if entry.number and (known := self.links.get(entry.number)):
                self._link(known, entry.name, fd)
                continue
            made = entry
            if entry.kind == pack.HARD:
                if entry.number not in firsts:
                    raise _broken("a name of something that is not there")
                made = firsts[entry.number]
            _make(fd, entry.name, made, hides=self.overlay and made.device == (0, 0))
            if entry.number:
                self.links[entry.number] = self._hold(fd), entry.name

    def _hold(self, fd: int) -> int:
        if self.holder < 0:
            if len(self.holders) >= MAX_HOLDERS:
                raise FileError(f"files in more than {MAX_HOLDERS} folders have names elsewhere")
            self.holder = os.dup(fd)
            self.holders.append(self.holder)
        return self.holder

    def _link(self, known: tuple[int, bytes], name: bytes, fd: int) -> None:
        folder, other = known

        def act() -> None:
            os.link(other, name, src_dir_fd=folder, dst_dir_fd=fd, follow_symlinks=False)

        try:
            act()
        except PermissionError:  # that folder has its mode already
            mode = stat.S_IMODE(os.fstat(folder).st_mode)
            os.fchmod(folder, mode | 0o700)
            try:
                act()
            finally:
                os.fchmod(folder, mode)

    # -------------------------------------------------------------------------------------------- files

    def _file(self, parent: int, entry: _Entry) -> More:
        fd = os.open(entry.name, _FILL, dir_fd=parent)
        try:
            end = 0
            while True:
                record = yield from self._record()
                kind, at, last = pack.AT.unpack(record.take(pack.AT.size))
                attributes = record.attributes() if last else []
                data = record.rest()
                if kind != pack.DATA or at + len(data) > entry.size:
                    raise _broken("something else where a file goes on")
                self._count(len(data))
                end = max(end, _write(fd, data, at))
                if last:
                    break
            if end < entry.size:
                os.ftruncate(fd, entry.size)
            self._set_attributes(fd, attributes)
            _settle(fd, entry)
        finally:
            os.close(fd)

    def _count(self, size: int) -> None:
        if self.left_bytes is not None:
            self.left_bytes -= size
            if self.left_bytes < 0:
                raise FileError("the packed cell has more bytes than a cell may hold")

    def _set_attributes(self, fd: int, attributes: Attributes) -> None:
        for name, value in attributes:
            kind = name[len(_OVERLAY) :] if self.overlay and name.startswith(_OVERLAY) else ""
            if kind and kind not in _OVERLAYS_OWN and not kind.startswith("overlay."):
                raise _broken("an attribute that the kernel does not set")
            os.setxattr(fd, name, value)


def _broken(what: str) -> FileError:
    return FileError(f"these bytes are no packed cell ({what})")


def _is_name(name: bytes) -> bool:
    return 0 < len(name) <= MAX_NAME and name not in (b".", b"..") and not {0, 47} & {*name}


def _lists_newest_first(fd: int, one: bytes, other: bytes) -> bool:
    """Whether this folder, in which neither is, lists the one that is made later before the other. Both are gone after."""
    made: list[bytes] = []
    try:
        for name in (one, other):
            os.mkdir(name, 0o700, dir_fd=fd)
            made.append(name)
        listed = [name for name in map(os.fsencode, os.listdir(fd)) if name in made]
        return listed == [other, one]
    except FileExistsError:
        return True
    finally:
        for name in made:
            os.rmdir(name, dir_fd=fd)


def _make(fd: int, name: bytes, entry: _Entry, *, hides: bool) -> None:
    """Make an entry. What can be opened without harm gets its mode and times when it is filled, the others here, but for
    a device that ``hides`` what lies below an upper folder."""
    kind = entry.kind
    if kind == pack.FILE:
        os.close(os.open(name, _MAKE, 0o600, dir_fd=fd))
        return
    if kind == pack.DIR:
        try:
            os.mkdir(name, 0o700, dir_fd=fd)
        except FileExistsError:  # what a cell is born with: the way to where its interpreter is at home
            if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                raise
        return
    if kind == pack.LINK:
        os.symlink(entry.target, name, dir_fd=fd)
    elif kind == pack.FIFO:
        os.mkfifo(name, 0o600, dir_fd=fd)
    elif kind == pack.SOCKET:
        os.mknod(name, stat.S_IFSOCK | 0o600, dir_fd=fd)
    elif kind in (pack.CHAR, pack.BLOCK):
        os.mknod(
            name,
            (stat.S_IFCHR if kind == pack.CHAR else stat.S_IFBLK) | 0o600,
            os.makedev(*entry.device),
            dir_fd=fd,
        )
    else:
        raise _broken("something of no kind")
    if kind == pack.CHAR and hides:
        return
    if entry.owner is not None:
        os.chown(name, *entry.owner, dir_fd=fd, follow_symlinks=False)
    if kind != pack.LINK:
        os.chmod(name, entry.mode, dir_fd=fd)
    os.utime(name, ns=entry.times, dir_fd=fd, follow_symlinks=False)


def _write(fd: int, data: bytes, at: int) -> int:
    """Where it ends."""
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, at)
        at += done
        view = view[done:]
    return at


def _settle(fd: int, entry: _Entry) -> None:
    """Owner, mode and times of what is open, in the order in which none of them undoes another."""
    if entry.owner is not None:
        os.chown(fd, *entry.owner)
    os.fchmod(fd, entry.mode)
    os.utime(fd, ns=entry.times)
