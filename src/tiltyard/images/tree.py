"""Images as folders, in the cache of this machine: made once, shared, and never changed by anyone.

Files have the modes that they would have in any workspace (0644, 0755): cells in which a tree lies below the workspace
see it as the player's own, and no cell can reach the folder itself.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tiltyard.errors import ArenaError, UsageError

CACHE = "TILTYARD_CACHE"
_held: dict[Path, int] = {}
"""Locks on the trees that this process uses. They end with it."""


def _in_child() -> None:
    for fd in _held.values():
        os.close(fd)  # it is the parent's lock; a child takes its own when it needs one
    _held.clear()


os.register_at_fork(after_in_child=_in_child)


def cache_folder() -> Path:
    """Where this machine keeps what can be made again: $TILTYARD_CACHE, else tiltyard/ in the user's cache folder."""
    said = os.environ.get(CACHE)
    if said:
        path = Path(said)
        if not path.is_absolute():
            raise UsageError(f"{CACHE} is {said!r}; expected an absolute path")
        return path
    try:
        home = Path.home()
    except RuntimeError:
        home = Path(tempfile.gettempdir()) / f"tiltyard-cache-{os.getuid()}"
    said = os.environ.get("XDG_CACHE_HOME")
    return (Path(said) if said and Path(said).is_absolute() else home / ".cache") / "tiltyard"


@contextmanager
def locked(path: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold a lock file while the block runs. ArenaError: it can't be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ArenaError(
            f"can't write in the cache {path.parent}: {error.strerror}; {CACHE} names another one"
        ) from None
    try:
        fcntl.flock(fd, kind)
        yield
    finally:
        os.close(fd)


def tree_of(name: str, files: Callable[[], Mapping[str, bytes]]) -> Path:
    """The folder ``files`` of the tree ``name`` (an image's digest in hex), made if it is not there. It stays at least
    as long as this process. ArenaError: it can't be made (the reason is the machine's)."""
    folder = cache_folder() / "trees" / name
    while folder not in _held:
        with locked(folder.with_name(f"{name}.making")):
            if not folder.is_dir():
                _make(folder, files())
        fd = os.open(_in_use(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(fd, fcntl.LOCK_SH)  # waits for one who removes it, and for nobody else
        if folder.is_dir() and _held.setdefault(folder, fd) == fd:
            break
        os.close(fd)
    os.utime(folder)  # the least recently used go first
    return folder / "files"


def _in_use(folder: Path) -> Path:
    """Locked by every process that uses the tree, for as long as it lives."""
    return folder.with_name(f"{folder.name}.lock")


def _make(folder: Path, files: Mapping[str, bytes]) -> None:
    for left in folder.parent.glob(f".{folder.name}.*"):  # by one who was killed; we have the lock
        shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        root = partial / "files"
        root.mkdir()
        root.chmod(0o755)
        made = {root}
        for path, data in files.items():
            target = root / path
            for parent in reversed([p for p in target.parents if p not in made and root in p.parents]):
                parent.mkdir()
                parent.chmod(0o755)
                made.add(parent)
            target.write_bytes(data)
            target.chmod(0o644)
        partial.chmod(0o755)
        partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise ArenaError(f"can't make the tree of an image in {folder.parent}: {error.strerror}") from None
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def remove_tree(folder: Path) -> bool:
    """Remove a tree unless a process uses it; whether it is gone."""
    with open(_in_use(folder), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        trash = folder.with_name(f".{folder.name}.gone")
        shutil.rmtree(trash, ignore_errors=True)
        folder.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)
        return True
