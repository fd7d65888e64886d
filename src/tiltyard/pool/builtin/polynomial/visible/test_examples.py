from fractions import Fraction


def test_product():
    p, q = Polynomial([-1, 0, 1]), Polynomial([1, 1])
    assert str(p * q) == "x^3 + x^2 - x - 1"


def test_division():
    p, q = Polynomial([-1, 0, 1]), Polynomial([1, 1])
    assert (str(p // q), str(p % q)) == ("x - 1", "0")


def test_numbers():
    p, q = Polynomial([-1, 0, 1]), Polynomial([1, 1])
    assert (p + 2)(3) == Fraction(10)
    assert (1 - q).coefficients() == [Fraction(0), Fraction(-1)]
