def next_permutation(values):
    """Change ``values`` to its next arrangement; False if it went from the last to the first."""
    raise NotImplementedError
