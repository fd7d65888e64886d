def raises(kind, function, *args, **kwargs):
    """Whether the call raises an exception of this kind."""
    try:
        function(*args, **kwargs)
    except kind:
        return True
    except Exception:
        return False
    return False


def filled(*pairs):
    queue = PriorityQueue()
    for item, priority in pairs:
        queue.push(item, priority)
    return queue


def drained(queue):
    """All items in the order in which they come out."""
    return [queue.pop() for _ in range(len(queue))]
