"""Values to plain JSON and back: typed, exact, bounded.

What may cross as data: None, bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict,
range, slice, Ellipsis, NotImplemented, Decimal, Fraction, the datetime kinds, UUID, pure paths, Counter, OrderedDict,
defaultdict, deque, dict views, mapping proxies, namedtuples, enum members, numpy arrays and scalars, and the built-in
types and harmless built-in functions by name. *Exact types only*: an instance of a subclass (an int with an ``__eq__``
of its own) never arrives as the base type; it stays where it is and a stand-in crosses (``Objects``).

Numbers, strings, booleans and None are themselves; all else is an array whose first item is a tag. No JSON object is
ever used, so there are no duplicate keys. ``dec`` raises ProtocolError for anything that ``enc`` could not have made.
"""

from __future__ import annotations

import builtins
import datetime
import decimal
import fractions
import pathlib
import sys
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, Protocol

from .link import ProtocolError
from .older import paired
from .shared import Table

RAW = frozenset({type(None), bool, str, float})
NUMBERS = frozenset({*RAW, int})
BIG = 1 << 8192
MAX_DEPTH = 300

_SAFE_FUNCTIONS = [
    "abs",
    "all",
    "any",
    "ascii",
    "bin",
    "callable",
    "chr",
    "divmod",
    "format",
    "hash",
    "hex",
    "id",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "max",
    "min",
    "next",
    "oct",
    "ord",
    "pow",
    "repr",
    "reversed",
    "round",
    "sorted",
    "sum",
]
BUILTINS: dict[str, Any] = {
    name: value
    for name, value in vars(builtins).items()
    if (isinstance(value, type) and name != "type") or name in _SAFE_FUNCTIONS
}
BUILTINS.update(
    {
        f"{cls.__module__}.{cls.__name__}": cls
        for cls in (
            Counter, OrderedDict, defaultdict, deque, decimal.Decimal, fractions.Fraction, datetime.date,
            datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone, uuid.UUID,
        )
    }
)  # fmt: skip
BUILTINS.update(
    {cls.__name__: cls for cls in (type(None), type(...), type(NotImplemented))}
)  # no names of builtins
BUILTIN_NAMES: dict[int, str] = {
    id(value): name for name, value in BUILTINS.items() if name not in ("IOError", "EnvironmentError")
}


class Objects(Protocol):
    """What stays where it is: the rest of the conversation, seen from the codec."""

    def export(self, value: Any, as_key: bool) -> list[Any] | None: ...

    def adopt(self, item: list[Any]) -> Any: ...

    def arrived(self, value: Any) -> Any: ...


