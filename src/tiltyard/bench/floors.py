"""What nothing can be faster than: fork and wait, a bare interpreter, spawning a program that does nothing.

Forks are timed in helper processes, for a fork costs what the forking process has in memory, and this one has a lot:
a small interpreter for ``os.fork``, and a warm one (the fork server's modules loaded) for a raw clone, which skips
Python's own after-fork work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tiltyard.errors import ArenaError

FORK = "fork_and_wait"
CLONE = "clone_and_wait"
PYTHON = "python_isolated"
TRUE = "true"
NAMES: Mapping[str, str] = {
    FORK: "os.fork and wait, a small interpreter",
    CLONE: "raw clone and wait, a warm interpreter",
    PYTHON: "python -I -S -c pass",
    TRUE: "spawn and wait for true",
}

_HELPER = """
import ctypes, json, os, platform, sys, time
for name in json.loads(sys.argv[1]):
    try:
        __import__(name)
    except ImportError:
        pass
libc = ctypes.PyDLL(None)  # keeps the interpreter's lock, which a child could not take again
number = {"x86_64": 56, "aarch64": 220}.get(platform.machine()) if sys.platform == "linux" else None
SIGCHLD = 17

def fork():
    return os.fork()

def clone():
    return libc.syscall(number, SIGCHLD, 0, 0, 0, 0) if number else libc.fork()

def once(way):
    begun = time.perf_counter()
    pid = way()
    if pid == 0:
        libc._exit(0)
    os.waitpid(pid, 0)
    return time.perf_counter() - begun

ways = {"fork_and_wait": fork, "clone_and_wait": clone}
print("ready", flush=True)
for line in sys.stdin:
    way, count = line.split()
    print(json.dumps([once(ways[way]) for _ in range(int(count))]), flush=True)
"""


class _Helper:
    """An interpreter that times its own forks."""

    def __init__(self, way: str, modules: Sequence[str]) -> None:
        self.way = way
        self._process = subprocess.Popen(
            [_real_python(), "-I", "-S", "-c", _HELPER, json.dumps(list(modules))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={},
        )
        if self._line().strip() != "ready":
            self.close()
            raise ArenaError(f"the interpreter that times {way} did not come up")

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def seconds(self, count: int) -> list[float]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{self.way} {count}\n")
            self._process.stdin.flush()
            return [float(value) for value in json.loads(self._line())]
        except (OSError, ValueError):
            raise ArenaError(
                f"the interpreter that times {self.way} ended ({self._process.poll()})"
            ) from None

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        for stream in (self._process.stdin, self._process.stdout):
            try:
                stream.close()
            except OSError:
                pass
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Floors:
    """Times the floors; holds two helper processes until it is closed."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._helpers: list[_Helper] = []
        self._true = "/bin/true" if Path("/bin/true").exists() else "/usr/bin/true"
        try:
            self._helpers.append(_Helper(FORK, ()))
            self._helpers.append(_Helper(CLONE, modules))
        except BaseException:
            self.close()
            raise

    def once(self) -> dict[str, list[float]]:
        """One turn: seconds by floor."""
        found = {helper.way: helper.seconds(5) for helper in self._helpers}
        found[PYTHON] = [spawned([_real_python(), "-I", "-S", "-c", "pass"])]
        found[TRUE] = [spawned([self._true])]
        return found

    def close(self) -> None:
        while self._helpers:
            self._helpers.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def spawned(argv: Sequence[str]) -> float:
    """Seconds to spawn a program and see its end. ArenaError if it fails."""
    begun = time.perf_counter()
    try:
        pid = os.posix_spawn(argv[0], list(argv), {"PATH": "/usr/bin:/bin"})
    except OSError as error:
        raise ArenaError(f"{argv[0]} can't be started: {error.strerror}") from None
    status = os.waitpid(pid, 0)[1]
    seconds = time.perf_counter() - begun
    if status != 0:
        raise ArenaError(f"{argv[0]} ended with status {os.waitstatus_to_exitcode(status)}")
    return seconds


def _real_python() -> str:
    """The interpreter without a virtual environment's link or a version manager's shim, which cost time of their own."""
    return os.path.realpath(sys.executable)
