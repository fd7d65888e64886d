"""What lies in a new cell's workspace: plain files, an image, or files that are an image but for a few.

An image (``files.image``) is what a player finds: its cell gets a ``.git`` of one commit with it (see
``cells.start_git``), and where the wall can have it, an overlay over the image's tree instead of the bytes. ``OnImage``
says of other files that they are mostly an image's: grading's, which get no ``.git``. To all walls both are mappings
like any other. A ``.git`` among start files is never put into a workspace: a history may hold the answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tiltyard.cells.start_git import git_files, git_layer
from tiltyard.errors import ArenaError, UsageError
from tiltyard.images import ImageFiles, Images
from tiltyard.task import Files

GIT = ".git"


class OnImage(Mapping[str, bytes]):
    """``files``, most of which are those of ``base``: read from there where a wall can."""

    def __init__(self, base: ImageFiles, files: Mapping[str, bytes]) -> None:
        self.base = base
        self._files = files

    def __getitem__(self, path: str) -> bytes:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    @cached_property
    def changed(self) -> dict[str, bytes]:
        """What is not the same in the image."""
        changed = {p: data for p, data in self._files.items() if p not in self.base or self.base[p] != data}
        return {p: data for p, data in changed.items() if not is_git(p)}

    @cached_property
    def gone(self) -> tuple[str, ...]:
        """What the image has and these have not: files, and then folders, the deepest first."""
        files = [path for path in self.base if path not in self._files]
        folders = {up for path in files for up in _above(path)}
        if folders:
            folders.difference_update(up for path in self._files for up in _above(path))
        return (*files, *sorted(folders, key=lambda path: (-path.count("/"), path)))


def on_image(start: Files, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Files that were made of a task's start files, said to be mostly these where that helps a wall."""
    return OnImage(start, files) if isinstance(start, ImageFiles) else files


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


class Changed(Mapping[str, bytes]):
    """What lies in a workspace over an image: ``changed``, and those files of the image that are as they were
    (``same``), which are read when they are asked for."""

    def __init__(self, image: ImageFiles, same: Iterable[str], changed: Mapping[str, bytes]) -> None:
        self.image = image
        self.changed = dict(changed)
        self._paths = dict.fromkeys(sorted({*same, *self.changed}))

    def __getitem__(self, path: str) -> bytes:
        if path not in self._paths:
            raise KeyError(path)
        found = self.changed.get(path)
        return self.image[path] if found is None else found

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@dataclass(frozen=True, slots=True)
class Below:
    """The tree that a workspace is laid over. ``trees`` is the folder of all trees."""

    image: ImageFiles
    trees: Path
    name: str
    layers: tuple[str, ...]

    @property
    def order(self) -> bytes:
        """As ``inside.overlay`` reads it."""
        return f"{self.name}:{','.join(self.layers)}".encode("ascii")


def is_git(path: str) -> bool:
    """Whether a path lies in a ``.git``, however that is written."""
    return GIT in (small := path.lower()) and GIT in small.split("/")


def below(files: Mapping[str, bytes]) -> Below | None:
    """The tree for these files, made if it is not there; None: they are not an image's, or it can't lie below a
    workspace. ArenaError: it can't be made."""
    start = files.base if isinstance(files, OnImage) else files
    if not isinstance(start, ImageFiles):
        return None
    image = _clean(start)
    tree = image.tree()
    with_git = start is files and git_layer(image) is not None
    return Below(image, tree.parent.parent, tree.parent.name, ("git", "files") if with_git else ("files",))


def contents(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """All that is to lie in the workspace, to be sent file by file."""
    if isinstance(files, ImageFiles):
        image = _clean(files)
        return {**image, **git_files(image)}
    if any(map(is_git, files)):
        return {path: data for path, data in files.items() if not is_git(path)}
    return files


_cleaned: dict[str, str] = {}
"""Digests of images with a ``.git``, with that of the same without it, in this machine's cache."""


def _clean(image: ImageFiles) -> ImageFiles:
    """The image without any ``.git``."""
    if not any(map(is_git, image)):
        return image
    if image.image in _cleaned:
        with contextlib.suppress(UsageError, ArenaError):  # the cache was emptied
            return Images().get(_cleaned[image.image])
    made = Images().add({path: data for path, data in image.items() if not is_git(path)})
    _cleaned[image.image] = made.image
    return made
