import heapq

_END = object()


def merge_streams(*streams, key=None):
    """Yield the items of sorted streams in one ascending order, taking as few as possible ahead."""
    heap = []
    for number, stream in enumerate(streams):
        head = _Head(number, iter(stream), key)
        if head.advance():
            heap.append(head)
    heapq.heapify(heap)
    while heap:
        head = heap[0]
        yield head.item
        if head.advance():
            heapq.heapreplace(heap, head)
        else:
            heapq.heappop(heap)


class _Head:
    """The item that was taken from one stream and not yielded yet; ordered by key, then by stream."""

    def __init__(self, number, items, key):
        self.number = number
        self.item = self.key = _END  # nothing was taken yet
        self._items = items
        self._key_of = key

    def advance(self):
        """Take the next item; return whether there is one."""
        item = next(self._items, _END)
        if item is _END:
            return False
        key = item if self._key_of is None else self._key_of(item)
        if self.item is not _END and key < self.key:
            raise ValueError(f"{item!r} is out of order in stream {self.number}")
        self.item, self.key = item, key
        return True

    def __lt__(self, other):
        if self.key < other.key:
            return True
        return not other.key < self.key and self.number < other.number
