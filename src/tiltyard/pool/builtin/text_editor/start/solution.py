class TextEditor:
    """A text with a cursor, and undo and redo."""

    def __init__(self, text=""):
        """Start with a text and the cursor at its end."""
        raise NotImplementedError

    def insert(self, s):
        """Put a string in at the cursor."""
        raise NotImplementedError

    def delete(self, n=1):
        """Remove up to ``n`` characters before the cursor and return them."""
        raise NotImplementedError

    def move(self, n):
        """Move the cursor by ``n`` characters and return its position."""
        raise NotImplementedError

    def undo(self):
        """Take the last edit back; return whether there was one."""
        raise NotImplementedError

    def redo(self):
        """Make the edit undone last again; return whether there was one."""
        raise NotImplementedError
