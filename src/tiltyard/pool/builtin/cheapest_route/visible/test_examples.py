ROADS = [("a", "b", 4), ("b", "c", 1), ("a", "c", 7)]


def test_detour_is_cheaper():
    assert cheapest_route(ROADS, "a", "c") == (5, ["a", "b", "c"])


def test_fewest_places():
    assert cheapest_route([*ROADS, ("a", "c", 5)], "a", "c") == (5, ["a", "c"])


def test_no_way():
    assert cheapest_route([*ROADS, ("x", "y", 1)], "a", "b") == (4, ["a", "b"])
    assert cheapest_route([*ROADS, ("x", "y", 1)], "a", "x") is None
