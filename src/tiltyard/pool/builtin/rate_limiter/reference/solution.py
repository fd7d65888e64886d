from collections import deque


class RateLimiter:
    """At most ``limit`` calls of each user in any ``window`` seconds."""

    def __init__(self, limit, window, clock):
        """Make a limiter that reads the time, in whole seconds, from ``clock``."""
        if limit < 1 or window < 1:
            raise ValueError("limit and window must be at least 1")
        self._limit = limit
        self._window = window
        self._clock = clock
        self._calls = {}  # user: times of the calls that may still count, oldest first

    def allow(self, user):
        """Count a call and return True, or return False if the user has to wait."""
        now = self._clock()
        calls = self._counting(user, now)
        if len(calls) >= self._limit:
            return False
        calls.append(now)
        return True

    def remaining(self, user):
        """Return how many calls the user could still make now."""
        return self._limit - len(self._counting(user, self._clock()))

    def wait(self, user):
        """Return the number of seconds until the user may make a call."""
        now = self._clock()
        calls = self._counting(user, now)
        if len(calls) < self._limit:
            return 0
        return calls[0] + self._window - now

    def reset(self, user):
        """Forget all calls of a user."""
        self._calls.pop(user, None)

    def _counting(self, user, now):
        calls = self._calls.setdefault(user, deque())
        while calls and calls[0] + self._window <= now:
            calls.popleft()
        return calls
