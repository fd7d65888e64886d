def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


def filled(*stretches, default=None):
    m = IntervalMap(default)
    for start, end, value in stretches:
        m.set(start, end, value)
    return m
