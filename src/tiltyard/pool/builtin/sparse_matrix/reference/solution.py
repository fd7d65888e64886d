class SparseMatrix:
    """A matrix of ints that stores only the entries that aren't 0."""

    def __init__(self, rows, columns):
        """Make a matrix of zeros."""
        if rows < 1 or columns < 1:
            raise ValueError("a matrix has at least one row and one column")
        self.shape = (rows, columns)
        self._values = {}  # (row, column): value, never 0

    def count(self):
        """Return how many entries aren't 0."""
        return len(self._values)

    def entries(self):
        """Return the entries that aren't 0 as sorted (row, column, value) tuples."""
        return [(r, c, value) for (r, c), value in sorted(self._values.items())]

    def transpose(self):
        """Return a new matrix with rows and columns exchanged."""
        result = SparseMatrix(*reversed(self.shape))
        result._values = {(c, r): value for (r, c), value in self._values.items()}
        return result

    def __getitem__(self, position):
        return self._values.get(self._checked(position), 0)

    def __setitem__(self, position, value):
        self._store(self._checked(position), value)

    def __add__(self, other):
        if self.shape != other.shape:
            raise ValueError(f"shapes {self.shape} and {other.shape} differ")
        result = self * 1
        for position, value in other._values.items():
            result._store(position, result._values.get(position, 0) + value)
        return result

    def __sub__(self, other):
        return self + -other

    def __neg__(self):
        return self * -1

    def __mul__(self, factor):
        result = SparseMatrix(*self.shape)
        for position, value in self._values.items():
            result._store(position, value * factor)
        return result

    __rmul__ = __mul__

    def __matmul__(self, other):
        if self.shape[1] != other.shape[0]:
            raise ValueError(f"{self.shape[1]} columns can't be multiplied with {other.shape[0]} rows")
        rows_of_other = {}
        for (r, c), value in other._values.items():
            rows_of_other.setdefault(r, []).append((c, value))
        result = SparseMatrix(self.shape[0], other.shape[1])
        for (r, middle), left in self._values.items():
            for c, right in rows_of_other.get(middle, ()):
                result._store((r, c), result._values.get((r, c), 0) + left * right)
        return result

    def _checked(self, position):
        row, column = position
        if not (0 <= row < self.shape[0] and 0 <= column < self.shape[1]):
            raise IndexError(f"{position} is outside of a matrix of shape {self.shape}")
        return position

    def _store(self, position, value):
        if value:
            self._values[position] = value
        else:
            self._values.pop(position, None)
