"""What people use who have no arena, on the same task: a fresh interpreter per submit, or a container per submit.

The runner loads the solution and runs the tests in one process, as such runners do; what it says can be forged by
what it grades. It is here for its price alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tiltyard.bench.lesson import TASK, plain_runner
from tiltyard.errors import ArenaError

FRESH = "fresh_python"
RUN = "docker_run"
EXEC = "docker_exec"
PYTEST = "fresh_pytest"
NAMES = {
    FRESH: "a fresh python per submit, no wall",
    RUN: "docker run per submit, as the lesson has it",
    EXEC: "docker exec per submit, into a kept container",
    PYTEST: "a fresh python -m pytest for a repository's suite, no wall",
}
CALL_S = 120.0


class Plain:
    """A folder with the solution and a plain runner, and the commands that grade it."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="tiltyard-bench-")
        Path(self.folder).chmod(0o755)
        for name, data in {**TASK.reference, "runner.py": plain_runner().encode()}.items():
            Path(self.folder, name).write_bytes(data)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self) -> dict[str, list[float]]:
        """One submit in an interpreter of its own."""
        env = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        return {FRESH: [_graded([sys.executable, "-I", "runner.py"], self.folder, env)]}


class Containers:
    """The same by the engine's own command. Raises ArenaError if there is no engine or no image for it."""

    def __init__(self, plain: Plain, wall: Any) -> None:
        ready = wall.ready()
        command = shutil.which(ready.about.kind)
        if command is None:
            raise ArenaError(f"the command {ready.about.kind!r} is not installed")
        self._start = [command]
        self._image = str(ready.image)
        self._folder = plain.folder
        self._kept = f"tiltyard-bench-{secrets.token_hex(6)}"
        self._label = _label()
        _call([*self._start, *self._words("run", "--detach", "--name", self._kept), "sleep", "3600"])

    def _words(self, *first: str) -> list[str]:
        """The lesson's line, up to the command in the container."""
        caps = ["--network", "none", "--memory", "512m", "--cpus", "1", "--pids-limit", "128"]
        lock = ["--read-only", "--tmpfs", "/tmp", "--user", "1000:1000"]
        mount = ["--volume", f"{self._folder}:/work:ro", "--workdir", "/work"]
        return [*first, "--rm", *self._label, *caps, *lock, *mount, self._image]

    def run(self) -> dict[str, list[float]]:
        """One submit in a container of its own."""
        argv = [*self._start, *self._words("run"), "python3", "-I", "runner.py"]
        return {RUN: [_graded(argv, self._folder, dict(os.environ))]}

    def exec(self) -> dict[str, list[float]]:
        """One submit in the kept container."""
        argv = [*self._start, "exec", self._kept, "python3", "-I", "runner.py"]
        return {EXEC: [_graded(argv, self._folder, dict(os.environ))]}

    def close(self) -> None:
        with contextlib.suppress(ArenaError):
            _call([*self._start, "rm", "--force", self._kept])


def _label() -> list[str]:
    """So that ``tiltyard gc`` finds the kept container if we are killed."""
    from tiltyard.cells.owner import LABEL, owner_id

    return ["--label", f"{LABEL}={owner_id()}"]


def _graded(argv: Sequence[str], folder: str, env: dict[str, str]) -> float:
    begun = time.perf_counter()
    said = _call(argv, folder, env)
    seconds = time.perf_counter() - begun
    try:
        report = json.loads(said)
    except ValueError:
        report = said[:300]
    if report != {"passed": len(TASK.hidden), "total": len(TASK.hidden)}:
        raise ArenaError(f"{Path(argv[0]).name} graded wrongly: {report!r}")
    return seconds


def _call(argv: Sequence[str], folder: str | None = None, env: dict[str, str] | None = None) -> str:
    what = Path(argv[0]).name + (f" {argv[1]}" if len(argv) > 1 else "")
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CALL_S,
            check=False,
        )
    except OSError as error:
        raise ArenaError(f"{what} can't be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise ArenaError(f"{what} did not end within {CALL_S:.0f} s") from None
    if done.returncode != 0:
        raise ArenaError(f"{what} ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


@contextlib.contextmanager
def plain_files() -> Iterator[Plain]:
    """A :class:`Plain`, removed afterwards."""
    plain = Plain()
    try:
        yield plain
    finally:
        plain.close()
