"""File operations under one folder that can't be led out of it, whatever lies there.

Each path is walked part by part from the folder's descriptor with O_NOFOLLOW, so no link is ever followed; nothing
blocks on a FIFO or opens a device; nothing recurses, and few descriptors are open at a time, however deep the tree.
What a name's bytes are is the player's choice: what is shown is escaped. Modes that shut the owner out are lifted
where they are in the way, so root and an ordinary user see the same. Raises :class:`FileError` for what the player can mend; other OSErrors are the machine's.
"""

# pathlib would cost each fresh interpreter some milliseconds:
# ruff: noqa: PTH101, PTH119, PTH120
from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    T = TypeVar("T")
    Skipped = list[tuple[str, str]]

MAX_SEEN = 200_000
"""Directory entries that one walk looks at."""
MAX_PATH_BYTES = 4096
"""Of what is looked at; a longer path can't be opened by name, but can be made step by step."""
MAX_CAPTURED_PATH = 1024
MAX_TEXT = 2 << 20
"""Characters of names in one answer."""
MAX_SKIPPED = 1000

_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_O_PATH = getattr(os, "O_PATH", 0)
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
        found = _look(parent, name)
    except FileNotFoundError:
        raise FileError(f"no file {path!r}; list the files to see what there is") from None
    except OSError as error:
        raise FileError(f"{path!r} can't be read ({error.strerror})") from None
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path!r} is a {kind_of(found.st_mode)}, not a regular file")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = _despite_mode(parent, name, lambda: os.open(name, flags, dir_fd=parent))
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
            found = _look(parent, name)
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


def _replace(parent: int, name: bytes, data: bytes, mode: int, path: str) -> None:
    temp = b".tiltyard-" + os.urandom(8).hex().encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = _despite_mode(parent, b".", lambda: os.open(temp, flags, 0o600, dir_fd=parent))
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
                _despite_mode(fd, b".", lambda: os.mkdir(part, 0o755, dir_fd=fd))
            except FileExistsError:
                pass
        return _despite_mode(fd, part, lambda: os.open(part, _DIR, dir_fd=fd))
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


def _despite_mode(parent: int, name: bytes, act: Callable[[], T]) -> T:
    """``act()``; if modes forbid it, once more after giving the owner its rights on ``parent`` and ``name`` in it."""
    try:
        return act()
    except PermissionError:
        for target in {b".", name}:
            _lift(parent, target)
        return act()


def _look(parent: int, name: bytes) -> os.stat_result:
    return _despite_mode(parent, b".", lambda: os.stat(name, dir_fd=parent, follow_symlinks=False))


