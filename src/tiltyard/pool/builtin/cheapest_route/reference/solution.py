import heapq


def cheapest_route(roads, start, goal):
    """Return (cost, path) of the cheapest route, or None; ties by fewest places, then by name."""
    neighbours = {}
    for one, other, cost in roads:
        if cost < 0:
            raise ValueError(f"the road from {one} to {other} has a negative cost")
        neighbours.setdefault(one, []).append((other, cost))
        neighbours.setdefault(other, []).append((one, cost))
    for place in (start, goal):
        if place not in neighbours:
            raise ValueError(f"no road leads to {place}")

    # The heap's order is the order of routes: cost, number of places, names.
    routes = [(0, 1, [start])]
    done = set()
    while routes:
        cost, size, path = heapq.heappop(routes)
        place = path[-1]
        if place == goal:
            return cost, path
        if place in done:
            continue
        done.add(place)
        for other, price in neighbours[place]:
            if other not in done:
                heapq.heappush(routes, (cost + price, size + 1, [*path, other]))
    return None
