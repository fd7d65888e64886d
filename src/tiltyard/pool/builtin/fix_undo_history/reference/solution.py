"""An outline of rows with undo and redo."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Row = dict[str, Any]


class Document:
    """Rows of ``{"text": str, "tags": [str, ...]}``. Nothing outside shares rows or tags with the document.

    The last ``limit`` changes can be undone, and changes that were undone can be done again until there is a new
    change. What fails with an exception is no change.
    """

    def __init__(self, rows: list[Row] | None = None, limit: int = 100) -> None:
        self._rows: list[Row] = deepcopy(rows or [])
        self._limit = limit
        self._past: list[list[Row]] = []
        self._future: list[list[Row]] = []

    def rows(self) -> list[Row]:
        """A copy of all rows."""
        return deepcopy(self._rows)

    def texts(self) -> list[str]:
        """The texts of all rows."""
        return [row["text"] for row in self._rows]

    def _remember(self) -> None:
        """To be called before a change."""
        self._past.append(deepcopy(self._rows))
        self._future.clear()
        if len(self._past) > self._limit:
            del self._past[0]

    def add(self, text: str, tags: list[str] | None = None) -> int:
        """Add a row at the end; return its index."""
        self._remember()
        self._rows.append({"text": text, "tags": list(tags or [])})
        return len(self._rows) - 1

    def _row(self, index: int) -> Row:
        if not 0 <= index < len(self._rows):
            raise IndexError(index)
        return self._rows[index]

    def edit(self, index: int, text: str) -> None:
        """Replace the text of a row. IndexError if there is none; a negative index is none."""
        row = self._row(index)
        self._remember()
        row["text"] = text

    def tag(self, index: int, *tags: str) -> None:
        """Add tags to a row; one that it has already is not added again. IndexError as for ``edit``."""
        known = self._row(index)["tags"]
        self._remember()
        for tag in tags:
            if tag not in known:
                known.append(tag)

    def remove(self, index: int) -> str:
        """Remove a row and return its text. IndexError as for ``edit``."""
        self._row(index)
        self._remember()
        return str(self._rows.pop(index)["text"])

    def undo(self) -> bool:
        """Take back the last change; whether there was one."""
        if not self._past:
            return False
        self._future.append(self._rows)
        self._rows = self._past.pop()
        return True

    def redo(self) -> bool:
        """Do the change again that was undone last; whether there was one."""
        if not self._future:
            return False
        self._past.append(self._rows)
        self._rows = self._future.pop()
        return True
