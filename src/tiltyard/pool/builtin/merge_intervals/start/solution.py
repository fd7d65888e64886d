def merge_intervals(intervals):
    """Return the union of closed intervals as sorted, disjoint (start, end) tuples."""
    raise NotImplementedError
