def test_one_line_changed():
    result = line_diff(["a", "b", "c"], ["a", "x", "c"])
    assert result == [("=", "a"), ("-", "b"), ("+", "x"), ("=", "c")]


def test_added_to_nothing():
    assert line_diff([], ["a"]) == [("+", "a")]


def test_same():
    assert line_diff(["a"], ["a"]) == [("=", "a")]
