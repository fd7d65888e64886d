"""Mutable containers that both sides hold: what one side changes, the other sees, and ``is`` keeps its meaning.

Each side has a :class:`Table` from number to container. A container that crosses gets a number (even for those born
in the examiner, odd for the solution's), crosses once with its contents and from then on as that number. Before a
message leaves, ``changes()`` names the containers whose elements are not the same objects as when they last crossed;
the other side puts the new contents into its own object in place. The solution's side, which alone can keep an
argument or hand out its own insides, says after each call which containers it no longer holds (``unheld``), and both
sides forget those, so that a loop over a million calls costs no more at its end than at its start.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from operator import is_
from typing import Any

KEYED = (dict, OrderedDict, defaultdict, Counter)
TRACKED = frozenset({list, set, bytearray, deque, *KEYED})
MAX_KEPT = 1000
MAX_KEPT_ELEMENTS = 100_000
MAX_KEPT_IN_A_CALL = 64
MAX_ELEMENTS_IN_A_CALL = 4096


def elements(value: Any) -> list[Any]:
    """The elements of a container in order, keys and values one after the other."""
    if type(value) in KEYED:
        return [*value.keys(), *value.values()]
    return list(value)


class Shared:
    """One container, and its elements when it last crossed (held, so that their identity stays meaningful)."""

    __slots__ = ("number", "seen", "value")

    def __init__(self, number: int, value: Any) -> None:
        self.number = number
        self.value = value
        self.seen: list[Any] | bytes = self._now()

    def _now(self) -> list[Any] | bytes:
        """The elements, or the bytes of a bytearray or numpy array."""
        if type(self.value) in TRACKED and type(self.value) is not bytearray:
            return elements(self.value)
        return bytes(self.value) if type(self.value) is bytearray else self.value.tobytes()

    def refresh(self) -> bool:
        """Whether it has changed since it last crossed; takes note of what it holds now."""
        now, before = self._now(), self.seen
        self.seen = now
        if type(now) is bytes:
            return now != before
        return len(now) != len(before) or not all(map(is_, now, before))


class Table:
    """The containers that both sides hold, by number. ``parity`` is 0 in the examiner and 1 in the solution."""

    def __init__(self, parity: int) -> None:
        self._by_number: dict[int, Shared] = {}
        self._by_id: dict[int, int] = {}
        self._next = 2 + parity
        self._parity = parity

    def number(self, value: Any) -> int | None:
        """The number of a container that the other side knows already."""
        return self._by_id.get(id(value))

    def add(self, value: Any) -> int:
        """Give a container of this side a number."""
        number = self._next
        self._next += 2
        self._by_id[id(value)] = number
        self._by_number[number] = Shared(number, value)
        return number

    def learn(self, number: Any, value: Any) -> None:
        """Take note of a container that came with its number from the other side, still empty."""
        if type(number) is not int or number < 2 or number % 2 == self._parity or number in self._by_number:
            raise ValueError("a container's number is not one that the other side may give")
        self._by_id[id(value)] = number
        self._by_number[number] = Shared(number, value)

    def get(self, number: Any) -> Any:
        """The container of this number. KeyError: there is none."""
        if type(number) is not int:
            raise KeyError(number)
        return self._by_number[number].value

    def is_mine(self, number: int) -> bool:
        """Whether the container of this number was born on this side."""
        return number % 2 == self._parity

    def settle(self, numbers: Iterable[int]) -> None:
        """These have just been filled from the other side: what they hold now is what both sides know."""
        for number in numbers:
            if (shared := self._by_number.get(number)) is not None:
                shared.refresh()

    def changes(self) -> list[tuple[int, Any]]:
        """Containers of which the other side has old contents."""
        return [(s.number, s.value) for s in list(self._by_number.values()) if s.refresh()]

    def forget(self, numbers: Iterable[Any]) -> None:
        """Drop containers that the other side no longer holds. KeyError: there is no such one."""
        for number in numbers:
            if type(number) is not int:
                raise KeyError(number)
            shared = self._by_number.pop(number)
            del self._by_id[id(shared.value)]

    def beyond_a_few(self, before: set[int]) -> list[int]:
        """Numbers that are not in ``before``, except the first few small ones.

        What a callback or an attribute of a test handed out in the middle of a call: the solution may change it before
        the call is over, so a few are kept; a loop with a million of them must not become slower and slower."""
        size, out = 0, []
        for kept, shared in enumerate(self._by_number.values(), 1):
            size += len(shared.seen)
            if shared.number not in before and (kept > MAX_KEPT_IN_A_CALL or size > MAX_ELEMENTS_IN_A_CALL):
                out.append(shared.number)
        return out

    def numbers(self) -> list[int]:
        return list(self._by_number)

    def unheld(self, roots: list[Any]) -> list[int]:
        """Numbers of the containers that nothing but this table, the ``roots`` and each other hold.

        Counts references: a node is held if it has more of them than the edges known here explain. ``roots`` is a
        list made by the caller for this purpose; it holds the only references of the caller to its items.
        """
        nodes: list[Any] = []
        index: dict[int, int] = {}
        children: list[list[int]] = []
        known: list[int] = []

        def node(value: Any) -> int:
            place = index.get(id(value))
            if place is None:
                place = index[id(value)] = len(nodes)
                nodes.append(value)
                children.append([])
                known.append(0)
                todo.append(place)
            return place

        todo: list[int] = []
        for root in roots:
            if type(root) in _GRAPH:
                known[node(root)] += 1
        for shared in self._by_number.values():
            known[node(shared.value)] += 1
        root = shared = element = None  # type: ignore[assignment]  # a loop variable is a reference too
        while todo:
            place = todo.pop()
            for element in elements(nodes[place]) if type(nodes[place]) in _GRAPH else ():
                if type(element) in _GRAPH:
                    child = node(element)
                    known[child] += 1
                    children[place].append(child)
        element = None
        for shared in self._by_number.values():
            if type(shared.seen) is list:
                for element in shared.seen:
                    if (place_or_none := index.get(id(element))) is not None:
                        known[place_or_none] += 1
                element = None
        shared = None  # type: ignore[assignment]
        held = [i for i in range(len(nodes)) if _references(nodes, i) > known[i]]
        reach = set(held)
        while held:
            for child in children[held.pop()]:
                if child not in reach:
                    reach.add(child)
                    held.append(child)
        return self._over_the_cap(index, reach)

    def _over_the_cap(self, index: dict[int, int], reach: set[int]) -> list[int]:
        dropped, kept, size = [], 0, 0
        for shared in self._by_number.values():
            if index[id(shared.value)] in reach:
                kept += 1
                size += len(shared.seen)
                if kept <= MAX_KEPT and size <= MAX_KEPT_ELEMENTS:
                    continue
            dropped.append(shared.number)
        return dropped


_GRAPH = TRACKED | {tuple, frozenset}


def _references(nodes: list[Any], i: int) -> int:
    return sys.getrefcount(nodes[i]) - _BASE


def _measure_base() -> int:
    """What ``sys.getrefcount(nodes[i])`` counts of an object that only ``nodes`` holds: it differs by version."""
    nodes = [[object()]]
    return sys.getrefcount(nodes[0])


_BASE = _measure_base()
