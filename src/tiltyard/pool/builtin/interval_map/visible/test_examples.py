def test_inside_another():
    m = IntervalMap("-")
    m.set(0, 10, "a")
    m.set(4, 6, "b")
    assert m.items() == [(0, 4, "a"), (4, 6, "b"), (6, 10, "a")]
    assert (m.get(5), m.get(9), m.get(10)) == ("b", "a", "-")


def test_clear():
    m = IntervalMap()
    m.set(0, 10, "a")
    m.clear(-5, 3)
    assert m.items() == [(3, 10, "a")]
    assert m.get(2) is None
