def chunked(iterable, size):
    """Yield the items of ``iterable`` in lists of ``size``; the last may be shorter."""
    raise NotImplementedError
