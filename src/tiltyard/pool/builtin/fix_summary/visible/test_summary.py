from fractions import Fraction


def test_generator():
    got = summarize(n * n for n in range(1, 4))
    assert got["count"] == 3
    assert got["mean"] == Fraction(14, 3)
    assert got["spread"] == 8


def test_median():
    assert summarize([1, 2, 3, 4])["median"] == Fraction(5, 2)
    assert summarize([5, 1, 3])["median"] == 3
