class LRUCache:
    """A cache of limited size that drops the entry not used for the longest time."""

    def __init__(self, capacity):
        """Make an empty cache; the capacity is at least 1."""
        raise NotImplementedError

    def get(self, key, default=None):
        """Return the value of a key, which becomes the most recently used, or the default."""
        raise NotImplementedError

    def put(self, key, value):
        """Store a value; return the key that had to be dropped for it, or None."""
        raise NotImplementedError

    def delete(self, key):
        """Remove an entry; KeyError if it isn't there."""
        raise NotImplementedError

    def keys(self):
        """Return the keys, most recently used first."""
        raise NotImplementedError

    def __contains__(self, key):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError
