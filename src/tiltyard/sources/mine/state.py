"""What a mining has found so far, beside the pool: it goes on where it was, also after ``kill -9``.

``OUT/.mine/state.jsonl`` (for a file, ``OUT.mine/``) has a first line with the settings and then one JSON object a
commit, written as soon as it is known; a line that was cut off is ignored. One mining at a time works on it.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any

from tiltyard.errors import UsageError
from tiltyard.sources.mine.dig import VOID, Entry

FORMAT = "tiltyard-mine-1"


class State:
    """The entries that are known, by commit, and a place to add to. ``settings`` are what they depend on. UsageError: the
    place is another mining's, or can't be used."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder, self.known = folder, dict[str, Entry]()
        settings = json.loads(json.dumps(settings, sort_keys=True))
        path = folder / "state.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[str] = path.open("a+", encoding="utf-8")
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                raise UsageError(
                    f"another `tiltyard mine` is at work on {folder.parent}; wait for it or take another --out"
                ) from None
            data = path.read_bytes()
            self._read(data, path, settings)
            if not data:
                self._line({"format": FORMAT, "settings": settings})
            elif not data.endswith(b"\n"):
                self._file.write("\n")  # what follows must not continue a line that was cut off
        except OSError as error:
            raise UsageError(f"{path} can't be used: {error.strerror or error}; take another --out") from None

    def _read(self, data: bytes, path: Path, settings: dict[str, Any]) -> None:
        lines = data.split(b"\n")
        head = _object(lines[0])
        if not data:
            return
        if head.get("format") != FORMAT:
            self._file.close()
            raise UsageError(
                f"{path} is no state of a mining (its first line is not that of {FORMAT}); take another --out"
            )
        was = head.get("settings")
        if was != settings:
            self._file.close()
            was = was if isinstance(was, dict) else {}
            changed = sorted(k for k in {*settings, *was} if settings.get(k) != was.get(k))
            said = ", ".join(f"{key} was {was.get(key)!r} and is {settings.get(key)!r}" for key in changed)
            raise UsageError(
                f"{path.parent.parent} was mined with other settings ({said}); take another --out"
            )
        for line in lines[1:]:
            try:
                entry = Entry.from_dict(_object(line))
            except (ValueError, TypeError):
                continue
            if entry.outcome != VOID:  # the arena's failures are tried again
                self.known[entry.commit] = entry

    def add(self, entry: Entry) -> None:
        """Keep one entry, at once."""
        self.known[entry.commit] = entry
        self._line(entry.as_dict())

    def _line(self, data: dict[str, Any]) -> None:
        self._file.write(json.dumps(data, sort_keys=True) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
