from fractions import Fraction


def test_all_of_a_list():
    got = summarize([2, 4, 9])
    assert got == {"count": 3, "mean": 5, "median": 4, "spread": 7, "variance": Fraction(26, 3)}


def test_all_of_a_generator():
    got = summarize(x for x in (7, 1, 4, 4))
    assert got == {"count": 4, "mean": 4, "median": 4, "spread": 6, "variance": Fraction(9, 2)}


def test_other_iterators():
    assert summarize(iter([3, 1, 2]))["median"] == 2
    assert summarize(map(int, "975"))["variance"] == Fraction(8, 3)
    assert summarize({10: "a", 20: "b"})["mean"] == 15


def test_even_medians():
    assert summarize([10, 1])["median"] == Fraction(11, 2)
    assert summarize((8, 2, 6, 4))["median"] == 5
    assert summarize([1, 1, 2, 2])["median"] == Fraction(3, 2)
    assert summarize([-1, -2])["median"] == Fraction(-3, 2)


def test_odd_medians():
    assert summarize([9])["median"] == 9
    assert summarize([3, 3, -3])["median"] == 3


def test_the_list_stays_as_it_is():
    data = [3, 1, None, 2]
    summarize(data)
    assert data == [3, 1, None, 2]
    data = [5, 4, 1]
    summarize(data)
    assert data == [5, 4, 1]


def test_none_is_left_out():
    assert summarize([None, 4, None, 6]) == {"count": 2, "mean": 5, "median": 5, "spread": 2, "variance": 1}
    assert summarize(x for x in (None, 8))["count"] == 1


def test_zero_is_a_measurement():
    got = summarize([0, 0, 3])
    assert got == {"count": 3, "mean": 1, "median": 0, "spread": 3, "variance": 2}
    assert summarize([0])["count"] == 1
    assert summarize(iter([0, None]))["median"] == 0


def test_fractions_and_negative_numbers():
    got = summarize([Fraction(1, 2), Fraction(-1, 2)])
    assert got == {"count": 2, "mean": 0, "median": 0, "spread": 1, "variance": Fraction(1, 4)}


def test_nothing():
    raises(ValueError, summarize, [])
    raises(ValueError, summarize, [None, None])
    raises(ValueError, summarize, iter(()))


def test_histogram_has_the_largest():
    assert histogram([1, 2, 3, 4], 3) == [1, 1, 2]
    assert histogram([0, 10], 5) == [1, 0, 0, 0, 1]
    assert histogram([1, 9, 9, 9], 2) == [1, 3]


def test_histogram_borders():
    assert histogram([0, 1, 2, 3, 4], 2) == [2, 3]
    assert histogram([-3, 0, 3], 2) == [1, 2]
    assert histogram([0, 1, Fraction(1, 3), Fraction(2, 3)], 3) == [1, 1, 2]


def test_histogram_of_equal_values():
    assert histogram([5, 5, 5], 3) == [3, 0, 0]
    assert histogram([5], 1) == [1]


def test_histogram_of_iterators_and_none():
    assert histogram((x for x in (1, None, 3)), 2) == [1, 1]
    assert histogram([None], 2) == [0, 0]
    assert histogram([], 3) == [0, 0, 0]
    raises(ValueError, histogram, [1], 0)
