"""The conversation between the examiner and the solution: strictly nested questions and answers over one link.

Only the examiner begins; while it waits for an answer, the solution may ask about objects that it was given (a callback,
a file), and so on, nested. A message that nobody asked for, an answer to another question, a malformed item: the test
is failed (``Escaped``), whatever its code catches. The same class serves both sides; ``strict`` is True in the
examiner and says that the other side is hostile.

Message: ``["q", n, changes, released, op, target, …]`` or ``["a" | "e", n, changes, forgotten, output, value]``.
"""

from __future__ import annotations

import copy
import io
import operator
import sys
import threading
from collections.abc import Callable, Container
from typing import Any

from . import guard, proxy
from .codec import BUILTINS
from .exchange import Exchange
from .liberties import (
    CAUGHT,
    CHANGED,
    REPLACED,
    Liberties,
    liberty,
)
from .link import Closed, Link, ProtocolError, TooLarge, deep
from .older import paired
from .shared import Table
from .signature import parameters

MAX_NESTING = 40
NEXT = "n"
"""Alone in a message: what comes is another test's. It has no answer."""


class Escaped(BaseException):
    """The solution did what fails a test whatever the test catches. ``args[0]`` is the reason, ``args[1]`` a flag or ""."""


_OPERATORS: dict[str, Callable[..., Any]] = {
    "__len__": len, "__iter__": iter, "__next__": next, "__reversed__": reversed, "__bool__": bool, "__int__": int,
    "__float__": float, "__complex__": complex, "__index__": operator.index, "__round__": round, "__str__": str,
    "__repr__": repr, "__hash__": hash, "__format__": format, "__bytes__": bytes, "__contains__": operator.contains,
    "__getitem__": operator.getitem, "__setitem__": operator.setitem, "__delitem__": operator.delitem,
    "__copy__": copy.copy, "__deepcopy__": copy.deepcopy, "__abs__": abs, "__neg__": operator.neg,
    "__pos__": operator.pos, "__invert__": operator.invert,
}  # fmt: skip


