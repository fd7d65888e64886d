"""Finding the page for a path, and the path of a page."""

from __future__ import annotations

from typing import Any

from . import pattern, url

STRENGTH = {"static": 0, "int": 1, "str": 2, "rest": 3}


class Router:
    """Patterns and the names of their pages."""

    def __init__(self) -> None:
        self._routes: list[tuple[tuple[pattern.Part, ...], str]] = []

    def add(self, text: str, name: str) -> None:
        """Register a pattern for a page; several patterns may have the same page."""
        self._routes.append((pattern.parse(text), name))

    def match(self, path: str) -> tuple[str, dict[str, Any]] | None:
        """The page for a path and the values of its names, or None if no pattern fits.

        If several fit, the first part in which they differ in kind decides, from the left: static is better than int, int
        than str, str than rest. If they don't differ at all, the one that was registered first is taken.
        """
        wanted = url.segments(path)
        for parts, name in self._routes:
            values = pattern.fit(parts, wanted)
            if values is not None:
                return name, values
        return None

    def url_for(self, page: str, **values: Any) -> str:
        """A path that leads to a page: that of its first registered pattern whose names are exactly those given.

        KeyError if there is none.
        """
        for parts, name in self._routes:
            names = {part.text for part in parts if part.kind != "static"}
            if name == page and names == set(values):
                pieces: list[str] = []
                for part in parts:
                    if part.kind == "rest":
                        pieces.extend(values[part.text])
                    else:
                        pieces.append(part.text if part.kind == "static" else str(values[part.text]))
                return url.path(pieces)
        raise KeyError(page)
