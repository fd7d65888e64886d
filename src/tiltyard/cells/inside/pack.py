"""A cell's writable folders as one run of bytes, made while no process of the player lives. ``unpack`` is the other half.

Exact: what a file holds, with its holes; folders, empty ones too; links as links; hard links among what is packed;
FIFOs, sockets, device nodes; modes, owners, times of access and change to the nanosecond, attributes (``user.*`` and
access lists); names of any bytes; the order in which a folder lists them. Not kept, for no system lets one: inode
numbers, and the times at which an inode was made or changed. Of an overlay only the upper folder is packed, as it lies.

The cell stays as it is: modes that shut the owner out are lifted for a moment and put back, times of access are left
alone where the system lets one. Nothing recurses, no link is followed, nothing blocks on a FIFO or opens a device; all
is bounded in bytes, entries and seconds. :class:`files.FileError` says why a cell can't be packed.

The bytes are records, each with its length before it; the first is ``MAGIC``. A writable folder begins with ``ROOT``.
A folder is its entries in the order of its listing, ``END``, then ``DATA`` of each file among them, of which the last
says so, then each folder among them. ``END`` in place of a root ends it all.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time

from .files import FOLDER, FileError, kind_of, lift, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    Found = tuple[bytes, os.stat_result]

MAGIC = b"tiltyard cell 1"
ROOT, END, FILE, DIR, LINK, FIFO, SOCKET, CHAR, BLOCK, HARD, DATA = range(11)
LENGTH = struct.Struct("!I")
META = struct.Struct("!BHHqIqIIB")
"""Of an entry: its kind, the bytes of its name, its mode, the times of access and of change (seconds and nanoseconds
each), the number of its inode if that has several names, else 0, and whether OWNERS follow."""
OWNERS = struct.Struct("!II")
SIZE = struct.Struct("!Q")
DEVICE = struct.Struct("!II")
AT = struct.Struct("!BQB")
"""Of DATA: its kind, where it goes, and whether it is the last of its file; then attributes come before it."""
COUNT = struct.Struct("!H")
ATTRIBUTE = struct.Struct("!HI")
"""The bytes of an attribute's name and of its value."""
MAX_DATA = 1 << 18
MAX_RECORD = 4 << 20
MAX_ENTRIES = 200_000
BILLION = 10**9
PACK_S = 60.0
ATTRIBUTES = ("user.", "system.posix_acl_")
_O_NOATIME = getattr(os, "O_NOATIME", 0)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: DIR,
    stat.S_IFLNK: LINK,
    stat.S_IFIFO: FIFO,
    stat.S_IFSOCK: SOCKET,
    stat.S_IFCHR: CHAR,
    stat.S_IFBLK: BLOCK,
}


class Place:
    """One writable folder of a cell: its name on every wall, a descriptor of where its entries are, and one of what has
    its mode and times. The two differ where it is an overlay."""

    __slots__ = ("face", "fd", "name")

    def __init__(self, name: str, fd: int, face: int) -> None:
        self.name = name
        self.fd = fd
        self.face = face


