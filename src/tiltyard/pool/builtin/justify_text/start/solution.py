def justify_text(text, width):
    """Return ``text`` as lines of exactly ``width`` characters, paragraph by paragraph."""
    raise NotImplementedError
