class NoTransaction(Exception):
    """There is no open transaction to end."""


class KeyValueStore:
    """A dictionary with nested transactions."""

    def __init__(self):
        """Make an empty store."""
        self._data = {}
        self._undo_logs = []  # one log for each open transaction: (key, value before or _MISSING)

    def set(self, key, value):
        """Store a value under a key."""
        self._remember(key)
        self._data[key] = value

    def get(self, key, default=None):
        """Return the value of a key, or the default."""
        return self._data.get(key, default)

    def delete(self, key):
        """Remove a key; KeyError if it isn't there."""
        if key not in self._data:
            raise KeyError(key)
        self._remember(key)
        del self._data[key]

    def keys(self):
        """Return the sorted keys."""
        return sorted(self._data)

    def count(self, value):
        """Return how many keys have a value."""
        return sum(other == value for other in self._data.values())

    @property
    def depth(self):
        """The number of open transactions."""
        return len(self._undo_logs)

    def begin(self):
        """Start a transaction, inside the current one if there is one."""
        self._undo_logs.append([])

    def commit(self):
        """End the innermost transaction and keep what was done in it."""
        log = self._end()
        if self._undo_logs:
            self._undo_logs[-1].extend(log)

    def rollback(self):
        """End the innermost transaction and take back what was done in it."""
        for key, value in reversed(self._end()):
            if value is _MISSING:
                self._data.pop(key, None)
            else:
                self._data[key] = value

    def _end(self):
        if not self._undo_logs:
            raise NoTransaction("no transaction is open")
        return self._undo_logs.pop()

    def _remember(self, key):
        if self._undo_logs:
            self._undo_logs[-1].append((key, self._data.get(key, _MISSING)))


_MISSING = object()
