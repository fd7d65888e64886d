"""What lies under one folder, as a whole: walking, listing, measuring, capturing and removing it.

Nothing here recurses or holds more than a few descriptors, however deep the tree; no link is followed; all is bounded
in count, depth and bytes, and what is left out is said. A tree that is moved while it is walked leads nowhere: each
step up is checked against where the step down began. Modes that shut the owner out are lifted.
"""

from __future__ import annotations

import errno

# pathlib would cost each fresh interpreter some milliseconds:
# ruff: noqa: PTH101, PTH119, PTH120
import os
import stat

from .files import FOLDER, O_PATH, FileError, despite_mode, kind_of, lift, look, plain, read, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Skipped = list[tuple[str, str]]

MAX_SEEN = 200_000
"""Directory entries that one walk looks at."""
MAX_PATH_BYTES = 4096
"""Of what is looked at; a longer path can't be opened by name, but can be made step by step."""
MAX_CAPTURED_PATH = 1024
MAX_TEXT = 2 << 20
"""Characters of names in one answer."""
MAX_SKIPPED = 1000
GIT = b".git"
"""The workspace's own: a tool of the player's, and nothing that is handed in."""


class Walk:
    """One walk over a tree, folders before what is in them, names in order of their bytes, with two descriptors.

    ``for path, found in Walk(root)``: ``found`` is the lstat of it. ``complete`` is False afterwards if something was
    not looked at (a cap, a path too long, a folder that moved or can't be opened).
    """

    def __init__(
        self,
        root: int,
        *,
        max_seen: int = MAX_SEEN,
        max_depth: int | None = None,
        enters: Callable[[bytes], bool] = lambda path: True,
        puts_back: bool = False,
    ) -> None:
        """``enters``: whether to look into a folder. ``puts_back``: what shuts the owner out does so again afterwards; for
        a tree that somebody is at work in."""
        self.root = root
        self.puts_back = puts_back
        self.enters = enters
        self.max_seen = max_seen
        self.max_depth = max_depth
        self.seen = 0
        self.complete = True
        self.too_deep: list[bytes] = []
        """Folders that were not entered because of ``max_depth`` (the first of them)."""

    def __iter__(self) -> Iterator[tuple[bytes, os.stat_result]]:
        fd, mode = self._open(self.root, b".", os.fstat(self.root))
        path = b""
        here = os.fstat(fd)
        stack: list[tuple[Iterator[bytes], os.stat_result, bytes, int]] = []
        names = iter(self._names(fd))
        try:
            while True:
                name = next(names, None)
                if name is None:
                    if not stack:
                        return
                    names, here, path, above_mode = stack.pop()
                    fd, mode = self._up(fd, here, mode), above_mode
                    if fd < 0:
                        return
                    continue
                try:
                    found = look(fd, name)
                except OSError:
                    continue  # gone meanwhile
                inner = path + name
                yield inner, found
                if stat.S_ISDIR(found.st_mode) and self.enters(inner) and self._enters(inner, len(stack) + 2):
                    child, child_mode = self._down(fd, name, found)
                    if child >= 0:
                        stack.append((names, here, path, mode))
                        os.close(fd)
                        fd, mode, here, path = child, child_mode, found, inner + b"/"
                        names = iter(self._names(fd))
        finally:
            while fd >= 0 and stack and self.puts_back:
                _, here, _, above_mode = stack.pop()
                fd, mode = self._up(fd, here, mode), above_mode
            if fd >= 0:
                _put_back(fd, mode)
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

    def _open(self, parent: int, name: bytes, found: os.stat_result) -> tuple[int, int]:
        """A descriptor of a folder, and the mode that it is to have again, or -1."""
        mode = stat.S_IMODE(found.st_mode)
        if not self.puts_back or mode & 0o500 == 0o500:
            return despite_mode(parent, name, lambda: os.open(name, FOLDER, dir_fd=parent)), -1
        if name == b"." or not O_PATH:
            lift(parent, name)
            return os.open(name, FOLDER, dir_fd=parent), mode
        return _open_lifted(parent, name, found), mode

    def _down(self, fd: int, name: bytes, found: os.stat_result) -> tuple[int, int]:
        try:
            child, mode = self._open(fd, name, found)
        except OSError:
            self.complete = False
            return -1, -1
        if not os.path.samestat(os.fstat(child), found):
            os.close(child)
            self.complete = False
            return -1, -1
        return child, mode

    def _up(self, fd: int, parent: os.stat_result, mode: int) -> int:
        """The descriptor of the folder above, or -1 if the tree was moved under us: then '..' may lead out."""
        try:
            above = os.open(b"..", FOLDER, dir_fd=fd)
        except OSError:
            above = -1
        _put_back(fd, mode)
        os.close(fd)
        if above >= 0 and not os.path.samestat(os.fstat(above), parent):
            os.close(above)
            above = -1
        if above < 0:
            self.complete = False
        return above


