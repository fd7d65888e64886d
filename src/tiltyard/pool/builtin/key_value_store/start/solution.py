class NoTransaction(Exception):
    """There is no open transaction to end."""


class KeyValueStore:
    """A dictionary with nested transactions."""

    def __init__(self):
        """Make an empty store."""
        raise NotImplementedError

    def set(self, key, value):
        """Store a value under a key."""
        raise NotImplementedError

    def get(self, key, default=None):
        """Return the value of a key, or the default."""
        raise NotImplementedError

    def delete(self, key):
        """Remove a key; KeyError if it isn't there."""
        raise NotImplementedError

    def keys(self):
        """Return the sorted keys."""
        raise NotImplementedError

    def count(self, value):
        """Return how many keys have a value."""
        raise NotImplementedError

    @property
    def depth(self):
        """The number of open transactions."""
        raise NotImplementedError

    def begin(self):
        """Start a transaction, inside the current one if there is one."""
        raise NotImplementedError

    def commit(self):
        """End the innermost transaction and keep what was done in it."""
        raise NotImplementedError

    def rollback(self):
        """End the innermost transaction and take back what was done in it."""
        raise NotImplementedError
