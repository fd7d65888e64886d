class SparseMatrix:
    """A matrix of ints that stores only the entries that aren't 0."""

    def __init__(self, rows, columns):
        """Make a matrix of zeros."""
        raise NotImplementedError

    def count(self):
        """Return how many entries aren't 0."""
        raise NotImplementedError

    def entries(self):
        """Return the entries that aren't 0 as sorted (row, column, value) tuples."""
        raise NotImplementedError

    def transpose(self):
        """Return a new matrix with rows and columns exchanged."""
        raise NotImplementedError

    def __getitem__(self, position):
        raise NotImplementedError

    def __setitem__(self, position, value):
        raise NotImplementedError

    def __add__(self, other):
        raise NotImplementedError

    def __sub__(self, other):
        raise NotImplementedError

    def __neg__(self):
        raise NotImplementedError

    def __mul__(self, factor):
        raise NotImplementedError

    def __rmul__(self, factor):
        raise NotImplementedError

    def __matmul__(self, other):
        raise NotImplementedError
