import heapq
from itertools import count


class PriorityQueue:
    """A queue whose smallest priority comes out first, and whose priorities may change."""

    def __init__(self):
        """Make an empty queue."""
        self._entries = {}  # item: (priority, number of the push, item)
        self._heap = []  # may hold entries that are no longer in _entries
        self._numbers = count()

    def push(self, item, priority):
        """Put an item in; ValueError if it is in already."""
        if item in self._entries:
            raise ValueError(f"{item!r} is in the queue already")
        self._enter(item, priority, next(self._numbers))

    def pop(self):
        """Take out and return the first item."""
        item = self.peek()
        self.remove(item)
        return item

    def peek(self):
        """Return the first item."""
        if not self._entries:
            raise IndexError("the queue is empty")
        while self._entries.get(self._heap[0][-1]) is not self._heap[0]:
            heapq.heappop(self._heap)
        return self._heap[0][-1]

    def update(self, item, priority):
        """Give an item another priority."""
        _, number, _ = self._entries[item]
        self._enter(item, priority, number)

    def remove(self, item):
        """Take an item out, wherever it stands."""
        del self._entries[item]

    def priority(self, item):
        """Return the priority of an item."""
        return self._entries[item][0]

    def __len__(self):
        return len(self._entries)

    def __contains__(self, item):
        return item in self._entries

    def _enter(self, item, priority, number):
        entry = _Entry((priority, number, item))
        self._entries[item] = entry
        heapq.heappush(self._heap, entry)


class _Entry(tuple):
    """(priority, number, item), ordered without looking at the item."""

    __slots__ = ()

    def __lt__(self, other):
        return self[:2] < other[:2]
