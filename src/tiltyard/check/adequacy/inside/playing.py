"""Plays a trace on a program, and puts what comes of it into words that can be compared, and shown to people."""

from __future__ import annotations

import copy
import enum
import hashlib
import itertools
import types
from collections import defaultdict, deque
from typing import Any

from .basics import MAX_ITEMS, PLAIN, OutOfTime

MAX_TEXT = 300


def play(trace: Any, modules: Any) -> Any:
    """What each operation of a trace came to, as texts."""
    results: dict[int, Any] = {}
    told: list[str] = []
    for number, kind, receiver, name, args, kwargs in trace:
        if receiver is not None and receiver not in results:
            told.append("not asked")
            continue
        try:
            values = [thaw(a, results, modules) for a in args]
            keywords = {k: thaw(v, results, modules) for k, v in kwargs.items()}
        except LookupError:
            told.append("not asked")
            continue
        try:
            if kind == "get":
                value = getattr(results[receiver], name)
            else:
                called = getattr(results[receiver], name) if kind == "method" else _find(modules, *name)
                value = called(*values, **keywords)
            if kind == "call" or type(value).__module__ in modules:
                results[number] = value
            text = tell(value, modules)
        except OutOfTime:
            raise
        except BaseException as error:
            text = f"raised {type(error).__name__}"
        after = [
            tell(v, modules) for v in (*values, *keywords.values()) if type(v) in (list, dict, set, deque)
        ]
        told.append(text + (f" and left {', '.join(after)}" if after else ""))
    left = [tell(_public(v), modules) for v in results.values() if type(v).__module__ in modules]
    return told, left


def thaw(frozen: Any, results: Any, modules: Any) -> Any:
    kind = frozen[0]
    if kind == "v":
        return frozen[1]
    if kind == "l":
        return frozen[1]([thaw(x, results, modules) for x in frozen[2]])
    if kind == "d":
        made = frozen[1](frozen[3]) if frozen[1] is defaultdict else frozen[1]()
        for key, value in frozen[2]:
            made[thaw(key, results, modules)] = thaw(value, results, modules)
        return made
    if kind == "i":
        return iter([thaw(x, results, modules) for x in frozen[1]])
    if kind == "ref":
        return results[frozen[1]]
    if kind == "p":
        return _find(modules, frozen[1], frozen[2])
    try:
        return copy.deepcopy(frozen[1])
    except Exception:
        return frozen[1]


def _find(modules: Any, module: Any, qualname: Any) -> Any:
    found = modules[module]
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _public(value: Any) -> Any:
    return {k: v for k, v in getattr(value, "__dict__", {}).items() if k[:1] != "_"}


def tell(value: Any, modules: Any, depth: Any = 0) -> Any:
    """A text for a value: equal for equal values of equal type, whatever their addresses."""
    kind = type(value)
    if kind in PLAIN:
        return repr(value)
    if depth > 12:
        return "..."
    if kind in (set, frozenset):
        return f"{kind.__name__}({', '.join(sorted(tell(v, modules, depth + 1) for v in value))})"
    if kind in (list, tuple, deque):
        inside = ", ".join(tell(v, modules, depth + 1) for v in itertools.islice(value, 2000))
        return f"[{inside}]" if kind is list else f"({inside})" if kind is tuple else f"deque({inside})"
    if isinstance(value, dict):
        inside = ", ".join(
            f"{tell(k, modules, depth + 1)}: {tell(v, modules, depth + 1)}" for k, v in value.items()
        )
        return f"{'' if kind is dict else kind.__name__}{{{inside}}}"
    if isinstance(value, BaseException):
        return kind.__name__
    if isinstance(value, (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
        return f"<{getattr(value, '__qualname__', kind.__name__)}>"
    if isinstance(value, enum.Enum):
        return f"{kind.__name__}.{value.name}"
    if hasattr(kind, "__next__"):
        return _tell_iterator(value, modules, depth)
    if kind.__module__ in modules and getattr(kind, "__repr__", None) is object.__repr__:
        return f"<{kind.__name__}>"
    text = repr(value)
    return f"<{kind.__name__}>" if " at 0x" in text else text


def _tell_iterator(value: Any, modules: Any, depth: Any) -> Any:
    items = []
    try:
        for item in itertools.islice(value, MAX_ITEMS):
            items.append(tell(item, modules, depth + 1))
    except Exception as error:
        items.append(f"raised {type(error).__name__}")
    return f"iterator({', '.join(items)})"


def shown(trace: Any) -> Any:
    """The trace as lines of Python, for people; cut where it gets long."""
    lines = []
    for number, kind, receiver, name, args, kwargs in trace:
        given = ", ".join([*map(_show, args), *(f"{k}={_show(v)}" for k, v in kwargs.items())])
        called = name[-1] if kind == "call" else f"x{receiver}.{name}"
        plain = called if kind == "get" else f"{called}({given})"
        lines.append(f"x{number} = {plain}" if any(_uses(op, number) for op in trace) else plain)
    return "\n".join(lines)


def _uses(op: Any, number: Any) -> Any:
    return op[2] == number or f"('ref', {number})" in repr(op[4:])


def _show(frozen: Any) -> Any:
    kind = frozen[0]
    if kind == "v":
        return repr(frozen[1])
    if kind == "l":
        inside = ", ".join(map(_show, frozen[2]))
        marks: tuple[str, str] = (f"{frozen[1].__name__}([", "])")
        left, right = {list: ("[", "]"), tuple: ("(", ")")}.get(frozen[1], marks)
        return f"{left}{inside}{',' if frozen[1] is tuple and len(frozen[2]) == 1 else ''}{right}"
    if kind == "d":
        return "{" + ", ".join(f"{_show(k)}: {_show(v)}" for k, v in frozen[2]) + "}"
    if kind == "i":
        return f"iter([{', '.join(map(_show, frozen[1]))}])"
    if kind == "ref":
        return f"x{frozen[1]}"
    if kind == "p":
        return str(frozen[2])
    text = repr(frozen[1])
    return f"<{type(frozen[1]).__name__}>" if " at 0x" in text else text


def short(text: Any) -> Any:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[: MAX_TEXT - 20]}...{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
