def test_small_primes():
    assert prime_factors(2) == [(2, 1)]
    assert prime_factors(3) == [(3, 1)]
    assert prime_factors(97) == [(97, 1)]


def test_power_of_two():
    assert prime_factors(1024) == [(2, 10)]


def test_power_of_an_odd_prime():
    assert prime_factors(2401) == [(7, 4)]


def test_square_of_a_prime():
    assert prime_factors(9) == [(3, 2)]
    assert prime_factors(169) == [(13, 2)]


def test_mixed():
    assert prime_factors(360) == [(2, 3), (3, 2), (5, 1)]


def test_product_of_two_primes():
    assert prime_factors(77) == [(7, 1), (11, 1)]


def test_prime_left_over():
    assert prime_factors(2 * 2 * 1009) == [(2, 2), (1009, 1)]


def test_ascending_and_tuples():
    result = prime_factors(30030)
    assert result == [(2, 1), (3, 1), (5, 1), (7, 1), (11, 1), (13, 1)]
    assert all(type(item) is tuple for item in result)


def test_one_has_none():
    assert prime_factors(1) == []
    assert prime_factors(4) == [(2, 2)]


def test_not_positive_raises():
    assert raises(ValueError, prime_factors, 0)
    assert raises(ValueError, prime_factors, -12)
    assert prime_factors(14) == [(2, 1), (7, 1)]


def test_large_prime():
    assert prime_factors(999_999_999_989) == [(999_999_999_989, 1)]


def test_square_of_a_large_prime():
    assert prime_factors(999_983**2) == [(999_983, 2)]


def test_large_product():
    assert prime_factors(2**5 * 3 * 999_983) == [(2, 5), (3, 1), (999_983, 1)]
    assert prime_factors(10**12) == [(2, 12), (5, 12)]


def test_all_up_to_two_hundred():
    def is_prime(k):
        return k > 1 and all(k % d for d in range(2, k))

    for n in range(1, 201):
        factors = prime_factors(n)
        product = 1
        for prime, exponent in factors:
            assert is_prime(prime) and exponent >= 1
            product *= prime**exponent
        assert product == n
        assert [p for p, _ in factors] == sorted({p for p, _ in factors})
