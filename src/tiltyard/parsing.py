"""Python source as a tree, from any thread.

CPython 3.11 counts the depth of ``ast.parse`` for the whole interpreter: two threads that parse at once make one of them
fail with SystemError. So the package parses through here, one at a time.
"""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")
_lock = threading.RLock()


def parse_source(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """As ``ast.parse``; raises what that raises."""
    with _lock:
        return ast.parse(source, filename)


def parse_expression(source: str) -> ast.Expression:
    """As ``ast.parse`` with mode "eval"."""
    with _lock:
        return ast.parse(source, mode="eval")


def alone(work: Callable[..., _T], *arguments: Any) -> _T:
    """Call what parses by itself (code that also runs inside cells), while nothing else parses."""
    with _lock:
        return work(*arguments)


def _after_fork() -> None:
    """A lock that some thread held is held by nobody in a child."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
