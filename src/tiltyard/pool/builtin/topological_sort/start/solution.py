def topological_sort(prerequisites):
    """Return all tasks in an order that respects their prerequisites, smallest name first where free."""
    raise NotImplementedError