def _open_lifted(parent: int, name: bytes, found: os.stat_result) -> int:
    """A descriptor of the folder that was found under this name, which must be there still: names may be exchanged at any
    moment, and what is lifted must be what is put back."""
    held = os.open(name, O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not os.path.samestat(os.fstat(held), found):
            raise FileNotFoundError(name)
        mode = stat.S_IMODE(found.st_mode)
        os.chmod(f"/proc/self/fd/{held}", mode | 0o700)
        try:
            return os.open(b".", FOLDER, dir_fd=held)
        except OSError:
            os.chmod(f"/proc/self/fd/{held}", mode)
            raise
    finally:
        os.close(held)


def _put_back(fd: int, mode: int) -> None:
    """Undo ``lift``, unless somebody has set another mode meanwhile."""
    if mode >= 0 and stat.S_IMODE(os.fstat(fd).st_mode) == mode | 0o700:
        try:
            os.fchmod(fd, mode)
        except OSError:
            pass  # it is not this user's any more


def listing(root: int, max_entries: int) -> tuple[list[tuple[str, str, int]], int]:
    """Entries (shown path, kind, size; the size of a regular file, else 0) sorted by path, and how many were left
    out: -1 if they could not all be counted. ``GIT`` is no part of it."""
    walk = Walk(root, enters=lambda path: path != GIT)
    entries = sorted(
        (shown(path), kind_of(found.st_mode), found.st_size if stat.S_ISREG(found.st_mode) else 0)
        for path, found in walk
        if path != GIT
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
    """Bytes on disk and number of things under a folder; counts up to ``max_seen``. All is left as it is."""
    size = count = 0
    for _, found in Walk(root, max_seen=max_seen, puts_back=True):
        count += 1
        size += found.st_blocks * 512
    return size, count


def capture(
    root: int, *, max_file_bytes: int, max_bytes: int, max_files: int, max_depth: int
) -> tuple[list[tuple[str, bytes]], Skipped]:
    """Regular files, with one link, with plain names, within the caps, in order of their paths; and what was left
    out, with the reason. ``max_depth`` counts the parts of a path. ``GIT`` is no part of it."""
    return _capture(root, -1, max_file_bytes, max_bytes, max_files, max_depth)[:2]


def changes(
    root: int, upper: int, *, max_file_bytes: int, max_bytes: int, max_files: int, max_depth: int
) -> tuple[list[tuple[str, bytes]], Skipped, list[str]]:
    """As :func:`capture`, of an overlay, whose folder ``upper`` holds what was changed: only that is read, and what lies
    beside it is named: a file, or a folder with all that it had. A folder that is not in ``upper`` was never written
    to, so nothing in it is looked at; of one that is in both, the names are those that are left."""
    return _capture(root, upper, max_file_bytes, max_bytes, max_files, max_depth)


def _capture(
    root: int, upper: int, max_file_bytes: int, max_bytes: int, max_files: int, max_depth: int
) -> tuple[list[tuple[str, bytes]], Skipped, list[str]]:
    walk = Walk(root, max_depth=max_depth, enters=lambda path: path != GIT and _changed(upper, path))
    skipped: Skipped = []
    candidates: list[bytes] = []
    kept: list[str] = []
    for path, found in walk:
        if path == GIT:
            continue
        if upper >= 0 and not _changed(upper, path):
            kept.append(os.fsdecode(path))
        elif not plain(path):
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
    files = _read_all(root, candidates, skipped, max_file_bytes, max_bytes, max_files)
    return files, _bounded(sorted(skipped)), kept


def _changed(upper: int, path: bytes) -> bool:
    """Whether something of an overlay lies in its upper folder. True where there is no overlay. All folders above it do:
    no link is followed."""
    if upper < 0:
        return True
    try:
        os.stat(path, dir_fd=upper, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # in doubt it is looked at
    return True


def _read_all(
    root: int, paths: list[bytes], skipped: Skipped, max_file_bytes: int, max_bytes: int, max_files: int
) -> list[tuple[str, bytes]]:
    """The files with their bytes, in order of their paths, as far as the caps let them; the others are added to
    ``skipped``."""
    files: list[tuple[str, bytes]] = []
    total = text = 0
    for raw in sorted(paths):
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
    return files


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
        parent = os.open(os.path.dirname(path), FOLDER)
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
            up = os.open(b"..", FOLDER, dir_fd=fd)
            os.close(fd)
            fd = up
            if not os.path.samestat(os.fstat(fd), above):
                raise OSError(errno.ESTALE, "the folder was moved")
            os.rmdir(done, dir_fd=fd)
    finally:
        os.close(fd)


def _enter(parent: int, name: bytes) -> int:
    """Open a folder, and give the owner all rights on it, so that what is in it can be removed."""
    fd = despite_mode(parent, name, lambda: os.open(name, FOLDER, dir_fd=parent))
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
