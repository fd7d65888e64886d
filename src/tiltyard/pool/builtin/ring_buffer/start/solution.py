class RingBuffer:
    """A buffer that keeps only the newest ``capacity`` items."""

    def __init__(self, capacity):
        """Make an empty buffer; the capacity is at least 1."""
        raise NotImplementedError

    def append(self, item):
        """Add the newest item; return the oldest if it had to go, otherwise None."""
        raise NotImplementedError

    def pop_oldest(self):
        """Take the oldest item out and return it."""
        raise NotImplementedError

    def clear(self):
        """Take all items out."""
        raise NotImplementedError

    @property
    def is_full(self):
        """Whether the next item will push out the oldest."""
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def __getitem__(self, index):
        raise NotImplementedError

    def __iter__(self):
        raise NotImplementedError
