"""In the examiner or a fork of it: run tests, one after the other, each in a conversation of its own with the solution.

The report of a test is ``[passed, reason, flags, liberties]``. Nothing that a solution wrote is repeated in it.
"""

from __future__ import annotations

import importlib.machinery
import io
import random
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .codec import BUILTINS
from .guard import standard_exception
from .liberties import Liberties
from .link import Closed, Link, send_fd
from .peer import NEXT, Escaped, Peer
from .standins import RemoteModule

HOME = "hidden_tests"
GONE = "the solution's process ended"


@dataclass(frozen=True)
class Setting:
    """What all tests of one examination share."""

    solution: socket.socket
    entry: list[str]
    modules: list[str]
    prelude: Any
    bound: int
    one_talk: bool = False
    """All tests are had in one conversation."""


class Discard(io.TextIOBase):
    """Where a test's own prints go unless it redirects them."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def writable(self) -> bool:
        return True


class Finder:
    """``import`` of a module of the solution, in a test, gives a :class:`RemoteModule`."""

    def __init__(self, names: list[str], peer: Peer) -> None:
        self._names = {n for n in names if n.partition(".")[0] not in sys.stdlib_module_names}
        self._peer = peer

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in self._names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> Any:
        return RemoteModule(spec.name, self._peer)

    def exec_module(self, module: Any) -> None:
        self._peer.ask("g", ["mod", module.__name__], "__name__")

    def forget(self) -> None:
        """The modules go with the test that imported them."""
        sys.meta_path.remove(self)
        for name in self._names:
            sys.modules.pop(name, None)


def fresh_names(prelude: Any) -> dict[str, Any]:
    """The names that a test starts with: what the prelude makes."""
    names: dict[str, Any] = {"__name__": HOME, "__builtins__": __builtins__}
    module = sys.modules[HOME] = type(sys)(HOME)
    exec(prelude, names)
    module.__dict__.update(names)
    return names


class Conversation:
    """The examiner's end of a talk with the solution: of one test, or of several one after the other, if the solution
    keeps nothing between them and says so by still being there."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._sock, theirs = socket.socketpair()
        with theirs:
            send_fd(setting.solution, theirs.fileno())
        link = Link(self._sock, setting.bound, lambda name: self.peer.constant(name))
        self.peer = Peer(link, strict=True, home=HOME)
        self._names: dict[str, Any] | None = None

    def begin(self, allowed: frozenset[str] | None) -> None:
        """For the next test: nothing is remembered of the one before."""
        peer = self.peer
        peer.flags, peer.liberties = set(), Liberties(allowed)
        if self._names is not None:
            peer.escaped = None
            peer.link.send([NEXT])

    def names(self) -> dict[str, Any]:
        """The entry names that the solution has. Raises as ``Peer.ask``."""
        if self._names is None:
            self._names = self.peer.ask("names", self._setting.entry) if self._setting.entry else {}
            self._shareable = not self.peer.table.numbers()
        return self._names

    def goes_on(self) -> bool:
        """Whether another test may be had in it. What is the test's own to change must be fetched anew."""
        return self._setting.one_talk and self._names is not None and self._shareable

    def close(self) -> None:
        self._sock.close()


def run(setting: Setting, tests: list[Any], names: dict[str, Any]) -> Iterator[list[Any]]:
    """Run the tests, ``[index, code, seconds, liberties]``, and report on each; ``names`` are the first one's, the
    others get fresh ones."""
    talk: Conversation | None = None
    for number, (_, code, _, allowed) in enumerate(tests):
        if number:
            names = fresh_names(setting.prelude)
        try:
            talk = talk or Conversation(setting)
            talk.begin(None if allowed is None else frozenset(allowed))
            report, escaped = _run_one(setting, talk, code, names)
        except (OSError, Closed):
            report, escaped = [False, GONE, [], []], True
        if talk is not None and (escaped or not talk.goes_on()):
            talk.close()
            talk = None
        yield report


def _run_one(
    setting: Setting, talk: Conversation, code: Any, names: dict[str, Any]
) -> tuple[list[Any], bool]:
    """The report, and whether the test was ended by what the solution did."""
    peer = talk.peer
    finder = Finder(setting.modules, peer)
    sys.meta_path.insert(0, finder)
    random.seed(0)
    passed, reason = False, ""
    try:
        found = talk.names()
        for name in setting.entry:
            names.pop(name, None)
            if name in found:
                names[name] = found[name]
        exec(code, names)
        passed = True
    except BaseException as error:
        reason = _reason(error)
    escaped = peer.escaped is not None
    if peer.escaped is not None:
        passed, reason = False, peer.escaped[0]
    peer.escaped = ("the test is over", "")
    finder.forget()
    return [passed, reason[:200], sorted(peer.flags), sorted(peer.liberties.taken)], escaped


def _reason(error: BaseException) -> str:
    if isinstance(error, Escaped):
        return str(error.args[0])
    if type(error) is AssertionError:
        return "assertion failed"
    cls = type(error)
    own = cls.__module__ == "builtins" or standard_exception(cls.__module__, cls.__qualname__) is cls
    return f"raised {cls.__name__}" if own else "raised an exception of its own"


def exception_name(name: str) -> str:
    """The name if it is one of Python's own exceptions: a name that a solution made up is never repeated."""
    found = BUILTINS.get(name)
    return name if isinstance(found, type) and issubclass(found, BaseException) else "an exception of its own"
