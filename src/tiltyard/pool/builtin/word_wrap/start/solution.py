def word_wrap(text, width):
    """Break ``text`` greedily into lines of at most ``width`` characters; longer words are cut."""
    raise NotImplementedError
