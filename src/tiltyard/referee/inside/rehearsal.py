"""What examiners, solutions and runs of visible tests do, done once before there is anything to hide: so that forks find everything warm.

The interpreter adapts code that it runs, and fills its caches, by writing into it. What is written before a fork is
shared by all forks; what each fork writes for itself costs it a page fault at a time. Every step is the same each time:
what a server has done shapes its memory, and all servers of a machine shall be alike.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import random
import socket
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from . import examiner, fork, solution, visible
from .link import Link
from .peer import Peer

ROUNDS = 12


class _Direct(Link):
    """An end whose messages are served by the other side at once, in the same process."""

    def __init__(self) -> None:
        self.other: Peer | None = None
        self.bound = 1 << 20
        self._arrived: deque[list[Any]] = deque()

    def send(self, message: list[Any]) -> None:
        assert self.other is not None
        copied = json.loads(json.dumps(message))
        if message[0] == "q":
            self.other._serve(copied)
        else:
            other = self.other.link
            assert isinstance(other, _Direct)
            other._arrived.append(copied)

    def recv(self) -> list[Any]:
        return self._arrived.popleft()

    def pending(self) -> bool:
        return False


class _Thing:
    def __init__(self, items: list[int]) -> None:
        self.items = items

    def add(self, item: int) -> _Thing:
        self.items.append(item)
        return self

    def __len__(self) -> int:
        return len(self.items)

    def fail(self) -> None:
        raise KeyError("rehearsed")


def _twice(xs: list[Any], change: Any = None) -> list[Any]:
    return [change(x) if change else x for x in xs]


def warm_up() -> None:
    """Called once by a fork server, before anything of a task or of a player is there."""
    _talk()


def exercise() -> None:
    """Called once by a fork server, in an empty folder that is removed then."""
    with _as_it_was():
        _look()
        _look()
        _examine()
        _answer()


def _talk() -> None:
    """Both sides of a conversation, in this process."""
    names = {"_twice": _twice, "_Thing": _Thing}
    for _ in range(ROUNDS):
        ends = _Direct(), _Direct()
        examiner = Peer(ends[0], strict=True, home="rehearsal")
        solution = Peer(ends[1], strict=False, resolve=lambda module, name: names[name])
        ends[0].other, ends[1].other = solution, examiner
        found = examiner.ask("names", list(names))
        xs = [3, 1, 2]
        assert found["_twice"](xs) == xs
        assert found["_twice"]((1.5, "a", None), lambda x: x) == [1.5, "a", None]
        thing = found["_Thing"](xs)
        assert len(thing.add(4)) == 4 and thing.items == [3, 1, 2, 4]
        try:
            thing.fail()
        except KeyError:
            pass
        examiner.escaped = ("the rehearsal is over", "")


# ------------------------------------------------------------------------------- with the other side in a fork

_NAME = "rehearsed"
_SOURCE = """TABLE = [1, 2]


def twice(xs):
    if len(xs) > 3:
        raise ValueError("too long")
    return [x * 2 for x in xs]
"""
_TESTS = (
    "assert twice([1, 2]) == [2, 4]",
    "import math\nassert twice((math.pi,))[0] > 6",
    "try:\n    twice([1] * 4)\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError",
    "assert twice([]) == []",
)
_TIME_S = 60.0


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """With a solution in the current folder. All else that is changed is put back at the end."""
    before = list(sys.path), list(sys.argv), sys.dont_write_bytecode, set(sys.modules), random.getstate()
    streams = sys.stdin, sys.stdout, sys.stderr
    limit = sys.getrecursionlimit()
    try:
        with open(f"{_NAME}.py", "w", encoding="ascii") as file:
            file.write(_SOURCE)
        with warnings.catch_warnings():
            yield
    finally:
        path, argv, sys.dont_write_bytecode, modules, state = before
        sys.path[:], sys.argv = path, argv
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.setrecursionlimit(limit)
        random.setstate(state)
        for name in (_NAME, "hidden_tests"):
            if name not in modules:
                sys.modules.pop(name, None)
        for number in range(2 * len(_TESTS)):
            linecache.cache.pop(f"<test t{number}>", None)


def _look() -> None:
    """A run of visible tests."""
    config = {
        "main": f"{_NAME}.py", "entry": ["twice"], "imports": "", "run_s": _TIME_S,
        "tests": [{"id": f"t{n}", "code": code, "time_s": _TIME_S} for n, code in enumerate(_TESTS * 2)],
    }  # fmt: skip
    printed = visible.Sink()
    blocks, passed = visible.at_once(json.loads(json.dumps(config)), printed, -1, lambda seconds: None)
    assert passed == 2 * len(_TESTS), blocks
    printed.close()


def _beside(other: Callable[[], None]) -> int:
    """A fork that does this and ends."""
    child = fork.fork()
    if child == 0:
        try:
            other()
        finally:
            os._exit(0)
    return child


def _examination(tests: int) -> list[Any]:
    items = [[n, [code, "", True], _TIME_S, None] for n, code in enumerate((_TESTS * 2)[:tests])]
    return [
        f"{_NAME}.py", ["twice"], [_NAME], ["import math", "", True], items, 1 << 20, _TIME_S, _TIME_S, False, True, "",
    ]  # fmt: skip


def _examine() -> None:
    """An examination, with the solution in a fork."""
    control, control_e = socket.socketpair()
    link_e, link_s = socket.socketpair()
    with control, control_e, link_e, link_s:
        child = _beside(lambda: solution.serve(link_s))
        link_s.close()
        ours = Link(control, 1 << 20)
        ours.send(_examination(8))
        try:
            examiner.examine(control_e, link_e)
        finally:
            link_e.close()
            fork.end(child)
        said = ours.recv()
        assert said == ["loaded"], said


def _answer() -> None:
    """The other side of one, with the examiner in a fork: of a single test, for of several it would depend on the
    clock which messages arrive together."""
    control, control_e = socket.socketpair()
    link_e, link_s = socket.socketpair()
    with control, control_e, link_e, link_s:
        Link(control, 1 << 20).send(_examination(1))
        child = _beside(lambda: examiner.examine(control_e, link_e))
        link_e.close()
        try:
            solution.serve(link_s)
        finally:
            fork.end(child)
