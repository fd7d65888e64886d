"""The codec: what goes in comes out, exactly; anything else that comes in is a ProtocolError and nothing worse."""

from __future__ import annotations

import collections
import datetime
import decimal
import json
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard.referee.inside.codec import Codec
from tiltyard.referee.inside.link import ProtocolError
from tiltyard.referee.inside.shared import Table


class NoObjects:
    def export(self, value: Any, as_key: bool) -> list[Any]:
        raise TypeError(type(value))

    def adopt(self, item: list[Any]) -> Any:
        raise ProtocolError("unknown tag")

    def arrived(self, value: Any) -> Any:
        return value


def pair() -> tuple[Codec, Codec]:
    return Codec(Table(1), NoObjects()), Codec(Table(0), NoObjects())


def across(value: Any) -> Any:
    out, back = pair()
    result = back.dec(json.loads(json.dumps(out.enc(value))))
    back.settle()
    return result


def same(a: Any, b: Any) -> bool:
    """Equal with equal types all the way down, NaN equal to NaN and -0.0 different from 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (float, complex, decimal.Decimal)):
        return repr(a) == repr(b)
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a.items(), b.items(), strict=True))
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


scalars = (
    st.none() | st.booleans() | st.integers() | st.integers(min_value=10**3000, max_value=10**3001) | st.floats()
    | st.complex_numbers(allow_nan=False) | st.text(st.characters(codec=None)) | st.binary() | st.decimals()
    | st.fractions() | st.dates() | st.times() | st.timedeltas() | st.uuids()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC) | st.timezones())
)  # fmt: skip
hashable = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.dates(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(hashable, inner) | st.sets(hashable)
        | st.lists(inner).map(collections.deque) | st.dictionaries(hashable, inner).map(collections.OrderedDict)
        | st.dictionaries(hashable, st.integers()).map(collections.Counter)
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(values)
def test_what_goes_in_comes_out(value: Any) -> None:
    assert same(value, across(value))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["l", "t", "d", "s", "f", "b", "B", "i", "c", "R", "S", "E", "N", "r", "q", "V", "mp", "De", "Fr", "Da", "Dt", "Ti", "Td", "Tz", "Zi", "U", "P", "T", "na", "ns", "o", "m", "k", "K", "nt", "e", "X"]),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=800, deadline=None)
@given(json_values)
def test_anything_that_comes_in_is_a_value_or_a_protocol_error(item: Any) -> None:
    _, back = pair()
    try:
        back.dec(item)
    except ProtocolError:
        return
    back.settle()
    back.table.changes()


@settings(max_examples=300, deadline=None)
@given(values, st.data())
def test_a_damaged_item_is_a_value_or_a_protocol_error(value: Any, data: Any) -> None:
    out, back = pair()
    text = json.dumps(out.enc(value))
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.sampled_from(string.printable)) + text[at + 1 :]
    try:
        item = json.loads(damaged)
    except ValueError:
        return
    try:
        back.dec(item)
    except ProtocolError:
        pass


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    "value", [Liar(3), type("L", (list,), {})([1]), type("S", (str,), {})("a"), object()]
)
def test_a_subclass_never_crosses_as_its_base(value: Any) -> None:
    with pytest.raises(TypeError):
        across(value)
    with pytest.raises(TypeError):
        across([1, value])


def test_depth_is_bounded_both_ways() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(RecursionError):
        pair()[0].enc(deep)
    item: Any = ["l", 3, []]
    for n in range(400):
        item = ["l", 5 + 2 * n, [item]]
    with pytest.raises(ProtocolError):
        pair()[1].dec(item)


def test_numbers_of_containers_can_be_given_once_and_by_the_right_side_only() -> None:
    _, back = pair()
    back.dec(["l", 3, []])
    for number in (3, 4, 1, -1, "3", 3.0, None, True):
        with pytest.raises(ProtocolError):
            back.dec(["l", number, []])


def test_numpy_arrays_and_scalars_cross_as_what_they_are() -> None:
    numpy = pytest.importorskip("numpy")
    for value in (
        numpy.arange(6).reshape(2, 3),
        numpy.array([1.5, float("nan")], "f4"),
        numpy.array(["a", "bc"]),
        numpy.zeros((0, 3)),
    ):
        result = across(value)
        assert type(result) is numpy.ndarray
        assert result.dtype == value.dtype
        assert result.shape == value.shape
        assert result.tobytes() == value.tobytes()
    for scalar in (numpy.float64(1.5), numpy.int8(-3), numpy.bool_(True)):
        assert type(across(scalar)) is type(scalar)
        assert across(scalar) == scalar
    with pytest.raises(TypeError):
        across(numpy.array([object()]))


def test_an_array_written_in_place_is_written_back() -> None:
    numpy = pytest.importorskip("numpy")
    out, back = pair()
    mine = numpy.zeros(3)
    theirs = back.dec(out.enc(mine))
    back.settle()
    theirs[1] = 7
    [(number, value)] = back.table.changes()
    out.fill(number, back.contents(value))
    assert mine.tolist() == [0, 7, 0]
