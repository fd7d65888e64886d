import random


def test_up_to_the_limit_at_once():
    _, limiter = make(3, 10)
    assert allowed(limiter, "bo", 5) == [True, True, True, False, False]


def test_forgotten_exactly_at_the_window():
    clock, limiter = make(1, 5, now=100)
    assert limiter.allow("bo") is True
    clock.now = 104
    assert limiter.allow("bo") is False
    clock.now = 105
    assert limiter.allow("bo") is True


def test_window_slides():
    clock, limiter = make(2, 10)
    answers = []
    for clock.now in (0, 8, 9, 10, 11, 17, 18, 20, 21):
        answers.append(limiter.allow("bo"))
    assert answers == [True, True, False, True, False, False, True, True, False]


def test_no_fresh_start_at_a_fixed_period():
    clock, limiter = make(2, 10, now=9)
    assert allowed(limiter, "bo", 2) == [True, True]
    clock.now = 11
    assert limiter.allow("bo") is False
    clock.now = 19
    assert limiter.allow("bo") is True


def test_refused_calls_do_not_count():
    clock, limiter = make(1, 10)
    assert limiter.allow("bo") is True
    for clock.now in (3, 6, 9):
        assert limiter.allow("bo") is False
    clock.now = 10
    assert limiter.allow("bo") is True


def test_users_are_apart():
    _, limiter = make(1, 10)
    assert limiter.allow("bo") is True
    assert limiter.allow("cy") is True
    assert limiter.allow("bo") is False
    assert limiter.allow("") is True
    assert limiter.remaining("dee") == 1


def test_remaining():
    clock, limiter = make(3, 10)
    assert limiter.remaining("bo") == 3
    assert limiter.allow("bo") is True
    clock.now = 6
    assert allowed(limiter, "bo", 3) == [True, True, False]
    assert limiter.remaining("bo") == 0
    clock.now = 10
    assert limiter.remaining("bo") == 1
    clock.now = 16
    assert limiter.remaining("bo") == 3


def test_asking_counts_as_nothing():
    _, limiter = make(1, 10)
    assert [limiter.remaining("bo") for _ in range(3)] == [1, 1, 1]
    assert [limiter.wait("bo") for _ in range(3)] == [0, 0, 0]
    assert limiter.allow("bo") is True


def test_wait():
    clock, limiter = make(2, 10)
    assert limiter.wait("bo") == 0
    assert limiter.allow("bo") is True
    assert limiter.wait("bo") == 0
    clock.now = 3
    assert limiter.allow("bo") is True
    assert limiter.wait("bo") == 7
    clock.now = 9
    assert limiter.wait("bo") == 1
    clock.now = 10
    assert limiter.wait("bo") == 0
    assert limiter.allow("bo") is True
    assert limiter.wait("bo") == 3


def test_wait_is_long_enough():
    clock, limiter = make(3, 7, now=50)
    for clock.now in (50, 52, 53):
        assert limiter.allow("bo") is True
    clock.now = 54
    wait = limiter.wait("bo")
    clock.now = 54 + wait - 1
    assert limiter.allow("bo") is False
    clock.now = 54 + wait
    assert limiter.allow("bo") is True


def test_reset():
    _, limiter = make(1, 10)
    assert limiter.allow("bo") is True and limiter.allow("cy") is True
    limiter.reset("bo")
    limiter.reset("nobody")
    assert limiter.remaining("bo") == 1
    assert limiter.allow("bo") is True
    assert limiter.allow("cy") is False


def test_long_pause():
    clock, limiter = make(2, 3)
    assert allowed(limiter, "bo", 2) == [True, True]
    clock.now = 10**12
    assert limiter.remaining("bo") == 2
    assert allowed(limiter, "bo", 3) == [True, True, False]
    assert limiter.wait("bo") == 3


def test_clock_need_not_start_at_zero():
    clock, limiter = make(1, 10, now=-5)
    assert limiter.allow("bo") is True
    clock.now = 4
    assert limiter.allow("bo") is False
    clock.now = 5
    assert limiter.allow("bo") is True


def test_bad_arguments():
    clock = Clock()
    for limit, window in ((0, 10), (-1, 10), (1, 0), (1, -3)):
        assert raises(ValueError, RateLimiter, limit, window, clock.read)
    assert RateLimiter(1, 1, clock.read).allow("bo") is True


def test_clock_is_asked_once_in_each_call():
    clock, limiter = make(1, 10)
    limiter.allow("bo")
    assert clock.asked == 1
    limiter.allow("bo")
    limiter.remaining("bo")
    limiter.wait("bo")
    assert clock.asked == 4


def test_limiters_are_independent():
    _, one = make(1, 10)
    _, two = make(1, 10)
    assert one.allow("bo") is True
    assert two.allow("bo") is True
    assert one.allow("bo") is False


def test_against_a_log():
    rng = random.Random(55)
    for limit, window in ((1, 3), (2, 5), (4, 9)):
        clock, limiter = make(limit, window)
        log = {"bo": [], "cy": []}
        for _ in range(80):
            clock.now += rng.choice([0, 0, 1, 2, 4])
            user = rng.choice(["bo", "cy"])
            counting = [t for t in log[user] if clock.now - t < window]
            assert limiter.remaining(user) == limit - len(counting)
            expected = len(counting) < limit
            if not expected:
                assert limiter.wait(user) == window - (clock.now - counting[0])
            assert limiter.allow(user) is expected
            if expected:
                log[user].append(clock.now)
