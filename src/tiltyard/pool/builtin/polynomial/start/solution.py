class Polynomial:
    """A polynomial in x with rational coefficients."""

    def __init__(self, coefficients):
        """Take the coefficients, the constant term first."""
        raise NotImplementedError

    def coefficients(self):
        """Return the coefficients as Fractions, the constant term first."""
        raise NotImplementedError

    def degree(self):
        """Return the highest exponent, or -1 for the zero polynomial."""
        raise NotImplementedError

    def derivative(self):
        """Return the derivative as a new polynomial."""
        raise NotImplementedError

    def __call__(self, x):
        raise NotImplementedError

    def __neg__(self):
        raise NotImplementedError

    def __add__(self, other):
        raise NotImplementedError

    def __radd__(self, other):
        raise NotImplementedError

    def __sub__(self, other):
        raise NotImplementedError

    def __rsub__(self, other):
        raise NotImplementedError

    def __mul__(self, other):
        raise NotImplementedError

    def __rmul__(self, other):
        raise NotImplementedError

    def __pow__(self, exponent):
        raise NotImplementedError

    def __divmod__(self, other):
        raise NotImplementedError

    def __rdivmod__(self, other):
        raise NotImplementedError

    def __floordiv__(self, other):
        raise NotImplementedError

    def __rfloordiv__(self, other):
        raise NotImplementedError

    def __mod__(self, other):
        raise NotImplementedError

    def __rmod__(self, other):
        raise NotImplementedError

    def __str__(self):
        raise NotImplementedError
