def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


class Source:
    """An iterator over items that counts how often it was asked."""

    def __init__(self, *items):
        self.items = list(items)
        self.asked = 0
        self.ended = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.asked += 1
        if not self.items:
            self.ended += 1
            raise StopIteration
        return self.items.pop(0)