class Codec:
    """One side's encoder and decoder. Not for use by two threads at a time."""

    def __init__(self, table: Table, objects: Objects) -> None:
        self.table = table
        self.objects = objects
        self.decoding = 0
        self._depth = 0
        self._learned: list[int] = []

    # ------------------------------------------------------------------ out

    def enc(self, value: Any, as_key: bool = False) -> Any:
        """The JSON form. ``as_key``: it will be hashed on the other side. RecursionError: nested too deep."""
        kind = type(value)
        if kind in RAW:
            return value
        if kind is int:
            return value if -BIG < value < BIG else ["i", hex(value)]
        encoder = _ENCODERS.get(kind)
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise RecursionError(f"data nested more than {MAX_DEPTH} deep can't cross between the cells")
            if encoder is not None:
                return encoder(self, value, as_key)
            if id(value) in BUILTIN_NAMES and BUILTINS[BUILTIN_NAMES[id(value)]] is value:
                return ["T", BUILTIN_NAMES[id(value)]]
            return self._enc_rare(value, as_key)
        finally:
            self._depth -= 1

    def contents(self, value: Any) -> list[Any]:
        """What is in a container, for a write-back: one or two arrays of items."""
        kind = type(value)
        if kind in (dict, OrderedDict, defaultdict, Counter):
            return [self._items(value.keys(), True), self._items(value.values(), False)]
        if kind is bytearray:
            return [value.hex()]
        if kind in (list, deque, set):
            return [self._items(value, kind is set)]
        return [value.tobytes().hex()]

    def _items(self, values: Any, as_key: bool) -> list[Any]:
        kinds = set(map(type, values))
        if kinds <= RAW:
            return list(values)
        if kinds <= NUMBERS:
            items = list(values)
            numbers = [v for v in items if type(v) is int] if len(kinds) > 1 else items
            if min(numbers) > -BIG and max(numbers) < BIG:
                return items
        return [self.enc(v, as_key) for v in values]

    def _known(self, value: Any) -> list[Any] | int:
        number = self.table.number(value)
        return ["r", number] if number is not None else self.table.add(value)

    def _enc_list(self, value: list[Any], as_key: bool) -> list[Any]:
        known = self._known(value)
        return known if isinstance(known, list) else ["l", known, self._items(value, False)]

    def _enc_set(self, value: set[Any], as_key: bool) -> list[Any]:
        known = self._known(value)
        return known if isinstance(known, list) else ["s", known, self._items(value, True)]

    def _enc_bytearray(self, value: bytearray, as_key: bool) -> list[Any]:
        known = self._known(value)
        return known if isinstance(known, list) else ["B", known, value.hex()]

    def _enc_deque(self, value: deque[Any], as_key: bool) -> list[Any]:
        known = self._known(value)
        return known if isinstance(known, list) else ["q", known, value.maxlen, self._items(value, False)]

    def _enc_dict(self, value: dict[Any, Any], as_key: bool) -> list[Any]:
        known = self._known(value)
        if isinstance(known, list):
            return known
        kind = type(value)
        name = {dict: "", OrderedDict: "O", Counter: "C", defaultdict: "D"}[kind]
        out = ["d", known, name, *self.contents(value)]
        return [*out, self.enc(value.default_factory)] if isinstance(value, defaultdict) else out

    def _enc_mappingproxy(self, value: Any, as_key: bool) -> list[Any] | None:
        if type(value | {}) is not dict:
            return self.objects.export(value, as_key)
        return ["mp", self._items(value.keys(), True), self._items(value.values(), False)]

    def _enc_timezone(self, value: datetime.timezone, as_key: bool) -> list[Any]:
        offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
        return ["Tz", self.enc(offset), *name]

    def _enc_rare(self, value: Any, as_key: bool) -> list[Any] | None:
        kind = type(value)
        if (zoneinfo := sys.modules.get("zoneinfo")) is not None and kind is zoneinfo.ZoneInfo and value.key:
            return ["Zi", value.key]
        if (numpy := sys.modules.get("numpy")) is not None and getattr(numpy, "ndarray", None) is not None:
            if kind is numpy.ndarray and value.dtype.kind in "biufcSUmM":
                known = self._known(value)
                if isinstance(known, list):
                    return known
                return ["na", known, value.dtype.str, list(value.shape), value.tobytes().hex()]
            if (
                isinstance(value, numpy.generic)
                and kind.__module__ == "numpy"
                and value.dtype.kind in "biufcSUmM"
            ):
                return ["ns", value.dtype.str, value.tobytes().hex()]
        return self.objects.export(value, as_key)

    # ------------------------------------------------------------------ in

    def dec(self, item: Any) -> Any:
        """The value. ProtocolError: no encoder makes such an item."""
        kind = type(item)
        if kind in NUMBERS:
            return item
        if kind is not list or not item or type(item[0]) is not str:
            raise ProtocolError("an item that is no value")
        decoder = _DECODERS.get(item[0])
        self._depth += 1
        self.decoding += 1
        try:
            if self._depth > MAX_DEPTH + 2:
                raise ProtocolError("data nested too deep")
            return self.objects.adopt(item) if decoder is None else decoder(self, item)
        except (
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            ArithmeticError,
            AttributeError,
            RecursionError,
        ) as error:
            raise ProtocolError(f"a malformed {item[0][:2]!r} item ({type(error).__name__})") from None
        finally:
            self._depth -= 1
            self.decoding -= 1

    def fill(self, number: Any, contents: list[Any]) -> None:
        """Put contents that the other side sent into the container of this number."""
        try:
            value = self.table.get(number)
            kind = type(value)
            if kind in (dict, OrderedDict, defaultdict, Counter):
                pairs = list(paired(self._dec_items(contents[0]), self._dec_items(contents[1])))
                value.clear()
                for key, element in pairs:
                    value[key] = element
            elif kind is bytearray:
                value[:] = bytes.fromhex(contents[0])
            elif kind in (list, deque, set):
                items = self._dec_items(contents[0])
                value.clear()
                value.update(items) if kind is set else value.extend(items)
            else:
                value.reshape(-1)[...] = sys.modules["numpy"].frombuffer(
                    bytes.fromhex(contents[0]), dtype=value.dtype
                )
        except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProtocolError(f"a malformed write-back ({type(error).__name__})") from None
        self._learned.append(number)

    def settle(self) -> None:
        """Everything of this message is decoded: what the containers hold now is what both sides know."""
        self.table.settle(self._learned)
        self._learned.clear()

    def _dec_items(self, items: Any) -> list[Any]:
        if type(items) is not list:
            raise ProtocolError("items that are no array")
        if set(map(type, items)) <= NUMBERS:
            return items
        return [self.dec(x) for x in items]

    def _learn(self, number: Any, value: Any) -> None:
        self.table.learn(number, value)
        self._learned.append(number)

    def _dec_list(self, x: list[Any]) -> list[Any]:
        value: list[Any] = []
        self._learn(x[1], value)
        value.extend(self._dec_items(x[2]))
        return value

    def _dec_set(self, x: list[Any]) -> set[Any]:
        value: set[Any] = set()
        self._learn(x[1], value)
        value.update(self._dec_items(x[2]))
        return value

    def _dec_bytearray(self, x: list[Any]) -> bytearray:
        value = bytearray.fromhex(x[2])
        self._learn(x[1], value)
        return value

    def _dec_deque(self, x: list[Any]) -> deque[Any]:
        value: deque[Any] = deque(maxlen=x[2])
        self._learn(x[1], value)
        value.extend(self._dec_items(x[3]))
        return value

    def _dec_dict(self, x: list[Any]) -> dict[Any, Any]:
        value: dict[Any, Any] = {"": dict, "O": OrderedDict, "C": Counter, "D": defaultdict}[x[2]]()
        self._learn(x[1], value)
        for key, element in paired(self._dec_items(x[3]), self._dec_items(x[4])):
            value[key] = element
        if isinstance(value, defaultdict):
            value.default_factory = self.dec(x[5])
        return value

    def _dec_view(self, x: list[Any]) -> Any:
        items = self._dec_items(x[2])
        if x[1] == "k":
            return dict.fromkeys(items).keys()
        if x[1] == "v":
            return dict(enumerate(items)).values()
        return dict(items).items()

    def _dec_array(self, x: list[Any]) -> Any:
        import numpy

        dtype = numpy.dtype(x[2])
        if dtype.kind not in "biufcSUmM":
            raise ProtocolError("an array of something else than numbers and text")
        value = numpy.frombuffer(bytes.fromhex(x[4]), dtype=dtype).reshape(x[3]).copy()
        self._learn(x[1], self.objects.arrived(value))
        return value

    def _dec_scalar(self, x: list[Any]) -> Any:
        import numpy

        dtype = numpy.dtype(x[1])
        if dtype.kind not in "biufcSUmM":
            raise ProtocolError("a scalar of something else than numbers and text")
        return self.objects.arrived(numpy.frombuffer(bytes.fromhex(x[2]), dtype=dtype)[0])

    def _dec_builtin(self, x: list[Any]) -> Any:
        value = BUILTINS[x[1]]
        return (
            self.objects.arrived(value) if type(value) is type and issubclass(value, BaseException) else value
        )


