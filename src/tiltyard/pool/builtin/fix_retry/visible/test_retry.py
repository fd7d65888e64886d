class Flaky:
    def __init__(self, *results):
        self.results = list(results)
        self.calls = 0

    def __call__(self):
        self.calls += 1
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


def test_second_attempt():
    assert retry(Flaky(OSError("no"), 7)) == 7


def test_all_fail():
    flaky = Flaky(OSError("1"), OSError("2"), OSError("3"), OSError("4"))
    try:
        retry(flaky)
    except OSError:
        pass
    else:
        raise AssertionError("the exception of the last attempt is expected")
    assert flaky.calls == 3
