"""What a solution comes to in tests and examples, asked in a cell. The answer is read as data, bounded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

from tiltyard.cells.protocol import CellFileError, CellLost, Run, Wall
from tiltyard.referee.result import cell_limits
from tiltyard.task import Files, Task, Test

ANSWER_BYTES = 4 << 20
WALL_S = 120.0


def ask(
    wall: Wall, task: Task, solutions: Sequence[Files], items: Sequence[Mapping[str, str]], prelude: str
) -> list[list[dict[str, Any]]]:
    """For each solution (its complete files) what each item comes to; [] for one that does not come to an end. An item
    is a ``test`` (its code and ``prelude`` note values by ``_seen_value``), an ``expression`` or a ``block``. ArenaError: no cell."""
    job = {
        "main": task.main.removesuffix(".py").replace("/", ".").removesuffix(".__init__"),
        "modules": list(task.modules),
        "entry": list(task.entry),
        "prelude": prelude,
        "items": [dict(item) for item in items],
    }
    driver = resources.files("tiltyard.sources.perturb").joinpath("inside").joinpath("driver.py").read_bytes()
    files = {"_driver.py": driver, "job.json": json.dumps(job).encode()}
    for n, solution in enumerate(solutions):
        files |= {f"solution{n}/{path}": data for path, data in solution.items()}
    limits = cell_limits(task.limits)
    limits = replace(limits, cpu_s=max(limits.cpu_s, WALL_S), disk_bytes=max(limits.disk_bytes, 64 << 20))
    answers = []
    cell = wall.open(files, limits)
    try:
        for n in range(len(solutions)):
            answers.append(_one(cell, f"solution{n}", len(items)))
    finally:
        cell.close()
    return answers


def _one(cell: Any, folder: str, count: int) -> list[dict[str, Any]]:
    try:
        result = cell.run(Run(("python", "_driver.py", folder), wall_s=WALL_S))
        if result.rc != 0:
            return []
        found = json.loads(cell.read(f"answer-{folder}.json", max_bytes=ANSWER_BYTES))
    except (CellFileError, CellLost, ValueError, RecursionError):
        return []
    if not isinstance(found, list) or len(found) != count or not all(isinstance(one, dict) for one in found):
        return []
    return found


def outputs(wall: Wall, task: Task, solution: Files, tests: Sequence[Test]) -> list[tuple[str, int] | None]:
    """What a program prints for each test, and its exit status; None where it does not come to an end or prints what is
    no text."""
    out: list[tuple[str, int] | None] = []
    cell = wall.open(dict(solution), cell_limits(task.limits))
    try:
        for test in tests:
            run = Run(
                ("python", task.main, *test.args), stdin=test.stdin.encode(), wall_s=task.limits.load_s + task.limits.test_s,
                output_bytes=task.limits.output_bytes,
            )  # fmt: skip
            out.append(_printed(cell, run))
    finally:
        cell.close()
    return out


def _printed(cell: Any, run: Run) -> tuple[str, int] | None:
    try:
        result = cell.run(run)
        if result.timed_out or result.stdout_dropped or result.rc < 0:
            return None
        return result.stdout.decode(), result.rc
    except (CellFileError, CellLost, UnicodeDecodeError):
        return None
