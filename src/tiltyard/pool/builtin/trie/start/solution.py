class Trie:
    """A set of words that can be searched by their beginnings."""

    def __init__(self, words=()):
        """Start with the given words."""
        raise NotImplementedError

    def add(self, word):
        """Add a word; return whether it is new."""
        raise NotImplementedError

    def remove(self, word):
        """Take a word out; return whether it was there."""
        raise NotImplementedError

    def starting_with(self, prefix, limit=None):
        """Return the words that start with a prefix in alphabetical order, at most ``limit`` of them."""
        raise NotImplementedError

    def longest_prefix_of(self, text):
        """Return the longest word that ``text`` starts with, or None."""
        raise NotImplementedError

    def __contains__(self, word):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError
