import random


def test_direct():
    assert cheapest_route([("home", "inn", 3)], "home", "inn") == (3, ["home", "inn"])


def test_roads_go_both_ways():
    assert cheapest_route([("inn", "home", 3), ("inn", "mill", 2)], "home", "mill") == (
        5,
        ["home", "inn", "mill"],
    )


def test_cheaper_with_more_places():
    roads = [("s", "g", 10), ("s", "a", 2), ("a", "b", 2), ("b", "c", 2), ("c", "g", 3)]
    assert cheapest_route(roads, "s", "g") == (9, ["s", "a", "b", "c", "g"])


def test_first_found_is_not_cheapest():
    roads = [("s", "a", 1), ("a", "g", 9), ("s", "b", 5), ("b", "g", 2)]
    assert cheapest_route(roads, "s", "g") == (7, ["s", "b", "g"])


def test_several_roads_between_two_places():
    assert cheapest_route([("p", "q", 8), ("q", "p", 3), ("p", "q", 5)], "p", "q") == (3, ["p", "q"])


def test_fewest_places_before_names():
    roads = [("s", "a", 1), ("a", "b", 1), ("b", "g", 1), ("s", "z", 1), ("z", "g", 2)]
    assert cheapest_route(roads, "s", "g") == (3, ["s", "z", "g"])


def test_names_break_ties():
    roads = [("s", "m", 1), ("m", "g", 1), ("s", "k", 1), ("k", "g", 1), ("s", "l", 1), ("l", "g", 1)]
    assert cheapest_route(roads, "s", "g") == (2, ["s", "k", "g"])


def test_names_break_ties_early_in_the_list():
    # The costs are spread differently, so that the better list is finished later.
    roads = [("s", "b", 1), ("b", "c", 1), ("c", "g", 4), ("s", "a", 4), ("a", "z", 1), ("z", "g", 1)]
    assert cheapest_route(roads, "s", "g") == (6, ["s", "a", "z", "g"])


def test_free_roads():
    roads = [("s", "a", 0), ("a", "g", 0), ("s", "g", 0), ("g", "h", 0)]
    assert cheapest_route(roads, "s", "g") == (0, ["s", "g"])
    assert cheapest_route(roads, "a", "h") == (0, ["a", "g", "h"])


def test_start_is_goal():
    assert cheapest_route([("p", "q", 1), ("p", "p", 0)], "p", "p") == (0, ["p"])
    assert cheapest_route([("p", "q", 1)], "q", "q") == (0, ["q"])


def test_road_to_itself():
    assert cheapest_route([("p", "p", 0), ("p", "q", 2), ("q", "q", 1)], "p", "q") == (2, ["p", "q"])
    assert cheapest_route([("p", "p", 0), ("q", "q", 1)], "p", "q") is None


def test_no_way():
    roads = [("p", "q", 1), ("r", "s", 1), ("q", "t", 3)]
    assert cheapest_route(roads, "p", "s") is None
    assert cheapest_route(roads, "p", "t") == (4, ["p", "q", "t"])


def test_unknown_places():
    roads = [("p", "q", 1)]
    assert raises(ValueError, cheapest_route, roads, "p", "x")
    assert raises(ValueError, cheapest_route, roads, "x", "p")
    assert raises(ValueError, cheapest_route, roads, "x", "x")
    assert raises(ValueError, cheapest_route, [], "p", "p")
    assert cheapest_route(roads, "p", "p") == (0, ["p"])


def test_negative_cost():
    assert raises(ValueError, cheapest_route, [("p", "q", -1)], "p", "q")
    assert raises(ValueError, cheapest_route, [("p", "q", 1), ("r", "s", -2)], "p", "q")
    assert cheapest_route([("p", "q", 0)], "p", "q") == (0, ["p", "q"])


def test_roads_are_not_changed():
    roads = [("p", "q", 5), ("q", "r", 5), ("r", "p", 9)]
    assert cheapest_route(roads, "p", "r") == (9, ["p", "r"])
    assert roads == [("p", "q", 5), ("q", "r", 5), ("r", "p", 9)]


def test_large_grid():
    roads = []
    for x in range(30):
        for y in range(30):
            roads.append((f"{x:02}.{y:02}", f"{x + 1:02}.{y:02}", 1))
            roads.append((f"{x:02}.{y:02}", f"{x:02}.{y + 1:02}", 1))
    cost, path = cheapest_route(roads, "00.00", "29.29")
    assert cost == 58
    assert path == [f"00.{y:02}" for y in range(30)] + [f"{x:02}.29" for x in range(1, 30)]


def test_generated():
    rng = random.Random(23)
    answers = []
    for _ in range(100):
        places = "abcdef"[: rng.randrange(3, 7)]
        roads = [
            (rng.choice(places), rng.choice(places), rng.randrange(0, 4)) for _ in range(rng.randrange(3, 10))
        ]
        roads += [("a", "a", 5), ("c", "c", 5)]
        expected = by_brute_force(roads, "a", "c")
        assert cheapest_route(roads, "a", "c") == expected, roads
        answers.append(expected)
    assert None in answers
