def cheapest_route(roads, start, goal):
    """Return (cost, path) of the cheapest route, or None; ties by fewest places, then by name."""
    raise NotImplementedError
