"""Two tracers for code that is known to be honest: which lines a test reaches, and what it calls with what result.

Both see only code of the files that they are given (``where``: absolute path to number); all else runs untraced. One is on
between ``begin`` and ``end``, in the thread that called ``begin``.
"""

# ruff: noqa: PTH109
from __future__ import annotations

import dis
import inspect
import os
import re
import sys
from types import CodeType, FrameType
from typing import Any

from .shown import shown

OFTEN = 100
"""Calls of one function in one test whose lines are looked at: what the first hundred do not reach is rarely reached."""
MAX_CALLS = 400
MAX_YIELDS = 60
MAX_FRAMES = 400
_GENERATOR = inspect.CO_GENERATOR
_INNER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Lines:
    """Notes the lines that are reached, and how deep below the test each function is first entered."""

    def __init__(self, where: dict[str, int]) -> None:
        self.where = where
        self.begin()

    def begin(self) -> None:
        """Forget the test before, and look."""
        self.lines: dict[int, set[int]] = {}
        self.depth: dict[tuple[int, int], int] = {}
        self._times: dict[CodeType, int] = {}
        sys.settrace(self._call)

    def end(self) -> list[Any]:
        """``[[file, [lines], [[first line of a function, depth], …]], …]``."""
        sys.settrace(None)
        depths: dict[int, list[Any]] = {}
        for (file, line), depth in sorted(self.depth.items()):
            depths.setdefault(file, []).append([line, depth])
        return [[file, sorted(lines), depths.get(file, [])] for file, lines in sorted(self.lines.items())]

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        file = self.where.get(code.co_filename)
        if file is None:
            return None
        times = self._times[code] = self._times.get(code, 0) + 1
        if times > OFTEN:
            return None
        if times == 1:
            self.depth[file, code.co_firstlineno] = self._deep(frame)
        lines = self.lines.setdefault(file, set())
        add = lines.add
        add(frame.f_lineno)

        def line(frame: FrameType, event: str, arg: Any) -> Any:
            add(frame.f_lineno)
            return line

        return line

    def _deep(self, frame: FrameType) -> int:
        depth, looked = -1, 0
        above: FrameType | None = frame
        while above is not None and looked < MAX_FRAMES:
            depth += above.f_code.co_filename in self.where
            above, looked = above.f_back, looked + 1
        return depth


