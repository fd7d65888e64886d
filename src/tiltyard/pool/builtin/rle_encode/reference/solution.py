from itertools import groupby


def rle_encode(text):
    """Return the runs of equal characters in ``text`` as (character, count) tuples."""
    return [(character, len(list(run))) for character, run in groupby(text)]
