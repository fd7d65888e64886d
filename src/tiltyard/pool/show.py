"""Tasks as plain data for people and for ``--json``: what ``tiltyard show`` and ``tiltyard tasks`` print.

Hidden tests, the prelude and the reference are left out unless they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

from tiltyard.images import ImageFiles
from tiltyard.task import Task, Test


def describe(task: Task, *, hidden: bool = False, listed: bool = False) -> dict[str, Any]:
    """Everything about a task. ``hidden``: with the hidden tests, the prelude and the reference.

    Files are text, or ``{"bytes": n}`` where they are no UTF-8. ``listed``: those of an image are only listed, as
    ``{"bytes": n}`` all of them, for they are a whole repository.
    """
    out: dict[str, Any] = {
        "id": task.id,
        "digest": task.digest,
        "prompt": task.prompt,
        "grading": task.grading,
        "reward": task.reward,
        "main": task.main,
        "entry": list(task.entry),
        "start": _sizes(task.start) if listed and isinstance(task.start, ImageFiles) else _files(task.start),
        **({"image": task.start.image} if task.start.image else {}),
        "protected": sorted(task.protected),
        "visible": [_test(test, task.grading) for test in task.visible],
        "hidden": len(task.hidden),
        "limits": asdict(task.limits),
        "metadata": asdict(task.metadata)
        | {
            "tags": list(task.metadata.tags),
            "packages": list(task.metadata.packages),
            "extra": dict(task.metadata.extra),
        },
    }
    if task.shell:
        out["shell"] = True
    if task.grading == "pytest":
        out |= {"way": task.way, "pythonpath": list(task.pythonpath), "plugins": list(task.plugins)}
    if hidden:
        out["hidden"] = [_test(test, task.grading) for test in task.hidden]
        out["prelude"] = task.prelude
        out["reference"] = _files(task.reference)
        if task.reference.removed:
            out["removed"] = sorted(task.reference.removed)
        if task.grading == "pytest":
            out |= {"suite": _files(task.suite), "pass_to_pass": list(task.pass_to_pass)}
    return out


def summary(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """One line of facts a task: what a table of a pool shows."""
    return [
        {
            "id": task.id,
            "title": _title(task.prompt),
            "grading": task.grading,
            "reward": task.reward,
            "difficulty": task.metadata.difficulty,
            "tags": list(task.metadata.tags),
            "files": len(task.start),
            "visible": len(task.visible),
            "hidden": len(task.hidden),
            "source": task.metadata.source,
            "created": task.metadata.created,
            "digest": task.digest,
        }
        for task in tasks
    ]


def _title(prompt: str, limit: int = 80) -> str:
    """The first line of a prompt that says something, at most ``limit`` characters."""
    line = next(line for line in (raw.strip().lstrip("#").strip() for raw in prompt.split("\n")) if line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _test(test: Test, grading: str) -> dict[str, Any]:
    if grading == "pytest":
        return {"id": test.id, "time_s": test.time_s}
    names = {"id", "code", "time_s"} if grading == "calls" else {f.name for f in fields(Test)} - {"code"}
    out = {f.name: getattr(test, f.name) for f in fields(Test) if f.name in names}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in out.items()}


def _sizes(files: ImageFiles) -> dict[str, Any]:
    return {path: {"bytes": size} for path, size in files.sizes.items()}


def _files(files: Mapping[str, bytes]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for path, data in files.items():
        try:
            out[path] = data.decode()
        except UnicodeDecodeError:
            out[path] = {"bytes": len(data)}
    return out
