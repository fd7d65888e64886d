from string import ascii_lowercase, ascii_uppercase


def caesar_shift(text, shift):
    """Return ``text`` with each ASCII letter moved by ``shift`` places along the alphabet."""
    shift %= 26
    table = {}
    for alphabet in (ascii_lowercase, ascii_uppercase):
        table.update(str.maketrans(alphabet, alphabet[shift:] + alphabet[:shift]))
    return text.translate(table)
