def raises(kind, call, *args, **kwargs):
    """Call and expect an exception of that kind; return it."""
    try:
        call(*args, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
