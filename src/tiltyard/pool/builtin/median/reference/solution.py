def median(values):
    """Return the middle value of some numbers, or the mean of the two middle ones."""
    if not values:
        raise ValueError("the median of no values is not defined")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
