"""File operations under one folder that can't be led out of it, whatever lies there: one path at a time.

Each path is walked part by part from the folder's descriptor with O_NOFOLLOW, so no link is ever followed; nothing
blocks on a FIFO or opens a device. What a name's bytes are is the player's choice: what is shown is escaped. Modes that shut the owner out are lifted
where they are in the way, so root and an ordinary user see the same. Raises :class:`FileError` for what the player can mend; other OSErrors are the machine's.
"""

# pathlib would cost each fresh interpreter some milliseconds:
# ruff: noqa: PTH101
from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    T = TypeVar("T")

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
O_PATH = getattr(os, "O_PATH", 0)
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


class FileError(Exception):
    """What the player asked for can't be done; the text is for its eyes."""


def kind_of(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "other")


def shown(path: bytes) -> str:
    """Text that is safe to show: bytes that are no UTF-8 and characters that print nothing are escaped."""
    text = path.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if _visible(c) else _escape(c) for c in text)


def _visible(c: str) -> bool:
    return c.isprintable() or (c.isspace() and ord(c) >= 0xA0 and c not in "\u2028\u2029")


def _escape(c: str) -> str:
    n = ord(c)
    return f"\\x{n:02x}" if n < 0x100 else f"\\u{n:04x}" if n < 0x10000 else f"\\U{n:08x}"


def plain(name: bytes) -> bool:
    """Whether a name is UTF-8 without control characters."""
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in text)


def split(path: str) -> list[bytes]:
    """The parts of a workspace path. FileError if it is absolute, empty, or has '.' or '..' in it."""
    raw = os.fsencode(path)
    parts = raw.split(b"/")
    if not raw or b"\0" in raw or any(p in (b"", b".", b"..") for p in parts):
        raise FileError(
            f"{shown(raw)!r} is no path in the workspace; give one like 'solution.py' or 'pkg/core.py'"
        )
    return parts


# ------------------------------------------------------------------------------------------------ one path


def read(root: int, path: str, max_bytes: int) -> bytes:
    """The bytes of a regular file of at most ``max_bytes``."""
    parts = split(path)
    parent = open_folder(root, parts[:-1], path)
    try:
        fd = _open_regular(parent, parts[-1], path)
    finally:
        os.close(parent)
    try:
        size = os.fstat(fd).st_size
        if size > max_bytes:
            raise FileError(f"{path!r} is too big: {size} bytes, at most {max_bytes} can be read")
        return _read_up_to(fd, max_bytes, path)
    finally:
        os.close(fd)


def _read_up_to(fd: int, max_bytes: int, path: str) -> bytes:
    parts: list[bytes] = []
    left = max_bytes + 1
    while left > 0 and (part := os.read(fd, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    if left <= 0:  # it grew while it was read
        raise FileError(f"{path!r} is too big: more than {max_bytes} bytes")
    return b"".join(parts)


def _open_regular(parent: int, name: bytes, path: str) -> int:
    try:
        found = look(parent, name)
    except FileNotFoundError:
        raise FileError(f"no file {path!r}; list the files to see what there is") from None
    except OSError as error:
        raise FileError(f"{path!r} can't be read ({error.strerror})") from None
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path!r} is a {kind_of(found.st_mode)}, not a regular file")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = despite_mode(parent, name, lambda: os.open(name, flags, dir_fd=parent))
    except OSError as error:
        raise FileError(f"{path!r} can't be read ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # swapped between the two looks
        os.close(fd)
        raise FileError(f"{path!r} is not a regular file")
    return fd


def write(root: int, path: str, data: bytes) -> None:
    """Create or replace a regular file: a new one is renamed over whatever is there, so nothing is written through
    a link, to a FIFO or into a hard-linked file. OSError with ENOSPC or EDQUOT comes through: whose it is, is known
    to the caller."""
    parts = split(path)
    name = parts[-1]
    parent = open_folder(root, parts[:-1], path, create=True)
    try:
        mode = 0o644
        try:
            found = look(parent, name)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise FileError(f"{path!r} can't be written ({error.strerror})") from None
        else:
            if stat.S_ISDIR(found.st_mode):
                raise FileError(f"{path!r} is a folder; choose another name, or write a file in it")
            if stat.S_ISREG(found.st_mode):
                mode = stat.S_IMODE(found.st_mode) & 0o777 | 0o600
        _replace(parent, name, data, mode, path)
    finally:
        os.close(parent)


def write_each(root: int, manifest: Iterable[tuple[str, int]], block: bytes) -> None:
    """Write several files, given by path and size; ``block`` has their bytes, one after the other."""
    at = 0
    for path, size in manifest:
        write(root, path, block[at : at + size])
        at += size


def write_new(root: int, manifest: Iterable[tuple[str, int]], block: bytes) -> None:
    """As :func:`write_each`, in a folder that is empty and that nobody else has a hand in yet: with fewer looks.
    FileError: a path twice, or as a file and as a folder."""
    folders: dict[bytes, int] = {b"": root}
    view = memoryview(block)
    at = 0
    try:
        for path, size in manifest:
            above, _, name = b"/".join(split(path)).rpartition(b"/")
            parent = folders.get(above)
            if parent is None:
                parent = _new_folder(folders, above)
            _write_new(parent, name, view[at : at + size])
            at += size
    except (FileExistsError, NotADirectoryError):
        raise FileError(
            f"{path!r} is there already, or is a file and a folder; expected one of the two"
        ) from None
    finally:
        view.release()
        for fd in folders.values():
            if fd != root:
                os.close(fd)


MAX_FOLDERS_OPEN = 64


def _new_folder(folders: dict[bytes, int], path: bytes) -> int:
    """A descriptor of a folder that is made if it is not there; ``folders`` are those that are open."""
    parts = path.split(b"/")
    for n in range(len(parts)):
        upto = b"/".join(parts[: n + 1])
        if upto in folders:
            continue
        above = folders[b"/".join(parts[:n])]
        try:
            os.mkdir(parts[n], 0o755, dir_fd=above)
        except FileExistsError:
            pass
        fd = os.open(parts[n], FOLDER, dir_fd=above)
        folders[upto] = fd
    if len(folders) > MAX_FOLDERS_OPEN:
        for old in [p for p in folders if p and not path.startswith(p)]:
            os.close(folders.pop(old))
    return folders[path]


def _write_new(parent: int, name: bytes, data: memoryview) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o644, dir_fd=parent)
    try:
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)


