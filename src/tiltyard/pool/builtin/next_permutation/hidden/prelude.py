def step(values):
    """The answer and the list after one step, on a copy."""
    values = list(values)
    return next_permutation(values), values
