class Spreadsheet:
    """Cells with numbers and formulas that depend on each other."""

    def __init__(self):
        """Make an empty sheet."""
        raise NotImplementedError

    def set(self, cell, content):
        """Put an int or a formula into a cell."""
        raise NotImplementedError

    def get(self, cell):
        """Return the current value of a cell."""
        raise NotImplementedError

    def content(self, cell):
        """Return what was set in a cell, or None."""
        raise NotImplementedError

    def clear(self, cell):
        """Make a cell as if it had never been set."""
        raise NotImplementedError

    def dependents(self, cell):
        """Return the cells that depend on this one, directly or through others, in order."""
        raise NotImplementedError
