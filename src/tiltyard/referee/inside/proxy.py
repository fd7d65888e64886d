"""Stand-ins for what stays on the other side, and mirrors of its classes.

A stand-in never equals plain data: compared with anything but another stand-in it answers NotImplemented, so Python
falls back to identity (equality) or TypeError (order). Two stand-ins are compared by their own class, over there; the
answer must be exactly a bool and the conversation takes note. ``isinstance``, operators, iteration, ``with``,
attributes, methods, properties and class attributes work as on the real thing. Subclassing does not.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import enum
from typing import Any

from .describe import COMPARISONS, ENUM_BASES, Description
from .guard import may_name
from .liberties import SUPPRESSED
from .link import ProtocolError
from .older import paired
from .signature import FROM_SIGNATURE, attribute

_MAKING = object()
_get = object.__getattribute__


class ProxyMeta(type):
    """Class of the mirrored classes: calling one makes an object over there."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], making: object = None
    ) -> ProxyMeta:
        if making is not _MAKING:
            raise TypeError("a class of the other side can't be subclassed here: it lives in another process")
        return super().__new__(mcs, name, bases, body)

    def __init__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], making: object = None
    ) -> None:
        super().__init__(name, bases, body)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        peer, number = cls._tiltyard_class
        return peer.ask("c", ["k", number], args, kwargs)

    def __getattr__(cls, name: str) -> Any:
        peer, number = cls.__dict__.get("_tiltyard_class") or (None, 0)
        if peer is None or name == "__abstractmethods__" or _is_kept_back(peer, name):
            raise AttributeError(name)
        return peer.ask("g", ["k", number], name)

    def __setattr__(cls, name: str, value: Any) -> None:
        peer, number = cls._tiltyard_class
        peer.ask("s", ["k", number], name, value)

    def __delattr__(cls, name: str) -> None:
        peer, number = cls._tiltyard_class
        peer.ask("D", ["k", number], name)


