def merge_intervals(intervals):
    """Return the union of closed intervals as sorted, disjoint (start, end) tuples."""
    for start, end in intervals:
        if start > end:
            raise ValueError(f"an interval that ends before it starts: {start} to {end}")
    merged = []
    for start, end in sorted(map(tuple, intervals)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
