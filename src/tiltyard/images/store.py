"""A store of images: ``objects/ab/SHA256`` are files, ``images/SHA256.json`` say which files an image has.

A manifest is ``[[path, sha256, bytes], …]`` sorted by path; an image's digest is SHA-256 over the lines
``path NUL sha256``. Nothing in a store is ever changed; ``collect`` takes images away, the least recently used first.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tiltyard.errors import ArenaError, UsageError
from tiltyard.images.files import ImageFiles
from tiltyard.images.tree import cache_folder, locked, remove_tree
from tiltyard.task import path_problem

REMEMBERED_BYTES = 256 << 20
"""Of files' contents, in one process."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One image of a store. ``used``: seconds since the epoch."""

    image: str
    files: int
    bytes: int
    used: float


@dataclass(frozen=True, slots=True)
class Collected:
    """What ``collect`` took away: images, trees, and bytes of files."""

    images: int
    trees: int
    bytes: int


class Images:
    """The store at ``root``, made when something is added; None: the cache of this machine."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = Path(root).absolute() if root is not None else cache_folder()

    def __repr__(self) -> str:
        return f"Images({str(self.root)!r})"

    def add(self, files: Mapping[str, bytes]) -> ImageFiles:
        """Keep these files; what is there already is not written again. ArenaError: the machine can't (disk full).
        UsageError: a path that is none."""
        if isinstance(files, ImageFiles) and files.store.root == self.root:
            return files
        contents = dict(sorted(files.items()))
        for path in contents:
            if (problem := path_problem(path)) is not None:
                raise UsageError(f"an image can't hold {problem}: {path!r}")
        manifest = {path: (_sha(data), len(data)) for path, data in contents.items()}
        image = _digest({path: sha for path, (sha, _) in manifest.items()})
        with locked(self.root / "store.lock", fcntl.LOCK_SH):
            for path, (sha, _) in manifest.items():
                _write_once(self._object(sha), contents[path])
            rows = [[path, sha, size] for path, (sha, size) in manifest.items()]
            _write_once(self._manifest(image), json.dumps(rows, separators=(",", ":")).encode())
            os.utime(self._manifest(image))
        return ImageFiles(self, image, manifest)

    def get(self, image: str) -> ImageFiles:
        """The image of that digest. UsageError: no such image here; ArenaError: its manifest was changed."""
        try:
            rows = json.loads(self._manifest(image).read_bytes())
            manifest = {str(path): (str(sha), int(size)) for path, sha, size in rows}
        except FileNotFoundError:
            raise UsageError(
                f"{self.root} has no image {image}; the pool's folder images/ has to come along"
            ) from None
        except OSError as error:
            raise ArenaError(f"can't read the image {image} in {self.root}: {error.strerror}") from None
        except (ValueError, TypeError):
            manifest = {}
        if _digest({path: sha for path, (sha, _) in manifest.items()}) != image:
            raise ArenaError(
                f"{self._manifest(image)} was changed: it is not what its name says; remove it and make it again"
            )
        return ImageFiles(self, image, manifest)

    def blob(self, sha: str, size: int, path: str) -> bytes:
        """The content of one file, by its digest; ``path`` is for the message. ArenaError: lost, or changed."""
        key = (str(self.root), sha)
        with _lock:
            if key in _blobs:
                _blobs.move_to_end(key)
                return _blobs[key]
        try:
            data = self._object(sha).read_bytes()
        except OSError as error:
            raise ArenaError(
                f"the store {self.root} has lost {path!r} ({sha[:12]}): {error.strerror}"
            ) from None
        if len(data) != size or _sha(data) != sha:
            raise ArenaError(f"{self._object(sha)} ({path!r}) was changed: it is not what its name says")
        _remember(key, data)
        return data

    def list(self) -> tuple[Kept, ...]:
        """Its images, the most recently used first."""
        found = []
        for file in (self.root / "images").glob("*.json"):
            try:
                rows = json.loads(file.read_bytes())
                used = max(file.stat().st_mtime, _tree_used(file.stem))
            except (OSError, ValueError):
                continue
            found.append(Kept(f"sha256:{file.stem}", len(rows), sum(row[2] for row in rows), used))
        return tuple(sorted(found, key=lambda kept: (-kept.used, kept.image)))

    def collect(self, max_bytes: int, keep: Iterable[str] = ()) -> Collected:
        """Take images away, the least recently used first, until their files have at most ``max_bytes`` together; not
        those to ``keep``, nor trees that a process uses. Trees are those of this machine's cache."""
        kept = {*keep}
        with locked(self.root / "store.lock"):
            needed: dict[str, int] = {}
            gone: list[str] = []
            for one in self.list():
                more = {sha: size for sha, size in _shas(self._manifest(one.image)) if sha not in needed}
                if one.image not in kept and sum(needed.values()) + sum(more.values()) > max_bytes:
                    gone.append(one.image)
                else:
                    needed |= more
            for image in gone:
                self._manifest(image).unlink(missing_ok=True)
            freed = 0
            for file in (self.root / "objects").glob("*/*"):
                if file.name not in needed:
                    freed += file.stat().st_size
                    file.unlink(missing_ok=True)
        trees = 0
        for image in gone:
            folder = cache_folder() / "trees" / image.partition(":")[2]
            trees += folder.is_dir() and remove_tree(folder)
        return Collected(len(gone), trees, freed)

    def _object(self, sha: str) -> Path:
        return self.root / "objects" / sha[:2] / sha

    def _manifest(self, image: str) -> Path:
        kind, _, name = image.partition(":")
        if kind != "sha256" or len(name) != 64 or not set(name) <= set("0123456789abcdef"):
            raise UsageError(
                f"found {image[:100]!r} as the digest of an image; expected sha256: and 64 hex digits"
            )
        return self.root / "images" / f"{name}.json"


_lock = threading.Lock()
_blobs: OrderedDict[tuple[str, str], bytes] = OrderedDict()
_size = 0


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


def _remember(key: tuple[str, str], data: bytes) -> None:
    global _size
    with _lock:
        if key not in _blobs:
            _blobs[key] = data
            _size += len(data)
        while _size > REMEMBERED_BYTES:
            _, oldest = _blobs.popitem(last=False)
            _size -= len(oldest)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest(digests: Mapping[str, str]) -> str:
    lines = b"".join(f"{path}\0{sha}\n".encode() for path, sha in sorted(digests.items()))
    return f"sha256:{_sha(lines)}"


def _shas(manifest: Path) -> list[tuple[str, int]]:
    return [(sha, size) for _, sha, size in json.loads(manifest.read_bytes())]


def _tree_used(name: str) -> float:
    try:
        return (cache_folder() / "trees" / name).stat().st_mtime
    except OSError:
        return 0.0


def _write_once(path: Path, data: bytes) -> None:
    """Write a file whose name says its content, in one step; nothing if it is there."""
    if path.exists():
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.rename(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ArenaError(f"can't write {path}: {error.strerror}") from None