class Packer:
    """``for piece in Packer(places, …)``: the bytes, piece by piece. ``player`` is whose the files are that a keeper
    makes (uid, gid); ``own_disk``: the folders are file systems of their own, and what is mounted in them is no part of
    them; ``not_in``: bytes that nothing may hold, for in a copy they would mean something else."""

    def __init__(
        self,
        places: list[Place],
        *,
        max_bytes: int,
        player: tuple[int, int],
        own_disk: bool = False,
        not_in: bytes = b"",
    ) -> None:
        self.places = places
        self.left = self.max_bytes = max_bytes
        self.player = player
        self.own_disk = own_disk
        self.not_in = not_in
        self.until = time.monotonic() + PACK_S
        self.entries = 0
        self.numbers: dict[tuple[int, int], int] = {}
        self.device = -1
        self.overlay = False

    def __iter__(self) -> Iterator[bytes]:
        yield self._record(MAGIC)
        for place in self.places:
            name = place.name.encode()
            self.device = os.fstat(place.fd).st_dev
            self.overlay = place.fd != place.face
            yield self._record(self._meta(ROOT, name, os.fstat(place.face), 0))
            yield from self._tree(place.fd)
        yield self._record(bytes((END,)))

    def _record(self, payload: bytes) -> bytes:
        self.left -= LENGTH.size + len(payload)
        if self.left < 0:
            raise FileError(f"what the cell holds takes more than {self.max_bytes} bytes")
        if len(payload) > MAX_RECORD:
            raise FileError(f"a file has more than {MAX_RECORD} bytes of attributes")
        if time.monotonic() > self.until:
            raise FileError(f"to look at all that the cell holds takes more than {PACK_S:.0f} s")
        return LENGTH.pack(len(payload)) + payload

    def _meta(self, kind: int, name: bytes, found: os.stat_result, number: int) -> bytes:
        mode = stat.S_IMODE(found.st_mode)
        # a link can't be read without a trace
        accessed = found.st_mtime_ns if kind == LINK else found.st_atime_ns
        times = *divmod(accessed, BILLION), *divmod(found.st_mtime_ns, BILLION)
        owner = found.st_uid, found.st_gid
        others = owner != self.player
        packed = META.pack(kind, len(name), mode, *times, number, others) + name
        return packed + OWNERS.pack(*owner) if others else packed

    # ------------------------------------------------------------------------------------------ folders

    def _tree(self, root: int) -> Iterator[bytes]:
        fd, mode = _open(root, b".", os.fstat(root), FOLDER)
        stack: list[tuple[list[Found], os.stat_result, int]] = []
        try:
            inner = yield from self._folder(fd)
            while True:
                if inner:
                    name, found = inner.pop()
                    child, child_mode = _open(fd, name, found, FOLDER)
                    stack.append((inner, os.fstat(fd), mode))
                    os.close(fd)
                    fd, mode = child, child_mode
                    inner = yield from self._folder(fd)
                elif stack:
                    inner, above, mode_above = stack.pop()
                    fd, mode = _up(fd, above, mode), mode_above
                else:
                    return
        finally:  # whatever happened, no mode stays lifted
            try:
                while stack:
                    _, above, mode_above = stack.pop()
                    fd, mode = _up(fd, above, mode), mode_above
            finally:
                _put_back(fd, mode)
                os.close(fd)

    def _folder(self, fd: int) -> Generator[bytes, None, list[Found]]:
        """What is in a folder, but for what is in the folders in it, which are returned, the first one last."""
        names = os.listdir(fd)
        self.entries += len(names)
        if self.entries > MAX_ENTRIES:
            raise FileError(f"the cell holds more than {MAX_ENTRIES} files and folders")
        regular: list[Found] = []
        folders: list[Found] = []
        for name in map(os.fsencode, names):
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if self.own_disk and found.st_dev != self.device:
                continue
            yield self._record(self._entry(fd, name, found, regular, folders))
        yield self._record(bytes((END,)) + self._attributes(fd))
        for name, found in regular:
            yield from self._file(fd, name, found)
        folders.reverse()
        return folders

    def _entry(
        self, fd: int, name: bytes, found: os.stat_result, regular: list[Found], folders: list[Found]
    ) -> bytes:
        kind = _KINDS.get(stat.S_IFMT(found.st_mode))
        if kind is None:
            raise FileError(f"{shown(name)!r} is a {kind_of(found.st_mode)}, which can't be packed")
        if kind == DIR:
            folders.append((name, found))
            return self._meta(kind, name, found, 0)
        if self.overlay and kind == CHAR and found.st_rdev == 0:  # the kernel's own: it hides what lies below
            return META.pack(kind, len(name), 0, 0, 0, 0, 0, 0, False) + name + DEVICE.pack(0, 0)
        number = 0
        if found.st_nlink > 1:
            inode = found.st_dev, found.st_ino
            known = self.numbers.get(inode, 0)
            if known:
                return META.pack(HARD, len(name), 0, 0, 0, 0, 0, known, False) + name
            number = self.numbers[inode] = len(self.numbers) + 1
        meta = self._meta(kind, name, found, number)
        if kind == FILE:
            regular.append((name, found))
            return meta + SIZE.pack(found.st_size)
        if kind == LINK:
            return meta + self._checked(os.fsencode(os.readlink(name, dir_fd=fd)), b"")
        if kind in (CHAR, BLOCK):
            return meta + DEVICE.pack(os.major(found.st_rdev), os.minor(found.st_rdev))
        return meta

    # -------------------------------------------------------------------------------------------- files

    def _file(self, parent: int, name: bytes, found: os.stat_result) -> Iterator[bytes]:
        fd, mode = _open(parent, name, found, _READ)
        try:
            size = found.st_size
            rest = b""
            if size <= MAX_DATA and found.st_blocks * 512 >= size:
                rest = os.read(fd, size) if size else b""
                if len(rest) != size:
                    raise FileError(f"{shown(name)!r} changed while it was read")
                self._checked(rest, b"")
            else:
                tail = b""
                for at, data in _extents(fd, size):
                    tail = self._checked(data, tail)
                    yield self._record(AT.pack(DATA, at, False) + data)
            yield self._record(AT.pack(DATA, 0, True) + self._attributes(fd) + rest)
        finally:
            _put_back(fd, mode)
            os.close(fd)

    def _checked(self, data: bytes, tail: bytes) -> bytes:
        """The data, if ``not_in`` is not in it; after ``tail``, the end of what came before."""
        if self.not_in and self.not_in in tail[-len(self.not_in) :] + data:
            raise FileError("a file or a link in it names the folder that this one cell lies in")
        return data

    def _attributes(self, fd: int) -> bytes:
        found: list[bytes] = []
        for name in _names_of_attributes(fd):
            raw, value = os.fsencode(name), os.getxattr(fd, name)
            self._checked(value, b"")
            found.append(ATTRIBUTE.pack(len(raw), len(value)) + raw + value)
        return COUNT.pack(len(found)) + b"".join(found)


