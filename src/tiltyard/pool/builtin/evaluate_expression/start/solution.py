def evaluate_expression(text):
    """Return the int value of an arithmetic expression; ValueError if it is malformed."""
    raise NotImplementedError
