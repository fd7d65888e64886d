def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


class Log:
    """Makes callbacks that note their name and arguments, and then do something."""

    def __init__(self):
        self.calls = []

    def callback(self, name, then=None):
        def run(*args, **kwargs):
            self.calls.append((name, args, kwargs) if args or kwargs else name)
            if then is not None:
                then()

        return run
