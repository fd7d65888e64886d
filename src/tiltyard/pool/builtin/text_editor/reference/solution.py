class TextEditor:
    """A text with a cursor, and undo and redo."""

    def __init__(self, text=""):
        """Start with a text and the cursor at its end."""
        self.text = text
        self.cursor = len(text)
        self._undone = []  # edits as pairs of (text, cursor) before and after
        self._done = []

    def insert(self, s):
        """Put a string in at the cursor."""
        left, right = self.text[: self.cursor], self.text[self.cursor :]
        self._edit(left + s + right, self.cursor + len(s))

    def delete(self, n=1):
        """Remove up to ``n`` characters before the cursor and return them."""
        if n < 0:
            raise ValueError("a negative number of characters can't be deleted")
        start = max(0, self.cursor - n)
        removed = self.text[start : self.cursor]
        self._edit(self.text[:start] + self.text[self.cursor :], start)
        return removed

    def move(self, n):
        """Move the cursor by ``n`` characters and return its position."""
        self.cursor = min(max(0, self.cursor + n), len(self.text))
        return self.cursor

    def undo(self):
        """Take the last edit back; return whether there was one."""
        if not self._done:
            return False
        before, after = self._done.pop()
        self._undone.append((before, after))
        self.text, self.cursor = before
        return True

    def redo(self):
        """Make the edit undone last again; return whether there was one."""
        if not self._undone:
            return False
        before, after = self._undone.pop()
        self._done.append((before, after))
        self.text, self.cursor = after
        return True

    def _edit(self, text, cursor):
        if text == self.text:
            return
        self._done.append(((self.text, self.cursor), (text, cursor)))
        self._undone.clear()
        self.text, self.cursor = text, cursor
