class RateLimiter:
    """At most ``limit`` calls of each user in any ``window`` seconds."""

    def __init__(self, limit, window, clock):
        """Make a limiter that reads the time, in whole seconds, from ``clock``."""
        raise NotImplementedError

    def allow(self, user):
        """Count a call and return True, or return False if the user has to wait."""
        raise NotImplementedError

    def remaining(self, user):
        """Return how many calls the user could still make now."""
        raise NotImplementedError

    def wait(self, user):
        """Return the number of seconds until the user may make a call."""
        raise NotImplementedError

    def reset(self, user):
        """Forget all calls of a user."""
        raise NotImplementedError
