def line_diff(old, new):
    """Return a smallest difference of two lists of lines as (mark, line) tuples."""
    raise NotImplementedError
