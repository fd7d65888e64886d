from fractions import Fraction
from itertools import zip_longest


class Polynomial:
    """A polynomial in x with rational coefficients."""

    def __init__(self, coefficients):
        """Take the coefficients, the constant term first."""
        self._coefficients = [Fraction(c) for c in coefficients]
        while self._coefficients and self._coefficients[-1] == 0:
            self._coefficients.pop()

    def coefficients(self):
        """Return the coefficients as Fractions, the constant term first."""
        return list(self._coefficients)

    def degree(self):
        """Return the highest exponent, or -1 for the zero polynomial."""
        return len(self._coefficients) - 1

    def derivative(self):
        """Return the derivative as a new polynomial."""
        return Polynomial([n * c for n, c in enumerate(self._coefficients)][1:])

    def __call__(self, x):
        value = Fraction(0)
        for coefficient in reversed(self._coefficients):
            value = value * x + coefficient
        return value

    def __neg__(self):
        return Polynomial([-c for c in self._coefficients])

    def __add__(self, other):
        pairs = zip_longest(self._coefficients, _polynomial(other)._coefficients, fillvalue=0)
        return Polynomial([a + b for a, b in pairs])

    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        return self + -_polynomial(other)

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        other = _polynomial(other)
        product = [0] * (len(self._coefficients) + len(other._coefficients))
        for n, a in enumerate(self._coefficients):
            for m, b in enumerate(other._coefficients):
                product[n + m] += a * b
        return Polynomial(product)

    def __rmul__(self, other):
        return self * other

    def __pow__(self, exponent):
        if exponent < 0:
            raise ValueError("a polynomial has no negative powers")
        result = Polynomial([1])
        for _ in range(exponent):
            result = result * self
        return result

    def __divmod__(self, other):
        other = _polynomial(other)
        if other.degree() < 0:
            raise ZeroDivisionError("division by the zero polynomial")
        quotient, rest = Polynomial([]), self
        while rest.degree() >= other.degree():
            factor = rest._coefficients[-1] / other._coefficients[-1]
            term = Polynomial([0] * (rest.degree() - other.degree()) + [factor])
            quotient, rest = quotient + term, rest - term * other
        return quotient, rest

    def __rdivmod__(self, other):
        return divmod(_polynomial(other), self)

    def __floordiv__(self, other):
        return divmod(self, other)[0]

    def __rfloordiv__(self, other):
        return divmod(_polynomial(other), self)[0]

    def __mod__(self, other):
        return divmod(self, other)[1]

    def __rmod__(self, other):
        return divmod(_polynomial(other), self)[1]

    def __str__(self):
        text = ""
        for exponent, coefficient in reversed(list(enumerate(self._coefficients))):
            if coefficient == 0:
                continue
            if text:
                text += " - " if coefficient < 0 else " + "
            elif coefficient < 0:
                text = "-"
            power = {0: "", 1: "x"}.get(exponent, f"x^{exponent}")
            size = abs(coefficient)
            text += power if size == 1 and power else f"{size}{power}"
        return text or "0"


def _polynomial(value):
    return value if isinstance(value, Polynomial) else Polynomial([value])
