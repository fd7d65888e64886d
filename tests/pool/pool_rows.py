"""What the tests of the pool share: rows that the project's authors wrote, and a plain way to run a task's tests.

``outcomes`` executes trusted tests against trusted solutions in this process, which is all that the importers' tests
need; how a submission is graded is the referee's part, and tested there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard.task import Task

Write = Callable[[str, "str | bytes"], Path]

MEDIAN: dict[str, Any] = {
    "id": "median",
    "prompt": "Write median(xs). An empty list raises ValueError.",
    "stub": "def median(xs):\n    raise NotImplementedError\n",
    "ref": (
        "def median(xs):\n"
        "    if not xs:\n"
        "        raise ValueError('empty')\n"
        "    s = sorted(xs)\n"
        "    n = len(s)\n"
        "    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2\n"
    ),
    "visible": ["assert median([3, 1, 2]) == 2"],
    "hidden": ["assert median([3, 1, 2]) == 2", "assert median([1, 2, 3, 4]) == 2.5"],
    "meta": {"source": "handwritten", "created": "2026-10", "difficulty": None},
}


@pytest.fixture
def lesson() -> dict[str, Any]:
    """A dict of the plain form, to be changed at will."""
    return {
        **MEDIAN,
        "visible": [*MEDIAN["visible"]],
        "hidden": [*MEDIAN["hidden"]],
        "meta": {**MEDIAN["meta"]},
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file below a fresh folder, with the folders it needs; gives the path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def outcomes(task: Task, source: str | None = None, *, kind: str = "hidden") -> dict[str, str]:
    """What each test of a task says of ``source`` (default: the reference): "" or the name of what it raised."""
    files = {**task.start, **task.reference}
    code = files[task.main].decode() if source is None else source
    out = {}
    for test in getattr(task, kind):
        solution: dict[str, Any] = {"__name__": "solution"}
        names: dict[str, Any] = {"__name__": "test"}
        try:
            exec(compile(code, task.main, "exec"), solution)
            exec(compile(task.prelude if kind == "hidden" else "", "prelude", "exec"), names)
            names.update({name: solution[name] for name in task.entry})
            exec(compile(test.code, test.id, "exec"), names)
            out[test.id] = ""
        except Exception as error:
            out[test.id] = type(error).__name__
    return out
