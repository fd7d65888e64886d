def format_duration(seconds):
    """Return a number of seconds in words, such as "1 hour and 2 seconds"."""
    raise NotImplementedError