def _names_of_attributes(fd: int) -> list[str]:
    try:
        return sorted(name for name in os.listxattr(fd) if name.startswith(ATTRIBUTES))
    except (AttributeError, OSError):  # no such thing on this system, or on this file system
        return []


def _extents(fd: int, size: int) -> Iterator[tuple[int, bytes]]:
    """What a file holds, without its holes, as places and bytes."""
    at = 0
    while at < size:
        begin, end = _data_from(fd, at, size)
        while begin < end:
            data = os.pread(fd, min(MAX_DATA, end - begin), begin)
            if not data:
                return
            yield begin, data
            begin += len(data)
        at = end


def _data_from(fd: int, at: int, size: int) -> tuple[int, int]:
    """Where the next bytes are, from ``at`` on, that are no hole; (size, size): nowhere."""
    try:
        begin = os.lseek(fd, at, os.SEEK_DATA)
        return begin, min(size, os.lseek(fd, begin, os.SEEK_HOLE))
    except OSError as error:
        return (size, size) if error.errno == errno.ENXIO else (at, size)
    except AttributeError:  # a system without holes
        return at, size


# ----------------------------------------------------------------------------------------- modes, for a moment


def _open(parent: int, name: bytes, found: os.stat_result, flags: int) -> tuple[int, int]:
    """A descriptor of what ``found`` says, and its mode if that had to be lifted, else -1."""
    needed = 0o500 if stat.S_ISDIR(found.st_mode) else 0o400
    mode = stat.S_IMODE(found.st_mode)
    lifted = -1
    if mode & needed != needed:
        lift(parent, name)
        lifted = mode
    try:
        fd = os.open(name, flags | _O_NOATIME, dir_fd=parent)
    except PermissionError:  # not its owner
        fd = os.open(name, flags, dir_fd=parent)
    if not os.path.samestat(os.fstat(fd), found):
        os.close(fd)
        raise FileError(f"{shown(name)!r} was moved while it was looked at")
    return fd, lifted


def _put_back(fd: int, mode: int) -> None:
    if mode >= 0:
        os.fchmod(fd, mode)


def _up(fd: int, above: os.stat_result, mode: int) -> int:
    """The descriptor of the folder above, which ``above`` is; ``fd`` gets its mode back and is closed."""
    up = os.open(b"..", FOLDER | _O_NOATIME, dir_fd=fd) if _O_NOATIME else os.open(b"..", FOLDER, dir_fd=fd)
    if not os.path.samestat(os.fstat(up), above):
        os.close(up)
        raise FileError("a folder was moved while it was looked at")
    _put_back(fd, mode)
    os.close(fd)
    return up
