"""Comparison with a reference that runs beside the tests: the rules of HumanEval+ and MBPP+, in pure Python.

The importers read this file and put its **text** into a task's prelude, so it runs in the examiner, where the solution
is never loaded: it imports only the standard library, keeps its names to itself (a solution may be called ``sum``),
and treats what comes back from the solution as data. What was returned is compared with ``==`` and by type, iterated
where the rule speaks of a set (a bounded number of items), and otherwise left alone.

The rules are those that EvalPlus documents and implements (its results are the published ones), with these differences,
each the stricter or the more honest: a tolerance that one float result switched on doesn't stay on for the next inputs;
nothing is broadcast; two NaNs are equal; an answer that is right for every input whatever the task (Mbpp/164, and 0 in
Mbpp/295) is right only where another reading of the task allows it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

RTOL = 1e-07
FLOAT_ATOL = 1e-06
MAX_ITEMS = 100_000

Args = list[Any]


def checker(*, entry: str, gold: str, rule: str, atol: float, shape: str) -> Callable[[Any, str], None]:
    """A function ``check(candidate, inputs)``. ``inputs`` is a JSON list of argument lists.

    ``gold`` is the source of the reference, ``entry`` the name in it. ``rule`` is a key of ``RULES``, ``shape`` one of
    ``SHAPES``. The check raises AssertionError at the first input whose result is wrong, and whatever the candidate
    raises. Candidate and reference get arguments of their own.
    """
    namespace: dict[str, Any] = {"__name__": "_reference"}
    exec(compile(gold, "reference.py", "exec"), namespace)
    reference = namespace[entry]
    right, shaped = RULES[rule], SHAPES[shape]

    def check(candidate: Any, inputs: str) -> None:
        for n, (mine, own, seen) in enumerate(zip(*(json.loads(inputs) for _ in range(3)), strict=True), 1):
            expected = reference(*shaped(own))
            result = candidate(*shaped(mine))
            assert right(result, expected, atol, shaped(seen)), f"wrong result for input {n}"

    return check


def same(result: Any, expected: Any, atol: float, args: Args) -> bool:
    """Equal; or, for floats and where the task has a tolerance, of the same type and close."""
    return result == expected or _tolerated(result, expected, atol)


def _tolerated(result: Any, expected: Any, atol: float) -> bool:
    if atol == 0 and _is_floats(expected):
        atol = FLOAT_ATOL
    return atol != 0 and type(result) is type(expected) and close(result, expected, atol)


def _is_floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def close(a: Any, b: Any, atol: float, rtol: float = RTOL) -> bool:
    """Numbers, or equally nested lists and tuples of numbers, with ``|a - b| <= atol + rtol * |b|`` everywhere."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(close(x, y, atol, rtol) for x, y in zip(a, b, strict=True))
    if not isinstance(a, (int, float, complex)) or not isinstance(b, (int, float, complex)):
        return False
    if a == b or (a != a and b != b):
        return True
    try:
        gap, size = abs(a - b), abs(b)
        return math.isfinite(gap) and math.isfinite(size) and gap <= atol + rtol * size
    except OverflowError:
        return False


def _same_set(result: Any, expected: Any, atol: float, args: Args) -> bool:
    """The order of the items, and how often each is there, does not count."""
    items = list(itertools.islice(iter(result), MAX_ITEMS + 1))
    return len(items) <= MAX_ITEMS and (set(items) == set(expected) or _tolerated(result, expected, atol))


def _not_none(result: Any, expected: Any, atol: float, args: Args) -> bool:
    """What says yes or no by returning something or None; a bool speaks for itself."""
    return (result if isinstance(result, bool) else result is not None) == (expected is not None)


def _root(result: Any, expected: Any, atol: float, args: Args) -> bool:
    """Any zero of the polynomial with the given coefficients, lowest first."""
    if type(result) not in (int, float):
        return False
    return bool(abs(sum(c * math.pow(result, n) for n, c in enumerate(args[0]))) <= atol)


def _proper_divisors(result: Any, expected: Any, atol: float, args: Args) -> bool:
    """0 as well for a number that has no proper divisor."""
    return same(result, expected, atol, args) or (args[0] <= 1 and result == 0)


def _pyramid(result: Any, expected: Any, atol: float, args: Args) -> bool:
    """The second argument may be read as the slant height or as the height of the apex above the base."""
    if same(result, expected, atol, args):
        return True
    base, height = args
    return type(result) in (int, float) and abs(
        result - round(base**2 + 2 * base * math.hypot(base / 2, height))
    ) <= (atol)


def _digits(result: Any, expected: Any, atol: float, args: Args) -> bool:
    """The digits may be compared as if the shorter number had zeros in front."""
    if same(result, expected, atol, args):
        return True
    first, second = map(str, args)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width), strict=True)
    return bool(result == sum(abs(int(a) - int(b)) for a, b in pairs))


RULES: dict[str, Callable[[Any, Any, float, Args], bool]] = {
    "same": same,
    "set": _same_set,
    "not_none": _not_none,
    "root": _root,
    "proper_divisors": _proper_divisors,
    "pyramid": _pyramid,
    "digits": _digits,
}


def _deep(value: Any) -> Any:
    return tuple(map(_deep, value)) if isinstance(value, list) else value


# JSON has no tuples, sets or complex numbers: how the arguments of one call are made of a list of JSON values.
SHAPES: dict[str, Callable[[Args], Args]] = {
    "plain": lambda args: args,
    "tuples": lambda args: [tuple(a) for a in args],
    "lists of tuples": lambda args: [[tuple(x) for x in a] for a in args],
    "tuples of tuples": lambda args: [tuple(tuple(x) for x in a) for a in args],
    "deep tuples": lambda args: [_deep(a) for a in args],
    "a tuple of items": lambda args: [tuple(tuple(x) if isinstance(x, list) else x for x in args[0])],
    "a tuple first": lambda args: [tuple(args[0]), *args[1:]],
    "a tuple second": lambda args: [args[0], tuple(args[1]), *args[2:]],
    "a list of tuples first": lambda args: [[tuple(x) for x in args[0]], *args[1:]],
    "a dict of tuples first": lambda args: [{k: tuple(v) for k, v in args[0].items()}, *args[1:]],
    "a list of sets": lambda args: [[set(x) if isinstance(x, list) and x else {} for x in args[0]]],
    "a complex": lambda args: [complex(args[0])],
    "a float and a complex": lambda args: [float(args[0]), complex(args[1])],
}


class numpy_stand_in:
    """The four names of numpy that published test files use, for tests that compare plain data."""

    ndarray = type("ndarray", (), {})
    float64 = float32 = None

    @staticmethod
    def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
        return close(a, b, atol, rtol)
