def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


def filled(capacity, keys):
    """A cache in which each key has the value that is its name twice."""
    cache = LRUCache(capacity)
    for key in keys:
        cache.put(key, key * 2)
    return cache
