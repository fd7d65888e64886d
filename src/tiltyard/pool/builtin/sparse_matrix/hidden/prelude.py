def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


def matrix(rows):
    """A SparseMatrix with the entries of a list of lists."""
    result = SparseMatrix(len(rows), len(rows[0]))
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            if value:
                result[r, c] = value
    return result


def dense(m):
    rows, columns = m.shape
    result = [[0] * columns for _ in range(rows)]
    for r, c, value in m.entries():
        assert value != 0
        result[r][c] = value
    return result
