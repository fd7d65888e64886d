"""What a solution's side does in a test that can make it pass without the right answer: its *liberties*.

``abs(f(x) - 2.5) < 1e-9`` passes for an object whose ``-`` always answers 0.0; ``3 in f(x)`` for one that holds
everything; ``f(xs) == sorted(xs)`` for a function that empties its argument; ``with T() as t: assert …`` for an
``__exit__`` that swallows what the test raises. All of this is also what honest solutions do where the task is about
it. So the examiner takes note of it, test by test, and the referee asks the reference: a test in which a submission
took a liberty that the reference does not take is run again with that liberty withheld, and that run counts.

Withheld means: as if the object had no such operator or method; arguments by value; a swallowed exception goes on.
"""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

from .older import paired

CHANGED = "changed_argument"
SUPPRESSED = "suppressed"
NAN = "nan"
EMPTY_ARRAY = "empty_array"
CATCH_ALL = "catch_all"
CAUGHT = "caught_assertion"
REPLACED = "replaced_method"

_BINARY = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split()
_OPERATORS = {f"__{kind}{name}__": f"__{name}__" for name in _BINARY for kind in ("", "r", "i")}
"""Operators that show a solution's object the other operand, which is what the test expects or near it."""

VERDICT_METHODS = frozenset(
    "startswith endswith removeprefix removesuffix replace count index rindex find rfind issubset issuperset isdisjoint "
    "difference symmetric_difference intersection union is_integer isalpha isalnum isascii isdecimal isdigit isidentifier "
    "islower isnumeric isprintable isspace istitle isupper".split()
)
"""Methods of the built-in types that a test uses to judge what it takes for plain data."""

CATCH_ALLS = (AssertionError, Exception, BaseException)
"""``except`` with one of these in the place of a solution's own exception catches the test's own failure."""


class Liberties:
    """Those of one test. ``allowed`` None: all, and they are only noted in ``taken``."""

    __slots__ = ("allowed", "taken")

    def __init__(self, allowed: frozenset[str] | None = None) -> None:
        self.allowed = allowed
        self.taken: set[str] = set()

    def take(self, name: str) -> bool:
        """Whether this liberty may be taken; if so it is noted."""
        if self.allowed is not None and name not in self.allowed:
            return False
        self.taken.add(name)
        return True

    def by_value(self, values: Any) -> Any:
        """What crosses in the place of a test's own containers: copies, where a change must not come back."""
        return values if self.allowed is None or CHANGED in self.allowed else _copy(values, {})


def liberty(op: str, parts: tuple[Any, ...], theirs: Any) -> str | None:
    """The liberty that lies in a question of a test, if any. ``theirs(value)``: it is the solution's, no plain data."""
    name = parts[1] if len(parts) > 1 and type(parts[1]) is str else ""
    if op in ("g", "M") and name in VERDICT_METHODS and parts[0][0] != "mod":
        return f".{name}"
    if op == "x" and name == "__contains__":
        return name
    if op == "x" and name in _OPERATORS and not all(theirs(v) for v in parts[2:]):
        return _OPERATORS[name]
    return None


def _copy(value: Any, made: dict[int, Any]) -> Any:
    """A copy of plain containers in each other, aliases and cycles kept; everything else is itself."""
    if id(value) in made:
        return made[id(value)]
    kind = type(value)
    if kind is tuple or kind is frozenset:
        items = [_copy(v, made) for v in value]
        return value if all(a is b for a, b in paired(items, value)) else kind(items)
    if kind not in _EMPTY:
        return value
    out = made[id(value)] = _EMPTY[kind](value)
    if isinstance(out, dict):
        for key, element in value.items():
            out[_copy(key, made)] = _copy(element, made)
    elif isinstance(out, (list, deque)):
        out.extend(_copy(v, made) for v in value)
    elif isinstance(out, set):
        out.update(value)
    return out


_EMPTY: dict[type, Any] = {
    list: lambda v: [],
    set: lambda v: set(),
    bytearray: bytearray,
    deque: lambda v: deque(maxlen=v.maxlen),
    dict: lambda v: {},
    OrderedDict: lambda v: OrderedDict(),
    Counter: lambda v: Counter(),
    defaultdict: lambda v: defaultdict(v.default_factory),
}


def is_nan(value: Any) -> bool:
    """Whether a number, or anything in an array of numbers, is not a number. Never raises."""
    with contextlib.suppress(Exception):
        return bool(value != value) if not hasattr(value, "any") else bool((value != value).any())
    return False
