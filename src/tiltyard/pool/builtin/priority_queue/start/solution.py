class PriorityQueue:
    """A queue whose smallest priority comes out first, and whose priorities may change."""

    def __init__(self):
        """Make an empty queue."""
        raise NotImplementedError

    def push(self, item, priority):
        """Put an item in; ValueError if it is in already."""
        raise NotImplementedError

    def pop(self):
        """Take out and return the first item."""
        raise NotImplementedError

    def peek(self):
        """Return the first item."""
        raise NotImplementedError

    def update(self, item, priority):
        """Give an item another priority."""
        raise NotImplementedError

    def remove(self, item):
        """Take an item out, wherever it stands."""
        raise NotImplementedError

    def priority(self, item):
        """Return the priority of an item."""
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def __contains__(self, item):
        raise NotImplementedError
