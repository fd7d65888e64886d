"""Where mined tasks are written: a pool as a folder or as JSON Lines, and beside it those that need a prompt.

Only ever added to: what lies there already stays as it is, for somebody may have written its prompt. A task is there
whole or not at all, and its image before it.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tiltyard.errors import UsageError
from tiltyard.images import ImageFiles, Images
from tiltyard.pool import Pool, to_dict, to_folder
from tiltyard.pool.folder import IMAGES
from tiltyard.task import Task

APART = "-needs-prompt"
STATE = ".mine"
_ENDS = (".jsonl", ".jsonl.gz")


class Output:
    """The place ``out``, for tasks of the repository ``name``. UsageError: something else lies there."""

    def __init__(self, out: Path, name: str) -> None:
        self.out, self.name = out.expanduser().absolute(), name
        self.is_file = out.name.endswith(_ENDS)
        if self.is_file:
            stem, dot, rest = self.out.name.rpartition(".jsonl")
            self.apart = self.out.with_name(f"{stem}{APART}{dot}{rest}")
            self.state_folder = self.out.with_name(f"{self.out.name}{STATE}")
        else:
            self.apart = self.out.with_name(f"{self.out.name}{APART}")
            self.state_folder = self.out / STATE
        exists = self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir()))
        if exists and not self.state_folder.is_dir():
            raise UsageError(
                f"{out} exists and is no pool that was mined; expected a new name, an empty folder, or one of an "
                "earlier mining"
            )
        if not self.out.parent.is_dir():
            raise UsageError(f"--out {out}: {self.out.parent} is no folder; make it first")

    def write(self, pool: Sequence[Task], apart: Sequence[Task]) -> Mapping[str, int]:
        """Add the tasks that are not there yet; by place, how many these are."""
        there = {*self._places(self.out), *self._places(self.apart)}
        written: dict[str, int] = {}
        try:
            for place, tasks in ((self.out, pool), (self.apart, apart)):
                fresh = [task for task in tasks if task.id not in there]
                if fresh:
                    (self._to_lines if self.is_file else self._to_folders)(
                        fresh, place, [t.id for t in tasks]
                    )
                if fresh or place.exists():
                    written[str(place)] = len(fresh)
        except OSError as error:
            raise UsageError(
                f"can't write {error.filename or self.out}: {error.strerror or error}; what was found is kept in "
                f"{self.state_folder}"
            ) from None
        return written

    def _places(self, place: Path) -> dict[str, str]:
        """The tasks that lie there, however they came there, by id: their folders, or lines."""
        if self.is_file:
            return _lines(place)
        found: dict[str, str] = {}
        for file in sorted(place.glob("*/task.toml")):
            try:
                said = str(tomllib.loads(file.read_text(encoding="utf-8")).get("id", file.parent.name))
            except (OSError, ValueError):
                said = file.parent.name
            found[said] = file.parent.name
        return found

    def _to_folders(self, tasks: list[Task], place: Path, order: list[str]) -> None:
        new = self.state_folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        to_folder(Pool(place.name, 1, tuple(tasks)), new)
        place.mkdir(exist_ok=True)
        _merge(new / IMAGES, place / IMAGES)
        for entry in sorted(new.iterdir()):
            if entry.is_dir() and entry.name != IMAGES and not (place / entry.name).exists():
                entry.rename(place / entry.name)
        _write_head(place / "pool.toml", _ordered(self._places(place), order))
        shutil.rmtree(new, ignore_errors=True)

    def _to_lines(self, tasks: list[Task], place: Path, order: list[str]) -> None:
        store = Images(place.parent / IMAGES)
        for task in tasks:
            if isinstance(task.start, ImageFiles):
                store.add(task.start)
        lines = _lines(place) | {task.id: json.dumps(to_dict(task)) for task in tasks}
        _replace(place, "".join(f"{line}\n" for line in _ordered(lines, order)))


def _ordered(places: Mapping[str, str], order: Sequence[str]) -> list[str]:
    """What lies there in this order of the ids; what is not in it at the end, as it was."""
    return [places[i] for i in dict.fromkeys([*order, *places]) if i in places]


def _lines(file: Path) -> dict[str, str]:
    """The rows of a file, by id."""
    out: dict[str, str] = {}
    try:
        data = file.read_bytes() if file.is_file() else b""
        text = (gzip.decompress(data) if file.name.endswith(".gz") and data else data).decode()
        for line in filter(str.strip, text.split("\n")):
            out[str(json.loads(line)["id"])] = line
    except (EOFError, gzip.BadGzipFile, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is no pool in JSON Lines ({error}); name another --out") from None
    return out


def _merge(new: Path, place: Path) -> None:
    """Move the files of a store to where they are not yet: objects first, then the images that are made of them."""
    files = [path for path in new.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda p: (p.relative_to(new).parts[0] == "images", p)):
        target = place / path.relative_to(new)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            path.replace(target)


def _write_head(head: Path, folders: list[str]) -> None:
    """``pool.toml``: its name and version stay as they are, if there is one."""
    said = tomllib.loads(head.read_text(encoding="utf-8")) if head.is_file() else {}
    said = {"name": head.parent.name, "version": 1, **said, "order": folders}
    _replace(
        head, "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in said.items())
    )


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        data = text.encode()
        partial.write_bytes(gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