class Proxy(metaclass=ProxyMeta, making=_MAKING):
    """A stand-in for one object of the other side."""

    __slots__ = ("__weakref__", "_tiltyard_hash", "_tiltyard_number", "_tiltyard_peer")
    _tiltyard_methods: frozenset[str] = frozenset()
    _tiltyard_unhashable = False
    _tiltyard_has_hash = False
    _tiltyard_is_function = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_tiltyard"):
            raise AttributeError(name)
        if name in FROM_SIGNATURE and type(self)._tiltyard_is_function:
            peer = self._tiltyard_peer
            described = peer.ask("g", ["m", self._tiltyard_number], "__signature__")
            return attribute(name, described, str(self.__name__) if name == "__code__" else "")
        if _is_kept_back(self._tiltyard_peer, name, type(self)._tiltyard_is_function):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in type(self)._tiltyard_methods:
            return MethodStub(self, name)
        return self._tiltyard_peer.ask("g", ["m", self._tiltyard_number], name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._tiltyard_peer.ask("s", ["m", self._tiltyard_number], name, value)

    def __delattr__(self, name: str) -> None:
        self._tiltyard_peer.ask("D", ["m", self._tiltyard_number], name)

    def __dir__(self) -> list[str]:
        return list(self._tiltyard_peer.ask("dir", ["m", self._tiltyard_number]))

    def __hash__(self) -> int:
        cls = type(self)
        if cls._tiltyard_unhashable:
            raise TypeError(f"unhashable type: {cls.__name__!r}")
        if not cls._tiltyard_has_hash:
            return hash(("tiltyard", self._tiltyard_number))
        known: Any = self._tiltyard_hash
        if known is None:
            known = self._tiltyard_peer.ask("x", ["m", self._tiltyard_number], "__hash__")
            if type(known) is not int:
                raise TypeError("__hash__ method should return an integer")
        return int(known)

    def __repr__(self) -> str:
        return str(self._tiltyard_peer.ask("x", ["m", self._tiltyard_number], "__repr__"))

    def __str__(self) -> str:
        return str(self._tiltyard_peer.ask("x", ["m", self._tiltyard_number], "__str__"))

    def __format__(self, spec: str) -> str:
        return str(self._tiltyard_peer.ask("x", ["m", self._tiltyard_number], "__format__", spec))

    def __copy__(self) -> Any:
        return self._tiltyard_peer.ask("x", ["m", self._tiltyard_number], "__copy__")

    def __deepcopy__(self, memo: Any) -> Any:
        return self._tiltyard_peer.ask("x", ["m", self._tiltyard_number], "__deepcopy__")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object: it lives in another process")


class MethodStub:
    """A method of a stand-in or of a mirrored value: fetched and called in one go."""

    __slots__ = ("_tiltyard_name", "_tiltyard_target")

    def __init__(self, target: Any, name: str) -> None:
        self._tiltyard_target = target
        self._tiltyard_name = name

    @property
    def __name__(self) -> str:
        return self._tiltyard_name

    @property
    def __self__(self) -> Any:
        return self._tiltyard_target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        peer, item = address(self._tiltyard_target)
        return peer.ask("M", item, self._tiltyard_name, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        peer, item = address(self._tiltyard_target)
        if name in FROM_SIGNATURE:
            described = peer.ask("g", ["M", item, self._tiltyard_name], "__signature__")
            return attribute(name, described, self._tiltyard_name)
        if _is_kept_back(peer, name, True):
            raise AttributeError(f"'method' object has no attribute {name!r}")
        return peer.ask("g", ["M", item, self._tiltyard_name], name)

    def __eq__(self, other: object) -> bool:
        if type(other) is not MethodStub:
            return NotImplemented
        return self._tiltyard_target is other._tiltyard_target and self._tiltyard_name == other._tiltyard_name

    def __hash__(self) -> int:
        return hash((id(self._tiltyard_target), self._tiltyard_name))


def _is_kept_back(peer: Any, name: str, function: bool = False) -> bool:
    """Whether the examiner would refuse to tell this of an object of a test. Honest code tries such names and goes on
    without (``functools.wraps``, ``inspect``, ``traceback``): it must not even ask."""
    return not peer.strict and not may_name(name, function)


def address(value: Any) -> tuple[Any, list[Any]]:
    """The peer that a stand-in or a mirrored value belongs to, and what to call it there."""
    if isinstance(value, Proxy):
        return value._tiltyard_peer, ["m", value._tiltyard_number]
    if isinstance(value, ProxyMeta):
        return value._tiltyard_class[0], ["k", value._tiltyard_class[1]]
    peer = type(value)._tiltyard_class[0]
    return peer, peer.codec.enc(value)


def is_theirs(value: Any) -> bool:
    """Whether it is the other side's, as a stand-in or as a mirrored value: no plain data."""
    return isinstance(value, Proxy) or getattr(type(value), "_tiltyard_class", None) is not None


def _special(name: str) -> Any:
    """An operator of a stand-in or of a mirrored value that is executed on the other side."""

    def method(self: Any, *args: Any) -> Any:
        peer, item = address(self)
        return peer.ask("x", item, name, *args)

    def compare(self: Any, other: Any) -> Any:
        peer = self._tiltyard_peer
        if peer.codec.decoding:
            return self is other if name == "__eq__" else NotImplemented
        if peer.strict and not isinstance(other, Proxy):
            return NotImplemented
        answer = peer.ask("x", ["m", self._tiltyard_number], name, other)
        if answer is NotImplemented:
            return NotImplemented
        if type(answer) is not bool and peer.strict:
            raise TypeError(f"{name} of a solution's class answered no bool")
        peer.flags.add("delegated_comparison")
        return answer

    def contains(self: Any, item: Any) -> bool:
        peer, place = address(self)
        answer = peer.ask("x", place, name, item)
        if answer is NotImplemented:  # as without the operator
            return any(x is item or x == item for x in self)
        if type(answer) is not bool:
            raise TypeError(f"{name} of a solution's class answered no bool")
        peer.flags.add("delegated_comparison")
        return answer

    def leave(self: Any, kind: Any = None, *rest: Any) -> Any:
        peer, item = address(self)
        return _suppresses(peer, kind, peer.ask("x", item, name, kind, *rest))

    def wait(self: Any) -> Any:
        peer, item = address(self)
        return peer.ask("w", item)
        yield

    if name == "__contains__":
        method = contains
    elif name == "__await__":
        method = wait
    elif name == "__exit__":
        method = leave
    elif name in COMPARISONS:
        method = compare
    elif name in ("__anext__", "__aenter__", "__aexit__"):

        async def later(self: Any, *args: Any) -> Any:
            peer, item = address(self)
            answer = peer.ask("w", item, name, *args)
            return _suppresses(peer, args[0], answer) if name == "__aexit__" and args else answer

        later.__name__ = name
        return later
    method.__name__ = name
    return method


def _suppresses(peer: Any, kind: Any, answer: Any) -> Any:
    """What a ``with`` of a test is told: swallowing what was raised in it is a liberty."""
    if kind is None or not peer.strict:
        return answer
    return bool(answer) and peer.liberties.take(SUPPRESSED)


_GENERIC = frozenset({"__hash__", "__repr__", "__str__", "__format__", "__copy__", "__deepcopy__"})


def make_class(peer: Any, number: int, d: Description, bases: tuple[type, ...], values: list[Any]) -> type:
    """A stand-in class or mirror for a described class. ProtocolError: the description makes no sense."""
    try:
        if d.kind == "exception":
            return _make_exception(peer, number, d, bases)
        if d.kind == "namedtuple":
            return _make_namedtuple(peer, number, d, values)
        if d.kind in ("enum", "flag"):
            return _make_enum(peer, number, d, values)
        return _make_proxy(peer, number, d, bases)
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        raise ProtocolError(f"a class that can't be mirrored ({type(error).__name__})") from None


def _make_proxy(peer: Any, number: int, d: Description, bases: tuple[type, ...]) -> type:
    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": d.module,
        "_tiltyard_class": (peer, number),
        "_tiltyard_methods": d.methods,
        "_tiltyard_unhashable": d.unhashable,
        "_tiltyard_has_hash": "__hash__" in d.special or "__eq__" in d.special,
        "_tiltyard_is_function": d.kind == "function",
    }
    for name in d.special - _GENERIC:
        body[name] = _special(name)
    if "__eq__" in body:
        body["__hash__"] = Proxy.__hash__
    if d.kind == "function" or "__call__" in body:
        body["__call__"] = _special_call
    if d.kind == "function":
        body["__doc__"] = property(
            lambda self: self._tiltyard_peer.ask("g", ["m", self._tiltyard_number], "__doc__")
        )
    if d.fields:
        made = dataclasses.make_dataclass("Fields", [(f, Any) for f in d.fields])
        body["__dataclass_fields__"] = made.__dataclass_fields__  # type: ignore[attr-defined]
    parents = tuple(b for b in bases if isinstance(b, ProxyMeta)) or (Proxy,)
    try:
        cls = ProxyMeta(d.name, parents, body, making=_MAKING)
    except TypeError:
        cls = ProxyMeta(d.name, (Proxy,), body, making=_MAKING)
    for name in d.abcs:
        getattr(collections.abc, name).register(cls)
    return cls


def _special_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._tiltyard_peer.ask("c", ["m", self._tiltyard_number], args, kwargs)


def new(cls: type, peer: Any, number: int, known_hash: int | None) -> Any:
    """A stand-in for object ``number`` of the other side."""
    self: Any = object.__new__(cls)
    object.__setattr__(self, "_tiltyard_peer", peer)
    object.__setattr__(self, "_tiltyard_number", number)
    object.__setattr__(self, "_tiltyard_hash", known_hash)
    return self


class ExceptionMeta(type):
    def __getattr__(cls, name: str) -> Any:
        peer, number = cls.__dict__.get("_tiltyard_class") or (None, 0)
        if peer is None or name.startswith("_tiltyard") or _is_kept_back(peer, name):
            raise AttributeError(name)
        return peer.ask("g", ["k", number], name)


def _make_exception(peer: Any, number: int, d: Description, bases: tuple[type, ...]) -> type:
    parents = tuple(b for b in bases if issubclass(b, Exception)) or (Exception,)

    def look_up(self: Any, name: str) -> Any:
        number = self.__dict__.get("_tiltyard_number")
        if number is None or name.startswith("_tiltyard") or _is_kept_back(peer, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return peer.ask("g", ["m", number], name)

    def text(self: Any) -> str:
        known = self.__dict__.get("_tiltyard_text")
        return known if known is not None else parents[0].__str__(self)

    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        self.args = args

    body = {
        "__module__": d.module, "_tiltyard_class": (peer, number), "__getattr__": look_up, "__str__": text, "__init__": start,
    }  # fmt: skip
    return ExceptionMeta(d.name, parents, body)


def _mirror_extras(d: Description) -> dict[str, Any]:
    """Methods, properties and operators that a mirrored class has beyond its data: executed over there, by value."""
    extras: dict[str, Any] = {name: _special(name) for name in d.special}
    for name in d.methods:
        extras[name] = property(lambda self, name=name: MethodStub(self, name))  # type: ignore[misc]
    for name in d.properties:
        extras[name] = property(lambda self, name=name: _mirror_get(self, name))  # type: ignore[misc]
    return extras


def _mirror_get(value: Any, name: str) -> Any:
    peer, item = address(value)
    return peer.ask("g", item, name)


def _make_namedtuple(peer: Any, number: int, d: Description, values: list[Any]) -> type:
    base = collections.namedtuple(d.name, d.fields, defaults=values[2])  # type: ignore[misc]
    taken = set(d.fields)
    extras = {n: v for n, v in _mirror_extras(d).items() if n not in taken}
    body = {"__slots__": (), "__module__": d.module, "_tiltyard_class": (peer, number), **extras}
    return type(d.name, (base,), body)


def _make_enum(peer: Any, number: int, d: Description, values: list[Any]) -> type:
    base, names, contents = values
    if type(names) is not list or type(contents) is not list or not all(type(n) is str for n in names):
        raise ProtocolError("an enum without names")
    body = enum.EnumMeta.__prepare__(d.name, (ENUM_BASES[base],))
    for name, value in _mirror_extras(d).items():
        body[name] = value
    for name, value in paired(names, contents):
        if not name.isidentifier() or name.startswith("_"):
            raise ProtocolError("a member with a name that is none")
        body[name] = value
    made = enum.EnumMeta(d.name, (ENUM_BASES[base],), body)
    made.__module__ = d.module
    type.__setattr__(made, "_tiltyard_class", (peer, number))
    return made
