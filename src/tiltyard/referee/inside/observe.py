"""The program that looks at how tests use the code that they test: which lines they reach, or what they call.

For whoever makes tasks out of code that is not hostile. Descriptor 3 is the control socket. In: one message, the job (see
:func:`main`). Out: ``["e", index, passed, reason, trace]`` after each test (``tracing`` says what a trace is), and of
pytest before the first one with the index -1; then ``["d"]``; or ``["s", reason]`` where it can't begin.
"""

# ruff: noqa: PTH109
from __future__ import annotations

import os
import random
import socket
import sys
from typing import Any

from . import suite
from .link import Link, TooLarge
from .suite_local import StandardFirst, reason_of
from .testrun import Discard, fresh_names
from .tracing import Calls, Lines

BOUND = 64 << 20
AT_IMPORT = -1
"""The index of what is seen before the first test, where the package and the test files are loaded."""


def main(fds: list[int]) -> None:
    """Look once, and end the process. The job is a dict in a list: ``kind`` ("pytest" or "calls"), ``look`` ("lines" or
    "calls"), ``files`` (those to see, by number), ``tests`` (pairs of index and node id, or code), and of pytest
    ``kit``, ``suite``, ``roots``, ``plugins``, ``own``; of calls ``prelude``, ``main``, ``entry``, ``modules``."""
    link = Link(socket.socket(fileno=fds[0]), BOUND)
    [job] = link.recv()
    here = f"{os.getcwd()}/"
    where = {f"{here}{path}": n for n, path in enumerate(job["files"])}
    teller = Teller(link, (Lines if job["look"] == "lines" else Calls)(where))
    try:
        random.seed(0)
        (_pytest if job["kind"] == "pytest" else _calls)(job, teller)
        link.send(["d"])
    except BaseException as error:
        sys.settrace(None)
        link.send(["s", reason_of(suite.cause_of(error))])
    finally:
        os._exit(0)


class Teller:
    """A listener of a session that traces each test."""

    def __init__(self, link: Link, tracer: Any) -> None:
        self._link, self._tracer = link, tracer

    def collected(self, ids: list[str]) -> None:
        self.end(AT_IMPORT, "", None)

    def failed_to_collect(self, file: str, error: BaseException | None) -> None:
        pass

    def begin(self, index: int) -> None:
        self._tracer.begin()

    def end(self, index: int, reason: str, error: BaseException | None) -> None:
        trace = self._tracer.end()
        said = reason_of(error) if error is not None else reason
        try:
            self._link.send(["e", index, not reason, said if reason else "", trace])
        except TooLarge:
            self._link.send(["e", index, not reason, said if reason else "", []])


def _pytest(job: dict[str, Any], teller: Teller) -> None:
    suite.provide(job["kit"])
    tests = [(index, test_id) for index, test_id in job["tests"]]
    session = suite.Session(job["suite"], tests, job["roots"], job["plugins"])
    sys.argv = ["pytest"]
    sys.meta_path.insert(0, StandardFirst(job["own"]))
    teller.begin(AT_IMPORT)
    suite.run(session, teller)


def _calls(job: dict[str, Any], teller: Teller) -> None:
    """Each test with the solution's modules fresh, in this process: nothing of this decides a reward."""
    sys.path.insert(0, os.getcwd())
    sys.stdin, sys.stdout, sys.stderr = open(os.devnull), Discard(), Discard()  # noqa: SIM115
    prelude = compile(job["prelude"], "<prelude>", "exec", dont_inherit=True)
    name = job["main"].removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    for index, code in job["tests"]:
        for module in [m for m in sys.modules if m in job["modules"]]:
            del sys.modules[module]
        names = fresh_names(prelude)
        reason, error = "", None
        try:
            __import__(name)
            solution = sys.modules[name]
            names.update({n: getattr(solution, n) for n in job["entry"] if hasattr(solution, n)})
            random.seed(0)
            compiled = compile(code, "<test>", "exec", dont_inherit=True)
            teller.begin(index)
            exec(compiled, names)
        except BaseException as caught:
            reason, error = "failed", caught
        teller.end(index, reason, error)
