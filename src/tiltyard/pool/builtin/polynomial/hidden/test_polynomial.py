import random

HALF = Fraction(1, 2)


def test_coefficients():
    assert c(Polynomial([3, HALF, 0, -2])) == [3, HALF, 0, -2]
    assert c(Polynomial((5,))) == [5]


def test_zeros_at_the_end():
    assert c(Polynomial([1, 2, 0, Fraction(0)])) == [1, 2]
    assert c(Polynomial([0, 0])) == []
    assert c(Polynomial([0, 3])) == [0, 3]


def test_degree():
    degrees = [Polynomial(x).degree() for x in ([], [0], [4], [0, 1], [1, 0, 0, 2, 0])]
    assert degrees == [-1, -1, 0, 1, 3]


def test_add_and_subtract():
    p, q = Polynomial([1, 2, 3]), Polynomial([HALF, -2])
    assert c(p + q) == [Fraction(3, 2), 0, 3]
    assert c(q + p) == [Fraction(3, 2), 0, 3]
    assert c(p - q) == [HALF, 4, 3]
    assert c(q - p) == [-HALF, -4, -3]
    assert c(-p) == [-1, -2, -3]


def test_highest_terms_cancel():
    p, q = Polynomial([1, 2, 3]), Polynomial([5, 1, 3])
    assert c(p - q) == [-4, 1]
    assert (p - q).degree() == 1
    assert (p - p).degree() == -1 and c(p - p) == []


def test_multiply():
    assert c(Polynomial([1, 2]) * Polynomial([3, 0, HALF])) == [3, 6, HALF, 1]
    assert c(Polynomial([1, 2]) * Polynomial([])) == []


def test_numbers_on_the_right():
    p = Polynomial([2, 4])
    assert c(p + 1) == [3, 4]
    assert c(p - HALF) == [Fraction(3, 2), 4]
    assert c(p * HALF) == [1, 2]
    assert c(p // 4) == [HALF, 1] and c(p % 4) == []


def test_numbers_on_the_left():
    p = Polynomial([2, 4])
    assert c(1 + p) == [3, 4]
    assert c(1 - p) == [-1, -4]
    assert c(HALF - p) == [Fraction(-3, 2), -4]
    assert c(3 * p) == [6, 12]
    assert c(HALF * p) == [1, 2]


def test_number_divided_by_polynomial():
    p = Polynomial([2, 4])
    assert c(7 // p) == [] and c(7 % p) == [7]
    assert c(6 // Polynomial([4])) == [Fraction(3, 2)]
    quotient, rest = divmod(5, p)
    assert (c(quotient), c(rest)) == ([], [5])


def test_power():
    p = Polynomial([1, -1])
    assert c(p**3) == [1, -3, 3, -1]
    assert c(p**1) == [1, -1]
    assert c(p**0) == [1]
    assert c(Polynomial([]) ** 0) == [1]
    assert c(Polynomial([]) ** 2) == []
    assert raises(ValueError, lambda: p**-1)


def test_exact_division():
    p = Polynomial([-6, 11, -6, 1])
    assert c(p // Polynomial([-2, 1])) == [3, -4, 1]
    assert c(p % Polynomial([-2, 1])) == []


def test_division_with_remainder():
    quotient, rest = divmod(Polynomial([5, 0, 3, 2]), Polynomial([1, 0, 2]))
    assert c(quotient) == [Fraction(3, 2), 1]
    assert c(rest) == [Fraction(7, 2), -1]


def test_division_by_a_longer_one():
    p, q = Polynomial([1, 2]), Polynomial([0, 0, 5])
    assert (c(p // q), c(p % q)) == ([], [1, 2])
    assert (c(Polynomial([]) // p), c(Polynomial([]) % p)) == ([], [])


def test_division_by_zero():
    p = Polynomial([1, 2])
    for zero in (Polynomial([0]), 0, Fraction(0)):
        assert raises(ZeroDivisionError, lambda zero=zero: p // zero)
        assert raises(ZeroDivisionError, lambda zero=zero: p % zero)
        assert raises(ZeroDivisionError, divmod, p, zero)
    assert c(p // 1) == [1, 2]


def test_value():
    p = Polynomial([1, -3, 0, 2])
    assert [p(x) for x in (0, 1, -2, 10)] == [1, 0, -9, 1971]
    assert p(HALF) == Fraction(-1, 4)
    assert type(p(2)) is Fraction and type(Polynomial([])(5)) is Fraction
    assert Polynomial([])(5) == 0


def test_value_is_exact():
    assert Polynomial([0, 0, Fraction(1, 3)])(10**20) == Fraction(10**40, 3)


def test_derivative():
    assert c(Polynomial([7, 5, HALF, 2]).derivative()) == [5, 1, 6]
    assert c(Polynomial([7]).derivative()) == []
    assert c(Polynomial([]).derivative()) == []


def test_str_of_single_terms():
    texts = [
        str(Polynomial(x))
        for x in ([], [5], [-5], [0, 1], [0, -1], [0, 3], [0, 0, 1], [0, 0, -1], [0, 0, 0, -4])
    ]
    assert texts == ["0", "5", "-5", "x", "-x", "3x", "x^2", "-x^2", "-4x^3"]


def test_str_of_ones():
    assert str(Polynomial([1, 1, 1])) == "x^2 + x + 1"
    assert str(Polynomial([-1, -1, -1])) == "-x^2 - x - 1"
    assert str(Polynomial([1, 11])) == "11x + 1"


def test_str_of_fractions_and_gaps():
    assert str(Polynomial([HALF, 0, 0, Fraction(-2, 3)])) == "-2/3x^3 + 1/2"
    assert str(Polynomial([0, -HALF, 0, 1])) == "x^3 - 1/2x"
    assert str(Polynomial([Fraction(4, 2), Fraction(10, 4)])) == "5/2x + 2"
    assert str(Polynomial([0] * 12 + [1])) == "x^12"


def test_nothing_is_changed():
    given = [1, 2, 3]
    p, q = Polynomial(given), Polynomial([1, 1])
    given[0] = 99
    for result in (p + q, p - q, p * q, p**2, -p, p // q, p % q, p.derivative()):
        assert result.degree() >= 0
    p.coefficients().append(5)
    assert (c(p), c(q)) == ([1, 2, 3], [1, 1])
    assert given == [99, 2, 3]


def test_generated():
    rng = random.Random(83)
    for _ in range(15):
        p = Polynomial(
            [Fraction(rng.randrange(-5, 6), rng.randrange(1, 4)) for _ in range(rng.randrange(0, 6))]
        )
        q = Polynomial([rng.randrange(-5, 6) for _ in range(rng.randrange(0, 3))] + [rng.choice([-2, 1, 3])])
        quotient, rest = divmod(p, q)
        assert rest.degree() < q.degree()
        assert c(q * quotient + rest) == c(p)
        for x in (-2, HALF, 3):
            assert (p * q)(x) == p(x) * q(x)
            assert (p - q)(x) == p(x) - q(x)
