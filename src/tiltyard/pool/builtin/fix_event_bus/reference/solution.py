"""An event bus: handlers are called in the order in which they were registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Handler = Callable[..., Any]


class EventBus:
    """Names of events and the handlers that want them. Each bus has its own handlers."""

    def __init__(self) -> None:
        self._handlers: dict[str, list[tuple[int, Handler, bool]]] = {}
        self._next = 1
        self.delivered = 0

    def on(self, event: str, handler: Handler, *, once: bool = False) -> int:
        """Register a handler and return its ticket, a number. The tickets of a bus are 1, 2, 3, …

        With ``once`` it is called for one event only, and is unregistered before that call.
        """
        ticket = self._next
        self._next += 1
        self._handlers.setdefault(event, []).append((ticket, handler, once))
        return ticket

    def once(self, event: str, handler: Handler) -> int:
        """The same as ``on(event, handler, once=True)``."""
        return self.on(event, handler, once=True)

    def off(self, ticket: int) -> bool:
        """Unregister the handler with that ticket; whether there was one."""
        for handlers in self._handlers.values():
            for entry in handlers:
                if entry[0] == ticket:
                    handlers.remove(entry)
                    return True
        return False

    def count(self, event: str) -> int:
        """How many handlers are registered for an event."""
        return len(self._handlers.get(event, ()))

    def emit(self, event: str, *args: Any) -> list[Any]:
        """Call the handlers of an event with ``args`` and return their results, in order.

        Called are the handlers that are registered when ``emit`` begins: one that is registered meanwhile waits
        for the next event, and one that is unregistered meanwhile, before its turn, is not called. If a handler
        raises, the exception goes to the caller of ``emit`` and the handlers after it are not called; they stay
        registered. ``delivered`` counts the calls of handlers that returned.
        """
        results = []
        for entry in list(self._handlers.get(event, [])):
            ticket, handler, once = entry
            if not any(ticket == now[0] for now in self._handlers[event]):
                continue
            if once:
                self.off(ticket)
            results.append(handler(*args))
            self.delivered += 1
        return results
