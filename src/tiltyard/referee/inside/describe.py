"""What one side tells the other of a class, so that the other can make stand-ins for it or mirrors of its values.

A description is plain data. Mirrored kinds (namedtuple, enum) cross as values; all other instances stay where they
are. Descriptions come from a hostile side: names are checked, and nothing in one is ever executed.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import keyword
import sys
import types
from dataclasses import dataclass
from typing import Any

from .link import ProtocolError

SPECIAL = frozenset(
    f"__{name}__"
    for name in [
        "len",
        "length_hint",
        "getitem",
        "setitem",
        "delitem",
        "contains",
        "iter",
        "next",
        "reversed",
        "call",
        "enter",
        "exit",
        "bool",
        "int",
        "float",
        "index",
        "complex",
        "round",
        "trunc",
        "floor",
        "ceil",
        "neg",
        "pos",
        "abs",
        "invert",
        "add",
        "sub",
        "mul",
        "matmul",
        "truediv",
        "floordiv",
        "mod",
        "divmod",
        "pow",
        "lshift",
        "rshift",
        "and",
        "or",
        "xor",
        "radd",
        "rsub",
        "rmul",
        "rmatmul",
        "rtruediv",
        "rfloordiv",
        "rmod",
        "rdivmod",
        "rpow",
        "rlshift",
        "rrshift",
        "rand",
        "ror",
        "rxor",
        "iadd",
        "isub",
        "imul",
        "imatmul",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
        "ilshift",
        "irshift",
        "iand",
        "ior",
        "ixor",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "hash",
        "str",
        "repr",
        "format",
        "bytes",
        "fspath",
        "copy",
        "deepcopy",
        "aiter",
        "anext",
        "aenter",
        "aexit",
        "await",
        "missing",
    ]
)
COMPARISONS = frozenset(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge"))
ABCS = ("Sequence", "MutableSequence", "Mapping", "MutableMapping", "Set", "MutableSet")
KINDS = (
    "object",
    "function",
    "generator",
    "coroutine",
    "asyncgen",
    "exception",
    "namedtuple",
    "enum",
    "flag",
)
ENUM_BASES = {
    "Enum": enum.Enum,
    "IntEnum": enum.IntEnum,
    **({"StrEnum": enum.StrEnum} if sys.version_info >= (3, 11) else {}),
    "Flag": enum.Flag,
    "IntFlag": enum.IntFlag,
}
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)
MIRRORED = ("namedtuple", "enum", "flag")
_RESERVED = frozenset({"name", "value", "count", "index"})
_TUPLE_OWN = (
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__hash__",
    "__len__",
    "__iter__",
    "__getitem__",
    "__contains__",
)


_DATA_OWN = frozenset(_TUPLE_OWN) - {"__len__"}


@dataclass(frozen=True)
class Description:
    """A class, as the other side needs to know it. ``bases`` are references to classes (see ``proxy``)."""

    name: str
    module: str
    kind: str
    bases: tuple[Any, ...] = ()
    special: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    abcs: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    unhashable: bool = False
    values: tuple[Any, ...] = ()

    def as_list(self) -> list[Any]:
        return [
            self.name, self.module, self.kind, list(self.bases), sorted(self.special), sorted(self.methods),
            sorted(self.properties), list(self.abcs), list(self.fields), self.unhashable, list(self.values),
        ]  # fmt: skip


def parse(item: list[Any]) -> Description:
    """A description that the other side sent. ProtocolError: it is malformed."""
    if len(item) != 11 or item[2] not in KINDS or type(item[9]) is not bool:
        raise ProtocolError("a malformed description of a class")
    for part in item[3:9]:
        if type(part) is not list or len(part) > 2000:
            raise ProtocolError("a malformed description of a class")
    for part in item[4:9]:
        if not all(type(x) is str and len(x) <= 200 for x in part):
            raise ProtocolError("a malformed description of a class")
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in item[8]):
        raise ProtocolError("a field with a name that is none")
    if type(item[10]) is not list:
        raise ProtocolError("a malformed description of a class")
    if item[2] in MIRRORED and any(n.startswith("_") or n in _RESERVED for part in item[5:7] for n in part):
        raise ProtocolError("a mirrored class with members that it may not have")
    if item[2] in MIRRORED and set(item[4]) & _DATA_OWN:
        raise ProtocolError("a mirrored class that does its own comparing")
    name, module = _clean(item[0], "Unnamed"), _clean(item[1], "solution")
    return Description(
        name, module, item[2], tuple(item[3]), frozenset(item[4]) & SPECIAL, frozenset(item[5]), frozenset(item[6]),
        tuple(x for x in item[7] if x in ABCS), tuple(item[8]), item[9], tuple(item[10]),
    )  # fmt: skip


def _clean(name: Any, instead: str) -> str:
    ok = type(name) is str and 0 < len(name) <= 200 and all(p.isidentifier() for p in name.split("."))
    return name if ok else instead


def kind_of(cls: type) -> str:
    """How instances of this class cross."""
    if cls is types.GeneratorType:
        return "generator"
    if cls is types.CoroutineType:
        return "coroutine"
    if cls is types.AsyncGeneratorType:
        return "asyncgen"
    if issubclass(cls, BaseException):
        return "exception"
    if issubclass(cls, enum.Enum) and _is_plain_enum(cls):
        return "flag" if issubclass(cls, enum.Flag) else "enum"
    if is_namedtuple(cls):
        return "namedtuple"
    if issubclass(cls, _FUNCTIONS):
        return "function"
    return "object"


def is_namedtuple(cls: type) -> bool:
    """A namedtuple whose comparing, hashing and iterating is the tuple's own."""
    fields = cls.__dict__.get("_fields") or getattr(cls, "_fields", None)
    if not (
        issubclass(cls, tuple) and type(fields) is tuple and fields and all(type(f) is str for f in fields)
    ):
        return False
    return all(getattr(cls, n) is getattr(tuple, n) for n in _TUPLE_OWN)