class _Names(dict[int, str]):
    """What objects are called, by ``id``; ``used`` are the names that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def __getitem__(self, key: int) -> str:
        name = super().__getitem__(key)
        self.used.add(name)
        return name


class Calls:
    """Notes each call that comes from outside: what was called with what, and what came out.

    A call is ``{"fn", "as", "on", "args", "out", "text", "after"}``: the name; how it is written ("call", "class", "method",
    "property", "new"); the name of the object ("" for none); the texts of the arguments; ``out`` "value", "raise",
    "yield" or "open" (it did not end); the text of that; and by number of the argument (-1: the object) what the call
    changed it to, ``uses``, the names that stand in the arguments, ``shows``, whether the object's text says what
    is in it, and ``name``, by which what was made or returned is called from then on. ``foreign``: the object's
    class is not of those files, or the call has to do with where the files lie here. ``known``: ``on`` is such
    a name, and no description."""

    def __init__(self, where: dict[str, int]) -> None:
        self.where = where
        self._here = (os.getcwd(), os.environ.get("TMPDIR", "/tmp"))
        self._opnames: dict[CodeType, bytes] = {}

    def begin(self) -> None:
        """Forget the test before, and look."""
        self.calls: list[dict[str, Any]] = []
        self._names = _Names()
        self._held: list[Any] = []
        self._open: dict[FrameType, tuple[dict[str, Any], list[tuple[int, Any, str]], Any]] = {}
        self._inside = 0
        self._raised: dict[FrameType, BaseException | None] = {}
        sys.settrace(self._call)

    def end(self) -> list[Any]:
        """The calls in their order."""
        sys.settrace(None)
        calls, self._open, self._held, self._names = self.calls, {}, [], _Names()
        return calls

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self.where:
            return None
        if self._inside or code.co_name[:1] == "<":
            return None
        if frame in self._open:  # a generator goes on
            self._inside = 1
            return self._local
        if len(self.calls) >= MAX_CALLS:
            return None
        self._inside = 1
        try:
            noted = self._note(frame)
        except Exception:
            noted = None
        if noted is None:
            self._inside = 0
            return None
        self._open[frame] = noted
        return self._local

    def _note(self, frame: FrameType) -> tuple[dict[str, Any], list[tuple[int, Any, str]], Any] | None:
        code = frame.f_code
        function, owner, kind = _found(frame)
        positional = code.co_argcount
        given = [frame.f_locals.get(name) for name in code.co_varnames[:positional]]
        receiver = given[0] if kind in ("method", "property", "new") and given else None
        self._names.used = set()
        texts, changeable = self._arguments(frame, function, given, 0 if kind == "call" else 1)
        on, uses, before = "", self._names.used, ""
        if kind in ("method", "property"):
            on = self._names.get(id(receiver), "") or self._text(receiver)
            before = self._text_of(receiver)
            changeable.append((-1, receiver, before))
        one_of = f"{owner}.{code.co_name}" if owner else code.co_name
        name = {"new": owner, "method": code.co_name, "property": code.co_name}.get(kind, one_of)
        name = owner if kind == "class" and code.co_name == "__new__" else name
        one: dict[str, Any] = {"fn": name, "as": kind, "on": on, "args": texts, "out": "open", "text": ""}
        one |= {"after": {}, "known": bool(on) and id(receiver) in self._names, "uses": sorted(uses)}
        one["shows"] = bool(before) and before[:1] != "<"
        if receiver is not None and not self._known_class(type(receiver)):
            one["foreign"] = True
        self.calls.append(one)
        return one, changeable, receiver

    def _known_class(self, cls: type) -> bool:
        """Whether a class is of the files that are looked at, and none that a test made of one of those."""
        module = sys.modules.get(cls.__module__)
        return "<locals>" not in cls.__qualname__ and getattr(module, "__file__", "") in self.where

    def _arguments(
        self, frame: FrameType, function: Any, given: list[Any], first: int
    ) -> tuple[list[str], list[tuple[int, Any, str]]]:
        """The texts of the arguments as they may have been written: what has its default value is left out."""
        code = frame.f_code
        defaults = list(getattr(function, "__defaults__", None) or ())
        of = {len(given) - len(defaults) + n: value for n, value in enumerate(defaults)}
        texts: list[str] = []
        changeable: list[tuple[int, Any, str]] = []
        left_out = False

        def add(value: Any, before: str = "") -> None:
            text = self._text(value)
            if type(value) in (list, dict, set, bytearray):
                changeable.append((len(texts), value, text))
            texts.append(before + text)

        last = len(given) + code.co_kwonlyargcount
        rest = last + (1 if code.co_flags & inspect.CO_VARARGS else 0)
        more = frame.f_locals.get(code.co_varnames[last], ()) if rest > last else ()
        for n in range(first, len(given)):
            if not more and n in of and given[n] is of[n]:
                left_out = True
            else:
                add(given[n], f"{code.co_varnames[n]}=" if left_out else "")
        for each in more:
            add(each)
        only = getattr(function, "__kwdefaults__", None) or {}
        for name in code.co_varnames[len(given) : last]:
            value = frame.f_locals.get(name)
            if not (name in only and only[name] is value):
                add(value, f"{name}=")
        if code.co_flags & inspect.CO_VARKEYWORDS:
            for name, each in frame.f_locals.get(code.co_varnames[rest], {}).items():
                add(each, f"{name}=")
        return texts, changeable

    def _local(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame not in self._open:
            return None
        if event == "exception":
            if not (
                frame.f_code.co_flags & _GENERATOR and isinstance(arg[1], StopIteration)
            ):  # of a yield from
                self._raised[frame] = arg[1] if isinstance(arg[1], BaseException) else None
        elif event == "line":
            self._raised.pop(frame, None)
        elif event == "return":
            self._inside = 1
            try:
                self._returned(frame, arg)
            finally:
                self._inside = 0
        return self._local

    def _returned(self, frame: FrameType, value: Any) -> None:
        one, changeable, receiver = self._open[frame]
        error = self._raised.pop(frame, None)
        dropped = isinstance(error, GeneratorExit)  # a generator that nobody asks any more
        if frame.f_code.co_flags & _GENERATOR and error is None and self._yields(frame):
            one["out"] = "yield"
            if len(one.setdefault("items", [])) < MAX_YIELDS:
                one["items"].append(self._text(value))
                one["text"] = "[" + ", ".join(one["items"]) + "]"
            return
        del self._open[frame]
        if error is not None and value is None and not dropped:
            one["out"], one["text"] = "raise", _raised_text(error)
        elif frame.f_code.co_flags & _GENERATOR:
            one["out"], one["text"] = "yield", one["text"] or "[]"
        else:
            one["out"], one["text"] = "value", self._text(value)
            if one["as"] == "new":
                self._name(receiver, one)
            elif type(value).__module__ not in ("builtins",) and id(value) not in self._names:
                one["text"] = self._text_of(value)
                self._name(value, one)
        one.pop("items", None)
        if any(folder in text for folder in self._here for text in (*one["args"], one["on"], one["text"])):
            one["foreign"] = True
        for number, thing, before in changeable:
            now = self._text_of(thing) if number < 0 else self._text(thing)
            if now != before:
                one["after"][str(number)] = now

    def _yields(self, frame: FrameType) -> bool:
        """Whether a generator goes on later. What stands there then has another name in each Python, but is no return."""
        code = self._opnames.setdefault(frame.f_code, frame.f_code.co_code)
        return not dis.opname[code[frame.f_lasti]].startswith("RETURN")

    def _name(self, value: Any, one: dict[str, Any]) -> None:
        """From now on, a value is called by a name of its own. It is held, so that nothing else gets its ``id``."""
        if id(value) in self._names or len(self._held) >= MAX_CALLS or isinstance(value, type):
            return
        word = _INNER.sub("_", type(value).__name__.strip("_")).lower()
        word = word if word.isidentifier() and len(word) < 20 else "value"
        same = sum(name.rstrip("0123456789") == word for name in self._names.values())
        self._names[id(value)] = one["name"] = f"{word}{same + 1}" if same else word
        self._held.append(value)

    def _text(self, value: Any) -> str:
        return shown(value, self._names)

    def _text_of(self, value: Any) -> str:
        """What an object is, even where it has a name."""
        return shown(value, {k: v for k, v in self._names.items() if k != id(value)})


def _raised_text(error: BaseException) -> str:
    words = shown(error.args[0]) if len(error.args) == 1 else ", ".join(map(shown, error.args))
    message = error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else words
    return f"{type(error).__name__}: {message}"[:1000] if message else type(error).__name__


def _found(frame: FrameType) -> tuple[Any, str, str]:
    """The function object of a frame if it can be found, the class that it is of, and how a call of it is written."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    if code.co_argcount:
        for cls in getattr(type(first), "__mro__", ()):
            raw = vars(cls).get(code.co_name)
            if raw is None:
                continue
            if isinstance(raw, property):
                if _code(raw.fget) is code:
                    return raw.fget, type(first).__name__, "property"
                continue
            if _code(raw) is code and not isinstance(raw, (staticmethod, classmethod)):
                if code.co_name == "__init__":
                    return _unwrapped(raw), type(first).__name__, "new"
                return _unwrapped(raw), type(first).__name__, "method"
        if isinstance(first, type):
            for cls in first.__mro__:
                raw = vars(cls).get(code.co_name)
                if isinstance(raw, classmethod) and _code(raw.__func__) is code:
                    return raw.__func__, first.__name__, "class"
                if code.co_name == "__new__" and raw is not None and _code(raw) is code:
                    return _unwrapped(raw), first.__name__, "class"
    function = frame.f_globals.get(code.co_name)
    if _code(function) is code:
        return _unwrapped(function), "", "call"
    for value in list(frame.f_globals.values()):
        if isinstance(value, type):
            raw = vars(value).get(code.co_name)
            if isinstance(raw, staticmethod) and _code(raw.__func__) is code:
                return raw.__func__, value.__name__, "call"
    return None, "", "call"


def _unwrapped(function: Any) -> Any:
    for _ in range(10):
        inner = getattr(function, "__func__", None) or getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return function


def _code(function: Any) -> Any:
    try:
        return getattr(_unwrapped(function), "__code__", None)
    except Exception:
        return None
