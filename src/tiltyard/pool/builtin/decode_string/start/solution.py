def decode_string(text):
    """Expand every ``N[...]`` in ``text`` to N times what is inside."""
    raise NotImplementedError
