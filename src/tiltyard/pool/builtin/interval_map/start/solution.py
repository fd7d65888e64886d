class IntervalMap:
    """A value for every integer, set by whole stretches."""

    def __init__(self, default=None):
        """Give every integer the default value."""
        raise NotImplementedError

    def set(self, start, end, value):
        """Give all integers from ``start`` up to, not including, ``end`` a value."""
        raise NotImplementedError

    def get(self, x):
        """Return the value of the integer ``x``."""
        raise NotImplementedError

    def clear(self, start, end):
        """Give all integers from ``start`` up to, not including, ``end`` the default value."""
        raise NotImplementedError

    def items(self):
        """Return the stretches whose value isn't the default as (start, end, value), sorted."""
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError
