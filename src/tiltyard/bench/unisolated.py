"""Driving ``published.py``: our side of the comparison with the published way of judging samples.

What comes back is bounded and checked in shape only: there is no wall around it, so a sample could say anything.
As root it is run as the user nobody where that user can read the interpreter, the least that can be done for a machine
that grades samples without a wall.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tiltyard.errors import ArenaError

SCRIPT = Path(__file__).with_name("published.py")
NOBODY = 65534
START_S = 60.0
MAX_ANSWER = 64 << 20


@dataclass(frozen=True, slots=True)
class Judged:
    """How one sample was judged. ``said``: "passed", "timed out", or "failed: …" in the sample's own words."""

    passed: bool
    said: str
    seconds: float


class Unisolated:
    """The published way, running. Raises ArenaError if it does not come up or stops answering."""

    def __init__(self, problems: Mapping[str, Any], workers: int, timeout_s: float) -> None:
        self._timeout_s, self._workers = timeout_s, workers
        setup = {"problems": dict(problems), "workers": workers, "timeout": timeout_s}
        if os.geteuid() == 0:
            with contextlib.suppress(ArenaError):  # nobody may not be allowed to read this interpreter
                self._come_up(setup, {"user": NOBODY, "group": NOBODY, "extra_groups": []})
                self.way += ", as the user nobody"
                return
        self._come_up(setup, {})

    def _come_up(self, setup: Mapping[str, Any], who: Mapping[str, Any]) -> None:
        self._folder = tempfile.mkdtemp(prefix="tiltyard-bench-")
        self._buffer = b""
        if who:
            os.chown(self._folder, who["user"], who["group"])
        try:
            self._process = subprocess.Popen(
                [sys.executable, str(SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                env={
                    "PATH": "/usr/bin:/bin",
                    "HOME": self._folder,
                    "TMPDIR": self._folder,
                    "LANG": "C.UTF-8",
                },
                start_new_session=True,
                **who,
            )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise ArenaError(f"the published way can't be started: {error.strerror}") from None
        try:
            self._say(setup)
            self.way = str(self._hear(START_S).get("ready"))
        except BaseException:
            self.close()
            raise

    def judge(self, jobs: Sequence[tuple[int, str, str]]) -> tuple[float, dict[int, Judged]]:
        """Judge samples (key, task, completion): seconds for all, and how each was judged, by key."""
        self._say(jobs)
        answer = self._hear(START_S + (self._timeout_s + 5) * len(jobs) / self._workers)
        found: dict[int, Judged] = {}
        match answer:
            case {"seconds": float(seconds), "results": list(results)}:
                for result in results:
                    match result:
                        case [int(key), bool(passed), str(said), float(each)]:
                            found[key] = Judged(passed, said, each)
                if found.keys() == {key for key, _, _ in jobs}:
                    return seconds, found
        raise ArenaError("the published way answered with something that is no report")

    def close(self) -> None:
        """End it and what it started."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _say(self, value: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise ArenaError(f"the published way ended (status {self._process.poll()})") from None

    def _hear(self, within_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        fd, deadline = self._process.stdout.fileno(), time.monotonic() + within_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise ArenaError(f"the published way did not answer within {within_s:.0f} s")
            data = os.read(fd, 1 << 20)
            self._buffer += data
            if not data or len(self._buffer) > MAX_ANSWER:
                raise ArenaError(f"the published way ended (status {self._process.poll()})")
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ArenaError("the published way answered with something that is no report")
        return answer
