def merge_streams(*streams, key=None):
    """Yield the items of sorted streams in one ascending order, taking as few as possible ahead."""
    raise NotImplementedError
