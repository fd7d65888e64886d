import random


def test_new_map():
    m = IntervalMap(7)
    assert [m.get(x) for x in (-(10**30), 0, 5)] == [7, 7, 7]
    assert m.items() == []
    assert len(m) == 0
    assert IntervalMap().get(0) is None


def test_bounds_of_a_stretch():
    m = filled((3, 6, "p"))
    assert [m.get(x) for x in (2, 3, 4, 5, 6, 7)] == [None, "p", "p", "p", None, None]
    assert m.items() == [(3, 6, "p")]


def test_single_integer():
    m = filled((-1, 0, "p"))
    assert [m.get(x) for x in (-2, -1, 0)] == [None, "p", None]


def test_overlap_on_each_side():
    assert filled((0, 10, "p"), (5, 15, "q")).items() == [(0, 5, "p"), (5, 15, "q")]
    assert filled((0, 10, "p"), (-5, 5, "q")).items() == [(-5, 5, "q"), (5, 10, "p")]


def test_covers_several():
    m = filled((0, 2, "p"), (4, 6, "q"), (8, 10, "r"), (1, 9, "s"))
    assert m.items() == [(0, 1, "p"), (1, 9, "s"), (9, 10, "r")]
    m.set(-10, 20, "t")
    assert m.items() == [(-10, 20, "t")]


def test_exactly_the_same_bounds():
    m = filled((2, 5, "p"), (2, 5, "q"))
    assert m.items() == [(2, 5, "q")]
    assert (m.get(1), m.get(2), m.get(4), m.get(5)) == (None, "q", "q", None)


def test_shared_start_or_end():
    assert filled((0, 10, "p"), (0, 4, "q")).items() == [(0, 4, "q"), (4, 10, "p")]
    assert filled((0, 10, "p"), (6, 10, "q")).items() == [(0, 6, "p"), (6, 10, "q")]


def test_touching_equal_values_are_one():
    assert filled((0, 5, "p"), (5, 9, "p")).items() == [(0, 9, "p")]
    assert filled((5, 9, "p"), (0, 5, "p")).items() == [(0, 9, "p")]
    assert filled((0, 3, "p"), (6, 9, "p"), (3, 6, "p")).items() == [(0, 9, "p")]
    assert len(filled((0, 3, "p"), (6, 9, "p"), (3, 6, "p"))) == 1


def test_touching_different_values_are_two():
    m = filled((0, 5, "p"), (5, 9, "q"))
    assert m.items() == [(0, 5, "p"), (5, 9, "q")]
    assert (m.get(4), m.get(5)) == ("p", "q")


def test_gap_keeps_equal_values_apart():
    m = filled((0, 5, "p"), (6, 9, "p"))
    assert m.items() == [(0, 5, "p"), (6, 9, "p")]
    assert len(m) == 2 and m.get(5) is None


def test_equal_value_inside_changes_nothing():
    m = filled((0, 10, "p"), (3, 5, "p"))
    assert m.items() == [(0, 10, "p")]
    m.set(8, 12, "p")
    assert m.items() == [(0, 12, "p")]


def test_clear_splits():
    m = filled((0, 10, "p"))
    m.clear(4, 6)
    assert m.items() == [(0, 4, "p"), (6, 10, "p")]
    assert [m.get(x) for x in (3, 4, 5, 6)] == ["p", None, None, "p"]


def test_clear_over_several_and_beyond():
    m = filled((0, 3, "p"), (3, 6, "q"), (8, 9, "r"))
    m.clear(2, 100)
    assert m.items() == [(0, 2, "p")]
    m.clear(-100, 100)
    assert m.items() == [] and len(m) == 0
    m.clear(5, 6)
    assert m.items() == []


def test_setting_the_default_is_clearing():
    m = filled((0, 10, 1), (2, 4, 0), (20, 30, 0), default=0)
    assert m.items() == [(0, 2, 1), (4, 10, 1)]
    assert m.get(25) == 0


def test_none_is_a_value_where_it_is_not_the_default():
    m = filled((0, 10, None), (4, 5, 0), default="d")
    assert m.items() == [(0, 4, None), (4, 5, 0), (5, 10, None)]
    assert (m.get(3), m.get(10)) == (None, "d")


def test_empty_stretch_raises():
    m = filled((0, 10, "p"))
    for start, end in ((3, 3), (5, 2), (0, -1)):
        assert raises(ValueError, m.set, start, end, "q")
        assert raises(ValueError, m.clear, start, end)
    assert m.items() == [(0, 10, "p")]


def test_huge_bounds():
    big = 10**30
    m = filled((-big, big, "p"), (-1, 1, "q"))
    assert m.items() == [(-big, -1, "p"), (-1, 1, "q"), (1, big, "p")]
    assert (m.get(big - 1), m.get(big), m.get(-big), m.get(0)) == ("p", None, "p", "q")


def test_maps_are_independent():
    one, two = filled((0, 5, "p")), filled((1, 2, "q"))
    assert one.items() == [(0, 5, "p")]
    assert two.items() == [(1, 2, "q")]
    one.items().append("junk")
    assert len(one) == 1


def test_against_single_points():
    rng = random.Random(60)
    for default in (None, "a"):
        m, model = IntervalMap(default), dict.fromkeys(range(-3, 33), default)
        for _ in range(70):
            start = rng.randrange(0, 29)
            end = start + rng.choice([1, 1, 2, 3, 8, 15])
            end = min(end, 30)
            value = rng.choice(["a", "b", "c", "clear"])
            if value == "clear":
                m.clear(start, end)
                value = default
            else:
                m.set(start, end, value)
            model.update(dict.fromkeys(range(start, end), value))
            expected = []
            for x in sorted(model):
                if model[x] == default:
                    continue
                if expected and expected[-1][1] == x and expected[-1][2] == model[x]:
                    expected[-1][1] = x + 1
                else:
                    expected.append([x, x + 1, model[x]])
            assert m.items() == [tuple(stretch) for stretch in expected]
            assert len(m) == len(expected)
        assert [m.get(x) for x in sorted(model)] == [model[x] for x in sorted(model)]


def test_many_stretches():
    m = IntervalMap(0)
    for n in range(200):
        m.set(n * 10, n * 10 + 5, n % 3)
    assert len(m) == 133
    m.set(0, 2000, 9)
    assert m.items() == [(0, 2000, 9)]