def _is_plain_enum(cls: type) -> bool:
    base = enum_base(cls)
    if base is None or not list(cls.__members__):  # type: ignore[attr-defined]
        return False
    own = cls.__mro__[: cls.__mro__.index(base)]
    if any(
        n in k.__dict__ for k in own for n in ("__eq__", "__hash__", "_missing_", "__lt__", "__getattr__")
    ):
        return False
    plain = (int, str, float, bool, type(None), tuple, bytes)
    return all(type(m._value_) in plain for m in cls.__members__.values())  # type: ignore[attr-defined]


def enum_base(cls: type) -> type | None:
    """The standard enum class that this one is made from, if nothing else is mixed in."""
    for base in cls.__mro__:
        if base in ENUM_BASES.values():
            extra = [
                k
                for k in cls.__mro__
                if k.__module__ != "enum" and k not in (object, int, str) and not issubclass(k, enum.Enum)
            ]
            return None if extra else base
    return None


def describe(cls: type, bases: tuple[Any, ...], encode: Any) -> Description:
    """Say what a class of this side is like. ``bases`` refer to its own bases; ``encode`` encodes plain values."""
    kind = kind_of(cls)
    special, methods, properties = members(cls)
    fields: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    if kind == "namedtuple":
        fields = tuple(cls._fields)  # type: ignore[attr-defined]
        defaults = cls._field_defaults  # type: ignore[attr-defined]
        values = ("defaults", list(defaults), [encode(v) for v in defaults.values()])
        special = frozenset(
            n
            for n in special
            if n not in _TUPLE_OWN and any(n in k.__dict__ for k in _own(cls)) and n != "__repr__"
        )
        generated = {"_make", "_asdict", "_replace", "count", "index", *fields}
        methods = frozenset(n for n in methods - generated if not n.startswith("_"))
        properties = frozenset(n for n in properties - generated if not n.startswith("_"))
    elif kind in ("enum", "flag"):
        named = cls.__members__  # type: ignore[attr-defined]
        base = enum_base(cls)
        values = (
            base.__name__ if base else "Enum",
            list(named),
            [encode(m._value_) for m in named.values()],
        )
        special = frozenset(
            n
            for n in special
            if any(n in k.__dict__ for k in _own(cls))
            and n in ("__str__", "__call__", "__len__", "__format__")
        )
        methods = frozenset(n for n in methods if _is_own(cls, n))
        properties = frozenset(n for n in properties if _is_own(cls, n))
    elif dataclasses.is_dataclass(cls):
        fields = tuple(f.name for f in dataclasses.fields(cls) if f.name.isidentifier())
    abcs = tuple(n for n in ABCS if issubclass(cls, getattr(collections.abc, n)))
    unhashable = getattr(cls, "__hash__", None) is None
    return Description(
        cls.__qualname__.rpartition(".")[2],
        str(cls.__module__),
        kind,
        bases,
        special,
        methods,
        properties,
        abcs,
        fields,
        unhashable,
        values,
    )


def _is_own(cls: type, name: str) -> bool:
    return not name.startswith("_") and name not in _RESERVED and any(name in k.__dict__ for k in _own(cls))


def _own(cls: type) -> list[type]:
    return [k for k in cls.__mro__ if k.__module__.partition(".")[0] not in sys.stdlib_module_names]


def members(cls: type) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Names of its operators, methods and properties; found once, before the forks where it can be."""
    known = _known_members.get(id(cls))
    if known is None:
        known = _known_members[id(cls)] = (cls, _members(cls))
    return known[1]


_known_members: dict[int, tuple[type, tuple[frozenset[str], frozenset[str], frozenset[str]]]] = {}


def _members(cls: type) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    special, methods, properties = set(), set(), set()
    for k in cls.__mro__:
        if k is object:
            continue
        for name, value in list(k.__dict__.items()):
            if type(name) is not str:
                continue
            if name in SPECIAL:
                if getattr(cls, name, None) is not None:
                    special.add(name)
            elif isinstance(
                value, (types.FunctionType, staticmethod, classmethod, types.MethodDescriptorType)
            ) and not name.startswith("__"):
                methods.add(name)
            elif isinstance(value, property) and not name.startswith("__"):
                properties.add(name)
    # a property or attribute of a subclass hides the method of a base
    methods = {
        n
        for n in methods
        if callable(inspect.getattr_static(cls, n, None))
        or isinstance(inspect.getattr_static(cls, n, None), (staticmethod, classmethod))
    }
    if len(methods) > 1000:
        methods = set()
    return frozenset(special), frozenset(methods), frozenset(properties)
