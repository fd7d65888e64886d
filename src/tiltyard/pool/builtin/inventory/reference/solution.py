class Inventory:
    """How many pieces of each article are in store."""

    def __init__(self, counts=None):
        """Start empty or with the given counts."""
        self._counts = dict(counts or {})
        if any(count < 0 for count in self._counts.values()):
            raise ValueError("a count can't be negative")

    def add(self, article, count=1):
        """Put pieces in."""
        _check(count)
        self._counts[article] = self.count(article) + count

    def take(self, article, count=1):
        """Take pieces out, or raise and take none."""
        _check(count)
        there = self.count(article)
        if there == 0:
            raise KeyError(article)
        if there < count:
            raise ValueError(f"only {there} of {article} are in store")
        self._counts[article] = there - count

    def count(self, article):
        """Return how many pieces of an article there are."""
        return self._counts.get(article, 0)

    def total(self):
        """Return how many pieces there are altogether."""
        return sum(self._counts.values())

    def articles(self):
        """Return the names of the articles in store, in alphabetical order."""
        return sorted(article for article, count in self._counts.items() if count)

    def take_all(self, order):
        """Take everything that is ordered and return True, or take nothing and return False."""
        for count in order.values():
            _check(count)
        if any(self.count(article) < count for article, count in order.items()):
            return False
        for article, count in order.items():
            self.take(article, count)
        return True


def _check(count):
    if count < 1:
        raise ValueError("a count must be at least 1")