def _is(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ProtocolError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _dec_zone(x: list[Any]) -> Any:
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(_is(x[1], str))
    except (zoneinfo.ZoneInfoNotFoundError, OSError):
        raise ProtocolError("a time zone that is not known here") from None


# Made once, and not for each conversation: a fork would have to make every function in them.
_ENCODERS: dict[type, Callable[[Codec, Any, bool], Any]] = {
    list: Codec._enc_list,
    tuple: lambda c, v, k: ["t", c._items(v, k)],
    dict: Codec._enc_dict,
    set: Codec._enc_set,
    frozenset: lambda c, v, k: ["f", c._items(v, True)],
    bytes: lambda c, v, k: ["b", v.hex()],
    bytearray: Codec._enc_bytearray,
    complex: lambda c, v, k: ["c", v.real, v.imag],
    range: lambda c, v, k: ["R", c.enc(v.start), c.enc(v.stop), c.enc(v.step)],
    slice: lambda c, v, k: ["S", c.enc(v.start), c.enc(v.stop), c.enc(v.step)],
    type(Ellipsis): lambda c, v, k: ["E"],
    type(NotImplemented): lambda c, v, k: ["N"],
    Counter: Codec._enc_dict,
    OrderedDict: Codec._enc_dict,
    defaultdict: Codec._enc_dict,
    deque: Codec._enc_deque,
    type({}.keys()): lambda c, v, k: ["V", "k", c._items(v, True)],
    type({}.values()): lambda c, v, k: ["V", "v", c._items(v, False)],
    type({}.items()): lambda c, v, k: ["V", "i", c._items(v, False)],
    types.MappingProxyType: Codec._enc_mappingproxy,
    decimal.Decimal: lambda c, v, k: ["De", str(v)],
    fractions.Fraction: lambda c, v, k: ["Fr", c.enc(v.numerator), c.enc(v.denominator)],
    datetime.date: lambda c, v, k: ["Da", v.year, v.month, v.day],
    datetime.datetime: lambda c, v, k: [
        "Dt",
        v.year,
        v.month,
        v.day,
        v.hour,
        v.minute,
        v.second,
        v.microsecond,
        v.fold,
        c.enc(v.tzinfo),
    ],
    datetime.time: lambda c, v, k: [
        "Ti",
        v.hour,
        v.minute,
        v.second,
        v.microsecond,
        v.fold,
        c.enc(v.tzinfo),
    ],
    datetime.timedelta: lambda c, v, k: ["Td", v.days, v.seconds, v.microseconds],
    datetime.timezone: Codec._enc_timezone,
    uuid.UUID: lambda c, v, k: ["U", v.hex],
    pathlib.PurePosixPath: lambda c, v, k: ["P", "pure", str(v)],
    pathlib.PosixPath: lambda c, v, k: ["P", "posix", str(v)],
}
_DECODERS: dict[str, Callable[[Codec, Any], Any]] = {
    "l": Codec._dec_list,
    "t": lambda c, x: tuple(c._dec_items(x[1])),
    "d": Codec._dec_dict,
    "s": Codec._dec_set,
    "f": lambda c, x: frozenset(c._dec_items(x[1])),
    "b": lambda c, x: bytes.fromhex(x[1]),
    "B": Codec._dec_bytearray,
    "i": lambda c, x: int(x[1], 16),
    "c": lambda c, x: complex(_is(x[1], float), _is(x[2], float)),
    "R": lambda c, x: range(*(_is(c.dec(y), int) for y in x[1:4])),
    "S": lambda c, x: slice(*(c.dec(y) for y in x[1:4])),
    "E": lambda c, x: Ellipsis,
    "N": lambda c, x: NotImplemented,
    "r": lambda c, x: c.table.get(x[1]),
    "q": Codec._dec_deque,
    "V": Codec._dec_view,
    "mp": lambda c, x: types.MappingProxyType(dict(paired(c._dec_items(x[1]), c._dec_items(x[2])))),
    "De": lambda c, x: c.objects.arrived(decimal.Decimal(_is(x[1], str))),
    "Fr": lambda c, x: fractions.Fraction(_is(c.dec(x[1]), int), _is(c.dec(x[2]), int)),
    "Da": lambda c, x: datetime.date(*x[1:4]),
    "Dt": lambda c, x: datetime.datetime(*x[1:8]).replace(tzinfo=c.dec(x[9]), fold=x[8]),
    "Ti": lambda c, x: datetime.time(*x[1:5]).replace(tzinfo=c.dec(x[6]), fold=x[5]),
    "Td": lambda c, x: datetime.timedelta(*(_is(y, int) for y in x[1:4])),
    "Tz": lambda c, x: datetime.timezone(c.dec(x[1]), *x[2:3]),
    "Zi": lambda c, x: _dec_zone(x),
    "U": lambda c, x: uuid.UUID(hex=x[1]),
    "P": lambda c, x: {"pure": pathlib.PurePosixPath, "posix": pathlib.PosixPath}[x[1]](_is(x[2], str)),
    "T": Codec._dec_builtin,
    "na": Codec._dec_array,
    "ns": Codec._dec_scalar,
}
