def test_limit():
    now = [0]
    limiter = RateLimiter(2, 10, lambda: now[0])
    assert limiter.allow("ada") is True
    now[0] = 4
    assert limiter.allow("ada") is True
    assert limiter.allow("ada") is False
    assert limiter.wait("ada") == 6


def test_old_calls_are_forgotten():
    now = [0]
    limiter = RateLimiter(1, 10, lambda: now[0])
    assert limiter.allow("ada") is True
    now[0] = 10
    assert limiter.remaining("ada") == 1
    assert limiter.allow("ada") is True
