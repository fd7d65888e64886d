"""The program in the examiner's cell: holds the hidden tests, runs each in a fork of its own, believes nothing.

Descriptor 3 is the control socket to the arena, 4 the link to the solution's cell. In: one message, the examination
(see :func:`main`). Out, on 3: ``["test", index, passed, reason, flags, died]`` after each test, at the end
``["done"]``; or ``["void", reason]`` if the task's own prelude fails. Time limits are kept here, outside the
solution's process: a test that does not end is killed.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import io
import json
import os
import random
import select
import signal
import socket
import sys
import time
import warnings
from typing import Any

from .codec import BUILTINS
from .guard import standard_exception
from .link import Closed, Link, ProtocolError, send_fd
from .peer import Escaped, Peer, RemoteModule

HOME = "hidden_tests"
MAX_REPORT = 4096
TIMED_OUT = "timed out"


class Discard(io.TextIOBase):
    """Where a test's own prints go unless it redirects them."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def writable(self) -> bool:
        return True


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """``import`` of a module of the solution, in a test, gives a :class:`RemoteModule`."""

    def __init__(self, names: list[str], peer: Peer) -> None:
        self._names = {n for n in names if n.partition(".")[0] not in sys.stdlib_module_names}
        self._peer = peer

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in self._names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return RemoteModule(spec.name, self._peer)

    def exec_module(self, module: Any) -> None:
        self._peer.ask("g", ["mod", module.__name__], "__name__")


def main(fds: list[int]) -> None:
    """Examine once. The message:
    ``[main path, entry names, module names, prelude, tests, bound, load_s, grade_s, stop at a time-out]``.

    ``tests`` is a list of ``[index, code, seconds]`` in the order in which they are to run."""
    control = Link(socket.socket(fileno=fds[0]), 256 << 20)
    solution = socket.socket(fileno=fds[1])
    main_path, entry, modules, prelude, tests, bound, load_s, grade_s, stop = control.recv()
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), Discard(), Discard()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    end = time.monotonic() + grade_s
    load_end = time.monotonic() + load_s
    names = _run_prelude(control, prelude)
    if names is None:
        return
    # compiled while the solution loads
    codes = [compile(code, f"<test {index}>", "exec", dont_inherit=True) for index, code, _ in tests]
    failed = _await_loaded(solution, main_path, bound, load_end)
    gc.collect()
    gc.freeze()
    for (index, _, seconds), code in zip(tests, codes, strict=True):
        if failed is not None:
            report = [False, failed, [], False]
        elif time.monotonic() >= end:
            report = [False, "not run: the grading's time is over", [], False]
        else:
            report = _run_test(
                solution, code, names, entry, modules, bound, min(seconds, end - time.monotonic())
            )
        control.send(["test", index, *report])
        if stop and report[1] == TIMED_OUT:
            failed = "not run: a test before it timed out"
    control.send(["done"])


def _run_prelude(control: Link, prelude: str) -> dict[str, Any] | None:
    names: dict[str, Any] = {"__name__": HOME, "__builtins__": __builtins__}
    sys.modules[HOME] = type(sys)(HOME)
    try:
        exec(compile(prelude, "<prelude>", "exec", dont_inherit=True), names)
    except BaseException as error:
        control.send(["void", f"the task's prelude raised {type(error).__name__}: {str(error)[:200]}"])
        return None
    return names


def _await_loaded(solution: socket.socket, main_path: str, bound: int, end: float) -> str | None:
    """None once the solution is loaded; else why it is not."""
    link = Link(solution, 4096)
    try:
        link.send([main_path, bound])
        if not select.select([solution], [], [], max(0.0, end - time.monotonic()))[0]:
            return "the solution did not load within its time limit"
        answer = link.recv()
    except (Closed, ProtocolError):
        return "the solution's process ended while loading"
    if answer == ["loaded"]:
        return None
    name = answer[1] if len(answer) == 2 and type(answer[1]) is str else ""
    return f"the solution did not load: {exception_name(name)}"


def exception_name(name: str) -> str:
    """The name if it is one of Python's own exceptions: a name that a solution made up is never repeated."""
    found = BUILTINS.get(name)
    return name if isinstance(found, type) and issubclass(found, BaseException) else "an exception of its own"


def _run_test(
    solution: socket.socket,
    code: Any,
    names: dict[str, Any],
    entry: list[str],
    modules: list[str],
    bound: int,
    seconds: float,
) -> list[Any]:
    """``[passed, reason, flags, died]``; ``died``: the test's own process ended without a report."""
    end = time.monotonic() + seconds
    mine, theirs = socket.socketpair()
    try:
        send_fd(solution, theirs.fileno())
    except OSError:
        mine.close()
        return [False, "the solution's process ended", [], False]
    finally:
        theirs.close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setpgid(0, 0)
            _test(mine, code, names, entry, modules, bound, writer)
        finally:
            os._exit(0)
    mine.close()
    os.close(writer)
    try:
        data = _read_report(reader, end)
    finally:
        os.close(reader)
        for kill in (os.killpg, os.kill):
            try:
                kill(child, signal.SIGKILL)
            except OSError:
                pass
        os.waitpid(child, 0)
    if data is None:
        return [False, TIMED_OUT, [], False]
    try:
        passed, reason, flags = json.loads(data)
        return [passed is True, reason, flags, False]
    except ValueError:
        return [False, "the test's process ended without a report", [], True]


def _read_report(reader: int, end: float) -> bytes | None:
    data = b""
    while len(data) < MAX_REPORT:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return None
        part = os.read(reader, MAX_REPORT)
        if not part:
            break
        data += part
    return data


def _test(
    sock: socket.socket,
    code: Any,
    names: dict[str, Any],
    entry: list[str],
    modules: list[str],
    bound: int,
    writer: int,
) -> None:
    """In the fork: run one test against the solution and report."""
    peer = Peer(Link(sock, bound), strict=True, home=HOME)
    sys.meta_path.insert(0, Finder(modules, peer))
    sys.modules[HOME].__dict__.update(names)
    random.seed(0)
    passed, reason = False, ""
    try:
        found = peer.ask("names", entry) if entry else {}
        for name in entry:
            names.pop(name, None)
            if name in found:
                names[name] = found[name]
        exec(code, names)
        passed = True
    except BaseException as error:
        reason = _reason(error)
    if peer.escaped is not None:
        passed, reason = False, peer.escaped[0]
    report = json.dumps([passed, reason[:200], sorted(peer.flags)]).encode()
    while report:
        report = report[os.write(writer, report) :]
    os._exit(0)


def _reason(error: BaseException) -> str:
    if isinstance(error, Escaped):
        return str(error.args[0])
    if type(error) is AssertionError:
        return "assertion failed"
    cls = type(error)
    own = cls.__module__ == "builtins" or standard_exception(cls.__module__, cls.__qualname__) is cls
    return f"raised {cls.__name__}" if own else "raised an exception of its own"
