from collections import deque


class RingBuffer:
    """A buffer that keeps only the newest ``capacity`` items."""

    def __init__(self, capacity):
        """Make an empty buffer; the capacity is at least 1."""
        if capacity < 1:
            raise ValueError("a buffer needs room for at least one item")
        self.capacity = capacity
        self._items = deque()

    def append(self, item):
        """Add the newest item; return the oldest if it had to go, otherwise None."""
        dropped = self._items.popleft() if self.is_full else None
        self._items.append(item)
        return dropped

    def pop_oldest(self):
        """Take the oldest item out and return it."""
        if not self._items:
            raise IndexError("the buffer is empty")
        return self._items.popleft()

    def clear(self):
        """Take all items out."""
        self._items.clear()

    @property
    def is_full(self):
        """Whether the next item will push out the oldest."""
        return len(self._items) == self.capacity

    def __len__(self):
        return len(self._items)

    def __getitem__(self, index):
        return self._items[index]

    def __iter__(self):
        return iter(self._items)
