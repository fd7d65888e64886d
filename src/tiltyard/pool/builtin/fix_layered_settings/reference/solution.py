"""Settings in layers, with a memory of what was found."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Settings:
    """Layers of key and value; the layer that was pushed last is asked first.

    ``lookups`` counts how many times the layers were searched for a key. A key that was found is not searched for
    again until a layer changes (set, unset, push, pop).
    """

    def __init__(self, bottom: dict[str, Any] | None = None) -> None:
        self._layers: list[dict[str, Any]] = [dict(bottom or {})]
        self._found: dict[str, Any] = {}
        self.lookups = 0

    def _search(self, key: str) -> Any:
        self.lookups += 1
        for layer in reversed(self._layers):
            if key in layer:
                return layer[key]
        return _MISSING

    def get(self, key: str, default: Any = None) -> Any:
        """The value of the topmost layer that has the key, else ``default``. A value of None is a value."""
        if key not in self._found:
            value = self._search(key)
            if value is _MISSING:
                return default
            self._found[key] = value
        return self._found[key]

    def has(self, key: str) -> bool:
        """Whether any layer has the key."""
        return self.get(key, _MISSING) is not _MISSING

    def set(self, key: str, value: Any) -> None:
        """Set a key in the topmost layer."""
        self._layers[-1][key] = value
        self._found.pop(key, None)

    def unset(self, key: str) -> None:
        """Remove a key from the topmost layer only. KeyError if that layer doesn't have it."""
        del self._layers[-1][key]
        self._found.pop(key, None)

    def push(self, layer: dict[str, Any]) -> None:
        """Put a layer on top. It is copied."""
        self._layers.append(dict(layer))
        for key in layer:
            self._found.pop(key, None)

    def pop(self) -> dict[str, Any]:
        """Take the topmost layer away and return it. IndexError if only the bottom layer is left."""
        if len(self._layers) == 1:
            raise IndexError("the bottom layer can't be popped")
        layer = self._layers.pop()
        for key in layer:
            self._found.pop(key, None)
        return layer

    def changed(self) -> list[str]:
        """The keys, sorted, whose value differs from that in the bottom layer or that the bottom layer lacks."""
        bottom = self._layers[0]
        keys = {key for layer in self._layers for key in layer}
        return sorted(key for key in keys if key not in bottom or self.get(key) != bottom[key])
