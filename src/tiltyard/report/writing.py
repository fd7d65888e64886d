"""What a player wrote: its files, put together again from its actions. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LOOKS = ("view_file", "list_files", "run_tests")
"""Tools that show something of the workspace."""


@dataclass(frozen=True, slots=True)
class Written:
    """``files`` as they were handed in, those that were written. ``first`` is the number of the step (from 1) that wrote
    first, 0 if none did; ``viewed`` the paths that were viewed before it; ``looked`` whether anything was looked at."""

    files: Mapping[str, str]
    first: int
    viewed: tuple[str, ...]
    looked: bool


def written(start: Mapping[str, bytes], steps: Iterable[tuple[str, bool]]) -> Written:
    """From the start files and, for each step, its action (canonical JSON) and whether it was invalid."""
    files: dict[str, str] = {}
    viewed: list[str] = []
    first, looked = 0, False
    for number, (action, invalid) in enumerate(steps, start=1):
        call = _call(action)
        tool = call.get("tool")
        path = _clean(str(call.get("path", "")))
        if not first and tool in LOOKS:
            looked = True
            if tool == "view_file" and not invalid:
                viewed.append(path)
        if invalid:
            continue
        if tool == "write_file":
            files[path] = str(call.get("content", ""))
        elif tool == "replace_text":
            before = files.get(path, start.get(path, b"").decode("utf-8", "replace"))
            files[path] = before.replace(str(call.get("old", "")), str(call.get("new", "")), 1)
        else:
            continue
        first = first or number
    return Written(files, first, tuple(viewed), looked)


def _call(action: str) -> dict[str, Any]:
    try:
        found = json.loads(action)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _clean(path: str) -> str:
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path
