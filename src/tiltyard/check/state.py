"""The state file of a validation: what was found so far, so that an interrupted one goes on where it was.

One JSON object a line; a line that was cut off by a crash is ignored. An outcome is taken over only for the same task
(by digest), the same number of repeats, and the same wall, reward rule and interpreter; a void is always tried again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from tiltyard.check.report import OUTCOMES, TaskReport
from tiltyard.errors import UsageError

FORMAT = "tiltyard-validation-1"


class State:
    """Outcomes that are known under these ``settings``, and a place to add to. Raises UsageError for a file that is
    something else, or can't be used."""

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.settings = json.loads(json.dumps(settings, sort_keys=True))
        self.known: dict[tuple[str, str], TaskReport] = {}
        try:
            fresh = not self.path.exists() or self.path.stat().st_size == 0
            if not fresh:
                self._read()
            self._file: IO[str] = self.path.open("a", encoding="utf-8")
            if fresh:
                self._line({"format": FORMAT})
            elif not self.path.read_bytes().endswith(b"\n"):
                self._file.write("\n")  # what follows must not continue a line that was cut off
        except OSError as error:
            raise UsageError(
                f"the state file {self.path} can't be used: {error.strerror}; name another one"
            ) from None

    def _read(self) -> None:
        with self.path.open("rb") as file:
            lines = file.read().split(b"\n")
        if _object(lines[0]).get("format") != FORMAT:
            raise UsageError(
                f"{self.path} is no state file of a validation (its first line is not that of {FORMAT}); "
                "name another file, or remove it"
            )
        for line in lines[1:]:
            entry = _object(line)
            if entry.get("settings") != self.settings or entry.get("outcome") not in OUTCOMES[:2]:
                continue
            task, digest, reason = entry.get("task"), entry.get("digest"), entry.get("reason")
            way, flaky = entry.get("way", ""), tuple(map(str, entry.get("flaky", ())))
            ordered = tuple(map(str, entry.get("ordered", ())))
            expected = tuple(map(str, entry.get("expected", ())))
            if isinstance(task, str) and isinstance(digest, str) and isinstance(reason, str):
                self.known[task, digest] = TaskReport(
                    task,
                    entry["outcome"],
                    reason,
                    digest,
                    way=str(way),
                    flaky=flaky,
                    ordered=ordered,
                    expected=expected,
                )

    def add(self, report: TaskReport) -> None:
        """Keep one outcome, at once."""
        self._line(
            {
                "task": report.task,
                "digest": report.digest,
                "outcome": report.outcome,
                "reason": report.reason,
                **({"way": report.way} if report.way else {}),
                **({"flaky": list(report.flaky)} if report.flaky else {}),
                **({"expected": list(report.expected)} if report.expected else {}),
                **({"ordered": list(report.ordered)} if report.ordered else {}),
                "settings": self.settings,
            }
        )

    def _line(self, entry: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(entry, sort_keys=True) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def _object(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
