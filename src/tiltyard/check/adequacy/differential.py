"""Do mutants that the tests let pass differ from the reference at all? Asked in a cell, with many inputs.

The driver (the folder ``inside``) goes into the cell as files, beside the reference and one folder a mutant; what it answers is
read as data, bounded. A driver that fails or says nonsense leaves the mutants undecided, which counts as survived.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from tiltyard.cells.protocol import CellFileError, CellLost, Run, Wall
from tiltyard.environments import environment_wall
from tiltyard.referee.result import cell_limits
from tiltyard.task import Files, Task

MUTANTS_A_RUN = 20
ANSWER_BYTES = 1 << 20
MAX_TESTS_BYTES = 8 << 20
_PACKAGE = "_tiltyard_compare"
_START = f"from {_PACKAGE}.compare import main\n\nmain()\n".encode()


@dataclass(frozen=True, slots=True)
class Compared:
    """``inputs`` that both could be asked; ``witness`` where they differ. ``inputs`` 0: undecided."""

    inputs: int
    witness: Mapping[str, str] | None = None


def compare(
    wall: Wall, task: Task, reference: Files, mutants: Sequence[Files], *, inputs: int, seed: str
) -> list[Compared]:
    """For each mutant (its complete files) whether an input shows a difference from ``reference``. ArenaError: no cell
    could be had."""
    if task.grading not in ("calls", "stdio"):
        return [Compared(0)] * len(mutants)
    found: list[Compared] = []
    for start in range(0, len(mutants), MUTANTS_A_RUN):
        some = mutants[start : start + MUTANTS_A_RUN]
        answer = _ask(wall, task, reference, some, inputs, seed)
        found += _read(answer, len(some))
    return found


def _job(task: Task, mutants: int, inputs: int, seed: str) -> bytes:
    tests: list[Any]
    every = [*task.hidden, *task.visible]
    if task.grading == "stdio":
        tests = [[t.stdin, list(t.args)] for t in every]
    else:
        tests = [t.code for t in every]
    main = task.main.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    job = {
        "kind": task.grading, "main": main, "main_path": task.main, "modules": list(task.modules),
        "entry": list(task.entry), "prelude": task.prelude, "tests": tests, "mutants": mutants, "inputs": inputs,
        "seed": seed, "match": task.hidden[0].match, "tolerance": max(t.tolerance for t in task.hidden),
    }  # fmt: skip
    return json.dumps(job).encode()


def _ask(wall: Wall, task: Task, reference: Files, mutants: Sequence[Files], inputs: int, seed: str) -> bytes:
    job = _job(task, len(mutants), inputs, seed)
    if len(job) > MAX_TESTS_BYTES:
        return b""
    files = {"driver.py": _START, "job.json": job}
    for part in resources.files("tiltyard.check.adequacy").joinpath("inside").iterdir():
        if part.name.endswith(".py"):
            files[f"{_PACKAGE}/{part.name}"] = part.read_bytes()
    folders = {"reference": reference, **{f"mutant{n}": mutant for n, mutant in enumerate(mutants)}}
    files |= {f"{name}/{path}": data for name, folder in folders.items() for path, data in folder.items()}
    seconds = 300.0 + 160.0 * (len(mutants) + 2)
    limits = cell_limits(task.limits)
    limits = replace(
        limits, cpu_s=max(limits.cpu_s, seconds), disk_files=max(limits.disk_files, len(files) + 1024),
        disk_bytes=max(limits.disk_bytes, sum(map(len, files.values())) + (32 << 20)),
        memory_bytes=max(limits.memory_bytes, 1 << 30), processes=max(limits.processes, 64),
    )  # fmt: skip
    cell = environment_wall(wall, task).open(files, limits)
    try:
        result = cell.run(Run(("python", "driver.py"), wall_s=seconds, output_bytes=2 * ANSWER_BYTES))
    except (CellFileError, CellLost):
        return b""
    finally:
        cell.close()
    return result.stdout if result.rc == 0 and not result.stdout_dropped else b""


def _read(answer: bytes, mutants: int) -> list[Compared]:
    undecided = [Compared(0)] * mutants
    try:
        found = json.loads(answer[:ANSWER_BYTES])
    except ValueError:
        return undecided
    match found:
        case {"inputs": int(inputs), "mutants": list(each)} if len(each) == mutants:
            return [Compared(inputs, _witness(one)) for one in each]
    return undecided


def _witness(one: Any) -> Mapping[str, str] | None:
    match one:
        case {"call": str(call), "reference": str(reference), "mutant": str(mutant)}:
            return {"call": call[:2000], "reference": reference[:400], "mutant": mutant[:400]}
    return None
