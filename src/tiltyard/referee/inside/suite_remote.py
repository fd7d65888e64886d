"""The program in the examiner's cell for a suite: a trusted pytest on trusted files, with a package that is elsewhere.

Descriptor 3 is the control socket to the arena, 4 the link to the solution's cell (see ``package``). In: one message,
``[kit, files, tests, roots of the tests, plugins, modules, to load, roots of the package, bound, load_s, allowed,
only_collect]``. Out: lines (``tiltyard.referee.pytest_session``).
``import`` of a module of the package gives a remote one; only typed plain data crosses, as in grading by calls. When
the solution's side escapes (its process ended, it broke the protocol), the session is over, for what tests hold of it is dead.
"""

# ruff: noqa: PTH109
from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import socket
import sys
import time
from typing import Any

from . import suite
from .examiner import _await_loaded
from .liberties import Liberties
from .link import Closed, Link
from .peer import Peer
from .proxy import Proxy, ProxyMeta
from .seal import sealed_writer
from .standins import RemoteModule
from .suite_local import reason_of
from .testrun import GONE, Finder

_REMOTE = (ProxyMeta, Proxy, RemoteModule)


class Package(RemoteModule):
    """A remote module whose submodules are remote modules too when they are taken from it as attributes."""

    _names: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        full = f"{self.__name__}.{name}"
        if full in type(self)._names and isinstance(value, Proxy) and type(value).__name__ == "module":
            return importlib.import_module(full)
        return value


class Packages(Finder):
    """``import`` of a module of the package gives a remote one."""

    def create_module(self, spec: Any) -> Any:
        made = type("RemotePackage", (Package,), {"_names": frozenset(self._names)})
        return made(spec.name, self._peer)


class Homes:
    """The names of modules that are files of the examiner's own workspace: those of the tests."""

    def __init__(self, here: str) -> None:
        self._here = here

    def __contains__(self, name: object) -> bool:
        module = sys.modules.get(name) if isinstance(name, str) else None
        path = getattr(module, "__dict__", {}).get("__file__")
        return isinstance(path, str) and path.startswith(self._here)


class Examiner:
    """The listener of the session: says how each test ended, with the liberties that the solution took in it."""

    def __init__(self, control: int, peer: Peer, allowed: dict[int, frozenset[str]], list_ids: bool) -> None:
        self._say = sealed_writer(control, b"")
        self._list_ids = list_ids
        self._peer = peer
        self._allowed = allowed
        self._before: set[str] = set()

    def line(self, *parts: Any) -> None:
        self._say(json.dumps(parts))

    def collected(self, ids: list[str]) -> None:
        self._before = set(self._peer.liberties.taken)
        if self._list_ids:
            self.line("c", ids)

    def failed_to_collect(self, file: str, error: BaseException | None) -> None:
        escaped = self._peer.escaped
        self.line("x", file, escaped[0] if escaped else reason_of(error))
        if escaped:
            self.stop()

    def begin(self, index: int) -> None:
        self._peer.liberties = Liberties(self._allowed.get(index))
        random.seed(0)
        self.line("b", index)

    def end(self, index: int, reason: str, error: BaseException | None) -> None:
        peer = self._peer
        escaped = peer.escaped
        said = escaped[0] if escaped else reason_of(error) if error is not None else reason
        passed = not reason and not escaped
        self.line("e", index, passed, said, sorted(peer.flags), sorted(peer.liberties.taken | self._before))
        if escaped:
            self.stop()
        peer.flags.clear()

    def stop(self, reason: str = "") -> None:
        self.line("s", self._peer.escaped[0] if self._peer.escaped else reason)
        os._exit(0)


def _undo_on_remotes() -> None:
    """``monkeypatch`` looks for what it must put back in the ``__dict__`` of a module or class, where a remote one has
    nothing, and would delete the attribute: here it puts back what the remote one answered with."""
    from _pytest.monkeypatch import MonkeyPatch, derive_importpath

    usual = MonkeyPatch.setattr
    nothing = object()

    def set_attribute(self: Any, target: Any, name: Any, value: Any = nothing, raising: bool = True) -> None:
        if isinstance(target, str) and value is nothing:
            value, (name, target) = name, derive_importpath(target, raising)
        before = getattr(target, name, nothing) if isinstance(target, _REMOTE) else nothing
        if before is nothing:
            rest = () if value is nothing else (value,)
            usual(self, target, name, *rest, raising=raising)  # type: ignore[call-overload]
            return
        self._setattr.append((target, name, before))
        setattr(target, name, value)

    MonkeyPatch.setattr = set_attribute  # type: ignore[method-assign]


def main(fds: list[int]) -> None:
    """Run one session."""
    control = socket.socket(fileno=fds[0])
    solution = socket.socket(fileno=fds[1])
    job = Link(control, 256 << 20).recv()
    (
        packages,
        files,
        tests,
        roots,
        plugins,
        modules,
        load,
        package_roots,
        bound,
        load_s,
        allowed,
        only_collect,
    ) = job
    end = time.monotonic() + load_s
    say = sealed_writer(control.fileno(), b"")
    link = Link(solution, 4096)
    failed = None
    try:
        Link(solution, 1 << 20).send([load, package_roots, bound])
    except Closed:
        failed = f"{GONE} while loading"
    try:
        suite.provide(packages)
    except ImportError as error:
        say(json.dumps(["v", f"the examiner has no pytest: {error}"]))
        return
    failed = failed or _await_loaded(solution, link, end)[0]
    if failed is not None:
        say(json.dumps(["s", failed]))
        return
    mine = {i: frozenset(names) for i, names in allowed if names is not None}
    peer = Peer(
        Link(solution, bound, lambda name: peer.constant(name)),
        strict=True,
        home=Homes(f"{os.getcwd()}/"),
        liberties=Liberties(frozenset.intersection(*mine.values()) if mine else None),
    )
    sys.meta_path.insert(0, Packages(modules, peer))
    sys.argv = ["pytest"]
    with contextlib.suppress(ImportError):  # another pytest than this one is made for
        _undo_on_remotes()
    random.seed(0)
    examiner = Examiner(control.fileno(), peer, mine, only_collect)
    session = suite.Session(files, [(i, t) for i, t in tests], roots, plugins, only_collect=only_collect)
    try:
        suite.run(session, examiner)
    except Exception as error:
        examiner.stop(f"{suite.NOT_COLLECTED}: {reason_of(suite.cause_of(error))}")
    if peer.escaped:
        examiner.stop()
    say('["d"]')
    os._exit(0)
