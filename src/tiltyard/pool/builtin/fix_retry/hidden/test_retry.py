def flaky(*results):
    """A function that raises or returns one result after the other, and the list of its calls."""
    left = list(results)
    calls = []

    def call():
        calls.append(1)
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    return call, calls


def test_first_attempt_is_enough():
    call, calls = flaky("ok", "never")
    waits = []
    assert retry(call, sleep=waits.append) == "ok"
    assert (len(calls), waits) == (1, [])


def test_none_is_a_result():
    call, calls = flaky(None, "never")
    assert retry(call) is None
    assert len(calls) == 1


def test_waits_between_attempts():
    call, calls = flaky(OSError(), OSError(), OSError(), "ok")
    waits = []
    assert retry(call, attempts=4, sleep=waits.append, first=0.5, factor=3) == "ok"
    assert (len(calls), waits) == (4, [0.5, 1.5, 4.5])


def test_last_attempt_fails():
    call, calls = flaky(OSError(), OSError(), "too late")
    waits = []
    raises(OSError, retry, call, attempts=2, sleep=waits.append)
    assert (len(calls), waits) == (2, [1.0])


def test_single_attempt():
    call, calls = flaky(OSError(), "too late")
    waits = []
    raises(OSError, retry, call, attempts=1, sleep=waits.append)
    assert (len(calls), waits) == (1, [])


def test_default_is_three_attempts():
    call, calls = flaky(OSError(), OSError(), OSError(), "too late")
    raises(OSError, retry, call)
    assert len(calls) == 3


def test_exception_is_the_last_one():
    call, calls = flaky(KeyError("a"), IndexError("b"), "too late")
    raises(IndexError, retry, call, attempts=2, on=(LookupError,))


def test_other_exceptions_come_at_once():
    call, calls = flaky(ValueError("bad"), "too late")
    waits = []
    reports = []
    raises(ValueError, retry, call, sleep=waits.append, report=lambda n, e: reports.append(n))
    assert (len(calls), waits, reports) == (1, [], [])


def test_other_exception_after_a_retry():
    call, calls = flaky(OSError(), ZeroDivisionError(), "too late")
    waits = []
    raises(ZeroDivisionError, retry, call, attempts=5, sleep=waits.append)
    assert (len(calls), waits) == (2, [1.0])


def test_subclasses_are_retried():
    call, calls = flaky(FileNotFoundError(), TimeoutError(), "ok")
    assert retry(call) == "ok"


def test_own_choice_of_exceptions():
    call, calls = flaky(ValueError(), KeyError(), "ok")
    assert retry(call, on=(ValueError, KeyError)) == "ok"
    call, calls = flaky(OSError(), "too late")
    raises(OSError, retry, call, on=(ValueError,))
    assert len(calls) == 1


def test_longest_wait():
    call, calls = flaky(*[OSError()] * 5, "ok")
    waits = []
    assert retry(call, attempts=6, sleep=waits.append, first=1.0, factor=4.0, longest=10.0) == "ok"
    assert waits == [1.0, 4.0, 10.0, 10.0, 10.0]


def test_reports():
    call, calls = flaky(OSError(), OSError(), OSError(), "too late")
    seen = []
    raises(
        OSError,
        retry,
        call,
        report=lambda number, error: seen.append((number, isinstance(error, OSError))),
        sleep=lambda seconds: seen.append("sleep"),
    )
    assert seen == [(1, True), "sleep", (2, True), "sleep", (3, True)]


def test_too_few_attempts():
    call, calls = flaky("ok")
    raises(ValueError, retry, call, attempts=0)
    assert calls == []
