class Inventory:
    """How many pieces of each article are in store."""

    def __init__(self, counts=None):
        """Start empty or with the given counts."""
        raise NotImplementedError

    def add(self, article, count=1):
        """Put pieces in."""
        raise NotImplementedError

    def take(self, article, count=1):
        """Take pieces out, or raise and take none."""
        raise NotImplementedError

    def count(self, article):
        """Return how many pieces of an article there are."""
        raise NotImplementedError

    def total(self):
        """Return how many pieces there are altogether."""
        raise NotImplementedError

    def articles(self):
        """Return the names of the articles in store, in alphabetical order."""
        raise NotImplementedError

    def take_all(self, order):
        """Take everything that is ordered and return True, or take nothing and return False."""
        raise NotImplementedError
