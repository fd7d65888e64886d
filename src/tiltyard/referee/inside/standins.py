"""Stand-ins that must be of one of Python's own kinds here: modules, generators, coroutines, async generators.

``isinstance`` and ``inspect`` know these kinds by their very class, so no proxy will do: they are real ones, and each
step of theirs is a question to the other side.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Protocol


class Asker(Protocol):
    """What is needed of the conversation (``peer.Peer``)."""

    escaped: tuple[str, str] | None

    def ask(self, op: str, *parts: Any) -> Any: ...


class RemoteModule(types.ModuleType):
    """A module of the solution, as the tests import it."""

    def __init__(self, name: str, peer: Asker) -> None:
        super().__init__(name)
        self.__dict__["_tiltyard_peer"] = peer
        self.__dict__["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("__file__", "__all__", "__wrapped__"):
            raise AttributeError(name)
        try:
            return self.__dict__["_tiltyard_peer"].ask("g", ["mod", self.__name__], name)
        except AttributeError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or isinstance(value, RemoteModule):
            super().__setattr__(name, value)
        else:
            self.__dict__["_tiltyard_peer"].ask("s", ["mod", self.__name__], name, value)

    def __delattr__(self, name: str) -> None:
        self.__dict__["_tiltyard_peer"].ask("D", ["mod", self.__name__], name)


def _generator(peer: Asker, number: int) -> Any:
    """A generator here that is one over there, step by step."""

    def run() -> Any:
        sent: Any = None
        thrown: BaseException | None = None
        target = ["m", number]
        while True:
            try:
                if thrown is not None:
                    value = peer.ask("M", target, "throw", (thrown,), {})
                elif sent is None:
                    value = peer.ask("x", target, "__next__")
                else:
                    value = peer.ask("M", target, "send", (sent,), {})
            except StopIteration as stop:
                return stop.value
            sent, thrown = None, None
            try:
                sent = yield value
            except GeneratorExit:
                if peer.escaped is None:
                    peer.ask("M", target, "close", (), {})
                raise
            except Exception as error:
                thrown = error

    return run()


def _coroutine(peer: Asker, number: int) -> Any:
    async def run() -> Any:
        return peer.ask("w", ["m", number])

    return run()


def _asyncgen(peer: Asker, number: int) -> Any:
    async def run() -> Any:
        while True:
            try:
                value = peer.ask("w", ["m", number], "__anext__")
            except StopAsyncIteration:
                return
            yield value

    return run()


KINDS: dict[str, type] = {
    "generator": types.GeneratorType, "coroutine": types.CoroutineType, "asyncgen": types.AsyncGeneratorType,
}  # fmt: skip
MAKERS: dict[type, Callable[[Asker, int], Any]] = {
    types.GeneratorType: _generator, types.CoroutineType: _coroutine, types.AsyncGeneratorType: _asyncgen,
}  # fmt: skip