def _lift(parent: int, name: bytes) -> None:
    """Give the owner all rights on a file or folder, never through a link."""
    try:
        found = os.fstat(parent) if name == b"." else os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return
        mode = stat.S_IMODE(found.st_mode) | (0o700 if stat.S_ISDIR(found.st_mode) else 0o600)
        if name == b".":
            os.fchmod(parent, mode)
        elif _O_PATH:
            fd = os.open(name, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                if not stat.S_ISLNK(os.fstat(fd).st_mode):
                    os.chmod(f"/proc/self/fd/{fd}", mode)
            finally:
                os.close(fd)
        else:
            os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
    except (OSError, NotImplementedError):
        pass  # the act that follows says what is wrong


# ------------------------------------------------------------------------------------------------ many paths


class Walk:
    """One walk over a tree, folders before what is in them, names in order of their bytes, with two descriptors.

    ``for path, found in Walk(root)``: ``found`` is the lstat of it. ``complete`` is False afterwards if something was
    not looked at (a cap, a path too long, a folder that moved or can't be opened).
    """

    def __init__(self, root: int, *, max_seen: int = MAX_SEEN, max_depth: int | None = None) -> None:
        self.root = root
        self.max_seen = max_seen
        self.max_depth = max_depth
        self.seen = 0
        self.complete = True
        self.too_deep: list[bytes] = []
        """Folders that were not entered because of ``max_depth`` (the first of them)."""

    def __iter__(self) -> Iterator[tuple[bytes, os.stat_result]]:
        fd = _despite_mode(self.root, b".", lambda: os.open(b".", _DIR, dir_fd=self.root))
        path = b""
        here = os.fstat(fd)
        stack: list[tuple[Iterator[bytes], os.stat_result, bytes]] = []
        names = iter(self._names(fd))
        try:
            while True:
                name = next(names, None)
                if name is None:
                    if not stack:
                        return
                    names, here, path = stack.pop()
                    fd = self._up(fd, here)
                    if fd < 0:
                        return
                    continue
                try:
                    found = _look(fd, name)
                except OSError:
                    continue  # gone meanwhile
                inner = path + name
                yield inner, found
                if stat.S_ISDIR(found.st_mode) and self._enters(inner, len(stack) + 2):
                    child = self._down(fd, name, found)
                    if child >= 0:
                        stack.append((names, here, path))
                        os.close(fd)
                        fd, here, path = child, found, inner + b"/"
                        names = iter(self._names(fd))
        finally:
            if fd >= 0:
                os.close(fd)

    def _names(self, fd: int) -> list[bytes]:
        names: list[bytes] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                if self.seen >= self.max_seen:
                    self.complete = False
                    break
                self.seen += 1
                names.append(os.fsencode(entry.name))
        names.sort()
        return names

    def _enters(self, path: bytes, depth: int) -> bool:
        if self.max_depth is not None and depth > self.max_depth:
            if len(self.too_deep) < MAX_SKIPPED:
                self.too_deep.append(path)
            self.complete = False
            return False
        if len(path) >= MAX_PATH_BYTES:
            self.complete = False
            return False
        return True

    def _down(self, fd: int, name: bytes, found: os.stat_result) -> int:
        try:
            child = _despite_mode(fd, name, lambda: os.open(name, _DIR, dir_fd=fd))
        except OSError:
            self.complete = False
            return -1
        if not os.path.samestat(os.fstat(child), found):
            os.close(child)
            self.complete = False
            return -1
        return child

    def _up(self, fd: int, parent: os.stat_result) -> int:
        """The descriptor of the folder above, or -1 if the tree was moved under us: then '..' may lead out."""
        try:
            above = os.open(b"..", _DIR, dir_fd=fd)
        except OSError:
            above = -1
        os.close(fd)
        if above >= 0 and not os.path.samestat(os.fstat(above), parent):
            os.close(above)
            above = -1
        if above < 0:
            self.complete = False
        return above


def listing(root: int, max_entries: int) -> tuple[list[tuple[str, str, int]], int]:
    """Entries (shown path, kind, size; the size of a regular file, else 0) sorted by path, and how many were left
    out: -1 if they could not all be counted."""
    walk = Walk(root)
    entries = sorted(
        (shown(path), kind_of(found.st_mode), found.st_size if stat.S_ISREG(found.st_mode) else 0)
        for path, found in walk
    )
    kept: list[tuple[str, str, int]] = []
    text = 0
    for entry in entries[:max_entries]:
        text += len(entry[0])
        if text > MAX_TEXT:
            break
        kept.append(entry)
    return kept, len(entries) - len(kept) if walk.complete else -1


def usage(root: int, max_seen: int) -> tuple[int, int]:
    """Bytes on disk and number of things under a folder; counts up to ``max_seen``."""
    size = count = 0
    for _, found in Walk(root, max_seen=max_seen):
        count += 1
        size += found.st_blocks * 512
    return size, count


def capture(
    root: int, *, max_file_bytes: int, max_bytes: int, max_files: int, max_depth: int
) -> tuple[list[tuple[str, bytes]], Skipped]:
    """Regular files, with one link, with plain names, within the caps, in order of their paths; and what was left
    out, with the reason. ``max_depth`` counts the parts of a path."""
    walk = Walk(root, max_depth=max_depth)
    skipped: Skipped = []
    candidates: list[bytes] = []
    for path, found in walk:
        if not plain(path):
            skipped.append((shown(path), "a name that is no plain text"))
        elif len(path) > MAX_CAPTURED_PATH:
            skipped.append((shown(path), f"a path of more than {MAX_CAPTURED_PATH} bytes"))
        elif stat.S_ISDIR(found.st_mode):
            continue
        elif not stat.S_ISREG(found.st_mode):
            skipped.append((shown(path), kind_of(found.st_mode)))
        elif found.st_nlink != 1:
            skipped.append((shown(path), "a hard link"))
        elif found.st_size > max_file_bytes:
            skipped.append((shown(path), f"larger than {max_file_bytes} bytes"))
        else:
            candidates.append(path)
    skipped.extend((shown(p), f"deeper than {max_depth} folders") for p in walk.too_deep)
    if not walk.complete and not walk.too_deep:
        skipped.append(("…", "not everything could be looked at"))
    files: list[tuple[str, bytes]] = []
    total = text = 0
    for raw in sorted(candidates):
        name = raw.decode()
        text += len(name)
        if len(files) >= max_files or text > MAX_TEXT:
            skipped.append((shown(raw), f"more than {max_files} files"))
            continue
        try:
            data = read(root, name, min(max_file_bytes, max_bytes - total))
        except FileError:
            skipped.append(
                (shown(raw), f"the files together are larger than {max_bytes} bytes, or unreadable")
            )
            continue
        total += len(data)
        files.append((name, data))
    return files, _bounded(sorted(skipped))


def _bounded(skipped: Skipped) -> Skipped:
    kept: Skipped = []
    text = 0
    for name, reason in skipped:
        if len(kept) >= MAX_SKIPPED or (text := text + len(name)) > MAX_TEXT // 4:
            kept.append(("…", f"and {len(skipped) - len(kept)} more"))
            break
        kept.append((name, reason))
    return kept


def remove(path: str) -> bool:
    """Remove a folder and everything in it, whatever it is; never follows a link. True if it is gone. Never raises."""
    try:
        parent = os.open(os.path.dirname(path), _DIR)
    except OSError:
        return not os.path.lexists(path)
    try:
        name = os.fsencode(os.path.basename(path))
        for _ in range(5):
            try:
                if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=parent)
                    return True
                _remove_below(parent, name)
                os.rmdir(name, dir_fd=parent)
            except FileNotFoundError:
                return True
            except OSError:
                continue  # somebody still writes into it, or moved it: look again
        return not os.path.lexists(path)
    finally:
        os.close(parent)


