def is_balanced_brackets(text):
    """Say whether all brackets in ``text`` are closed by their kind and properly nested."""
    raise NotImplementedError
