def caesar_shift(text, shift):
    """Return ``text`` with each ASCII letter moved by ``shift`` places along the alphabet."""
    raise NotImplementedError
