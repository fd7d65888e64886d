"""``ImageFiles``: files that lie in a store of images, read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiltyard.images.tree import tree_of
from tiltyard.task import Files

if TYPE_CHECKING:
    from tiltyard.images.store import Images


class ImageFiles(Files):
    """``Files`` whose content is an image: equal to, and of the same hash as, plain ones with the same bytes.

    Reading raises ArenaError if the store has lost or changed a file."""

    __slots__ = ("_manifest", "_store", "image")
    _manifest: dict[str, tuple[str, int]]
    _store: Images
    image: str

    def __init__(self, store: Images, image: str, manifest: Mapping[str, tuple[str, int]]) -> None:
        object.__setattr__(self, "_store", store)
        object.__setattr__(self, "image", image)
        object.__setattr__(self, "_manifest", dict(manifest))
        object.__setattr__(self, "removed", frozenset())

    @property
    def _items(self) -> dict[str, bytes]:  # type: ignore[override]
        return {path: self[path] for path in self._manifest}

    @property
    def digests(self) -> dict[str, str]:
        return {path: sha for path, (sha, _) in self._manifest.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each file, by path."""
        return {path: size for path, (_, size) in self._manifest.items()}

    @property
    def store(self) -> Images:
        """The store that it lies in."""
        return self._store

    def tree(self) -> Path:
        """The image as a folder that must not be changed; it stays there while this process lives."""
        return tree_of(self.image.partition(":")[2], lambda: self._items)

    def __getitem__(self, path: str) -> bytes:
        sha, size = self._manifest[path]
        return self._store.blob(sha, size, path)

    def __contains__(self, path: object) -> bool:
        return path in self._manifest

    def __iter__(self) -> Iterator[str]:
        return iter(self._manifest)

    def __len__(self) -> int:
        return len(self._manifest)

    def __repr__(self) -> str:
        return f"ImageFiles({self.image[:19]}…, {len(self)} files)"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (_again, (self._store.root, self.image))


def _again(root: Path, image: str) -> ImageFiles:
    from tiltyard.images.store import Images

    return Images(root).get(image)
