"""The program in the solution's cell: loads the solution once, and answers every test as if it were the first one.

Descriptor 3 is the link to the examiner. First message in: ``[main path, bound, number of tests, together]``; first
message out: ``["loaded"]`` or ``["failed", class name]``. Then the examiner sends one descriptor a test: a fork of this
process answers on it (see ``peer``). If the tests may be answered ``together`` and the solution keeps nothing from one
to the next (see ``keeping``), the message is ``["loaded", true]``, and this process itself answers, all tests on one
descriptor. Everything here is at the mercy of the solution's code: the examiner believes nothing.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import io
import os
import random
import socket
import sys
from typing import Any

from . import fork, loading
from .describe import members
from .keeping import Watch, own_modules, watch
from .link import Closed, Link, ProtocolError, recv_fd
from .peer import Peer

MAX_PRINTED = 1 << 20


class Printed(io.TextIOBase):
    """What the solution prints, capped, until the examiner takes it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = MAX_PRINTED

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text and self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def writable(self) -> bool:
        return True

    def fresh(self) -> None:
        """As at the start."""
        self._parts.clear()
        self._room = MAX_PRINTED

    def take(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        return text


class Asked(io.TextIOBase):
    """Standard input of the solution: lines that a test has put into its own ``sys.stdin``."""

    encoding = "utf-8"

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        line = self._peer.ask("in")
        return line if isinstance(line, str) else ""

    def read(self, size: int | None = -1) -> str:
        return "".join(iter(self.readline, ""))

    def __next__(self) -> str:  # type: ignore[override]
        line = self.readline()
        if not line:
            raise StopIteration
        return line


def main(fds: list[int]) -> None:
    """Serve, and end: an interpreter's end would take a millisecond, and nobody needs it. ``fds[0]``: a unix stream
    socket to the examiner."""
    sock = socket.socket(fileno=fds[0])
    serve(sock)
    os._exit(0)


def serve(sock: socket.socket) -> None:
    """Until the examiner is gone."""
    link = Link(sock, 1 << 20)
    main_path, bound, tests, together = link.recv()[:4]
    printed, errors = Printed(), Printed()
    sys.stdout, sys.stderr = printed, errors
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    sys.argv = [main_path]
    _settle_random()
    module = kept = None
    try:
        before = next(reversed(sys.modules))
        module = load(main_path)
        kept = watch(own_modules(before)) if together else None
        answer = ["loaded", True] if kept is not None else ["loaded"]
    except BaseException as error:
        module, answer = None, ["failed", type(error).__name__]
    link.send(answer)
    if kept is not None:
        _answer_together(sock, tests, module, bound, printed, errors, kept)
    elif module is not None:
        _fork_for_tests(sock, tests, module, bound, printed, errors)


def _answer_together(
    sock: socket.socket, tests: int, module: Any, bound: int, printed: Printed, errors: Printed, kept: Watch
) -> None:
    """Answer one test after the other; end at once where one has changed what the next would find."""

    def renew() -> None:
        if kept.changed():
            os._exit(0)
        printed.fresh()
        errors.fresh()
        _settle_random()

    for _ in range(tests):
        fd = recv_fd(sock)
        if fd is None:
            return
        with socket.socket(fileno=fd) as own:
            peer = _prepare(own, module, bound, printed, errors)
            peer.renew = renew
            _serve(peer)
        renew()


def load(path: str) -> Any:
    """Import the solution's main file under its own module name."""
    name = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    if path.endswith(".py") and all(p.isidentifier() for p in name.split(".")):
        sys.modules.pop(name.partition(".")[0], None)
        return loading.load(name)
    spec = importlib.util.spec_from_file_location("solution", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["solution"] = module
    spec.loader.exec_module(module)
    return module


def _settle_random() -> None:
    random.seed(0)
    if (numpy := sys.modules.get("numpy")) is not None and hasattr(numpy, "random"):
        numpy.random.seed(0)


def _fork_for_tests(
    sock: socket.socket, tests: int, module: Any, bound: int, printed: Printed, errors: Printed
) -> None:
    """One child a descriptor. The next one is forked ahead and waits for its descriptor itself; when it has taken it,
    the one before it is killed with all that is left in its process group."""
    _warm(module)
    peer = _prepare(sock, module, bound, printed, errors)  # made once; a fork puts its own socket in
    gc.collect()
    gc.freeze()
    before = 0
    for _ in range(tests):
        reader, writer = os.pipe()
        child = fork.fork()
        if child == 0:
            os.close(reader)
            os.setpgid(0, 0)
            fd = recv_fd(sock)
            if fd is not None:
                os.write(writer, b"t")
                os.close(writer)
                sock.close()
                peer.link.sock = socket.socket(fileno=fd)
                _serve(peer)
            os._exit(0)
        os.close(writer)
        taken = os.read(reader, 1)
        os.close(reader)
        if before:
            fork.end(before)
        if not taken:
            fork.end(child)
            return
        before = child
        _reap()
    sock.recv(1)  # the last one may take its time; with this process it would lose its parent
    if before:
        fork.end(before)


def _warm(module: Any) -> None:
    """Look once at the classes that every fork will have to describe."""
    for value in (main, len, *vars(module).values()):
        try:
            members(value if isinstance(value, type) else type(value))
        except Exception:
            continue  # a class that breaks when it is looked at does so again in the test that needs it


def _reap() -> None:
    """What the solution's children left to this process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:
        pass


def _prepare(sock: socket.socket, module: Any, bound: int, printed: Printed, errors: Printed) -> Peer:
    """The solution's end of a conversation."""
    peer = Peer(Link(sock, bound), strict=False, resolve=lambda m, n: _resolve(module, m, n))

    def output() -> Any:
        texts = [printed.take(), errors.take()]
        return texts if any(texts) else 0

    peer.output = output
    printed.fresh()
    errors.fresh()
    sys.stdin = Asked(peer)
    return peer


def _serve(peer: Peer) -> None:
    _settle_random()
    try:
        peer.serve_forever()
    except (Closed, ProtocolError):
        pass


def _resolve(module: Any, name: str, attribute: str) -> Any:
    found = importlib.import_module(name) if name else module
    return getattr(found, attribute) if attribute else found
