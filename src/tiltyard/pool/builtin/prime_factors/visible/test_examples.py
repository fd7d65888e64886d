def test_twelve():
    assert prime_factors(12) == [(2, 2), (3, 1)]


def test_prime():
    assert prime_factors(7) == [(7, 1)]


def test_one():
    assert prime_factors(1) == []
