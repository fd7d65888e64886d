"""The program of the in-process way: pytest and the submission in one process, which says what came of each test.

Descriptor 3 is the control socket. In: one message, ``[kit, files, tests, roots, plugins, own, key, only_collect, watched]``. Out: lines
(``tiltyard.referee.pytest_session``), sealed. Everything that can be is settled before the first line of the submission runs: pytest
loaded, the standard library in front of the workspace, the hook installed, the seal's key out of sight, our modules
out of ``sys.modules``. After that the process may say what it wants: it is a claim, and the arena asks for evidence.
"""

# ruff: noqa: PTH109
from __future__ import annotations

import importlib.machinery
import os
import random
import socket
import sys
from collections.abc import Callable
from typing import Any

from . import seal, suite, watch
from .link import Link
from .testrun import _reason

_exit = os._exit


class StandardFirst:
    """Finds the standard library where the interpreter has it, whatever lies in the workspace under its names."""

    def __init__(self, own: list[str]) -> None:
        self._names = sys.stdlib_module_names - {*own}
        self._path = list(sys.path)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if path is not None or name not in self._names:
            return None
        return importlib.machinery.PathFinder.find_spec(name, self._path)


class Teller:
    """The listener of the session; ``say`` writes a line."""

    def __init__(self, say: Callable[[str], None], flags: set[str]) -> None:
        self._say = say
        self._flags = flags
        self._told: set[str] = set()

    def collected(self, ids: list[str]) -> None:
        pass

    def failed_to_collect(self, file: str, error: BaseException | None) -> None:
        self._say(f'["x","{seal.plain(file)}","{seal.plain(reason_of(error))}"]')

    def begin(self, index: int) -> None:
        self._say(f'["b",{index}]')

    def end(self, index: int, reason: str, error: BaseException | None) -> None:
        self.flags()
        said = reason_of(error) if error is not None else reason
        self._say(
            f'["e",{index},{"false" if reason else "true"},"{seal.plain(said) if reason else ""}",[],[]]'
        )

    def flags(self) -> None:
        for flag in sorted(self._flags - self._told):
            self._told.add(flag)
            self._say(f'["f",["{seal.plain(flag)}"]]')


class Lister(Teller):
    """Tells the node ids too."""

    def collected(self, ids: list[str]) -> None:
        import json

        self._say(json.dumps(["c", ids]))


def reason_of(error: BaseException | None) -> str:
    """A few words of a fixed vocabulary, for an exception of whatever origin."""
    if error is None:
        return "failed"
    if type(error).__module__ == "_pytest.outcomes":
        return "assertion failed" if type(error).__name__ == "Failed" else f"raised {type(error).__name__}"
    return _reason(error)


def main(fds: list[int]) -> None:
    """Run one session, and end the process at once."""
    sock = socket.socket(fileno=fds[0])
    packages, files, tests, roots, plugins, own, key, only_collect, watched = Link(sock, 256 << 20).recv()
    say = seal.sealed_writer(sock.fileno(), bytes.fromhex(key))
    try:
        suite.provide(packages)
    except ImportError as error:
        say(f'["v","this wall has no pytest in its cells: {seal.plain(str(error))}"]')
        return
    say('["h"]')
    here = f"{os.getcwd()}/"
    before = watch.facts()
    flags: set[str] = set()
    teller = Lister(say, flags) if only_collect else Teller(say, flags)
    watch.start(here, [f"{here}{path}" for path in watched], flags, teller.flags)
    session = suite.Session(files, [(i, t) for i, t in tests], roots, plugins, only_collect=only_collect)
    sys.argv = ["pytest"]
    sys.meta_path.insert(0, StandardFirst(own))
    for name in [n for n in sys.modules if n == "_tiltyard" or n.startswith("_tiltyard.")]:
        del sys.modules[name]
    random.seed(0)
    key = ""
    run, changed, cause_of = suite.run, watch.changed, suite.cause_of
    try:
        run(session, teller)
        flags |= changed(before)
        teller.flags()
        say('["d"]')
    except Exception as error:
        say(f'["s","not collected: {seal.plain(reason_of(cause_of(error)))}"]')
    finally:
        _exit(0)
