"""What does not cross as data: objects, classes and exceptions, by number; and what comes in by number.

Each side numbers what it hands out and keeps it until the other side has dropped its stand-in. Classes are described
once (``describe``) and mirrored (``proxy``). Exceptions arrive as the built-in class of the same name, or as a stand-in
class under the module of the one who raised them; those that would steer a test runner never arrive (``raised``).
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from . import guard, proxy
from .codec import BUILTIN_NAMES, BUILTINS, Codec
from .describe import MIRRORED, describe, kind_of, parse
from .liberties import CATCH_ALL, CATCH_ALLS, EMPTY_ARRAY, NAN, Liberties, is_nan
from .link import ProtocolError
from .shared import Table
from .standins import KINDS, MAKERS, RemoteModule

MAX_TEXT = 10_000


class Conversation(Protocol):
    """What is needed of the conversation (``peer.Peer``)."""

    strict: bool
    liberties: Liberties
    escaped: tuple[str, str] | None

    def ask(self, op: str, *parts: Any) -> Any: ...

    def escape(self, reason: str, flag: str) -> None: ...


class Exchange:
    """One side's objects that the other side knows, and the stand-ins for the other side's."""

    def __init__(self, peer: Conversation, table: Table, resolve: Callable[[str, str], Any] | None) -> None:
        self.peer = peer
        self.table = table
        self.codec = Codec(table, self)
        self._resolve = resolve
        self._exports: dict[int, Any] = {}
        self._export_numbers: dict[int, int] = {}
        self._next = 1
        self._proxies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._wrapped: dict[int, tuple[Any, int]] = {}
        self._dropped: list[int] = []
        self._classes_out: dict[int, tuple[type, int]] = {}
        self._classes_by_number: dict[int, type] = {}
        self._classes_in: dict[int, type] = {}

    def dropped(self) -> list[int]:
        """Numbers of the other side's objects for which nothing here stands any more; each is named once."""
        numbers = [n for n in self._dropped if n not in self._proxies]
        self._dropped.clear()
        return numbers

    def release(self, numbers: Any) -> None:
        """The other side has dropped its stand-ins for these."""
        for number in numbers:
            if (value := self._exports.pop(number, None)) is not None:
                self._export_numbers.pop(id(value), None)

    # ------------------------------------------------------------------ objects out

    def export(self, value: Any, as_key: bool) -> list[Any] | None:
        """The item for what does not cross as data (``codec.Objects``)."""
        if isinstance(value, types.TracebackType):
            return None  # __exit__ gets one; nobody needs the frames of the other side
        if isinstance(value, proxy.Proxy) and value._tiltyard_peer is self.peer:
            return ["m", value._tiltyard_number]
        if type(value) is proxy.MethodStub:
            return ["M", proxy.address(value._tiltyard_target)[1], value._tiltyard_name]
        if isinstance(value, type):
            return self._export_class(value)
        if id(value) in self._wrapped and self._wrapped[id(value)][0] is value:
            return ["m", self._wrapped[id(value)][1]]
        if isinstance(value, RemoteModule):
            return ["mod", value.__name__]
        if self.peer.strict:
            guard.may_export(value)
        if isinstance(value, BaseException):
            return self._enc_exception(value, 0)
        kind = kind_of(type(value))
        if kind in MIRRORED:
            return self._enc_mirrored(value, kind)
        item: list[Any] = ["o", self._number(value), self._class_reference(type(value))]
        own_hash: Any = type(value).__hash__
        if as_key and own_hash is not object.__hash__:
            item.append(hash(value))
        return item

    def _number(self, value: Any) -> int:
        number = self._export_numbers.get(id(value))
        if number is None:
            number = self._next
            self._next += 1
            self._export_numbers[id(value)] = number
            self._exports[number] = value
        return number

    def _enc_mirrored(self, value: Any, kind: str) -> list[Any]:
        mine = type(value).__dict__.get("_tiltyard_class")
        reference: Any = (
            ["k", mine[1]]
            if mine is not None and mine[0] is self.peer
            else self._class_reference(type(value))
        )
        if kind == "namedtuple":
            return ["nt", reference, [self.codec.enc(v, True) for v in tuple(value)]]
        name = value._name_ if value._name_ in type(value).__members__ else None
        return ["e", reference, name, self.codec.enc(value._value_)]

    def _export_class(self, value: type) -> list[Any]:
        mine = value.__dict__.get("_tiltyard_class")
        if mine is not None and mine[0] is self.peer:
            return ["k", mine[1]]
        if value is type or value is object:
            return ["T", value.__name__] if value is object else self._refuse_type()
        return ["K", self._class_reference(value)]

    def _refuse_type(self) -> list[Any]:
        raise guard.Refused("the class of all classes")

    def _class_reference(self, cls: type) -> Any:
        """Its number, with a description the first time."""
        known = self._classes_out.get(id(cls))
        if known is not None:
            return known[1]
        number = len(self._classes_out) + 1
        self._classes_out[id(cls)] = (cls, number)
        self._classes_by_number[number] = cls
        bases = [self._base_reference(b) for b in cls.__bases__ if b is not object]
        return [number, *describe(cls, tuple(b for b in bases if b is not None), self.codec.enc).as_list()]

    def _base_reference(self, base: type) -> Any:
        if id(base) in BUILTIN_NAMES:
            return ["T", BUILTIN_NAMES[id(base)]]
        if (
            issubclass(base, BaseException)
            and guard.standard_exception(base.__module__, base.__qualname__) is base
        ):
            return ["Z", base.__module__, base.__qualname__]
        mine = base.__dict__.get("_tiltyard_class")
        if mine is not None and mine[0] is self.peer:
            return ["k", mine[1]]
        if base.__module__.partition(".")[0] in sys.stdlib_module_names:
            return None
        return self._class_reference(base)

    # ------------------------------------------------------------------ objects in

    def adopt(self, item: list[Any]) -> Any:
        """The value for an item that is no plain data (``codec.Objects``)."""
        adopter = _ADOPTERS.get(item[0])
        if adopter is None:
            raise ProtocolError("an item with an unknown tag")
        return adopter(self, item)

    def arrived(self, value: Any) -> Any:
        """The value, which came from the other side, if it may (``codec.Objects``)."""
        name = ""
        if isinstance(value, type):
            name = CATCH_ALL if value in CATCH_ALLS else ""
        elif is_nan(value):
            name = NAN
        elif getattr(value, "size", 1) == 0:
            name = EMPTY_ARRAY
        if name and self.peer.strict and not self.peer.liberties.take(name):
            self.peer.escape(f"answered with {name}", "")
        return value

    def _adopt_object(self, item: list[Any]) -> Any:
        number = item[1]
        if type(number) is not int or number < 1:
            raise ProtocolError("an object without a number")
        cls = self._class(item[2])
        known = self._proxies.get(number)
        if known is not None:
            return known
        known_hash = item[3] if len(item) > 3 else None
        if known_hash is not None and type(known_hash) is not int:
            raise ProtocolError("a hash that is no number")
        value = (
            MAKERS[cls](self.peer, number) if cls in MAKERS else proxy.new(cls, self.peer, number, known_hash)
        )
        self._proxies[number] = value
        if cls in MAKERS:
            self._wrapped[id(value)] = (value, number)
        weakref.finalize(value, self._dropped.append, number).atexit = False
        return value

    def _adopt_mine(self, item: list[Any]) -> Any:
        if type(item[1]) is not int:
            raise ProtocolError("an object without a number")
        return self._exports[item[1]]

    def _adopt_method(self, item: list[Any]) -> Any:
        target = self.codec.dec(item[1])
        if self.peer.strict:
            guard.may_get(target, item[2])
        return getattr(target, item[2])

    def _adopt_class(self, item: list[Any]) -> type:
        return self._class(item[1])

    def _adopt_my_class(self, item: list[Any]) -> type:
        if type(item[1]) is not int:
            raise ProtocolError("a class without a number")
        return self._classes_by_number[item[1]]

    def _adopt_module(self, item: list[Any]) -> Any:
        if self._resolve is None or type(item[1]) is not str:
            raise ProtocolError("a module that is not known")
        return self._resolve(item[1], "")

    def _class(self, reference: Any) -> type:
        if type(reference) is int:
            return self._classes_in[reference]
        if type(reference) is list and reference and reference[0] == "k":
            return self._adopt_my_class(reference)
        if (
            type(reference) is not list
            or type(reference[0]) is not int
            or reference[0] in self._classes_in
            or len(self._classes_in) > 5000
        ):
            raise ProtocolError("a class without a number")
        number = reference[0]
        d = parse(reference[1:])
        bases = tuple(b for b in map(self._base, d.bases) if b is not None)
        values = [d.values[0], d.values[1], [self.codec.dec(v) for v in d.values[2]]] if d.values else []
        made = KINDS.get(d.kind) or proxy.make_class(self.peer, number, d, bases, values)
        self._classes_in[number] = made
        return made

    def _base(self, reference: Any) -> type | None:
        if type(reference) is list and reference and reference[0] == "T":
            found = BUILTINS.get(reference[1])
        elif type(reference) is list and reference and reference[0] == "Z":
            found = guard.standard_exception(reference[1], reference[2])
        else:
            found = self._class(reference)
        return found if isinstance(found, type) else None

    def _adopt_namedtuple(self, item: list[Any]) -> Any:
        cls = self._class(item[1])
        values = self.codec._dec_items(item[2])
        if not (issubclass(cls, tuple) and hasattr(cls, "_fields")):
            raise ProtocolError("a namedtuple of a class that is none")
        return cls._make(values)  # type: ignore[attr-defined]

    def _adopt_enum(self, item: list[Any]) -> Any:
        cls = self._class(item[1])
        value = self.codec.dec(item[3])
        if item[2] is not None:
            return cls.__members__[item[2]]  # type: ignore[attr-defined]
        return cls(value)

    # ------------------------------------------------------------------ exceptions

    def raised(self, error: BaseException) -> list[Any]:
        if not isinstance(error, Exception) or type(error).__name__ in guard.STEERING_NAMES:
            return ["!", type(error).__name__]
        return self._enc_exception(error, 0)

    def _enc_exception(self, error: BaseException, depth: int) -> list[Any]:
        number = error.__dict__.get("_tiltyard_number") if hasattr(error, "__dict__") else None
        mine = type(error).__dict__.get("_tiltyard_class")
        if number is not None and mine is not None and mine[0] is self.peer:
            return ["m", number]
        text, reference, own = None, self._exception_class(type(error)), 0
        if not (type(reference) is list and reference[0] in ("T", "Z")):
            own = 0 if mine is not None and mine[0] is self.peer else self._number(error)
            text = _text(error)
        args = [self._enc_or_none(self.codec.enc, a) for a in tuple(error.args)[:50]]
        cause = error.__cause__ if depth < 3 else None
        cause_item = (
            self._enc_or_none(self._enc_exception, cause, depth + 1) if isinstance(cause, Exception) else 0
        )
        return ["X", reference, args, text if type(text) is str else None, own, cause_item or 0]

    def _enc_or_none(self, encode: Callable[..., Any], *args: Any) -> Any:
        mark = self.mark()
        try:
            return encode(*args)
        except Exception:
            self.roll_back(mark)
            return None

    def _exception_class(self, cls: type) -> Any:
        mine = cls.__dict__.get("_tiltyard_class")
        if mine is not None and mine[0] is self.peer:
            return ["k", mine[1]]
        reference = self._base_reference(cls)
        return self._class_reference(cls) if reference is None else reference

    def _adopt_exception(self, item: list[Any]) -> BaseException:
        _, reference, args, text, number, cause = item
        cls = self._base(reference)
        if (
            cls is None
            or not issubclass(cls, BaseException)
            or (self.peer.strict and not issubclass(cls, Exception))
        ):
            raise ProtocolError("an exception of a class that is none")
        values = [self.codec.dec(a) for a in args]
        try:
            error = cls(*values)
        except Exception:
            error = cls.__new__(cls)
            error.args = tuple(values)
        if number:
            known = self._proxies.get(number)
            if known is not None:
                return known  # type: ignore[no-any-return]
            if type(number) is not int:
                raise ProtocolError("an exception without a number")
            error.__dict__["_tiltyard_number"] = number
            self._proxies[number] = error
        if type(text) is str and "_tiltyard_class" in type(error).__dict__:
            error.__dict__["_tiltyard_text"] = text
        if cause:
            error.__cause__ = self.codec.dec(cause)
        return error

    def mark(self) -> tuple[set[int], int]:
        return set(self.table.numbers()), len(self._classes_out)

    def roll_back(self, mark: tuple[set[int], int]) -> None:
        """Forget the numbers given since ``mark``: the message with them was never sent."""
        self.table.forget([n for n in self.table.numbers() if n not in mark[0]])
        for key, (_, number) in list(self._classes_out.items()):
            if number > mark[1]:
                del self._classes_out[key], self._classes_by_number[number]


def _text(error: BaseException) -> str | None:
    try:
        return str(error)[:MAX_TEXT]
    except Exception:
        return None


_ADOPTERS: dict[str, Callable[[Exchange, list[Any]], Any]] = {
    "o": Exchange._adopt_object, "m": Exchange._adopt_mine, "M": Exchange._adopt_method, "K": Exchange._adopt_class,
    "k": Exchange._adopt_my_class, "nt": Exchange._adopt_namedtuple, "e": Exchange._adopt_enum, "X": Exchange._adopt_exception,
    "mod": Exchange._adopt_module,
}  # fmt: skip
