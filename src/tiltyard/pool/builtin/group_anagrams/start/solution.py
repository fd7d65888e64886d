def group_anagrams(words):
    """Return ``words`` as groups of anagrams, ignoring case, in order of first appearance."""
    raise NotImplementedError
