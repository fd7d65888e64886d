from bisect import bisect_left, bisect_right


class IntervalMap:
    """A value for every integer, set by whole stretches."""

    def __init__(self, default=None):
        """Give every integer the default value."""
        self._default = default
        # self._values[i] holds from self._starts[i] on, until the next start; before the first start and
        # after the last (whose value is always the default) it is the default. Neighbours always differ.
        self._starts = []
        self._values = []

    def set(self, start, end, value):
        """Give all integers from ``start`` up to, not including, ``end`` a value."""
        if start >= end:
            raise ValueError(f"an empty stretch: {start} to {end}")
        first = bisect_left(self._starts, start)
        last = bisect_right(self._starts, end)
        before = self._value_before(first)
        after = self._value_before(last)
        changes = []
        if value != before:
            changes.append((start, value))
        if after != value:
            changes.append((end, after))
        self._starts[first:last] = [at for at, _ in changes]
        self._values[first:last] = [new for _, new in changes]

    def get(self, x):
        """Return the value of the integer ``x``."""
        return self._value_before(bisect_right(self._starts, x))

    def clear(self, start, end):
        """Give all integers from ``start`` up to, not including, ``end`` the default value."""
        self.set(start, end, self._default)

    def items(self):
        """Return the stretches whose value isn't the default as (start, end, value), sorted."""
        stretches = zip(self._starts, self._starts[1:], self._values, strict=False)
        return [stretch for stretch in stretches if stretch[2] != self._default]

    def __len__(self):
        return len(self.items())

    def _value_before(self, index):
        return self._values[index - 1] if index > 0 else self._default
