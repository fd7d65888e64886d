from itertools import islice


def chunked(iterable, size):
    """Yield the items of ``iterable`` in lists of ``size``; the last may be shorter."""
    if size < 1:
        raise ValueError("a chunk has at least one item")
    items = iter(iterable)
    while chunk := list(islice(items, size)):
        yield chunk