class Peer:
    """One side of the conversation of one test."""

    def __init__(
        self,
        link: Link,
        *,
        strict: bool,
        resolve: Callable[[str, str], Any] | None = None,
        home: str | Container[str] = "",
        liberties: Liberties | None = None,
    ) -> None:
        self.link = link
        self.strict = strict
        self.home: Container[str] = (home,) if isinstance(home, str) else home
        self.flags: set[str] = set()
        self.liberties = liberties or Liberties()
        self.escaped: tuple[str, str] | None = None
        self.table = Table(0 if strict else 1)
        self.exchange = Exchange(self, self.table, resolve)
        self.codec = self.exchange.codec
        self.output: Callable[[], Any] = lambda: 0
        self.renew: Callable[[], None] = lambda: None
        self._resolve = resolve
        self._lock = threading.RLock()
        self._asked = 0
        self._answered = 0
        self._depth = 0
        self._loop: Any = None

    # ------------------------------------------------------------------ asking

    def ask(self, op: str, *parts: Any) -> Any:
        """Ask the other side and wait; serves its questions meanwhile. Raises what it raised."""
        with self._lock:
            if self.escaped:
                raise Escaped(*self.escaped)
            if (
                self.strict
                and (name := liberty(op, parts, proxy.is_theirs))
                and not self.liberties.take(name)
            ):
                if op == "x":
                    return NotImplemented
                raise AttributeError(parts[1])
            try:
                return self._ask(op, parts)
            except ProtocolError as error:
                flag = "probed_examiner" if isinstance(error, guard.Refused) else "protocol_violation"
                self.escape(f"the solution's side broke the protocol: {error}", flag)
            except Closed:
                self.escape("the solution's process ended", "")
            except (StopIteration, StopAsyncIteration) as stop:
                if not self.strict or _may_stop(op, parts):
                    raise
                # map(), filter() and zip() of a test would end early, and all() of nothing is true
                raise RuntimeError(f"the solution raised {type(stop).__name__}") from stop
        raise AssertionError("unreachable")

    def escape(self, reason: str, flag: str) -> None:
        self.escaped = (reason, flag)
        if flag:
            self.flags.add(flag)
        raise Escaped(reason, flag)

    def _ask(self, op: str, parts: tuple[Any, ...]) -> Any:
        if self.strict and self._depth == 0 and self.link.pending():
            raise ProtocolError("a message that nobody asked for")
        self._asked += 1
        number = self._asked
        released = self.exchange.dropped()
        changes = self._changes()
        mark = self.exchange.mark()
        try:
            self.link.send(["q", number, changes, released, op, *self._encode_question(op, parts)])
        except (TooLarge, RecursionError, guard.Refused) as error:
            self.exchange.roll_back(mark)
            self._asked -= 1
            raise TypeError(f"this can't cross between the cells: {error or type(error).__name__}") from None
        while True:
            message = self.link.recv()
            if len(message) != 6 and (not message or message[0] != "q"):
                raise ProtocolError("a message of a wrong length")
            if message[0] == "q":
                self._serve(message)
            elif message[0] in ("a", "e") and message[1] == number:
                return self._take_answer(message)
            else:
                raise ProtocolError("an answer to another question")

    @deep
    def _encode_question(self, op: str, parts: tuple[Any, ...]) -> list[Any]:
        enc = self.codec.enc
        parts = tuple(self.liberties.by_value(parts))
        if op in ("c", "M"):
            *head, args, kwargs = parts
            return [*head, [enc(a) for a in args], list(kwargs), [enc(v) for v in kwargs.values()]]
        if op in ("names", "in"):
            return list(parts)
        target, *rest = parts
        plain = 1 if op in ("g", "s", "D", "x") else 0
        return [target, *rest[:plain], *(enc(p) for p in rest[plain:])]

    @deep
    def _take_answer(self, message: list[Any]) -> Any:
        kind, _, changes, forgotten, output, item = message
        self._fill(changes)
        self._show(output)
        if kind == "a":
            value = self.codec.dec(item)
        else:
            value = self._dec_raised(item)
        self.codec.settle()
        if type(forgotten) is not list:
            raise ProtocolError("a malformed answer")
        try:
            self.table.forget(forgotten)
        except KeyError:
            raise ProtocolError("a container that is not known") from None
        if kind == "e":
            raise value
        return value

    def _dec_raised(self, item: Any) -> BaseException:
        if type(item) is list and len(item) == 2 and item[0] == "!":
            name = item[1] if type(item[1]) is str and item[1].isidentifier() else "an exit"
            self.escape(
                f"raised {name[:60]}" if name in BUILTINS else "raised what would steer a test runner",
                "steering_exception",
            )
        value = self.codec.dec(item)
        if not isinstance(value, BaseException):
            raise ProtocolError("something raised that is no exception")
        if self.strict and (not isinstance(value, Exception) or type(value).__name__ in guard.STEERING_NAMES):
            self.escape("raised what would steer a test runner", "steering_exception")
        return value

    def _show(self, output: Any) -> None:
        if output == 0:
            return
        if type(output) is not list or len(output) != 2 or not all(type(t) is str for t in output):
            raise ProtocolError("output that is no text")
        for stream, text in paired((sys.stdout, sys.stderr), output):
            if text and stream is not None:
                stream.write(text)

    # ------------------------------------------------------------------ containers on both sides

    def _changes(self) -> list[Any]:
        return [[number, self.codec.contents(value)] for number, value in self.table.changes()]

    def _fill(self, changes: Any) -> None:
        if type(changes) is not list:
            raise ProtocolError("malformed write-backs")
        for change in changes:
            if type(change) is not list or len(change) != 2 or type(change[1]) is not list:
                raise ProtocolError("a malformed write-back")
            self.codec.fill(*change)
            if self.strict and self.table.is_mine(change[0]):
                self.flags.add(CHANGED)
                self.liberties.take(CHANGED)

    # ------------------------------------------------------------------ answering

    def serve_forever(self) -> None:
        """Answer until the other side is gone (the solution's side)."""
        while True:
            message = self.link.recv()
            if message == [NEXT]:
                self.renew()
            else:
                self._serve(message)

    def _serve(self, message: list[Any]) -> None:
        if (
            len(message) < 5
            or message[0] != "q"
            or message[1] != self._answered + 1
            or type(message[4]) is not str
        ):
            raise ProtocolError("a question out of order")
        if self._depth >= MAX_NESTING:
            raise ProtocolError("questions nested too deep")
        self._answered += 1
        number = self._answered
        before = set(self.table.numbers()) if self.strict else None
        self._depth += 1
        try:
            roots, failed = self._answer(message)
            self._reply(number, roots, failed, before)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise ProtocolError(f"a malformed question ({type(error).__name__})") from None
        finally:
            self._depth -= 1

    def _answer(self, message: list[Any]) -> tuple[list[Any], bool]:
        """Do what is asked. Returns a one-item list with the value or the exception, and whether it is the latter."""
        act = self._take_question(message)
        try:
            return [act()], False
        except Escaped:
            raise
        except (ProtocolError, Closed):
            raise
        except BaseException as error:
            if self.strict and isinstance(error, AssertionError) and not self.liberties.take(CAUGHT):
                self.escape("assertion failed", "")
            return [error], True

    @deep
    def _take_question(self, message: list[Any]) -> Callable[[], Any]:
        self._fill(message[2])
        self.exchange.release(message[3])
        act = self._decode_question(message[4], message[5:])
        self.codec.settle()
        return act

    @deep
    def _reply(self, number: int, roots: list[Any], failed: bool, before: set[int] | None) -> None:
        changes = self._changes()
        mark = self.exchange.mark()
        try:
            item = (
                self.exchange.raised(roots[0])
                if failed
                else self.codec.enc(self.liberties.by_value(roots[0]))
            )
            forgotten = self._forget(roots, before)
            self.link.send(["e" if failed else "a", number, changes, forgotten, self.output(), item])
            return
        except (guard.Refused, Closed):
            raise
        except Exception as error:
            # too large, too deep, or a hash that raises: an answer all the same, with nothing half-sent remembered
            self.exchange.roll_back(mark)
            kind = "OverflowError" if isinstance(error, (TooLarge, RecursionError)) else "TypeError"
            item = ["X", ["T", kind], [f"the answer can't cross: {type(error).__name__}"], None, 0, 0]
        self.link.send(["e", number, changes, [], self.output(), item])

    def _forget(self, roots: list[Any], before: set[int] | None) -> list[int]:
        if before is not None:
            numbers = self.table.beyond_a_few(before)
        else:
            if roots and isinstance(roots[0], BaseException):
                roots[0].__traceback__ = None
            numbers = self.table.unheld(roots)
        self.table.forget(numbers)
        return numbers

    def _decode_question(self, op: str, parts: list[Any]) -> Callable[[], Any]:
        if op == "names" and self._resolve is not None:
            return lambda: {name: value for name in parts[0] for value in self._names(name)}
        if op == "in":
            return _read_input
        try:
            if self.strict:
                guard.may_address(parts[0])
            target = self.codec.dec(parts[0])
            if op in ("c", "M"):
                name, args, keys, values = (None, *parts[1:4]) if op == "c" else parts[1:5]
                if not all(type(k) is str for k in keys):
                    raise ProtocolError("keywords that are no text")
                positional = [self.codec.dec(a) for a in args]
                keywords = dict(paired(keys, [self.codec.dec(v) for v in values]))
                return self._call(target, name, positional, keywords)
            rest = (
                [parts[1], *(self.codec.dec(p) for p in parts[2:])]
                if op in ("g", "s", "D", "x")
                else [self.codec.dec(p) for p in parts[1:]]
            )
        except (IndexError, ValueError, TypeError) as error:
            raise ProtocolError(f"a malformed question ({type(error).__name__})") from None
        return self._operation(op, target, rest)

    def _names(self, name: Any) -> list[Any]:
        try:
            return [self._resolve("", name)] if self._resolve else []
        except AttributeError:
            return []

    def _call(
        self, target: Any, name: str | None, positional: list[Any], keywords: dict[str, Any]
    ) -> Callable[[], Any]:
        def act() -> Any:
            nonlocal positional, keywords
            args, positional = positional, []
            kwargs, keywords = keywords, {}
            called = target if name is None else getattr(target, name)
            if self.strict:
                guard.may_call(called)
            return called(*args, **kwargs)

        if self.strict and name is not None:
            guard.may_get(target, name)
        return act

    def _operation(self, op: str, target: Any, rest: list[Any]) -> Callable[[], Any]:
        if op == "g":
            if self.strict:
                guard.may_get(target, rest[0])
            if rest[0] == "__signature__" and isinstance(target, guard.FUNCTIONS):
                return lambda: parameters(target, values=not self.strict)
            return lambda: getattr(target, rest[0])
        if op in ("s", "D"):
            if self.strict:
                guard.may_set(target, rest[0], self.home)
                if callable(getattr(type(target), rest[0], None)) and not self.liberties.take(REPLACED):
                    raise guard.Refused("putting something in the place of a method")
            return lambda: setattr(target, rest[0], rest[1]) if op == "s" else delattr(target, rest[0])
        if op == "x":
            if self.strict:
                guard.may_special(target, rest[0])
            return lambda: self._special(target, rest[0], rest[1:])
        if op == "w":
            return lambda: self._await(target if not rest else getattr(target, rest[0])(*rest[1:]))
        if op == "dir" and not self.strict:
            return lambda: dir(target)
        raise ProtocolError("a question of an unknown kind")

    def _special(self, target: Any, name: str, args: list[Any]) -> Any:
        if name in _OPERATORS:
            return _OPERATORS[name](target, *args)
        # as Python does: found on the class, bound to the object (a MagicMock has descriptors that tell these apart)
        for cls in type(target).__mro__:
            if name in vars(cls):
                found = vars(cls)[name]
                bind = getattr(type(found), "__get__", None)
                return (bind(found, target, type(target)) if bind else found)(*args)
        raise AttributeError(name)

    def _await(self, awaitable: Any) -> Any:
        import asyncio

        running = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            if running is not None or (self._loop is not None and self._loop.is_running()):
                loop = asyncio.new_event_loop()
                try:
                    return loop.run_until_complete(_wrap(awaitable))
                finally:
                    loop.close()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                asyncio.set_event_loop(self._loop)
            return self._loop.run_until_complete(_wrap(awaitable))
        finally:
            asyncio._set_running_loop(running)

    def constant(self, name: str) -> float:
        """What stands for a number in JSON (``link.Link``)."""
        return float(self.exchange.arrived(float(name)))


def _may_stop(op: str, parts: tuple[Any, ...]) -> bool:
    """Whether this question is one to an iterator."""
    return (
        (op == "x" and parts[1] == "__next__") or (op == "M" and parts[1] in ("send", "throw")) or op == "w"
    )


async def _wrap(awaitable: Any) -> Any:
    return await awaitable


def _read_input() -> str:
    stream = sys.stdin
    if isinstance(stream, io.StringIO):
        return stream.readline()
    return ""
