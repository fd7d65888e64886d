"""Whether a solution keeps nothing from one test to the next; then one process of it can answer them all.

``watch(modules)`` looks at what is loaded: functions, classes, constants and tables of constants, of modules that use
nothing but what has no memory of its own. None if it can't be told. ``Watch.changed()``, asked after each test, says
whether any of it was changed after all: a global name, a table, an attribute of a class or a function.

This is for honest code, whose outcome must not depend on the tests before. Code that hides its memory from this look
gains nothing that it could not have had by a file: it never learns what a test expects.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import os
import re
import sys
import types
import typing
from collections.abc import Iterable
from typing import Any

from .older import UNION

PURE = frozenset(
    "__future__ _bisect _collections _collections_abc _functools _heapq _operator _struct abc array base64 binascii bisect "
    "builtins cmath collections collections.abc copy dataclasses datetime decimal enum fractions functools hashlib "
    "heapq itertools json math numbers operator random re statistics string struct textwrap time types typing "
    "unicodedata zlib".split()
)
"""Modules that remember nothing, or (random) begin anew with every test."""
_IMPURE = (
    frozenset(
        "__builtins__ __import__ __loader__ __spec__ breakpoint compile eval exec getcontext globals localcontext open "
        "setcontext vars".split()
    )
    | sys.stdlib_module_names - PURE
)
"""What no code may name; names of modules that could be imported are among them."""
_CONSTANTS = (
    type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented), object, re.Pattern, decimal.Decimal,
    fractions.Fraction, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo,
)  # fmt: skip
_TABLES = (list, dict, set, collections.OrderedDict, collections.deque, collections.Counter)
_SLOTS = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType, types.MethodWrapperType,
)  # fmt: skip
_TYPING = (types.GenericAlias, UNION, typing.TypeVar)
_DESCRIBING = frozenset(("typing", "enum", "_collections", "__future__"))
"""Modules whose objects only say what a class is like."""
MOST = 2000
"""Things that are looked at; a solution with more of them is not watched."""


class _Keeps(Exception):
    """Something that may remember."""


class Watch:
    """What there was when the watch began."""

    def __init__(self, modules: Iterable[types.ModuleType]) -> None:
        self._own = {module.__name__ for module in modules}
        self._seen: dict[int, Any] = {}
        self._tables: list[tuple[Any, list[Any]]] = []
        for module in modules:
            self._table(vars(module))
            for name, value in vars(module).items():
                if not (name.startswith("__") and name.endswith("__")):
                    self._look(value)

    def changed(self) -> bool:
        """Whether anything is not what it was."""
        return any(_items(table) != before for table, before in self._tables)

    def _table(self, table: Any) -> None:
        self._tables.append((table, _items(table)))
        self._seen[id(table)] = table

    def _look(self, value: Any) -> None:
        kind = type(value)
        if kind in _CONSTANTS or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if len(self._seen) > MOST:
            raise _Keeps
        if kind in (tuple, frozenset):
            self._look_at_all(value)
        elif kind in _TABLES:
            self._table(value)
            self._look_at_all([*value, *value.values()] if isinstance(value, dict) else value)
        elif kind is types.FunctionType:
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif kind is types.ModuleType:
            if value.__name__ not in PURE and value.__name__ not in self._own:
                raise _Keeps
        elif kind in (staticmethod, classmethod):
            self._look(value.__func__)
        elif kind is property:
            self._look_at_all((value.fget, value.fset, value.fdel))
        elif kind is types.BuiltinFunctionType:
            if value.__module__ not in PURE and not isinstance(value.__self__, type):
                raise _Keeps
        elif kind.__module__ not in _DESCRIBING and not isinstance(value, (*_SLOTS, *_TYPING, enum.Enum)):
            raise _Keeps

    def _look_at_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self._look(value)

    def _function(self, function: types.FunctionType) -> None:
        home = function.__globals__.get("__name__")  # not __module__, which decorators copy
        if home in PURE or function.__code__.co_filename == "<string>":
            return  # the latter was made by dataclasses or namedtuple
        self._code(function.__code__)
        self._table(vars(function))
        self._look_at_all(vars(function).values())
        self._look_at_all(function.__defaults__ or ())
        self._look_at_all((function.__kwdefaults__ or {}).values())
        for cell in function.__closure__ or ():
            self._table(cell)
            self._look(cell.cell_contents)

    def _code(self, code: types.CodeType) -> None:
        if not _IMPURE.isdisjoint(code.co_names):
            raise _Keeps
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant)

    def _class(self, cls: type) -> None:
        if cls.__module__ in PURE and cls.__module__ not in self._own:
            return
        if cls.__module__ not in self._own:
            raise _Keeps
        self._look_at_all(cls.__bases__)
        self._tables.append((cls, _items(cls)))
        for name, value in vars(cls).items():
            if (
                not name.startswith("_")
                or callable(value)
                or isinstance(value, (staticmethod, classmethod, property))
            ):
                self._look(value)
            elif type(value) in _TABLES:
                self._table(value)


def _items(table: Any) -> list[Any]:
    """The very things that are in it, to be compared by ``is`` (a list compares so before it asks for ``==``)."""
    if isinstance(table, type):
        table = vars(table)
    if isinstance(table, types.CellType):
        return [_Same(table.cell_contents)]
    items = [*table, *table.values()] if isinstance(table, (dict, types.MappingProxyType)) else [*table]
    return [item if type(item) in (str, int) else _Same(item) for item in items]


class _Same:
    """Equal to what holds the same thing."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.thing is self.thing

    __hash__ = None  # type: ignore[assignment]


def own_modules(after: str) -> list[types.ModuleType]:
    """All modules that were imported after the one of that name and came out of the current folder, the workspace. The others are
    not looked at: in a fork each look at one costs a page of memory."""
    here = os.getcwd() + "/"  # noqa: PTH109
    found: list[types.ModuleType] = []
    for name in reversed(sys.modules):
        if name == after:
            break
        module = sys.modules[name]
        if (getattr(module, "__file__", None) or "").startswith(here):
            found.append(module)
    return found[::-1]


def watch(modules: Iterable[types.ModuleType]) -> Watch | None:
    """The watch over what these modules hold, or None if something in them may remember."""
    try:
        return Watch(list(modules))
    except (_Keeps, ValueError, AttributeError, TypeError, RecursionError):
        return None
