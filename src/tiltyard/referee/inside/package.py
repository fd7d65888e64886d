"""The program in the solution's cell for a suite: loads the package's modules and answers what the tests ask of them.

Descriptor 3 is the link to the examiner. First message in: ``[modules to load, roots, bound]``; first message out:
``["loaded"]``. Then one conversation (see ``peer``) for the whole session: what a plain run of pytest would share between tests is
shared. A module that does not load raises what it raised when a test imports it. Everything here is at the mercy of
the solution's code: the examiner believes nothing.
"""

# ruff: noqa: PTH100
from __future__ import annotations

import importlib
import os
import socket
import sys
from typing import Any

from .link import Closed, Link, ProtocolError
from .peer import Peer
from .solution import MAX_PRINTED, Asked, Printed, _settle_random


class Output(Printed):
    """What the package prints, capped for each answer."""

    def take(self) -> str:
        self._room = MAX_PRINTED
        return super().take()


def main(fds: list[int]) -> None:
    """Serve until the examiner is gone. ``fds[0]``: a unix stream socket to the examiner."""
    sock = socket.socket(fileno=fds[0])
    link = Link(sock, 1 << 20)
    modules, roots, bound = link.recv()[:3]
    printed, errors = Output(), Output()
    sys.stdout, sys.stderr = printed, errors
    sys.path[:0] = [os.path.abspath(root) for root in roots]
    sys.argv = ["pytest"]
    _settle_random()
    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException:
            continue
    peer = Peer(Link(sock, bound), strict=False, resolve=_resolve)

    def output() -> Any:
        texts = [printed.take(), errors.take()]
        return texts if any(texts) else 0

    peer.output = output
    output()
    sys.stdin = Asked(peer)
    link.send(["loaded"])
    try:
        peer.serve_forever()
    except (Closed, ProtocolError):
        pass


class Broken:
    """Stands for a module that did not load: whatever a test asks of it raises what that raised."""

    def __init__(self, error: BaseException) -> None:
        object.__setattr__(self, "error", error)

    def __getattribute__(self, name: str) -> Any:
        raise object.__getattribute__(self, "error")


def _resolve(name: str, attribute: str) -> Any:
    try:
        found: Any = importlib.import_module(name)
    except (
        BaseException
    ) as error:  # an answer, and not the end of this process: it is asked for while a question is read
        found = Broken(error)
    return getattr(found, attribute) if attribute else found
