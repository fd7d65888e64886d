def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


def by_brute_force(roads, start, goal):
    """Try every route without repeated places."""
    from itertools import permutations

    cost_of = {}
    for one, other, cost in roads:
        for pair in ((one, other), (other, one)):
            cost_of[pair] = min(cost, cost_of.get(pair, cost))
    places = {place for road in roads for place in road[:2]} - {start, goal}
    best = None
    for size in range(len(places) + 1):
        for middle in permutations(sorted(places), size):
            path = [start, *middle, goal] if start != goal else [start]
            pairs = list(zip(path, path[1:], strict=False))
            if all(pair in cost_of for pair in pairs):
                route = (sum(cost_of[pair] for pair in pairs), len(path), path)
                best = min(best, route) if best else route
    return best and (best[0], best[2])
