class LRUCache:
    """A cache of limited size that drops the entry not used for the longest time."""

    def __init__(self, capacity):
        """Make an empty cache; the capacity is at least 1."""
        if capacity < 1:
            raise ValueError("a cache needs room for at least one entry")
        self.capacity = capacity
        self._entries = {}  # least recently used first

    def get(self, key, default=None):
        """Return the value of a key, which becomes the most recently used, or the default."""
        if key not in self._entries:
            return default
        value = self._entries.pop(key)
        self._entries[key] = value
        return value

    def put(self, key, value):
        """Store a value; return the key that had to be dropped for it, or None."""
        dropped = None
        if key in self._entries:
            del self._entries[key]
        elif len(self._entries) == self.capacity:
            dropped = next(iter(self._entries))
            del self._entries[dropped]
        self._entries[key] = value
        return dropped

    def delete(self, key):
        """Remove an entry; KeyError if it isn't there."""
        del self._entries[key]

    def keys(self):
        """Return the keys, most recently used first."""
        return list(reversed(self._entries))

    def __contains__(self, key):
        return key in self._entries

    def __len__(self):
        return len(self._entries)
