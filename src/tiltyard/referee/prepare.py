"""What the examiner needs of a task's tests, worked out once a task and not once a grading: compiled code, and which
tests leave nothing behind (``inside.plain``). The code is only compiled here, never executed.

Compiled code goes with its source: an examiner whose interpreter is another one compiles the source itself.
"""

from __future__ import annotations

import importlib.util
import marshal
from dataclasses import dataclass
from typing import Any

from tiltyard.parsing import alone
from tiltyard.referee.inside.plain import is_plain
from tiltyard.referee.once import once_a_task
from tiltyard.task import Task

MAGIC = importlib.util.MAGIC_NUMBER.hex()
REMEMBERED = 512
MAX_SOURCE = 256 << 10
"""Larger sources (a thousand inputs) are compiled by the examiner: parsing them costs less than keeping them."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """``prelude`` and ``tests`` are items ``[source, compiled code in hex or "", leaves nothing behind]``."""

    prelude: list[Any]
    tests: tuple[list[Any], ...]


@once_a_task(REMEMBERED)
def prepared(task: Task) -> Prepared:
    """The items of a task's prelude and hidden tests, in the task's order."""
    modules = frozenset(task.modules)
    return Prepared(
        item(task.prelude, "<prelude>", modules),
        tuple(item(test.code, f"<test {i}>", modules) for i, test in enumerate(task.hidden)),
    )


def item(source: str, name: str, modules: frozenset[str]) -> list[Any]:
    """One prelude or test as the examiner takes it. Raises what ``compile`` raises."""
    if len(source) > MAX_SOURCE:
        return [source, "", False]
    code = compile(source, name, "exec", dont_inherit=True)
    return [source, marshal.dumps(code).hex(), alone(is_plain, source, modules)]