def _remove_below(parent: int, name: bytes) -> None:
    fd = _enter(parent, name)
    stack: list[tuple[list[bytes], bytes, os.stat_result]] = []
    try:
        names = _names_to_remove(fd)
        while True:
            deeper = _clear(fd, names)
            if deeper is not None:
                child = _enter(fd, deeper)
                stack.append((names, deeper, os.fstat(fd)))
                os.close(fd)
                fd, names = child, _names_to_remove(child)
                continue
            if not stack:
                return
            names, done, above = stack.pop()
            up = os.open(b"..", _DIR, dir_fd=fd)
            os.close(fd)
            fd = up
            if not os.path.samestat(os.fstat(fd), above):
                raise OSError(errno.ESTALE, "the folder was moved")
            os.rmdir(done, dir_fd=fd)
    finally:
        os.close(fd)


def _enter(parent: int, name: bytes) -> int:
    """Open a folder, and give the owner all rights on it, so that what is in it can be removed."""
    fd = _despite_mode(parent, name, lambda: os.open(name, _DIR, dir_fd=parent))
    if os.fstat(fd).st_mode & 0o700 != 0o700:
        os.fchmod(fd, 0o700)
    return fd


def _names_to_remove(fd: int) -> list[bytes]:
    with os.scandir(fd) as entries:
        return [os.fsencode(e.name) for e in entries]


def _clear(fd: int, names: list[bytes]) -> bytes | None:
    """Remove what ``names`` name, taking them off the list; stops at a folder that is not empty and returns it."""
    while names:
        name = names.pop()
        if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            try:
                os.rmdir(name, dir_fd=fd)
            except OSError:
                return name
        else:
            os.unlink(name, dir_fd=fd)
    return None
