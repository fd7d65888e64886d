"""Run a command in a folder, with limits, and nothing left of it afterwards: the process wall as one function.

It limits and it cleans up; it does not lock: the command runs as the calling user and can read and write what that
user can (see ``ProcessWall.weaknesses``). For walls use ``tiltyard.cells.make_wall``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict

from tiltyard.cells.client import NO_LIMIT
from tiltyard.cells.process import PATH, bring_up, interpreter
from tiltyard.cells.protocol import CellFileError, CellLimits, Run
from tiltyard.errors import UsageError

KEPT_CHARS = 4000
_KEPT_BYTES = 4 * KEPT_CHARS + 4


class Result(TypedDict):
    """``rc`` is the exit status, minus a signal, or 127 for a command that can't be executed."""

    rc: int
    stdout: str
    stderr: str
    timed_out: bool
    seconds: float


def run(
    cmd: list[str], cwd: str, timeout_s: float = 10, cpu_s: int = 5, fsize_bytes: int = 1 << 20
) -> Result:
    """Run ``cmd`` in ``cwd`` with an environment of PATH, PYTHONHASHSEED=0 and PYTHONDONTWRITEBYTECODE=1 only.

    After ``timeout_s`` of wall-clock, or ``cpu_s`` of CPU, it is killed (``timed_out``); writing a file of more than
    ``fsize_bytes`` fails. Every process that it started is dead when this returns. stdout and stderr are text (bytes
    that are no UTF-8 are replaced), the last 4,000 characters of each. May be called from any thread.
    Raises UsageError for a ``cwd`` that is no folder or an empty ``cmd``; ArenaError if no process can be had.
    """
    if not cmd or isinstance(cmd, str) or not all(isinstance(word, str) for word in cmd):
        raise UsageError(f"found cmd={cmd!r}; expected a list of texts like ['python', 'solution.py']")
    if not Path(cwd).is_dir():
        raise UsageError(f"found cwd={cwd!r}, which is no folder; expected one that exists")
    env = {"PATH": os.environ.get("PATH", PATH), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    limits = CellLimits(
        memory_bytes=NO_LIMIT, processes=512, open_files=1024, disk_bytes=NO_LIMIT, disk_files=NO_LIMIT
    )
    cell = bring_up(interpreter(None), limits, env, base="", workspace=os.path.realpath(cwd), wall="process")
    with cell:
        try:
            done = cell.run_command(
                Run(
                    tuple(cmd),
                    wall_s=timeout_s,
                    cpu_s=cpu_s,
                    file_bytes=fsize_bytes,
                    output_bytes=2 * _KEPT_BYTES,
                )
            )
        except CellFileError as error:
            return Result(rc=127, stdout="", stderr=str(error), timed_out=False, seconds=0.0)
    return Result(
        rc=done.rc,
        stdout=_last(done.stdout),
        stderr=_last(done.stderr),
        timed_out=done.timed_out,
        seconds=done.seconds,
    )


def _last(data: bytes) -> str:
    return data[-_KEPT_BYTES:].decode("utf-8", "replace")[-KEPT_CHARS:]