def remove(root: int, path: str) -> None:
    """Remove a file, or a folder that is empty, if it is there."""
    parts = split(path)
    try:
        parent = open_folder(root, parts[:-1], path)
    except FileError:
        return
    try:
        is_folder = stat.S_ISDIR(look(parent, parts[-1]).st_mode)
        act = os.rmdir if is_folder else os.unlink
        despite_mode(parent, b".", lambda: act(parts[-1], dir_fd=parent))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
            raise
    finally:
        os.close(parent)


def _replace(parent: int, name: bytes, data: bytes, mode: int, path: str) -> None:
    temp = b".tiltyard-" + os.urandom(8).hex().encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = despite_mode(parent, b".", lambda: os.open(temp, flags, 0o600, dir_fd=parent))
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                os.fchmod(fd, mode)
            finally:
                os.close(fd)
            os.rename(temp, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            try:
                os.unlink(temp, dir_fd=parent)
            except OSError:
                pass
            raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENFILE, errno.EMFILE):
            raise
        raise FileError(f"{path!r} can't be written ({error.strerror})") from None


def open_folder(root: int, parts: list[bytes], path: str, *, create: bool = False) -> int:
    """A descriptor of the folder that ``parts`` name, walked without following a link."""
    fd = os.dup(root)
    try:
        for n, part in enumerate(parts):
            deeper = _open_part(fd, part, b"/".join(parts[: n + 1]), path, create)
            os.close(fd)
            fd = deeper
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open_part(fd: int, part: bytes, upto: bytes, path: str, create: bool) -> int:
    try:
        if create:
            try:
                despite_mode(fd, b".", lambda: os.mkdir(part, 0o755, dir_fd=fd))
            except FileExistsError:
                pass
        return despite_mode(fd, part, lambda: os.open(part, FOLDER, dir_fd=fd))
    except FileNotFoundError:
        raise FileError(f"no file {path!r}; there is no folder {shown(upto)!r}") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE):
            raise
        what = error.strerror or str(error)
        try:
            what = f"{shown(upto)!r} is a {kind_of(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode)}"
        except OSError:
            pass
        if what.endswith("folder"):
            what = f"{shown(upto)!r}: {error.strerror}"
        raise FileError(f"{path!r} can't be reached: {what}, not a folder of the workspace") from None


def despite_mode(parent: int, name: bytes, act: Callable[[], T]) -> T:
    """``act()``; if modes forbid it, once more after giving the owner its rights on ``parent`` and ``name`` in it."""
    try:
        return act()
    except PermissionError:
        for target in {b".", name}:
            lift(parent, target)
        return act()


def look(parent: int, name: bytes) -> os.stat_result:
    return despite_mode(parent, b".", lambda: os.stat(name, dir_fd=parent, follow_symlinks=False))


def lift(parent: int, name: bytes) -> None:
    """Give the owner all rights on a file or folder, never through a link."""
    try:
        found = os.fstat(parent) if name == b"." else os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return
        mode = stat.S_IMODE(found.st_mode) | (0o700 if stat.S_ISDIR(found.st_mode) else 0o600)
        if name == b".":
            os.fchmod(parent, mode)
        elif O_PATH:
            fd = os.open(name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                if not stat.S_ISLNK(os.fstat(fd).st_mode):
                    os.chmod(f"/proc/self/fd/{fd}", mode)
            finally:
                os.close(fd)
        else:
            os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
    except (OSError, NotImplementedError):
        pass  # the act that follows says what is wrong
