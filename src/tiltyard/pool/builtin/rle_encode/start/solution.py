def rle_encode(text):
    """Return the runs of equal characters in ``text`` as (character, count) tuples."""
    raise NotImplementedError
